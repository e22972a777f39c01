// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"fmt"
	"slices"
)

// suspicion says why a missing document proves nothing: a root is missing,
// unreadable, emptied or on another device than before. It holds every removal,
// whatever root the document was below, since it may have moved.
func (c *resolution) suspicion(missing []string) string {
	for _, root := range c.reading.Roots {
		if why := c.suspect(root, missing); why != "" {
			return why
		}
	}
	return ""
}

// suspect compares a root with its baseline. One that never held anything and
// that no missing session was declared below, such as a directory that is not
// made yet, is no reason to hold anything.
func (c *resolution) suspect(root Root, missing []string) string {
	before := c.prev.roots[root.Path]
	used := before.documents > 0 || slices.ContainsFunc(missing, func(name string) bool {
		m := c.next.sessions[name]
		return m.verdict == undecided && (m.file == "" || below(m.file, root.Path))
	})
	switch root.Access {
	case Readable:
		if root.Documents == 0 && used {
			return fmt.Sprintf("the manifest directory %s is empty", root.Path)
		}
		if before.access == Readable && before.device != root.Device {
			return fmt.Sprintf("the manifest directory %s is on another device than before", root.Path)
		}
		return ""
	case Missing:
		if used || before.access == Readable {
			return fmt.Sprintf("the manifest directory %s does not exist", root.Path)
		}
		return ""
	case Unreadable, AccessUnknown:
	}
	return fmt.Sprintf("the manifest directory %s cannot be read: %s", root.Path, root.Message)
}

// rememberRoots makes what was read the baseline of the next comparison. A
// suspicious root keeps its old baseline as long as a removal hangs on it; once
// nothing is missing, or a person confirmed, it is as it should be.
func (c *resolution) rememberRoots(missing []string) {
	pending := slices.ContainsFunc(missing, func(name string) bool {
		return c.next.sessions[name].verdict == undecided
	})
	for _, d := range c.set.Classes {
		pending = pending || d.Presence == Held
	}
	before := c.next.roots
	c.next.roots = make(map[string]baseline, len(c.reading.Roots))
	for _, root := range c.reading.Roots {
		if pending && c.suspect(root, missing) != "" {
			c.next.roots[root.Path] = before[root.Path]
			continue
		}
		c.next.roots[root.Path] = baseline{access: root.Access, device: root.Device, documents: root.Documents}
	}
}

// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"path/filepath"

	"github.com/muxlet/muxlet/controller/plan"
	"github.com/muxlet/muxlet/spec"
	"github.com/muxlet/muxlet/spec/durable"
)

// firstLooks counts what the first look at each known session found, for one
// line in the log.
type firstLooks struct {
	expected         map[string]bool
	adopted, dormant int
	told             bool
}

func (f *firstLooks) expect(name string) {
	if f.expected == nil {
		f.expected = map[string]bool{}
	}
	f.expected[name] = true
}

// done counts a session that was judged for the first time.
func (f *firstLooks) done(name string, p plan.Plan) {
	if f.told {
		return
	}
	delete(f.expected, name)
	if p.Record.Client != nil {
		f.adopted++
	}
	if p.Verdict.Reason == spec.ReasonNotRecovered {
		f.dormant++
	}
}

// tellFirstLook logs the boot line once everything known was looked at. The boot
// id is compared, stored and logged, and decides nothing.
func (c *Controller) tellFirstLook() {
	c.mu.Lock()
	ready := c.read && c.instance != "" && !c.first.told && len(c.first.expected) == 0 && c.unseen() == 0
	if !ready {
		c.mu.Unlock()
		return
	}
	c.first.told = true
	adopted, dormant := c.first.adopted, c.first.dormant
	c.mu.Unlock()
	path := filepath.Join(c.StateDir, "boot_id")
	change, current := c.CompareBoot(path)
	if current != "" {
		if err := durable.WriteFile(path, []byte(current+"\n"), 0o600); err != nil {
			c.Log.Error(err, "Boot id was not stored")
		}
	}
	c.Log.Info("Compared boot id", "boot", change, "adopted", adopted, "dormant", dormant)
}

// unseen counts the sessions that have a document in force and were not judged
// yet. c.mu is held.
func (c *Controller) unseen() int {
	n := 0
	for name, s := range c.sessions {
		d, ok := c.desired.Sessions[name]
		if ok && !s.seen && d.Session != nil && d.Reason != spec.ReasonDuplicateName {
			n++
		}
	}
	return n
}

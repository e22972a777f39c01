// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"path/filepath"
	"strings"
)

// isManifest tells from its name whether a file is read. What editors and
// synchronisers leave behind ends differently (x.yaml~, x.yaml.swp, 4913,
// #x.yaml#, x.yaml.tmp) or is hidden.
func isManifest(name string) bool {
	switch filepath.Ext(name) {
	case ".yaml", ".yml", ".json":
		return !isIgnored(name)
	}
	return false
}

// isIgnored tells a file or directory that is never looked at: hidden (.git,
// .#x.yaml, .x.yaml.swp), or a backup (x~, ~$x, #x#).
func isIgnored(name string) bool {
	return name == "" || name[0] == '.' ||
		strings.HasSuffix(name, "~") || strings.HasPrefix(name, "~$") ||
		strings.HasPrefix(name, "#") && strings.HasSuffix(name, "#")
}

// below tells whether path is root or lies beneath it. Both are clean.
func below(path, root string) bool {
	if path == root || root == "." && !filepath.IsAbs(path) {
		return true
	}
	return strings.HasPrefix(path, strings.TrimSuffix(root, "/")+"/")
}

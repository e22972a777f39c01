// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"os"
	"path/filepath"
	"strings"
)

// linkSites gives the path of every symlink that is passed on the way from link
// to its target, and the target itself: a change of any of them changes what
// the link leads to. A mounted ConfigMap swaps the middle one
// (x.yaml -> ..data/x.yaml, ..data -> ..2024).
func linkSites(link string) []string {
	at, err := filepath.EvalSymlinks(filepath.Dir(link))
	if err != nil {
		return nil
	}
	var sites []string
	names := []string{filepath.Base(link)}
	const mostLinks = 40 // what Linux follows
	for len(names) > 0 && len(sites) < mostLinks {
		name := names[0]
		names = names[1:]
		next := filepath.Join(at, name) // also for "..": at holds no symlink
		target, err := os.Readlink(next)
		if err != nil {
			at = next
			continue
		}
		sites = append(sites, next)
		if filepath.IsAbs(target) {
			at = "/"
		}
		names = append(strings.FieldsFunc(target, func(r rune) bool { return r == '/' }), names...)
	}
	return append(sites, at)
}

// existingAncestor gives the nearest directory above path that exists, and the
// name in it that leads to path.
func existingAncestor(path string) (dir, name string) {
	for dir = path; ; {
		dir, name = filepath.Dir(dir), filepath.Base(dir)
		st, err := statPath(dir)
		if err == nil && st.isDir() || dir == filepath.Dir(dir) {
			return dir, name
		}
	}
}

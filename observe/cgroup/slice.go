// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"os"
	"path/filepath"
	"time"

	"github.com/muxlet/muxlet/observe"
)

// sliceKills is what the kernel has ended below the slice. systemd removes a scope at once
// when its last process has ended, often before its own count was read; the slice's count
// has what was counted in it all the same.
type sliceKills struct {
	known bool
	// total is the slice's count; rose is when it was last seen to have grown.
	total int
	rose  time.Time
	// base are those of scopes that were gone when the count began, claimed those of scopes
	// that are not watched any more.
	base, claimed int
}

// young is the age of a scope up to which what was ended in it was ended just now.
const young = 10 * time.Second

// lookAtSlice reads the slice's count. w.mu is held.
func (w *Watcher) lookAtSlice() {
	path := filepath.Join(w.tree.path(w.tree.Slice), eventsFile)
	total, err := w.tree.oomKills(w.tree.Slice)
	if err != nil {
		return
	}
	if !w.slice.known || total < w.slice.total {
		_ = w.inotify.Add(path)
		w.slice = sliceKills{known: true, total: total}
		w.slice.base, _ = w.tree.killsOfGone()
		return
	}
	if total > w.slice.total {
		w.slice.total, w.slice.rose = total, w.now()
	}
}

// unclaimed are the kills in scopes that are gone which were not told of any. w.mu is held.
func (w *Watcher) unclaimed() int {
	kills, ok := w.tree.killsOfGone()
	if !ok || !w.slice.known {
		return 0
	}
	kills -= w.slice.base + w.slice.claimed
	for _, other := range w.watched {
		if _, err := os.Stat(w.tree.path(other.scope.ControlGroup)); err != nil {
			kills -= other.oom.Kills
		}
	}
	return kills
}

// killsOfGone are the kills below the slice that are not counted by what is there now. ok
// is false while the counts change.
func (t Tree) killsOfGone() (kills int, ok bool) {
	for range 5 {
		before, err := t.oomKills(t.Slice)
		if err != nil {
			return 0, false
		}
		entries, err := os.ReadDir(t.path(t.Slice))
		if err != nil {
			return 0, false
		}
		there := 0
		for _, entry := range entries {
			if entry.IsDir() {
				n, _ := t.oomKills(filepath.Join(t.Slice, entry.Name()))
				there += n
			}
		}
		if after, err := t.oomKills(t.Slice); err == nil && after == before {
			return before - there, true
		}
	}
	return 0, false
}

// isYoung says whether a scope was made a moment ago, or is not there.
func (t Tree) isYoung(s observe.Scope, now time.Time) bool {
	info, err := os.Stat(t.path(s.ControlGroup))
	return err != nil || now.Sub(info.ModTime()).Abs() < young
}

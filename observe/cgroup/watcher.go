// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"path/filepath"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/muxlet/muxlet/observe"
)

// Watcher notices what the kernel ends in scopes for want of memory. The files that tell
// go with the scope, a moment after its last process: they are read at the kernel's
// notice, not when somebody asks.
type Watcher struct {
	tree    Tree
	now     func() time.Time
	inotify *fsnotify.Watcher
	notices chan string

	mu      sync.Mutex
	watched map[string]*watch
	slice   sliceKills
}

// watch is one scope that is watched, by the path of its events.
type watch struct {
	scope observe.Scope
	key   string
	oom   observe.OOM
}

// NewWatcher makes a Watcher; Close ends it. Without notices of the system it sees
// nothing.
func NewWatcher(t Tree, now func() time.Time) (*Watcher, error) {
	w := &Watcher{tree: t, now: now, notices: make(chan string, 64), watched: map[string]*watch{}}
	inotify, err := fsnotify.NewWatcher()
	if err != nil {
		return w, err
	}
	w.inotify = inotify
	w.lookAtSlice()
	go w.run()
	return w, nil
}

// Close ends the watch.
func (w *Watcher) Close() error {
	if w.inotify == nil {
		return nil
	}
	return w.inotify.Close()
}

// Notices has the key of each watch whose scope had a process ended. One may get lost
// while nobody reads: OOM tells all the same.
func (w *Watcher) Notices() <-chan string { return w.notices }

// Watch begins to watch a scope. Again, or where the system does not count what it ends,
// it does nothing.
func (w *Watcher) Watch(s observe.Scope, key string) {
	if w.inotify == nil || w.tree.Root == "" || s.ControlGroup == "" {
		return
	}
	path := w.eventsOf(s)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.watched[path] != nil {
		return
	}
	w.lookAtSlice()
	// It may not be there: a client may have been ended before it is known, and its scope with it.
	_ = w.inotify.Add(path)
	found := &watch{scope: s, key: key}
	w.watched[path] = found
	// Counted after the watch was set: what comes later gives a notice. When an older scope's
	// kills were is not known; in one that was made just now, all of it has just been.
	if w.look(found) && !w.tree.isYoung(s, w.now()) {
		found.oom.At = time.Time{}
	}
}

// Forget stops watching a scope.
func (w *Watcher) Forget(s observe.Scope) {
	path := w.eventsOf(s)
	w.mu.Lock()
	defer w.mu.Unlock()
	found := w.watched[path]
	if found == nil {
		return
	}
	w.slice.claimed += found.oom.Kills
	delete(w.watched, path)
	// It may be gone with its file.
	_ = w.inotify.Remove(path)
}

// OOM is what was ended in a scope that is watched, and when that was noticed.
func (w *Watcher) OOM(s observe.Scope) observe.OOM {
	w.mu.Lock()
	defer w.mu.Unlock()
	if found := w.watched[w.eventsOf(s)]; found != nil {
		w.look(found)
		w.claim(found)
		return found.oom
	}
	return observe.OOM{}
}

func (w *Watcher) eventsOf(s observe.Scope) string {
	return filepath.Join(w.tree.path(s.ControlGroup), eventsFile)
}

func (w *Watcher) run() {
	errs := w.inotify.Errors
	for {
		select {
		case event, open := <-w.inotify.Events:
			if !open {
				return
			}
			w.take(event.Name)
		case _, open := <-errs:
			if !open {
				errs = nil
			}
		}
	}
}

func (w *Watcher) take(path string) {
	w.mu.Lock()
	w.lookAtSlice()
	found := w.watched[path]
	news := found != nil && w.look(found)
	w.mu.Unlock()
	if !news {
		return
	}
	select {
	case w.notices <- found.key:
	default:
	}
}

// look reads the count; a scope that is gone keeps the last one. w.mu is held.
func (w *Watcher) look(found *watch) (news bool) {
	kills, err := w.tree.oomKills(found.scope.ControlGroup)
	if err != nil || kills <= found.oom.Kills {
		return false
	}
	found.oom = observe.OOM{Kills: kills, At: w.now()}
	return true
}

// claim tells a kill in the slice of a scope that is gone, for which none was read. It is
// done when somebody asks for that scope alone, not for each that goes: others end in
// other ways at the same time. w.mu is held.
func (w *Watcher) claim(found *watch) {
	_, err := w.tree.oomKills(found.scope.ControlGroup)
	if !vanished(err) || w.now().Sub(found.oom.At) < young {
		return
	}
	w.lookAtSlice()
	if w.now().Sub(w.slice.rose) < young && w.unclaimed() > 0 {
		found.oom = observe.OOM{Kills: found.oom.Kills + 1, At: w.slice.rose}
	}
}

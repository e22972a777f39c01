// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/fsnotify/fsnotify"
	"github.com/go-logr/logr"
)

// Watcher hints that the manifests may have changed. A hint has no meaning but
// "read again"; whoever uses it reads at intervals too, since notices get lost:
// a queue overflows, a file system has none, the system's watches run out.
type Watcher struct {
	log    logr.Logger
	events chan struct{}
	hints  chan struct{}
	done   chan struct{}
	stop   sync.Once
	tasks  sync.WaitGroup

	// filter is what is watched, for the goroutine that reads notices. That one
	// must never wait for Sync, which waits for it inside fsnotify.
	filter atomic.Pointer[map[string]watched]

	mu     sync.Mutex
	notify *fsnotify.Watcher
	// blind is why notices are missing; empty when they are not.
	blind string
}

// watched is a directory for which notices were asked for.
type watched struct {
	Watch
	// listed is whether fsnotify lists it under this path. A second path to a
	// directory that it has already is not.
	listed bool
}

// NewWatcher makes a Watcher that watches nothing until Sync. It never fails: a
// system that gives no notices is logged, once, and leaves reading at intervals.
func NewWatcher(log logr.Logger) *Watcher {
	w := &Watcher{
		log:    log,
		events: make(chan struct{}, 1),
		hints:  make(chan struct{}, 1),
		done:   make(chan struct{}),
	}
	w.filter.Store(&map[string]watched{})
	w.tasks.Go(func() { debounce(w.events, w.hints, w.done) })
	return w
}

// Hints gives a value when the manifests should be read again. Its capacity is
// 1 and it is never closed.
func (w *Watcher) Hints() <-chan struct{} { return w.hints }

// Sync watches what a Reading says is to be watched. It hints once more after
// adding a directory, since files may have come between the reading and the
// watch.
func (w *Watcher) Sync(r Reading) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.connect(); err != nil {
		w.report(err, len(r.Watches))
		return
	}
	have := w.listed()
	before := *w.filter.Load()
	next := make(map[string]watched, len(r.Watches))
	for _, watch := range r.Watches {
		watch.all = watch.all || len(watch.Names) == 0
		next[watch.Dir] = watched{Watch: watch}
	}
	w.filter.Store(&next)
	for dir := range have {
		if now, wanted := next[dir]; !wanted || now.id != before[dir].id {
			_ = w.notify.Remove(dir) // it may have vanished by itself
			delete(have, dir)
		}
	}
	fresh, err := w.add(have, before, next)
	w.report(err, len(next))
	if fresh {
		offer(w.events)
	}
}

// add asks for the notices that are not there yet. It tells whether any of them
// is new, and the first error that is not a directory's own.
func (w *Watcher) add(have map[string]struct{}, before, next map[string]watched) (fresh bool, failed error) {
	for dir, watch := range next {
		if _, listed := have[dir]; listed {
			continue
		}
		err := w.notify.Add(dir)
		last, known := before[dir]
		alias := known && last.id == watch.id && !last.listed
		switch {
		case err == nil && !alias:
			fresh = true
		case err != nil && exhausted(err) && failed == nil:
			failed = err
		case err != nil:
			w.log.V(1).Info("Could not watch a manifest directory", "directory", dir, "err", err.Error())
		}
	}
	listed := w.listed()
	final := make(map[string]watched, len(next))
	for dir, watch := range next {
		_, watch.listed = listed[dir]
		final[dir] = watch
	}
	w.filter.Store(&final)
	return fresh, failed
}

func (w *Watcher) listed() map[string]struct{} {
	list := map[string]struct{}{}
	for _, dir := range w.notify.WatchList() {
		list[dir] = struct{}{}
	}
	return list
}

// connect opens the source of notices, again after a failure too.
func (w *Watcher) connect() error {
	if w.notify != nil {
		return nil
	}
	select {
	case <-w.done:
		return errors.New("the watcher is closed")
	default:
	}
	notify, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("open file notices: %w", err)
	}
	w.notify = notify
	w.tasks.Go(func() { w.pump(notify) })
	return nil
}

// exhausted tells a limit of the system from a fault of one directory.
func exhausted(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EMFILE) ||
		errors.Is(err, syscall.ENFILE) || errors.Is(err, syscall.ENOMEM)
}

// report logs once that notices are missing, and once that they are back.
func (w *Watcher) report(err error, directories int) {
	switch {
	case err != nil && w.blind == "":
		w.log.Info("Ran out of file notices, changes are found at the next resync only",
			"directories", directories, "err", err.Error(),
			"hint", "raise fs.inotify.max_user_watches or fs.inotify.max_user_instances")
	case err == nil && w.blind != "":
		w.log.Info("Got file notices again", "directories", directories)
	}
	w.blind = ""
	if err != nil {
		w.blind = err.Error()
	}
}

// pump turns notices into events until they end.
func (w *Watcher) pump(notify *fsnotify.Watcher) {
	for {
		select {
		case event, open := <-notify.Events:
			if !open {
				return
			}
			if w.matters(event) {
				offer(w.events)
			}
		case err, open := <-notify.Errors:
			if !open {
				return
			}
			w.log.V(1).Info("Lost file notices", "err", err.Error())
			offer(w.events)
		}
	}
}

// matters tells whether an event can change the next reading.
func (w *Watcher) matters(event fsnotify.Event) bool {
	filter := *w.filter.Load()
	dir, name := filepath.Dir(event.Name), filepath.Base(event.Name)
	if self, found := filter[event.Name]; found && self.all {
		return true
	}
	watch, found := filter[dir]
	switch {
	case !found, slices.Contains(watch.Names, name):
		return true
	case !watch.all || isIgnored(name):
		return false
	case isManifest(name):
		return true
	}
	// Another name may be that of a directory, which is not written to.
	return event.Op&^fsnotify.Write != 0
}

// Close ends the watching; no hint is given afterwards. It returns when nothing
// of the Watcher runs any more, and may be called twice.
func (w *Watcher) Close() error {
	var err error
	w.stop.Do(func() {
		close(w.done)
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.notify != nil {
			err = w.notify.Close()
		}
	})
	w.tasks.Wait()
	if err != nil {
		return fmt.Errorf("close file notices: %w", err)
	}
	return nil
}

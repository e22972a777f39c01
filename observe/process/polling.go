// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"fmt"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/muxlet/muxlet/observe"
)

// pollingWatcher asks for the state of each watched process now and then.
type pollingWatcher struct {
	state func(observe.Process) observe.Liveness
	box   *outbox
	stop  chan struct{}
	done  chan struct{}

	mu sync.Mutex
	// watched processes; nil after Close.
	watched map[observe.Process]*polled
}

// polled is one watched process.
type polled struct {
	key string
	// noticed: its death was given to the outbox.
	noticed bool
}

// NewPollingWatcher returns a Watcher that works on every platform: it looks at
// the process table at each interval of the clock, and so gives notice one
// interval late at most. It cannot tell how a process ended.
func NewPollingWatcher(interval time.Duration, clk clock.WithTicker) Watcher {
	return newPollingWatcher(interval, clk, State)
}

func newPollingWatcher(interval time.Duration, clk clock.WithTicker, state func(observe.Process) observe.Liveness) *pollingWatcher {
	w := &pollingWatcher{
		state: state, box: newOutbox(),
		stop: make(chan struct{}), done: make(chan struct{}),
		watched: map[observe.Process]*polled{},
	}
	go w.poll(clk.NewTicker(interval))
	return w
}

func (w *pollingWatcher) poll(ticker clock.Ticker) {
	defer close(w.done)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C():
			w.look()
		case <-w.stop:
			return
		}
	}
}

// look gives notice of the watched processes that are Gone. Unknown is no death.
// It asks once for each that was alive, and holds the lock for one question at a
// time: who watches or forgets does not wait for a thousand.
func (w *pollingWatcher) look() {
	for _, p := range w.living() {
		w.mu.Lock()
		if watch := w.watched[p]; watch != nil {
			w.judge(p, watch)
		}
		w.mu.Unlock()
	}
}

func (w *pollingWatcher) living() []observe.Process {
	w.mu.Lock()
	defer w.mu.Unlock()
	living := make([]observe.Process, 0, len(w.watched))
	for p, watch := range w.watched {
		if !watch.noticed {
			living = append(living, p)
		}
	}
	return living
}

// judge is called with the lock held.
func (w *pollingWatcher) judge(p observe.Process, watch *polled) {
	if !watch.noticed && w.state(p) == observe.Gone {
		watch.noticed = true
		w.box.put(Notice{Process: p, Key: watch.key})
	}
}

// Watch is Watcher's.
func (w *pollingWatcher) Watch(p observe.Process, key string) error {
	if err := checkWatchable(p); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.watched == nil {
		return fmt.Errorf("watching process %s: %w", p, ErrClosed)
	}
	watch, known := w.watched[p]
	if !known {
		watch = &polled{}
		w.watched[p] = watch
	}
	watch.key = key
	w.judge(p, watch)
	return nil
}

// Forget is Watcher's.
func (w *pollingWatcher) Forget(p observe.Process) {
	w.mu.Lock()
	delete(w.watched, p)
	w.mu.Unlock()
	w.box.drop(p)
}

// State is Watcher's: what was seen at the last look is not what is now.
func (w *pollingWatcher) State(observe.Process) observe.Liveness { return observe.LivenessUnknown }

// Exit is Watcher's: the process table does not tell how a process ended.
func (w *pollingWatcher) Exit(observe.Process) *observe.Exit { return nil }

// Notices is Watcher's.
func (w *pollingWatcher) Notices() <-chan Notice { return w.box.out }

// Close is Watcher's.
func (w *pollingWatcher) Close() error {
	w.mu.Lock()
	closed := w.watched == nil
	w.watched = nil
	w.mu.Unlock()
	if closed {
		return fmt.Errorf("closing the watcher of processes: %w", ErrClosed)
	}
	close(w.stop)
	<-w.done
	w.box.close()
	return nil
}

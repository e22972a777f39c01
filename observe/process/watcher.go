// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"errors"
	"fmt"
	"sync"

	"github.com/muxlet/muxlet/observe"
)

// ErrClosed says that a watcher was used after its Close.
var ErrClosed = errors.New("the watcher of processes is closed")

// Notice says that a watched process has ended. It is a hint to look at Key: what
// happened is for the next observation to say.
type Notice = observe.Notice

// Watcher gives notice of deaths. Its methods may be called by several goroutines
// at once.
type Watcher interface {
	// Watch asks for one notice of p's end, under key. A process that has ended
	// already gives its notice at once. To watch a watched process again changes
	// its key and gives no second notice. An error means that there will be no
	// notice: the process could not be identified, or the system has no room.
	Watch(p observe.Process, key string) error
	// Forget ends the watch of p and lets go of what is held of it. A notice that
	// is on its way may still arrive.
	Forget(p observe.Process)
	// State of a watched process, without a look at the process table; Unknown for
	// one that is not watched, and where only that look can tell.
	State(p observe.Process) observe.Liveness
	// Exit tells how a watched process ended, from its death until Forget. nil: it
	// runs, its parent has not collected its status yet, or the system does not
	// tell.
	Exit(p observe.Process) *observe.Exit
	// Notices carries each death once. Notices that nobody takes are kept.
	Notices() <-chan Notice
	// Close ends all watches and closes Notices.
	Close() error
}

// outbox keeps notices until they are taken, so that a slow reader neither blocks
// who looks for deaths nor loses one.
type outbox struct {
	out    chan Notice
	more   chan struct{}
	closed chan struct{}
	done   chan struct{}

	mu      sync.Mutex
	pending []Notice
}

func newOutbox() *outbox {
	o := &outbox{
		out: make(chan Notice), more: make(chan struct{}, 1),
		closed: make(chan struct{}), done: make(chan struct{}),
	}
	go o.deliver()
	return o
}

// put never blocks.
func (o *outbox) put(n Notice) {
	o.mu.Lock()
	o.pending = append(o.pending, n)
	o.mu.Unlock()
	select {
	case o.more <- struct{}{}:
	default:
	}
}

// drop takes back the notices of p that nobody has been offered yet.
func (o *outbox) drop(p observe.Process) {
	o.mu.Lock()
	defer o.mu.Unlock()
	kept := o.pending[:0]
	for _, n := range o.pending {
		if n.Process != p {
			kept = append(kept, n)
		}
	}
	o.pending = kept
}

func (o *outbox) take() (Notice, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.pending) == 0 {
		o.pending = nil
		return Notice{}, false
	}
	n := o.pending[0]
	o.pending = o.pending[1:]
	return n, true
}

func (o *outbox) deliver() {
	defer close(o.done)
	defer close(o.out)
	for {
		n, some := o.take()
		if some {
			select {
			case o.out <- n:
			case <-o.closed:
				return
			}
			continue
		}
		select {
		case <-o.more:
		case <-o.closed:
			return
		}
	}
}

// close ends the delivery; it is called once.
func (o *outbox) close() {
	close(o.closed)
	<-o.done
}

// checkWatchable refuses a process that could not be told from another one.
func checkWatchable(p observe.Process) error {
	if p.PID <= 0 || p.Ticks == 0 {
		return fmt.Errorf("watching process %s: its identity is not complete", p)
	}
	return nil
}

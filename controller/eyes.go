// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/muxlet/muxlet/controller/plan"
	"github.com/muxlet/muxlet/observe"
)

// snapshot is one answer of tmux and what it proves.
type snapshot struct {
	// began is when the question was asked.
	began time.Time
	view  observe.ServerView
	// unproven is true when nobody answers and the process table was not searched yet
	// for a server that cannot be reached: it is not known that there is none.
	unproven bool
	// panes of our instance by session uid.
	panes map[string][]observe.Pane
	// holders maps the names of tmux sessions without a pane of ours to their ids.
	holders map[string]string
	// live are the uids that have a pane with a running process.
	live map[string]bool
	// own maps the labels of tmux sessions to their ids.
	own map[string]string
	// confirmation is Unconfirmed when most sessions are dead for the first time.
	confirmation plan.Confirmation
}

// judge makes a snapshot of an answer; it is given by the controller, which
// knows the recorded server.
type judge func(observe.Answer) snapshot

// eyes shares listings between reconciles: all who need one that began after an
// instant get the same one.
type eyes struct {
	Options
	mu      sync.Mutex
	current *snapshot
	// lastKnown is when tmux last answered in a way that counts, and since when it
	// has not.
	lastKnown, unknownSince time.Time
	looking                 *look
	// words belong to whoever is looking.
	words words

	marksMu sync.Mutex
	marks   map[string][]observe.MarkedProcess
	gone    map[observe.Process]time.Time
}

// look is a listing in progress.
type look struct {
	began time.Time
	done  chan struct{}
	snap  *snapshot
}

func newEyes(o Options) *eyes {
	return &eyes{Options: o, marks: map[string][]observe.MarkedProcess{}, gone: map[observe.Process]time.Time{}}
}

// at returns a snapshot that began at notBefore or later. A time in the future
// means now.
func (e *eyes) at(ctx context.Context, notBefore time.Time, j judge) *snapshot {
	if now := e.Clock.Now(); notBefore.After(now) {
		notBefore = now
	}
	for {
		e.mu.Lock()
		if e.current != nil && !e.current.began.Before(notBefore) {
			snap := e.current
			e.mu.Unlock()
			return snap
		}
		l := e.looking
		if l == nil {
			l = &look{began: e.Clock.Now(), done: make(chan struct{})}
			e.looking = l
			e.mu.Unlock()
			e.take(ctx, l, j)
			return l.snap
		}
		e.mu.Unlock()
		<-l.done
		if !l.began.Before(notBefore) {
			return l.snap
		}
	}
}

// take asks tmux once.
func (e *eyes) take(ctx context.Context, l *look, j judge) {
	answer := e.Tmux.List(ctx, e.Clock.Now)
	e.words = e.words.own(&answer.Listing)
	snap := j(answer)
	snap.began = l.began
	l.snap = &snap
	e.Metrics.Observed(snap.view.Reason)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.current, e.looking = l.snap, nil
	switch {
	case snap.view.State != observe.ServerUnknown:
		e.lastKnown, e.unknownSince = l.began, time.Time{}
	case e.unknownSince.IsZero():
		e.unknownSince = l.began
	}
	close(l.done)
}

// latest returns the last snapshot, nil before the first.
func (e *eyes) latest() (snap *snapshot, lastKnown, unknownSince time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.current, e.lastKnown, e.unknownSince
}

// markGone remembers since when a process is known to be gone.
func (e *eyes) markGone(p observe.Process, at time.Time) time.Time {
	e.marksMu.Lock()
	defer e.marksMu.Unlock()
	if since, ok := e.gone[p]; ok {
		return since
	}
	e.gone[p] = at
	return at
}

// fewDied says whether p is known to be gone, and at most a few others of which
// nothing has come yet.
func (e *eyes) fewDied(p observe.Process, few int) bool {
	e.marksMu.Lock()
	defer e.marksMu.Unlock()
	_, gone := e.gone[p]
	return gone && len(e.gone) <= few
}

// stateOf judges a process as cheaply as it can.
func (e *eyes) stateOf(p observe.Process) observe.Liveness {
	if state := e.Deaths.State(p); state != observe.LivenessUnknown {
		return state
	}
	return e.Processes.State(p)
}

// forget drops what is remembered of a process that was accounted for.
func (e *eyes) forget(p observe.Process) {
	e.marksMu.Lock()
	delete(e.gone, p)
	e.marksMu.Unlock()
	e.Deaths.Forget(p)
}

// scan looks for marked clients of the instance in the whole process table.
func (e *eyes) scan(instance string) error {
	found, err := e.Processes.Scan(instance)
	if err != nil {
		return err
	}
	e.marksMu.Lock()
	defer e.marksMu.Unlock()
	e.marks = map[string][]observe.MarkedProcess{}
	for _, m := range found {
		e.marks[m.UID] = append(e.marks[m.UID], m)
	}
	return nil
}

// marked returns the known clients of a session that still run. What one of them
// is cannot be read is still counted: ignorance is not death.
func (e *eyes) marked(uid string) []observe.MarkedProcess {
	e.marksMu.Lock()
	known := e.marks[uid]
	e.marksMu.Unlock()
	var live []observe.MarkedProcess
	for _, m := range known {
		if e.stateOf(m.Process) != observe.Gone {
			live = append(live, m)
		}
	}
	if len(live) != len(known) {
		e.setMarks(uid, live)
	}
	return live
}

// isOthers says whether p is known to be a client of another session than that of uid.
func (e *eyes) isOthers(uid string, p observe.Process) bool {
	e.marksMu.Lock()
	defer e.marksMu.Unlock()
	for other, known := range e.marks {
		if other != uid && slices.ContainsFunc(known, func(m observe.MarkedProcess) bool { return m.Process == p }) {
			return true
		}
	}
	return false
}

// note adds a process that has just been seen to be a client.
func (e *eyes) note(m observe.MarkedProcess) {
	e.marksMu.Lock()
	defer e.marksMu.Unlock()
	for _, known := range e.marks[m.UID] {
		if known.Process == m.Process {
			return
		}
	}
	e.marks[m.UID] = append(e.marks[m.UID], m)
}

func (e *eyes) setMarks(uid string, live []observe.MarkedProcess) {
	e.marksMu.Lock()
	defer e.marksMu.Unlock()
	if len(live) == 0 {
		delete(e.marks, uid)
		return
	}
	e.marks[uid] = live
}

// sessionOf finds the uid and the last known name of marked clients by name.
func (e *eyes) uidByName(name string) (string, bool) {
	e.marksMu.Lock()
	defer e.marksMu.Unlock()
	for uid, known := range e.marks {
		for _, m := range known {
			if m.Session == name {
				return uid, true
			}
		}
	}
	return "", false
}

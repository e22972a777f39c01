// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"time"

	"github.com/muxlet/muxlet/controller/plan"
	"github.com/muxlet/muxlet/observe"
)

// A client that asks for attention goes on to ask until a person has had it in front of
// them for a while: whoever looked through ten sessions need not be told of them again.
// Who is in front of a pane is a part of every listing, so that nothing is asked of tmux
// for it but one look after that while, and only of a client that asks.

// focus is whether a client asks for attention, and whether a person has seen that.
type focus struct {
	// asks is since when it asks; zero when it does not.
	asks time.Time
	// front is since when somebody has it in front of them; zero when nobody has.
	front time.Time
	// seen is when somebody last had had it in front of them for long enough.
	seen time.Time
	// question is the reason of what it asked an earlier daemon, until this one has looked.
	question string
}

// unseen says whether it asks and nobody has seen that yet.
func (f focus) unseen() bool { return !f.asks.IsZero() && f.seen.Before(f.asks) }

// due is when it counts as seen if it stays in front of who is there now, by the time
// for which that takes.
func (f focus) due(after time.Duration) time.Time {
	if f.front.After(f.asks) {
		return f.front.Add(after)
	}
	return f.asks.Add(after)
}

// noteFronts takes in who has which client in front of them, and asks for a pass of each
// that asks. c.mu is not held.
func (c *Controller) noteFronts(snap *snapshot, at time.Time) {
	if snap.view.State == observe.ServerUnknown {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.noteWatchers(snap)
	for _, s := range c.sessions {
		if s.rec.Client == nil || s.telling == nil {
			continue
		}
		f := &s.present().focus
		switch {
		case !inFront(snap.panes[s.rec.UID], s.rec.Client.Pane):
			f.front = time.Time{}
		case f.front.IsZero():
			f.front = at
			if f.unseen() {
				c.queue.Add(s.name)
			}
		}
	}
}

func inFront(panes []observe.Pane, pane string) bool {
	for _, p := range panes {
		if p.PaneID == pane {
			return p.InFront > 0
		}
	}
	return false
}

// noteAsks takes in a look at what the client shows, by the last report of then, before it
// takes the place of the one before, and asks for a pass if the client has begun to ask.
// c.mu is held.
func (c *Controller) noteAsks(s *session, t *telling, sight observe.Sight, by observe.LastReport) {
	told := by
	if by == t.sightBy {
		told = observe.LastReport{}
	}
	before := t.focus.asks
	t.focus.asks = observe.AsksSince(before, t.lastSight(sight), sight, told)
	t.focus.question = ""
	if !t.focus.asks.Equal(before) {
		c.queue.Add(s.name)
		c.attentionChanged()
	}
}

// noteSeen says in a pass that a client was seen, once somebody has had it in front of
// them for long enough by what the pass has looked at; until then it asks for another
// one at that time. c.mu is held.
func (c *Controller) noteSeen(s *session, seen plan.Seen) {
	t := s.present()
	if t == nil || seen.Sight != plan.SightKnown || t.focus.front.IsZero() || !t.focus.unseen() {
		return
	}
	due := t.focus.due(c.settings().FocusAfter)
	if !seen.At.Before(due) {
		t.focus.seen = c.now()
		c.attentionChanged()
		return
	}
	now := c.Clock.Now()
	s.dueAt = due
	c.queue.AddAfter(s.name, max(due.Sub(now), time.Millisecond))
}

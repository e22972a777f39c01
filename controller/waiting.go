// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"time"

	"github.com/muxlet/muxlet/actuate"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec"
)

// The status line of the tmux server tells how many sessions wait for a person. It is told
// when that changes, and once a minute while any waits, since a daemon that was killed can
// say no more: what is shown says itself until when it holds. At rest nobody is told
// anything, and a session's pass never waits for it.

const (
	// waitingBeat is the time between two words of what has not changed, waitingHolds how
	// long one holds.
	waitingBeat  = time.Minute
	waitingHolds = 150 * time.Second
	// waitingRetry is the time until a word that did not arrive is said again.
	waitingRetry = 5 * time.Second
	// waitingEnd is how long the last word may take.
	waitingEnd = time.Second
)

// lastWord is what a tmux server was told last.
type lastWord struct {
	server  observe.Process
	waiting actuate.Waiting
}

// noteWaiting takes in what is served of a session from now on; nil when it is served no
// more. c.mu is held.
func (c *Controller) noteWaiting(s *session, o *spec.Session) {
	waits := o != nil && spec.WaitsForPerson(o)
	if waits || s.waits {
		c.tellWaiting()
	}
	s.waits = waits
}

// tellWaiting asks for a look at what the status line is to tell.
func (c *Controller) tellWaiting() {
	select {
	case c.waitingDue <- struct{}{}:
	default:
	}
}

// watchWaiting keeps the status line up to date until ctx ends.
func (c *Controller) watchWaiting(ctx context.Context) {
	if c.ShowWaitingAfter <= 0 {
		return
	}
	var last lastWord
	var beat <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			c.lastWaiting(last)
			return
		case <-c.waitingDue:
			// Several sessions may begin to wait at once.
			select {
			case <-ctx.Done():
			case <-c.Clock.After(c.ShowWaitingAfter):
			}
		case <-beat:
			last.waiting.Until = 0
		}
		var after time.Duration
		last, after = c.showWaiting(ctx, last)
		beat = nil
		if after > 0 {
			beat = c.Clock.After(after)
		}
	}
}

// showWaiting tells the tmux server what it does not know yet, and says when to speak again;
// 0 for not before something changes.
func (c *Controller) showWaiting(ctx context.Context, last lastWord) (lastWord, time.Duration) {
	c.mu.Lock()
	next := lastWord{waiting: c.waiting()}
	server, actuator := c.server.recorded, c.actuator
	running := c.server.lastState == observe.ServerRunning
	c.mu.Unlock()
	if server == nil || actuator == nil || !running {
		return lastWord{}, 0
	}
	next.server = server.Process
	same := last.server == next.server && last.waiting.Count == next.waiting.Count && last.waiting.Longest == next.waiting.Longest
	if same && (last.waiting.Until > 0 || last.waiting.Count == 0) {
		return last, c.nextBeat(last)
	}
	next.waiting.Until = c.Clock.Now().Add(waitingHolds).Unix()
	out := actuator.Do(ctx, actuate.Action{Kind: actuate.ActionShowWaiting, Server: *server, Waiting: next.waiting})
	if out.Result != actuate.ResultDone {
		c.Log.V(1).Info("Status line was not told who waits", "result", out.Result, "message", out.Message)
		return lastWord{}, waitingRetry
	}
	return next, c.nextBeat(next)
}

// nextBeat is when what was told has to be told again.
func (c *Controller) nextBeat(w lastWord) time.Duration {
	if w.waiting.Count == 0 {
		return 0
	}
	told := time.Unix(w.waiting.Until, 0).Add(-waitingHolds)
	return max(waitingBeat-c.Clock.Now().Sub(told), time.Millisecond)
}

// waiting is what there is to tell. c.mu is held.
func (c *Controller) waiting() actuate.Waiting {
	var w actuate.Waiting
	var longest *spec.Session
	for _, s := range c.sessions {
		if !s.waits || s.published == nil {
			continue
		}
		w.Count++
		if longest == nil || spec.CompareWaiting(s.published, longest) < 0 {
			longest = s.published
		}
	}
	if longest != nil {
		w.Longest = longest.Name
	}
	return w
}

// lastWaiting marks what is shown: nobody keeps it up to date from now on.
func (c *Controller) lastWaiting(last lastWord) {
	c.mu.Lock()
	server, actuator := c.server.recorded, c.actuator
	c.mu.Unlock()
	if last.waiting.Count == 0 || server == nil || server.Process != last.server {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), waitingEnd)
	defer cancel()
	last.waiting.Until = 0
	actuator.Do(ctx, actuate.Action{Kind: actuate.ActionShowWaiting, Server: *server, Waiting: last.waiting})
}

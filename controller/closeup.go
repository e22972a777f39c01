// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"time"

	"github.com/muxlet/muxlet/controller/plan"
	"github.com/muxlet/muxlet/observe"
)

const (
	// closeUpPanes is the number of panes from which on a listing of one session's
	// own is worth a call of its own.
	closeUpPanes = 64
	// closeUpDeaths at once are looked at one by one; more share a listing, which
	// shows whether most sessions have died.
	closeUpDeaths = 3
)

// lookFor returns a snapshot that will do for a pass of s.
func (c *Controller) lookFor(ctx context.Context, s *session) *snapshot {
	need := c.freshness(s)
	if snap := c.closeUp(ctx, s, need); snap != nil {
		return snap
	}
	return c.lookOn(ctx, s, need)
}

// closeUp looks at the panes of a session whose client has died, among many others
// that have not: the restart waits for nobody else's panes. All else is as the
// last snapshot has it. It is nil when a whole look is called for, above all when
// the session has no pane any more or another server answers.
func (c *Controller) closeUp(ctx context.Context, s *session, need time.Time) *snapshot {
	last, _, _ := c.eyes.latest()
	client := s.rec.Client
	if last == nil || !last.began.Before(need) || last.view.State != observe.ServerRunning || len(last.view.Listing.Panes) < closeUpPanes {
		return nil
	}
	if client == nil || s.rec.Attempt != nil || s.rec.Stop != nil || !c.eyes.fewDied(client.Process, closeUpDeaths) {
		return nil
	}
	c.mu.Lock()
	recorded, instance := c.server.recorded, c.instance
	c.mu.Unlock()
	began := c.Clock.Now()
	answer := c.Tmux.ListOf(ctx, c.Clock.Now, s.rec.UID)
	if answer.Kind != observe.AnswerListed || recorded == nil || !recorded.Same(answer.Listing.Server) {
		return nil
	}
	panes := c.arrange(observe.ServerView{State: observe.ServerRunning, Listing: answer.Listing}, instance).panes[s.rec.UID]
	if len(panes) == 0 {
		return nil
	}
	snap := *last
	snap.began, snap.confirmation = began, plan.Confirmed
	snap.view.Listing.Server = answer.Listing.Server
	snap.panes = map[string][]observe.Pane{s.rec.UID: panes}
	return &snap
}

// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"strings"
	"time"

	"github.com/muxlet/muxlet/controller/plan"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec"
)

// look returns a snapshot that began at notBefore or later.
func (c *Controller) look(ctx context.Context, notBefore time.Time) *snapshot {
	return c.eyes.at(ctx, notBefore, c.judge)
}

// judge says what an answer proves, by what is recorded of the server.
func (c *Controller) judge(a observe.Answer) snapshot {
	c.mu.Lock()
	recorded, instance := c.server.recorded, c.instance
	c.mu.Unlock()
	state := observe.Gone
	if recorded != nil {
		state = c.Processes.State(recorded.Process)
	}
	view := observe.JudgeServer(a, recorded, state, instance)
	if view.State == observe.ServerRunning && instance != "" && (view.New || recorded.StartTime == 0) {
		if err := c.recordServer(view.Listing.Server); err != nil {
			view = observe.ServerView{Reason: spec.ReasonStateUnwritable, Message: err.Error()}
		}
	}
	snap := c.arrange(view, instance)
	c.noteFronts(&snap, a.At)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.server.noneProven = c.server.noneProven && view.State != observe.ServerRunning
	snap.unproven = view.State == observe.ServerNone && !c.server.noneProven
	return snap
}

// arrange sorts the panes of a view, and compares them with the view before:
// when most sessions died in between, the snapshot needs to be confirmed.
func (c *Controller) arrange(view observe.ServerView, instance string) snapshot {
	s := snapshot{view: view, panes: map[string][]observe.Pane{}, holders: map[string]string{}, own: view.Listing.Owned, confirmation: plan.Confirmed}
	before, _, _ := c.eyes.latest()
	if view.State == observe.ServerUnknown {
		if before != nil {
			s.live = before.live
		}
		return s
	}
	s.live = map[string]bool{}
	for name, id := range view.Listing.Sessions {
		s.holders[name] = id
	}
	for _, p := range view.Listing.Panes {
		if instance == "" || p.Labels.Instance != instance || p.Labels.Role != observe.RoleClient || !oursToWrite(p.Labels) {
			continue
		}
		s.panes[p.Labels.UID] = append(s.panes[p.Labels.UID], p)
		if p.State == observe.Present {
			s.live[p.Labels.UID] = true
		}
	}
	if before != nil && c.massDeath(before.live, s.live) {
		s.confirmation = plan.Unconfirmed
	}
	return s
}

// oursToWrite says whether the labels are spelled as muxlet spells them. A pane
// whose labels somebody has edited would be refused by every action.
func oursToWrite(l observe.Labels) bool { return spelled(l.UID) && spelled(l.Attempt) }

func spelled(label string) bool {
	foreign := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '.' && r != '-'
	}
	return label != "" && !strings.ContainsFunc(label, foreign)
}

func (c *Controller) massDeath(before, after map[string]bool) bool {
	lost, settings := 0, c.settings()
	for uid := range before {
		if !after[uid] {
			lost++
		}
	}
	return lost > 0 && lost >= settings.MassDeathMin && lost*100 >= settings.MassDeathPercent*len(before)
}

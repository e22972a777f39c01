// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"slices"
	"time"

	"github.com/muxlet/muxlet/controller/plan"
	"github.com/muxlet/muxlet/controller/record"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec"
)

const (
	// lookers is how many screens are looked at at the same time. tmux answers one call
	// at a time; a second one bridges the way there and back.
	lookers = 2
	// firstLook is how long after its start a client is looked at, and the shortest time
	// between two looks at one that is not ready, or is working.
	firstLook = 250 * time.Millisecond
	// failureShows is how long after its report a failure may take to be on the screen.
	failureShows = 3 * time.Second
	// lookShare bounds how late it is noticed that a client has become ready, or that its
	// question was answered: by one part of so many of the time that it took.
	lookShare = 8
)

// looksAt says whether clients of a class show anything that is worth a look at their
// screens: one that is ready once it was executed, and asks nothing that is known,
// costs nothing.
func looksAt(class *spec.ClientClassSpec) bool {
	return class != nil && (class.Reports != "" && class.Reports != spec.ReportsNone ||
		class.Ready.Pattern != "" || class.Working.Pattern != "" || len(class.Attention) > 0 || len(class.Failures) > 0)
}

// lookAtScreens looks at the screens of clients until the queue is shut down. No worker
// waits for them, and a tmux that does not answer costs looks alone.
func (c *Controller) lookAtScreens(ctx context.Context) {
	for {
		name, shutdown := c.screensDue.Get()
		if shutdown {
			return
		}
		if ctx.Err() == nil {
			if again := c.lookAtScreen(ctx, name); again > 0 {
				c.screensDue.AddAfter(name, again)
			}
		}
		c.screensDue.Done(name)
	}
}

// subject is a client whose screen is looked at.
type subject struct {
	class    *plan.Class
	client   record.Client
	ref      observe.ConversationRef
	report   observe.LastReport
	previous observe.Sight
}

// shownBy says whether a screen is the client's.
func (s subject) shownBy(taken observe.Screen) bool {
	return !taken.Dead && taken.Attempt == s.client.Attempt && taken.ServerPID == s.client.Server.Process.PID
}

// lookAtScreen looks at the screen of a session's client once, and returns when to
// look again; 0 when a resync or a report is soon enough.
func (c *Controller) lookAtScreen(ctx context.Context, name string) (again time.Duration) {
	sub, ok := c.subjectOf(name)
	if !ok || !looksAt(sub.class.Spec) {
		return 0
	}
	taken, err := c.Tmux.Capture(ctx, sub.client.Pane, 0)
	if err == nil && !sub.shownBy(taken) {
		// Another one's, or nobody's any more: a pass will tell.
		return 0
	}
	if err != nil {
		c.Log.V(1).Info("Screen was not looked at", "session", name, "err", err.Error())
		return c.settings().FocusAfter
	}
	files := observe.Files{Activity: spec.ActivityUnknown}
	if c.Clients != nil {
		files = c.Clients.Files(sub.ref, sub.client.Process)
	}
	if files.Failure == nil {
		c.noteTurnAt(name, files.TurnAt)
	}
	return c.noteSight(name, sub, c.judgeSight(sub, taken, files))
}

func (c *Controller) judgeSight(sub subject, taken observe.Screen, files observe.Files) observe.Sight {
	// The times that clients write are those of the person's clock.
	now, settings := c.Clock.Now(), c.settings()
	if c := sub.client; c.Launched == nil && files.Activity != spec.ActivityWorking && files.ActivityAt.Before(c.StartedAt) && !files.ActivityAt.IsZero() {
		// It was adopted, and may have been as it is now for days before that.
		files.ActivityAt = c.StartedAt
	}
	shown := observe.JudgeScreen(sub.class.Spec, taken.Lines[min(taken.Visible, len(taken.Lines)):], now)
	in := observe.SightInput{
		Class: sub.class.Spec, Now: now, StartedAt: sub.client.StartedAt, WasReady: !sub.client.ReadyAt.IsZero(),
		Report: sub.report, Files: files, Shown: &shown, Previous: sub.previous,
		ReportTTL: settings.ReportTTL, FocusAfter: settings.FocusAfter,
	}
	sight := in.Timed(observe.JudgeSight(in))
	if sight.Blank = shown.Blank; sight.Blank && sub.client.ReadyAt.IsZero() {
		// That it shows nothing was seen, and ends it when it goes on for too long.
		sight.At = now
	}
	return sight
}

// subjectOf finds what is to be looked at; ok is false when there is nothing.
func (c *Controller) subjectOf(name string) (sub subject, ok bool) {
	snap, _, _ := c.eyes.latest()
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.sessions[name]
	if s == nil || s.rec.Client == nil || s.rec.Stop != nil || snap == nil || snap.view.State != observe.ServerRunning {
		return sub, false
	}
	class := c.classInForce(s)
	if class == nil {
		return sub, false
	}
	t := s.present()
	client := *s.rec.Client
	sub = subject{class: class, client: client, report: t.report, previous: t.sight, ref: observe.ConversationRef{
		Class: class.Spec, Session: s.name, ID: t.conversation(s.rec),
		Directory: client.Directory, Home: client.Home, ConfigDirectory: client.ConfigDirectory,
	}}
	return sub, true
}

// noteSight remembers what a client shows, asks for a pass when that is news, and
// returns when to look again.
func (c *Controller) noteSight(name string, sub subject, sight observe.Sight) (again time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.sessions[name]
	if s == nil || s.rec.Client == nil || s.rec.Client.Attempt != sub.client.Attempt {
		return 0
	}
	t := s.present()
	if t.report != sub.report {
		// A report came meanwhile, and another look with it.
		return firstLook
	}
	sight.Failure = sameFailure(t.sight.Failure, sight.Failure, sight.At, t.report.At)
	news := t.sight.At.IsZero() || !sameSight(t.sight, sight) || sight.Readiness == observe.Ready && s.rec.Client.ReadyAt.IsZero()
	if t.sight.Activity != sight.Activity || t.since.IsZero() {
		t.since = sight.At
		if t.report.At.After(t.since.Add(-firstLook)) {
			t.since = t.report.At
		}
	}
	before := t.sight
	c.noteAsks(s, t, sight, sub.report)
	t.sight, t.sightBy = sight, sub.report
	if t.noteClaim(s.rec, c.claimedBy(s, t, sight.Conversation), c.Clock.Now()) || news {
		c.queue.Add(name)
	}
	c.noteFailure(s, sub.class, before, sight)
	return c.nextLook(s, t)
}

// claimedBy is the conversation that the client's files name, unless it is another
// session's. c.mu is held.
func (c *Controller) claimedBy(s *session, t *telling, id string) string {
	owner := c.ownerOf(id, s)
	if owner == nil {
		return id
	}
	if t.conversation(s.rec) != id {
		c.refuseConversation(s, id, owner.name)
	}
	return ""
}

// nextLook is when a client is to be looked at again, without a report or a resync
// that asks for it. c.mu is held.
func (c *Controller) nextLook(s *session, t *telling) time.Duration {
	focus := c.settings().FocusAfter
	switch {
	case t.claimed != "":
		return claimPatience / 3
	case t.sight.Attention != nil:
		after := max(c.now().Sub(t.since)/lookShare, firstLook)
		if after >= c.settings().Resync {
			// It waits for a person since long: each resync looks anyway.
			return 0
		}
		return after
	case t.sight.Readiness != observe.Ready && s.rec.Client.ReadyAt.IsZero():
		return min(max(c.now().Sub(s.rec.Client.StartedAt)/lookShare, firstLook), focus)
	case t.sight.Activity == spec.ActivityWorking:
		return focus
	case t.report.Kind == observe.ReportFailed && c.now().Sub(t.report.At) < failureShows:
		// The hook is quicker than the screen, which alone says until when.
		return firstLook
	}
	return 0
}

// sameSight compares what a decision or a status may rest on.
func sameSight(a, b observe.Sight) bool {
	if (a.Attention != nil || b.Attention != nil) && !slices.Equal(a.Screen, b.Screen) {
		// A question may be told before it is shown.
		return false
	}
	return a.Readiness == b.Readiness && a.Activity == b.Activity && a.Blank == b.Blank && a.Conversation == b.Conversation &&
		same(a.Attention, b.Attention, func(x, y *observe.Attention) bool { return *x == *y }) &&
		same(a.Failure, b.Failure, func(x, y *observe.Failure) bool { return x.Reason == y.Reason && x.Until.Equal(y.Until) })
}

// sameFailure keeps the time of a failure that is still on the screen, where it was
// found again now, unless a report tells that there was another turn: a new failure is
// told from it by its time.
func sameFailure(before, found *observe.Failure, now, reported time.Time) *observe.Failure {
	if before == nil || found == nil || before.Reason != found.Reason || !found.At.Equal(now) {
		return found
	}
	if reported.After(before.At) {
		return found
	}
	kept := *found
	kept.At = before.At
	return &kept
}

// lookAfter asks for a look at the screen after a report: at once when the report may
// have changed what the client shows, else not more often than need be. c.mu is held.
func (c *Controller) lookAfter(s *session, r observe.Report) {
	after := time.Duration(0)
	switch r.Kind {
	case observe.ReportWorking, observe.ReportOther:
		if t := s.telling; t != nil {
			after = max(firstLook-c.now().Sub(t.sight.At), 0)
		}
	case observe.ReportDone, observe.ReportFailed:
		s.evidenceDue = true
		if r.Kind == observe.ReportDone {
			c.noteTurn(s, r.At)
		}
	case observe.ReportStarted, observe.ReportPrompted, observe.ReportAsked, observe.ReportEnded:
	}
	c.screensDue.AddAfter(s.name, after)
}

// lookAtClients asks for one look at each client whose screen is worth it: at a
// resync, whether its session rests or not.
func (c *Controller) lookAtClients() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, s := range c.sessions {
		if s.rec.Client == nil {
			continue
		}
		if class := c.classInForce(s); class != nil && looksAt(class.Spec) {
			c.screensDue.Add(name)
		}
	}
}

// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/muxlet/muxlet/controller/record"
	"github.com/muxlet/muxlet/controller/turn"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec"
)

// judgeUnderWay brings a turn that was handed over, or may have been, to its end when
// its client has ended, or when nothing tells of it for too long.
func (p *pass) judgeUnderWay(t *turn.Turn) {
	if t.Phase != turn.Delivering && t.Phase != turn.Delivered {
		return
	}
	if c := p.rec.Client; c != nil && c.Attempt == t.Attempt && t.Method == spec.SubmitArgument && t.PastedAt.IsZero() {
		p.executedWith(t, c)
	}
	switch {
	case p.plan.Fate == FateArchive || p.gone(t):
		p.endWithClient(t)
	case t.Phase == turn.Delivering:
		p.closeWindow(t)
	case t.Phase == turn.Delivered:
		p.closeSilent(t)
	}
}

// executedWith: the client that was to begin with t was executed.
func (p *pass) executedWith(t *turn.Turn, c *record.Client) {
	t.PastedAt = c.StartedAt
	if s, known := p.submitOfClient(c); known && s.Confirm == spec.ConfirmScreen {
		*t = t.Deliver(later(c.StartedAt, t.HandedAt), "its client was executed with it")
		p.complete(t)
	}
}

// gone says whether the client to which t was handed over is proven to have ended. A
// record that is behind, or was lost, is no proof while a client of that attempt runs.
func (p *pass) gone(t *turn.Turn) bool {
	c, a := p.rec.Client, p.rec.Attempt
	switch {
	case p.Seen.Sight != SightKnown, c != nil && c.Attempt == t.Attempt, a != nil && a.ID == t.Attempt:
		return false
	}
	return !slices.ContainsFunc(p.Seen.Clients, func(m observe.MarkedProcess) bool {
		dead := p.Record.Client != nil && p.Record.Client.Process == m.Process && p.Seen.Client == observe.Gone
		return m.Attempt == t.Attempt && !dead
	})
}

// endWithClient ends t with its client. A prompt that the client may have is in its
// history, or in its queue: to send it again could be heard twice.
func (p *pass) endWithClient(t *turn.Turn) {
	reason, why := p.endOfTurn()
	switch {
	case t.Phase == turn.Delivered:
		*t = t.Fail(p.Now, reason, why+" before it had ended the turn: it has the prompt in its history and may have done part of it", false)
	case t.Method == spec.SubmitArgument && p.neverExecuted(t):
		*t = t.Return(p.Now, spec.ReasonStarting, "the client that was to begin with it was not started; it is tried again")
	case p.takeBack(t):
	case t.Method == spec.SubmitPaste && t.Submits == 0:
		*t = t.Fail(p.Now, reason, why+" before the turn was submitted: send it again", p.plan.Fate != FateArchive && reason != spec.ReasonRemoved)
	default:
		*t = t.GiveUp(p.Now, reason, why+" while the turn was handed over, and may have it in its history: look there before it is sent again")
	}
}

// neverExecuted: the attempt was given up, and its number was not spent.
func (p *pass) neverExecuted(t *turn.Turn) bool {
	return p.rec.LastFailed == t.Attempt && p.rec.Incarnation < t.Incarnation
}

// endOfTurn is why the client has ended, as far as it ended by a person's word.
func (p *pass) endOfTurn() (reason, why string) {
	reason = p.unwanted()
	if s := p.Record.Stop; reason == "" && s != nil && p.Record.Client != nil && s.Process == p.Record.Client.Process {
		reason = stoppedFor[s.Reason]
	}
	if l := p.rec.Latch; reason == "" && l != nil && l.Reason == spec.ReasonTerminated {
		reason = spec.ReasonTerminated
	}
	switch reason {
	case spec.ReasonRemoved:
		return reason, "the session was removed"
	case spec.ReasonSuspended:
		return reason, "the session was suspended"
	case spec.ReasonTerminated:
		return reason, "the client was terminated"
	}
	return spec.ReasonClientDied, "the client ended"
}

var stoppedFor = map[record.StopReason]string{
	record.StopRemoved: spec.ReasonRemoved, record.StopSuspended: spec.ReasonSuspended, record.StopTerminated: spec.ReasonTerminated,
}

// closeWindow gives up what nothing has confirmed in time.
func (p *pass) closeWindow(t *turn.Turn) {
	c := p.rec.Client
	if c == nil || c.Attempt != t.Attempt {
		starts := p.Seen.Sight == SightKnown && p.rec.Attempt != nil && p.rec.Attempt.ID == t.Attempt
		if !starts && p.Now.Sub(later(t.HandedAt, p.Started)) >= staleWindow {
			*t = t.GiveUp(p.Now, spec.ReasonNotConfirmed, "what became of its client is not known since it was handed over: attach and see whether the client has it, before it is sent again")
		}
		return
	}
	if age, over := p.windowOf(t, c); over {
		*t = t.GiveUp(p.Now, p.unconfirmed(t), unconfirmedSentence(t, p.unconfirmed(t), age))
	}
}

// windowOf is how long nothing has confirmed t, and whether that is too long.
func (p *pass) windowOf(t *turn.Turn, c *record.Client) (age time.Duration, over bool) {
	s, known := p.submitOfClient(c)
	window, since := cmp.Or(p.Policy.Confirm, confirmWindow), later(t.HandedAt, t.PastedAt, t.SubmittedAt, p.Started)
	switch {
	case t.Method == spec.SubmitArgument && c.ReadyAt.IsZero() && known && p.watched(c):
		window += p.readyTimeout()
	case t.Method == spec.SubmitArgument:
		since = later(since, c.ReadyAt)
	case known && s.Confirm == spec.ConfirmScreen && t.Submits > 0:
		window = screenWindow
	}
	if known && s.queues() && p.sees(t) {
		// It is in the client's queue, and is taken once that has ended what it works on.
		since = later(since, p.Sight.WorkingAt)
	}
	age = p.Now.Sub(since)
	return age, age >= window
}

// unconfirmed is what a turn that nothing confirms is taken for.
func (p *pass) unconfirmed(t *turn.Turn) string {
	switch {
	case t.Method == spec.SubmitPaste && !t.PastedAt.IsZero() && (t.Submits == 0 || p.Hand.Composing == observe.ComposingPrompt):
		return spec.ReasonNotSubmitted
	case t.Method != spec.SubmitArgument && t.PastedAt.IsZero() && !p.acted(t):
		return spec.ReasonInterrupted
	}
	return spec.ReasonNotConfirmed
}

func unconfirmedSentence(t *turn.Turn, reason string, age time.Duration) string {
	how := "it was handed over and nothing has confirmed that"
	switch reason {
	case spec.ReasonNotSubmitted:
		how = fmt.Sprintf("it stands in the client's input line and was not submitted by %d keys", t.Submits)
		if t.Submits == 0 {
			how = "it was pasted into the client's input line and not submitted, since something else stood there, too, or it was not to be seen"
		}
	case spec.ReasonInterrupted:
		how = "the daemon ended, or tmux did not answer, while it was handed over, and the client has not told of it"
	}
	return fmt.Sprintf("%s for %s: attach and see whether the client has it, before it is sent again", how, age.Round(time.Second))
}

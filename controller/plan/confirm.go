// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"time"

	"github.com/muxlet/muxlet/controller/turn"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec"
)

// confirm looks whether the client itself has told that it has t.
func (p *pass) confirm(t *turn.Turn) {
	if t.Phase != turn.Delivering {
		return
	}
	if at := p.prompted(t); !at.IsZero() {
		*t = t.Deliver(at, "the client has told that it was submitted")
		return
	}
	if at := p.filed(t); !at.IsZero() {
		*t = t.Deliver(at, "the client's own files tell that it works on it")
	}
}

// prompted is when the client told that t was submitted; zero when it did not. One that
// was told without what it was may be a person's, unless the prompt is known to have
// reached the client; or it comes from the client's own queue, where others may stand
// before t.
func (p *pass) prompted(t *turn.Turn) time.Time {
	if p.Told.Attempt != t.Attempt {
		return time.Time{}
	}
	reached := t.Method == spec.SubmitArgument || t.Method == spec.SubmitPaste && !t.PastedAt.IsZero()
	for _, told := range p.Told.Prompted {
		switch {
		case told.At.Before(t.HandedAt):
		case told.Digest == t.Digest, told.Digest == "" && reached:
			return told.At
		}
	}
	return time.Time{}
}

// filed is when the client began a turn, or has ended one, by its own files; zero when
// they do not tell. Before the submit key that was not t. Of a client that queues turns
// they do not tell which it was: another may have stood in its queue before t.
func (p *pass) filed(t *turn.Turn) time.Time {
	if !p.sees(t) || t.Method == spec.SubmitPaste && t.Submits == 0 {
		return time.Time{}
	}
	s, known := p.submitOfClient(p.rec.Client)
	switch {
	case t.Method == spec.SubmitQueue, known && s.queues():
	case !p.Sight.WorkingSince.IsZero() && !p.Sight.WorkingSince.Before(t.HandedAt):
		return p.Sight.WorkingSince
	case known && t.Method == spec.SubmitPaste && !p.Sight.TurnAt.Before(t.SubmittedAt):
		return t.SubmittedAt
	}
	return time.Time{}
}

// complete looks whether the client, its files or its screen tell that t has ended. What
// nobody tells is judged once it is known whether the client lives.
func (p *pass) complete(t *turn.Turn) {
	if t.Phase != turn.Delivered {
		return
	}
	since := later(t.DeliveredAt, p.prompted(t))
	if s, known := p.submitOfClient(p.rec.Client); known && s.queues() && p.prompted(t).IsZero() {
		// What has ended may be what the client worked on when it was given t.
		return
	}
	if !p.completeByReport(t, since) && p.sees(t) {
		p.completeByFiles(t, since)
	}
}

// completeByReport: the first end that was told after the delivery is t's.
func (p *pass) completeByReport(t *turn.Turn, since time.Time) bool {
	told := p.Told
	if told.Attempt != t.Attempt {
		return false
	}
	done, failed := !told.Done.Before(since), !told.Failed.Before(since)
	switch {
	case failed && (!done || told.Failed.Before(told.Done)):
		reason, retry := observe.FailureOf(told.Failure)
		*t = t.Fail(told.Failed, reason, failureSentence(reason), retry == spec.RetryAgain)
	case done:
		*t = t.Complete(told.Done)
	default:
		return false
	}
	return true
}

func failureSentence(reason string) string {
	return fmt.Sprintf("the client has told that the turn failed (%s): its screen says more", reason)
}

// completeByFiles: the client's own files, or its screen, tell how a turn ended.
func (p *pass) completeByFiles(t *turn.Turn, since time.Time) {
	f := p.Sight.Failure
	switch {
	case f != nil && !f.At.Before(since) && !p.busy(t):
		*t = t.Fail(p.Now, f.Reason, failureSentence(f.Reason), f.Retry == spec.RetryAgain)
	case !p.Sight.TurnAt.Before(since):
		*t = t.Complete(p.Sight.TurnAt)
	}
}

// closeSilent ends a turn of which the client does not tell how it ends. Its client is
// not known to have ended: that would be the end of the turn.
func (p *pass) closeSilent(t *turn.Turn) {
	s, known := p.submitOfClient(p.rec.Client)
	switch {
	case p.rec.Client == nil || p.rec.Client.Attempt != t.Attempt:
		if p.Now.Sub(later(t.DeliveredAt, p.Started)) >= staleWindow {
			*t = t.Unreported(p.Now, "what became of its client is not known")
		}
	case p.Seen.Sight == SightKnown && p.Seen.Client == observe.Gone:
	case known && !s.reports && !s.working:
		*t = t.Unreported(p.Now, "clients of its class do not tell how a turn ends")
	case known && !s.reports:
		p.closeByScreen(t)
	default:
		p.closeBySilence(t)
	}
}

// closeByScreen: the screen is all that tells, by what it shows while a turn is worked
// on.
func (p *pass) closeByScreen(t *turn.Turn) {
	worked := p.sees(t) && !p.Sight.WorkingAt.Before(t.HandedAt)
	switch {
	case worked && !p.busy(t) && p.Sight.At.After(p.Sight.WorkingAt):
		if p.Now.Sub(p.Sight.WorkingAt) >= settledWorking {
			*t = t.Complete(p.Now)
		}
	case !worked && !p.busy(t) && p.Now.Sub(later(t.DeliveredAt, p.Started)) >= idleWindow:
		*t = t.Unreported(p.Now, "the client was not seen to work on it")
	default:
		p.closeBySilence(t)
	}
}

// closeBySilence: a client that has stopped without a word has ended the turn, but
// how is not known. One that works, or asks, goes on for as long as it likes.
func (p *pass) closeBySilence(t *turn.Turn) {
	window, since := muteWindow, later(t.DeliveredAt, p.Started)
	switch {
	case !p.sees(t) || p.Sight.At.Before(t.DeliveredAt):
	case p.busy(t):
		window, since = staleWindow, later(p.Sight.At, since)
	case p.Sight.Activity == spec.ActivityIdle:
		window, since = idleWindow, later(p.Sight.Since, since)
	default:
		since = later(p.Sight.Since, since)
	}
	if p.Now.Sub(since) >= window {
		*t = t.Unreported(p.Now, "the client has stopped and has not told how it ended")
	}
}

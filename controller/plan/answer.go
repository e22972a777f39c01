// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"strings"
	"time"

	"github.com/muxlet/muxlet/controller/turn"
	"github.com/muxlet/muxlet/spec"
)

// Expire fails a turn that is pending at its deadline; waiting is why it has waited.
// expired is false when it goes on.
func Expire(t turn.Turn, waiting Verdict, now time.Time) (out turn.Turn, expired bool) {
	if t.Phase != turn.Pending || t.Deadline.IsZero() || now.Before(t.Deadline) {
		return t, false
	}
	why := ""
	if waiting.Reason != "" {
		why = fmt.Sprintf(" while it waited (%s: %s)", waiting.Reason, sentence(waiting.Message))
	}
	return t.Fail(now, spec.ReasonDeadlineExceeded, fmt.Sprintf("its deadline passed at %s%s, so that it is never delivered; %s",
		t.Deadline.Format(time.RFC3339), why, waitedFor(t, waiting)), true), true
}

// sentence is a message as a part of another one.
func sentence(message string) string { return strings.TrimRight(message, ". ") }

// questions are those that a person answers in the client.
var questions = map[string]bool{
	spec.ReasonTrustRequired: true, spec.ReasonLoginRequired: true, spec.ReasonPermissionRequired: true, spec.ReasonHookTrustRequired: true,
	spec.ReasonUpdateOffered: true, spec.ReasonChoiceRequired: true, spec.ReasonQuestion: true,
}

// waitedFor is what a person can do about what t has waited for.
func waitedFor(t turn.Turn, waiting Verdict) string {
	switch {
	case questions[waiting.Reason]:
		return fmt.Sprintf("answer that with `muxlet attach %s`, and send it again", t.Session)
	case waiting.Reason == spec.ReasonClientWorking, waiting.Reason == spec.ReasonQueued:
		return "send it again with a longer --timeout, or once the client is idle"
	}
	return "send it again, with more time if need be"
}

// Unavailable fails a turn that is pending while tmux does not answer; message says what
// tmux does instead.
func Unavailable(t turn.Turn, message string, now time.Time) turn.Turn {
	if t.Phase != turn.Pending {
		return t
	}
	return t.Fail(now, spec.ReasonTmuxUnavailable, fmt.Sprintf("tmux could not be asked: %s; send it again once `muxlet get` shows the session as anything but Unknown", sentence(message)), true)
}

// refuseUnwanted fails a turn that is pending when a person has ended the session, or
// has terminated its client after the turn was sent.
func (p *pass) refuseUnwanted(t *turn.Turn) {
	if t.Phase != turn.Pending {
		return
	}
	switch p.unwanted() {
	case spec.ReasonRemoved:
		*t = t.Fail(p.Now, spec.ReasonRemoved, "the session was removed", false)
	case spec.ReasonSuspended:
		*t = t.Fail(p.Now, spec.ReasonSuspended, fmt.Sprintf("the session was suspended; `muxlet resume %s`, then send it again", p.rec.Name), true)
	case spec.ReasonTerminated:
		if !t.CreatedAt.After(p.rec.Intent.At) {
			*t = t.Fail(p.Now, spec.ReasonTerminated, "the client was terminated; sent again it starts another", true)
		}
	}
}

// stalling are the reasons for which a turn waits for a person or for the world: it is
// answered at once.
var stalling = map[string]bool{
	spec.ReasonWorkspaceMissing: true, spec.ReasonWorkspaceNotDirectory: true, spec.ReasonWorkspaceInaccessible: true,
	spec.ReasonCommandNotFound: true, spec.ReasonCommandNotExecutable: true,
	spec.ReasonEnvFileMissing: true, spec.ReasonEnvFileUnreadable: true, spec.ReasonEnvFileInvalid: true,
	spec.ReasonNameConflict: true, spec.ReasonDuplicateName: true, spec.ReasonDuplicateClient: true,
	spec.ReasonInvalid: true, spec.ReasonClassNotFound: true, spec.ReasonStateUnwritable: true,
	spec.ReasonRecordTooNew: true, spec.ReasonRecordQuarantined: true,
	spec.ReasonConversationMissing: true, spec.ReasonConversationElsewhere: true,
	spec.ReasonClientIgnoresKill: true, spec.ReasonResourcesUnsupported: true,
}

// answer fails a turn that is pending when it is known that it cannot be handed over
// before its deadline, or not without a person. The sender learns why, at once. One that
// was returned in this pass, after its client had ended, is judged in the next.
func (p *pass) answer(t *turn.Turn, returned bool) {
	v := p.plan.Verdict
	p.refuseUnwanted(t)
	// One that was taken back may be late by now.
	*t, _ = Expire(*t, Verdict{Reason: t.Delivered.Reason, Message: t.Delivered.Message}, p.Now)
	if t.Phase != turn.Pending {
		return
	}
	if returned {
		// It asked for nothing when the rules decided, and does from now on.
		p.again(soon)
		return
	}
	late := !p.plan.NextAttempt.IsZero() && !t.Deadline.IsZero() && p.plan.NextAttempt.After(t.Deadline)
	switch {
	case p.Seen.Sight != SightKnown:
		p.answerUnknown(t, v)
	case v.Rule == "Dormant":
		*t = t.Fail(p.Now, spec.ReasonClientDied, "the client of its conversation has ended before it could take it; the next conversation begins with it", false)
	case v.Rule == "Latch", stalling[v.Reason], v.Rule == "Hold" && p.Hold.Until.IsZero():
		p.refuseTurn(t, v, "")
	case late:
		p.refuseTurn(t, v, fmt.Sprintf(", at %s, after the turn's deadline", p.plan.NextAttempt.Format(time.RFC3339)))
	case v.Reason == spec.ReasonTmuxServerFailed && !t.Initial && p.Now.Sub(t.CreatedAt) >= unknownPatience:
		*t = Unavailable(*t, v.Message, p.Now)
	}
}

func (p *pass) refuseTurn(t *turn.Turn, v Verdict, when string) {
	*t = t.Fail(p.Now, v.Reason, fmt.Sprintf("%s%s; send it again when that is over", sentence(v.Message), when), true)
}

// answerUnknown: a sender is not kept waiting for a tmux that does not answer. What
// waits for its client anyway goes on.
func (p *pass) answerUnknown(t *turn.Turn, v Verdict) {
	if t.Initial {
		return
	}
	waited := min(p.Seen.UnknownFor, p.Now.Sub(t.CreatedAt))
	if waited >= unknownPatience || p.Seen.UnknownFor > 0 && p.Seen.UnknownFor >= p.Policy.UnknownGrace {
		*t = Unavailable(*t, v.Message, p.Now)
	}
}

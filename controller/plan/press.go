// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"

	"github.com/muxlet/muxlet/actuate"
	"github.com/muxlet/muxlet/controller/record"
	"github.com/muxlet/muxlet/controller/turn"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec"
)

// acted says whether this daemon has begun the hand-over of t: then it knows what came
// of it. What an earlier one has begun may have happened or not.
func (p *pass) acted(t *turn.Turn) bool { return p.HandOver.Turn == t.Name }

// interrupted says whether t was handed over by an earlier daemon, or by an act of which
// nobody knows what came, and this one has not found it in the input line since.
func (p *pass) interrupted(t *turn.Turn) bool {
	at := later(t.PastedAt, t.SubmittedAt)
	return !p.acted(t) && (at.IsZero() || at.Before(p.Started))
}

// carryOn goes on with a hand-over that was begun.
func (p *pass) carryOn(t *turn.Turn, c *record.Client) bool {
	s, known := p.submitOfClient(c)
	switch {
	case t.Method == spec.SubmitArgument, !known:
		return p.tell(t, c, spec.ReasonDelivering, "waiting for its client to take it", pollTurn)
	case p.takeBack(t):
		again := soon
		if p.HandOver.Moved == 0 || p.HandOver.Moved > movedPatience {
			again = pollTurn
		}
		return p.tell(t, c, t.Delivered.Reason, t.Delivered.Message, again)
	case s.Confirm == spec.ConfirmScreen && p.interrupted(t):
		return p.takeUp(t, c, s)
	case t.PastedAt.IsZero() && p.acted(t) && !p.HandOver.DoneAt.Before(t.HandedAt):
		t.PastedAt = p.HandOver.DoneAt
	}
	switch {
	case t.Method == spec.SubmitQueue:
		return p.tell(t, c, spec.ReasonDelivering, "waiting for the client to take it from its queue", pollTurn)
	case t.PastedAt.IsZero():
		return p.findPasted(t, c)
	case t.Submits == 0:
		return p.submitFirst(t, c, s)
	}
	return p.submitAgain(t, c, s)
}

// takeUp goes on with a hand-over that was interrupted, to a client of which the screen
// alone tells. Its pane says what was done; where the prompt still stands in the input
// line nobody has submitted it. Of anything else nobody will ever know.
func (p *pass) takeUp(t *turn.Turn, c *record.Client, s submit) bool {
	if t.Method == spec.SubmitPaste && p.Hand.At.IsZero() {
		p.wantsHand = true
		return p.tell(t, c, spec.ReasonDelivering, "looking what became of it", pollSlow)
	}
	keys, pasted := observe.KeysAfter(p.Hand.Step, t.Name)
	switch {
	case t.Method != spec.SubmitPaste:
	case pasted && t.Submits > 0 && keys >= t.Submits:
		t.PastedAt, t.SubmittedAt = p.Now, p.Now
		return p.tell(t, c, spec.ReasonDelivering, "it was submitted; waiting for the client to take it", soon)
	case pasted, s.composes() && p.Hand.Composing == observe.ComposingPrompt:
		t.PastedAt = p.Now
		return p.tell(t, c, spec.ReasonDelivering, "it was pasted, and not submitted", soon)
	}
	*t = t.GiveUp(p.Now, spec.ReasonInterrupted, "the daemon ended, or tmux did not answer, while it was handed over: attach and see whether the client has it, before it is sent again")
	return p.say(p.liveReason(c), fmt.Sprintf("incarnation %d runs as pid %d; turn %s was interrupted", c.Incarnation, c.Process.PID, t.Name), soon)
}

// takeBack: it is proven that nothing of t was handed over.
func (p *pass) takeBack(t *turn.Turn) bool {
	h := p.HandOver
	if t.Method == spec.SubmitArgument || !t.PastedAt.IsZero() || !p.acted(t) || !h.Nothing || !h.DoneAt.IsZero() {
		return false
	}
	reason, message := h.Reason, h.Message
	if reason == "" {
		reason = spec.ReasonPending
	}
	if message == "" {
		message = "nothing of it was handed over; it is tried again"
	}
	if reason == spec.ReasonPromptLost {
		*t = t.Fail(p.Now, reason, message, true)
		return true
	}
	*t = t.Return(p.Now, reason, message)
	return true
}

// findPasted: whether the prompt was pasted is not known. Where it stands in the input
// line it was; anything else proves nothing, and only the client itself can tell.
func (p *pass) findPasted(t *turn.Turn, c *record.Client) bool {
	switch {
	case p.Hand.At.IsZero():
		p.wantsHand = true
	case p.pasted(t), p.Hand.Composing == observe.ComposingPrompt && p.Hand.Attention == nil:
		t.PastedAt = p.Now
		return p.tell(t, c, spec.ReasonDelivering, "it stands in the client's input line", soon)
	}
	return p.tell(t, c, spec.ReasonDelivering, "whether the client has it is not known; waiting for it to tell", pollTurn)
}

// pasted says whether the pane proves that t was pasted.
func (p *pass) pasted(t *turn.Turn) bool {
	_, pasted := observe.KeysAfter(p.Hand.Step, t.Name)
	return pasted
}

// submitFirst presses the key once the client has had its time to take the paste in.
func (p *pass) submitFirst(t *turn.Turn, c *record.Client, s submit) bool {
	settled := t.PastedAt.Add(s.settle)
	if left := settled.Sub(p.Now); left > 0 {
		return p.tell(t, c, spec.ReasonDelivering, "it stands in the client's input line", left)
	}
	if p.Hand.At.Before(settled) {
		p.wantsHand = true
		return p.tell(t, c, spec.ReasonDelivering, "looking whether it stands in the client's input line", pollReceipt)
	}
	if !p.unsubmitted(s, s.composes()) {
		return p.tell(t, c, spec.ReasonDelivering, "waiting until its client can take it", pollSlow)
	}
	t.Before = p.Hand.Digest
	return p.press(t, c, s)
}

// unsubmitted says whether the screen shows t where the submit key belongs to it.
// Without a proof of that a class that shows its input line gets no key: on a dialog it
// would be an answer.
func (p *pass) unsubmitted(s submit, proof bool) bool {
	h := p.Hand
	if h.Attention != nil || h.Working && !s.queues() {
		return false
	}
	return h.Composing == observe.ComposingPrompt || !proof && h.Composing == observe.ComposingUnknown
}

// press asks for the submit key. One that is proven not to have been typed is asked for
// again in its place.
func (p *pass) press(t *turn.Turn, c *record.Client, s submit) bool {
	pane, ok := p.paneOf(liveClient{process: c.Process, panePID: c.PanePID})
	if !ok || pane.Live != observe.Running || pane.Taken() {
		return p.tell(t, c, spec.ReasonDelivering, "its client is not in its pane", pollTurn)
	}
	if _, over := p.windowOf(t, c); over {
		return p.tell(t, c, spec.ReasonDelivering, "it could not be submitted in time", soon)
	}
	if !p.untyped(t) {
		t.Submits, t.SubmittedAt = t.Submits+1, p.Now
	}
	p.plan.Action = actuate.Action{Kind: actuate.ActionSubmit, Server: p.Seen.Server, Pane: pane.Pane, Keys: []string{s.Key}, Turn: p.act(t)}
	return p.tell(t, c, spec.ReasonDelivering, "it is submitted", soon)
}

// untyped says whether it is proven that the last submit key was not typed: by what came
// of the act or, for one of an earlier daemon, by the pane.
func (p *pass) untyped(t *turn.Turn) bool {
	if t.Submits == 0 {
		return false
	}
	keys, pasted := observe.KeysAfter(p.Hand.Step, t.Name)
	return p.acted(t) && p.HandOver.Untyped || pasted && keys < t.Submits && t.SubmittedAt.Before(p.Started)
}

// submitAgain waits for the client to show that it has taken the turn, and repeats the
// key where it was swallowed: some clients drop one that follows a paste.
func (p *pass) submitAgain(t *turn.Turn, c *record.Client, s submit) bool {
	age := p.Now.Sub(t.SubmittedAt)
	if !p.Hand.At.After(t.SubmittedAt) {
		p.wantsHand = true
		return p.tell(t, c, spec.ReasonDelivering, "it was submitted; waiting for the client to take it", pollReceipt)
	}
	if p.untyped(t) {
		if p.unsubmitted(s, s.composes()) {
			return p.press(t, c, s)
		}
		return p.tell(t, c, spec.ReasonDelivering, "waiting until its client can take it", pollSlow)
	}
	if p.shownTaken(t, s) {
		*t = t.Deliver(p.Now, "the client's screen shows that it has taken it")
		p.complete(t)
		return p.tell(t, c, spec.ReasonDelivered, "the client has it", soon)
	}
	if age >= submitPatience && t.Submits < maxSubmits && p.unsubmitted(s, true) {
		return p.press(t, c, s)
	}
	return p.tell(t, c, spec.ReasonDelivering, "it was submitted; waiting for the client to take it", poll(age))
}

// shownTaken says whether the screen proves that the client has taken t.
func (p *pass) shownTaken(t *turn.Turn, s submit) bool {
	h := p.Hand
	if h.Composing == observe.ComposingPrompt {
		return false
	}
	if s.Confirm == spec.ConfirmScreen {
		return h.Digest != t.Before
	}
	works := h.Working || p.sees(t) && p.Sight.Activity == spec.ActivityWorking && !p.Sight.WorkingAt.Before(t.SubmittedAt)
	left := h.Command && h.Composing == observe.ComposingNothing && h.Attention == nil
	return s.composes() && h.Composing != observe.ComposingUnknown && (works || left)
}

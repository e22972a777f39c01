// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"time"

	"github.com/muxlet/muxlet/actuate"
	"github.com/muxlet/muxlet/controller/record"
	"github.com/muxlet/muxlet/controller/turn"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec"
)

// WantsHand says whether a decision on in needs a look at the client's screen for the
// first of in.Turns. Everything of in but Hand must be there.
func WantsHand(in Input) bool {
	if len(in.Turns) == 0 {
		return false
	}
	in.Hand = observe.Hand{}
	return compute(in).wantsHand
}

// handOver brings the first turn one step closer to its client, which is ready. Each
// step is on disk before it is done: a prompt that may have reached the client is never
// pasted again, since it could be heard twice.
func (p *pass) handOver() bool {
	t, c := p.first(), p.rec.Client
	if t == nil || c == nil {
		return false
	}
	switch t.Phase {
	case turn.Pending:
		return p.offer(t, c)
	case turn.Delivering:
		if t.Attempt == c.Attempt {
			return p.carryOn(t, c)
		}
	case turn.Delivered, turn.Over:
	}
	return false
}

// tell says what t waits for. The session itself is what it is.
func (p *pass) tell(t *turn.Turn, c *record.Client, reason, message string, again time.Duration) bool {
	p.waiting, p.waitingOf = Verdict{Rule: "Turn", Reason: reason, Message: message}, t.Name
	p.say(p.liveReason(c), fmt.Sprintf("incarnation %d runs as pid %d; turn %s: %s", c.Incarnation, c.Process.PID, t.Name, message), again)
	p.again(p.pollPending(c))
	return true
}

// offer begins the hand-over of a turn, unless something is in its way: a client that
// works, or a person's own words in the input line.
func (p *pass) offer(t *turn.Turn, c *record.Client) bool {
	s, known := p.submitOfClient(c)
	switch {
	case p.plan.Initial != nil:
		return p.tell(t, c, spec.ReasonQueued, "the initial prompt comes first", soon)
	case !known:
		return p.tell(t, c, spec.ReasonUpdatePending, fmt.Sprintf("the client is of a class that is not in force any more: `muxlet restart %s` replaces it", p.rec.Name), pollTurn)
	case t.Name != p.Turns[0].Name:
		// What was looked at is about the turn before it.
		return p.tell(t, c, spec.ReasonPending, "it is next", soon)
	}
	method := p.method(s)
	if reason, why := p.occupied(c, s, method); reason != "" {
		return p.tell(t, c, reason, why, pollTurn)
	}
	if method == spec.SubmitArgument {
		p.waiting = Verdict{Rule: "Turn", Reason: spec.ReasonStarting, Message: "its client takes a turn at its start only, and is started again"}
		return p.beginStop(record.StopForTurn, c.Process)
	}
	pane, ok := p.paneOf(liveClient{process: c.Process, panePID: c.PanePID})
	if !ok || pane.Live != observe.Running || pane.Taken() {
		return p.tell(t, c, spec.ReasonNotReady, "its client is not in its pane", pollTurn)
	}
	if method == spec.SubmitQueue {
		return p.queue(t, c, s)
	}
	if p.Hand.At.IsZero() {
		p.wantsHand = true
		return p.tell(t, c, spec.ReasonPending, "looking at its client's screen", pollSlow)
	}
	if reason, why := p.unwelcome(s); reason != "" {
		return p.tell(t, c, reason, why, pollTurn)
	}
	p.begin(t, c, method)
	p.plan.Action = actuate.Action{Kind: actuate.ActionPaste, Server: p.Seen.Server, Pane: pane.Pane, Turn: p.act(t)}
	p.plan.Action.Turn.Continues = s.Composer.Continues
	return p.tell(t, c, spec.ReasonDelivering, "it is pasted", soon)
}

func (p *pass) begin(t *turn.Turn, c *record.Client, method spec.SubmitMethod) {
	conversation := ""
	if p.rec.Conversation != nil {
		conversation = p.rec.Conversation.ID
	}
	*t = t.Begin(p.Now, method, c.Incarnation, c.Attempt, conversation)
}

// act is what an action needs of a turn. A screen that is redrawn all the time moves the
// cursor between each look and the act: that must not starve a turn.
func (p *pass) act(t *turn.Turn) actuate.Turn {
	a := actuate.Turn{Name: t.Name, PromptFile: p.PromptFile, Step: observe.TurnStep(t.Name, t.Submits)}
	if !p.acted(t) || p.HandOver.Moved < movedPatience {
		cursor := p.Hand.Cursor
		a.Cursor = &cursor
	}
	return a
}

// occupied is why a client cannot be given a turn now, by what was seen before.
func (p *pass) occupied(c *record.Client, s submit, method spec.SubmitMethod) (reason, why string) {
	activity := spec.ActivityUnknown
	if p.sighted(c) && p.Sight.Activity != "" {
		activity = p.Sight.Activity
	}
	switch {
	case method == spec.SubmitArgument && activity == spec.ActivityUnknown:
		return spec.ReasonClientWorking, fmt.Sprintf("the client would have to be ended for it, and whether it works is not known: `muxlet restart %s` ends it", p.rec.Name)
	case activity == spec.ActivityWorking && (method == spec.SubmitArgument || !s.queues()):
		return spec.ReasonClientWorking, "the client works on something"
	}
	return "", ""
}

// unwelcome is why nothing may be pasted by what the screen shows now. A class that says
// where its input line is shows it whenever a turn can be taken: without it something
// else has the keyboard.
func (p *pass) unwelcome(s submit) (reason, why string) {
	h := p.Hand
	switch {
	case h.Attention != nil:
		return h.Attention.Reason, h.Attention.Message
	case h.Working && !s.queues():
		return spec.ReasonClientWorking, "the client works on something"
	}
	switch h.Composing {
	case observe.ComposingNothing:
	case observe.ComposingUnknown:
		if s.composes() {
			return spec.ReasonComposerInUse, "the client's input line is not on the screen: attach and see what it shows"
		}
	case observe.ComposingPrompt, observe.ComposingOther:
		return spec.ReasonComposerInUse, "something that was not submitted stands in the client's input line: attach, and submit or delete it"
	}
	return "", ""
}

// queue gives the prompt to the client's own queue.
func (p *pass) queue(t *turn.Turn, c *record.Client, s submit) bool {
	p.begin(t, c, spec.SubmitQueue)
	variables := map[string]string{
		spec.VarConversationID: p.rec.Conversation.ID, spec.VarSessionName: p.rec.Name, spec.VarSessionUID: p.rec.UID, spec.VarWorkspace: c.Directory,
	}
	for name, value := range p.New.Variables {
		if _, known := variables[name]; !known {
			variables[name] = value
		}
	}
	p.plan.Action = actuate.Action{Kind: actuate.ActionQueue, Server: p.Seen.Server, Turn: actuate.Turn{
		Name: t.Name, PromptFile: p.PromptFile, Command: s.Command, Variables: variables, Client: c.Process, Directory: c.Directory,
	}}
	return p.tell(t, c, spec.ReasonDelivering, "it is put into the client's queue", soon)
}

// awaitArgument: the turn with which a client is to begin is not the one whose prompt
// was looked up, or the end of its last client is still to be made its own at the end of
// this pass. A client that began without it would have to be ended for it.
func (p *pass) awaitArgument() bool {
	t := p.first()
	if t == nil || submitOf(p.class).Method != spec.SubmitArgument || t.Name == p.Turns[0].Name && t.Phase == turn.Pending {
		return false
	}
	return p.say(spec.ReasonStarting, fmt.Sprintf("turn %s is next", t.Name), soon)
}

// beginWith gives the first turn to the client that is started, where its class takes
// one as an argument.
func (p *pass) beginWith(a *record.Attempt) {
	t, s := p.first(), submitOf(p.class)
	if t == nil || t.Phase != turn.Pending || s.Method != spec.SubmitArgument {
		return
	}
	a.Turn, a.Order.PromptFile, a.Order.PromptArgs = t.Name, p.PromptFile, s.Arguments
	*t = t.Begin(p.Now, spec.SubmitArgument, a.Incarnation, a.ID, conversationOf(a))
}

// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muxlet/muxlet/actuate"
	"github.com/muxlet/muxlet/controller/metrics"
	"github.com/muxlet/muxlet/controller/plan"
	"github.com/muxlet/muxlet/controller/turn"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec"
	"github.com/muxlet/muxlet/spec/durable"
)

// Turns keeps the turns durably. *turn.Store is one, and says what each method promises.
type Turns interface {
	Prepare() error
	Load() (problems []error, err error)
	Follow(put func(turn.Turn), gone func(turn.Turn))
	Create(r turn.Request) (t turn.Turn, existed bool, err error)
	Update(next turn.Turn) (turn.Turn, error)
	Turn(name string) (turn.Turn, bool)
	Prompt(name string) (string, error)
	PromptFile(name string) string
	Forget(name string) error
	ForgetSession(uid string) error
	Tidy() error
}

// loadTurns reads what is in the queues, and what became of earlier turns. The labels
// of their sessions are known by then.
func (c *Controller) loadTurns() error {
	c.mu.Lock()
	for _, s := range c.sessions {
		c.book.label(s.rec.UID, s.rec.Labels)
	}
	c.mu.Unlock()
	if err := c.TurnStore.Prepare(); err != nil {
		return err
	}
	c.TurnStore.Follow(c.book.put, c.book.gone)
	problems, err := c.TurnStore.Load()
	if err != nil {
		return err
	}
	for _, problem := range problems {
		c.Log.Error(problem, "Turn could not be used")
		c.tell("", "", plan.Event{Type: plan.Warning, Reason: spec.ReasonRecordQuarantined, Message: problem.Error()})
	}
	return nil
}

// gatherTurns adds what is known of the session's turns.
func (c *Controller) gatherTurns(s *session, in *plan.Input) {
	in.Turns = c.book.open(s.rec.UID)
	c.mu.Lock()
	in.Told, s.answersDue = toldOf(s, in.Turns), 0
	if s.telling != nil {
		s.answersDue = len(s.telling.answers)
	}
	c.mu.Unlock()
	if len(in.Turns) == 0 {
		s.handOver = plan.HandOver{}
		return
	}
	first := in.Turns[0].Name
	in.PromptFile, in.Waited = c.TurnStore.PromptFile(first), c.book.waits(s.rec.UID)
	if s.handOver.Turn == first {
		in.HandOver = s.handOver
	}
}

// gatherHand looks at the client's screen for the first turn. The sight is judged from
// the same screen: whether a question waits, and whether the client works, must not be
// older than what its input line shows. A look that fails is no look.
func (c *Controller) gatherHand(ctx context.Context, s *session, in *plan.Input) {
	first := in.Turns[0]
	sub, ok := c.subjectOf(s.name)
	if !ok {
		return
	}
	prompt, err := c.TurnStore.Prompt(first.Name)
	if err != nil {
		c.losePrompt(first, err)
		return
	}
	began := c.now()
	taken, err := c.Tmux.CaptureHand(ctx, sub.client.Pane)
	if err != nil {
		c.Log.V(1).Info("Screen was not looked at", "session", s.name, "err", err.Error())
		return
	}
	if !sub.shownBy(taken) {
		return
	}
	if looksAt(sub.class.Spec) {
		files, ok := c.filesInTime(s, sub)
		if !ok {
			return
		}
		c.noteSight(s.name, sub, c.judgeSight(sub, taken, files))
		c.mu.Lock()
		if t := s.present(); t != nil {
			in.Sight = t.present()
		}
		c.mu.Unlock()
	}
	shown := observe.JudgeScreen(sub.class.Spec, taken.Lines[min(taken.Visible, len(taken.Lines)):], c.Clock.Now())
	in.Hand = observe.JudgeHand(sub.class.Spec, taken, prompt)
	in.Hand.At, in.Hand.Working, in.Hand.Attention = began, shown.Working, shown.Attention
}

// losePrompt ends a pending turn whose prompt is gone for good.
func (c *Controller) losePrompt(t turn.Turn, err error) {
	lost := errors.Is(err, fs.ErrNotExist) || errors.Is(err, durable.ErrCorrupt)
	if t.Phase != turn.Pending || !lost {
		c.Log.Error(err, "Prompt could not be read", "turn", t.Name)
		return
	}
	next := t.Fail(c.now(), spec.ReasonPromptLost, "the file with its prompt is gone or damaged: send it again", true)
	if err := c.updateTurn(next); err != nil && !outdated(err) {
		c.Log.Error(err, "Turn was not saved", "turn", t.Name)
	}
	c.queue.Add(t.Session)
}

// filesInTime is what the client's own files tell. They may be on a mount that does not
// answer: then nothing is known, and the worker does not wait for it.
func (c *Controller) filesInTime(s *session, sub subject) (observe.Files, bool) {
	if c.Clients == nil {
		return observe.Files{Activity: spec.ActivityUnknown}, true
	}
	return s.files.ask(c.Clock, asidePatience, func() observe.Files {
		return c.Clients.Files(sub.ref, sub.client.Process)
	}, func() { c.queue.Add(s.name) })
}

// makeInitial puts the first turn of a conversation into the queue, before the record
// says that this was done. When it comes twice, the second one is not made.
func (c *Controller) makeInitial(s *session, p *plan.Plan) error {
	if p.Initial == nil {
		return nil
	}
	_, _, err := c.TurnStore.Create(turn.Request{
		Session: s.name, SessionUID: s.rec.UID, ID: p.Initial.Request, Initial: true, Prompt: p.Initial.Prompt,
	})
	if err != nil {
		return fmt.Errorf("save the initial turn: %w", err)
	}
	return nil
}

// saveTurns writes down what the plan makes of the turns, before anything is done about
// them. When the one that the plan's action is about has changed meanwhile, or cannot be
// saved, the action is not done. What becomes of the others stops nothing.
func (c *Controller) saveTurns(s *session, in plan.Input, p *plan.Plan) (act bool) {
	var failure error
	act = true
	for _, next := range p.Turns {
		err := c.updateTurn(next)
		if err == nil {
			continue
		}
		if failure == nil || outdated(failure) {
			failure = err
		}
		if act && actsFor(p, next.Name) {
			act = false
			c.takeBack(s, p)
		}
		if outdated(err) {
			c.Log.V(1).Info("Turn has changed meanwhile", "session", s.name, "turn", next.Name)
			continue
		}
		c.Metrics.Failed(metrics.FailedSave)
		c.Log.Error(err, "Turn was not saved", "session", s.name, "turn", next.Name)
	}
	c.settleTold(s, failure)
	switch {
	case failure != nil && !outdated(failure):
		p.Verdict = plan.Verdict{Rule: "Save", Reason: spec.ReasonStateUnwritable, Message: failure.Error()}
		p.Waiting, p.RequeueAfter = p.Verdict, unwritableRetry
	case failure != nil:
		p.RequeueAfter = time.Millisecond
	case len(p.Turns) > 0 && len(in.Turns) > 1 && p.RequeueAfter == 0:
		// What comes next may be due.
		p.RequeueAfter = time.Millisecond
	}
	return act
}

// actsFor says whether the plan's action is about the turn of that name.
func actsFor(p *plan.Plan, name string) bool {
	if a := p.Record.Attempt; starts(p.Action.Kind) && a != nil {
		return a.Turn == name
	}
	return handsOver(p.Action.Kind) && p.Action.Turn.Name == name
}

// takeBack leaves out the plan's action. A start whose attempt is on disk is known to
// have started nothing.
func (c *Controller) takeBack(s *session, p *plan.Plan) {
	if starts(p.Action.Kind) && s.rec.Attempt != nil {
		s.startFailure, s.startFailureOf = "the turn that its client was to begin with has changed", s.rec.Attempt.ID
	}
	p.Action = actuate.Action{}
}

// outdated says that the turn is another one by now, or gone.
func outdated(err error) bool {
	return errors.Is(err, turn.ErrChanged) || errors.Is(err, fs.ErrNotExist)
}

// updateTurn saves what becomes of a turn, and tells when that is no good end.
func (c *Controller) updateTurn(next turn.Turn) error {
	saved, err := c.TurnStore.Update(next)
	if err != nil {
		return err
	}
	c.Log.V(1).Info("Saved turn", "session", saved.Session, "turn", saved.Name, "phase", saved.Phase,
		"delivered", saved.Delivered.Reason, "completed", saved.Completed.Reason)
	if saved.Phase == turn.Over {
		c.endedTurns.Add(1)
		c.tellTurn(saved)
	}
	return nil
}

// tellTurn records an event about a turn that has failed, or of which nobody knows.
func (c *Controller) tellTurn(t turn.Turn) {
	state, words := t.Delivered, "was not delivered"
	switch {
	case t.Delivered.Reason == spec.ReasonCancelled:
		return
	case t.Delivered.Status == metav1.ConditionUnknown:
		words = "may not have been delivered"
	case t.Delivered.Status == metav1.ConditionTrue && t.Completed.Status == metav1.ConditionFalse:
		state, words = t.Completed, "was not completed"
	case t.Delivered.Status == metav1.ConditionTrue:
		return
	}
	c.tell(t.Session, t.SessionUID, plan.Event{Type: plan.Warning, Reason: state.Reason, Message: fmt.Sprintf("Turn %s %s: %s", t.Name, words, state.Message)})
}

// handsOver says whether an action is about a turn.
func handsOver(k actuate.Kind) bool {
	return k == actuate.ActionPaste || k == actuate.ActionSubmit || k == actuate.ActionQueue
}

// late says whether a hand-over would begin after the deadline of its turn, since the disk
// was slow: then it does not, and the turn goes back to where it was.
func (c *Controller) late(s *session, p *plan.Plan) bool {
	a := p.Action
	if a.Kind != actuate.ActionPaste && a.Kind != actuate.ActionQueue {
		return false
	}
	t, ok := c.TurnStore.Turn(a.Turn.Name)
	if !ok || t.Deadline.IsZero() || c.now().Before(t.Deadline) {
		return false
	}
	c.noteHandOver(s, a, actuate.Outcome{
		Result: actuate.ResultFailed, Reason: spec.ReasonDeadlineExceeded, Message: "Its deadline passed while that was being written down.",
	})
	p.Action, p.RequeueAfter = actuate.Action{}, time.Millisecond
	return true
}

// noteHandOver remembers what came of an act for a turn. A submit key that was not
// pressed takes nothing back of what was pasted before it.
func (c *Controller) noteHandOver(s *session, a actuate.Action, out actuate.Outcome) {
	if !handsOver(a.Kind) {
		return
	}
	if out.Result == actuate.ResultUnclear && a.Kind == actuate.ActionPaste {
		c.brokenOff()
	}
	moved := 0
	if s.handOver.Turn == a.Turn.Name {
		moved = s.handOver.Moved
	}
	refused := out.Result == actuate.ResultRefused || out.Result == actuate.ResultFailed
	if out.Result == actuate.ResultRefused && out.Reason == spec.ReasonCursorMoved {
		moved++
	}
	next := plan.HandOver{Turn: a.Turn.Name, Moved: moved}
	switch {
	case a.Kind == actuate.ActionSubmit:
		next = s.handOver
		next.Turn, next.Moved = a.Turn.Name, moved
		if next.Untyped = refused; refused {
			next.Reason, next.Message = out.Reason, out.Message
		}
	case out.Result == actuate.ResultDone:
		next.DoneAt = c.now()
	case refused:
		next.Nothing, next.Reason, next.Message = true, out.Reason, out.Message
	default:
		// It may have happened: as after a crash.
		next = plan.HandOver{}
	}
	s.handOver = next
}

// endTurns ends the turns of a session that is removed, and forgets all of them.
func (c *Controller) endTurns(s *session) error {
	for _, t := range c.book.open(s.rec.UID) {
		if err := c.endTurn(t); err != nil {
			return err
		}
	}
	return c.TurnStore.ForgetSession(s.rec.UID)
}

func (c *Controller) endTurn(t turn.Turn) error {
	for {
		const message = "its session was removed"
		next := t.Fail(c.now(), spec.ReasonRemoved, message, false)
		if t.Phase == turn.Delivering {
			next = t.GiveUp(c.now(), spec.ReasonRemoved, message)
		}
		err := c.updateTurn(next)
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if !errors.Is(err, turn.ErrChanged) {
			return err
		}
		now, ok := c.TurnStore.Turn(t.Name)
		if !ok || now.Phase == turn.Over {
			return nil
		}
		t = now
	}
}

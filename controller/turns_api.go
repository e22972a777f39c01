// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/muxlet/muxlet/controller/plan"
	"github.com/muxlet/muxlet/controller/server"
	"github.com/muxlet/muxlet/controller/turn"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec"
)

const (
	// recordPatience is how long a turn waits for the record of a session that was
	// declared a moment ago.
	recordPatience = 2 * time.Second
	// answerPatience is how long the file of an answer may take to be read.
	answerPatience = 2 * time.Second
)

// Turns lists all turns by session and number, without their prompts.
func (c *Controller) Turns() spec.TurnList {
	<-c.loaded
	served, version := c.book.list()
	out := spec.TurnList{ListMeta: metav1.ListMeta{ResourceVersion: version}, Items: make([]spec.Turn, 0, len(served))}
	for _, t := range served {
		out.Items = append(out.Items, *t.DeepCopy())
	}
	return out
}

// Turn is one of them, with its prompt as long as that is kept.
func (c *Controller) Turn(name string) (spec.Turn, error) {
	<-c.loaded
	served, ok := c.book.find(name)
	if !ok {
		return spec.Turn{}, server.NewTurnNotFound(name)
	}
	return c.withPrompt(served), nil
}

// withPrompt is a copy of a turn with its prompt.
func (c *Controller) withPrompt(served *spec.Turn) spec.Turn {
	o := *served.DeepCopy()
	if prompt, err := c.TurnStore.Prompt(o.Name); err == nil {
		o.Spec.Prompt = prompt
	}
	return o
}

// CreateTurn puts a turn into the queue of its session. No worker and no tmux is waited
// for: the turn is on disk when it returns, and what becomes of it is seen later.
func (c *Controller) CreateTurn(ctx context.Context, o spec.Turn) (made spec.Turn, existed bool, err error) {
	<-c.loaded
	r, err := c.turnRequest(ctx, o)
	if err != nil {
		return spec.Turn{}, false, err
	}
	t, existed, err := c.TurnStore.Create(r)
	if err != nil {
		return spec.Turn{}, false, notMade(r.Session, err)
	}
	c.mu.Lock()
	s := c.sessions[r.Session]
	gone := s == nil || s.rec.UID != r.SessionUID
	c.mu.Unlock()
	if gone {
		// It was removed meanwhile, and nobody would look at the turn any more.
		return spec.Turn{}, false, errors.Join(server.NewNotFound(r.Session), c.TurnStore.ForgetSession(r.SessionUID))
	}
	c.enqueue(r.Session, c.Clock.Now())
	served, ok := c.book.find(t.Name)
	if !ok {
		return spec.Turn{}, false, server.NewTurnNotFound(t.Name)
	}
	return c.withPrompt(served), existed, nil
}

// notMade is why no turn was made.
func notMade(session string, err error) error {
	if errors.Is(err, turn.ErrFull) {
		return server.NewError(metav1.StatusReasonServiceUnavailable, session, fmt.Sprintf(
			"%d turns wait for it already: send it again when some of them are over", turn.MaxPending))
	}
	return server.NewError(server.ReasonProvisioningFailed, session, "the turn could not be written, and was not taken: "+err.Error())
}

// turnRequest judges a turn that is to be made, by the spec in force.
func (c *Controller) turnRequest(ctx context.Context, o spec.Turn) (turn.Request, error) {
	name := o.Spec.SessionName
	if errs := spec.ValidateTurn(&o, c.now()); len(errs) > 0 {
		return turn.Request{}, invalidTurn(name, errs)
	}
	prompt, err := spec.CheckPrompt(o.Spec.Prompt)
	if err != nil {
		return turn.Request{}, server.NewError(server.ReasonInvalid, name, err.Error())
	}
	uid, err := c.receiver(ctx, name, prompt)
	if err != nil {
		return turn.Request{}, err
	}
	deadline := c.now().Add(spec.DefaultTurnDeadline)
	if o.Spec.Deadline != nil {
		deadline = o.Spec.Deadline.UTC().Round(0)
	}
	return turn.Request{
		Session: name, SessionUID: uid, ID: o.Annotations[spec.TurnRequestAnnotation], Deadline: deadline, Prompt: prompt,
	}, nil
}

func invalidTurn(name string, errs field.ErrorList) error {
	words := make([]string, len(errs))
	for i, e := range errs {
		words[i] = e.Error()
	}
	return server.NewError(server.ReasonInvalid, name, strings.Join(words, "; "))
}

// receiver is the uid of a session that takes the prompt now.
func (c *Controller) receiver(ctx context.Context, name, prompt string) (uid string, err error) {
	for began := c.Clock.Now(); ; {
		c.mu.Lock()
		s := c.sessions[name]
		c.mu.Unlock()
		if s == nil {
			return "", server.NewNotFound(name)
		}
		w := c.wishOf(s)
		c.mu.Lock()
		uid, inForce := s.rec.UID, w.Spec
		if inForce == nil {
			inForce = s.rec.Spec
		}
		class := c.classInForce(s)
		c.mu.Unlock()
		switch {
		case w.Want == plan.Remove:
			return "", server.NewError(server.ReasonConflict, name, "it is being removed, and takes no turns any more")
		case inForce == nil:
			return "", server.NewError(server.ReasonInvalid, name, "it has no valid document: `muxlet describe "+name+"` says why")
		case inForce.Suspend:
			return "", refused(name, plan.Refusal{Reason: plan.RefusedSuspended, Message: "spec.suspend is true"})
		case class != nil && spec.CheckPromptFor(class.Spec, prompt) != nil:
			return "", server.NewError(server.ReasonInvalid, name, spec.CheckPromptFor(class.Spec, prompt).Error())
		case uid != "":
			return uid, nil
		case c.Clock.Now().Sub(began) >= recordPatience:
			return "", refused(name, unrecorded(inForce))
		}
		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case <-c.Clock.After(10 * time.Millisecond):
		}
	}
}

// CancelTurn takes a turn back that nothing was handed over of.
func (c *Controller) CancelTurn(_ context.Context, name string) (spec.Turn, error) {
	<-c.loaded
	for {
		t, ok := c.TurnStore.Turn(name)
		served, shown := c.book.find(name)
		ok = ok && shown
		switch {
		case !ok:
			return spec.Turn{}, server.NewTurnNotFound(name)
		case t.Phase == turn.Over && t.Delivered.Reason == spec.ReasonCancelled:
			return *served.DeepCopy(), nil
		case t.Phase == turn.Over:
			return spec.Turn{}, server.NewTurnError(server.ReasonConflict, name, fmt.Sprintf("it is over already (%s)", spec.DisplayTurnStatus(served)))
		case t.Phase != turn.Pending:
			return spec.Turn{}, server.NewTurnError(server.ReasonConflict, name,
				"it was handed over to the client and cannot be taken back: attach to the session and interrupt the client there")
		}
		err := c.updateTurn(t.Cancel(c.now()))
		switch {
		case err == nil:
			c.queue.Add(t.Session)
		case !outdated(err):
			return spec.Turn{}, server.NewTurnError(server.ReasonProvisioningFailed, name, "it could not be written, and was not cancelled: "+err.Error())
		}
	}
}

// DeleteTurn forgets a turn that is over.
func (c *Controller) DeleteTurn(_ context.Context, name string) error {
	<-c.loaded
	t, ok := c.TurnStore.Turn(name)
	switch {
	case !ok:
		return server.NewTurnNotFound(name)
	case t.Phase != turn.Over:
		return server.NewTurnError(server.ReasonConflict, name, "it is not over: `muxlet cancel "+name+"` takes one back that was not handed over")
	}
	err := c.TurnStore.Forget(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return server.NewTurnNotFound(name)
	case err != nil:
		return server.NewTurnError(server.ReasonProvisioningFailed, name, "it could not be removed: "+err.Error())
	}
	return nil
}

// Answer is the last lines of what the client has answered to a turn. Its files tell of
// the last answer alone.
func (c *Controller) Answer(ctx context.Context, name string, lines int) (string, error) {
	<-c.loaded
	t, ok := c.TurnStore.Turn(name)
	if !ok {
		return "", server.NewTurnNotFound(name)
	}
	none := server.NewTurnError(server.ReasonNotFound, name, "there is no answer of it: `muxlet logs "+t.Session+"` shows the screen")
	ref, ok := c.answerRef(t)
	if !ok || c.Clients == nil {
		return "", none
	}
	type answer struct {
		text string
		err  error
	}
	read := make(chan answer, 1)
	go func() {
		text, err := c.answerOf(ctx, t, ref, lines)
		read <- answer{text, err}
	}()
	select {
	case <-ctx.Done():
		return "", ctx.Err()
	case <-c.Clock.After(answerPatience):
		return "", none
	case a := <-read:
		if a.err != nil || a.text == "" {
			return "", none
		}
		return a.text, nil
	}
}

// answerPeriod is the time between two looks for an answer that is not written yet.
const answerPeriod = 50 * time.Millisecond

// answerOf reads the answer to a turn. Claude Code writes it down a moment after it has
// told that the turn is done (0.2 s, 2.1.332): until then the last answer is another's.
func (c *Controller) answerOf(ctx context.Context, t turn.Turn, ref observe.ConversationRef, lines int) (string, error) {
	for {
		text, err := c.Clients.Answer(ref, t.HandedAt, lines)
		if !errors.Is(err, fs.ErrNotExist) || c.now().Sub(t.FinishedAt) > answerPatience {
			return text, err
		}
		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case <-c.Clock.After(answerPeriod):
		}
	}
}

// answerRef says where the answer to a turn is; ok is false when another turn of the
// same conversation may have been answered since.
func (c *Controller) answerRef(t turn.Turn) (ref observe.ConversationRef, ok bool) {
	if t.Completed.Status != metav1.ConditionTrue || !c.book.last(t) {
		return ref, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.sessions[t.Session]
	if s == nil || s.rec.UID != t.SessionUID || s.rec.Conversation == nil {
		return ref, false
	}
	class, known := c.classInForce(s), s.rec.Conversation
	if class == nil || class.Spec.Reports == spec.ReportsNone || class.Spec.Conversation.Transcript == "" {
		return ref, false
	}
	if t.Conversation != "" && t.Conversation != known.ID {
		return ref, false
	}
	return observe.ConversationRef{
		Class: class.Spec, Session: s.name, ID: known.ID,
		Directory: known.Directory, Home: known.Home, ConfigDirectory: known.ConfigDirectory,
	}, true
}

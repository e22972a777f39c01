// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muxlet/muxlet/controller/server"
	"github.com/muxlet/muxlet/spec"
)

// unfinished is the error about a goal that was not reached in time.
func (r *waitRoom) unfinished(w *waited, name, how string) error {
	next := fmt.Sprintf("see \"muxlet describe %s\".", name)
	switch {
	case w.object == nil:
		next = "\"muxlet validate\" shows whether its file is good."
	case r.kind == kindTurns:
		next = fmt.Sprintf("see \"muxlet describe turn %s\".", name)
	case r.kind == kindClasses:
		next = fmt.Sprintf("see \"muxlet get clientclass %s -o yaml\".", name)
	}
	message := fmt.Sprintf("the goal %s of %s %q %s (%s): %s", r.goal.words, r.what(), name, how, w.words(), next)
	switch r.kind {
	case kindSessions, kindEvents:
		return server.NewError(server.ReasonDeadlineExceeded, name, message)
	case kindTurns:
		return server.NewTurnError(server.ReasonDeadlineExceeded, name, message)
	case kindClasses:
	}
	return server.NewClassError(server.ReasonDeadlineExceeded, name, message)
}

// words are how the object is.
func (w *waited) words() string {
	switch object := w.object.(type) {
	case nil:
		return "there is none"
	case *spec.Session:
		return "it is " + statusWords(object)
	case *spec.Turn:
		return "it is " + turnWords(object)
	}
	return "it is there"
}

func (r *waitRoom) what() string {
	if r.kind == kindClasses {
		return "client class"
	}
	return singularOf(r.kind)
}

// whyNot is why the goal cannot be reached as things are; nil when it can.
func (r *waitRoom) whyNot(w *waited, name string) error {
	switch object := w.object.(type) {
	case *spec.Session:
		return r.goal.stuckSession(object)
	case *spec.Turn:
		return r.goal.stuckTurn(object)
	case *spec.ClientClass:
		return nil
	}
	if r.goal.gone || r.goal.words == forCreate {
		return nil
	}
	switch r.kind {
	case kindTurns:
		return server.NewTurnNotFound(name)
	case kindClasses:
		return server.NewClassNotFound(name)
	case kindSessions, kindEvents:
	}
	return server.NewNotFound(name)
}

// stuckTurn: a turn that is over changes no more.
func (w *goal) stuckTurn(t *spec.Turn) error {
	if !over(t) || w.gone {
		return nil
	}
	if err := turnError(t, waitCompleted); err != nil {
		return err
	}
	return server.NewTurnError(server.ReasonConflict, t.Name, fmt.Sprintf(
		"turn %q does not get to %s: it is over (%s) and changes no more; see \"muxlet describe turn %s\".", t.Name, w.words, turnWords(t), t.Name))
}

// stuckSession: a session that rests, or that a person or the world must help.
func (w *goal) stuckSession(s *spec.Session) error {
	reason, message, code := w.obstacle(s)
	if reason == "" {
		return nil
	}
	status := spec.DisplayStatus(s)
	text := fmt.Sprintf("session %q does not get to %s: it is %s", s.Name, w.words, statusLine(status, reason))
	advice := strings.ReplaceAll(whatToDo(s, status, reason), "\n", " ")
	if advice == "" {
		advice = fmt.Sprintf("See \"muxlet describe %s\".", s.Name)
	}
	if message != "" {
		text += ": " + sentence(message)
		// The advice about a question begins with the question.
		if again := len(sentence(message)); len(advice) > again && strings.EqualFold(advice[:again], sentence(message)) {
			advice = strings.TrimSpace(advice[again:])
		}
	} else {
		text += "."
	}
	err := server.NewError(code, s.Name, text+" "+advice)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseType(reason), Message: message}}
	return err
}

// obstacle is what keeps a session from the goal until a person or the world acts, with the
// stable reason that fits it; an empty one when muxlet goes on by itself.
func (w *goal) obstacle(s *spec.Session) (reason, message string, code metav1.StatusReason) {
	accepted := failing(s, spec.ConditionAccepted)
	if w.gone {
		if accepted != nil && accepted.Reason == spec.ReasonRemovalHeld {
			return accepted.Reason, accepted.Message, server.ReasonConflict
		}
		return "", "", ""
	}
	if w.isAnAct() {
		return "", "", ""
	}
	if accepted != nil && w.condition == spec.ConditionAccepted {
		return accepted.Reason, accepted.Message, codeOfObstacle(accepted.Reason)
	}
	switch spec.DisplayStatus(s) {
	case spec.StatusSuspended:
		reason, message = primaryReason(s)
		return reason, message, server.ReasonSuspended
	case spec.StatusTerminated, spec.StatusCompleted, spec.StatusDormant:
		reason, message = primaryReason(s)
		return reason, message, server.ReasonConflict
	}
	for _, kind := range []string{spec.ConditionStalled, spec.ConditionInputRequired} {
		if c := meta.FindStatusCondition(s.Status.Conditions, kind); c != nil && c.Status == metav1.ConditionTrue {
			return c.Reason, c.Message, codeOfObstacle(c.Reason)
		}
	}
	if d := s.Status.Decision; d != nil && d.Reason == spec.ReasonAuthenticationFailed {
		return d.Reason, d.Message, codeOfObstacle(d.Reason)
	}
	return "", "", ""
}

// codeOfObstacle is the stable reason, and with it the exit code, that fits best why a
// session does not go on.
func codeOfObstacle(reason string) metav1.StatusReason {
	switch {
	case reason == spec.ReasonInvalid:
		return server.ReasonInvalid
	case reason == spec.ReasonWorkspaceMissing:
		return server.ReasonWorkspaceMissing
	case reason == spec.ReasonDuplicateName, reason == spec.ReasonNameConflict, reason == spec.ReasonRemovalHeld, asksPerson[reason]:
		return server.ReasonConflict
	}
	return server.ReasonProvisioningFailed
}

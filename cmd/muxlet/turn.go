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

// turnReason is the one reason, and its message, that explains the status of a turn best:
// why the client does not have it, or what it does with it.
func turnReason(t *spec.Turn) (reason, message string) {
	c := meta.FindStatusCondition(t.Status.Conditions, spec.ConditionDelivered)
	if c != nil && c.Status == metav1.ConditionTrue {
		c = meta.FindStatusCondition(t.Status.Conditions, spec.ConditionCompleted)
	}
	if c == nil {
		return "", ""
	}
	return c.Reason, c.Message
}

// progressWords tell a person who waits for a turn what it waits for; empty when that
// needs no words.
func progressWords(t *spec.Turn) string {
	reason, message := turnReason(t)
	switch spec.DisplayTurnStatus(t) {
	case spec.TurnPending:
		return pendingWords(t, reason, message)
	case spec.TurnDelivering:
		return "handing it over"
	case spec.TurnDelivered:
		return "delivered; the client works on it"
	}
	return ""
}

func pendingWords(t *spec.Turn, reason, message string) string {
	switch reason {
	case spec.ReasonPending, spec.ReasonReady, spec.ReasonRunning, spec.ReasonDormant:
		return "" // for a moment
	case spec.ReasonStarting, spec.ReasonTurnSent, spec.ReasonStarted:
		return "starting the client…"
	case spec.ReasonNotReady:
		return "waiting until the client is ready"
	case spec.ReasonClientWorking:
		return "the client works; the turn waits"
	case spec.ReasonQueued:
		return "turns that were sent before come first"
	case spec.ReasonServerStarting:
		return "starting tmux…"
	case spec.ReasonWaitingForBudget:
		return "other sessions are starting; the turn waits"
	}
	words := reason
	if message != "" {
		words += ": " + sentence(message)
	}
	if asksPerson[reason] {
		words += " " + turnAdvice(t, spec.TurnPending)
	}
	return "waiting: " + words
}

// asksPerson has the reasons of a client that waits for a person itself.
var asksPerson = map[string]bool{
	spec.ReasonTrustRequired: true, spec.ReasonLoginRequired: true, spec.ReasonPermissionRequired: true,
	spec.ReasonComposerInUse: true, spec.ReasonHookTrustRequired: true, spec.ReasonUpdateOffered: true, spec.ReasonChoiceRequired: true, spec.ReasonQuestion: true,
}

// turnCode is the stable reason of the error about a turn that has ended with a reason,
// and with it the exit code. An end that no stable reason fits is its own.
func turnCode(reason string, retryable bool) metav1.StatusReason {
	switch reason {
	case spec.ReasonSuspended:
		return server.ReasonSuspended
	case spec.ReasonWorkspaceMissing:
		return server.ReasonWorkspaceMissing
	case spec.ReasonDeadlineExceeded:
		return server.ReasonDeadlineExceeded
	}
	switch {
	case !retryable:
		return metav1.StatusReason(reason)
	case reason == spec.ReasonTmuxUnavailable:
		return server.ReasonTmuxUnavailable
	}
	return server.ReasonProvisioningFailed
}

// turnError is why a turn is not what was waited for; nil when it is. The turn is
// delivered or over.
func turnError(t *spec.Turn, wait string) error {
	phase := spec.DisplayTurnStatus(t)
	hasIt := meta.IsStatusConditionTrue(t.Status.Conditions, spec.ConditionDelivered)
	if phase == spec.TurnCompleted || wait == waitDelivered && hasIt {
		return nil
	}
	reason, message := turnReason(t)
	var words string
	switch {
	case phase == spec.TurnCancelled:
		words = "was cancelled: it was not handed over"
		message = ""
	case phase == spec.TurnUncertain:
		words = "may have been delivered"
	case hasIt && phase == spec.TurnFailed:
		words = "was delivered and has failed"
	case hasIt:
		words = "was delivered, and how it ended is not known"
	default:
		words = "was not delivered"
	}
	text := fmt.Sprintf("turn %q to session %q %s", t.Name, t.Spec.SessionName, words)
	if phase != spec.TurnCancelled {
		text += fmt.Sprintf(" (%s)", reason)
	}
	if message != "" {
		text += ": " + sentence(message)
	} else {
		text += "."
	}
	if advice := turnAdvice(t, phase); advice != "" {
		text += " " + advice
	}
	err := server.NewTurnError(turnCode(reason, t.Status.Retryable), t.Name, text)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseType(reason), Message: message}}
	return err
}

// turnAdvice is what a person can do about a turn that is over and is not completed, or
// that waits for them.
func turnAdvice(t *spec.Turn, phase spec.TurnPhase) string {
	reason, message := turnReason(t)
	session := t.Spec.SessionName
	switch {
	case phase == spec.TurnPending && asksPerson[reason]:
		return fmt.Sprintf("Go to the client: muxlet attach %s", session)
	case phase == spec.TurnPending:
		return fmt.Sprintf("Nothing; \"muxlet cancel %s\" takes it back.", t.Name)
	case phase == spec.TurnUncertain:
		return fmt.Sprintf("Sending it again could deliver it twice: see first whether the client has it (muxlet logs %s).", session)
	case phase != spec.TurnFailed && phase != spec.TurnDelivered:
		return ""
	case reason == spec.ReasonNotReported:
		return fmt.Sprintf("What the client shows: muxlet logs %s", session)
	case strings.Contains(message, "muxlet "), strings.Contains(message, "send it again"):
		return "" // it says what to do
	case reason == spec.ReasonSuspended:
		return fmt.Sprintf("Run \"muxlet resume %s\", and send it again.", session)
	case t.Status.Retryable && t.Status.DeliveredAt != nil:
		return "It can be sent again."
	case t.Status.Retryable:
		return "It is not handed over later; it can be sent again."
	}
	return ""
}

// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package turn

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muxlet/muxlet/spec"
)

// The transitions of a turn. Each gives the turn as it must be on disk; none changes
// the one that it is asked of.

// Begin is the mark on disk before anything of t is handed over to a client.
func (t Turn) Begin(now time.Time, method spec.SubmitMethod, incarnation int64, attempt, conversation string) Turn {
	t.Phase, t.HandedAt, t.Method = Delivering, now, method
	t.Incarnation, t.Attempt, t.Conversation = incarnation, attempt, conversation
	t.PastedAt, t.SubmittedAt, t.Submits, t.Before = time.Time{}, time.Time{}, 0, ""
	t.set(&t.Delivered, now, metav1.ConditionUnknown, spec.ReasonDelivering, "it is being handed over")
	return t
}

// Return takes Begin back: it is proven that nothing was handed over.
func (t Turn) Return(now time.Time, reason, message string) Turn {
	t.Phase, t.HandedAt, t.Method = Pending, time.Time{}, ""
	t.Incarnation, t.Attempt, t.Conversation = 0, "", ""
	t.PastedAt, t.SubmittedAt, t.Submits, t.Before = time.Time{}, time.Time{}, 0, ""
	t.set(&t.Delivered, now, metav1.ConditionFalse, reason, message)
	return t
}

// Deliver says that the client has t since at.
func (t Turn) Deliver(at time.Time, message string) Turn {
	t.Phase, t.DeliveredAt = Delivered, at
	t.set(&t.Delivered, at, metav1.ConditionTrue, spec.ReasonDelivered, message)
	t.set(&t.Completed, at, metav1.ConditionUnknown, spec.ReasonInProgress, "the client works on it")
	return t
}

// Complete says that the client has ended t well.
func (t Turn) Complete(at time.Time) Turn {
	t.set(&t.Completed, at, metav1.ConditionTrue, spec.ReasonCompleted, "the client has ended it")
	return t.over(at)
}

// Unreported ends a t that was delivered and of which the client does not tell how it
// ends.
func (t Turn) Unreported(now time.Time, message string) Turn {
	t.set(&t.Completed, now, metav1.ConditionUnknown, spec.ReasonNotReported, message)
	return t.over(now)
}

// Fail ends t: before its delivery when it was not handed over, else after it.
func (t Turn) Fail(now time.Time, reason, message string, retryable bool) Turn {
	if t.Delivered.Status != metav1.ConditionTrue {
		t.set(&t.Delivered, now, metav1.ConditionFalse, reason, message)
		reason, message = spec.ReasonNotDelivered, "it was not delivered"
	}
	t.set(&t.Completed, now, metav1.ConditionFalse, reason, message)
	t.Retryable = retryable
	return t.over(now)
}

// GiveUp ends a t that was handed over, or may have been, and that nothing confirms.
func (t Turn) GiveUp(now time.Time, reason, message string) Turn {
	t.set(&t.Delivered, now, metav1.ConditionUnknown, reason, message)
	t.set(&t.Completed, now, metav1.ConditionUnknown, spec.ReasonNotConfirmed, "whether the client has it is not known")
	return t.over(now)
}

// Cancel takes t back before its hand-over.
func (t Turn) Cancel(now time.Time) Turn {
	return t.Fail(now, spec.ReasonCancelled, "a person took it back", false)
}

func (t Turn) over(at time.Time) Turn {
	t.Phase, t.FinishedAt = Over, at
	return t
}

// set changes one of t's own conditions; its time is kept as long as its status is.
func (t *Turn) set(s *State, now time.Time, status metav1.ConditionStatus, reason, message string) {
	at := s.At
	if s.Status != status || at.IsZero() {
		at = now
	}
	*s = State{Status: status, Reason: reason, Message: message, At: at}
}

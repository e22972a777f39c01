// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muxlet/muxlet/controller/plan"
	"github.com/muxlet/muxlet/controller/turn"
	"github.com/muxlet/muxlet/spec"
)

func TestATurnShowsItsWord(t *testing.T) {
	made := turn.Turn{
		Name: "a-7", UID: "u", Session: "a", Number: 7, Request: "r1", CreatedAt: now, Deadline: now.Add(time.Minute), Bytes: 5, Lines: 1, Phase: turn.Pending,
		Delivered: turn.State{Status: metav1.ConditionFalse, Reason: spec.ReasonPending, At: now},
		Completed: turn.State{Status: metav1.ConditionUnknown, Reason: spec.ReasonPending, At: now},
	}
	begun := made.Begin(now.Add(time.Second), spec.SubmitPaste, 3, "x", "c1")
	has := begun.Deliver(now.Add(2*time.Second), "")
	for word, in := range map[spec.TurnPhase]turn.Turn{
		spec.TurnPending: made, spec.TurnDelivering: begun, spec.TurnDelivered: has, spec.TurnCompleted: has.Complete(now.Add(time.Hour)),
		spec.TurnFailed: made.Fail(now, spec.ReasonDeadlineExceeded, "", true), spec.TurnUncertain: begun.GiveUp(now, spec.ReasonInterrupted, ""),
		spec.TurnCancelled: made.Cancel(now),
	} {
		require.Equal(t, word, spec.DisplayTurnStatus(TurnObject(in, plan.Verdict{}, nil)))
	}

	labels := map[string]string{"repo": "shop"}
	o := TurnObject(made, plan.Verdict{Reason: spec.ReasonNotReady, Message: "it starts"}, labels)
	delivered := meta.FindStatusCondition(o.Status.Conditions, spec.ConditionDelivered)
	require.Equal(t, spec.ReasonNotReady, delivered.Reason)
	require.Equal(t, now, delivered.LastTransitionTime.Time, "why it waits is no transition")
	require.Equal(t, "r1", o.Annotations[spec.TurnRequestAnnotation])
	require.Equal(t, labels, o.Labels)
	require.Equal(t, now.Add(time.Minute), o.Spec.Deadline.Time)
	require.Empty(t, o.Spec.Prompt)
	require.Nil(t, o.Status.HandedAt)

	done := TurnObject(has.Complete(now.Add(time.Hour)), plan.Verdict{Reason: spec.ReasonNotReady}, nil)
	require.Equal(t, spec.ReasonDelivered, meta.FindStatusCondition(done.Status.Conditions, spec.ConditionDelivered).Reason, "it waits for nothing")
	require.EqualValues(t, 3, done.Status.Incarnation)
	require.Equal(t, "c1", done.Status.ConversationID)
	require.Equal(t, now.Add(time.Hour), done.Status.FinishedAt.Time)
}

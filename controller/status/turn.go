// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"maps"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muxlet/muxlet/controller/plan"
	"github.com/muxlet/muxlet/controller/turn"
	"github.com/muxlet/muxlet/spec"
)

// TurnObject is a turn as it is served, without its prompt. Waiting says why one that is
// pending waits, if that is known; labels are those of its session.
func TurnObject(t turn.Turn, waiting plan.Verdict, labels map[string]string) *spec.Turn {
	o := &spec.Turn{
		TypeMeta: metav1.TypeMeta{APIVersion: spec.GroupVersion.String(), Kind: spec.KindTurn},
		ObjectMeta: metav1.ObjectMeta{
			Name: t.Name, Namespace: spec.Namespace, UID: types.UID(t.UID), Generation: 1, CreationTimestamp: metav1.NewTime(t.CreatedAt),
			Labels: maps.Clone(labels),
		},
		Spec: spec.TurnSpec{SessionName: t.Session, Deadline: timeOf(t.Deadline)},
		Status: spec.TurnStatus{
			Initial: t.Initial, Incarnation: t.Incarnation, ConversationID: t.Conversation, Retryable: t.Retryable,
			PromptBytes: t.Bytes, PromptLines: t.Lines,
			HandedAt: timeOf(t.HandedAt), DeliveredAt: timeOf(t.DeliveredAt), FinishedAt: timeOf(t.FinishedAt),
		},
	}
	if t.Request != "" {
		o.Annotations = map[string]string{spec.TurnRequestAnnotation: t.Request}
	}
	delivered := t.Delivered
	if t.Phase == turn.Pending && waiting.Reason != "" {
		delivered.Reason, delivered.Message = waiting.Reason, waiting.Message
	}
	o.Status.Conditions = []metav1.Condition{
		turnCondition(spec.ConditionDelivered, delivered), turnCondition(spec.ConditionCompleted, t.Completed),
	}
	return o
}

func turnCondition(kind string, s turn.State) metav1.Condition {
	return metav1.Condition{
		Type: kind, Status: s.Status, Reason: s.Reason, Message: s.Message, ObservedGeneration: 1, LastTransitionTime: metav1.NewTime(s.At),
	}
}

// timeOf is nil for no time.
func timeOf(t time.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	return &metav1.Time{Time: t}
}

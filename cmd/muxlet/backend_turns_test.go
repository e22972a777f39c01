// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muxlet/muxlet/controller/server"
	"github.com/muxlet/muxlet/spec"
)

// fakeTurns is what a fakeDaemon knows of turns.
type fakeTurns struct {
	turns   map[string]spec.Turn
	answers map[string]string
	// silent turns are not told to those who watch.
	silent bool
	// sent is called for each turn that was made, without the lock; what it returns is the
	// answer.
	sent func(f *fakeDaemon, t spec.Turn) error
}

// setTurn replaces what is known of a turn.
func (f *fakeDaemon) setTurn(t spec.Turn) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.turns == nil {
		f.turns = map[string]spec.Turn{}
	}
	t.TypeMeta = metav1.TypeMeta{APIVersion: spec.GroupVersion.String(), Kind: spec.KindTurn}
	f.turns[t.Name] = *t.DeepCopy()
	told := t.DeepCopy()
	told.Spec.Prompt = ""
	if !f.silent {
		f.journals.Turns.Put(t.Name, told)
	}
}

func (f *fakeDaemon) removeTurn(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.turns, name)
	f.journals.Turns.Delete(name)
}

func (f *fakeDaemon) Turns() spec.TurnList {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := spec.TurnList{ListMeta: metav1.ListMeta{ResourceVersion: f.journals.Turns.Revision()}}
	for _, name := range slices.Sorted(maps.Keys(f.turns)) {
		t := f.turns[name]
		all.Items = append(all.Items, *t.DeepCopy())
	}
	return all
}

func (f *fakeDaemon) Turn(name string) (spec.Turn, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if t, ok := f.turns[name]; ok {
		return *t.DeepCopy(), nil
	}
	return spec.Turn{}, server.NewTurnNotFound(name)
}

func (f *fakeDaemon) CreateTurn(_ context.Context, t spec.Turn) (spec.Turn, bool, error) {
	id := t.Annotations[spec.TurnRequestAnnotation]
	if err := f.intent("send", t.Spec.SessionName); err != nil {
		return spec.Turn{}, false, err
	}
	number := 1
	for _, known := range f.Turns().Items {
		if known.Spec.SessionName != t.Spec.SessionName {
			continue
		}
		if id != "" && known.Annotations[spec.TurnRequestAnnotation] == id {
			return known, true, nil
		}
		number++
	}
	made := pendingTurn(t.Spec.SessionName, number)
	made.Annotations, made.Spec = t.Annotations, t.Spec
	made.Status.PromptBytes = int64(len(t.Spec.Prompt))
	made.Status.PromptLines = int64(1 + strings.Count(t.Spec.Prompt, "\n"))
	f.setTurn(made)
	if f.sent != nil {
		if err := f.sent(f, made); err != nil {
			return spec.Turn{}, false, err
		}
	}
	return made, false, nil
}

func (f *fakeDaemon) CancelTurn(_ context.Context, name string) (spec.Turn, error) {
	t, err := f.Turn(name)
	if err != nil {
		return t, err
	}
	if phase := spec.DisplayTurnStatus(&t); phase != spec.TurnPending && phase != spec.TurnCancelled {
		return t, server.NewTurnError(server.ReasonConflict, name, "it was handed over already")
	}
	t = failedTurn(t, spec.ReasonCancelled, "a person took it back", false)
	f.setTurn(t)
	return t, nil
}

func (f *fakeDaemon) DeleteTurn(_ context.Context, name string) error {
	t, err := f.Turn(name)
	switch {
	case err != nil:
		return err
	case t.Status.FinishedAt == nil:
		return server.NewTurnError(server.ReasonConflict, name, "it is not over")
	}
	f.removeTurn(name)
	return nil
}

func (f *fakeDaemon) Answer(_ context.Context, name string, lines int) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	answer, ok := f.answers[name]
	if !ok {
		return "", server.NewTurnError(server.ReasonNotFound, name, "its class does not give the answer")
	}
	all := strings.Split(strings.TrimSuffix(answer, "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n") + "\n", nil
}

func (f *fakeDaemon) Attach(_ context.Context, name string) error { return f.intent("attach", name) }

func pendingTurn(session string, number int) spec.Turn {
	return spec.Turn{
		ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("%s-%d", session, number), Namespace: spec.Namespace,
			UID: types.UID(fmt.Sprintf("uid-%s-%d", session, number)), CreationTimestamp: metav1.NewTime(noon),
		},
		Spec: spec.TurnSpec{SessionName: session},
		Status: spec.TurnStatus{Conditions: []metav1.Condition{
			{Type: spec.ConditionDelivered, Status: metav1.ConditionFalse, Reason: spec.ReasonPending, Message: "it was taken"},
			{Type: spec.ConditionCompleted, Status: metav1.ConditionUnknown, Reason: spec.ReasonPending},
		}},
	}
}

// waitingTurn waits for what the reason says.
func waitingTurn(t spec.Turn, reason, message string) spec.Turn {
	return withTurn(t, spec.ConditionDelivered, metav1.ConditionFalse, reason, message)
}

func withTurn(t spec.Turn, kind string, status metav1.ConditionStatus, reason, message string) spec.Turn {
	t = *t.DeepCopy()
	meta.SetStatusCondition(&t.Status.Conditions, metav1.Condition{
		Type: kind, Status: status, Reason: reason, Message: message, LastTransitionTime: metav1.NewTime(noon),
	})
	return t
}

func deliveringTurn(t spec.Turn) spec.Turn {
	t.Status.HandedAt, t.Status.Incarnation = &metav1.Time{Time: noon}, 1
	return withTurn(t, spec.ConditionDelivered, metav1.ConditionUnknown, spec.ReasonDelivering, "it is being handed over")
}

func deliveredTurn(t spec.Turn) spec.Turn {
	t = deliveringTurn(t)
	t.Status.DeliveredAt = &metav1.Time{Time: noon}
	t = withTurn(t, spec.ConditionDelivered, metav1.ConditionTrue, spec.ReasonDelivered, "the client has it")
	return withTurn(t, spec.ConditionCompleted, metav1.ConditionUnknown, spec.ReasonInProgress, "the client works on it")
}

func completedTurn(t spec.Turn) spec.Turn {
	t = deliveredTurn(t)
	t.Status.FinishedAt = &metav1.Time{Time: noon}
	return withTurn(t, spec.ConditionCompleted, metav1.ConditionTrue, spec.ReasonCompleted, "the client has ended it")
}

// failedTurn has failed before its delivery when it was not delivered, else after it.
func failedTurn(t spec.Turn, reason, message string, retryable bool) spec.Turn {
	t = *t.DeepCopy()
	t.Status.FinishedAt, t.Status.Retryable = &metav1.Time{Time: noon}, retryable
	if t.Status.DeliveredAt == nil {
		t = withTurn(t, spec.ConditionDelivered, metav1.ConditionFalse, reason, message)
		reason, message = spec.ReasonNotDelivered, "it was not delivered"
	}
	return withTurn(t, spec.ConditionCompleted, metav1.ConditionFalse, reason, message)
}

func uncertainTurn(t spec.Turn, reason, message string) spec.Turn {
	t = deliveringTurn(t)
	t.Status.FinishedAt = &metav1.Time{Time: noon}
	t = withTurn(t, spec.ConditionDelivered, metav1.ConditionUnknown, reason, message)
	return withTurn(t, spec.ConditionCompleted, metav1.ConditionUnknown, spec.ReasonNotConfirmed, "whether the client has it is not known")
}

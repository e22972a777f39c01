// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muxlet/muxlet/spec"
)

// putTurn serves a turn, and tells those who watch, without its prompt.
func (f *fakeBackend) putTurn(t *spec.Turn) {
	f.mu.Lock()
	defer f.mu.Unlock()
	t.TypeMeta = turnTypeMeta
	f.turns[t.Name] = t
	told := t.DeepCopy()
	told.Spec.Prompt = ""
	f.journals.Turns.Put(t.Name, told)
}

func pendingTurn(session string, number int, prompt string) *spec.Turn {
	return &spec.Turn{
		ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("%s-%d", session, number), Namespace: spec.Namespace,
			UID: types.UID(fmt.Sprintf("uid-%s-%d", session, number)), Labels: map[string]string{"of": session},
		},
		Spec: spec.TurnSpec{SessionName: session, Prompt: prompt},
		Status: spec.TurnStatus{PromptBytes: int64(len(prompt)), Conditions: []metav1.Condition{
			{Type: spec.ConditionDelivered, Status: metav1.ConditionFalse, Reason: spec.ReasonPending},
			{Type: spec.ConditionCompleted, Status: metav1.ConditionUnknown, Reason: spec.ReasonPending},
		}},
	}
}

func (f *fakeBackend) Turns() spec.TurnList {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := spec.TurnList{ListMeta: metav1.ListMeta{ResourceVersion: f.journals.Turns.Revision()}}
	for _, name := range slices.Sorted(maps.Keys(f.turns)) {
		all.Items = append(all.Items, *f.turns[name].DeepCopy())
	}
	return all
}

func (f *fakeBackend) Turn(name string) (spec.Turn, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if t, ok := f.turns[name]; ok {
		return *t.DeepCopy(), nil
	}
	return spec.Turn{}, NewTurnNotFound(name)
}

func (f *fakeBackend) CreateTurn(_ context.Context, t spec.Turn) (spec.Turn, bool, error) {
	if err := f.note("CreateTurn:", t.Spec.SessionName); err != nil {
		return spec.Turn{}, false, err
	}
	if _, err := f.Session(t.Spec.SessionName); err != nil {
		return spec.Turn{}, false, err
	}
	id := t.Annotations[spec.TurnRequestAnnotation]
	number := 1
	for _, known := range f.Turns().Items {
		if known.Spec.SessionName == t.Spec.SessionName {
			if id != "" && known.Annotations[spec.TurnRequestAnnotation] == id {
				return known, true, nil
			}
			number++
		}
	}
	made := pendingTurn(t.Spec.SessionName, number, t.Spec.Prompt)
	made.Annotations, made.Spec.Deadline = t.Annotations, t.Spec.Deadline
	f.putTurn(made)
	return *made.DeepCopy(), false, nil
}

func (f *fakeBackend) CancelTurn(_ context.Context, name string) (spec.Turn, error) {
	if err := f.note("CancelTurn:", name); err != nil {
		return spec.Turn{}, err
	}
	t, err := f.Turn(name)
	if err != nil {
		return t, err
	}
	meta.SetStatusCondition(&t.Status.Conditions, metav1.Condition{Type: spec.ConditionDelivered, Status: metav1.ConditionFalse, Reason: spec.ReasonCancelled})
	t.Status.FinishedAt = &metav1.Time{Time: epoch}
	f.putTurn(&t)
	return *t.DeepCopy(), nil
}

func (f *fakeBackend) DeleteTurn(_ context.Context, name string) error {
	if err := f.note("DeleteTurn:", name); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.turns, name)
	f.journals.Turns.Delete(name)
	return nil
}

func (f *fakeBackend) Answer(_ context.Context, name string, lines int) (string, error) {
	return "done: <b> & so on", f.note("Answer:", name, ":", lines)
}

func (f *fakeBackend) Attach(_ context.Context, name string) error { return f.note("Attach:", name) }

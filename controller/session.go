// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"bytes"
	"encoding/json"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muxlet/muxlet/controller/plan"
	"github.com/muxlet/muxlet/controller/record"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec"
)

// session is what the loop holds of one key. Its fields are written by the one
// worker that has the key, under the controller's lock; others read them under
// that lock.
type session struct {
	name string
	// rec is the record as it is on disk, and stored its encoding; rec.UID is empty
	// before there is one.
	rec    record.Record
	stored []byte
	status spec.SessionStatus
	// published is what those who watch were told last, from publishedSpec; nobody
	// changes it. Nil before the first time.
	published     *spec.Session
	publishedSpec *spec.SessionSpec
	// waits is true while what is served waits for a person.
	waits bool
	// created is when the session was first seen by this daemon, for one without a
	// record.
	created time.Time
	// notBefore is the oldest observation that will do; dueAt is when a timed look
	// was asked for.
	notBefore, dueAt, lastAct time.Time
	// wanted counts the changes of what the manifests want; judged is the count
	// that the published status rests on.
	wanted, judged int
	// rest is what the last pass found of a session at rest; nil for any other.
	rest *rest
	// seen is true once a decision rested on a known observation, observed once a pass did,
	// or said why there is nothing to look at. word is that of STATUS as it is served.
	seen, observed bool
	word           spec.Status
	// requests of people that were not applied yet; wake tells the worker of one while
	// it waits for tmux.
	requests []request
	wake     chan struct{}
	// watched are the processes whose death gives a hint.
	watched map[observe.Process]bool
	// scope of the present client that is watched; scopeTold is true once it was told that
	// one runs outside of one.
	scope     observe.Scope
	scopeTold bool
	// screen is what the last client showed last, for the death of screenOf; kept is
	// the screen that was saved.
	screen   []string
	screenOf time.Time
	kept     keptScreen
	// ensureFailure is why the workspace could not be made at the last start.
	ensureFailure plan.Verdict
	// startFailure is why tmux started nothing for the attempt startFailureOf.
	startFailure, startFailureOf string
	// inspected is the last finding about a workspace, of inspectedOf; missing says that
	// a start has to make it.
	inspected   plan.Workspace
	inspectedOf inspectedOf
	missing     bool
	// probe is a look at the cause of a block that has not come back.
	probe chan plan.Obstacle
	// telling is what the present client, or the last one, has told and shown; nil
	// before any has. reports wait for the worker.
	telling *telling
	reports []told
	// toldBefore is what the client before it has told of turns.
	toldBefore observe.Told
	// handOver is what came of the last act for a turn, answersDue how many of those who
	// wait for the turns to be saved this pass answers.
	handOver   plan.HandOver
	answersDue int
	// probing is what its liveness probe has said, and when it is due.
	probing probing
	// files are those of its client, while a turn is handed over.
	files aside[observe.Files]
	// evidence of the conversation; evidenceDue asks for another look.
	evidence    evidence
	evidenceDue bool
	// notFound says what the pane of the attempt notFoundOf has shown at its end.
	notFound   bool
	notFoundOf string
	// refusedID is the conversation of another session that the client has taken up, once
	// that was told.
	refusedID string
	// holder is a process without a mark that holds the lease, and since when.
	holder      observe.Process
	holderSince time.Time
	// unmade is why no record could be made.
	unmade plan.Verdict
	// hindered is the hindrance that keeps it down; empty when there is none.
	hindered plan.Verdict
	// asked is the reason of the question that waits for a person; empty when none does.
	asked string
	// rule and reason of the last decision that was logged.
	logged plan.Verdict
}

// inspectedOf is what a finding about a workspace is about: what the spec says, and
// the directory in which the client belongs.
type inspectedOf struct {
	spec.WorkspaceSpec
	primary string
}

// request of a person, and where its answer goes.
type request struct {
	kind   plan.Request
	answer chan plan.Refusal
}

func newSession(name string) *session {
	return &session{name: name, wake: make(chan struct{}, 1), watched: map[observe.Process]bool{}}
}

// hold makes r the record as it is on disk.
func (s *session) hold(r record.Record) {
	s.rec, s.stored = r, encode(r)
}

// changed says whether r differs from what is on disk.
func (s *session) changed(r record.Record) bool { return !bytes.Equal(s.stored, encode(r)) }

func encode(r record.Record) []byte {
	data, err := json.Marshal(r)
	if err != nil {
		// A record holds nothing that JSON cannot say; if it ever does, it differs
		// from whatever is on disk, and saving it tells the error.
		return nil
	}
	return data
}

// sessionObject is the session as a document, from its record.
func sessionObject(r record.Record) *spec.Session {
	o := &spec.Session{
		TypeMeta: metav1.TypeMeta{APIVersion: spec.GroupVersion.String(), Kind: spec.KindSession},
		ObjectMeta: metav1.ObjectMeta{
			Name: r.Name, Namespace: spec.Namespace, UID: types.UID(r.UID), Generation: r.Generation, Labels: r.Labels,
		},
	}
	if !r.CreatedAt.IsZero() {
		o.CreationTimestamp = metav1.NewTime(r.CreatedAt)
	}
	if r.Spec != nil {
		o.Spec = *r.Spec.DeepCopy()
	}
	return o
}

// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muxlet/muxlet/spec"
)

// reasonFinished is the word for work that has ended and that nobody has looked at.
const reasonFinished = "Finished"

// question is what a session wants of a person.
type question struct {
	// reason is one of spec's, or reasonFinished; empty when it wants nothing.
	reason, message string
	// since is zero when that is not known.
	since time.Time
}

// questionOf tells what a session waits for: the question, the failure, the work that is to
// be looked at, or what is in its way. A person who has looked at it is not asked again.
func questionOf(s *spec.Session) question {
	if !spec.WaitsForPerson(s) {
		return question{}
	}
	q := question{since: spec.WaitingSince(s)}
	asks := meta.FindStatusCondition(s.Status.Conditions, spec.ConditionInputRequired)
	stalled := meta.FindStatusCondition(s.Status.Conditions, spec.ConditionStalled)
	a := s.Status.Activity
	switch {
	case asks != nil && asks.Status == metav1.ConditionTrue:
		q.reason, q.message = asks.Reason, asks.Message
	case a != nil && a.Failure != "":
		q.reason, q.message = a.Failure, "its last turn has failed"
	case spec.AsksForAttention(s):
		q.reason, q.message = reasonFinished, "its work has ended, and nobody has looked at it yet"
	case stalled != nil:
		q.reason, q.message = stalled.Reason, stalled.Message
	}
	return q
}

// words are reason and age: PermissionRequired, 3m ago.
func (q question) words(now time.Time) string {
	if q.since.IsZero() {
		return q.reason
	}
	return fmt.Sprintf("%s, %s", q.reason, ago(metav1.NewTime(q.since), now))
}

var waitingColumns = []metav1.TableColumnDefinition{
	{Name: "Name", Type: "string", Format: "name"},
	{Name: "Class", Type: "string"},
	{Name: statusColumn, Type: "string"},
	{Name: "Waiting", Type: "string"},
	{Name: "Question", Type: "string"},
}

// sessionRows is the table that was asked for: with --waiting each question and its age.
func (o *getOptions) sessionRows(sessions []spec.Session, now time.Time) *metav1.Table {
	if !o.waiting || o.output == outputWide {
		return sessionTable(sessions, now)
	}
	table := &metav1.Table{ColumnDefinitions: waitingColumns}
	for i := range sessions {
		table.Rows = append(table.Rows, waitingRow(&sessions[i], now))
	}
	return table
}

func waitingRow(s *spec.Session, now time.Time) metav1.TableRow {
	q, text := questionOf(s), absent
	if q.reason != "" {
		text = q.reason + ": " + q.message
	}
	return metav1.TableRow{Cells: []any{
		s.Name, orAbsent(s.Spec.ClientClassName), string(spec.DisplayStatus(s)), age(metav1.NewTime(q.since), now), text,
	}}
}

// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/muxlet/muxlet/spec"
)

// absent stands in a cell that has no value.
const absent = "-"

// wideOnly is the priority of a column that -o wide alone shows.
const wideOnly = 1

// statusCell is the place of STATUS in a row.
const statusCell = 2

// The columns that have colours.
const (
	statusColumn = "Status"
	typeColumn   = "Type"
)

var sessionColumns = []metav1.TableColumnDefinition{
	{Name: "Name", Type: "string", Format: "name"},
	{Name: "Class", Type: "string"},
	{Name: statusColumn, Type: "string"},
	{Name: "Ready", Type: "string"},
	{Name: "Restarts", Type: "string"},
	{Name: "Activity", Type: "string"},
	{Name: "Age", Type: "string"},
	{Name: "Incarnation", Type: "integer", Priority: wideOnly},
	{Name: "Directory", Type: "string", Priority: wideOnly},
	{Name: "Conversation", Type: "string", Priority: wideOnly},
	{Name: "Pane", Type: "string", Priority: wideOnly},
	{Name: "Last Exit", Type: "string", Priority: wideOnly},
}

func sessionTable(sessions []spec.Session, now time.Time) *metav1.Table {
	table := &metav1.Table{ColumnDefinitions: sessionColumns}
	for i := range sessions {
		table.Rows = append(table.Rows, sessionRow(&sessions[i], now))
	}
	return table
}

func sessionRow(s *spec.Session, now time.Time) metav1.TableRow {
	client := s.Status.Client
	pane := absent
	if s.Status.Tmux != nil {
		pane = orAbsent(s.Status.Tmux.Pane)
	}
	return metav1.TableRow{Object: runtime.RawExtension{Object: s}, Cells: []any{
		s.Name,
		orAbsent(s.Spec.ClientClassName),
		string(spec.DisplayStatus(s)),
		readyWord(s),
		restarts(client, now),
		activityCell(s, now),
		age(s.CreationTimestamp, now),
		client.Incarnation,
		directory(s),
		conversationCell(s),
		pane,
		lastExit(client.LastTermination, now),
	}}
}

func orAbsent(text string) string {
	if text == "" {
		return absent
	}
	return text
}

// readyWord is True, False or Unknown.
func readyWord(s *spec.Session) string {
	ready := meta.FindStatusCondition(s.Status.Conditions, spec.ConditionReady)
	if ready == nil {
		return string(metav1.ConditionUnknown)
	}
	return string(ready.Status)
}

// activityCell is what the client does, what of that waits for a person and since when,
// and why its last turn has failed.
func activityCell(s *spec.Session, now time.Time) string {
	if !meta.IsStatusConditionTrue(s.Status.Conditions, spec.ConditionObserved) {
		return absent
	}
	a, q := s.Status.Activity, questionOf(s)
	if a == nil || a.State == spec.ActivityUnknown {
		if q.reason == "" {
			return absent
		}
		// It does nothing; that it comes first needs a reason all the same.
		return fmt.Sprintf("%s (%s)", absent, q.words(now))
	}
	asks := meta.FindStatusCondition(s.Status.Conditions, spec.ConditionInputRequired)
	switch {
	case q.reason != "":
		return fmt.Sprintf("%s (%s)", a.State, q.words(now))
	case asks != nil && asks.Status == metav1.ConditionTrue:
		return fmt.Sprintf("%s (%s)", a.State, asks.Reason)
	case a.Failure != "":
		return fmt.Sprintf("%s (%s)", a.State, a.Failure)
	}
	return string(a.State)
}

func conversationCell(s *spec.Session) string {
	if s.Status.Conversation == nil {
		return absent
	}
	return orAbsent(s.Status.Conversation.ID)
}

// restarts is 3 (2m ago): how many, and how long ago the last client ended.
func restarts(client spec.ClientStatus, now time.Time) string {
	if client.RestartCount == 0 || client.LastTermination == nil {
		return fmt.Sprint(client.RestartCount)
	}
	return fmt.Sprintf("%d (%s)", client.RestartCount, ago(client.LastTermination.FinishedAt, now))
}

func lastExit(t *spec.Termination, now time.Time) string {
	if t == nil {
		return absent
	}
	return fmt.Sprintf("%s (%s)", exitWord(t), ago(t.FinishedAt, now))
}

// exitWord is the shortest word for an end: the signal, the status, or the
// reason when neither was observed.
func exitWord(t *spec.Termination) string {
	switch {
	case t.Signal != "":
		return t.Signal
	case t.ExitCode != nil:
		return fmt.Sprintf("exit %d", *t.ExitCode)
	}
	return t.Reason
}

// directory is the one in use, or the one that is wanted.
func directory(s *spec.Session) string {
	if s.Status.Workspace.Path != "" {
		return s.Status.Workspace.Path
	}
	return orAbsent(s.Spec.Workspace.Directory)
}

// age is how long ago t was, in kubectl's words.
func age(t metav1.Time, now time.Time) string {
	if t.IsZero() {
		return absent
	}
	return duration.HumanDuration(max(0, now.Sub(t.Time)))
}

func ago(t metav1.Time, now time.Time) string {
	if t.IsZero() {
		return "at an unknown time"
	}
	return age(t, now) + " ago"
}

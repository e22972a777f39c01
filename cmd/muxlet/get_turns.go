// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/muxlet/muxlet/controller/server"
	"github.com/muxlet/muxlet/spec"
)

var turnColumns = []metav1.TableColumnDefinition{
	{Name: "Name", Type: "string", Format: "name"},
	{Name: "Session", Type: "string"},
	{Name: statusColumn, Type: "string"},
	{Name: "Reason", Type: "string"},
	{Name: "Age", Type: "string"},
	{Name: "Duration", Type: "string"},
	{Name: "Incarnation", Type: "integer", Priority: wideOnly},
	{Name: "Bytes", Type: "integer", Priority: wideOnly},
	{Name: "Retryable", Type: "string", Priority: wideOnly},
}

func turnTable(turns []spec.Turn, now time.Time) *metav1.Table {
	table := &metav1.Table{ColumnDefinitions: turnColumns}
	for i := range turns {
		table.Rows = append(table.Rows, turnRow(&turns[i], now))
	}
	return table
}

func turnRow(t *spec.Turn, now time.Time) metav1.TableRow {
	phase := spec.DisplayTurnStatus(t)
	reason, _ := turnReason(t)
	if reason == string(phase) {
		reason = ""
	}
	retryable := absent
	if phase == spec.TurnFailed {
		retryable = fmt.Sprint(t.Status.Retryable)
	}
	return metav1.TableRow{Object: runtime.RawExtension{Object: t}, Cells: []any{
		t.Name,
		t.Spec.SessionName,
		string(phase),
		orAbsent(reason),
		age(t.CreationTimestamp, now),
		turnDuration(t, now),
		t.Status.Incarnation,
		t.Status.PromptBytes,
		retryable,
	}}
}

// turnDuration is how long the client has, or had, the turn.
func turnDuration(t *spec.Turn, now time.Time) string {
	if t.Status.HandedAt == nil {
		return absent
	}
	if t.Status.FinishedAt != nil {
		now = t.Status.FinishedAt.Time
	}
	return duration.HumanDuration(max(0, now.Sub(t.Status.HandedAt.Time)))
}

// turns lists turns, by session and in the order in which they were sent.
func (o *getOptions) turns(ctx context.Context, client *server.Client, names []string) error {
	found, failed := o.findTurns(ctx, client, names)
	if len(found) == 0 && (o.tabular() || len(names) > 0) {
		if failed == nil {
			o.sayNoTurns()
		}
		return failed
	}
	if failed != nil && len(names) == 0 {
		return failed
	}
	if err := sortObjects(found, o.sortBy, turnOrder); err != nil {
		return err
	}
	if !o.tabular() {
		if err := o.print(turnObjects(found), len(names) != 1); err != nil {
			return err
		}
		return failed
	}
	if err := o.table(turnTable(found, o.now())); err != nil {
		return err
	}
	return failed
}

func (o *getOptions) sayNoTurns() {
	switch {
	case o.selector != "":
		o.complain("No turns found: none matches the selector %s.", o.selector)
	case o.session != "":
		o.complain("No turns found: none of session %q is kept.", o.session)
	default:
		o.complain("No turns found: \"muxlet send\" sends one.")
	}
}

// findTurns gives the turns that are asked for, and an error for each name that does not
// exist.
func (o *getOptions) findTurns(ctx context.Context, client *server.Client, names []string) ([]spec.Turn, error) {
	session, err := o.turnSession()
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		list, err := client.Turns(ctx, o.selector, server.TurnsOf(session))
		return list.Items, err
	}
	var found []spec.Turn
	failed := o.each(names, func(name string) error {
		turn, err := client.Turn(ctx, name)
		if err == nil && (session == "" || turn.Spec.SessionName == session) {
			found = append(found, *turn)
		}
		return err
	})
	return found, failed
}

// turnSession is the session that --session names.
func (o *getOptions) turnSession() (string, error) {
	if o.session == "" {
		return "", nil
	}
	names, err := sessionNames([]string{o.session})
	if err != nil {
		return "", err
	}
	return names[0], nil
}

func turnObjects(turns []spec.Turn) []runtime.Object {
	all := make([]runtime.Object, 0, len(turns))
	for i := range turns {
		all = append(all, &turns[i])
	}
	return all
}

// turnFeed prints turns, each row once as long as nothing but its ages is another.
type turnFeed struct {
	*feed
	names []string
	// shown is the last row of each turn, in the words of when it was sent.
	shown map[string]string
}

// followTurns prints the turns, and then each that is new or changes.
func (o *getOptions) followTurns(ctx context.Context, client *server.Client, names []string) error {
	session, err := o.turnSession()
	if err != nil {
		return err
	}
	f, err := o.newFeed()
	if err != nil {
		return err
	}
	w := &turnFeed{feed: f, names: names, shown: map[string]string{}}
	fields := server.TurnsOf(session)
	if len(names) == 1 && session == "" {
		fields = nameSelector("metadata.name", names)
	}
	return o.over(ctx, client.FollowTurns(ctx, o.selector, fields, server.Follower[spec.Turn]{
		Listed: w.listed, Changed: w.changed, Lost: o.lost, Back: o.back,
	}))
}

func (w *turnFeed) wants(t *spec.Turn) bool {
	return len(w.names) == 0 || slices.Contains(w.names, t.Name)
}

// listed prints what is there at the beginning. One that was named and is not there is an
// error.
func (w *turnFeed) listed(all []spec.Turn) error {
	err := w.each(w.names, func(name string) error {
		if slices.ContainsFunc(all, func(t spec.Turn) bool { return t.Name == name }) {
			return nil
		}
		return server.NewTurnNotFound(name)
	})
	if err != nil {
		return err
	}
	wanted := slices.DeleteFunc(slices.Clone(all), func(t spec.Turn) bool { return !w.wants(&t) })
	if err := sortObjects(wanted, w.sortBy, turnOrder); err != nil {
		return err
	}
	for i := range wanted {
		w.shown[wanted[i].Name] = rowOfTurn(&wanted[i])
	}
	if w.watchOnly || len(wanted) == 0 {
		return nil
	}
	if w.rows != nil {
		return w.write(watch.Added, nil, turnTable(wanted, w.now()))
	}
	for i := range wanted {
		if err := w.write(watch.Added, &wanted[i], nil); err != nil {
			return err
		}
	}
	return nil
}

func rowOfTurn(t *spec.Turn) string {
	return fmt.Sprint(string(t.UID), turnRow(t, t.CreationTimestamp.Time).Cells)
}

func (w *turnFeed) changed(kind watch.EventType, t *spec.Turn) error {
	row := rowOfTurn(t)
	if !w.wants(t) || kind != watch.Deleted && w.rows != nil && w.shown[t.Name] == row {
		return nil
	}
	w.shown[t.Name] = row
	table := turnTable([]spec.Turn{*t}, w.now())
	if kind == watch.Deleted {
		delete(w.shown, t.Name)
		table.Rows[0].Cells[statusCell] = deletedWord
	}
	return w.write(kind, t, table)
}

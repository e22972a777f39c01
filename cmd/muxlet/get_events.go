// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/muxlet/muxlet/controller/server"
)

var eventColumns = []metav1.TableColumnDefinition{
	{Name: "Last Seen", Type: "string"},
	{Name: typeColumn, Type: "string"},
	{Name: "Reason", Type: "string"},
	{Name: "Object", Type: "string"},
	{Name: "Count", Type: "integer", Priority: wideOnly},
	{Name: "Message", Type: "string"},
}

// eventTypes are the words of --types.
var eventTypes = []string{corev1.EventTypeNormal, corev1.EventTypeWarning}

// events lists the events about the named sessions, or all of them. Events stay
// when their session is gone, so an unknown name is no error.
func (o *getOptions) events(ctx context.Context, client *server.Client, names []string) error {
	events, err := eventsOf(ctx, client, names)
	if err != nil {
		return err
	}
	if events, err = o.selected(events, names); err != nil {
		return err
	}
	if !o.tabular() {
		all := make([]runtime.Object, 0, len(events))
		for i := range events {
			all = append(all, &events[i])
		}
		return o.print(all, true)
	}
	if len(events) == 0 {
		o.complain("No events found%s.", about(names))
		return nil
	}
	return o.table(eventTable(events, o.now()))
}

func about(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return " about " + strings.Join(names, ", ")
}

// selected applies the flags to events: those about the names, of the types, with
// the labels, in the order that is asked for; else the oldest first.
func (o *getOptions) selected(events []corev1.Event, names []string) ([]corev1.Event, error) {
	selector, err := labels.Parse(o.selector)
	if err != nil {
		return nil, fmt.Errorf("parse the selector: %w", err)
	}
	events = slices.DeleteFunc(events, func(e corev1.Event) bool {
		return !selector.Matches(labels.Set(e.Labels)) ||
			len(names) > 0 && !slices.Contains(names, e.InvolvedObject.Name) ||
			len(o.types) > 0 && !slices.ContainsFunc(o.types, func(word string) bool { return strings.EqualFold(word, e.Type) })
	})
	return events, sortObjects(events, o.sortBy, eventOrder)
}

// eventsOf are the events about the named sessions, oldest first.
func eventsOf(ctx context.Context, client *server.Client, names []string) ([]corev1.Event, error) {
	if len(names) == 0 {
		names = []string{""}
	}
	var all []corev1.Event
	for _, name := range names {
		list, err := client.Events(ctx, name)
		if err != nil {
			return nil, err
		}
		all = append(all, list.Items...)
	}
	slices.SortStableFunc(all, func(a, b corev1.Event) int { return lastSeen(&a).Compare(lastSeen(&b).Time) })
	return all, nil
}

func lastSeen(e *corev1.Event) metav1.Time {
	switch {
	case !e.LastTimestamp.IsZero():
		return e.LastTimestamp
	case !e.EventTime.IsZero():
		return metav1.NewTime(e.EventTime.Time)
	case !e.FirstTimestamp.IsZero():
		return e.FirstTimestamp
	}
	return e.CreationTimestamp
}

func eventTable(events []corev1.Event, now time.Time) *metav1.Table {
	table := &metav1.Table{ColumnDefinitions: eventColumns}
	for i := range events {
		e := &events[i]
		table.Rows = append(table.Rows, metav1.TableRow{Object: runtime.RawExtension{Object: e}, Cells: []any{
			lastSeenWord(e, now),
			e.Type,
			e.Reason,
			objectWord(e),
			max(1, e.Count),
			strings.TrimSpace(e.Message),
		}})
	}
	return table
}

// lastSeenWord is 2m, or 2m (x3 over 1h) for an event that came again.
func lastSeenWord(e *corev1.Event, now time.Time) string {
	last := age(lastSeen(e), now)
	if e.Count <= 1 || e.FirstTimestamp.IsZero() {
		return last
	}
	return fmt.Sprintf("%s (x%d over %s)", last, e.Count, age(e.FirstTimestamp, now))
}

func objectWord(e *corev1.Event) string {
	if e.InvolvedObject.Name == "" {
		return absent
	}
	return strings.ToLower(e.InvolvedObject.Kind) + "/" + e.InvolvedObject.Name
}

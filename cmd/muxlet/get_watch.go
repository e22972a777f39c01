// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/yaml"

	"github.com/muxlet/muxlet/controller/server"
	"github.com/muxlet/muxlet/spec"
)

// deletedWord stands in the STATUS of a session that is gone.
const deletedWord = "Deleted"

// feed prints objects as they change: rows of one table, or one object after
// another for a program.
type feed struct {
	*getOptions
	rows    *tablePrinter
	objects printers.ResourcePrinter
}

func (o *getOptions) newFeed() (*feed, error) {
	f := &feed{getOptions: o}
	if o.tabular() {
		f.rows = o.tablePrinter()
		return f, nil
	}
	printer, err := o.objectPrinter()
	f.objects = printer
	return f, err
}

// write prints one object, as a row of table or as it is.
func (f *feed) write(kind watch.EventType, object runtime.Object, table *metav1.Table) error {
	if f.rows == nil {
		return f.writeObject(kind, object)
	}
	if f.watchEvents {
		table.ColumnDefinitions = append([]metav1.TableColumnDefinition{{Name: "Event", Type: "string"}}, table.ColumnDefinitions...)
		for i := range table.Rows {
			table.Rows[i].Cells = append([]any{string(kind)}, table.Rows[i].Cells...)
		}
	}
	return f.rows.print(table)
}

func (f *feed) writeObject(kind watch.EventType, object runtime.Object) error {
	if f.watchEvents && (f.output == outputJSON || f.output == outputYAML) {
		return f.writeEvent(metav1.WatchEvent{Type: string(kind), Object: runtime.RawExtension{Object: object}})
	}
	if err := f.printObject(f.objects, object); err != nil {
		return err
	}
	if _, ok := f.objects.(*pathPrinter); ok {
		return f.say("")
	}
	return nil
}

// writeEvent prints what happened to an object, and the object.
func (f *feed) writeEvent(event metav1.WatchEvent) error {
	data, err := json.MarshalIndent(event, "", "    ")
	if err == nil && f.output == outputYAML {
		data, err = yaml.JSONToYAML(data)
		data = append([]byte("---\n"), bytes.TrimSpace(data)...)
	}
	if err != nil {
		return fmt.Errorf("encode the event: %w", err)
	}
	if _, err := f.out.Write(append(data, '\n')); err != nil {
		return fmt.Errorf("write the answer: %w", err)
	}
	return nil
}

// over is the end of a watch that a person ended: as it should.
func (g *globals) over(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil
	}
	return err
}

// lost and back tell a person why nothing comes. kubectl ends here; a daemon that
// is being restarted is back in a moment, and what was missed is told then.
func (g *globals) lost(err error) {
	g.complain("The daemon does not answer any more; waiting for it. (%v)", err)
}

func (g *globals) back() { g.complain("The daemon answers again.") }

// followSessions prints the sessions, and then each that changes.
func (o *getOptions) followSessions(ctx context.Context, client *server.Client, names []string) error {
	f, err := o.newFeed()
	if err != nil {
		return err
	}
	s := &sessionFeed{feed: f, names: names, shown: map[string]string{}}
	s.look = func(name string) (*spec.Session, error) { return client.Session(ctx, name) }
	return o.over(ctx, client.FollowSessions(ctx, o.selector, nameSelector("metadata.name", names), server.Follower[spec.Session]{
		Listed:  func(all []spec.Session) error { return s.listed(ctx, client, all) },
		Changed: s.changed, Lost: o.lost, Back: o.back,
	}))
}

// nameSelector lets the daemon select one name. Several are picked out here.
func nameSelector(field string, names []string) string {
	if len(names) != 1 {
		return ""
	}
	return fields.OneTermEqualSelector(field, names[0]).String()
}

// sessionFeed prints sessions, each row once as long as nothing but its ages is
// another.
type sessionFeed struct {
	*feed
	names []string
	// shown is the last row of each session, in the words of when it began.
	shown map[string]string
	// look asks for one session.
	look func(name string) (*spec.Session, error)
}

func (s *sessionFeed) wants(session *spec.Session) bool {
	return (len(s.names) == 0 || slices.Contains(s.names, session.Name)) && (!s.waiting || spec.WaitsForPerson(session))
}

// listed prints what is there at the beginning.
func (s *sessionFeed) listed(ctx context.Context, client *server.Client, all []spec.Session) error {
	if err := s.missing(all); err != nil {
		return err
	}
	wanted := slices.DeleteFunc(slices.Clone(all), func(session spec.Session) bool { return !s.wants(&session) })
	if err := s.sortSessions(wanted); err != nil {
		return err
	}
	for i := range wanted {
		s.shown[wanted[i].Name] = s.row(&wanted[i])
	}
	if s.watchOnly {
		return nil
	}
	if len(wanted) == 0 && s.rows != nil {
		status, err := client.Status(ctx)
		if err == nil {
			s.sayNothingFound(status, len(all))
		}
		return nil
	}
	if s.rows != nil {
		return s.write(watch.Added, nil, s.sessionRows(wanted, s.now()))
	}
	for i := range wanted {
		if err := s.write(watch.Added, &wanted[i], nil); err != nil {
			return err
		}
	}
	return nil
}

// missing is an error when a session that was named is not there.
func (s *sessionFeed) missing(all []spec.Session) error {
	return s.each(s.names, func(name string) error {
		if slices.ContainsFunc(all, func(session spec.Session) bool { return session.Name == name }) {
			return nil
		}
		return server.NewNotFound(name)
	})
}

func (s *sessionFeed) row(session *spec.Session) string {
	return fmt.Sprint(string(session.UID), sessionRow(session, session.CreationTimestamp.Time).Cells)
}

func (s *sessionFeed) changed(kind watch.EventType, session *spec.Session) error {
	row := s.row(session)
	_, before := s.shown[session.Name]
	same := s.shown[session.Name] == row && s.rows != nil
	wanted := s.wants(session) && kind != watch.Deleted
	switch {
	case !wanted && !before, wanted && same:
		return nil
	case !wanted:
		delete(s.shown, session.Name)
		return s.left(kind, session)
	default:
		s.shown[session.Name] = row
	}
	return s.write(kind, session, s.sessionRows([]spec.Session{*session}, s.now()))
}

// left prints a session for the last time. Watched through a selection, one that
// is no longer selected looks as one that is gone: only what is gone is called so.
func (s *sessionFeed) left(kind watch.EventType, session *spec.Session) error {
	gone := kind == watch.Deleted
	if gone && s.selector != "" {
		now, err := s.look(session.Name)
		gone = server.ReasonOf(err) == server.ReasonNotFound || err == nil && now.UID != session.UID
		if err == nil && !gone {
			session = now
		}
	}
	table := s.sessionRows([]spec.Session{*session}, s.now())
	if gone {
		table.Rows[0].Cells[statusCell] = deletedWord
	}
	return s.write(watch.Deleted, session, table)
}

// followEvents prints the events, and then each that is new or came again.
func (o *getOptions) followEvents(ctx context.Context, client *server.Client, names []string) error {
	f, err := o.newFeed()
	if err != nil {
		return err
	}
	return o.over(ctx, client.FollowEvents(ctx, nameSelector("involvedObject.name", names), server.Follower[corev1.Event]{
		Listed: func(all []corev1.Event) error {
			if o.watchOnly {
				return nil
			}
			events, err := o.selected(all, names)
			if err != nil {
				return err
			}
			return f.writeEvents(watch.Added, events)
		},
		Changed: func(kind watch.EventType, e *corev1.Event) error {
			// One that is let go is no news.
			if kind == watch.Deleted {
				return nil
			}
			events, err := o.selected([]corev1.Event{*e}, names)
			if err != nil {
				return err
			}
			return f.writeEvents(kind, events)
		},
		Lost: o.lost, Back: o.back,
	}))
}

func (f *feed) writeEvents(kind watch.EventType, events []corev1.Event) error {
	if len(events) == 0 {
		return nil
	}
	if f.rows != nil {
		return f.write(kind, nil, eventTable(events, f.now()))
	}
	for i := range events {
		if err := f.write(kind, &events[i], nil); err != nil {
			return err
		}
	}
	return nil
}

// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/muxlet/muxlet/controller/server"
	"github.com/muxlet/muxlet/spec"
)

var classColumns = []metav1.TableColumnDefinition{
	{Name: "Name", Type: "string", Format: "name"},
	{Name: "Identity", Type: "string"},
	{Name: "Reports", Type: "string"},
	{Name: "BuiltIn", Type: "boolean"},
	{Name: "Sessions", Type: "integer"},
	{Name: "Age", Type: "string"},
	{Name: "Command", Type: "string", Priority: wideOnly},
	{Name: "Source", Type: "string", Priority: wideOnly},
}

func classTable(classes []spec.ClientClass, now time.Time) *metav1.Table {
	table := &metav1.Table{ColumnDefinitions: classColumns}
	for i := range classes {
		c := &classes[i]
		command := absent
		if len(c.Spec.Start.Command) > 0 {
			command = c.Spec.Start.Command[0]
		}
		table.Rows = append(table.Rows, metav1.TableRow{Object: runtime.RawExtension{Object: c}, Cells: []any{
			c.Name,
			orAbsent(string(c.Spec.Conversation.Identity)),
			orAbsent(string(c.Spec.Reports)),
			c.Status.BuiltIn,
			c.Status.Sessions,
			age(c.CreationTimestamp, now),
			command,
			sourceWord(c.Status.Source),
		}})
	}
	return table
}

// sourceWord is where the document is, and what is wrong with it.
func sourceWord(s *spec.SourceStatus) string {
	switch {
	case s == nil:
		return absent
	case s.Error != "":
		return s.File + " (invalid)"
	case s.Held != "":
		return s.File + " (held)"
	case s.Line > 0:
		return fmt.Sprintf("%s:%d", s.File, s.Line)
	}
	return s.File
}

// classes lists client classes.
func (o *getOptions) classes(ctx context.Context, client *server.Client, names []string) error {
	found, failed := o.findClasses(ctx, client, names)
	if len(found) == 0 {
		if failed == nil && o.tabular() {
			o.complain("No client classes found: none matches the selector %s.", o.selector)
		}
		return failed
	}
	if err := sortObjects(found, o.sortBy, classOrder); err != nil {
		return err
	}
	if !o.tabular() {
		if err := o.print(classObjects(found), len(names) != 1); err != nil {
			return err
		}
		return failed
	}
	if err := o.table(classTable(found, o.now())); err != nil {
		return err
	}
	for i := range found {
		o.classFooter(&found[i])
	}
	return failed
}

// classFooter says why a document is not in force as it stands.
func (o *getOptions) classFooter(c *spec.ClientClass) {
	if s := c.Status.Source; s != nil && s.Error+s.Held != "" {
		o.complain("%s: %s", c.Name, strings.TrimSpace(s.Error+s.Held))
	}
}

// findClasses gives the classes that are asked for, and an error for each name that
// does not exist.
func (o *getOptions) findClasses(ctx context.Context, client *server.Client, names []string) ([]spec.ClientClass, error) {
	if len(names) == 0 {
		list, err := client.Classes(ctx, o.selector)
		return list.Items, err
	}
	var found []spec.ClientClass
	failed := o.each(names, func(name string) error {
		class, err := client.Class(ctx, name)
		if err == nil {
			found = append(found, *class)
		}
		return err
	})
	return found, failed
}

func classObjects(classes []spec.ClientClass) []runtime.Object {
	all := make([]runtime.Object, 0, len(classes))
	for i := range classes {
		all = append(all, &classes[i])
	}
	return all
}

// followClasses prints the client classes, and then each that changes.
func (o *getOptions) followClasses(ctx context.Context, client *server.Client, names []string) error {
	f, err := o.newFeed()
	if err != nil {
		return err
	}
	wants := func(c *spec.ClientClass) bool { return len(names) == 0 || slices.Contains(names, c.Name) }
	return o.over(ctx, client.FollowClasses(ctx, o.selector, nameSelector("metadata.name", names), server.Follower[spec.ClientClass]{
		Listed: func(all []spec.ClientClass) error {
			if err := f.missingClasses(names, all); err != nil || o.watchOnly {
				return err
			}
			all = slices.DeleteFunc(all, func(c spec.ClientClass) bool { return !wants(&c) })
			if err := sortObjects(all, o.sortBy, classOrder); err != nil {
				return err
			}
			return f.writeClasses(watch.Added, all)
		},
		Changed: func(kind watch.EventType, c *spec.ClientClass) error {
			if !wants(c) {
				return nil
			}
			return f.writeClasses(kind, []spec.ClientClass{*c})
		},
		Lost: o.lost, Back: o.back,
	}))
}

// missingClasses is an error when a class that was named is not there.
func (f *feed) missingClasses(names []string, all []spec.ClientClass) error {
	return f.each(names, func(name string) error {
		if slices.ContainsFunc(all, func(c spec.ClientClass) bool { return c.Name == name }) {
			return nil
		}
		return server.NewClassNotFound(name)
	})
}

func (f *feed) writeClasses(kind watch.EventType, classes []spec.ClientClass) error {
	if len(classes) == 0 {
		return nil
	}
	if f.rows != nil {
		return f.write(kind, nil, classTable(classes, f.now()))
	}
	for i := range classes {
		if err := f.write(kind, &classes[i], nil); err != nil {
			return err
		}
	}
	return nil
}

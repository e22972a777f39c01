// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/muxlet/muxlet/spec"
)

func (d *description) client() {
	c, declared := d.Status.Client, d.Spec.Client
	d.section("Client")
	d.sub("Incarnation", "%s", incarnation(c.Incarnation))
	switch {
	case c.Pid == 0 && d.status == spec.StatusUnknown:
		d.sub("Pid", "not known")
	case c.Pid == 0:
		d.sub("Pid", "none")
	default:
		d.sub("Pid", "%d", c.Pid)
		if c.StartedAt != nil {
			d.sub("Since", "%s (%s)", ago(*c.StartedAt, d.now), stamp(*c.StartedAt))
		}
	}
	d.sub("Restarts", "%d", c.RestartCount)
	d.sub("Last exit", "%s", termination(d, c.LastTermination))
	d.sub("Survivors", "%s", survivors(c.Survivors))
	d.sub("Command", "%s", shellWords(append(append([]string{}, declared.Command...), declared.Args...)))
	d.sub("Environment", "%s", environment(declared.Env))
	d.sub("Env files", "%s", envFiles(declared.EnvFrom))
	d.sub("Shell mode", "%s", declared.ShellMode)
}

func incarnation(n int64) string {
	if n == 0 {
		return "none yet"
	}
	return strconv.FormatInt(n, 10)
}

// stamp is a moment as the API writes it.
func stamp(t metav1.Time) string { return t.UTC().Format("2006-01-02T15:04:05Z") }

// termination is how and when the last client ended.
func termination(d *description, t *spec.Termination) string {
	if t == nil {
		return ""
	}
	when := fmt.Sprintf("%s (%s)", ago(t.FinishedAt, d.now), stamp(t.FinishedAt))
	if t.Incarnation == 0 {
		return fmt.Sprintf("an attempt that did not get to run the client, reason %s, %s", t.Reason, when)
	}
	what := "not observed"
	switch {
	case t.Signal != "" && t.ExitCode != nil:
		what = fmt.Sprintf("%s (exit code %d)", t.Signal, *t.ExitCode)
	case t.Signal != "":
		what = t.Signal
	case t.ExitCode != nil:
		what = fmt.Sprintf("exit code %d", *t.ExitCode)
	}
	line := fmt.Sprintf("%s, reason %s, incarnation %d, %s", what, t.Reason, t.Incarnation, when)
	if t.Message != "" {
		line += "\n" + t.Message
	}
	return line
}

func survivors(pids []int) string {
	var words []string
	for _, pid := range pids {
		words = append(words, strconv.Itoa(pid))
	}
	if len(words) == 0 {
		return ""
	}
	return strings.Join(words, ", ") + " (processes that a restart left running)"
}

// environment has the names of the variables and where each value comes from,
// never a value.
func environment(env []spec.EnvVar) string {
	var words []string
	for _, variable := range env {
		words = append(words, variable.Name+" ("+origin(variable)+")")
	}
	if len(words) == 0 {
		return ""
	}
	return strings.Join(words, ", ") + "\n" + "these win over env files, and both over the shell's profile"
}

func origin(variable spec.EnvVar) string {
	from := "value"
	if source := variable.ValueFrom; source != nil && source.FileRef != nil {
		from = "from " + source.FileRef.Path
		if source.FileRef.Optional {
			from += ", optional"
		}
	}
	if variable.Name == "PATH" {
		from += "; the program is looked for in it"
	}
	return from
}

func envFiles(sources []spec.EnvFromSource) string {
	var words []string
	for _, s := range sources {
		switch {
		case s.FileRef == nil:
		case s.FileRef.Optional:
			words = append(words, s.FileRef.Path+" (optional)")
		default:
			words = append(words, s.FileRef.Path)
		}
	}
	return strings.Join(words, ", ")
}

func (d *description) workspace() {
	d.section("Workspace")
	d.sub("Directory", "%s", directory(d.Session))
	d.sub("Type", "%s", d.Spec.Workspace.Type)
}

func (d *description) tmux() {
	t := d.Status.Tmux
	if t == nil {
		return
	}
	d.section("tmux")
	d.sub("Socket", "%s", t.Socket)
	d.sub("Session", "%s", t.Session)
	d.sub("Pane", "%s", t.Pane)
	d.sub("Attached", "%d", t.Attached)
	d.sub("By hand", "%s", shellWords(append([]string{"tmux"}, attachArgs(t.Socket, t.Pane)...)))
}

func (d *description) conditions() {
	d.listConditions(spec.ConditionTypes, d.Status.Conditions)
}

// listConditions writes the conditions of the types.
func (d *sheet) listConditions(kinds []string, all []metav1.Condition) {
	d.section("Conditions")
	table := &metav1.Table{ColumnDefinitions: []metav1.TableColumnDefinition{
		{Name: "Type"}, {Name: "Status"}, {Name: "Reason"}, {Name: "Age"}, {Name: "Message"},
	}}
	for _, kind := range kinds {
		c := meta.FindStatusCondition(all, kind)
		if c == nil {
			c = &metav1.Condition{Type: kind, Status: metav1.ConditionUnknown, Reason: spec.ReasonNotYetObserved}
		}
		table.Rows = append(table.Rows, metav1.TableRow{Cells: []any{
			c.Type, string(c.Status), c.Reason, age(c.LastTransitionTime, d.now), c.Message,
		}})
	}
	d.table(table)
}

// table writes a table, indented.
func (d *sheet) table(table *metav1.Table) {
	var buffer bytes.Buffer
	if err := printers.NewTablePrinter(printers.PrintOptions{}).PrintObj(table, &buffer); err != nil {
		fmt.Fprintf(&buffer, "(cannot be printed: %v)\n", err)
	}
	for line := range strings.Lines(buffer.String()) {
		d.write("  %s\n", strings.TrimRight(line, " \n"))
	}
}

func (d *description) evidence() {
	e := d.Status.Evidence
	if e == nil {
		return
	}
	d.section("Evidence")
	if e.ObservedAt.IsZero() {
		d.sub("Observed", "never since the daemon started")
	} else {
		d.sub("Observed", "%s (%s)", ago(e.ObservedAt, d.now), stamp(e.ObservedAt))
	}
	d.sub("Pane", "%s", e.Pane)
	d.sub("Process", "%s", e.Process)
	d.sub("Seen", "%s", e.Message)
}

func (d *description) decision() {
	decision := d.Status.Decision
	if decision == nil {
		return
	}
	action := decision.Action
	if action == "" {
		action = "none"
	}
	d.section("Last decision")
	d.sub("Made", "%s", ago(decision.At, d.now))
	d.sub("Rule", "%s", decision.Rule)
	d.sub("Action", "%s", action)
	d.sub("Reason", "%s", strings.TrimSuffix(decision.Reason+": "+decision.Message, ": "))
}

func (d *description) lastScreen() {
	if len(d.screen) == 0 {
		return
	}
	d.section("Last screen")
	for _, line := range d.screen {
		d.write("  | %s\n", harmless(strings.TrimRight(line, " ")))
	}
}

// describedEvents is how many events a description shows, the latest.
const describedEvents = 20

func (d *description) listEvents() {
	if len(d.events) == 0 {
		d.field("Events", "none")
		return
	}
	d.section("Events")
	table := &metav1.Table{ColumnDefinitions: []metav1.TableColumnDefinition{
		{Name: "Last Seen"}, {Name: "Type"}, {Name: "Reason"}, {Name: "Message"},
	}}
	latest := d.events[max(0, len(d.events)-describedEvents):]
	for i := range latest {
		e := &latest[i]
		table.Rows = append(table.Rows, metav1.TableRow{Cells: []any{lastSeenWord(e, d.now), e.Type, e.Reason, strings.TrimSpace(e.Message)}})
	}
	d.table(table)
}

// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muxlet/muxlet/spec"
)

var topColumns = []metav1.TableColumnDefinition{
	{Name: "NAME", Type: "string", Format: "name"},
	{Name: "CPU(cores)", Type: "string"},
	{Name: "MEMORY(bytes)", Type: "string"},
	{Name: "PROCESSES", Type: "integer"},
}

// clearScreen puts the cursor into the upper left corner of an empty screen.
const clearScreen = "\x1b[H\x1b[2J"

// show prints one table, or one object for a program.
func (o *topOptions) show(all *uses) error {
	if o.output == outputJSON {
		return o.showJSON(all)
	}
	if o.watch && o.screen != nil && o.screen() {
		if _, err := fmt.Fprint(o.out, clearScreen); err != nil {
			return fmt.Errorf("write the answer: %w", err)
		}
	}
	if len(all.sessions) == 0 {
		o.complain("No session has a process.")
	}
	table := topTable(all)
	if len(table.Rows) == 0 {
		return nil
	}
	printer := &tablePrinter{out: o.out, noHeaders: o.noHeaders, verbatim: true}
	if err := printer.print(table); err != nil || !o.watch {
		return err
	}
	if o.screen != nil && o.screen() {
		return nil
	}
	return o.say("")
}

func topTable(all *uses) *metav1.Table {
	table := &metav1.Table{ColumnDefinitions: topColumns}
	sum := use{name: "TOTAL"}
	for _, group := range [][]use{all.sessions, all.others} {
		for _, u := range group {
			table.Rows = append(table.Rows, topRow(u))
			sum.cpu += u.cpu
			sum.memory += u.memory
			sum.processes = append(sum.processes, u.processes...)
		}
	}
	if len(table.Rows) > 1 {
		table.Rows = append(table.Rows, topRow(sum))
	}
	return table
}

func topRow(u use) metav1.TableRow {
	return metav1.TableRow{Cells: []any{u.name, millicores(u.cpu), fmt.Sprintf("%dMi", u.memory>>20), len(u.processes)}}
}

// millicores is 250m for a quarter of one processor.
func millicores(each time.Duration) string {
	return fmt.Sprintf("%dm", each.Round(time.Millisecond).Milliseconds())
}

// metricsList is what top prints for a program, in the shape of metrics.k8s.io.
type metricsList struct {
	metav1.TypeMeta `json:",inline"`
	Items           []metrics `json:"items"`
	Daemon          *metrics  `json:"daemon,omitempty"`
	TmuxServer      *metrics  `json:"tmuxServer,omitempty"`
}

type metrics struct {
	Metadata  *metricsMeta     `json:"metadata,omitempty"`
	Timestamp metav1.Time      `json:"timestamp"`
	Window    metav1.Duration  `json:"window"`
	Usage     usage            `json:"usage"`
	Processes []processMetrics `json:"processes"`
}

type metricsMeta struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
}

// usage are quantities of Kubernetes.
type usage struct {
	CPU    string `json:"cpu,omitempty"`
	Memory string `json:"memory"`
}

type processMetrics struct {
	PID     int    `json:"pid"`
	Command string `json:"command"`
	Usage   usage  `json:"usage"`
}

func (o *topOptions) showJSON(all *uses) error {
	list := metricsList{TypeMeta: metav1.TypeMeta{APIVersion: spec.GroupVersion.String(), Kind: "SessionMetricsList"}, Items: []metrics{}}
	for _, u := range all.sessions {
		m := o.metrics(all, u)
		m.Metadata = &metricsMeta{u.name, spec.Namespace}
		list.Items = append(list.Items, m)
	}
	for _, u := range all.others {
		m := o.metrics(all, u)
		if u.name == daemonRow {
			list.Daemon = &m
		} else {
			list.TmuxServer = &m
		}
	}
	encoder := json.NewEncoder(o.out)
	encoder.SetIndent("", "    ")
	if err := encoder.Encode(list); err != nil {
		return fmt.Errorf("print as json: %w", err)
	}
	return nil
}

func (o *topOptions) metrics(all *uses, u use) metrics {
	m := metrics{
		Timestamp: metav1.NewTime(all.at), Window: metav1.Duration{Duration: o.interval},
		Usage: usage{millicores(u.cpu), kibi(u.memory)}, Processes: []processMetrics{},
	}
	for _, p := range u.processes {
		m.Processes = append(m.Processes, processMetrics{p.pid, p.command, usage{Memory: kibi(p.memory)}})
	}
	return m
}

func kibi(bytes int64) string { return fmt.Sprintf("%dKi", bytes>>10) }

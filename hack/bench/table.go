// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"time"
)

// row of the table.
type row struct {
	what, value string
	// beside has the floors, each with how many times as much muxlet takes.
	beside []string
	// goal is the budget; empty where there is none.
	goal string
	// miss is the factor by which the goal is missed; 0 when it is not.
	miss float64
}

type table struct{ rows []row }

func (t *table) add(r row) {
	t.rows = append(t.rows, r)
	fmt.Fprintf(os.Stderr, "%s: %s; %s\n", r.what, r.value, strings.Join(r.beside, "; "))
}

// begin and end are the markers around a table in a file.
const begin, end = "<!-- begin of the benchmark's table: make bench README=1 -->", "<!-- end of the benchmark's table -->"

func (t *table) markdown(machine string) string {
	var text strings.Builder
	text.WriteString("| measured | muxlet | goal | beside it, in the same run |\n|---|---|---|---|\n")
	for _, r := range t.rows {
		fmt.Fprintf(&text, "| %s | %s | %s | %s |\n", r.what, r.value, r.goal, strings.Join(r.beside, "; "))
	}
	fmt.Fprintf(&text, "\n%s\n", machine)
	return text.String()
}

// missed tells which goals are missed, one in a line.
func (t *table) missed() string {
	var told strings.Builder
	for _, r := range t.rows {
		if r.miss > 0 {
			fmt.Fprintf(&told, "missed: %s: %s, goal %s (×%.2f)\n", r.what, r.value, r.goal, r.miss)
		}
	}
	return told.String()
}

// machine says where the figures are from.
func (b *bench) machine(ctx context.Context) string {
	tell := func(words ...string) string {
		out, err := exec.CommandContext(ctx, words[0], words[1:]...).Output()
		if err != nil {
			return words[0] + " unknown"
		}
		return strings.TrimSpace(string(out))
	}
	return fmt.Sprintf("%d processors, %s, %s, %s, %s; clients are `sh` and `sleep`, shellMode None.", runtime.NumCPU(),
		tell("uname", "-sr"), tell(b.tmux, "-V"), runtime.Version(), time.Now().UTC().Format(time.DateOnly))
}

// rewrite puts text between the markers of a file.
func rewrite(path, text string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	head, rest, found := bytes.Cut(data, []byte(begin+"\n"))
	_, tail, closed := bytes.Cut(rest, []byte(end))
	if !found || !closed {
		return errors.New(path + " does not have the markers: " + begin + " and " + end)
	}
	return os.WriteFile(path, slices.Concat(head, []byte(begin+"\n"+text+end), tail), 0o644) //nolint:gosec // a document
}

// quantile of what was measured; 0 of nothing.
func quantile(took []time.Duration, q float64) time.Duration {
	if len(took) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(took))
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}

func millis(d time.Duration) string { return fmt.Sprintf("%.1f ms", float64(d)/1e6) }

func ratio(a, b time.Duration) float64 { return float64(a) / float64(b) }

// over is the factor by which a value is above a goal, or 0; a goal of 0 that is missed
// is missed by any factor.
func over(value, goal float64) float64 {
	switch {
	case value <= goal:
		return 0
	case goal == 0:
		return value + 1
	}
	return value / goal
}

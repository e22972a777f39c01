// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/muxlet/muxlet/controller/server"
	"github.com/muxlet/muxlet/spec"
)

func newDescribeCommand(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:   "describe (NAME... | turn NAME...)",
		Short: "Say all that is known of a session or a turn: how it is, why, and what to do",
		Long: "Says of a session how it is and why, what a person can do, its conditions and how old the evidence\n" +
			"is, the last decision, the next attempt, what its screen showed last, and its events. Of a turn it\n" +
			"says where it is and why.",
		Example: "  muxlet describe checkout-bug\n  muxlet describe turn checkout-bug-7",
		Args:    named("session", many),
		RunE: func(cmd *cobra.Command, args []string) error {
			turns, args, err := splitTurns(args)
			if err != nil {
				return err
			}
			names, err := sessionNames(args)
			if err != nil {
				return err
			}
			return g.describe(cmd.Context(), names, turns)
		},
	}
}

func (g *globals) describe(ctx context.Context, names, turns []string) error {
	client, err := g.client()
	if err != nil {
		return err
	}
	defer client.Close()
	separator, missing := "", false
	failed := g.each(names, func(name string) error {
		d, err := g.look(ctx, client, name)
		missing = missing || server.ReasonOf(err) == server.ReasonNotFound
		if err != nil {
			return err
		}
		return g.writeDescription(&separator, d.text())
	})
	if missing {
		g.hintAtProblems(ctx, client)
	}
	return worse(failed, g.each(turns, func(name string) error {
		turn, err := client.Turn(ctx, name)
		if err != nil {
			return err
		}
		d := &turnDescription{Turn: turn, sheet: sheet{now: g.now()}}
		return g.writeDescription(&separator, d.text())
	}))
}

// writeDescription writes one of several, set apart from the one before it.
func (g *globals) writeDescription(separator *string, text string) error {
	err := printers.WriteEscaped(g.out, *separator+text)
	*separator = "\n\n"
	if err != nil {
		return fmt.Errorf("write the description: %w", err)
	}
	return nil
}

const (
	// describedScreenLines is how much of the screen a description shows.
	describedScreenLines = 10
	// screenPatience is how long it waits for a tmux that may be mute.
	screenPatience = time.Second
)

// look gathers what a description needs.
func (g *globals) look(ctx context.Context, client *server.Client, name string) (*description, error) {
	session, err := client.Session(ctx, name)
	if err != nil {
		return nil, err
	}
	events, err := eventsOf(ctx, client, []string{name})
	if err != nil {
		return nil, err
	}
	return &description{
		Session: session,
		sheet:   sheet{now: g.now()},
		status:  spec.DisplayStatus(session),
		screen:  screenOf(ctx, client, session),
		events:  events,
		memory:  g.memoryOf(session.Status.Client.Scope),
	}, nil
}

// screenOf is what the session's pane shows. That it cannot be had is part of
// the description.
func screenOf(ctx context.Context, client *server.Client, s *spec.Session) []string {
	if e := s.Status.Evidence; e != nil && len(e.LastScreen) > 0 {
		return e.LastScreen
	}
	observed := meta.IsStatusConditionTrue(s.Status.Conditions, spec.ConditionObserved)
	if s.Status.Tmux == nil || !observed {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, screenPatience)
	defer cancel()
	text, err := client.Screen(ctx, s.Name, describedScreenLines)
	if errors.Is(err, context.DeadlineExceeded) {
		return []string{fmt.Sprintf("(not available: tmux did not show it within %s)", screenPatience)}
	}
	if err != nil {
		return []string{fmt.Sprintf("(not available: %v)", err)}
	}
	text = strings.TrimRight(text, " \n")
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}

// description of one session, and the text that it is written into.
type description struct {
	*spec.Session
	sheet
	status spec.Status
	screen []string
	events []corev1.Event
	memory memoryUse
}

// sheet is a text that is written as of a moment.
type sheet struct {
	now     time.Time
	written strings.Builder
}

// text is the whole description. What needs a person comes first.
func (d *description) text() string {
	d.summary()
	d.client()
	d.resources()
	d.probe()
	d.conversation()
	d.activity()
	d.workspace()
	d.tmux()
	d.conditions()
	d.evidence()
	d.decision()
	d.lastScreen()
	d.listEvents()
	return d.written.String()
}

// labelWidth is the column at which values start.
const labelWidth = 16

// field writes one line, aligned; further lines of the value are indented. A
// value that is empty has no line.
func (d *sheet) field(label, format string, args ...any) {
	value := strings.TrimSpace(fmt.Sprintf(format, args...))
	if value == "" {
		return
	}
	value = strings.ReplaceAll(value, "\n", "\n"+strings.Repeat(" ", labelWidth))
	d.write("%-*s%s\n", labelWidth, label+":", value)
}

// sub is a field of a section.
func (d *sheet) sub(label, format string, args ...any) {
	d.field("  "+label, format, args...)
}

func (d *sheet) section(title string) { d.write("%s:\n", title) }

func (d *sheet) write(format string, args ...any) {
	fmt.Fprintf(&d.written, format, args...)
}

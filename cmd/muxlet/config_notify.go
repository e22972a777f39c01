// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/muxlet/muxlet/controller/server"
	"github.com/muxlet/muxlet/spec"
)

func newTestNotificationCommand(g *globals) *cobra.Command {
	event := string(spec.NotifyInputRequired)
	cmd := &cobra.Command{
		Use:   "test-notification",
		Short: "Let the daemon notify you once, and print what came of it",
		Long: "Let the daemon notify you once by the ways that its settings have (notifications.command,\n" +
			"notifications.terminal), and print what came of it. The command runs as it does when a session\n" +
			"waits for you: in the daemon's environment, with MUXLET_SESSION=example and MUXLET_TEST=true.\n" +
			"It exits with 1 when the command fails, or when no terminal could be told.",
		Example: "  # Is my command found, and does it do what I want?\n" +
			"  muxlet config test-notification\n\n" +
			"  # And when a turn has ended?\n" +
			"  muxlet config test-notification --event TurnCompleted",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !slices.Contains(spec.NotificationEvents, spec.NotificationEvent(event)) {
				return usagef("--event is %q: it must be one of %s", event, strings.Join(eventWords(), ", "))
			}
			return g.testNotification(cmd.Context(), spec.NotificationEvent(event))
		},
	}
	cmd.Flags().StringVar(&event, "event", event, "what to be notified of: InputRequired, Stalled or TurnCompleted")
	_ = cmd.RegisterFlagCompletionFunc("event", cobra.FixedCompletions(eventWords(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func eventWords() (words []string) {
	for _, event := range spec.NotificationEvents {
		words = append(words, string(event))
	}
	return words
}

func (g *globals) testNotification(ctx context.Context, event spec.NotificationEvent) error {
	client, err := g.client()
	if err != nil {
		return err
	}
	defer client.Close()
	result, err := client.TestNotification(ctx, event)
	if err != nil {
		return err
	}
	return g.sayNotified(result)
}

// sayNotified prints what came of a try, by each way. The error has what has failed.
func (g *globals) sayNotified(r server.NotificationResult) error {
	var failed []string
	switch {
	case r.CommandError != "":
		failed = append(failed, r.CommandError)
	case r.Took.Duration > 0:
		if err := g.say("The command exited with 0 after %s.", r.Took.Round(time.Millisecond)); err != nil {
			return err
		}
	}
	switch {
	case r.TerminalError != "":
		failed = append(failed, r.TerminalError)
	case r.Terminals > 0:
		if err := g.say("Terminals that were told: %d.", r.Terminals); err != nil {
			return err
		}
	case r.Took.Duration == 0:
		failed = append(failed, "nobody was told, since no terminal is attached to muxlet's tmux server: attach one (muxlet attach NAME) and try again")
	}
	if len(failed) > 0 {
		return errors.New(strings.Join(failed, "; "))
	}
	return nil
}

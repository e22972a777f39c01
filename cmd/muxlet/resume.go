// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/muxlet/muxlet/controller/server"
	"github.com/muxlet/muxlet/spec"
)

func newResumeCommand(g *globals) *cobra.Command {
	var fresh bool
	cmd := g.intentCommand(&cobra.Command{
		Use:   "resume (NAME... | -l SELECTOR | --all)",
		Short: "Bring a session up that is suspended, terminated, completed or waiting",
		Long: "Lifts spec.suspend in the YAML if it is set, asks for a client, and waits until it runs\n" +
			"or it is clear why it cannot. The client comes back with its conversation; with --fresh\n" +
			"it begins a new one, and the old one stays in the session's history.",
		Example: "  muxlet resume checkout-bug\n  muxlet resume checkout-bug --fresh\n  muxlet resume --all",
	}, intent{
		goal: "the start of a client",
		send: func(ctx context.Context, client *server.Client, name string) error {
			return client.Resume(ctx, name, fresh)
		},
		judge: g.judgeResume,
		done:  func(_, after *spec.Session) string { return incarnationWords("resumed", after) },
	})
	cmd.Flags().BoolVar(&fresh, "fresh", false, "begin a new conversation; the session must have no client")
	return cmd
}

// judgeResume takes any client that runs for the one that was asked for: the
// daemon refuses a demand where one runs already.
func (g *globals) judgeResume(before *spec.Session, now look) (bool, error) {
	if now.err != nil {
		return false, now.err
	}
	if running(now.session) || completedSince(before, now.session) {
		return true, nil
	}
	return false, g.refusal(before, now)
}

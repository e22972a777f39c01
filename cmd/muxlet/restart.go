// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/muxlet/muxlet/controller/server"
	"github.com/muxlet/muxlet/spec"
)

func newRestartCommand(g *globals) *cobra.Command {
	return g.intentCommand(&cobra.Command{
		Use:     "restart (NAME... | -l SELECTOR | --all)",
		Short:   "End the client and start another one now",
		Long:    "Replaces the running client, with the present spec, and waits until the new one runs or it is clear why it cannot.\nNo YAML is touched.",
		Example: "  muxlet restart checkout-bug\n  muxlet restart -l repo=shop",
	}, intent{
		goal: "the start of a new client",
		send: func(ctx context.Context, client *server.Client, name string) error {
			return client.Restart(ctx, name)
		},
		judge: g.judgeRestart,
		done:  func(_, after *spec.Session) string { return incarnationWords("restarted", after) },
	})
}

// judgeRestart waits for a client that is not the one from before.
func (g *globals) judgeRestart(before *spec.Session, now look) (bool, error) {
	if now.err != nil {
		return false, now.err
	}
	fresh := now.session.Status.Client.Incarnation > before.Status.Client.Incarnation
	if fresh && running(now.session) || completedSince(before, now.session) {
		return true, nil
	}
	return false, g.refusal(before, now)
}

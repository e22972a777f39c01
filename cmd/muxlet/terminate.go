// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/muxlet/muxlet/controller/server"
	"github.com/muxlet/muxlet/spec"
)

func newTerminateCommand(g *globals) *cobra.Command {
	return g.intentCommand(&cobra.Command{
		Use:   "terminate (NAME... | -l SELECTOR | --all)",
		Short: "End the client; it stays down until the next turn, resume or attach",
		Long: "Ends the running client and waits until it is gone, whatever the policies say.\n" +
			"No YAML is touched; muxlet send, resume or attach brings the session back.",
		Example: "  muxlet terminate checkout-bug\n  muxlet terminate --all",
	}, intent{
		goal: "the end of the client",
		send: func(ctx context.Context, client *server.Client, name string) error {
			return client.Terminate(ctx, name)
		},
		judge: func(_ *spec.Session, now look) (bool, error) {
			return now.err == nil && resting(now.session), now.err
		},
		done: func(before, _ *spec.Session) string {
			if idle(before) {
				return fmt.Sprintf("is down already (%s)", spec.DisplayStatus(before))
			}
			return "terminated"
		},
	})
}

// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/muxlet/muxlet/controller/server"
	"github.com/muxlet/muxlet/spec"
)

func newSuspendCommand(g *globals) *cobra.Command {
	return g.intentCommand(&cobra.Command{
		Use:   "suspend (NAME... | -l SELECTOR | --all)",
		Short: "Stop the client and keep it down until resume",
		Long: "Sets spec.suspend in the YAML that declares the session and waits until its client is gone.\n" +
			"Nothing starts it again until muxlet resume or an edit.",
		Example: "  muxlet suspend checkout-bug docs\n  muxlet suspend -l repo=shop",
	}, intent{
		goal: "the end of the client",
		send: func(ctx context.Context, client *server.Client, name string) error {
			return client.Suspend(ctx, name)
		},
		judge: func(_ *spec.Session, now look) (bool, error) {
			return now.err == nil && suspended(now.session) && down(now.session), now.err
		},
		done: func(before, _ *spec.Session) string {
			if suspended(before) && down(before) {
				return "is suspended already"
			}
			return "suspended"
		},
	})
}

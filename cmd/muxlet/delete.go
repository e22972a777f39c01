// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/muxlet/muxlet/controller/server"
	"github.com/muxlet/muxlet/spec"
)

func newDeleteCommand(g *globals) *cobra.Command {
	return g.intentCommand(&cobra.Command{
		Use:   "delete (NAME... | -l SELECTOR | --all)",
		Short: "Remove the document that declares a session, and stop its client",
		Long: "Removes the document from its YAML file and waits until the session is gone.\n" +
			"What happens to a running client is spec.deletionPolicy's to say.",
	}, intent{
		goal: "the removal",
		send: func(ctx context.Context, client *server.Client, name string) error {
			return client.Delete(ctx, name)
		},
		judge: deleted,
		done:  func(_, _ *spec.Session) string { return "deleted" },
	})
}

// deleted says whether the session is gone. One of the same name with another
// uid is another session.
func deleted(before *spec.Session, now look) (bool, error) {
	if server.ReasonOf(now.err) == server.ReasonNotFound {
		return true, nil
	}
	return now.err == nil && now.session.UID != before.UID, now.err
}

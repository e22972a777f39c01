// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"

	"github.com/spf13/cobra"

	"github.com/muxlet/muxlet/controller/server"
	"github.com/muxlet/muxlet/spec"
	"github.com/muxlet/muxlet/spec/manifest"
)

func newPruneCommand(g *globals) *cobra.Command {
	var confirm bool
	cmd := &cobra.Command{
		Use:   "prune",
		Short: "Show the removals that are held back, or let them go ahead",
		Long: "A session or client class whose document disappeared in a suspicious way (with its whole directory, with most others,\n" +
			"in a file that does not parse) is kept. prune shows these; prune --confirm lets their removal go ahead.",
		Example: "  muxlet prune\n  muxlet prune --confirm",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return g.prune(cmd.Context(), confirm)
		},
	}
	cmd.Flags().BoolVar(&confirm, "confirm", false, "remove them: their clients are stopped")
	return cmd
}

func (g *globals) prune(ctx context.Context, confirm bool) error {
	client, err := g.client()
	if err != nil {
		return err
	}
	defer client.Close()
	result, err := client.Prune(ctx, confirm)
	if err != nil {
		return err
	}
	if len(result.Removed)+len(result.WouldRemove) == 0 {
		return g.say("Nothing is held back.")
	}
	for _, removed := range result.Removed {
		if err := g.say("%s is being removed", heldWord(removed)); err != nil {
			return err
		}
	}
	for _, held := range result.WouldRemove {
		if err := g.say("%s would be removed: %s", heldWord(held), sentence(held.Message)); err != nil {
			return err
		}
	}
	if len(result.WouldRemove) > 0 {
		g.complain("Nothing was removed. To remove what is listed: muxlet prune --confirm")
	}
	return nil
}

// heldWord names it as session/a or clientclass/b.
func heldWord(h server.HeldRemoval) string {
	return argumentOf(manifest.Ref{Kind: cmp.Or(h.Kind, spec.KindSession), Name: h.Name})
}

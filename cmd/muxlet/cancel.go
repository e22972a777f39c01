// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"

	"github.com/spf13/cobra"
)

func newCancelCommand(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:   "cancel TURN...",
		Short: "Take turns back that were not handed over yet",
		Long: "Takes turns back whose hand-over to the client has not begun. One that was handed over goes on\n" +
			"in the client: interrupt it there (muxlet attach), or end the client (muxlet terminate).",
		Example: "  muxlet cancel checkout-bug-7\n  muxlet get turns -o name --session checkout-bug | xargs muxlet cancel",
		Args:    named("turn", many),
		RunE: func(cmd *cobra.Command, args []string) error {
			if kind, known := kindOf(args[0]); known && kind == kindTurns && len(args) > 1 {
				args = args[1:]
			}
			names, err := turnNames(args)
			if err != nil {
				return err
			}
			return g.cancel(cmd.Context(), names)
		},
	}
}

func (g *globals) cancel(ctx context.Context, names []string) error {
	client, err := g.client()
	if err != nil {
		return err
	}
	defer client.Close()
	return g.each(names, func(name string) error {
		if _, err := client.CancelTurn(ctx, name); err != nil {
			return err
		}
		return g.say("turn/%s cancelled", name)
	})
}

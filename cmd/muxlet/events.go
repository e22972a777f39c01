// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import "github.com/spf13/cobra"

func newEventsCommand(g *globals) *cobra.Command {
	o := &getOptions{globals: g}
	cmd := &cobra.Command{
		Use:     "events [NAME...]",
		Short:   "List events; the same as get events",
		Long:    "Lists what has happened to sessions, the oldest first. Events stay when their session is gone.",
		Example: "  muxlet events\n  muxlet events checkout-bug\n  muxlet events -w --types Warning",
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.run(cmd.Context(), append([]string{"events"}, args...))
		},
	}
	flags := cmd.Flags()
	o.addFlags(flags)
	flags.StringArrayVar(&o.about, "for", nil, "session that the events are about, as NAME is; may be repeated")
	flags.StringSliceVar(&o.types, "types", nil, "only events of these types: Normal, Warning")
	return cmd
}

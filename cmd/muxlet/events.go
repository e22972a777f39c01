// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import "github.com/spf13/cobra"

func newEventsCommand(g *globals) *cobra.Command {
	o := &getOptions{globals: g}
	cmd := &cobra.Command{
		Use:     "events [NAME...]",
		Short:   "List events; the same as get events",
		Example: "  muxlet events\n  muxlet events checkout-bug",
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.run(cmd.Context(), append([]string{"events"}, args...))
		},
	}
	cmd.Flags().StringVarP(&o.output, "output", "o", "", "format: wide, json, yaml or name")
	cmd.Flags().BoolVar(&o.noHeaders, "no-headers", false, "print no line of headers")
	return cmd
}

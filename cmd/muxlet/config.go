// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

func newConfigCommand(g *globals) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Look at the settings",
		Args:  cobra.NoArgs,
	}
	cmd.AddCommand(&cobra.Command{
		Use:   "view",
		Short: "Print the settings in force, and where each of them comes from",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			settings, err := g.settings()
			if err != nil {
				return err
			}
			data, err := settings.YAML()
			if err != nil {
				return err
			}
			if _, err := g.out.Write(data); err != nil {
				return fmt.Errorf("write the settings: %w", err)
			}
			return nil
		},
	})
	return cmd
}

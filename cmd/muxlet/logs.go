// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/muxlet/muxlet/controller/server"
)

func newLogsCommand(g *globals) *cobra.Command {
	var tail int
	cmd := &cobra.Command{
		Use:   "logs NAME",
		Short: "Print what the session's terminal shows, and its history",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			names, err := sessionNames(args)
			if err != nil {
				return err
			}
			if tail < 1 || tail > server.MaxLogLines {
				return usagef("--tail is %d: it must be from 1 to %d", tail, server.MaxLogLines)
			}
			return g.logs(cmd.Context(), names[0], tail)
		},
	}
	cmd.Flags().IntVar(&tail, "tail", server.DefaultLogLines, "number of lines, from the end")
	return cmd
}

func (g *globals) logs(ctx context.Context, name string, tail int) error {
	client, err := g.client()
	if err != nil {
		return err
	}
	defer client.Close()
	text, err := client.Screen(ctx, name, tail)
	if err != nil {
		return err
	}
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	if _, err := io.WriteString(g.out, text); err != nil {
		return fmt.Errorf("write the screen: %w", err)
	}
	return nil
}

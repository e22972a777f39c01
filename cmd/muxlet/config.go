// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/muxlet/muxlet/config"
	"github.com/muxlet/muxlet/controller/server"
)

func newConfigCommand(g *globals) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "config",
		Short:   "Look at the settings",
		Long:    "Look at the settings: the file $XDG_CONFIG_HOME/muxlet/config.yaml, the environment and the flags.",
		Example: "  muxlet config view",
		Args:    cobra.NoArgs,
	}
	cmd.AddCommand(&cobra.Command{
		Use:   "view",
		Short: "Print the settings in force, and where each of them comes from",
		Long: "Print the settings in force, and where each of them comes from. What a running\n" +
			"daemon does not use is marked, with the reason.",
		Example: "  muxlet config view\n  muxlet config view --config other.yaml",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return g.viewConfig(cmd.Context()) },
	})
	cmd.AddCommand(newTestNotificationCommand(g))
	return cmd
}

func (g *globals) viewConfig(ctx context.Context) error {
	settings, err := g.settings()
	if err != nil {
		return err
	}
	data, err := settings.YAML(unusedSettings(ctx, settings))
	if err != nil {
		return err
	}
	if _, err := g.out.Write(data); err != nil {
		return fmt.Errorf("write the settings: %w", err)
	}
	return nil
}

// unusedSettings are notes on what the running daemon does not use. Without a
// daemon, or with one that does not tell, there is nothing to say.
func unusedSettings(ctx context.Context, settings *config.Effective) map[string]string {
	client := server.NewClient(settings.Paths.APISocket())
	defer client.Close()
	running, err := client.Config(ctx)
	if err != nil {
		return nil
	}
	used := map[string]server.RunningSetting{}
	for _, s := range running.Settings {
		used[s.Name] = s
	}
	notes := map[string]string{}
	for _, s := range settings.Settings() {
		if u, known := used[s.Name]; known && u.Value != s.Value {
			notes[s.Name] = fmt.Sprintf("the running daemon uses %s: %s", u.Value, whyUnused(u, running, settings))
		}
	}
	return notes
}

// whyUnused says why the daemon uses another value, and what to do about it.
func whyUnused(used server.RunningSetting, running server.RunningConfig, settings *config.Effective) string {
	why := config.RestartReason(used.Name)
	switch {
	case used.Origin == config.OriginFlag:
		return "it was started with that flag"
	case used.Origin == config.OriginEnvironment:
		return "its environment says so"
	case running.File != settings.File && running.File != "":
		return "its settings file is " + running.File
	case why != "":
		return "restart it to change this, " + why
	case len(running.Problems) > 0:
		return "it cannot use its settings file, " + running.Problems[0]
	}
	return "it has not read the change yet"
}

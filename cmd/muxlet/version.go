// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"runtime"

	"github.com/spf13/cobra"
	apiversion "k8s.io/apimachinery/pkg/version"
)

// versions is what -o json prints.
type versions struct {
	// ClientVersion is that of this program.
	ClientVersion apiversion.Info `json:"clientVersion"`
	// ServerVersion is that of the daemon, if one answers.
	ServerVersion *apiversion.Info `json:"serverVersion,omitempty"`
}

func newVersionCommand(g *globals) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version of this program, and of the daemon if one answers",
		Long: "Prints the version of this program, and of the daemon if one answers: they differ after an upgrade\n" +
			"until the daemon is started anew.",
		Example: "  muxlet version\n  muxlet version -o json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if output != outputTable && output != outputJSON {
				return usagef("unknown format %q for -o: it must be json", output)
			}
			return g.version(cmd.Context(), output)
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "format: json")
	return cmd
}

func (g *globals) version(ctx context.Context, output string) error {
	all := versions{ClientVersion: apiversion.Info{
		GitVersion: version,
		GoVersion:  runtime.Version(),
		Compiler:   runtime.Compiler,
		Platform:   runtime.GOOS + "/" + runtime.GOARCH,
	}, ServerVersion: g.daemonVersion(ctx)}
	if output == outputJSON {
		data, err := json.MarshalIndent(all, "", "    ")
		if err != nil {
			return err
		}
		return g.say("%s", data)
	}
	if err := g.say("muxlet %s (%s, %s)", version, all.ClientVersion.GoVersion, all.ClientVersion.Platform); err != nil {
		return err
	}
	if all.ServerVersion == nil {
		return nil
	}
	return g.say("daemon %s", all.ServerVersion.GitVersion)
}

// daemonVersion is nil when no daemon can be asked, which is no error here.
func (g *globals) daemonVersion(ctx context.Context) *apiversion.Info {
	client, err := g.client()
	if err != nil {
		return nil
	}
	defer client.Close()
	info, err := client.Version(ctx)
	if err != nil {
		return nil
	}
	return &info
}

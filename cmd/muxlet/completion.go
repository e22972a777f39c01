// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/muxlet/muxlet/spec"
)

// completionPatience is how long a person who has pressed Tab waits for the
// daemon.
const completionPatience = time.Second

const noFiles = cobra.ShellCompDirectiveNoFileComp

// addCompletion lets every verb below root complete names of sessions where it
// takes them, and the words that flags take. A daemon that is not there
// completes nothing and says nothing.
func (g *globals) addCompletion(root *cobra.Command) {
	for _, cmd := range root.Commands() {
		g.completeFlags(cmd)
		if cmd.ValidArgsFunction != nil || len(cmd.ValidArgs) > 0 {
			continue
		}
		switch {
		case cmd.Name() == "get":
			cmd.ValidArgsFunction = g.completeKindOrName
		case cmd.Name() == "new" || !strings.Contains(cmd.Use, "NAME"):
		case strings.Contains(cmd.Use, "NAME..."):
			cmd.ValidArgsFunction = g.completeNames
		default:
			cmd.ValidArgsFunction = g.completeName
		}
	}
}

// completeFlags has the words of the flags of get and events. Other verbs know
// their own formats.
func (g *globals) completeFlags(cmd *cobra.Command) {
	words := map[string][]string{"sort-by": sortWords, "types": eventTypes}
	if cmd.Name() == "get" || cmd.Name() == "events" {
		words["output"] = outputs
	}
	for flag, values := range words {
		if cmd.Flags().Lookup(flag) != nil {
			// An error says that somebody else completes the flag.
			_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, noFiles))
		}
	}
	if cmd.Flags().Lookup("for") != nil && cmd.Name() == "events" {
		_ = cmd.RegisterFlagCompletionFunc("for", func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
			return g.knownNames(cmd, nil), noFiles
		})
	}
}

// completeName is for a verb of one session.
func (g *globals) completeName(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, noFiles
	}
	return g.completeNames(cmd, args, word)
}

// completeNames gives the names that were not given yet, each with its status.
// sessions/NAME is completed too.
func (g *globals) completeNames(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	names := g.knownNames(cmd, args)
	if kind, _, ok := strings.Cut(word, "/"); ok {
		for i := range names {
			names[i] = kind + "/" + names[i]
		}
	}
	return names, noFiles
}

func (g *globals) completeKindOrName(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	names, directive := g.completeNames(cmd, args, word)
	if len(args) == 0 {
		names = append(names, "sessions\tlist sessions", "events\tlist events")
	}
	return names, directive
}

// knownNames asks the daemon, for a moment.
func (g *globals) knownNames(cmd *cobra.Command, given []string) []string {
	g.command = cmd
	client, err := g.client()
	if err != nil {
		return nil
	}
	defer client.Close()
	parent := cmd.Context()
	if parent == nil {
		parent = context.Background()
	}
	ctx, cancel := context.WithTimeout(parent, completionPatience)
	defer cancel()
	list, err := client.Sessions(ctx, "")
	if err != nil {
		return nil
	}
	names := map[string]string{}
	for i := range list.Items {
		names[list.Items[i].Name] = string(spec.DisplayStatus(&list.Items[i]))
	}
	for _, name := range given {
		delete(names, name)
		delete(names, name[strings.Index(name, "/")+1:])
	}
	var words []string
	for _, name := range slices.Sorted(maps.Keys(names)) {
		words = append(words, visible(name)+"\t"+names[name])
	}
	return words
}

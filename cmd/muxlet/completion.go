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

	"github.com/muxlet/muxlet/controller/server"
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
		case cmd.Name() == "cancel":
			cmd.ValidArgsFunction = g.completePending
		case cmd.Name() == "send":
			cmd.ValidArgsFunction = g.completeNames
		case takesClasses(cmd), takesTurns(cmd):
			cmd.ValidArgsFunction = g.completeDocuments
		case cmd.Name() == "new" || !strings.Contains(cmd.Use, "NAME"):
		case strings.Contains(cmd.Use, "NAME..."):
			cmd.ValidArgsFunction = g.completeNames
		default:
			cmd.ValidArgsFunction = g.completeName
		}
	}
}

// completeFlags has what the flags of cmd take.
func (g *globals) completeFlags(cmd *cobra.Command) {
	sessions := func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		return g.knownNames(cmd, nil, ""), noFiles
	}
	flags := map[string]completion{"types": oneOf(eventTypes), "selector": g.completeSelector, "label-columns": g.completeLabel}
	switch cmd.Name() {
	case "get":
		flags["output"], flags["sort-by"], flags["session"] = completeFormat, completeSort, sessions
	case "events":
		flags["output"], flags["for"] = completeFormat, sessions
	case "send":
		flags["output"], flags["wait"] = oneOf(sendOutputs), oneOf(waitWords)
	case "wait":
		flags["for"] = completeGoal
	case "top":
		flags["output"], flags["sort-by"] = oneOf([]string{outputJSON}), oneOf(topSortWords)
	case "apply":
		flags["output"] = oneOf([]string{outputJSON, outputYAML, outputName})
	case "version", "doctor":
		flags["output"] = oneOf([]string{outputJSON})
	}
	for flag, values := range flags {
		if cmd.Flags().Lookup(flag) != nil {
			// An error says that somebody else completes the flag.
			_ = cmd.RegisterFlagCompletionFunc(flag, values)
		}
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
	kind, _, ok := strings.Cut(word, "/")
	if !ok && len(args) > 0 {
		kind = args[0]
	}
	names := g.knownNames(cmd, args, kind)
	if ok {
		for i := range names {
			names[i] = kind + "/" + names[i]
		}
	}
	return names, noFiles
}

func (g *globals) completeKindOrName(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	names, directive := g.completeNames(cmd, args, word)
	if len(args) == 0 {
		names = append(names, "sessions\tlist sessions", "turns\tlist turns", "clientclasses\tlist client classes", "events\tlist events")
	}
	return names, directive
}

// completePending gives the turns that can still be taken back.
func (g *globals) completePending(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	names := g.known(cmd, args, func(ctx context.Context, client *server.Client) (map[string]string, error) {
		names, err := turnsWithStatus(ctx, client)
		maps.DeleteFunc(names, func(_, status string) bool { return status != string(spec.TurnPending) })
		return names, err
	})
	if kind, _, ok := strings.Cut(word, "/"); ok {
		for i := range names {
			names[i] = kind + "/" + names[i]
		}
	}
	return names, noFiles
}

// completeDocuments is for a verb for several kinds: the word of a kind and what it is
// called, or a session.
func (g *globals) completeDocuments(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	names, directive := g.completeNames(cmd, args, word)
	if len(args) == 0 && !strings.Contains(word, "/") {
		if takesClasses(cmd) {
			names = append(names, "clientclass\ta client class")
		}
		if takesTurns(cmd) && len(names) > 0 {
			names = append(names, "turn\ta turn")
		}
	}
	return names, directive
}

// knownNames asks the daemon, for a moment, for the names of sessions, or of client
// classes or turns where the word is one for them and the verb takes them.
func (g *globals) knownNames(cmd *cobra.Command, given []string, word string) []string {
	return g.known(cmd, given, func(ctx context.Context, client *server.Client) (map[string]string, error) {
		switch kind := kindWords[word]; {
		case kind == kindClasses && takesClasses(cmd):
			return classesWithStatus(ctx, client)
		case kind == kindTurns && takesTurns(cmd):
			return turnsWithStatus(ctx, client)
		}
		return sessionsWithStatus(ctx, client)
	})
}

// known are the names that the daemon gives, each with a word, but for those that were
// given already.
func (g *globals) known(cmd *cobra.Command, given []string, ask func(context.Context, *server.Client) (map[string]string, error)) []string {
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
	names, err := ask(ctx, client)
	if err != nil {
		return nil
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

// takesClasses says whether a verb is for client classes too.
func takesClasses(cmd *cobra.Command) bool {
	return slices.Contains([]string{"get", "edit", "delete", "wait"}, cmd.Name())
}

// takesTurns says whether a verb is for turns too.
func takesTurns(cmd *cobra.Command) bool {
	return slices.Contains([]string{"get", "describe", "delete", "wait"}, cmd.Name())
}

func classesWithStatus(ctx context.Context, client *server.Client) (map[string]string, error) {
	names := map[string]string{}
	list, err := client.Classes(ctx, "")
	for i := range list.Items {
		names[list.Items[i].Name] = count(int(list.Items[i].Status.Sessions), "session")
	}
	return names, err
}

func turnsWithStatus(ctx context.Context, client *server.Client) (map[string]string, error) {
	names := map[string]string{}
	list, err := client.Turns(ctx, "", "")
	for i := range list.Items {
		names[list.Items[i].Name] = string(spec.DisplayTurnStatus(&list.Items[i]))
	}
	return names, err
}

func sessionsWithStatus(ctx context.Context, client *server.Client) (map[string]string, error) {
	names := map[string]string{}
	list, err := client.Sessions(ctx, "")
	for i := range list.Items {
		names[list.Items[i].Name] = string(spec.DisplayStatus(&list.Items[i]))
	}
	return names, err
}

// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/muxlet/muxlet/controller/server"
	"github.com/muxlet/muxlet/spec"
)

// leastWord is the length in letters from which on a word can be a mistyped one: of a
// shorter one any other is near.
const leastWord = 3

// didYouMean names the candidate that a person most likely meant; empty when none is near.
func didYouMean(word string, candidates []string) string {
	if len([]rune(word)) < leastWord {
		return ""
	}
	near := spec.Nearest(word, candidates)
	if near == "" || near == word {
		return ""
	}
	return fmt.Sprintf(" (did you mean %q?)", near)
}

// withSuggestion adds to the error about something that is not there what is there under
// the nearest name. The error comes from a daemon, which is asked once more.
func (g *globals) withSuggestion(err error) error {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok || status.ErrStatus.Details == nil || server.ReasonOf(err) != server.ReasonNotFound {
		return err
	}
	word := status.ErrStatus.Details.Name
	near := didYouMean(word, g.namesLike(word, status.ErrStatus.Details.Kind))
	if near == "" && status.ErrStatus.Details.Kind == "sessions" {
		near = strings.Replace(didYouMean(word, slices.Sorted(maps.Keys(kindWords))), "mean ", "mean the kind ", 1)
	}
	begin, rest, ok := strings.Cut(status.ErrStatus.Message, " not found")
	if near == "" || !ok || strings.Contains(rest, "did you mean") {
		return err
	}
	better := *status
	better.ErrStatus.Message = begin + " not found" + near + rest
	return &better
}

// namesLike are the names of what there is of a kind. Of turns only those count that have
// the same number: another number is no mistyped one.
func (g *globals) namesLike(word, kind string) []string {
	ask := map[string]func(context.Context, *server.Client) (map[string]string, error){
		"sessions": sessionsWithStatus, "turns": turnsWithStatus, "clientclasses": classesWithStatus,
	}[kind]
	if ask == nil || g.command == nil {
		return nil
	}
	var names []string
	for _, name := range g.known(g.command, nil, ask) {
		name, _, _ = strings.Cut(name, "\t")
		if kind != "turns" || name[strings.LastIndex(name, "-")+1:] == word[strings.LastIndex(word, "-")+1:] {
			names = append(names, name)
		}
	}
	return names
}

// withVerb adds to the error about a verb that is none that it is the name of a session.
func (g *globals) withVerb(root *cobra.Command, err error, args []string) error {
	if err == nil || g.started || len(args) == 0 || !strings.HasPrefix(err.Error(), "unknown command ") {
		return err
	}
	name := args[0]
	g.command = root
	if !slices.Contains(g.namesLike(name, "sessions"), name) {
		return err
	}
	first, _, _ := strings.Cut(err.Error(), "\n")
	return usagef("%s: it is the name of a session, and a verb comes before it, such as \"muxlet attach %s\"", first, name)
}

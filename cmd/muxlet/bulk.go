// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/muxlet/muxlet/controller/server"
	"github.com/muxlet/muxlet/spec"
)

const (
	// asksAtOnce is how many sessions are asked at the same time: as many as the
	// daemon has workers.
	asksAtOnce = 8
	// looksAtOnce is how many looks at sessions are on their way at the same time.
	// With more sessions than that each is looked at less often.
	looksAtOnce = 16
)

// chosen says which sessions a verb is for.
type chosen struct {
	names    []string
	selector string
	all      bool
}

// intentCommand makes cmd a verb for sessions that are named, selected, or all
// that there are.
func (g *globals) intentCommand(cmd *cobra.Command, i intent) *cobra.Command {
	var which chosen
	cmd.Flags().StringVarP(&which.selector, "selector", "l", "", "label selector, such as repo=shop, instead of names")
	cmd.Flags().BoolVar(&which.all, "all", false, "all sessions, instead of names")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		var err error
		if which.names, err = sessionNames(args); err != nil {
			return err
		}
		if err := which.validate(cmd); err != nil {
			return err
		}
		return g.carryOut(cmd.Context(), which, i)
	}
	return cmd
}

func (w *chosen) validate(cmd *cobra.Command) error {
	selected := cmd.Flags().Changed("selector")
	switch {
	case len(w.names) > 0 && (selected || w.all):
		return usagef("names cannot be given together with -l or --all")
	case selected && w.all:
		return usagef("-l and --all cannot be given together")
	case len(w.names) == 0 && !selected && !w.all:
		return usagef("which sessions? Give at least one name, -l SELECTOR or --all")
	}
	selector, err := labels.Parse(w.selector)
	if err != nil {
		return usagef("the selector %q is not valid: %v", w.selector, err)
	}
	if selected && selector.Empty() {
		return usagef("the selector is empty, which selects everything: say --all if you mean that")
	}
	return nil
}

// find gives the names of the sessions. That there are none is no error, as
// with kubectl.
func (g *globals) find(ctx context.Context, client *server.Client, w chosen) ([]string, error) {
	if len(w.names) > 0 {
		return w.names, nil
	}
	list, err := client.Sessions(ctx, w.selector)
	if err != nil {
		return nil, err
	}
	var names []string
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	switch {
	case len(names) > 0:
	case w.all:
		g.complain("No sessions found: none is declared.")
	default:
		g.complain("No sessions found: none matches the selector %s.", w.selector)
	}
	return names, nil
}

// carryOut asks it of every session and waits for each. They do not wait for one
// another, and one that fails does not keep the others. Each has its own line, in
// the order of the names, as soon as it and those before it are done.
func (g *globals) carryOut(ctx context.Context, which chosen, i intent) error {
	client, err := g.client()
	if err != nil {
		return err
	}
	defer client.Close()
	names, err := g.find(ctx, client, which)
	if err != nil {
		return err
	}
	asks := make(chan struct{}, asksAtOnce)
	i.looks = make(chan struct{}, looksAtOnce)
	i.period = g.pollPeriod * time.Duration(1+len(names)/looksAtOnce)
	ends := map[string]chan outcome{}
	for _, name := range names {
		end := make(chan outcome, 1)
		ends[name] = end
		go func() {
			words, err := g.carryOutOne(ctx, client, name, i, asks)
			end <- outcome{words, err}
		}()
	}
	return g.each(names, func(name string) error {
		end := <-ends[name]
		if end.err != nil {
			return end.err
		}
		return g.say("session/%s %s", name, end.words)
	})
}

// outcome of an intent for one session: what is said of it, or why it failed.
type outcome struct {
	words string
	err   error
}

func (g *globals) carryOutOne(ctx context.Context, client *server.Client, name string, i intent, asks chan struct{}) (string, error) {
	before, err := ask(ctx, client, name, i, asks)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, g.waitLimit)
	defer cancel()
	after, err := g.until(ctx, client, before, i)
	if err != nil {
		return "", err
	}
	return i.done(before, after), nil
}

// ask sends the intent when it is its turn. It returns the session as it was
// before.
func ask(ctx context.Context, client *server.Client, name string, i intent, turns chan struct{}) (*spec.Session, error) {
	turns <- struct{}{}
	defer func() { <-turns }()
	before, err := client.Session(ctx, name)
	if err != nil {
		return nil, err
	}
	return before, i.send(ctx, client, name)
}

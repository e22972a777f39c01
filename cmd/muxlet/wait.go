// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/muxlet/muxlet/controller/server"
)

// defaultWait is how long wait waits: as kubectl does.
const defaultWait = 30 * time.Second

// waitOptions are the flags of wait.
type waitOptions struct {
	*globals
	which   chosen
	goal    string
	timeout time.Duration
}

func newWaitCommand(g *globals) *cobra.Command {
	o := &waitOptions{globals: g}
	cmd := &cobra.Command{
		Use:   "wait (NAME... | -l SELECTOR | --all | turn NAME... | clientclass NAME...) [--for=GOAL]",
		Short: "Wait until sessions, turns or client classes are as you say",
		Long: "Waits until each of them has a condition, has a value, is there, or is gone:\n\n" +
			"  condition=CONDITION[=STATUS]  a condition is True, or has another status\n" +
			"  jsonpath='{PATH}'[=VALUE]     the path finds that value, or any\n" +
			"  create                        it is there\n" +
			"  delete                        it is gone\n\n" +
			"Without --for a session is waited for until it is Ready, a turn until it is Completed.\n\n" +
			"The wait ends early, with the reason, when the session cannot get there without a person:\n" +
			"it is suspended, blocked, invalid or at rest, or its client asks something; and when a turn is\n" +
			"over. A daemon that ends meanwhile is waited for. --timeout=0 looks once, and a negative one\n" +
			"waits for ever.\n\n" +
			"Exit codes: 0 as waited for; 1 its document is not valid; 2 usage; 3 no such session; 4 it is\n" +
			"suspended, at rest or in conflict, its directory is missing, or its client asks something;\n" +
			"5 not in time; 6 something else is in its way, which can pass.",
		Example: "  muxlet wait checkout-bug\n" +
			"  muxlet wait -l repo=shop --for=condition=Ready --timeout=2m\n" +
			"  muxlet wait checkout-bug --for=jsonpath='{.status.activity.state}'=Idle\n" +
			"  muxlet wait checkout-bug --for=delete\n" +
			"  muxlet wait turn/checkout-bug-7 --timeout=1h",
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, args) },
	}
	flags := cmd.Flags()
	flags.StringVarP(&o.which.selector, "selector", "l", "", "label selector, such as repo=shop, instead of names")
	flags.BoolVar(&o.which.all, "all", false, "all sessions, instead of names")
	flags.StringVar(&o.goal, "for", "", "goal: condition=CONDITION[=STATUS], jsonpath='{PATH}'[=VALUE], create or delete (default condition=Ready, of a turn condition=Completed)")
	flags.DurationVar(&o.timeout, "timeout", defaultWait, "how long it is waited for; 0 looks once, and a negative time is for ever")
	return cmd
}

func (o *waitOptions) run(cmd *cobra.Command, args []string) error {
	kind, names, err := waitTarget(args)
	if err != nil {
		return err
	}
	if kind == kindEvents {
		return usagef("events are not waited for: see \"muxlet get events -w\"")
	}
	o.which.names = names
	if err := o.validate(cmd, kind); err != nil {
		return err
	}
	goal, err := parseGoal(o.goal, kind)
	if err != nil {
		return err
	}
	client, err := o.client()
	if err != nil {
		return err
	}
	defer client.Close()
	if names, err = o.targets(cmd.Context(), client, goal); err != nil || len(names) == 0 {
		return err
	}
	return o.await(cmd.Context(), client, kind, goal, names)
}

// waitTarget reads what is waited for. A session may have the name of a kind: a word for
// one that stands alone is its name.
func waitTarget(args []string) (resourceKind, []string, error) {
	if len(args) == 1 && !strings.Contains(args[0], "/") {
		return kindSessions, args, nil
	}
	return parseTarget(args)
}

func (o *waitOptions) validate(cmd *cobra.Command, kind resourceKind) error {
	selects := cmd.Flags().Changed("selector") || o.which.all
	if kind != kindSessions && (selects || len(o.which.names) == 0) {
		return usagef("which of the %s? Give at least one name; -l and --all are for sessions", pluralOf(kind))
	}
	if o.goal == forCreate && selects {
		return usagef("--for=create needs names")
	}
	if o.goal == "" {
		o.goal = forCondition + conditionOf(kind)
	}
	return o.which.validate(cmd)
}

// conditionOf is the condition that a kind is waited for where no goal is given.
func conditionOf(kind resourceKind) string {
	known := conditionTypes(kind)
	switch kind {
	case kindSessions:
		return "Ready"
	case kindTurns:
		return known[len(known)-1]
	case kindClasses, kindEvents:
	}
	return ""
}

// targets are the names that are waited for. That a selection finds none is an error, as
// with kubectl: a script that waits for nothing is most likely wrong. Of what is to be gone
// there may be none.
func (o *waitOptions) targets(ctx context.Context, client *server.Client, w *goal) ([]string, error) {
	if len(o.which.names) > 0 {
		return o.which.names, nil
	}
	list, err := client.Sessions(ctx, o.which.selector)
	if err != nil {
		return nil, err
	}
	var names []string
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	if len(names) > 0 || w.gone {
		return names, nil
	}
	why := "none is declared"
	if !o.which.all {
		why = "none matches the selector " + o.which.selector
	}
	return nil, server.NewError(server.ReasonNotFound, "", "no sessions found: "+why+". \"muxlet get\" lists those that exist.")
}

// await waits for all of them. Each has its own line, in the order of the names, as soon as
// it and those before it are done.
func (o *waitOptions) await(ctx context.Context, client *server.Client, kind resourceKind, w *goal, names []string) error {
	limit, cancel := o.limit(ctx)
	defer cancel()
	room := o.newWaitRoom(client, kind, w, names)
	go room.run(limit)
	var told error
	return o.each(names, func(name string) error {
		switch err := <-room.ends[name]; {
		case err != nil && errors.Is(err, told):
			return &reportedError{exitCode(err)} // the watch has ended for all of them
		case err != nil:
			told = err
			return err
		}
		return o.say("%s/%s condition met", singularOf(kind), name)
	})
}

// limit ends with --timeout.
func (o *waitOptions) limit(ctx context.Context) (context.Context, context.CancelFunc) {
	if o.timeout <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, o.timeout)
}

// singularOf is the word for one of a kind.
func singularOf(kind resourceKind) string {
	switch kind {
	case kindClasses:
		return "clientclass"
	case kindTurns:
		return "turn"
	case kindSessions, kindEvents:
	}
	return "session"
}

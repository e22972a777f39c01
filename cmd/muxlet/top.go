// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/muxlet/muxlet/controller/server"
	"github.com/muxlet/muxlet/spec"
)

// The bounds of --interval.
const (
	defaultTopInterval = time.Second
	leastTopInterval   = 100 * time.Millisecond
	mostTopInterval    = time.Minute
)

// The words of top's --sort-by.
const (
	sortCPU       = "cpu"
	sortMemory    = "memory"
	sortProcesses = "processes"
)

var topSortWords = []string{sortName, sortCPU, sortMemory, sortProcesses}

// topOptions are the flags of top.
type topOptions struct {
	*globals
	names     []string
	selector  string
	sortBy    string
	output    string
	interval  time.Duration
	noHeaders bool
	watch     bool
}

func newTopCommand(g *globals) *cobra.Command {
	o := &topOptions{globals: g}
	cmd := &cobra.Command{
		Use:   "top [NAME...]",
		Short: "Show the CPU and memory that sessions use",
		Long: "Shows for each session that has processes what its client and all that its client has\n" +
			"started use, be it that it has left the client or outlived it; then the daemon and the tmux\n" +
			"server, and the sum.\n\n" +
			"CPU is in thousandths of a processor, over --interval. Memory that processes share counts in\n" +
			"parts (PSS), so that the sum is right; of another user's processes, and when there are too many\n" +
			"to ask within 2 s, it counts in full (RSS). What a person runs in panes of their own is not in\n" +
			"it. The numbers are read from /proc by this command; the daemon is only asked for the names.",
		Example: "  muxlet top\n  muxlet top --sort-by memory\n  muxlet top -l repo=shop -w\n  muxlet top checkout-bug -o json",
		RunE:    func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args) },
	}
	flags := cmd.Flags()
	flags.StringVarP(&o.selector, "selector", "l", "", "label selector, such as repo=shop, instead of names")
	flags.StringVar(&o.sortBy, "sort-by", sortName, "order: name, cpu, memory or processes, the highest first")
	flags.StringVarP(&o.output, "output", "o", "", "format: json")
	flags.DurationVar(&o.interval, "interval", defaultTopInterval, "how long CPU is measured, and with -w the time between two tables: 100ms to 1m")
	flags.BoolVar(&o.noHeaders, "no-headers", false, "print no line of headers")
	flags.BoolVarP(&o.watch, "watch", "w", false, "measure again and again, until it is interrupted")
	return cmd
}

func (o *topOptions) run(ctx context.Context, args []string) error {
	names, err := sessionNames(args)
	if err != nil {
		return err
	}
	o.names = names
	if err := o.validate(); err != nil {
		return err
	}
	client, err := o.client()
	if err != nil {
		return err
	}
	defer client.Close()
	m := &meter{topOptions: o, client: client}
	if err := m.begin(ctx); err != nil {
		return err
	}
	if o.watch {
		return o.over(ctx, o.follow(ctx, m))
	}
	uses, failed, err := m.measure(ctx)
	if err != nil {
		return err
	}
	return worse(o.show(uses), failed)
}

// follow shows one table after another until ctx is done. A daemon that does not answer is
// waited for.
func (o *topOptions) follow(ctx context.Context, m *meter) error {
	for lost := false; ; {
		uses, failed, err := m.measure(ctx)
		if errors.Is(err, server.ErrNoDaemon) || errors.Is(err, server.ErrBroken) {
			if !lost {
				o.lost(err)
			}
			lost = true
			if !pause(ctx, o.interval) {
				return ctx.Err()
			}
			continue
		}
		if err != nil {
			return err
		}
		if lost {
			o.back()
		}
		lost = false
		if err := worse(o.show(uses), failed); err != nil {
			return err
		}
	}
}

func (o *topOptions) validate() error {
	if _, err := labels.Parse(o.selector); err != nil {
		return usagef("the selector %q is not valid: %v", o.selector, err)
	}
	switch {
	case o.selector != "" && len(o.names) > 0:
		return usagef("a name and a selector cannot be given together")
	case !slices.Contains(topSortWords, o.sortBy):
		return usagef("cannot sort by %q: give %s%s", o.sortBy, strings.Join(topSortWords, ", "), didYouMean(o.sortBy, topSortWords))
	case o.output != "" && o.output != outputJSON:
		return usagef("unknown format %q for -o: it must be json", o.output)
	case o.interval < leastTopInterval || o.interval > mostTopInterval:
		return usagef("--interval is %s: it must be from %s to %s", o.interval, leastTopInterval, mostTopInterval)
	}
	return nil
}

// sorted puts the sessions in order.
func (o *topOptions) sorted(all []use) {
	slices.SortStableFunc(all, func(a, b use) int {
		var order int
		switch o.sortBy {
		case sortCPU:
			order = cmp.Compare(b.cpu, a.cpu)
		case sortMemory:
			order = cmp.Compare(b.memory, a.memory)
		case sortProcesses:
			order = cmp.Compare(len(b.processes), len(a.processes))
		}
		return cmp.Or(order, cmp.Compare(a.name, b.name))
	})
}

// sessions are those that are asked for. The second error is about names that do not exist,
// and was shown.
func (o *topOptions) sessions(ctx context.Context, client *server.Client) ([]spec.Session, error, error) {
	if len(o.names) == 0 {
		list, err := client.Sessions(ctx, o.selector)
		return list.Items, nil, err
	}
	var found []spec.Session
	var broken error
	failed := o.each(o.names, func(name string) error {
		if broken != nil {
			return nil
		}
		session, err := client.Session(ctx, name)
		switch {
		case err == nil:
			found = append(found, *session)
		case server.ReasonOf(err) == server.ReasonNotFound:
			return err
		default:
			broken = err
		}
		return nil
	})
	return found, failed, broken
}

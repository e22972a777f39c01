// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/muxlet/muxlet/controller/server"
	"github.com/muxlet/muxlet/spec"
)

// getOptions are the flags of get and events.
type getOptions struct {
	*globals
	output    string
	selector  string
	sortBy    string
	types     []string
	about     []string
	noHeaders bool
	waiting   bool
	session   string
	// labelColumns are labels that have a column, showLabels has one for all of them.
	labelColumns []string
	showLabels   bool

	watch, watchOnly, watchEvents bool
}

func newGetCommand(g *globals) *cobra.Command {
	o := &getOptions{globals: g}
	cmd := &cobra.Command{
		Use:   "get [sessions|turns|clientclasses|events] [NAME...]",
		Short: "List sessions, turns, client classes or events",
		Long: "List sessions, the turns that were sent to them, the client classes that there are, or the\n" +
			"events about sessions. Sessions that wait for a person come first.\n\n" +
			"sessions may be written session or ses, turns turn, clientclasses clientclass or cc, events event\n" +
			"or ev, and a name sessions/NAME, turn/NAME or cc/NAME. A word that is none of these is the name of\n" +
			"a session. The prompt of a turn comes with its name and -o yaml or json.",
		Example: "  muxlet get\n  muxlet get -o wide\n  muxlet get -w\n  muxlet get checkout-bug -o yaml\n" +
			"  muxlet get -l repo=shop --sort-by restarts\n  muxlet get -o jsonpath='{.items[*].metadata.name}'\n  muxlet get events checkout-bug\n" +
			"  muxlet get clientclass claude -o yaml\n  muxlet get turns --session checkout-bug -w\n  muxlet get turn checkout-bug-7 -o yaml",
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.run(cmd.Context(), args)
		},
	}
	flags := cmd.Flags()
	o.addFlags(flags)
	flags.StringVarP(&o.selector, "selector", "l", "", "label selector, such as repo=shop or 'repo in (shop, web)'")
	flags.StringVar(&o.sortBy, "sort-by", "", "order: name, age or another column, such as restarts or status, or a JSONPath such as .status.client.pid")
	flags.StringVar(&o.session, "session", "", "only turns of this session")
	flags.BoolVar(&o.waiting, "waiting", false, "only sessions that wait for a person")
	flags.BoolVar(&o.watchEvents, "output-watch-events", false, "with --watch, say for each what happened: ADDED, MODIFIED or DELETED")
	return cmd
}

// addFlags adds those that get and events have in common.
func (o *getOptions) addFlags(flags *pflag.FlagSet) {
	flags.StringVarP(&o.output, "output", "o", "", "format: "+outputWords)
	flags.BoolVar(&o.noHeaders, "no-headers", false, "print no line of headers")
	flags.BoolVar(&o.showLabels, "show-labels", false, "add a column with all labels")
	flags.StringSliceVarP(&o.labelColumns, "label-columns", "L", nil, "add a column for each of these labels; may be repeated")
	flags.BoolVarP(&o.watch, "watch", "w", false, "print what is there, and then each change, until it is interrupted")
	flags.BoolVar(&o.watchOnly, "watch-only", false, "print each change, without what is there")
}

func (o *getOptions) run(ctx context.Context, args []string) error {
	kind, names, err := parseTarget(args)
	if err != nil {
		return err
	}
	if kind == kindEvents {
		about, err := sessionNames(o.about)
		if err != nil {
			return err
		}
		names = append(names, about...)
	}
	if err := o.validate(kind, names); err != nil {
		return err
	}
	client, err := o.client()
	if err != nil {
		return err
	}
	defer client.Close()
	if o.watch || o.watchOnly {
		return o.follow(ctx, client, kind, names)
	}
	return o.list(ctx, client, kind, names)
}

func (o *getOptions) follow(ctx context.Context, client *server.Client, kind resourceKind, names []string) error {
	switch kind {
	case kindClasses:
		return o.followClasses(ctx, client, names)
	case kindTurns:
		return o.followTurns(ctx, client, names)
	case kindEvents:
		return o.followEvents(ctx, client, names)
	case kindSessions:
	}
	return o.followSessions(ctx, client, names)
}

func (o *getOptions) list(ctx context.Context, client *server.Client, kind resourceKind, names []string) error {
	switch kind {
	case kindClasses:
		return o.classes(ctx, client, names)
	case kindTurns:
		return o.turns(ctx, client, names)
	case kindEvents:
		return o.events(ctx, client, names)
	case kindSessions:
	}
	if len(names) > 0 {
		return o.named(ctx, client, names)
	}
	return o.all(ctx, client)
}

func (o *getOptions) validate(kind resourceKind, names []string) error {
	if err := o.validateOutput(); err != nil {
		return err
	}
	if _, err := labels.Parse(o.selector); err != nil {
		return usagef("the selector %q is not valid: %v", o.selector, err)
	}
	if o.selector != "" && len(names) > 0 {
		return usagef("a name and a selector cannot be given together")
	}
	if o.watchEvents && !o.watch && !o.watchOnly {
		return usagef("--output-watch-events needs --watch or --watch-only")
	}
	for _, word := range o.types {
		if !slices.ContainsFunc(eventTypes, func(known string) bool { return strings.EqualFold(known, word) }) {
			return usagef("unknown type %q for --types: it must be %s", word, strings.Join(eventTypes, " or "))
		}
	}
	if o.waiting && (kind == kindClasses || kind == kindTurns) {
		return usagef("--waiting is about sessions")
	}
	if o.session != "" && kind != kindTurns {
		return usagef("--session is about turns")
	}
	return o.validateSort(kind)
}

func (o *getOptions) validateSort(kind resourceKind) error {
	if o.sortBy == "" || slices.Contains(sortWords[kind], o.sortBy) {
		return nil
	}
	return checkSortPath(o.sortBy, kind)
}

// all lists the sessions, and then what is wrong around them.
func (o *getOptions) all(ctx context.Context, client *server.Client) error {
	list, err := client.Sessions(ctx, o.selector)
	if err != nil {
		return err
	}
	sessions, err := o.arrange(list.Items)
	if err != nil {
		return err
	}
	if !o.tabular() {
		return o.print(objects(sessions), true)
	}
	if len(sessions) > 0 {
		if err := o.table(o.sessionRows(sessions, o.now())); err != nil {
			return err
		}
	}
	status, err := client.Status(ctx)
	if err != nil {
		return err
	}
	if len(sessions) == 0 {
		o.sayNothingFound(status, len(list.Items))
	}
	o.footers(status)
	return nil
}

// arrange leaves out what is not asked for and puts the rest in order.
func (o *getOptions) arrange(sessions []spec.Session) ([]spec.Session, error) {
	if o.waiting {
		sessions = slices.DeleteFunc(slices.Clone(sessions), func(s spec.Session) bool { return !spec.WaitsForPerson(&s) })
	}
	return sessions, o.sortSessions(sessions)
}

// named shows the sessions that exist, and an error for each that does not.
func (o *getOptions) named(ctx context.Context, client *server.Client, names []string) error {
	var found []spec.Session
	var missing bool
	failed := o.each(names, func(name string) error {
		session, err := client.Session(ctx, name)
		missing = missing || server.ReasonOf(err) == server.ReasonNotFound
		if err != nil {
			return err
		}
		found = append(found, *session)
		return nil
	})
	if missing {
		o.hintAtProblems(ctx, client)
	}
	if len(found) == 0 {
		return failed
	}
	found, err := o.arrangeNamed(found)
	if err != nil {
		return err
	}
	if !o.tabular() {
		if err := o.print(objects(found), len(names) > 1); err != nil {
			return err
		}
		return failed
	}
	if err := o.table(o.sessionRows(found, o.now())); err != nil {
		return err
	}
	var problems []string
	for _, session := range found {
		if source := session.Status.Source; source != nil && source.Error != "" {
			problems = append(problems, source.Error)
		}
	}
	o.bounded(problemLines(problems), "\"muxlet validate\" shows all of them.")
	return failed
}

// arrangeNamed keeps the order in which the names were given, unless another one
// is asked for.
func (o *getOptions) arrangeNamed(found []spec.Session) ([]spec.Session, error) {
	if o.sortBy == "" && !o.waiting {
		return found, nil
	}
	return o.arrange(found)
}

func objects(sessions []spec.Session) []runtime.Object {
	all := make([]runtime.Object, 0, len(sessions))
	for i := range sessions {
		all = append(all, &sessions[i])
	}
	return all
}

// resourceKind is what get lists.
type resourceKind int

const (
	kindSessions resourceKind = iota
	kindEvents
	kindClasses
	kindTurns
)

var kindWords = map[string]resourceKind{
	"sessions": kindSessions, "session": kindSessions, "ses": kindSessions,
	"events": kindEvents, "event": kindEvents, "ev": kindEvents,
	"clientclasses": kindClasses, "clientclass": kindClasses, "cc": kindClasses,
	"turns": kindTurns, "turn": kindTurns,
}

// parseTarget reads [KIND] [NAME...], where a name may be sessions/NAME, turn/NAME or
// cc/NAME.
func parseTarget(args []string) (resourceKind, []string, error) {
	kind := kindSessions
	if len(args) > 0 {
		word, _, isPath := strings.Cut(args[0], "/")
		switch known, ok := kindOf(word); {
		case ok && !isPath:
			kind, args = known, args[1:]
		case ok && (known == kindClasses || known == kindTurns):
			kind = known
		}
	}
	read := sessionNames
	switch kind {
	case kindClasses:
		read = classNames
	case kindTurns:
		read = turnNames
	case kindSessions, kindEvents:
	}
	names, err := read(args)
	return kind, names, err
}

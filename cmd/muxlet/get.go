// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/muxlet/muxlet/controller/server"
	"github.com/muxlet/muxlet/spec"
)

// getOptions are the flags of get.
type getOptions struct {
	*globals
	output    string
	selector  string
	noHeaders bool
}

func newGetCommand(g *globals) *cobra.Command {
	o := &getOptions{globals: g}
	cmd := &cobra.Command{
		Use:   "get [sessions|events] [NAME...]",
		Short: "List sessions or events",
		Long: "List sessions, or the events about them.\n\n" +
			"sessions may be written session or ses, events event or ev, and a name sessions/NAME.\n" +
			"A word that is none of these is the name of a session.",
		Example: "  muxlet get\n  muxlet get -o wide\n  muxlet get checkout-bug -o yaml\n  muxlet get events checkout-bug",
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.run(cmd.Context(), args)
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&o.output, "output", "o", "", "format: wide, json, yaml or name")
	flags.StringVarP(&o.selector, "selector", "l", "", "label selector, such as repo=shop")
	flags.BoolVar(&o.noHeaders, "no-headers", false, "print no line of headers")
	return cmd
}

// The formats of get.
const (
	outputTable = ""
	outputWide  = "wide"
	outputJSON  = "json"
	outputYAML  = "yaml"
	outputName  = "name"
)

func (o *getOptions) run(ctx context.Context, args []string) error {
	kind, names, err := parseTarget(args)
	if err != nil {
		return err
	}
	if err := o.validate(names); err != nil {
		return err
	}
	client, err := o.client()
	if err != nil {
		return err
	}
	defer client.Close()
	if kind == kindEvents {
		return o.events(ctx, client, names)
	}
	if len(names) > 0 {
		return o.named(ctx, client, names)
	}
	return o.all(ctx, client)
}

func (o *getOptions) validate(names []string) error {
	switch o.output {
	case outputTable, outputWide, outputJSON, outputYAML, outputName:
	default:
		return usagef("unknown format %q for -o: it must be wide, json, yaml or name", o.output)
	}
	if _, err := labels.Parse(o.selector); err != nil {
		return usagef("the selector %q is not valid: %v", o.selector, err)
	}
	if o.selector != "" && len(names) > 0 {
		return usagef("a name and a selector cannot be given together")
	}
	return nil
}

// all lists the sessions, and then what is wrong around them.
func (o *getOptions) all(ctx context.Context, client *server.Client) error {
	list, err := client.Sessions(ctx, o.selector)
	if err != nil {
		return err
	}
	if o.output != outputTable && o.output != outputWide {
		return o.print(objects(list.Items), true)
	}
	if err := o.table(sessionTable(list.Items, o.now())); err != nil {
		return err
	}
	status, err := client.Status(ctx)
	if err != nil {
		return err
	}
	if len(list.Items) == 0 {
		o.sayNothingFound(status)
	}
	o.footers(status)
	return nil
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
	if o.output != outputTable && o.output != outputWide {
		if err := o.print(objects(found), len(names) > 1); err != nil {
			return err
		}
		return failed
	}
	if err := o.table(sessionTable(found, o.now())); err != nil {
		return err
	}
	return failed
}

func objects(sessions []spec.Session) []runtime.Object {
	all := make([]runtime.Object, 0, len(sessions))
	for i := range sessions {
		all = append(all, &sessions[i])
	}
	return all
}

func (o *getOptions) table(table *metav1.Table) error {
	printer := printers.NewTablePrinter(printers.PrintOptions{NoHeaders: o.noHeaders, Wide: o.output == outputWide})
	if err := printer.PrintObj(table, o.out); err != nil {
		return fmt.Errorf("print the table: %w", err)
	}
	return nil
}

// print shows objects for a program: one of them as it is, or all as a List.
func (o *getOptions) print(all []runtime.Object, list bool) error {
	if o.output == outputName {
		return o.printAll(&printers.NamePrinter{}, all)
	}
	var printer printers.ResourcePrinter = &printers.JSONPrinter{}
	if o.output == outputYAML {
		printer = &printers.YAMLPrinter{}
	}
	if !list {
		return o.printAll(printer, all)
	}
	items := []runtime.RawExtension{}
	for _, object := range all {
		items = append(items, runtime.RawExtension{Object: object})
	}
	return o.printAll(printer, []runtime.Object{&corev1.List{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "List"},
		Items:    items,
	}})
}

func (o *getOptions) printAll(printer printers.ResourcePrinter, all []runtime.Object) error {
	for _, object := range all {
		if err := printer.PrintObj(object, o.out); err != nil {
			return fmt.Errorf("print %s: %w", o.output, err)
		}
	}
	return nil
}

// resourceKind is what get lists.
type resourceKind int

const (
	kindSessions resourceKind = iota
	kindEvents
)

var kindWords = map[string]resourceKind{
	"sessions": kindSessions, "session": kindSessions, "ses": kindSessions,
	"events": kindEvents, "event": kindEvents, "ev": kindEvents,
}

// parseTarget reads [KIND] [NAME...], where a name may be sessions/NAME.
func parseTarget(args []string) (resourceKind, []string, error) {
	kind := kindSessions
	if len(args) > 0 {
		if known, ok := kindWords[args[0]]; ok {
			kind, args = known, args[1:]
		}
	}
	names, err := sessionNames(args)
	return kind, names, err
}

// sessionNames reads names of sessions, each once.
func sessionNames(args []string) ([]string, error) {
	var names []string
	seen := map[string]bool{}
	for _, arg := range args {
		name := arg
		if kind, rest, ok := strings.Cut(arg, "/"); ok {
			if known, ok := kindWords[strings.TrimSuffix(kind, "."+spec.GroupVersion.Group)]; !ok || known != kindSessions {
				return nil, usagef("%q names no session: write NAME or sessions/NAME", arg)
			}
			name = rest
		}
		if name == "" {
			return nil, usagef("%q names no session: the name is missing", arg)
		}
		if !seen[name] {
			seen[name] = true
			names = append(names, name)
		}
	}
	return names, nil
}

// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/muxlet/muxlet/config/schema"
	"github.com/muxlet/muxlet/spec"
	"github.com/muxlet/muxlet/spec/lazyregexp"
)

// The formats of explain.
const outputPlaintext = "plaintext"

var explainOutputs = []string{outputPlaintext, outputJSON}

type explainOptions struct {
	*globals
	output    string
	recursive bool
}

func newExplainCommand(g *globals) *cobra.Command {
	o := &explainOptions{globals: g}
	cmd := &cobra.Command{
		Use:   "explain [KIND][.FIELD]...",
		Short: "Print what the fields of a document mean",
		Long: "Print what a kind of document is, or one of its fields, and the fields in it. Without a\n" +
			"kind a path that begins with spec, metadata or status is one of a session. What is told\n" +
			"is what this program does: no daemon is needed.",
		Example: "  muxlet explain session\n" +
			"  muxlet explain session.spec.workspace\n" +
			"  muxlet explain spec --recursive\n" +
			"  muxlet explain clientclass.spec.submit.method\n" +
			"  muxlet explain config.backOff",
		Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			return o.run(strings.Join(args, ""))
		},
		ValidArgsFunction: completeFieldPath,
	}
	cmd.Flags().BoolVar(&o.recursive, "recursive", false, "print the names of all fields below, without what they mean")
	cmd.Flags().StringVarP(&o.output, "output", "o", outputPlaintext, "format: plaintext or json, which is a JSON Schema")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(explainOutputs, noFiles))
	return cmd
}

func (o *explainOptions) run(path string) error {
	if !slices.Contains(explainOutputs, o.output) {
		return usagef("unknown format %q for -o: it must be plaintext or json", o.output)
	}
	if path == "" {
		return o.kinds()
	}
	found, err := findField(path)
	if err != nil {
		return err
	}
	if o.output == outputJSON {
		data, err := json.MarshalIndent(found.schema, "", "    ")
		if err != nil {
			return fmt.Errorf("encode the schema: %w", err)
		}
		return o.say("%s", data)
	}
	text, err := found.text(o.recursive)
	if err != nil {
		return err
	}
	return o.say("%s", text)
}

// kinds lists what can be explained.
func (o *explainOptions) kinds() error {
	if o.output == outputJSON {
		return usagef("-o json needs a kind: %s", kindList())
	}
	if err := o.say("These kinds can be explained:\n"); err != nil {
		return err
	}
	for _, kind := range schema.Kinds() {
		if err := o.say("  %-21s %s", kind.Words[0], kind.Short); err != nil {
			return err
		}
	}
	return o.say("\nSay which, and a field of it if you like, such as: muxlet explain session.spec.workspace")
}

func kindList() string {
	var names []string
	for _, kind := range schema.Kinds() {
		names = append(names, kind.Words[0])
	}
	return strings.Join(names, ", ")
}

// explained is a kind, or a field of one.
type explained struct {
	kind   schema.Kind
	schema *schema.Schema
	// name of the field; empty for the kind itself.
	name string
	// required says whether a document must have it.
	required bool
}

// indexed is the number of an item, which says nothing here.
var indexed = lazyregexp.New(`\[[^\]]*\]`)

// findField is what a path names. Below a list the fields are those of its items.
func findField(path string) (*explained, error) {
	words := strings.Split(indexed.ReplaceAllString(path, ""), ".")
	kind, rest, err := explainedKind(words)
	if err != nil {
		return nil, err
	}
	root, err := kind.Schema()
	if err != nil {
		return nil, err
	}
	found := &explained{kind: kind, schema: root}
	at := kind.Words[0]
	for _, name := range rest {
		field := found.schema.Field(name)
		if field == nil {
			return nil, noField(found.schema, at, name)
		}
		found = &explained{kind: kind, schema: field, name: name, required: found.schema.Requires(name)}
		at += "." + name
	}
	return found, nil
}

// explainedKind sets the kind of a path apart from its fields.
func explainedKind(words []string) (schema.Kind, []string, error) {
	var known []string
	for _, kind := range schema.Kinds() {
		if slices.Contains(kind.Words, strings.ToLower(words[0])) {
			return kind, words[1:], nil
		}
		known = append(known, kind.Words...)
	}
	session := schema.Kinds()[0]
	root, err := session.Schema()
	if err != nil {
		return session, nil, err
	}
	if root.Field(words[0]) != nil {
		return session, words, nil
	}
	return session, nil, usagef("%q is no kind: it must be %s, or a path in a session such as spec.workspace%s",
		words[0], kindList(), meant(spec.Nearest(words[0], append(known, root.Fields()...))))
}

func noField(s *schema.Schema, at, name string) error {
	fields := s.Fields()
	if len(fields) == 0 {
		return usagef("%s has no fields, and so no %q", at, name)
	}
	nearest := spec.Nearest(name, fields)
	if nearest == "" {
		for _, field := range fields {
			if s.Field(field).Field(name) != nil {
				nearest = field + "." + name
			}
		}
	}
	if nearest == "" {
		return usagef("%s has no field %q: \"muxlet explain %s\" lists those that it has", at, name, at)
	}
	return usagef("%s has no field %q%s", at, name, meant(at+"."+nearest))
}

func meant(suggestion string) string {
	if suggestion == "" {
		return ""
	}
	return fmt.Sprintf(" (did you mean %q?)", suggestion)
}

// completeFieldPath completes a path field by field.
func completeFieldPath(_ *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, noFiles
	}
	paths := fieldPaths(word)
	directive := noFiles
	for _, path := range paths {
		if found, err := findField(path); err == nil && len(found.schema.Fields()) > 0 {
			directive |= cobra.ShellCompDirectiveNoSpace
		}
	}
	return paths, directive
}

// fieldPaths are the paths of fields that begin with prefix and are one field longer than
// its last dot: the kinds, and what a session has, for a prefix without one.
func fieldPaths(prefix string) []string {
	var candidates []string
	if i := strings.LastIndexByte(prefix, '.'); i >= 0 {
		found, err := findField(prefix[:i])
		if err != nil {
			return nil
		}
		for _, name := range found.schema.Fields() {
			candidates = append(candidates, prefix[:i+1]+name)
		}
	} else {
		for _, kind := range schema.Kinds() {
			candidates = append(candidates, kind.Words[0])
		}
		candidates = append(candidates, "config", "spec", "metadata", "status")
	}
	return slices.DeleteFunc(candidates, func(c string) bool { return !strings.HasPrefix(c, prefix) })
}

// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muxlet/muxlet/controller/server"
	"github.com/muxlet/muxlet/spec"
)

// completion is what cobra asks for the words that can stand somewhere.
type completion = func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective)

// oneOf completes a word of a list. One that ends in an equals sign wants something behind
// it, and so no blank.
func oneOf(words []string) completion {
	return func(_ *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
		return begin(words, begun)
	}
}

func begin(words []string, begun string) ([]string, cobra.ShellCompDirective) {
	directive := noFiles
	for _, word := range words {
		if word, _, _ := strings.Cut(word, "\t"); strings.HasPrefix(word, begun) && strings.HasSuffix(word, "=") {
			directive |= cobra.ShellCompDirectiveNoSpace
		}
	}
	return words, directive
}

// completeFormat completes -o of get, the file that a format names, and the fields of a
// JSONPath.
func completeFormat(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	format, argument, given := strings.Cut(begun, "=")
	switch format += "="; {
	case !given:
		return begin(outputs, begun)
	case format == outputJSONPath:
		paths, directive := completePath(kindIn(cmd, args), argument)
		for i := range paths {
			paths[i] = format + paths[i]
		}
		return paths, directive
	case format == outputJSONPathFile, format == outputColumnsFile:
		return nil, cobra.ShellCompDirectiveDefault
	}
	return nil, noFiles
}

// completeSort completes --sort-by of get: a word, or a path that was begun.
func completeSort(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	if strings.HasPrefix(begun, ".") || strings.HasPrefix(begun, "{") {
		return completePath(kindIn(cmd, args), begun)
	}
	return sortWords[kindIn(cmd, args)], noFiles
}

// kindIn is the kind that the arguments of get or events are about.
func kindIn(cmd *cobra.Command, args []string) resourceKind {
	if cmd.Name() == "events" {
		return kindEvents
	}
	kind, _, err := parseTarget(args)
	if err != nil {
		return kindSessions
	}
	return kind
}

// completeGoal completes --for of wait.
func completeGoal(_ *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	kind := kindSessions
	if known, _, err := waitTarget(args); err == nil {
		kind = known
	}
	if argument, ok := strings.CutPrefix(begun, forJSONPath); ok {
		paths, directive := completePath(kind, argument)
		for i := range paths {
			paths[i] = forJSONPath + paths[i]
		}
		return paths, directive
	}
	var words []string
	if strings.HasPrefix(begun, forCondition) {
		for _, known := range conditionTypes(kind) {
			words = append(words, forCondition+known)
		}
		return words, noFiles
	}
	if len(conditionTypes(kind)) > 0 {
		words = append(words, forCondition)
	}
	return begin(append(words, forJSONPath, forCreate, forDelete), begun)
}

// completePath completes the last field of a JSONPath. More may follow, and so no blank.
func completePath(kind resourceKind, begun string) ([]string, cobra.ShellCompDirective) {
	object := map[resourceKind]any{
		kindSessions: spec.Session{}, kindTurns: spec.Turn{}, kindClasses: spec.ClientClass{}, kindEvents: corev1.Event{},
	}[kind]
	at := strings.LastIndexByte(begun, '.')
	if at < 0 {
		at = len(begun)
	}
	fields := reflect.TypeOf(object)
	for name := range strings.SplitSeq(strings.TrimLeft(begun[:at], "{."), ".") {
		if name, _, _ = strings.Cut(name, "["); name == "" {
			continue
		}
		if fields = fieldsOf(fields)[name]; fields == nil {
			return nil, noFiles
		}
	}
	var paths []string
	for _, name := range slices.Sorted(maps.Keys(fieldsOf(fields))) {
		paths = append(paths, begun[:at]+"."+name)
	}
	return paths, noFiles | cobra.ShellCompDirectiveNoSpace
}

// fieldsOf are the fields of a type as JSON names them; none for what is written as text.
func fieldsOf(t reflect.Type) map[string]reflect.Type {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	fields := map[string]reflect.Type{}
	if t.Kind() != reflect.Struct || slices.Contains([]reflect.Type{reflect.TypeFor[metav1.Time](), reflect.TypeFor[metav1.Duration](), reflect.TypeFor[metav1.MicroTime]()}, t) {
		return fields
	}
	for i := range t.NumField() {
		field := t.Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case field.Anonymous && (name == "" || strings.Contains(options, "inline")):
			maps.Copy(fields, fieldsOf(field.Type))
		case name != "" && name != "-":
			fields[name] = field.Type
		}
	}
	return fields
}

// completeSelector completes the last term of a label selector with what sessions have.
func (g *globals) completeSelector(cmd *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
	before, term := "", begun
	if i := strings.LastIndexByte(begun, ','); i >= 0 {
		before, term = begun[:i+1], begun[i+1:]
	}
	key, _, given := strings.Cut(term, "=")
	var words []string
	for name, values := range g.knownLabels(cmd) {
		switch {
		case !given:
			words = append(words, before+name+"=")
		case name == key:
			for value := range values {
				words = append(words, before+name+"="+value)
			}
		}
	}
	slices.Sort(words)
	return begin(words, begun)
}

// completeLabel completes a label's key.
func (g *globals) completeLabel(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	return slices.Sorted(maps.Keys(g.knownLabels(cmd))), noFiles
}

// knownLabels are the labels of sessions, each with its values.
func (g *globals) knownLabels(cmd *cobra.Command) map[string]map[string]bool {
	labels := map[string]map[string]bool{}
	g.known(cmd, nil, func(ctx context.Context, client *server.Client) (map[string]string, error) {
		list, err := client.Sessions(ctx, "")
		for i := range list.Items {
			for key, value := range list.Items[i].Labels {
				if labels[key] == nil {
					labels[key] = map[string]bool{}
				}
				labels[key][value] = true
			}
		}
		return nil, err
	})
	return labels
}

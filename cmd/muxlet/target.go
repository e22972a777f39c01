// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/muxlet/muxlet/spec"
	"github.com/muxlet/muxlet/spec/manifest"
)

// kindOf reads a word for a kind, such as cc or clientclasses.muxlet.dev.
func kindOf(word string) (resourceKind, bool) {
	kind, known := kindWords[strings.TrimSuffix(word, "."+spec.GroupVersion.Group)]
	return kind, known
}

// documentRefs reads what a verb for documents is about: NAME or sessions/NAME is a
// session; clientclass NAME... and clientclass/NAME are client classes. A session may
// have the name of a kind: a word for one that stands alone is its name.
func documentRefs(args []string) ([]manifest.Ref, error) {
	if len(args) > 1 {
		if kind, known := kindOf(args[0]); known && kind == kindClasses {
			return refsOf(spec.KindClientClass, args[1:])
		}
	}
	var refs []manifest.Ref
	for _, arg := range args {
		kind := spec.KindSession
		if word, _, ok := strings.Cut(arg, "/"); ok {
			if known, ok := kindOf(word); ok && known == kindClasses {
				kind = spec.KindClientClass
			}
		}
		more, err := refsOf(kind, []string{arg})
		if err != nil {
			return nil, err
		}
		for _, r := range more {
			if !slices.Contains(refs, r) {
				refs = append(refs, r)
			}
		}
	}
	return refs, nil
}

func refsOf(kind string, args []string) ([]manifest.Ref, error) {
	read := sessionNames
	if kind == spec.KindClientClass {
		read = classNames
	}
	names, err := read(args)
	if err != nil {
		return nil, err
	}
	refs := make([]manifest.Ref, 0, len(names))
	for _, name := range names {
		refs = append(refs, manifest.Ref{Kind: kind, Name: name})
	}
	return refs, nil
}

// sessionNames reads names of sessions, each once.
func sessionNames(args []string) ([]string, error) { return namesOf(args, kindSessions, "session") }

// classNames reads names of client classes, each once.
func classNames(args []string) ([]string, error) {
	return namesOf(args, kindClasses, "client class")
}

// turnNames reads names of turns, each once.
func turnNames(args []string) ([]string, error) { return namesOf(args, kindTurns, "turn") }

// splitTurns takes the turns out of what a verb for several kinds is about: turn NAME... and
// turn/NAME. A word for the kind that stands alone is the name of a session.
func splitTurns(args []string) (turns, others []string, err error) {
	if len(args) > 1 {
		if kind, known := kindOf(args[0]); known && kind == kindTurns {
			turns, err = turnNames(args[1:])
			return turns, nil, err
		}
	}
	for _, arg := range args {
		word, _, isPath := strings.Cut(arg, "/")
		if kind, known := kindOf(word); isPath && known && kind == kindTurns {
			turns = append(turns, arg)
		} else {
			others = append(others, arg)
		}
	}
	turns, err = turnNames(turns)
	return turns, others, err
}

// namesOf reads NAME and KIND/NAME of one kind, each once.
func namesOf(args []string, kind resourceKind, what string) ([]string, error) {
	var names []string
	seen := map[string]bool{}
	for _, arg := range args {
		name := arg
		if word, rest, ok := strings.Cut(arg, "/"); ok {
			if known, ok := kindOf(word); !ok || known != kind {
				return nil, usagef("%q names no %s: write NAME or %s/NAME%s", arg, what, pluralOf(kind), didYouMean(word, wordsOf(kind)))
			}
			name = rest
		}
		if name == "" {
			return nil, usagef("%q names no %s: the name is missing", arg, what)
		}
		if !seen[name] {
			seen[name] = true
			names = append(names, name)
		}
	}
	return names, nil
}

// wordsOf are the words for a kind.
func wordsOf(kind resourceKind) []string {
	var words []string
	for _, word := range slices.Sorted(maps.Keys(kindWords)) {
		if kindWords[word] == kind {
			words = append(words, word)
		}
	}
	return words
}

func pluralOf(kind resourceKind) string {
	switch kind {
	case kindClasses:
		return "clientclasses"
	case kindTurns:
		return "turns"
	case kindSessions, kindEvents:
	}
	return "sessions"
}

// argumentOf names something as kubectl does: session/a, clientclass/b.
func argumentOf(r manifest.Ref) string { return strings.ToLower(r.Kind) + "/" + r.Name }

// objectOf is what a valid document declares.
func objectOf(d spec.Document) runtime.Object {
	if d.Class != nil {
		return d.Class
	}
	return d.Session
}

// sortedRefs are the keys in order: sessions last, each kind by name.
func sortedRefs[T any](m map[manifest.Ref]T) []manifest.Ref {
	return slices.SortedFunc(maps.Keys(m), func(a, b manifest.Ref) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
}

// classesIn are the classes by which documents are judged before they are written.
func (g *globals) classesIn(r manifest.Reading) (*manifest.Classes, error) {
	settings, err := g.settings()
	if err != nil {
		return nil, err
	}
	classes := &manifest.Classes{Default: settings.DefaultClientClassName, Defaults: settings.Sessions, Declared: map[string]*spec.ClientClass{}}
	classes.AddReading(r)
	return classes, nil
}

// unknownClass says of a session that there is no such class, and which there are.
func unknownClass(name string, classes *manifest.Classes) string {
	return fmt.Sprintf("names the client class %q, which is neither declared nor built in; there are %s",
		name, strings.Join(spec.ClassNames(classes.Declared), ", "))
}

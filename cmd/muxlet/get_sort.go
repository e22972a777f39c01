// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/jsonpath"

	"github.com/muxlet/muxlet/spec"
)

// The words of --sort-by; anything else is a JSONPath.
const (
	sortName     = "name"
	sortAge      = "age"
	sortRestarts = "restarts"
	sortStatus   = "status"
	sortSession  = "session"
	sortSessions = "sessions"
	sortType     = "type"
	sortReason   = "reason"
	sortCount    = "count"
)

var sortWords = map[resourceKind][]string{
	kindSessions: {sortName, sortAge, sortRestarts, sortStatus},
	kindTurns:    {sortName, sortAge, sortSession, sortStatus},
	kindClasses:  {sortName, sortAge, sortSessions},
	kindEvents:   {sortName, sortAge, sortType, sortReason, sortCount},
}

// order is what a word of --sort-by means for objects of one kind.
type order[T any] map[string]func(a, b *T) int

var sessionOrder = order[spec.Session]{
	sortName: func(a, b *spec.Session) int { return strings.Compare(a.Name, b.Name) },
	sortAge:  func(a, b *spec.Session) int { return b.CreationTimestamp.Compare(a.CreationTimestamp.Time) },
	sortRestarts: func(a, b *spec.Session) int {
		return cmp.Compare(a.Status.Client.RestartCount, b.Status.Client.RestartCount)
	},
	sortStatus: func(a, b *spec.Session) int {
		return strings.Compare(string(spec.DisplayStatus(a)), string(spec.DisplayStatus(b)))
	},
}

var turnOrder = order[spec.Turn]{
	sortName:    func(a, b *spec.Turn) int { return strings.Compare(a.Name, b.Name) },
	sortAge:     func(a, b *spec.Turn) int { return b.CreationTimestamp.Compare(a.CreationTimestamp.Time) },
	sortSession: func(a, b *spec.Turn) int { return strings.Compare(a.Spec.SessionName, b.Spec.SessionName) },
	sortStatus: func(a, b *spec.Turn) int {
		return strings.Compare(string(spec.DisplayTurnStatus(a)), string(spec.DisplayTurnStatus(b)))
	},
}

var classOrder = order[spec.ClientClass]{
	sortName:     func(a, b *spec.ClientClass) int { return strings.Compare(a.Name, b.Name) },
	sortAge:      func(a, b *spec.ClientClass) int { return b.CreationTimestamp.Compare(a.CreationTimestamp.Time) },
	sortSessions: func(a, b *spec.ClientClass) int { return cmp.Compare(a.Status.Sessions, b.Status.Sessions) },
}

var eventOrder = order[corev1.Event]{
	sortName:   func(a, b *corev1.Event) int { return strings.Compare(a.Name, b.Name) },
	sortAge:    func(a, b *corev1.Event) int { return lastSeen(b).Compare(lastSeen(a).Time) },
	sortType:   func(a, b *corev1.Event) int { return strings.Compare(a.Type, b.Type) },
	sortReason: func(a, b *corev1.Event) int { return strings.Compare(a.Reason, b.Reason) },
	sortCount:  func(a, b *corev1.Event) int { return cmp.Compare(a.Count, b.Count) },
}

// sortObjects orders objects by --sort-by: nothing, one of the words, or a JSONPath.
func sortObjects[T any](objects []T, by string, words order[T]) error {
	if by == "" {
		return nil
	}
	if compare, ok := words[by]; ok {
		slices.SortStableFunc(objects, func(a, b T) int { return compare(&a, &b) })
		return nil
	}
	return sortByPath(objects, by)
}

// sortSessions orders by --sort-by. Without it a person sees those first that
// wait for a person, the longest first; a program gets them by name.
func (o *getOptions) sortSessions(sessions []spec.Session) error {
	if o.sortBy == "" && o.tabular() {
		slices.SortStableFunc(sessions, func(a, b spec.Session) int { return spec.CompareWaiting(&a, &b) })
	}
	return sortObjects(sessions, o.sortBy, sessionOrder)
}

// rank is lower for what comes first.
func rank(first bool) int {
	if first {
		return 0
	}
	return 1
}

// checkSortPath says whether an expression is a JSONPath of --sort-by.
func checkSortPath(expression string, kind resourceKind) error {
	if _, err := relaxedPath("sort-by", expression); err != nil || !strings.Contains(expression, ".") {
		return usagef("cannot sort by %q: give %s, or a JSONPath such as .metadata.name%s",
			expression, strings.Join(sortWords[kind], ", "), didYouMean(expression, sortWords[kind]))
	}
	return nil
}

// relaxedPath reads a JSONPath as kubectl does: with or without braces and the first dot.
// What is not there is nothing.
func relaxedPath(name, expression string) (*jsonpath.JSONPath, error) {
	text, opened := strings.CutPrefix(expression, "{")
	text, closed := strings.CutSuffix(text, "}")
	switch {
	case text == "":
		return nil, errors.New("it is empty")
	case opened != closed:
		return nil, errors.New("it has one brace of two")
	}
	if !strings.HasPrefix(text, ".") && !strings.HasPrefix(text, "[") {
		text = "." + text
	}
	path := jsonpath.New(name).AllowMissingKeys(true)
	return path, path.Parse("{" + text + "}")
}

// sortByPath orders objects by what a JSONPath finds in them; numbers by their
// value, those without one first.
func sortByPath[T any](objects []T, expression string) error {
	path, err := relaxedPath("sort-by", expression)
	if err != nil {
		return usagef("cannot sort by %q: %v", expression, err)
	}
	type keyed struct {
		key    any
		object T
	}
	all := make([]keyed, 0, len(objects))
	for i := range objects {
		key, err := pathKey(path, &objects[i])
		if err != nil {
			return err
		}
		all = append(all, keyed{key, objects[i]})
	}
	slices.SortStableFunc(all, func(a, b keyed) int { return compareKeys(a.key, b.key) })
	for i := range all {
		objects[i] = all[i].object
	}
	return nil
}

// pathKey is the first thing that the path finds; nil for nothing.
func pathKey(path *jsonpath.JSONPath, object any) (any, error) {
	plain, err := asJSON(object)
	if err != nil {
		return nil, err
	}
	found, err := path.FindResults(plain)
	if err != nil {
		return nil, usagef("cannot sort: %v", err)
	}
	for _, results := range found {
		for _, result := range results {
			if result.IsValid() && result.CanInterface() {
				return result.Interface(), nil
			}
		}
	}
	return nil, nil
}

func compareKeys(a, b any) int {
	if x, ok := number(a); ok {
		if y, ok := number(b); ok {
			return cmp.Compare(x, y)
		}
	}
	if a == nil || b == nil {
		return cmp.Compare(rank(a == nil), rank(b == nil))
	}
	return strings.Compare(fmt.Sprint(a), fmt.Sprint(b))
}

// number is a value of a JSON object as a number, if it is one.
func number(value any) (float64, bool) {
	switch n := value.(type) {
	case int64:
		return float64(n), true
	case float64:
		return n, true
	}
	return 0, false
}

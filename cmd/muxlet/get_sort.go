// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/client-go/util/jsonpath"

	"github.com/muxlet/muxlet/spec"
)

// The words of --sort-by; anything else is a JSONPath.
const (
	sortName     = "name"
	sortAge      = "age"
	sortRestarts = "restarts"
	sortStatus   = "status"
)

var sortWords = []string{sortName, sortAge, sortRestarts, sortStatus}

// sortSessions orders by --sort-by. Without it a person sees those first that
// wait for a person, the longest first; a program gets them by name.
func (o *getOptions) sortSessions(sessions []spec.Session) error {
	switch o.sortBy {
	case "":
		if o.tabular() {
			slices.SortStableFunc(sessions, func(a, b spec.Session) int { return spec.CompareWaiting(&a, &b) })
		}
	case sortName:
		slices.SortStableFunc(sessions, func(a, b spec.Session) int { return strings.Compare(a.Name, b.Name) })
	case sortAge:
		slices.SortStableFunc(sessions, func(a, b spec.Session) int { return b.CreationTimestamp.Compare(a.CreationTimestamp.Time) })
	case sortRestarts:
		slices.SortStableFunc(sessions, func(a, b spec.Session) int {
			return cmp.Compare(a.Status.Client.RestartCount, b.Status.Client.RestartCount)
		})
	case sortStatus:
		slices.SortStableFunc(sessions, func(a, b spec.Session) int {
			return strings.Compare(string(spec.DisplayStatus(&a)), string(spec.DisplayStatus(&b)))
		})
	default:
		return sortByPath(sessions, o.sortBy)
	}
	return nil
}

// rank is lower for what comes first.
func rank(first bool) int {
	if first {
		return 0
	}
	return 1
}

// sortPath reads the JSONPath of --sort-by.
func sortPath(expression string) (*jsonpath.JSONPath, error) {
	path, err := relaxedPath("sort-by", expression)
	if err != nil || !strings.Contains(expression, ".") {
		return nil, usagef("cannot sort by %q: give %s, or a JSONPath such as .metadata.name", expression, strings.Join(sortWords, ", "))
	}
	return path, nil
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
	path, err := sortPath(expression)
	if err != nil {
		return err
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

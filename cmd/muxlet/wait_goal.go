// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/jsonpath"

	"github.com/muxlet/muxlet/spec"
)

// The words that --for of wait begins with.
const (
	forCondition = "condition="
	forJSONPath  = "jsonpath="
	forDelete    = "delete"
	forCreate    = "create"
)

// goal is what is waited for.
type goal struct {
	// words are those of the person.
	words string
	// condition and status, or path and value; neither for create and delete. A path
	// without a value asks for anything that is there.
	condition, status string
	path              *jsonpath.JSONPath
	value             string
	exists            bool
	// gone is the goal delete.
	gone bool
}

// parseGoal reads --for.
func parseGoal(text string, kind resourceKind) (*goal, error) {
	switch {
	case text == forDelete:
		return &goal{words: text, gone: true}, nil
	case text == forCreate:
		return &goal{words: text}, nil
	case strings.HasPrefix(text, forCondition):
		return conditionGoal(text, kind)
	case strings.HasPrefix(text, forJSONPath):
		return pathGoal(text)
	}
	return nil, usagef("unknown goal %q for --for: it must be condition=CONDITION[=STATUS], jsonpath='{PATH}'[=VALUE], create or delete%s",
		text, didYouMean(text, []string{forDelete, forCreate, "condition", "jsonpath"}))
}

// conditionGoal reads condition=C[=V]. The letter case of both does not count, as with
// kubectl.
func conditionGoal(text string, kind resourceKind) (*goal, error) {
	name, status, given := strings.Cut(strings.TrimPrefix(text, forCondition), "=")
	if !given {
		status = string(metav1.ConditionTrue)
	}
	known := conditionTypes(kind)
	i := slices.IndexFunc(known, func(k string) bool { return strings.EqualFold(k, name) })
	if i < 0 {
		if len(known) == 0 {
			return nil, usagef("a %s has no conditions: wait for jsonpath='{PATH}'[=VALUE], create or delete", singularOf(kind))
		}
		return nil, usagef("unknown condition %q of a %s: it must be %s%s", name, singularOf(kind), strings.Join(known, ", "), didYouMean(name, known))
	}
	statuses := []string{string(metav1.ConditionTrue), string(metav1.ConditionFalse), string(metav1.ConditionUnknown)}
	j := slices.IndexFunc(statuses, func(s string) bool { return strings.EqualFold(s, status) })
	if j < 0 {
		return nil, usagef("a condition is never %q: it is True, False or Unknown", status)
	}
	return &goal{words: text, condition: known[i], status: statuses[j]}, nil
}

// conditionTypes are the conditions that objects of a kind have.
func conditionTypes(kind resourceKind) []string {
	switch kind {
	case kindSessions:
		return spec.ConditionTypes
	case kindTurns:
		return spec.TurnConditionTypes
	case kindClasses, kindEvents:
	}
	return nil
}

// pathGoal reads jsonpath='{PATH}'[=VALUE]. Braces may be left out where the path has no
// equals sign.
func pathGoal(text string) (*goal, error) {
	expression, value, given := cutPath(strings.TrimPrefix(text, forJSONPath))
	if given && value == "" {
		return nil, usagef("the value that %q waits for is empty: leave the last equals sign out to wait until there is any", text)
	}
	path, err := relaxedPath("for", expression)
	if err != nil {
		return nil, usagef("the JSONPath %q of --for is not valid: %v", expression, err)
	}
	return &goal{words: text, path: path, value: value, exists: !given}, nil
}

func cutPath(text string) (expression, value string, given bool) {
	if !strings.HasPrefix(text, "{") {
		return strings.Cut(text, "=")
	}
	for i := range len(text) {
		if text[i] == '}' && (i == len(text)-1 || text[i+1] == '=') {
			value, given = strings.CutPrefix(text[i+1:], "=")
			return text[:i+1], value, given
		}
	}
	return text, "", false
}

// met says whether the object, as a program reads it, is as it is waited for. The error
// says that it never can be: the path leads to what has no one value.
func (w *goal) met(object any) (bool, error) {
	switch {
	case w.condition != "":
		return w.conditionMet(object), nil
	case w.path != nil:
		return w.pathMet(object)
	}
	return !w.gone, nil
}

// conditionMet passes over a condition that is older than the spec.
func (w *goal) conditionMet(object any) bool {
	generation, _ := fieldOf(object, "metadata", "generation").(int64)
	conditions, _ := fieldOf(object, "status", "conditions").([]any)
	for _, c := range conditions {
		if fieldOf(c, "type") != w.condition {
			continue
		}
		observed, known := fieldOf(c, "observedGeneration").(int64)
		return fieldOf(c, "status") == w.status && (!known || observed >= generation)
	}
	return false
}

func (w *goal) pathMet(object any) (bool, error) {
	found, err := w.path.FindResults(object)
	if err != nil {
		return false, usagef("the path of %q does not fit: %v", w.words, err)
	}
	var values []any
	for _, results := range found {
		for _, r := range results {
			if r.IsValid() && r.CanInterface() && r.Interface() != nil {
				values = append(values, r.Interface())
			}
		}
	}
	if len(values) == 0 || w.exists {
		return len(values) > 0, nil
	}
	if len(values) > 1 {
		return false, usagef("the path of %q finds %d values: it must find one", w.words, len(values))
	}
	switch values[0].(type) {
	case map[string]any, []any:
		return false, usagef("the path of %q finds an object or a list: it must find one value", w.words)
	}
	return fmt.Sprint(values[0]) == w.value, nil
}

// isAnAct says whether it is a person's own act that is waited for, so that a session
// that waits for a person is on its way.
func (w *goal) isAnAct() bool {
	switch w.condition {
	case spec.ConditionInputRequired, spec.ConditionStalled, spec.ConditionSuspended:
		return w.status != string(metav1.ConditionTrue)
	}
	return false
}

// fieldOf is what stands in nested objects under the names; nil for nothing.
func fieldOf(object any, names ...string) any {
	for _, name := range names {
		fields, ok := object.(map[string]any)
		if !ok {
			return nil
		}
		object = fields[name]
	}
	return object
}

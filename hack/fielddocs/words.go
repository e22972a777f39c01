// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"regexp"
	"strings"
)

// paragraphs has each paragraph of a comment on a line of its own.
func paragraphs(text string) string {
	var out []string
	for _, p := range strings.Split(text, "\n\n") {
		out = append(out, strings.Join(strings.Fields(p), " "))
	}
	return strings.Join(out, "\n\n")
}

// called writes the name at the beginning of a Go comment as a document has it.
func called(text, goName, name string) string {
	if rest, ok := strings.CutPrefix(text, goName); ok && (rest == "" || strings.ContainsAny(rest[:1], " ,:.'\n")) {
		return name + rest
	}
	return text
}

// both joins what is said of a field with what is said of its type, as kubectl does,
// without saying the same thing twice.
func both(field, typed string) string {
	switch {
	case typed == "" || strings.HasPrefix(field, strings.TrimSuffix(typed, ".")):
		return field
	case strings.HasPrefix(typed, strings.TrimSuffix(field, ".")):
		return typed
	case !strings.Contains(strings.TrimSuffix(typed, "."), ".") && !strings.ContainsAny(typed, ":;"):
		// One plain sentence says in other words what the field has said.
		return field
	}
	return field + "\n\n" + typed
}

// valuesText lists the words of a field with their meanings, as Kubernetes does.
func valuesText(values []constant) string {
	var b strings.Builder
	for _, v := range values {
		text := called(paragraphs(v.doc.text), v.name, "`"+v.value+"`")
		if text == "" {
			text = "`" + v.value + "`"
		}
		b.WriteString("\n - " + text)
	}
	return "\n\nPossible values:" + b.String()
}

var (
	// defaultWord finds the one value that a comment gives as the default; a space behind
	// it begins a condition.
	defaultWord = regexp.MustCompile(`(?:^|[.;:] )Default (\[[^\]]*\]|"[^"]*"|\S+?)[.,;](?: |$)`)
	// limitWords find the bounds.
	limitWords = regexp.MustCompile(`(?:^|[ (])(-?[0-9][0-9A-Za-z.]*) to (-?[0-9][0-9A-Za-z]*)`)
	hasDefault = regexp.MustCompile(`\bDefault\b`)
)

// literalDefault is the value that a comment gives as the default; false for none, and
// for one that depends on something else.
func literalDefault(text string) (string, bool) {
	m := defaultWord.FindStringSubmatch(text)
	if m == nil || strings.HasPrefix(m[1], "$") {
		return "", false
	}
	return m[1], true
}

// limits are the bounds that a comment gives.
func limits(text string) (low, high string, ok bool) {
	m := limitWords.FindStringSubmatch(text)
	if m == nil {
		return "", "", false
	}
	return m[1], m[2], true
}

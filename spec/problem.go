// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Position is a place in a file. Line and Column count from 1; Line 0 means the
// file as a whole.
//
// +kubebuilder:object:generate=false
type Position struct {
	File   string
	Line   int
	Column int
}

// String gives file:line:column, or the file alone.
func (p Position) String() string {
	if p.Line == 0 {
		return p.File
	}
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column)
}

// Problem is one thing that is wrong in a file, for a person. It never holds
// the value of an environment variable.
//
// +kubebuilder:object:generate=false
type Problem struct {
	Position
	// Path of the field, such as spec.client.env[0].name; empty for a problem of
	// the document or the file.
	Path string
	// Message says what is wrong and what is right.
	Message string
	// Suggestion is the nearest right spelling; empty when none is near.
	Suggestion string
}

// Error gives file:line:column: field.path: message (did you mean "x"?).
func (p Problem) Error() string {
	var b strings.Builder
	b.WriteString(p.Position.String())
	b.WriteString(": ")
	if p.Path != "" {
		b.WriteString(p.Path)
		b.WriteString(": ")
	}
	b.WriteString(p.Message)
	if p.Suggestion != "" {
		fmt.Fprintf(&b, "%s%s%s", suggestionOpen, p.Suggestion, suggestionClose)
	}
	return b.String()
}

// String is Error.
func (p Problem) String() string { return p.Error() }

// maxProblems bounds what one document reports; a person mends the first ones
// first.
const maxProblems = 20

// inOrder sorts problems by place and cuts them at maxProblems.
func inOrder(problems []Problem) []Problem {
	slices.SortStableFunc(problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	if len(problems) <= maxProblems {
		return problems
	}
	rest := problems[maxProblems]
	rest.Path, rest.Suggestion = "", ""
	rest.Message = "more problems follow; mend these first"
	return append(problems[:maxProblems:maxProblems], rest)
}

const (
	suggestionOpen  = ` (did you mean "`
	suggestionClose = `"?)`
)

// suggest adds the nearest right spelling to the detail of a field.Error. The
// quotes cannot come from a value, since values are written with %q.
func suggest(detail, suggestion string) string {
	if suggestion == "" {
		return detail
	}
	return detail + suggestionOpen + suggestion + suggestionClose
}

// cutSuggestion is the inverse of suggest.
func cutSuggestion(detail string) (message, suggestion string) {
	message, rest, found := strings.Cut(detail, suggestionOpen)
	if !found {
		return detail, ""
	}
	return message, strings.TrimSuffix(rest, suggestionClose)
}

// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Tree is one parsed document that remembers where each field is. The zero
// value is an empty document.
//
// +kubebuilder:object:generate=false
type Tree struct {
	file string
	root *yaml.Node
}

// Has tells whether the document gives the field, such as backOff.initial, a
// value.
func (t *Tree) Has(path string) bool {
	_, value, missing := t.find(path)
	return value != nil && missing == 0 && !isNull(value)
}

// Position of a field's value, or of the key of the nearest parent that the
// document has. The empty path is the document's first key.
func (t *Tree) Position(path string) Position {
	key, value, missing := t.find(path)
	switch {
	case value == nil:
		return Position{File: t.file}
	case missing > 0 || path == "":
		value = key
	}
	value = visible(key, value)
	return Position{File: t.file, Line: value.Line, Column: value.Column}
}

// Problems gives the errors of a validation their places in the file, in whose
// order they come.
func (t *Tree) Problems(errs field.ErrorList) []Problem {
	problems := make([]Problem, 0, len(errs))
	for _, err := range errs {
		message, suggestion := cutSuggestion(err.Detail)
		if err.Type == field.ErrorTypeRequired {
			message = strings.TrimSuffix("is required: "+message, ": ")
		}
		problems = append(problems, Problem{
			Position: t.Position(err.Field), Path: err.Field, Message: message, Suggestion: suggestion,
		})
	}
	return inOrder(problems)
}

// problem makes one at a node.
func (t *Tree) problem(n *yaml.Node, path, message string) *Problem {
	return &Problem{Position: Position{File: t.file, Line: n.Line, Column: n.Column}, Path: path, Message: message}
}

// text is the value of a field that is a scalar; else empty.
func (t *Tree) text(path string) string {
	_, value, missing := t.find(path)
	if value == nil || missing > 0 || value.Kind != yaml.ScalarNode || isNull(value) {
		return ""
	}
	return value.Value
}

// drop removes every field of that name from the top of the document.
func (t *Tree) drop(name string) {
	root := deref(t.root)
	kept := root.Content[:0]
	for i := 0; i+1 < len(root.Content); i += 2 {
		if root.Content[i].Value != name {
			kept = append(kept, root.Content[i], root.Content[i+1])
		}
	}
	root.Content = kept
}

// find follows a path as far as the document has it. missing is the number of
// segments that it does not have; key and value are of the last one it has.
func (t *Tree) find(path string) (key, value *yaml.Node, missing int) {
	if t.root == nil {
		return nil, nil, 0
	}
	value = deref(t.root)
	key = value
	if len(value.Content) > 0 {
		key = value.Content[0]
	}
	segments := segmentsOf(path)
	for i, segment := range segments {
		k, v := step(value, segment)
		if v == nil {
			return key, value, len(segments) - i
		}
		key, value = k, deref(v)
	}
	return key, value, 0
}

// step goes one segment down. The key of a list item is the item.
func step(n *yaml.Node, s segment) (key, value *yaml.Node) {
	if n.Kind == yaml.SequenceNode && s.index >= 0 && s.index < len(n.Content) {
		return n.Content[s.index], n.Content[s.index]
	}
	if n.Kind != yaml.MappingNode {
		return nil, nil
	}
	for _, p := range pairs(n) {
		if p.key.Value == s.name {
			return p.key, p.value
		}
	}
	return nil, nil
}

// segment of a field path: a field's name, or what is in brackets. index is -1
// when it is not a number.
type segment struct {
	name  string
	index int
}

// segmentsOf splits a path as field.Path writes it: a.b[0].c[some.key].
func segmentsOf(path string) []segment {
	var segments []segment
	for path != "" {
		var s segment
		if rest, found := strings.CutPrefix(path, "["); found {
			s.name, path, _ = strings.Cut(rest, "]")
			s.index = indexOf(s.name)
		} else {
			end := strings.IndexAny(path, ".[")
			if end < 0 {
				end = len(path)
			}
			s.name, s.index, path = path[:end], -1, path[end:]
		}
		path = strings.TrimPrefix(path, ".")
		segments = append(segments, s)
	}
	return segments
}

// indexOf reads an index; -1 when it is none.
func indexOf(s string) int {
	n := 0
	for _, r := range s {
		if r < '0' || r > '9' || n > MaxFileBytes {
			return -1
		}
		n = n*10 + int(r-'0')
	}
	if s == "" {
		return -1
	}
	return n
}

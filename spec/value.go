// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"go.yaml.in/yaml/v3"
)

// Root gives the root mapping of the only document in data, read as DecodeFile
// reads it: JSON too, and with the same limits. It is nil for data without
// content. Lines are those of data; columns are not reliable in JSON that has
// escapes. The error is a Problem.
func Root(data []byte) (*yaml.Node, error) {
	chunks, problems := chunksOf("", data)
	if len(problems) > 0 {
		return nil, problems[0]
	}
	var root *yaml.Node
	for _, c := range chunks {
		tree, problem := parse("", c)
		switch {
		case problem != nil:
			return nil, *problem
		case tree == nil:
		case root != nil:
			return nil, *tree.problem(tree.root, "", "a second document")
		default:
			root = deref(tree.root)
		}
	}
	return root, nil
}

// ValueOf is what a node says, as decoding reads it: a map[string]any, []any,
// string, bool, number or nil. Aliases and merge keys are followed, and a field
// without a value is left out.
func ValueOf(n *yaml.Node) any { return plain(n) }

// Member is one field that a mapping has after its merge keys were followed.
//
// +kubebuilder:object:generate=false
type Member struct{ Key, Value *yaml.Node }

// Members gives the fields of a mapping in order, its own before those that
// merge keys add, without those that have no value.
func Members(n *yaml.Node) []Member {
	var members []Member
	for _, p := range pairs(deref(n)) {
		if value := deref(p.value); !isNull(value) {
			members = append(members, Member{p.key, value})
		}
	}
	return members
}

// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"fmt"

	"go.yaml.in/yaml/v3"
)

// deref follows an alias to its anchor.
func deref(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

// isNull tells a value that is left out, ~ or null.
func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }

// visible gives a value that is left out the place of its key: the parser puts
// it where the next word is, often lines below.
func visible(key, value *yaml.Node) *yaml.Node {
	if !isNull(value) || value.Value != "" {
		return value
	}
	moved := *value
	moved.Line, moved.Column = key.Line, key.Column
	return &moved
}

// pair is one entry of a mapping.
type pair struct{ key, value *yaml.Node }

// pairs are the entries of a mapping: its own, then those that merge keys (<<)
// add. A duplicate among its own is given twice.
func pairs(n *yaml.Node) []pair {
	var own []pair
	var merged []*yaml.Node
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if isMerge(n.Content[i]) {
			merged = append(merged, mergeSources(n.Content[i+1])...)
			continue
		}
		own = append(own, pair{deref(n.Content[i]), n.Content[i+1]})
		seen[deref(n.Content[i]).Value] = true
	}
	for _, source := range merged {
		for _, p := range pairs(source) {
			if !seen[p.key.Value] {
				seen[p.key.Value] = true
				own = append(own, p)
			}
		}
	}
	return own
}

func isMerge(key *yaml.Node) bool { return key.Kind == yaml.ScalarNode && key.ShortTag() == "!!merge" }

// mergeSources are the mappings that the value of a merge key names; nil when
// it is neither a mapping nor a list of them.
func mergeSources(value *yaml.Node) []*yaml.Node {
	value = deref(value)
	switch value.Kind {
	case yaml.MappingNode:
		return []*yaml.Node{value}
	case yaml.SequenceNode:
		var sources []*yaml.Node
		for _, item := range value.Content {
			if item = deref(item); item.Kind != yaml.MappingNode {
				return nil
			}
			sources = append(sources, item)
		}
		return sources
	case yaml.DocumentNode, yaml.ScalarNode, yaml.AliasNode:
	}
	return nil
}

const (
	// maxDepth of nesting, aliases followed. No kind is a tenth as deep.
	maxDepth = 64
	// maxExpansion is what aliases may add to a document, in nodes and bytes of
	// scalars: enough for any template, and little memory.
	maxExpansion = 1 << 18
)

// bounds refuses a document that is too deep, that contains itself, or that
// aliases blow up.
func (t *Tree) bounds() *Problem {
	expansion := 0
	var visit func(n *yaml.Node, depth int, aliased bool) *Problem
	visit = func(n *yaml.Node, depth int, aliased bool) *Problem {
		if n.Kind == yaml.AliasNode {
			aliased = true
		}
		if aliased {
			expansion += 1 + len(n.Value)
		}
		if expansion > maxExpansion {
			return t.problem(n, "", "the aliases of this document expand it too far; write it out or generate it")
		}
		if depth > maxDepth {
			return t.problem(n, "", fmt.Sprintf("nested more than %d levels deep, or an alias that contains itself", maxDepth))
		}
		children := n.Content
		if n.Kind == yaml.AliasNode {
			children = []*yaml.Node{n.Alias}
		}
		for _, child := range children {
			if problem := visit(child, depth+1, aliased); problem != nil {
				return problem
			}
		}
		return nil
	}
	return visit(t.root, 0, false)
}

// yaml11Bools are the words that YAML 1.1, and with it kubectl, takes for truth
// values although the parser in use does not.
var yaml11Bools = map[string]bool{
	"y": true, "Y": true, "yes": true, "Yes": true, "YES": true, "on": true, "On": true, "ON": true,
	"n": false, "N": false, "no": false, "No": false, "NO": false, "off": false, "Off": false, "OFF": false,
}

// notPlain are the styles in which a scalar says what it is.
const notPlain = yaml.SingleQuotedStyle | yaml.DoubleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle | yaml.TaggedStyle

// scalar is the value of a scalar: a string, bool, int, int64, uint64, float64
// or nil. A timestamp is its text.
func scalar(n *yaml.Node) any {
	if b, ok := yaml11Bools[n.Value]; ok && n.Style&notPlain == 0 {
		return b
	}
	switch n.ShortTag() {
	case "!!bool", "!!int", "!!float", "!!null":
		var v any
		if err := n.Decode(&v); err == nil {
			return v
		}
	}
	return n.Value
}

// plain turns a node into what encoding/json can write. Keys are their text; a
// field without a value is left out.
func plain(n *yaml.Node) any {
	n = deref(n)
	switch n.Kind {
	case yaml.MappingNode:
		m := map[string]any{}
		for _, p := range pairs(n) {
			if !isNull(deref(p.value)) {
				m[p.key.Value] = plain(p.value)
			}
		}
		return m
	case yaml.SequenceNode:
		list := make([]any, 0, len(n.Content))
		for _, item := range n.Content {
			list = append(list, plain(item))
		}
		return list
	case yaml.DocumentNode, yaml.ScalarNode, yaml.AliasNode:
	}
	return scalar(n)
}

// kindName says what a node is, without its value.
func kindName(n *yaml.Node) string {
	n = deref(n)
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	case yaml.DocumentNode, yaml.ScalarNode, yaml.AliasNode:
	}
	switch scalar(n).(type) {
	case bool:
		return "a truth value"
	case string:
		return "text"
	}
	return "a number"
}

// coreTag tells a tag that the documents may use.
func coreTag(n *yaml.Node) bool {
	switch n.ShortTag() {
	case "!!str", "!!bool", "!!int", "!!float", "!!null", "!!timestamp", "!!map", "!!seq", "!!merge":
		return true
	}
	return false
}

// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"reflect"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/muxlet/muxlet/spec"
)

// errMerged says that a field comes from a merge key and cannot be taken away
// where it stands.
var errMerged = errors.New("a field comes from a merge key (<<)")

// errEmptied says that nothing would be left of a collection in block style,
// which has no way to say so.
var errEmptied = errors.New("nothing is left of it")

// errOther says that another kind of value is wanted, or an empty one.
var errOther = errors.New("it is something else now")

// rewrite makes the text of one document say what is wanted, by the smallest
// changes. It works on a node and what is wanted in its place: what is equal is
// not touched, what is in block style is changed by lines, what is in flow style
// is put together anew from its pieces, and where that cannot be done the value
// that is around it is replaced.
type rewrite struct {
	*text
	manner
	eol     string
	changes []change
	// written are the collections that are written anew, comments and all.
	written []string
	// everything: fields that declare nothing are removed too.
	everything bool
}

// rewritten gives the text of a document that says what is wanted, a tree that
// resolved has made. The error is about a document that cannot be changed in
// place. What comes out is verified as far as its values go. anew names what is
// written anew in it, although only a part of it differs.
func rewritten(data []byte, want *yaml.Node, eol string, everything bool) (out []byte, anew []string, err error) {
	unended := !bytes.HasSuffix(data, []byte("\n")) && !bytes.HasSuffix(data, []byte("\r"))
	if unended {
		data = slices.Concat(data, []byte(eol))
	}
	var failed error
	for _, comments := range []bool{true, false} {
		r := &rewrite{text: newText(data), eol: eol, everything: everything}
		root, err := r.parse()
		if err != nil {
			return nil, nil, err
		}
		r.manner = r.mannerOf(root)
		r.comments = comments
		if failed = r.document(root, want); failed != nil {
			return nil, nil, failed
		}
		out, err := r.apply()
		if err == nil {
			err = says(out, want, everything)
		}
		if err == nil && unended {
			out = bytes.TrimSuffix(out, []byte(eol))
		}
		if err == nil {
			return out, r.written, nil
		}
		failed = err
	}
	return nil, nil, failed
}

// says checks the values of a text.
func says(data []byte, want *yaml.Node, everything bool) error {
	root, err := spec.Root(data)
	if err != nil {
		return err
	}
	if root == nil || !reflect.DeepEqual(declared(root, everything), spec.ValueOf(want)) {
		return errors.New("what changes is used by an anchor, an alias or a merge key elsewhere in the document")
	}
	return nil
}

// declared is what a document says, without what declares nothing.
func declared(root *yaml.Node, everything bool) any {
	value := spec.ValueOf(root)
	fields, ok := value.(map[string]any)
	if !ok || everything {
		return value
	}
	dropUndeclared(fields, "")
	if metadata, ok := fields["metadata"].(map[string]any); ok {
		dropUndeclared(metadata, "metadata")
	}
	return fields
}

func dropUndeclared(fields map[string]any, path string) {
	for key := range fields {
		if undeclared(path, key) {
			delete(fields, key)
		}
	}
}

// undeclared tells the fields that a served object has and a document does not
// decide: decoding drops them.
func undeclared(path, key string) bool {
	switch path {
	case "":
		return key == "status"
	case "metadata":
		return !slices.Contains([]string{"name", "namespace", "labels", "annotations"}, key)
	}
	return false
}

// resolved is a tree of what a document declares: without aliases, merge keys,
// anchors, fields without a value and fields that declare nothing. What comes
// from JSON is to be written as a person would write it.
func resolved(root *yaml.Node, path string, fromJSON bool) *yaml.Node {
	if root.Kind == yaml.AliasNode {
		root = root.Alias
	}
	n := &yaml.Node{
		Kind: root.Kind, Tag: root.Tag, Value: root.Value, Style: root.Style &^ yaml.TaggedStyle,
		HeadComment: root.HeadComment, LineComment: root.LineComment,
	}
	if root.Style&yaml.TaggedStyle != 0 && isTextNode(root) {
		n.Style |= yaml.DoubleQuotedStyle // !!str 5
	}
	switch root.Kind {
	case yaml.MappingNode:
		for _, m := range spec.Members(root) {
			if !undeclared(path, m.Key.Value) {
				key := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: m.Key.Value, Style: m.Key.Style, HeadComment: m.Key.HeadComment, LineComment: m.Key.LineComment}
				n.Content = append(n.Content, key, resolved(m.Value, child(path, m.Key.Value), fromJSON))
			}
		}
	case yaml.SequenceNode:
		for _, item := range root.Content {
			n.Content = append(n.Content, resolved(item, path+"[]", fromJSON))
		}
	case yaml.DocumentNode, yaml.ScalarNode, yaml.AliasNode:
	}
	if fromJSON {
		unquote(n)
	}
	return n
}

// unquote drops the styles of JSON. Lists of words stay on one line.
func unquote(n *yaml.Node) {
	words := n.Kind == yaml.SequenceNode && !slices.ContainsFunc(n.Content, isCollection)
	n.Style = 0
	if words {
		n.Style = yaml.FlowStyle
	}
	for i := 0; n.Kind == yaml.MappingNode && i < len(n.Content); i += 2 {
		n.Content[i].Style = 0
	}
}

func child(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// equal compares what two nodes say.
func equal(a, b *yaml.Node) bool { return reflect.DeepEqual(spec.ValueOf(a), spec.ValueOf(b)) }

// isJSON tells a document that is JSON and must stay so.
func isJSON(data []byte) bool { return json.Valid(bytes.TrimPrefix(data, byteOrderMark)) }

// mannerOf finds how the document is indented.
func (r *rewrite) mannerOf(root *yaml.Node) manner {
	m := manner{json: isJSON(r.data), step: 2}
	steps, lists := false, false
	var look func(n *yaml.Node)
	look = func(n *yaml.Node) {
		for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
			key, value := n.Content[i], n.Content[i+1]
			if value.Kind == yaml.AliasNode || !isBlock(value) || len(value.Content) == 0 || hasProperties(value) {
				continue
			}
			if value.Kind == yaml.MappingNode && !steps && value.Content[0].Column > key.Column {
				m.step, steps = value.Content[0].Column-key.Column, true
			}
			if value.Kind == yaml.SequenceNode && !lists && value.Column >= key.Column {
				m.listStep, lists = value.Column-key.Column, true
			}
			look(value)
		}
	}
	look(root)
	return m
}

// document changes the whole of it.
func (r *rewrite) document(root, want *yaml.Node) error {
	if isBlock(root) {
		return r.mapping(root, want, "", -1)
	}
	start, err := r.start(root)
	if err != nil {
		return err
	}
	end, err := r.end(root)
	if err != nil {
		return err
	}
	text, err := r.flow(root, want, "")
	r.changes = append(r.changes, change{at: start, remove: end - start, insert: text})
	return err
}

// apply makes the changes. What is inserted where something is removed comes
// first.
func (r *rewrite) apply() ([]byte, error) {
	slices.SortStableFunc(r.changes, func(a, b change) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(min(a.remove, 1), min(b.remove, 1)))
	})
	var out []byte
	at := 0
	for _, c := range r.changes {
		if c.at < at || c.at+c.remove > len(r.data) {
			return nil, errShape
		}
		out = append(append(out, r.data[at:c.at]...), c.insert...)
		at = c.at + c.remove
	}
	return append(out, r.data[at:]...), nil
}

// action is what happens to an entry of a mapping.
type action int

const (
	keep action = iota
	alter
	remove
)

// entry is one entry that a mapping has itself.
type entry struct {
	key, value *yaml.Node
	action     action
	want       *yaml.Node
}

// entries compares a mapping with what is wanted of it.
func (r *rewrite) entries(n, want *yaml.Node, path string) ([]entry, error) {
	wanted := map[string]*yaml.Node{}
	for _, m := range spec.Members(want) {
		wanted[m.Key.Value] = m.Value
	}
	var own []entry
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		e := entry{key: n.Content[i], value: n.Content[i+1]}
		if e.key.Kind != yaml.ScalarNode || seen[e.key.Value] {
			return nil, errShape
		}
		seen[e.key.Value] = true
		e.want = wanted[e.key.Value]
		switch {
		case e.key.ShortTag() == "!!merge", spec.ValueOf(e.value) == nil && e.want == nil:
		case e.want == nil && undeclared(path, e.key.Value) && !r.everything:
		case e.want == nil:
			e.action = remove
		case !equal(e.value, e.want):
			e.action = alter
		}
		own = append(own, e)
	}
	for _, m := range spec.Members(n) {
		if !seen[m.Key.Value] && wanted[m.Key.Value] == nil {
			return nil, errMerged
		}
	}
	return own, nil
}

// added are the fields that a mapping gets, by the index of the entry of its own
// after which they belong: the one that stands before them in the document that
// is wanted. -1 is before all.
func (r *rewrite) added(own []entry, n, want *yaml.Node) map[int][]spec.Member {
	has := map[string]int{}
	for i, e := range own {
		has[e.key.Value] = i
	}
	merged := map[string]*yaml.Node{}
	for _, m := range spec.Members(n) {
		merged[m.Key.Value] = m.Value
	}
	added := map[int][]spec.Member{}
	after := -1
	for _, m := range spec.Members(want) {
		if i, found := has[m.Key.Value]; found {
			after = i
			continue
		}
		if value := merged[m.Key.Value]; value == nil || !equal(value, m.Value) {
			added[after] = append(added[after], m)
		}
	}
	return added
}

// pairing is one item of a list: in the old one, the new one, or both (-1: not
// there).
type pairing struct{ have, want int }

// align pairs the items of two lists: those that are equal or have the same
// name stay together in the longest common order, and a word that stands alone
// between two of them is another word now.
func align(have, want []*yaml.Node) []pairing {
	const most = 1 << 20
	if len(have)*len(want) > most {
		return positions(0, len(have), 0, len(want))
	}
	h, w := identities(have), identities(want)
	length := longest(h, w)
	var out []pairing
	i, j := 0, 0
	for gapI, gapJ := 0, 0; ; {
		both := i < len(h) && j < len(w)
		if both && h[i] != w[j] {
			if length[i+1][j] >= length[i][j+1] {
				i++
			} else {
				j++
			}
			continue
		}
		if !both {
			i, j = len(h), len(w)
		}
		out = append(out, gap(have, want, gapI, i, gapJ, j)...)
		if !both {
			return out
		}
		out = append(out, pairing{i, j})
		i, j = i+1, j+1
		gapI, gapJ = i, j
	}
}

// longest has the lengths of the longest common order of what begins at i and j.
func longest(h, w []string) [][]int {
	length := make([][]int, len(h)+1)
	for i := range length {
		length[i] = make([]int, len(w)+1)
	}
	for i := len(h) - 1; i >= 0; i-- {
		for j := len(w) - 1; j >= 0; j-- {
			length[i][j] = max(length[i+1][j], length[i][j+1])
			if h[i] == w[j] {
				length[i][j] = length[i+1][j+1] + 1
			}
		}
	}
	return length
}

// gap pairs words by their order, and nothing else.
func gap(have, want []*yaml.Node, i, endI, j, endJ int) []pairing {
	var out []pairing
	for i < endI && j < endJ && !isCollection(have[i]) && !isCollection(want[j]) {
		out = append(out, pairing{i, j})
		i, j = i+1, j+1
	}
	for ; i < endI; i++ {
		out = append(out, pairing{i, -1})
	}
	for ; j < endJ; j++ {
		out = append(out, pairing{-1, j})
	}
	return out
}

// positions pairs lists that are too long for anything better.
func positions(i, endI, j, endJ int) []pairing {
	var out []pairing
	for ; i < endI || j < endJ; i, j = i+1, j+1 {
		p := pairing{i, j}
		if i >= endI {
			p.have = -1
		}
		if j >= endJ {
			p.want = -1
		}
		out = append(out, p)
	}
	return out
}

// identities tell which items are the same thing: by name (a variable), by path
// (a file), else by all that they say.
func identities(items []*yaml.Node) []string {
	out := make([]string, len(items))
	for i, item := range items {
		value := spec.ValueOf(item)
		if fields, ok := value.(map[string]any); ok {
			if name, ok := fields["name"].(string); ok {
				value = map[string]any{"name": name}
			}
			if ref, ok := fields["fileRef"].(map[string]any); ok {
				value = map[string]any{"path": ref["path"]}
			}
		}
		data, err := json.Marshal(value)
		if err != nil { // .inf and .nan
			data = []byte(item.Value)
		}
		out[i] = string(data)
	}
	return out
}

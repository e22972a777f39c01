// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/muxlet/muxlet/spec"
	"github.com/muxlet/muxlet/spec/lazyregexp"
)

// part is the range of bytes that belongs to one document: from its separator,
// or the beginning of the file, up to the next separator.
type part struct{ start, end int }

var byteOrderMark = []byte("\uFEFF")

// partAt finds the part that holds a line, counted from 1 as package spec does:
// line feed, carriage return or both end a line.
func partAt(data []byte, line int) part {
	parts, first := partsOf(data)
	i, exact := slices.BinarySearch(first, line)
	if !exact {
		i--
	}
	return parts[max(0, i)]
}

// partsOf gives all parts of a file and the number of the first line of each.
func partsOf(data []byte) (parts []part, first []int) {
	start, begin, n := 0, 1, 1
	if bytes.HasPrefix(data, byteOrderMark) {
		start = len(byteOrderMark)
	}
	add := func(end, next int) {
		if end > start {
			parts, first = append(parts, part{start, end}), append(first, begin)
		}
		start, begin = end, next
	}
	for at := start; at < len(data); n++ {
		end := at + lineLength(data[at:])
		switch {
		case isSeparator(data[at:end], "---"):
			add(at, n)
		case isSeparator(data[at:end], "..."):
			add(end, n+1)
		}
		at = end
	}
	if start < len(data) || len(parts) == 0 {
		parts, first = append(parts, part{start, len(data)}), append(first, begin)
	}
	return parts, first
}

// lineLength is the length of the first line with its end.
func lineLength(data []byte) int {
	i := bytes.IndexAny(data, "\r\n")
	switch {
	case i < 0:
		return len(data)
	case bytes.HasPrefix(data[i:], []byte("\r\n")):
		return i + 2
	}
	return i + 1
}

func isSeparator(line []byte, marker string) bool {
	rest, found := bytes.CutPrefix(bytes.TrimPrefix(line, byteOrderMark), []byte(marker))
	return found && (len(rest) == 0 || bytes.IndexByte([]byte(" \t\r\n"), rest[0]) >= 0)
}

// splice gives the file with spec.suspend as wanted, which it is not now. What
// comes out is not verified.
func (s *source) splice(suspend bool) ([]byte, error) {
	data := s.data[s.part.start:s.part.end]
	text := newText(data)
	root, err := text.parse()
	if err == nil && saysNothing(root) {
		var part []byte
		if part, _, err = rewritten(data, withSuspend(root, suspend, isJSON(data)), s.lineEnd(), false); err == nil {
			return slices.Concat(s.data[:s.part.start], part, s.data[s.part.end:]), nil
		}
	} else if err == nil {
		var e change
		e, err = suspendChange(text, root, suspend)
		if err == nil {
			at := s.part.start + e.at
			return slices.Concat(s.data[:at], []byte(e.insert), s.data[at+e.remove:]), nil
		}
	}
	return nil, fmt.Errorf("set spec.suspend to %t in %s: %w: %w", suspend, s.file, ErrNotEditable, err)
}

// saysNothing tells a document whose spec is not there or empty: the settings give it
// all.
func saysNothing(root *yaml.Node) bool {
	key, value := lookUp(root, "spec")
	return key == nil || value.Kind == yaml.MappingNode && len(value.Content) == 0 || value.Kind == yaml.ScalarNode && value.Value == ""
}

// withSuspend is what such a document comes to say.
func withSuspend(root *yaml.Node, suspend, fromJSON bool) *yaml.Node {
	want := resolved(root, "", fromJSON)
	for i := 0; i+1 < len(want.Content); i += 2 {
		if want.Content[i].Value == "spec" {
			want.Content = slices.Delete(want.Content, i, i+2)
			break
		}
	}
	word := func(tag, value string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: value} }
	inner := &yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{word("!!str", "suspend"), word("!!bool", strconv.FormatBool(suspend))}}
	want.Content = append(want.Content, word("!!str", "spec"), inner)
	return want
}

// change replaces remove bytes at an offset.
type change struct {
	at, remove int
	insert     string
}

func suspendChange(t *text, root *yaml.Node, suspend bool) (change, error) {
	key, value := lookUp(root, "spec")
	if key == nil || value.Kind != yaml.MappingNode || len(value.Content) == 0 {
		return change{}, errors.New("spec is not written out as a mapping")
	}
	if k, v := lookUp(value, "suspend"); k != nil {
		return replaceScalar(t, v, strconv.FormatBool(suspend))
	}
	if value.Style&yaml.FlowStyle != 0 {
		return insertFlow(t, value, suspend)
	}
	return insertBlock(t, key, value, suspend)
}

// lookUp finds a key of a mapping itself, not of what it merges.
func lookUp(mapping *yaml.Node, name string) (key, value *yaml.Node) {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if k := mapping.Content[i]; k.Kind == yaml.ScalarNode && k.Value == name {
			return k, mapping.Content[i+1]
		}
	}
	return nil, nil
}

// replaceScalar replaces a plain scalar, an alias or a value that is left out.
func replaceScalar(t *text, n *yaml.Node, want string) (change, error) {
	at, err := t.offset(n.Line, n.Column)
	if err != nil {
		return change{}, err
	}
	token := n.Value
	if n.Kind == yaml.AliasNode {
		token = "*" + token
	}
	if n.Kind == yaml.ScalarNode && n.Style != 0 || n.Anchor != "" || !bytes.HasPrefix(t.data[at:], []byte(token)) {
		return change{}, errors.New("the value of spec.suspend has a tag or an anchor")
	}
	if token == "" {
		want = " " + want
	}
	return change{at: at, remove: len(token), insert: want}, nil
}

// insertBlock puts the key on a line of its own right below "spec:", indented
// like the keys that follow, so that their comments stay with them.
func insertBlock(t *text, key, mapping *yaml.Node, suspend bool) (change, error) {
	indent, err := t.indent(mapping.Content[0])
	if err != nil {
		return change{}, err
	}
	if mapping.Content[0].Line <= key.Line {
		return change{}, errors.New("spec begins on the line of its key")
	}
	line := fmt.Sprintf("%s%s%s", indent, member(mapping, suspend), t.lineEnd(key.Line))
	return change{at: t.lines[key.Line], insert: line}, nil
}

// insertFlow puts the key before the first one: on its line if that is where
// the brace is, else on a line of its own.
func insertFlow(t *text, mapping *yaml.Node, suspend bool) (change, error) {
	first := mapping.Content[0]
	if first.Line == mapping.Line {
		at, err := t.offset(first.Line, first.Column)
		return change{at: at, insert: member(mapping, suspend) + ", "}, err
	}
	indent, err := t.indent(first)
	if err != nil {
		return change{}, err
	}
	line := fmt.Sprintf("%s%s,%s", indent, member(mapping, suspend), t.lineEnd(mapping.Line))
	return change{at: t.lines[mapping.Line], insert: line}, nil
}

// member writes the key in the manner of its neighbours.
func member(mapping *yaml.Node, suspend bool) string {
	if mapping.Content[0].Style&yaml.DoubleQuotedStyle != 0 {
		return fmt.Sprintf("%q: %t", "suspend", suspend)
	}
	return fmt.Sprintf("suspend: %t", suspend)
}

// text is one document with the places of its lines as the parser counts them.
type text struct {
	data []byte
	// lines are the offsets at which lines begin.
	lines []int
}

func newText(data []byte) *text {
	t := &text{data: data, lines: []int{0}}
	if bytes.HasPrefix(data, byteOrderMark) {
		t.lines[0] = len(byteOrderMark) // not counted as a column
	}
	for _, end := range lineBreak.Get().FindAllIndex(data, -1) {
		t.lines = append(t.lines, end[1])
	}
	return t
}

// lineBreak is what the parser takes for the end of a line.
var lineBreak = lazyregexp.New("\r\n|[\r\n\u0085\u2028\u2029]")

// parse gives the root mapping: the places of its nodes are those in the text,
// and their values those that decoding finds.
func (t *text) parse() (*yaml.Node, error) {
	places, err := t.places()
	if err != nil {
		return nil, err
	}
	root, err := spec.Root(t.data)
	if err != nil {
		return nil, err
	}
	if root == nil || !takePlaces(root, places) {
		return nil, errors.New("the document is no mapping")
	}
	return root, nil
}

// takePlaces gives each node the place of its twin.
func takePlaces(n, twin *yaml.Node) bool {
	if n.Kind != twin.Kind || len(n.Content) != len(twin.Content) {
		return false
	}
	n.Line, n.Column = twin.Line, twin.Column
	for i := range n.Content {
		if !takePlaces(n.Content[i], twin.Content[i]) {
			return false
		}
	}
	return true
}

// places gives the root mapping with the places of its nodes. The values of JSON
// are not right in it.
func (t *text) places() (root *yaml.Node, err error) {
	defer func() {
		if r := recover(); r != nil {
			root, err = nil, fmt.Errorf("the parser gave up: %v", r)
		}
	}()
	data := t.data
	if isJSON(data) {
		data = jsonEscape.Get().ReplaceAllFunc(data, func(escape []byte) []byte {
			return bytes.Repeat([]byte("."), len(escape))
		})
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return nil, err
	}
	if len(doc.Content) == 0 || doc.Content[0].Kind != yaml.MappingNode {
		return nil, errors.New("the document is no mapping")
	}
	return doc.Content[0], nil
}

// jsonEscape is what a text of JSON may hold and YAML does not know in part
// (\/, UTF-16 pairs). For the places of keys any text of its length will do.
var jsonEscape = lazyregexp.New(`\\(?:u[0-9a-fA-F]{4}|.)`)

// offset turns a place of the parser, counted from 1 in characters, into one in
// the data.
func (t *text) offset(line, column int) (int, error) {
	if line < 1 || line > len(t.lines) {
		return 0, fmt.Errorf("line %d is not there", line)
	}
	at := t.lines[line-1]
	for range column - 1 {
		if at >= len(t.data) {
			return 0, fmt.Errorf("column %d of line %d is not there", column, line)
		}
		_, size := utf8.DecodeRune(t.data[at:])
		at += size
	}
	return at, nil
}

// indent is the white space before a node that begins its line.
func (t *text) indent(n *yaml.Node) ([]byte, error) {
	at, err := t.offset(n.Line, n.Column)
	if err != nil {
		return nil, err
	}
	indent := t.data[t.lines[n.Line-1]:at]
	if len(bytes.Trim(indent, " \t")) > 0 {
		return nil, fmt.Errorf("%q does not begin its line", n.Value)
	}
	return indent, nil
}

// lineEnd is the end of a line that another one follows.
func (t *text) lineEnd(line int) []byte {
	content := t.data[:t.lines[line]]
	if bytes.HasSuffix(content, []byte("\r\n")) {
		return []byte("\r\n")
	}
	return content[len(content)-1:]
}

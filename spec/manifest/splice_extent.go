// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// The parser tells where a node begins and not where it ends. The ends are
// found here, in the text, and whatever is not as expected is an error: the
// caller then replaces more than the node.

// errShape is a way of writing that is not spliced.
var errShape = errors.New("it is written in a way that cannot be changed in place")

// start is the offset of a node with its anchor and tag.
func (t *text) start(n *yaml.Node) (int, error) { return t.offset(n.Line, n.Column) }

// content is the offset of a node after its anchor and tag.
func (t *text) content(n *yaml.Node) (int, error) {
	at, err := t.start(n)
	if err != nil || !hasProperties(n) {
		return at, err
	}
	for at < len(t.data) && (t.data[at] == '&' || t.data[at] == '!') {
		end := bytes.IndexAny(t.data[at:], " \t\r\n")
		if end < 0 {
			return len(t.data), nil
		}
		at += end
		if n.Kind != yaml.ScalarNode || n.Value != "" {
			at = t.skipBlank(at)
		}
	}
	return at, nil
}

func hasProperties(n *yaml.Node) bool {
	return n.Kind != yaml.AliasNode && (n.Anchor != "" || n.Style&yaml.TaggedStyle != 0)
}

// isEmpty tells a value that is left out. Its place in the text is its key's.
func isEmpty(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && n.Value == "" && !isQuoted(n) && !isBlockScalar(n) && !hasProperties(n)
}

func isQuoted(n *yaml.Node) bool {
	return n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) != 0
}

func isBlockScalar(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0
}

// isCollection tells a mapping or a list.
func isCollection(n *yaml.Node) bool {
	return n.Kind == yaml.MappingNode || n.Kind == yaml.SequenceNode
}

// isBlock tells a collection in block style.
func isBlock(n *yaml.Node) bool { return isCollection(n) && n.Style&yaml.FlowStyle == 0 }

// end is the offset after the last byte of a node that is not left out.
func (t *text) end(n *yaml.Node) (int, error) {
	at, err := t.content(n)
	switch {
	case err != nil:
		return 0, err
	case isEmpty(n):
		return 0, errShape
	case isBlock(n) && n.Kind == yaml.MappingNode:
		return t.blockMappingEnd(n)
	case isBlock(n):
		return t.blockListEnd(n)
	case isCollection(n):
		return t.flowEnd(n, at)
	case n.Kind == yaml.AliasNode:
		return t.match(at, "*"+n.Value)
	case isBlockScalar(n):
		_, end, err := t.blockScalar(at)
		return end, err
	case n.Style&yaml.DoubleQuotedStyle != 0:
		return t.doubleQuotedEnd(at)
	case n.Style&yaml.SingleQuotedStyle != 0:
		return t.singleQuotedEnd(at)
	}
	return t.match(at, n.Value)
}

// match finds the end of a plain scalar. One over several lines has other white
// space in the text than in its value.
func (t *text) match(at int, value string) (int, error) {
	for i := 0; i < len(value); {
		if !isWhite(value[i]) {
			if at >= len(t.data) || t.data[at] != value[i] {
				return 0, errShape
			}
			at, i = at+1, i+1
			continue
		}
		begin := at
		for at < len(t.data) && isWhite(t.data[at]) {
			at++
		}
		for i < len(value) && isWhite(value[i]) {
			i++
		}
		if at == begin {
			return 0, errShape
		}
	}
	return at, nil
}

func isWhite(b byte) bool { return b == ' ' || b == '\t' || b == '\r' || b == '\n' }

func (t *text) doubleQuotedEnd(at int) (int, error) {
	if at >= len(t.data) || t.data[at] != '"' {
		return 0, errShape
	}
	for at++; at < len(t.data); at++ {
		switch t.data[at] {
		case '\\':
			at++
		case '"':
			return at + 1, nil
		}
	}
	return 0, errShape
}

func (t *text) singleQuotedEnd(at int) (int, error) {
	if at >= len(t.data) || t.data[at] != '\'' {
		return 0, errShape
	}
	for at++; at < len(t.data); at++ {
		if t.data[at] != '\'' {
			continue
		}
		if at+1 < len(t.data) && t.data[at+1] == '\'' {
			at++
			continue
		}
		return at + 1, nil
	}
	return 0, errShape
}

// blockScalar gives the end of the header of a block scalar (|, >) and the end
// of its last line, without the line end.
func (t *text) blockScalar(at int) (header, end int, err error) {
	header, keep, err := t.blockHeader(at)
	if err != nil {
		return 0, 0, err
	}
	end, indent := header, t.leastIndent(at)
	first := true
	for line := t.lineOf(at) + 1; line < len(t.lines); line++ {
		text := t.line(line)
		spaces := len(text) - len(bytes.TrimLeft(text, " "))
		// White space that is indented deeper than the text is text.
		blank := len(bytes.TrimSpace(text)) == 0 && (first || len(text) <= indent)
		if !blank && spaces < indent {
			break
		}
		if !blank && first {
			indent, first = spaces, false
		}
		if !blank || keep {
			end = t.lines[line] + len(text)
		}
	}
	return header, end, nil
}

// blockHeader gives the end of the header, and whether the empty lines at the
// end belong to the text.
func (t *text) blockHeader(at int) (end int, keep bool, err error) {
	if at >= len(t.data) || t.data[at] != '|' && t.data[at] != '>' {
		return 0, false, errShape
	}
	end = at + 1
	for end < len(t.data) && (t.data[end] == '+' || t.data[end] == '-') {
		keep = keep || t.data[end] == '+'
		end++
	}
	if end < len(t.data) && !isWhite(t.data[end]) {
		return 0, false, errShape // it says how far it is indented
	}
	return end, keep, nil
}

// leastIndent is how far the lines of a block scalar must be indented: deeper
// than the key or the dash that stands before it in its line.
func (t *text) leastIndent(header int) int {
	before := t.data[t.lines[t.lineOf(header)]:header]
	outer := before[:len(before)-len(bytes.TrimLeft(before, " -"))]
	if len(outer) == len(before) { // no key
		return max(0, bytes.LastIndexByte(outer, '-')) + 1
	}
	return len(outer) + 1
}

// blockMappingEnd is the end of the last value, or of the colon before it.
func (t *text) blockMappingEnd(n *yaml.Node) (int, error) {
	if len(n.Content) < 2 {
		return 0, errShape
	}
	key, value := n.Content[len(n.Content)-2], n.Content[len(n.Content)-1]
	if !isEmpty(value) {
		return t.end(value)
	}
	return t.afterColon(key)
}

func (t *text) blockListEnd(n *yaml.Node) (int, error) {
	items, err := t.blockItems(n)
	if err != nil {
		return 0, err
	}
	return items[len(items)-1].end, nil
}

// item is one item of a list in block style: from its dash to its end.
type item struct {
	dash, end int
	value     *yaml.Node
}

// blockItems finds the items of a list in block style.
func (t *text) blockItems(n *yaml.Node) ([]item, error) {
	at, err := t.content(n)
	if err != nil {
		return nil, err
	}
	column := at - t.lines[t.lineOf(at)]
	var items []item
	for _, value := range n.Content {
		at = t.skipBlank(at)
		if at >= len(t.data) || t.data[at] != '-' || at-t.lines[t.lineOf(at)] != column {
			return nil, errShape
		}
		one := item{dash: at, end: at + 1, value: value}
		if !isEmpty(value) {
			if one.end, err = t.end(value); err != nil {
				return nil, err
			}
		}
		items = append(items, one)
		at = one.end
	}
	if len(items) == 0 {
		return nil, errShape
	}
	return items, nil
}

// afterColon is the offset after the colon of a key.
func (t *text) afterColon(key *yaml.Node) (int, error) {
	at, err := t.end(key)
	if err != nil {
		return 0, err
	}
	for at < len(t.data) && isWhite(t.data[at]) {
		at++
	}
	if at >= len(t.data) || t.data[at] != ':' {
		return 0, errShape
	}
	return at + 1, nil
}

// flowEnd is the offset after the bracket that closes a collection.
func (t *text) flowEnd(n *yaml.Node, open int) (int, error) {
	pieces, err := t.flowPieces(n)
	if err != nil {
		return 0, err
	}
	brackets := "[]"
	if n.Kind == yaml.MappingNode {
		brackets = "{}"
	}
	if open >= len(t.data) || t.data[open] != brackets[0] {
		return 0, errShape
	}
	at := open + 1
	if len(pieces) > 0 {
		at = pieces[len(pieces)-1].end
	}
	at = t.skipBlank(at)
	if at < len(t.data) && t.data[at] == ',' {
		at = t.skipBlank(at + 1)
	}
	if at >= len(t.data) || t.data[at] != brackets[1] {
		return 0, errShape
	}
	return at + 1, nil
}

// span is a range of bytes.
type span struct{ start, end int }

// flowPieces finds the items of a list, or the entries of a mapping, in flow
// style.
func (t *text) flowPieces(n *yaml.Node) ([]span, error) {
	var pieces []span
	width := 1
	if n.Kind == yaml.MappingNode {
		width = 2
	}
	for nodes := range slices.Chunk(n.Content, width) {
		start, err := t.start(nodes[0])
		if err != nil {
			return nil, err
		}
		last := nodes[len(nodes)-1]
		var end int
		if isEmpty(last) && width == 2 {
			end, err = t.bareKeyEnd(nodes[0])
		} else {
			end, err = t.end(last)
		}
		if err != nil || end < start {
			return nil, errShape
		}
		pieces = append(pieces, span{start, end})
	}
	return pieces, nil
}

// bareKeyEnd is the end of a key without a value, with its colon if it has one.
func (t *text) bareKeyEnd(key *yaml.Node) (int, error) {
	end, err := t.end(key)
	if err != nil {
		return 0, err
	}
	if colon, err := t.afterColon(key); err == nil {
		return colon, nil
	}
	return end, nil
}

// skipBlank passes over white space, line ends and comments.
func (t *text) skipBlank(at int) int {
	for at < len(t.data) {
		switch {
		case isWhite(t.data[at]):
			at++
		case t.data[at] == '#' && (at == 0 || isWhite(t.data[at-1]) || bytes.IndexByte([]byte(",[{"), t.data[at-1]) >= 0):
			at = t.lineEndAt(at)
		default:
			return at
		}
	}
	return at
}

// lineOf is the index of the line that holds an offset.
func (t *text) lineOf(at int) int {
	i, exact := slices.BinarySearch(t.lines, at)
	if exact {
		return i
	}
	return max(0, i-1)
}

// line is a line without its end.
func (t *text) line(i int) []byte {
	end := len(t.data)
	if i+1 < len(t.lines) {
		end = t.lines[i+1]
	}
	return bytes.TrimRight(t.data[t.lines[i]:end], "\r\n")
}

// lineEndAt is the end of the line that holds an offset, without its line end.
func (t *text) lineEndAt(at int) int {
	i := t.lineOf(at)
	return t.lines[i] + len(t.line(i))
}

// lineAfter is the beginning of the line after the one that holds an offset.
func (t *text) lineAfter(at int) int {
	if i := t.lineOf(at) + 1; i < len(t.lines) {
		return t.lines[i]
	}
	return len(t.data)
}

// columnOf counts the characters before an offset in its line.
func (t *text) columnOf(at int) int { return utf8.RuneCount(t.data[t.lines[t.lineOf(at)]:at]) }

// beginsLine tells that only white space stands before an offset in its line.
func (t *text) beginsLine(at int) bool {
	return len(bytes.Trim(t.data[t.lines[t.lineOf(at)]:at], " ")) == 0
}

// afterInner passes over the comments that follow a value and are indented
// deeper than its key: they are about what is in it.
func (t *text) afterInner(at, column int) int {
	end := at
	for line := t.lineOf(at); line < len(t.lines) && t.lines[line] >= at; line++ {
		text := t.line(line)
		trimmed := bytes.TrimLeft(text, " ")
		switch {
		case len(bytes.TrimSpace(text)) == 0:
		case trimmed[0] == '#' && len(text)-len(trimmed) > column:
			end = t.lineAfter(t.lines[line])
		default:
			return end
		}
	}
	return end
}

// place words an error about a node.
func (t *text) place(n *yaml.Node, err error) error {
	return fmt.Errorf("line %d of the document: %w", n.Line, err)
}

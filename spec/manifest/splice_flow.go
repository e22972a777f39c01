// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"strings"

	"go.yaml.in/yaml/v3"
)

// flow gives the text of a node in flow style that says what is wanted. The
// text of what stays is kept.
func (r *rewrite) flow(n, want *yaml.Node, path string) (string, error) {
	if equal(n, want) {
		return r.source(n)
	}
	if isCollection(n) && n.Kind == want.Kind && len(n.Content) > 0 && len(want.Content) > 0 {
		if n.Kind == yaml.MappingNode {
			return r.flowMapping(n, want, path)
		}
		return r.flowList(n, want, path)
	}
	return r.manner.flow(want, n), nil
}

// source is the text of a node as it stands.
func (r *rewrite) source(n *yaml.Node) (string, error) {
	start, err := r.start(n)
	if err != nil || isEmpty(n) {
		return "", err
	}
	end, err := r.end(n)
	if err != nil {
		return "", err
	}
	return string(r.data[start:end]), nil
}

// piece is one item or entry of a collection in flow style; from is its index
// in the old text, -1 for a new one.
type piece struct {
	from int
	text string
}

func (r *rewrite) flowMapping(n, want *yaml.Node, path string) (string, error) {
	own, err := r.entries(n, want, path)
	if err != nil {
		return "", err
	}
	spans, err := r.flowPieces(n)
	if err != nil {
		return "", err
	}
	added := r.added(own, n, want)
	var out []piece
	fresh := func(after int) {
		for _, m := range added[after] {
			out = append(out, piece{-1, r.key(m.Key.Value, n.Content[0]) + ": " + r.manner.flow(m.Value, nil)})
		}
	}
	fresh(-1)
	for i, e := range own {
		if e.action != remove {
			text, err := r.flowEntry(e, spans[i], path)
			if err != nil {
				return "", err
			}
			out = append(out, piece{i, text})
		}
		fresh(i)
	}
	return r.assemble(n, spans, out)
}

func (r *rewrite) flowEntry(e entry, at span, path string) (string, error) {
	if e.action == keep {
		return string(r.data[at.start:at.end]), nil
	}
	if isEmpty(e.value) {
		whole := string(r.data[at.start:at.end])
		return strings.TrimSuffix(whole, ":") + ": " + r.manner.flow(e.want, nil), nil
	}
	value, err := r.start(e.value)
	if err != nil {
		return "", err
	}
	text, err := r.flow(e.value, e.want, child(path, e.key.Value))
	return string(r.data[at.start:value]) + text, err
}

func (r *rewrite) flowList(n, want *yaml.Node, path string) (string, error) {
	spans, err := r.flowPieces(n)
	if err != nil {
		return "", err
	}
	var out []piece
	for _, step := range align(n.Content, want.Content) {
		switch {
		case step.want < 0:
		case step.have < 0:
			out = append(out, piece{-1, r.manner.flow(want.Content[step.want], nil)})
		default:
			text, err := r.flow(n.Content[step.have], want.Content[step.want], path+"[]")
			if err != nil {
				return "", err
			}
			out = append(out, piece{step.have, text})
		}
	}
	return r.assemble(n, spans, out)
}

// assemble puts the pieces between the brackets again. Between two pieces that
// were neighbours stands what stood there before, comments included; after one
// that lost its neighbour stands what followed it.
func (r *rewrite) assemble(n *yaml.Node, old []span, pieces []piece) (string, error) {
	start, err := r.start(n)
	if err != nil {
		return "", err
	}
	open, err := r.content(n)
	if err != nil {
		return "", err
	}
	end, err := r.end(n)
	if err != nil {
		return "", err
	}
	between := func(i int) string { return string(r.data[old[i].end:old[i+1].start]) }
	lead := string(r.data[open+1 : old[0].start])
	tail := string(r.data[old[len(old)-1].end : end-1])
	comma := r.comma(lead, old)
	var b strings.Builder
	b.Write(r.data[start : open+1]) // with an anchor and a tag
	b.WriteString(lead)
	for i, p := range pieces {
		b.WriteString(p.text)
		before := i > 0 && pieces[i-1].from == len(old)-1
		switch final, last := i == len(pieces)-1, p.from == len(old)-1; {
		case final && (last || before && !movesComment(tail, comma)):
			b.WriteString(tail)
		case final && p.from >= 0:
			b.WriteString(closing(between(p.from), tail))
		case final:
			b.WriteString(uncommented(tail))
		case p.from < 0:
			b.WriteString(comma)
		case last:
			b.WriteString(beforeNew(tail, comma))
		default:
			b.WriteString(between(p.from))
		}
	}
	b.Write(r.data[end-1 : end])
	return b.String(), nil
}

// comma is how new pieces are set apart: as the old ones are, on lines of their
// own if these are.
func (r *rewrite) comma(lead string, old []span) string {
	example := lead
	if len(old) > 1 {
		example = string(r.data[old[0].end:old[1].start])
	}
	switch i := strings.LastIndexAny(example, "\r\n"); {
	case i >= 0:
		return "," + r.eol + example[i+1:]
	case len(old) > 1 && strings.TrimSpace(example) == ",":
		return example
	}
	return ", "
}

// closing is what follows a piece that is the last one now: its own comment and
// what stood before the bracket.
func closing(after, tail string) string {
	line, _, several := cutLine(after)
	_, rest, ok := cutLine(tail)
	if !strings.Contains(line, "#") || !several || !ok {
		return uncommented(tail)
	}
	if !hasComma(tail) {
		line = strings.Replace(line, ",", "", 1)
	}
	return line + rest
}

// uncommented drops the comment on the first line, which is about a piece that
// is not there any more, or which was moved.
func uncommented(tail string) string {
	line, rest, several := cutLine(tail)
	if before, _, found := strings.Cut(line, "#"); found && several {
		return strings.TrimRight(before, " \t") + rest
	}
	return tail
}

// movesComment tells that the comment of the piece that was the last stays with
// it when others follow.
func movesComment(tail, comma string) bool {
	line, _, several := cutLine(tail)
	return several && strings.Contains(line, "#") && strings.ContainsAny(comma, "\r\n")
}

// beforeNew is what stands between the piece that was the last and a new one.
func beforeNew(tail, comma string) string {
	if !movesComment(tail, comma) {
		return comma
	}
	line, _, _ := cutLine(tail)
	if !hasComma(line) {
		line = "," + line
	}
	return line + strings.TrimPrefix(comma, ",")
}

// hasComma looks for one outside of comments.
func hasComma(s string) bool {
	before, _, _ := strings.Cut(s, "#")
	return strings.Contains(before, ",")
}

// cutLine splits a text before its first line end.
func cutLine(s string) (line, rest string, several bool) {
	i := strings.IndexAny(s, "\r\n")
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i:], true
}

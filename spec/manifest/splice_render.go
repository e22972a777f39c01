// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/muxlet/muxlet/spec"
	"github.com/muxlet/muxlet/spec/lazyregexp"
)

// manner is how new text is written, so that it looks like what is around it.
type manner struct {
	// json permits nothing but JSON.
	json bool
	// step is the indentation of a mapping below its key, and listStep that of a
	// list, in spaces.
	step, listStep int
	// comments are written too.
	comments bool
}

// written is a value in block style: what stands on the line of its key or dash,
// and the lines that follow, without their ends.
type written struct {
	inline string
	lines  []string
}

// block writes a value for a key or a dash that is indented by indent spaces.
// like is the value that stood there before; its quotes are kept.
func (m manner) block(n, like *yaml.Node, indent int) written {
	switch {
	case m.json, isCollection(n) && (len(n.Content) == 0 || n.Style&yaml.FlowStyle != 0):
		return written{inline: m.flow(n, nil)}
	case n.Kind == yaml.MappingNode:
		return written{lines: m.fields(n, indent+m.step)}
	case n.Kind == yaml.SequenceNode:
		return written{lines: m.items(n, indent+m.listStep)}
	}
	if isBlockScalar(n) || like != nil && isBlockScalar(like) {
		if w, ok := literal(n.Value, indent+m.step); ok {
			return w
		}
	}
	return written{inline: m.scalar(n, like, false)}
}

// fields writes the entries of a mapping as lines.
func (m manner) fields(n *yaml.Node, indent int) []string {
	var lines []string
	for i := 0; i+1 < len(n.Content); i += 2 {
		lines = append(lines, m.field(n.Content[i], n.Content[i+1], indent)...)
	}
	return lines
}

func (m manner) field(key, value *yaml.Node, indent int) []string {
	w := m.block(value, nil, indent)
	first := m.key(key.Value, key) + ":"
	if w.inline != "" {
		first += " " + w.inline
	}
	lines := m.headComment(key, indent)
	lines = append(lines, strings.Repeat(" ", indent)+first+m.lineComment(key, value, w))
	return append(lines, w.lines...)
}

// items writes a list as lines. A mapping begins on the line of its dash.
func (m manner) items(n *yaml.Node, indent int) []string {
	var lines []string
	for _, value := range n.Content {
		lines = append(lines, m.item(value, indent)...)
	}
	return lines
}

func (m manner) item(value *yaml.Node, indent int) []string {
	dash := strings.Repeat(" ", indent) + "- "
	lines := m.headComment(value, indent)
	switch {
	case !isBlock(value) || len(value.Content) == 0:
		w := m.block(value, nil, indent)
		lines = append(lines, dash+w.inline+m.lineComment(value, value, w))
		return append(lines, w.lines...)
	case value.Kind == yaml.SequenceNode:
		return append(lines, dash+m.flow(value, nil))
	}
	key := *value.Content[0]
	if key.HeadComment != "" && len(lines) == 0 {
		lines = m.headComment(&key, indent)
	}
	key.HeadComment = ""
	body := m.field(&key, value.Content[1], indent+len("- "))
	lines = append(lines, dash+strings.TrimLeft(body[0], " "))
	lines = append(lines, body[1:]...)
	rest := yaml.Node{Kind: yaml.MappingNode, Content: value.Content[2:]}
	return append(lines, m.fields(&rest, indent+len("- "))...)
}

func (m manner) headComment(n *yaml.Node, indent int) []string {
	if !m.comments || n.HeadComment == "" {
		return nil
	}
	var lines []string
	for line := range strings.SplitSeq(n.HeadComment, "\n") {
		if line != "" {
			line = strings.Repeat(" ", indent) + line
		}
		lines = append(lines, line)
	}
	return lines
}

// lineComment is the comment behind a value, or behind the key of one that is
// written below it.
func (m manner) lineComment(key, value *yaml.Node, w written) string {
	comment := value.LineComment
	if w.inline == "" || comment == "" {
		comment = key.LineComment
	}
	if !m.comments || comment == "" || strings.Contains(comment, "\n") {
		return ""
	}
	return " " + comment
}

// flow writes a value on one line.
func (m manner) flow(n, like *yaml.Node) string {
	var parts []string
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			parts = append(parts, m.key(n.Content[i].Value, n.Content[i])+": "+m.flow(n.Content[i+1], nil))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case yaml.SequenceNode:
		for _, item := range n.Content {
			parts = append(parts, m.flow(item, nil))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case yaml.DocumentNode, yaml.ScalarNode, yaml.AliasNode:
	}
	return m.scalar(n, like, true)
}

// key writes a key in the manner of another one.
func (m manner) key(name string, like *yaml.Node) string {
	if m.json {
		return quotedJSON(name)
	}
	return styled(name, like.Style, true)
}

// scalar writes a value on one line, in the quotes of the one that it replaces.
func (m manner) scalar(n, like *yaml.Node, inFlow bool) string {
	value := spec.ValueOf(n)
	words, isText := value.(string)
	switch {
	case isText && m.json:
		return quotedJSON(words)
	case isText && like != nil && like.Kind == yaml.ScalarNode && isTextNode(like):
		return styled(words, like.Style, inFlow)
	case isText:
		return styled(words, n.Style, inFlow)
	case !m.json && n.Style == 0 && n.Value != "":
		return n.Value
	}
	data, err := json.Marshal(value)
	if err != nil { // .inf and .nan, which no field takes
		return n.Value
	}
	return string(data)
}

func isTextNode(n *yaml.Node) bool {
	_, is := spec.ValueOf(n).(string)
	return is
}

// styled writes a text on one line, in the style if it can be.
func styled(value string, style yaml.Style, inFlow bool) string {
	switch {
	case style&yaml.DoubleQuotedStyle != 0:
		return quoted(value)
	case style&yaml.SingleQuotedStyle != 0 && printable(value):
		return "'" + strings.ReplaceAll(value, "'", "''") + "'"
	case printable(value) && !strings.HasSuffix(value, ":") && isPlain(value, inFlow):
		return value
	}
	return quoted(value)
}

// printable tells a text that needs no escapes on one line.
func printable(value string) bool {
	return !strings.ContainsFunc(value, func(r rune) bool {
		return r < ' ' || needsEscape(r)
	})
}

// needsEscape tells the letters above the control characters that the parser
// does not take, or takes for the end of a line.
func needsEscape(r rune) bool {
	switch {
	case r >= 0x7F && r <= 0x9F, r == 0x2028, r == 0x2029, r == 0xFEFF, r == 0xFFFE, r == 0xFFFF, r == utf8.RuneError:
		return true
	}
	return false
}

// isPlain tells whether the parser reads the text without quotes as that text,
// as the value of a key and as an item of a list, whatever space is around it.
func isPlain(value string, inFlow bool) bool {
	around := "key: %s # end\nlist:\n- %s # end\n"
	if inFlow {
		around = "{key: %s , list: [%s]}\n"
	}
	var doc yaml.Node
	if yaml.Unmarshal(fmt.Appendf(nil, around, value, value), &doc) != nil || len(doc.Content) != 1 {
		return false
	}
	root := doc.Content[0]
	if root.Kind != yaml.MappingNode || len(root.Content) != 4 || len(root.Content[3].Content) != 1 {
		return false
	}
	for _, n := range []*yaml.Node{root.Content[1], root.Content[3].Content[0]} {
		if n.Kind != yaml.ScalarNode || n.Style != 0 || n.Anchor != "" || n.Value != value || spec.ValueOf(n) != any(value) {
			return false
		}
	}
	return true
}

// quoted writes a text in double quotes, as YAML and JSON read it alike.
func quoted(value string) string {
	var b strings.Builder
	for _, r := range quotedJSON(value) {
		if needsEscape(r) {
			fmt.Fprintf(&b, `\u%04x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

func quotedJSON(value string) string {
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		panic("manifest: a text that is no JSON: " + err.Error())
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// notLiteral finds what a block scalar cannot hold or would change.
var notLiteral = lazyregexp.New("[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\u2028\u2029\uFEFF\uFFFE\uFFFF\uFFFD]|^[ \\t\\n]|^$")

// literal writes a text of several lines as a block scalar.
func literal(value string, indent int) (written, bool) {
	body := strings.TrimRight(value, "\n")
	if notLiteral.MatchString(value) || !strings.Contains(value, "\n") {
		return written{}, false
	}
	header := "|"
	switch len(value) - len(body) {
	case 0:
		header = "|-"
	case 1:
	default:
		return written{}, false
	}
	w := written{inline: header}
	for line := range strings.SplitSeq(body, "\n") {
		if line != "" {
			line = strings.Repeat(" ", indent) + line
		}
		w.lines = append(w.lines, line)
	}
	return w, true
}

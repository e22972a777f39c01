// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A mistake of syntax names its line in the file, and says in words what to do.
func TestSyntaxErrorsAreExplainedAtTheirLine(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"tab":                {"a:\n\tb: 1\n", "f:2:1: the line is indented with a tab; YAML allows only spaces there"},
		"tab after spaces":   {"a:\n  b:\n  \tc: 1\n  \td: 2\n", "f:3:3: the line is indented with a tab; YAML allows only spaces there"},
		"tab before a dash":  {"a:\n\t- b\n", "f:2:1: the line is indented with a tab; YAML allows only spaces there"},
		"colon in a value":   {"a: 1\nb: c: d\ne: 2\n", `f:2:1: a ":" where none can be: the indentation is wrong, or a text with ": " in it needs quotes (YAML: mapping values are not allowed in this context)`},
		"too far in":         {"a: 1\n  b: 2\nc: 3\n", `f:2:3: a ":" where none can be: the indentation is wrong, or a text with ": " in it needs quotes (YAML: mapping values are not allowed in this context)`},
		"no colon":           {"a: 1\nb\nc: 2\nd: 3\n", `f:2:1: neither "key: value" nor the rest of the line above: is a ":" missing? (YAML: could not find expected ':')`},
		"odd indentation":    {"a:\n  b:\n    c: 1\n   d: 2\n  e: 3\n", "f:4:4: indented differently from the lines that it belongs to, or text after a closed quote (YAML: did not find expected key)"},
		"text after a quote": {"a: 1\nb: \"x\" y\nc: 2\n", "f:2:1: indented differently from the lines that it belongs to, or text after a closed quote (YAML: did not find expected key)"},
		"key in a list":      {"a:\n- b\nc: 1\nd:\n  - e\n  f: 2\n", `f:6:3: a list item must begin with "- " in the column of the other items (YAML: did not find expected '-' indicator)`},
		"open bracket":       {"a: 1\nb: [x, y\nc: 2\nd: 3\n", `f:2:1: a list that was opened with "[" is not continued or closed (YAML: did not find expected ',' or ']')`},
		"open brace":         {"a: 1\nb: {x: y\nc: 2\nd: 3\n", `f:2:1: a mapping that was opened with "{" is not continued or closed (YAML: did not find expected ',' or '}')`},
		"open at the end":    {"a: 1\nb: [\n", `f:2:1: a value is missing here, or a bracket that was opened is not closed (YAML: did not find expected node content)`},
		"open quote":         {"a: 1\nb: 'x\nc: 2\nd: 3\ne: 4\nf: 5\ng: 6\n", "f:2:1: a quote is opened and never closed (YAML: found unexpected end of stream)"},
		"at sign":            {"a: @b\n", "f:1:1: a value cannot begin with this character; put it in quotes (YAML: found character that cannot start any token)"},
		"dash in a value":    {"a: 1\nb: - c\n", `f:2:1: a "- " where no list can be: begin the list on a line of its own (YAML: block sequence entries are not allowed in this context)`},
		"backslash":          {"a: \"\\d\"\n", `f:1:1: an unknown \ sequence in double quotes; use single quotes for a plain \ (YAML: found unknown escape character)`},
		"escape character":   {"a: \x1b\n", "f:1:1: a control character; write it as an escape in double quotes, such as \"\\e\" (YAML: control characters are not allowed)"},
		"unknown alias":      {"a: 1\nb: *c\n", "f:2:1: an alias whose anchor is not in this document; put a text that begins with * in quotes"},
		"glob":               {"a: [ls, *]\n", "f:1:1: a name is missing behind * or &; put a text that begins with one of them in quotes (YAML: did not find expected alphabetic or numeric character)"},
		"exclamation":        {"a: !b!c\n", "f:1:1: an unknown tag; put a text that begins with ! in quotes (YAML: found undefined tag handle)"},
		"lone surrogate":     {"a: \"\\ud83d\"\n", `f:1:1: a \u sequence that is no character; in YAML a character beyond \uFFFF is written \U0001F600 (YAML: found invalid Unicode character escape code)`},
		"two JSON objects":   {"{\"a\": 1}\n{\"b\": 2}\n", "f:2:1: the document ends above; what follows needs a line --- before it (YAML: did not find expected <document start>)"},
		"a list":             {"- a\n", "f:1:1: a document must be a mapping that begins with apiVersion and kind, not a list"},
		"a word":             {"hello\n", "f:1:1: a document must be a mapping that begins with apiVersion and kind, not text"},
		"a number":           {"\n7\n", "f:2:1: a document must be a mapping that begins with apiVersion and kind, not a number"},
		"too deep":           {"a: " + strings.Repeat("[", 70) + strings.Repeat("]", 70), "f:1:68: nested more than 64 levels deep, or an alias that contains itself"},
		"far too deep":       {"a: " + strings.Repeat("[", 20_000), "f:1:1: this is not YAML: exceeded max depth of 10000"},
		"contains itself":    {"a: &a [*a]\n", "f:1:4: nested more than 64 levels deep, or an alias that contains itself"},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, []string{c.want}, texts(DecodeFile("f", []byte(c.text))))
			before := DecodeFile("f", []byte("x: 1\n---\n"+c.text)).Items[1].Problems[0]
			at := DecodeFile("f", []byte(c.text)).Items[0].Problems[0]
			assert.Equal(t, at.Line+2, before.Line, "the line counts from the top of the file")
		})
	}
}

func TestMistakeInJSONIsExplainedAsJSON(t *testing.T) {
	for name, c := range map[string]struct{ file, text, want string }{
		"missing comma":   {"f.json", "{\"a\": 1\n \"b\": 2}\n", `f.json:2:2: this is not JSON: invalid character '"' after object key:value pair`},
		"cut short":       {"f.json", "{\"a\": [1,\n", "f.json:2:1: this is not JSON: unexpected end of JSON input"},
		"tabs in a .yaml": {"f.yaml", "{\n\t\"a\": 1\n\t\"b\": 2\n}\n", `f.yaml:3:2: this is not JSON: invalid character '"' after object key:value pair`},
		"YAML in a .json": {"f.json", "a: [\n", "f.json:1:1: this is not JSON: invalid character 'a' looking for beginning of value"},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, []string{c.want}, texts(DecodeFile(c.file, []byte(c.text))))
		})
	}
}

func TestTabsInsideAValueAreNobodysMistake(t *testing.T) {
	text := strings.Replace(good("a"), "[sh]", "\n    - sh\n    - -c\n    - |\n      all:\n      \techo hi\t# x", 1)
	docs := DecodeFile("f", []byte(text))
	require.Empty(t, texts(docs))
	assert.Equal(t, "all:\n\techo hi\t# x\n", docs.Items[0].Session.Spec.Client.Command[2])
}

func TestAliasBombIsRefused(t *testing.T) {
	for name, text := range map[string]string{
		"lists":   bomb("- &%s [%s]\n", "*"),
		"merges":  bomb("- &%s {<<: [%s]}\n", "*"),
		"a text":  "a: &a \"" + strings.Repeat("x", 10_000) + "\"\nb: [" + strings.Repeat("*a, ", 100) + "]\n",
		"one map": "a: &a {" + strings.Repeat("k: v, ", 3000) + "}\nb: [" + strings.Repeat("*a, ", 3000) + "]\n",
	} {
		t.Run(name, func(t *testing.T) {
			got := texts(DecodeFile("f", []byte(text)))
			require.Len(t, got, 1)
			assert.Contains(t, got[0], ": the aliases of this document expand it too far; write it out or generate it")
		})
	}
}

// bomb nests ten levels of ten aliases each.
func bomb(item, star string) string {
	var b strings.Builder
	b.WriteString("- &a0 {x: y}\n")
	for level := 'b'; level < 'k'; level++ {
		below := star + string(level-1) + "0, "
		line := strings.Replace(item, "%s", string(level)+"0", 1)
		b.WriteString(strings.Replace(line, "%s", strings.Repeat(below, 10), 1))
	}
	return b.String()
}

func TestLongDocumentWithoutAliasesIsNoBomb(t *testing.T) {
	args := strings.Repeat("a, ", 50_000)
	docs := DecodeFile("f", []byte(strings.Replace(good("a"), "[sh]", "[sh]\n    args: ["+args+"]", 1)))
	require.Empty(t, texts(docs))
	assert.Len(t, docs.Items[0].Session.Spec.Client.Args, 50_000)
}

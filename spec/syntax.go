// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf16"

	"go.yaml.in/yaml/v3"

	"github.com/muxlet/muxlet/spec/lazyregexp"
)

// parse turns a chunk into a Tree; nil for a document without content.
func parse(file string, c chunk) (*Tree, *Problem) {
	in := &lineReader{lines: c.lines}
	if text := c.text(); json.Valid([]byte(text)) {
		in.lines = strings.Split(yamlOf(text), "\n")
	}
	doc, err := parseOne(in)
	if err != nil {
		return nil, syntaxProblem(file, c, in.given, err)
	}
	if doc == nil || isNull(deref(doc.Content[0])) {
		return nil, nil
	}
	root := doc.Content[0]
	shift(root, c.first-1)
	tree := &Tree{file: file, root: root}
	if problem := tree.bounds(); problem != nil {
		return nil, problem
	}
	if kind := deref(root).Kind; kind != yaml.MappingNode {
		return nil, tree.problem(root, "", "a document must be a mapping that begins with apiVersion and kind, not "+kindName(root))
	}
	return tree, nil
}

var errSecondDocument = errors.New("did not find expected <document start>")

// parseOne reads the only document of r; nil when there is none. The parser is
// not ours and its input is any file, so that a panic of it is an error here.
func parseOne(r io.Reader) (doc *yaml.Node, err error) {
	defer func() {
		if r := recover(); r != nil {
			doc, err = nil, fmt.Errorf("the parser gave up: %v", r)
		}
	}()
	decoder := yaml.NewDecoder(r)
	var node, second yaml.Node
	switch err := decoder.Decode(&node); {
	case errors.Is(err, io.EOF):
		return nil, nil
	case err != nil:
		return nil, err
	}
	switch err := decoder.Decode(&second); {
	case errors.Is(err, io.EOF):
		return &node, nil
	case err != nil:
		return nil, err
	}
	return nil, errSecondDocument
}

// lineReader gives one line at a time, so that given tells how far the parser
// had come when it failed: its errors name the line of the construct around the
// mistake, not of the mistake.
type lineReader struct {
	lines []string
	given int
	rest  string
}

func (r *lineReader) Read(p []byte) (int, error) {
	if r.rest == "" {
		if r.given == len(r.lines) {
			return 0, io.EOF
		}
		r.rest = r.lines[r.given] + "\n"
		r.given++
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// shift adds to the line of every node. Aliases are not followed: their targets
// are nodes of the same tree.
func shift(n *yaml.Node, lines int) {
	n.Line += lines
	for _, child := range n.Content {
		shift(child, lines)
	}
}

// jsonOnly finds what JSON has and the YAML parser does not take, or takes for
// something else: escapes, control characters, and the line ends of YAML 1.1.
var jsonOnly = lazyregexp.New(`\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\.|[\x{7f}-\x{9f}\x{2028}\x{2029}\x{fffe}\x{ffff}]`)

// yamlOf turns JSON into YAML: an escaped slash becomes a slash, a UTF-16 pair
// its character, and the letters that YAML does not take become escapes. They
// can stand in strings alone.
func yamlOf(text string) string {
	return jsonOnly.Get().ReplaceAllStringFunc(text, func(found string) string {
		switch {
		case found == `\/`:
			return "/"
		case found[0] != '\\':
			return fmt.Sprintf(`\u%04x`, []rune(found)[0])
		case len(found) == len(`\u`):
			return found
		}
		high, _ := strconv.ParseUint(found[2:6], 16, 32)
		low, _ := strconv.ParseUint(found[8:12], 16, 32)
		return string(utf16.DecodeRune(rune(high), rune(low)))
	})
}

// syntaxProblem explains an error of the parser, which had read given lines.
func syntaxProblem(file string, c chunk, given int, err error) *Problem {
	if problem := jsonProblem(file, c); problem != nil {
		return problem
	}
	raw, reported := cutLine(err)
	line := mistakeLine(c, given, reported)
	if n, column := tabIndent(c, line); n > 0 {
		at := Position{File: file, Line: c.first + n - 1, Column: column}
		return &Problem{Position: at, Message: "the line is indented with a tab; YAML allows only spaces there"}
	}
	text := c.lines[line-1]
	column := len(text) - len(strings.TrimLeft(text, " ")) + 1
	at := Position{File: file, Line: c.first + line - 1, Column: column}
	return &Problem{Position: at, Message: explain(raw)}
}

// jsonProblem explains the mistake in a document that is meant to be JSON; nil
// for other documents.
func jsonProblem(file string, c chunk) *Problem {
	text := c.text()
	if !strings.HasSuffix(file, ".json") && !strings.HasPrefix(strings.TrimSpace(text), "{\n\t") {
		return nil
	}
	var mistake *json.SyntaxError
	if err := json.Unmarshal([]byte(text), new(any)); !errors.As(err, &mistake) {
		return nil
	}
	problem := bad(file, []byte(text), max(0, int(mistake.Offset)-1), "this is not JSON: "+mistake.Error())[0]
	problem.Line += c.first - 1
	return &problem
}

var yamlError = lazyregexp.New(`(?s)^yaml: (?:line (\d+): )?(.*)$`)

// cutLine splits an error of the parser into its text and the line in the chunk
// from 1. The parser counts from 0 where its scanner counts from 1.
func cutLine(err error) (text string, line int) {
	m := yamlError.FindStringSubmatch(err.Error())
	if m == nil {
		return err.Error(), 1
	}
	line, _ = strconv.Atoi(m[1])
	if strings.HasPrefix(m[2], "did not find expected") || line == 0 {
		line++
	}
	return m[2], line
}

// mistakeLine finds the line of a mistake. The parser reads a line or two ahead
// of it, and the text before it parses. Where no such text is near (an opened
// quote that is never closed), the line that the parser reported is the better
// answer.
func mistakeLine(c chunk, given, reported int) int {
	const ahead = 4
	given = min(given, len(c.lines))
	for n := given - 1; n >= max(0, given-ahead); n-- {
		if _, err := parseOne(strings.NewReader(c.prefix(n))); err == nil {
			return n + 1
		}
	}
	return min(max(reported, 1), len(c.lines))
}

// tabIndent finds a tab in the indentation of the line or of its neighbours.
func tabIndent(c chunk, line int) (n, column int) {
	for _, n := range []int{line, line + 1, line - 1} {
		if n < 1 || n > len(c.lines) {
			continue
		}
		text := c.lines[n-1]
		indent := text[:len(text)-len(strings.TrimLeft(text, " \t"))]
		if i := strings.IndexByte(indent, '\t'); i >= 0 && len(indent) < len(text) {
			return n, i + 1
		}
	}
	return 0, 0
}

var explanations = []struct{ raw, text string }{
	{"unknown anchor", "an alias whose anchor is not in this document; put a text that begins with * in quotes"},
	{"did not find expected alphabetic or numeric character", "a name is missing behind * or &; put a text that begins with one of them in quotes"},
	{"found undefined tag handle", "an unknown tag; put a text that begins with ! in quotes"},
	{"found invalid Unicode", `a \u sequence that is no character; in YAML a character beyond \uFFFF is written \U0001F600`},
	{"mapping values are not allowed", `a ":" where none can be: the indentation is wrong, or a text with ": " in it needs quotes`},
	{"could not find expected ':'", `neither "key: value" nor the rest of the line above: is a ":" missing?`},
	{"did not find expected key", "indented differently from the lines that it belongs to, or text after a closed quote"},
	{"did not find expected '-' indicator", `a list item must begin with "- " in the column of the other items`},
	{"did not find expected ',' or ']'", `a list that was opened with "[" is not continued or closed`},
	{"did not find expected ',' or '}'", `a mapping that was opened with "{" is not continued or closed`},
	{"did not find expected <document start>", "the document ends above; what follows needs a line --- before it"},
	{"did not find expected node content", "a value is missing here, or a bracket that was opened is not closed"},
	{"control characters are not allowed", "a control character; write it as an escape in double quotes, such as \"\\e\""},
	{"found unexpected end of stream", "a quote is opened and never closed"},
	{"found character that cannot start any token", "a value cannot begin with this character; put it in quotes"},
	{"block sequence entries are not allowed", `a "- " where no list can be: begin the list on a line of its own`},
	{"found unknown escape character", `an unknown \ sequence in double quotes; use single quotes for a plain \`},
}

// explain says in words of a person what the parser says in its own, which it
// repeats, except for the name of an alias: it may be the beginning of a secret.
func explain(raw string) string {
	for _, e := range explanations {
		if strings.HasPrefix(raw, e.raw) {
			if e.raw == "unknown anchor" {
				return e.text
			}
			return fmt.Sprintf("%s (YAML: %s)", e.text, raw)
		}
	}
	return "this is not YAML: " + raw
}

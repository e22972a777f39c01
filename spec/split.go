// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"bytes"
	"strings"
)

// chunk is the part of a file that holds one document. Documents are split
// before they are parsed, so that a syntax error in one leaves the others good.
// YAML permits that: a line that begins with --- or ... ends a document
// wherever it stands, inside quotes and block scalars too.
type chunk struct {
	// first is the number of the first line in the file, from 1.
	first int
	// lines without their line ends.
	lines []string
}

// split cuts a file into the chunks that have content.
func split(data []byte) []chunk {
	data = bytes.TrimPrefix(data, []byte("\uFEFF"))
	text := strings.ReplaceAll(string(data), "\r\n", "\n")
	lines := strings.Split(strings.ReplaceAll(text, "\r", "\n"), "\n")
	var chunks []chunk
	start := 0
	cut := func(end int) {
		if c := (chunk{first: start + 1, lines: lines[start:end]}); c.hasContent() {
			chunks = append(chunks, c)
		}
	}
	for i, line := range lines {
		switch {
		case isMarker(line, "---"):
			cut(i)
			start = i
		case isMarker(line, "..."):
			cut(i)
			start = i + 1
		}
	}
	cut(len(lines))
	return chunks
}

// isMarker tells a line that begins a document (---) or ends one (...).
func isMarker(line, marker string) bool {
	rest, found := strings.CutPrefix(strings.TrimPrefix(line, "\uFEFF"), marker)
	return found && (rest == "" || rest[0] == ' ' || rest[0] == '\t')
}

// hasContent is false for a chunk of blank lines, comments, directives and a
// separator.
func (c chunk) hasContent() bool { return c.firstLine() != 0 }

// firstLine is the number of the first line with content; 0 when there is none.
func (c chunk) firstLine() int {
	for i, line := range c.lines {
		if carriesContent(line) {
			return c.first + i
		}
	}
	return 0
}

// endLine is the number of the last line with content.
func (c chunk) endLine() int {
	for i := len(c.lines) - 1; i >= 0; i-- {
		if carriesContent(c.lines[i]) {
			return c.first + i
		}
	}
	return c.first
}

func carriesContent(line string) bool {
	if isMarker(line, "---") {
		line = strings.TrimPrefix(line, "\uFEFF")[len("---"):]
	}
	trimmed := strings.TrimSpace(strings.TrimPrefix(line, "\uFEFF"))
	return trimmed != "" && trimmed[0] != '#' && line[0] != '%'
}

// text is the chunk with line feeds.
func (c chunk) text() string { return strings.Join(c.lines, "\n") + "\n" }

// prefix is the text of the first n lines.
func (c chunk) prefix(n int) string { return chunk{lines: c.lines[:n]}.text() }

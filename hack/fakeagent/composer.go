// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// submission is a prompt as it was pasted and typed, and as the hook is told of it.
type submission struct {
	text, told string
}

// manners of a client with what is pasted.
type manners struct {
	// label of the nth long paste, in whose place it stands; empty for one that is shown.
	label func(text string, nth int) string
	// sticks: the mark stays beside the first line that is seen of a text that is too high.
	sticks bool
	// continues: of a \ at the end Enter makes a new line, and white space at the end is
	// dropped.
	continues bool
	// told is what the hook is told of what was pasted and typed.
	told func(pieces []piece) string
}

// composer is the input line of a client.
type composer struct {
	manners

	pieces []piece
	// labels that were given so far.
	labels int
}

// piece of what stands in a composer; label is empty when the text itself is shown.
type piece struct {
	text, label string
}

func (c *composer) typed(text string) {
	if n := len(c.pieces); n > 0 && c.pieces[n-1].label == "" {
		c.pieces[n-1].text += text
		return
	}
	c.pieces = append(c.pieces, piece{text: text})
}

func (c *composer) pasted(text string) {
	label := ""
	if c.label != nil {
		label = c.label(text, c.labels+1)
	}
	if label == "" {
		c.typed(text)
		return
	}
	c.labels++
	c.pieces = append(c.pieces, piece{text, label})
}

// backspace removes a label as a whole.
func (c *composer) backspace() {
	n := len(c.pieces)
	if n == 0 {
		return
	}
	last := &c.pieces[n-1]
	_, size := utf8.DecodeLastRuneInString(last.text)
	if last.text = last.text[:len(last.text)-size]; last.label != "" || last.text == "" {
		c.pieces = c.pieces[:n-1]
	}
}

func (c *composer) empty() bool { return len(c.pieces) == 0 }

func (c *composer) clear() { c.pieces = nil }

// shown is what stands in it for a person.
func (c *composer) shown() string {
	var out strings.Builder
	for _, p := range c.pieces {
		if p.label != "" {
			out.WriteString(p.label)
			continue
		}
		out.WriteString(p.text)
	}
	return out.String()
}

// take empties the composer; false when there is nothing to submit.
func (c *composer) take() (s submission, ok bool) {
	for _, p := range c.pieces {
		s.text += p.text
	}
	if s.text = strings.TrimRight(s.text, "\n"); strings.TrimSpace(s.text) == "" {
		return submission{}, false
	}
	if n := len(c.pieces) - 1; c.continues && c.pieces[n].label == "" {
		if head, found := strings.CutSuffix(c.pieces[n].text, `\`); found {
			c.pieces[n].text = head + "\n"
			return submission{}, false
		}
		s.text = strings.TrimRight(s.text, " \n")
	}
	if s.told = s.text; c.told != nil {
		s.told = c.told(c.pieces)
	}
	c.pieces = nil
	return s, true
}

// lines wraps what stands in the composer behind the mark, or a faint hint, and keeps
// the last rows of it; hidden is how many are above them. The cursor is at its end.
func (c *composer) lines(mark, hint string, columns, rows int) (lines []string, hidden int) {
	if c.empty() {
		return []string{mark + cursorMark + hint}, 0
	}
	width := max(columns-utf8.RuneCountInString(mark)-1, 10)
	for line := range strings.SplitSeq(c.shown(), "\n") {
		runes := []rune(strings.ReplaceAll(line, "\t", "    "))
		for len(runes) > width {
			lines, runes = append(lines, "  "+string(runes[:width])), runes[width:]
		}
		lines = append(lines, "  "+string(runes))
	}
	lines[len(lines)-1] += cursorMark
	hidden = max(len(lines)-max(rows, 1), 0)
	if lines = lines[hidden:]; hidden == 0 || c.sticks {
		lines[0] = mark + lines[0][2:]
	}
	return lines, hidden
}

// faint text, as hints are.
func faint(text string) string { return "\x1b[2m" + text + "\x1b[22m" }

// claudeManners as measured of Claude Code 2.1.332: a paste of more than three lines or
// 800 characters has a label, and comes to the hook between two lines.
var claudeManners = manners{
	continues: true,
	label: func(text string, nth int) string {
		newlines := strings.Count(text, "\n")
		switch {
		case newlines > 2:
			return fmt.Sprintf("[Pasted text #%d +%d lines]", nth, newlines)
		case utf8.RuneCountInString(text) > 800:
			return fmt.Sprintf("[Pasted text #%d]", nth)
		}
		return ""
	},
	told: func(pieces []piece) string {
		var out strings.Builder
		for i, p := range pieces {
			text := norm.NFC.String(strings.ReplaceAll(p.text, "\t", "    "))
			switch {
			case p.label != "":
				out.WriteString("\n\n<pasted_content id=\"6edc\">\n" + p.text + "\n</pasted_content id=\"6edc\">\n")
			case i == len(pieces)-1:
				out.WriteString(strings.TrimRight(text, " \n"))
			default:
				out.WriteString(text)
			}
		}
		return out.String()
	},
}

// codexManners as measured of Codex 0.171.0: a paste of more than 1000 characters has a
// label, and the hook is told of the text without the white space around it.
var codexManners = manners{
	sticks: true,
	label: func(text string, _ int) string {
		if n := utf8.RuneCountInString(text); n > 1000 {
			return fmt.Sprintf("[Pasted Content %d chars]", n)
		}
		return ""
	},
	told: func(pieces []piece) string {
		var out strings.Builder
		for _, p := range pieces {
			out.WriteString(p.text)
		}
		return strings.TrimSpace(out.String())
	},
}

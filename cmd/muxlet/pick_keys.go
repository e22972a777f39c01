// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"unicode/utf8"
)

// pickPage is how many lines a page key moves.
const pickPage = 10

// pickMoves are the sequences that a terminal sends for keys that move, and by how much.
var pickMoves = map[string]int{
	"\x1b[A": -1, "\x1bOA": -1, "\x10": -1, "\x0b": -1, "\x1b[Z": -1,
	"\x1b[B": 1, "\x1bOB": 1, "\x0e": 1, "\x09": 1,
	"\x1b[5~": -pickPage, "\x1b[6~": pickPage,
	"\x1b[H": -pickEnd, "\x1bOH": -pickEnd, "\x1b[1~": -pickEnd, "\x1b[F": pickEnd, "\x1bOF": pickEnd, "\x1b[4~": pickEnd,
}

// pickEnd is further than any list is long.
const pickEnd = 1 << 20

// pickResult is what came of a key.
type pickResult int

const (
	pickGoesOn pickResult = iota
	pickDone
	pickLeft
)

// press takes one key, as nextKey gives it.
func (p *picker) press(key string) pickResult {
	if lines, ok := pickMoves[key]; ok {
		p.move(lines)
		return pickGoesOn
	}
	switch key {
	case "\r", "\n":
		if p.selection() != "" {
			return pickDone
		}
	case "\x1b", "\x03", "\x07", "\x04":
		return pickLeft
	case "\x7f", "\x08":
		_, size := utf8.DecodeLastRuneInString(p.filter)
		p.typed(p.filter[:len(p.filter)-size])
	case "\x15", "\x17":
		p.typed("")
	default:
		if r, _ := utf8.DecodeRuneInString(key); r != utf8.RuneError && !hidden(r) && len(p.filter) < 256 {
			p.typed(p.filter + key)
		}
	}
	return pickGoesOn
}

// nextKey cuts one key off what a terminal has sent: a character, or a whole sequence.
// Nothing is cut off what may be the beginning of one, unless nothing more will come.
func nextKey(sent string, complete bool) (key, rest string) {
	switch {
	case sent == "":
		return "", ""
	case sent[0] != '\x1b':
		if !utf8.FullRuneInString(sent) && !complete {
			return "", sent
		}
		_, size := utf8.DecodeRuneInString(sent)
		return sent[:size], sent[size:]
	case len(sent) == 1:
		if complete {
			return sent, ""
		}
		return "", sent
	case sent[1] != '[' && sent[1] != 'O':
		// Alt and a key, or Escape and then a key.
		return sent[:1], sent[1:]
	}
	end := strings.IndexFunc(sent[2:], func(r rune) bool { return r >= '@' && r <= '~' })
	switch {
	case end >= 0:
		return sent[:2+end+1], sent[2+end+1:]
	case complete:
		return sent, ""
	}
	return "", sent
}

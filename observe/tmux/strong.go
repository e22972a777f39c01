// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package tmux

import "strings"

// strongCommands are the commands of tmux that print a screen once more for strongOf,
// behind ScreenCommands.
func strongCommands(mark, pane string) [][]string {
	return [][]string{
		{"display-message", "-p", mark},
		{"capture-pane", "-p", "-e", "-t", pane},
	}
}

// strongOf reads a screen that capture-pane -e printed. Each character that is written
// faint becomes a blank, so that the others stay in their columns. tmux 3.3a carries
// what is in force from one line to the next.
func strongOf(text string) []string {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	faint := false
	for i, line := range lines {
		lines[i], faint = strongLine(line, faint)
	}
	return withoutBlankEnd(lines, 0)
}

func strongLine(line string, faint bool) (string, bool) {
	var b strings.Builder
	for line != "" {
		if line[0] == '\x1b' {
			params, final, rest := cutEscape(line)
			if final == 'm' {
				faint = faintAfter(params, faint)
			}
			line = rest
			continue
		}
		text, rest := line, ""
		if at := strings.IndexByte(line, '\x1b'); at >= 0 {
			text, rest = line[:at], line[at:]
		}
		for _, r := range text {
			switch {
			case r < ' ':
				// tmux writes SO and SI around the characters of a line drawing set.
			case faint:
				b.WriteByte(' ')
			default:
				b.WriteRune(r)
			}
		}
		line = rest
	}
	return strings.TrimRight(b.String(), " "), faint
}

// cutEscape takes an escape sequence off the beginning of text. final is the last byte
// of a control sequence, and 0 for a sequence of another kind, such as the address of
// a link. Source of the formats: ECMA-48, 5.4 and 5.6.
func cutEscape(text string) (params string, final byte, rest string) {
	if len(text) < 2 {
		return "", 0, ""
	}
	switch body := text[2:]; text[1] {
	case '[':
		for i := range len(body) {
			if body[i] >= '@' && body[i] <= '~' {
				return body[:i], body[i], body[i+1:]
			}
		}
		return "", 0, ""
	case ']':
		end := strings.IndexAny(body, "\x07\x1b")
		if end < 0 {
			return "", 0, ""
		}
		if body[end] == '\x1b' {
			end = min(end+1, len(body)-1)
		}
		return "", 0, body[end+1:]
	default:
		return "", 0, body
	}
}

// faintAfter says whether characters are faint behind an SGR with params, when they
// were as faint says before it. A colour takes the parameters behind it, in which a 2
// means something else; written with colons it is one parameter.
func faintAfter(params string, faint bool) bool {
	words := strings.Split(params, ";")
	for i := 0; i < len(words); i++ {
		switch words[i] {
		case "", "0", "00", "22":
			faint = false
		case "2", "02":
			faint = true
		case "38", "48", "58":
			i += colourWords(words[i+1:])
		}
	}
	return faint
}

// colourWords is how many of the parameters behind 38, 48 or 58 are its own.
func colourWords(behind []string) int {
	if len(behind) == 0 {
		return 0
	}
	switch behind[0] {
	case "2":
		return 4
	case "5":
		return 2
	}
	return 0
}

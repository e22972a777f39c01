// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"strings"
	"unicode"
)

// maxSaid is how much of a line is kept, in bytes.
const maxSaid = 200

// firstLine keeps the first line with anything on it of what is written, and throws the
// rest away.
type firstLine struct {
	kept []byte
	over bool
}

// Write is io.Writer's.
func (l *firstLine) Write(p []byte) (int, error) {
	for _, b := range p {
		switch {
		case l.over:
			return len(p), nil
		case b == '\n':
			l.over = l.String() != ""
			if !l.over {
				l.kept = l.kept[:0]
			}
		case len(l.kept) < maxSaid:
			l.kept = append(l.kept, b)
		default:
			l.over = true
		}
	}
	return len(p), nil
}

// String is the line, without what a terminal would take for more than text.
func (l *firstLine) String() string {
	text := strings.Map(func(r rune) rune {
		switch {
		case r == '\t':
			return ' '
		case !unicode.IsPrint(r):
			return -1
		}
		return r
	}, strings.ToValidUTF8(string(l.kept), ""))
	return strings.TrimSpace(text)
}

// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/muxlet/muxlet/spec"
)

// manyShown and manyRows are how much of a prompt is taken for it where an input line
// shows only its end, in bytes, or in rows for a prompt of short lines.
const (
	manyShown = 40
	manyRows  = 4
)

// JudgeHand looks for the input line of a client on its screen, and says whether the
// prompt stands in it, or is a command. At is left to the caller.
func JudgeHand(class *spec.ClientClassSpec, s Screen, prompt string) Hand {
	lines := s.Lines[min(s.Visible, len(s.Lines)):]
	h := Hand{Cursor: s.Cursor, Step: s.Turn, Digest: screenDigest(lines), Command: Matches(class.Submit.Composer.Commands, prompt)}
	all, found := composed(class, lines)
	strong := all
	if s.Strong != nil {
		strong, found = composed(class, s.Strong)
	}
	if found {
		h.Composing = composing(class, all, strong, prompt)
	}
	return h
}

// screenDigest tells screens apart without keeping them.
func screenDigest(lines []string) string {
	sum := sha256.Sum256([]byte(strings.Join(lines, "\n")))
	return hex.EncodeToString(sum[:DigestDigits/2])
}

// composed returns what stands in the input line; false when none is seen.
func composed(class *spec.ClientClassSpec, lines []string) (text string, found bool) {
	re := Compiled(class.Submit.Composer.Pattern)
	if re == nil {
		return "", false
	}
	match := re.FindStringSubmatch(strings.Join(lines[max(0, len(lines)-maxScreen):], "\n"))
	i := re.SubexpIndex(spec.GroupText)
	if match == nil || i < 0 {
		return "", false
	}
	return match[i], true
}

// composing judges what stands in an input line: all of it, and without what is
// written faint.
func composing(class *spec.ClientClassSpec, all, strong, prompt string) Composing {
	shown := plain(strong, seen)
	switch wanted := plain(prompt, seen); {
	case plain(strong, told) == "", isHint(all, strong):
		return ComposingNothing
	case isPasted(class, strings.Join(strings.Fields(strong), " "), prompt), shows(shown, wanted, rows(strong)):
		return ComposingPrompt
	}
	return ComposingOther
}

// isHint: a client that draws its cursor itself draws it over the first character of a
// faint hint, which is then not faint (Claude Code 2.1.332).
func isHint(all, strong string) bool {
	strong, all = plain(strong, told), plain(all, told)
	return utf8.RuneCountInString(strong) == 1 && strings.HasPrefix(all, strong) && len(all) > len(strong)
}

// shows: an input line may be too small for the prompt and show its end, where the
// cursor is, and a client may show the first character in its own way, such as ! for a
// shell. An end that is short could be anything.
func shows(shown, wanted string, rows int) bool {
	if shown == wanted {
		return true
	}
	enough := 2*len(shown) >= len(wanted) || len(shown) >= manyShown || rows >= manyRows
	return shown != "" && enough && strings.HasSuffix(wanted, shown)
}

// rows of a text that have something in them.
func rows(text string) int {
	n := 0
	for line := range strings.Lines(text) {
		if plain(line, seen) != "" {
			n++
		}
	}
	return n
}

// isPasted: it is what stands for a long paste, and for one as long as the prompt.
func isPasted(class *spec.ClientClassSpec, shown, prompt string) bool {
	re := Compiled(class.Submit.Composer.Pasted)
	if re == nil {
		return false
	}
	match := re.FindStringSubmatch(shown)
	return match != nil &&
		counts(re, match, spec.GroupNewlines, strings.Count(prompt, "\n")) &&
		counts(re, match, spec.GroupCharacters, utf8.RuneCountInString(prompt))
}

// counts: the group has that number, or none.
func counts(re *regexp.Regexp, match []string, group string, want int) bool {
	i := re.SubexpIndex(group)
	return i < 0 || match[i] == "" || match[i] == strconv.Itoa(want)
}

// seen says whether a character of a prompt can be looked for on a screen: emoji and
// marks are drawn in as many ways as there are terminals, and an input line that
// scrolls has arrows at its edge.
func seen(r rune) bool {
	if r < utf8.RuneSelf {
		return r > ' ' && r < 0x7f
	}
	return unicode.IsLetter(r) || unicode.IsDigit(r)
}

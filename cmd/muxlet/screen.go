// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mattn/go-runewidth"
	"golang.org/x/term"

	"github.com/muxlet/muxlet/spec"
)

// colourful says whether what is written to file is shown by a terminal in
// colours: not when NO_COLOR is set (https://no-color.org), nor on one that
// cannot.
func colourful(file *os.File, lookupEnv func(string) (string, bool)) bool {
	if no, _ := lookupEnv("NO_COLOR"); no != "" {
		return false
	}
	if kind, _ := lookupEnv("TERM"); kind == "dumb" {
		return false
	}
	return term.IsTerminal(int(file.Fd()))
}

// colour is a number of the terminal's palette; 0 is none.
type colour int

const (
	plain  colour = 0
	bad    colour = 31
	good   colour = 32
	moving colour = 33
	quiet  colour = 90
)

func (c colour) paint(text string) string {
	if c == plain || text == "" {
		return text
	}
	return fmt.Sprintf("\x1b[%dm%s\x1b[0m", c, text)
}

// statusColours: red is what a person has to look at.
var statusColours = map[spec.Status]colour{
	spec.StatusRunning:          good,
	spec.StatusStarting:         moving,
	spec.StatusStopping:         moving,
	spec.StatusUnknown:          moving,
	spec.StatusBlocked:          bad,
	spec.StatusInvalid:          bad,
	spec.StatusConflict:         bad,
	spec.StatusCrashLoopBackOff: bad,
	spec.StatusDormant:          quiet,
	spec.StatusTerminated:       quiet,
	spec.StatusSuspended:        quiet,
	spec.StatusCompleted:        quiet,
}

// turnColours are those of turns; one that is completed is as a session that is.
var turnColours = map[spec.TurnPhase]colour{
	spec.TurnPending:    moving,
	spec.TurnDelivering: moving,
	spec.TurnDelivered:  good,
	spec.TurnFailed:     bad,
	spec.TurnUncertain:  bad,
	spec.TurnCancelled:  quiet,
}

// width is the number of columns that text takes in a terminal.
func width(text string) int { return terminalWidth.StringWidth(text) }

// terminalWidth does not depend on the locale: characters of ambiguous width are
// narrow, as terminals show them.
var terminalWidth = runewidth.NewCondition()

// joiners are the invisible characters that emoji and scripts are put together
// with.
var joiners = map[rune]bool{0x200c: true, 0x200d: true, 0xfe0e: true, 0xfe0f: true}

// visible is text without anything that a terminal would obey: what is not
// printed is shown in a form that is. Newlines are shown too.
func visible(text string) string {
	if strings.IndexFunc(text, hidden) < 0 && utf8.ValidString(text) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		switch {
		case !hidden(r):
			b.WriteRune(r)
		case r < 0x20:
			b.WriteString("^" + string(r+'@'))
		case r == 0x7f:
			b.WriteString("^?")
		default:
			fmt.Fprintf(&b, "<U+%04X>", r)
		}
	}
	return b.String()
}

func hidden(r rune) bool { return !unicode.IsPrint(r) && !joiners[r] }

// visibleLines keeps the line breaks and tabulators of a text of ours.
func visibleLines(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		fields := strings.Split(line, "\t")
		for k := range fields {
			fields[k] = visible(fields[k])
		}
		lines[i] = strings.Join(fields, "\t")
	}
	return strings.Join(lines, "\n")
}

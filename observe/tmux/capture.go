// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package tmux

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec/lazyregexp"
)

// MaxHistory bounds the lines of history in a capture: while the server writes
// 100,000 lines it serves nobody else for 0.2 s.
const MaxHistory = 20000

// Capture returns what a pane holds: all of its screen, and at most that many
// lines of its history (and at most 20,000). pane is tmux's id, such as %5. A
// pane in copy mode, and a program on the alternate screen, are seen as they are
// and not as somebody who scrolls sees them.
func (c *Conn) Capture(ctx context.Context, pane string, history int) (observe.Screen, error) {
	if !isID(pane, '%') {
		return observe.Screen{}, fmt.Errorf("capturing pane %q: not a pane id of tmux", pane)
	}
	mark := NewMark()
	return c.capture(ctx, pane, mark, ScreenCommands(mark, pane, history))
}

// CaptureHand returns what a pane shows, without any history, and its Strong lines:
// for a look that comes before something is typed.
func (c *Conn) CaptureHand(ctx context.Context, pane string) (observe.Screen, error) {
	if !isID(pane, '%') {
		return observe.Screen{}, fmt.Errorf("capturing pane %q: not a pane id of tmux", pane)
	}
	mark := NewMark()
	return c.capture(ctx, pane, mark, append(ScreenCommands(mark, pane, 0), strongCommands(mark, pane)...))
}

func (c *Conn) capture(ctx context.Context, pane, mark string, commands [][]string) (observe.Screen, error) {
	var args []string
	for _, command := range commands {
		args = append(append(args, command...), ";")
	}
	args = append(args, EndOfScreen(mark)...)
	r := c.Run(ctx, nil, args...)
	switch words := strings.TrimSpace(r.Stderr); {
	case r.Err != nil:
		return observe.Screen{}, fmt.Errorf("capturing pane %s: %w", pane, r.Err)
	case words != "":
		return observe.Screen{}, fmt.Errorf("capturing pane %s: %w", pane, errors.New(words))
	case r.ExitCode != 0:
		return observe.Screen{}, fmt.Errorf("capturing pane %s: tmux ended with exit code %d", pane, r.ExitCode)
	}
	screen, _, err := CutScreen(r.Stdout, mark)
	if err == nil && screen.Pane != pane {
		err = errors.New("tmux answered for another one")
	}
	if err != nil {
		return observe.Screen{}, fmt.Errorf("capturing pane %s: %w", pane, err)
	}
	return screen, nil
}

// NewMark is a word that sets a screen apart from what else a command line
// prints. No program can have written it before: it cannot be guessed.
func NewMark() string { return "~" + rand.Text() + "~" }

var screenFormats = []string{
	"#{pane_id}", "#{pane_dead}", "#{pane_width}", "#{history_size}", "#{history_limit}",
	"#{pid}", "#{" + observe.OptionBase + "}", "#{" + observe.OptionIncarnation + "}", "#{" + observe.OptionAttempt + "}",
	"#{cursor_x}", "#{cursor_y}", "#{cursor_flag}", "#{" + observe.OptionTurn + "}",
}

// ScreenCommands are the commands of tmux that print a screen for CutScreen to
// read; EndOfScreen comes behind them, whether they all went well or not. tmux
// tells in no version which lines are wrapped, so the screen is written a second
// time, alone, to learn where it begins among the joined lines.
func ScreenCommands(mark, pane string, history int) [][]string {
	depth := strconv.Itoa(min(max(history, 0), MaxHistory))
	return [][]string{
		{"display-message", "-p", "-t", pane, mark + "\t" + depth + "\t" + strings.Join(screenFormats, "\t")},
		{"capture-pane", "-p", "-J", "-t", pane, "-S", "-" + depth},
		{"display-message", "-p", mark},
		{"capture-pane", "-p", "-J", "-t", pane},
	}
}

// EndOfScreen is the command that prints the end of a screen.
func EndOfScreen(mark string) []string { return []string{"display-message", "-p", mark + "."} }

// CutScreen reads the screen that a command line with ScreenCommands and
// EndOfScreen printed, and returns what else it printed as rest: without its
// end everything behind its beginning may be the program's.
func CutScreen(stdout, mark string) (s observe.Screen, rest string, err error) {
	before, behind, found := strings.Cut(stdout, mark+"\t")
	if !found {
		return s, stdout, errors.New("tmux printed no screen")
	}
	printed, behind, whole := strings.Cut(behind, mark+".\n")
	if !whole {
		return s, before, errors.New("tmux printed a part of the screen")
	}
	rest = before + behind
	fields, text, _ := strings.Cut(printed, "\n")
	all, visible, told := strings.Cut(text, mark+"\n")
	if !told {
		return s, rest, errors.New("tmux did not print the screen")
	}
	s, err = parseScreen(fields)
	if err != nil {
		return s, rest, err
	}
	visible, styled, asked := strings.Cut(visible, mark+"\n")
	s.Lines, s.Visible = linesOf(all, strings.Count(visible, "\n"), s.Dead)
	if asked {
		s.Strong = strongOf(styled)
	}
	return s, rest, nil
}

func parseScreen(text string) (observe.Screen, error) {
	fields := strings.Split(text, "\t")
	if len(fields) != len(screenFormats)+1 || !isID(fields[1], '%') {
		return observe.Screen{}, fmt.Errorf("tmux described the pane in %d words", len(fields))
	}
	s := observe.Screen{Pane: fields[1], Dead: fields[2] == "1", Attempt: fields[9], Turn: fields[13]}
	var asked int
	for _, n := range []struct {
		field string
		into  *int
	}{{fields[0], &asked}, {fields[3], &s.Columns}, {fields[4], &s.History}, {fields[5], &s.HistoryLimit}, {fields[6], &s.ServerPID}, {fields[10], &s.Cursor.X}, {fields[11], &s.Cursor.Y}} {
		value, err := strconv.Atoi(n.field)
		if err != nil {
			return observe.Screen{}, fmt.Errorf("read the size of the pane: %w", err)
		}
		*n.into = value
	}
	s.Cursor.Hidden = fields[12] == "0"
	s.Depth = min(asked, s.History)
	// A pane that was not respawned has no base, and begins with 0.
	s.Base, _ = strconv.Atoi(fields[7])
	// Of a pane without our labels, or with somebody else's, there is no number.
	s.Incarnation, _ = strconv.ParseInt(fields[8], 10, 64)
	return s, nil
}

// linesOf reads the joined lines, and where the last visible ones of them begin.
func linesOf(text string, visible int, dead bool) (lines []string, first int) {
	lines = strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	first = max(len(lines)-visible, 0)
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " ")
	}
	lines = withoutBlankEnd(lines, first)
	if n := len(lines); dead && n > first {
		lines[n-1] = strings.TrimRight(deadLine.Get().ReplaceAllLiteralString(lines[n-1], ""), " ")
		lines = withoutBlankEnd(lines, first)
	}
	return lines, first
}

// deadLine is what tmux writes into the last row of a dead pane, however few rows
// the program had filled. What stood in that row, such as a status bar, is moved up
// and marked as wrapped, so that the two come as one line. How it ended is told
// elsewhere. Source: server_destroy_pane in tmux 3.3a.
var deadLine = lazyregexp.New(`Pane is dead \([^()]*\)$`)

// withoutBlankEnd leaves out empty lines at the end, but none before lines[keep].
func withoutBlankEnd(lines []string, keep int) []string {
	for len(lines) > keep && lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

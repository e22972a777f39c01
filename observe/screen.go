// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import "strings"

// KeptLines is how much of what a client showed last is kept.
const KeptLines = 1000

// Screen is what a pane held at one instant: the last lines of its history and
// all of its screen, as plain text. The text is the program's: it may hold
// anything that a terminal can show, and belongs into no log, event or option.
type Screen struct {
	// Pane is tmux's id, such as %5, and ServerPID whose: ids are used again by the
	// next server.
	Pane      string `json:"pane"`
	ServerPID int    `json:"serverPID"`
	// Incarnation and Attempt are the pane's labels; zero when it has none.
	Incarnation int64  `json:"incarnation,omitempty"`
	Attempt     string `json:"attempt,omitempty"`
	// Dead says that the pane's process has ended: nothing will change any more.
	Dead bool `json:"dead,omitempty"`
	// Turn is the pane's OptionTurn; empty when it has none.
	Turn string `json:"-"`
	// Columns of the pane.
	Columns int `json:"columns"`
	// Cursor is where the program's cursor was.
	Cursor Cursor `json:"cursor"`
	// History is how many lines have scrolled off the screen and are kept, as wide as
	// the pane; HistoryLimit how many can be; Depth how many of them are in Lines.
	History      int `json:"history"`
	HistoryLimit int `json:"historyLimit"`
	Depth        int `json:"depth"`
	// Base is what History was when the incarnation began.
	Base int `json:"base,omitempty"`
	// Lines with the wrapped ones joined, without spaces at their ends, empty lines
	// at the end of the screen, and tmux's own line about a dead pane.
	Lines []string `json:"lines,omitempty"`
	// Strong are the lines on the screen, not joined, without the text that is written
	// faint, such as a hint in an input line; nil when that was not asked for.
	Strong []string `json:"-"`
	// Visible is the index in Lines of the first that is on the screen, be it in part;
	// len(Lines) when none is.
	Visible int `json:"visible"`
}

// Cursor is where a program's cursor is on the screen of its pane, from 0, and whether
// it is shown.
type Cursor struct {
	X      int  `json:"x"`
	Y      int  `json:"y"`
	Hidden bool `json:"hidden,omitempty"`
}

// SamePane says whether both are of one pane of one server.
func (s Screen) SamePane(other Screen) bool {
	return s.Pane == other.Pane && s.ServerPID == other.ServerPID
}

// Last keeps at most the last n lines; none for 0.
func (s Screen) Last(n int) Screen {
	cut := len(s.Lines) - max(n, 0)
	if cut <= 0 {
		return s
	}
	for _, line := range s.Lines[:min(cut, s.Visible)] {
		s.Depth = max(s.Depth-Height(line, s.Columns), 0)
	}
	s.Lines, s.Visible = s.Lines[cut:], max(s.Visible-cut, 0)
	return s
}

// Since is how many lines have scrolled off since the incarnation began; ok is
// false when a full history has dropped lines, so that nobody knows any more.
func (s Screen) Since() (lines int, ok bool) {
	return s.History - s.Base, s.Base <= s.History && (s.Base == 0 || s.History < s.HistoryLimit-s.HistoryLimit/10)
}

// Own is what belongs to the incarnation, as far as that is known: a respawn moves
// what its predecessors have shown into the history.
func (s Screen) Own() Screen {
	since, ok := s.Since()
	if !ok || since >= s.Depth {
		return s
	}
	first := s.Visible
	for left := since; left > 0 && first > 0; {
		first--
		left -= Height(s.Lines[first], s.Columns)
	}
	s = s.Last(len(s.Lines) - first)
	s.Depth = since
	return s
}

// Height is how many lines of a pane a line takes: near enough for one with
// characters that are two columns wide.
func Height(line string, columns int) int {
	width := len([]rune(line))
	if columns < 1 || width <= columns {
		return 1
	}
	return (width + columns - 1) / columns
}

// deadLine begins what tmux writes at the bottom of a dead pane.
const deadLine = "Pane is dead ("

// Closed leaves out the empty lines between what a client has shown last and the
// bottom of its pane, where tmux wrote that it is dead: a respawn moves all of the
// screen into the history, 50 lines after a client that wrote two.
func (s Screen) Closed() Screen {
	closed := make([]string, 0, len(s.Lines))
	visible := 0
	for i, line := range s.Lines {
		if strings.HasPrefix(line, deadLine) {
			for len(closed) > 0 && closed[len(closed)-1] == "" {
				closed = closed[:len(closed)-1]
			}
		}
		if i == s.Visible {
			visible = len(closed)
		}
		closed = append(closed, line)
	}
	if s.Visible >= len(s.Lines) {
		visible = len(closed)
	}
	s.Lines, s.Visible = closed, visible
	return s
}

// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode/utf8"

	"golang.org/x/term"
)

// screen is a terminal with a composer. All methods may be called by anybody.
type screen struct {
	mu     sync.Mutex
	before *term.State
	// frame says what is shown around the conversation.
	frame func(s *screen) []string
	// body is the conversation, state a line while the client works.
	body  []string
	state string
	// placeholder is shown in an empty composer, below what is under it.
	placeholder string
	below       []string
	title       string
	composer    composer
	// since is when the composer was shown first; for deaf from then on Enter is lost.
	since time.Time
	deaf  time.Duration
	// cursor says that the terminal's own one is shown.
	cursor    bool
	open      *dialog
	alternate bool
	// prompts that were submitted; keys that mean something to the client.
	prompts chan submission
	keys    chan string
	log     journal
}

// dialog is a question; its options are chosen by the arrows and Enter, or by their
// numbers.
type dialog struct {
	// lines shows the dialog with an option selected.
	lines    func(selected int) []string
	options  int
	selected int
	numbered bool
	// letters choose an option each.
	letters string
	// escape is what Esc and Ctrl-C choose.
	escape int
	chosen chan int
}

// terminalSize is 0x0 without a terminal.
func terminalSize() (columns, rows int) {
	columns, rows, err := term.GetSize(int(os.Stdout.Fd()))
	if err != nil {
		return 0, 0
	}
	return columns, rows
}

// nothing but dialogs is shown yet.
func nothing(*screen) []string { return nil }

// noScreen is that of a client that was given its only prompt by the command line.
func noScreen(log journal) *screen {
	return &screen{prompts: make(chan submission, 1), keys: make(chan string), log: log}
}

// openScreen takes the terminal. Without one the client has nobody to talk to.
func openScreen(log journal, frame func(*screen) []string) *screen {
	s := &screen{frame: frame, prompts: make(chan submission, 100), keys: make(chan string, 100), log: log}
	s.before, _ = term.MakeRaw(int(os.Stdin.Fd()))
	s.write("\x1b[?2004h\x1b[?25l")
	go s.read()
	changes := make(chan os.Signal, 1)
	signal.Notify(changes, syscall.SIGWINCH)
	go func() {
		for range changes {
			s.update(func() {})
		}
	}()
	return s
}

// close gives the terminal back.
func (s *screen) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.frame == nil {
		return
	}
	text := "\x1b[?2004l\x1b[?25h"
	if s.alternate {
		text += "\x1b[?1049l"
		s.alternate = false
	} else {
		text += "\r\n"
	}
	s.write(text)
	if s.before != nil {
		_ = term.Restore(int(os.Stdin.Fd()), s.before)
	}
}

func (s *screen) write(text string) { _, _ = os.Stdout.WriteString(text) }

// update changes the screen and paints it.
func (s *screen) update(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
	s.paint()
}

// say adds lines to the conversation.
func (s *screen) say(lines ...string) {
	s.update(func() { s.body = append(s.body, lines...) })
}

// enter shows the composer; on the alternate screen, if the client has one.
func (s *screen) enter(alternate bool) {
	s.update(func() {
		if alternate && !s.alternate && s.frame != nil {
			s.write("\x1b[?1049h")
		}
		s.alternate = alternate
		if s.since.IsZero() {
			s.since = time.Now()
		}
	})
}

// ask shows a dialog and waits for the answer.
func (s *screen) ask(d dialog) int {
	d.chosen = make(chan int, 1)
	s.update(func() { s.open = &d })
	return <-d.chosen
}

// cursorMark is where the cursor is among the lines of a screen; none is told, as in a
// dialog, when it is behind them.
const cursorMark = "\x00"

// paint everything anew. The caller holds mu.
func (s *screen) paint() {
	if s.frame == nil {
		return
	}
	lines := s.frame(s)
	if s.open != nil {
		lines = s.open.lines(s.open.selected)
		if s.alternate {
			lines = append(slices.Clone(s.body), lines...)
		}
	}
	columns, rows := terminalSize()
	if rows > 0 && len(lines) > rows {
		lines = lines[len(lines)-rows:]
	}
	var out strings.Builder
	out.WriteString("\x1b[?25l\x1b[H")
	at := ""
	for i, line := range lines {
		if before, after, found := strings.Cut(line, cursorMark); found {
			at = fmt.Sprintf("\x1b[%d;%dH", i+1, utf8.RuneCountInString(before)+1)
			line = before + after
		}
		if runes := []rune(line); columns > 0 && len(runes) > columns {
			line = string(runes[:columns])
		}
		out.WriteString(line + "\x1b[m\x1b[K")
		if i < len(lines)-1 {
			out.WriteString("\r\n")
		}
	}
	out.WriteString("\x1b[J" + at)
	if s.cursor && at != "" {
		out.WriteString("\x1b[?25h")
	}
	if s.title != "" {
		out.WriteString("\x1b]0;" + s.title + "\x07")
	}
	s.write(out.String())
}

// rule is a line across the terminal.
func rule(char string) string {
	columns, _ := terminalSize()
	return strings.Repeat(char, max(columns, 20))
}

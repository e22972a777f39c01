// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package tmux

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// maxLines bounds a capture: while the server writes 100,000 lines it serves
// nobody else for 0.2 s.
const maxLines = 20000

// Capture returns the last lines of a pane, of its history and its screen
// together, at most lines (and at most 20,000) of them. Wrapped lines are joined;
// spaces at the end of a line, empty lines at the end of the screen and tmux's own
// line about a dead pane are left out. pane is tmux's id, such as %5. The text is the program's: it may hold
// anything that a terminal can show.
func (c *Conn) Capture(ctx context.Context, pane string, lines int) (string, error) {
	if !isID(pane, '%') {
		return "", fmt.Errorf("capturing pane %q: not a pane id of tmux", pane)
	}
	lines = min(max(lines, 1), maxLines)
	r := c.Run(ctx, nil, "capture-pane", "-p", "-J", "-t", pane, "-S", strconv.Itoa(-lines))
	switch words := strings.TrimSpace(r.Stderr); {
	case r.Err != nil:
		return "", fmt.Errorf("capturing pane %s: %w", pane, r.Err)
	case words != "":
		return "", fmt.Errorf("capturing pane %s: %w", pane, errors.New(words))
	case r.ExitCode != 0:
		return "", fmt.Errorf("capturing pane %s: tmux ended with exit code %d", pane, r.ExitCode)
	}
	return lastLines(r.Stdout, lines), nil
}

func lastLines(text string, lines int) string {
	all := strings.Split(text, "\n")
	for i, line := range all {
		all[i] = strings.TrimRight(line, " ")
	}
	all = withoutBlankEnd(all)
	if n := len(all); n > 0 && strings.HasPrefix(all[n-1], deadLine) {
		all = withoutBlankEnd(all[:n-1])
	}
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// deadLine is how tmux begins the line that it writes into the last row of a dead
// pane, however few rows the program had filled. How it ended is told elsewhere.
const deadLine = "Pane is dead ("

func withoutBlankEnd(lines []string) []string {
	for len(lines) > 0 && lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

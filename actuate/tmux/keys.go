// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package tmux

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/muxlet/muxlet/actuate"
)

// keys types keys into a live pane of ours, whose client is to end by them. Whatever
// a person looks at in the pane, such as the copy mode, would take them: it is left
// first. While a person has the pane's input copied to other panes nothing is typed:
// it would end what runs in theirs.
func (t *Actuator) keys(ctx context.Context, a actuate.Action) actuate.Outcome {
	guard, err := t.typingGuard(a)
	if err == nil {
		err = checkKeys(a.Keys)
	}
	if err != nil {
		return untouched(err)
	}
	return outcome(t.Conn.Run(ctx, nil, guard.line(typeKeys(a))...))
}

// submit types the keys that submit what stands in the client's input line, with the
// cursor as a further precondition.
func (t *Actuator) submit(ctx context.Context, a actuate.Action) actuate.Outcome {
	guard, err := t.typingGuard(a)
	if err == nil {
		err = checkKeys(a.Keys)
	}
	if err != nil {
		return untouched(err)
	}
	return outcome(t.Conn.Run(ctx, nil, guard.line(where(a, typeKeys(a), ""))...))
}

func typeKeys(a actuate.Action) string {
	return sequence(
		leaveMode(a.Pane.PaneID),
		command(slices.Concat([]string{"send-keys", "-t", a.Pane.PaneID, "--"}, a.Keys)...),
		command("display-message", "-p", tokenDone),
	)
}

// leaveMode brings the pane's program back in front of whoever looks at its pane.
func leaveMode(pane string) string {
	return command("if-shell", "-F", "-t", pane, "#{pane_in_mode}", command("copy-mode", "-q", "-t", pane))
}

// where runs script while the program's cursor is where the action's turn wants it,
// and otherwise, which may be empty, when it is elsewhere. A mode in front of the
// program has a cursor of its own and does not move this one.
func where(a actuate.Action, script, otherwise string) string {
	cursor := a.Turn.Cursor
	if cursor == nil {
		return script
	}
	shown := 1
	if cursor.Hidden {
		shown = 0
	}
	condition := fmt.Sprintf("#{==:#{cursor_x} #{cursor_y} #{cursor_flag},%d %d %d}", cursor.X, cursor.Y, shown)
	moved := command("display-message", "-p", tokenMoved)
	if otherwise != "" {
		moved = sequence(moved, otherwise)
	}
	return command(either(a.Pane.PaneID, condition, script, moved)...)
}

func checkKeys(keys []string) error {
	if len(keys) == 0 {
		return errors.New("the action names no keys")
	}
	for _, key := range keys {
		if key == "" || strings.ContainsFunc(key, unicode.IsControl) {
			return errors.New("a key has no name that tmux knows")
		}
	}
	return nil
}

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

// keys types keys into a live pane of ours, whose client is to end by them.
func (t *Actuator) keys(ctx context.Context, a actuate.Action) actuate.Outcome {
	a.Turn.Cursor = nil
	return t.submit(ctx, a)
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
	script := typing(a, sequence(
		command(slices.Concat([]string{"send-keys", "-t", a.Pane.PaneID, "--"}, a.Keys)...),
		noteStep(a),
		command("display-message", "-p", tokenDone),
	))
	return outcome(t.Conn.Run(ctx, nil, guard.line(script)...))
}

// typing runs script, which types into the action's pane, if that reaches the program
// in it and nothing else, and otherwise, if there is any, when it does not.
//
// tmux types nothing into a pane whose input a person has switched off, and answers as
// if it had. While a person has it copied to other panes, it would reach what runs in
// theirs. Whatever they look at in the pane, such as the copy mode, would take it: that
// is left first, when nothing else is in the way. A mode has a cursor of its own and
// does not move the program's.
func typing(a actuate.Action, script string, otherwise ...string) string {
	pane := a.Pane.PaneID
	not := func(token string) string {
		return sequence(slices.Concat([]string{command("display-message", "-p", token)}, otherwise)...)
	}
	leave := command("if-shell", "-F", "-t", pane, "#{pane_in_mode}", command("copy-mode", "-q", "-t", pane))
	script = sequence(leave, script)
	if cursor := a.Turn.Cursor; cursor != nil {
		shown := 1
		if cursor.Hidden {
			shown = 0
		}
		at := fmt.Sprintf("#{==:#{cursor_x} #{cursor_y} #{cursor_flag},%d %d %d}", cursor.X, cursor.Y, shown)
		script = command(either(pane, at, script, not(tokenMoved))...)
	}
	const own = "#{==:#{?pane_synchronized,copied,own} #{?pane_input_off,off,on},own on}"
	return command(either(pane, own, script, not(tokenTaken))...)
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

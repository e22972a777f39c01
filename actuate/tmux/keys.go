// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package tmux

import (
	"context"
	"errors"
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
	guard, err := t.paneGuard(a)
	if err == nil {
		err = checkKeys(a.Keys)
	}
	if err != nil {
		return untouched(err)
	}
	guard.require("?pane_dead,dead,live", "live")
	guard.require("?pane_synchronized,copied,own", "own")
	pane := a.Pane.PaneID
	script := sequence(
		command("if-shell", "-F", "-t", pane, "#{pane_in_mode}", command("copy-mode", "-q", "-t", pane)),
		command(slices.Concat([]string{"send-keys", "-t", pane, "--"}, a.Keys)...),
		command("display-message", "-p", tokenDone),
	)
	return outcome(t.Conn.Run(ctx, nil, guard.line(script)...))
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

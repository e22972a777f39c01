// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package tmux

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/muxlet/muxlet/actuate"
	"github.com/muxlet/muxlet/actuate/prompt"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/observe/tmux"
	"github.com/muxlet/muxlet/spec"
)

// paste hands a prompt over to the client in a live pane of ours, in one command line
// of tmux: the prompt becomes a paste buffer, and the guarded rest pastes and deletes
// it, or deletes it alone.
//
// A Failed must prove that nothing was pasted, since the turn is then handed over
// anew. Measured on tmux 3.3a: load-buffer that fails does not end the line, but then
// paste-buffer does, with "no buffer NAME" and exit code 1; so it does after a load of
// no bytes, which tmux takes for a success. That text about a name nobody else has is
// the proof. Another failure behind tokenPasting may be that of a hook of the person's
// which runs after the paste: that is Unclear.
func (t *Actuator) paste(ctx context.Context, a actuate.Action) actuate.Outcome {
	guard, err := t.typingGuard(a)
	if err != nil {
		return untouched(err)
	}
	text, err := prompt.Read(a.Turn.PromptFile, spec.MaxPromptBytes)
	if err != nil {
		return failed(spec.ReasonPromptLost, fmt.Sprintf("Turn %s was not handed over: %v; send it again.", a.Turn.Name, err))
	}
	if re := observe.Compiled(a.Turn.Continues); re != nil && re.MatchString(text) {
		text += " "
	}
	name := t.buffers.begin(t.bufferPrefix())
	defer t.buffers.end(name)
	forget := command("delete-buffer", "-b", name)
	script := typing(a, sequence(
		command("display-message", "-p", tokenPasting),
		command(pasteBuffer(a, name)...),
		noteStep(a),
		command("display-message", "-p", tokenDone),
	), forget)
	refuse := sequence(command("display-message", "-p", tokenRefused), forget)
	line := slices.Concat(
		[]string{"load-buffer", "-b", name, "-", ";"},
		either(guard.target, guard.condition(), script, refuse))
	return pasted(t.Conn.Run(ctx, strings.NewReader(text), line...), name)
}

// noteStep says on the pane that the act was done.
func noteStep(a actuate.Action) string {
	if a.Turn.Step == "" {
		return command("set-option", "-p", "-u", "-t", a.Pane.PaneID, observe.OptionTurn)
	}
	return command("set-option", "-p", "-t", a.Pane.PaneID, observe.OptionTurn, a.Turn.Step)
}

// pasteBuffer pastes a buffer as it is, between the marks of a bracketed paste when
// the program has asked for them, and deletes it. From 3.7 on tmux rewrites what it
// takes for unsafe unless it is told not to; before, it does not know that flag.
func pasteBuffer(a actuate.Action, name string) []string {
	words := []string{"paste-buffer", "-p", "-r", "-d", "-b", name, "-t", a.Pane.PaneID}
	if rewrites(a.Server.Version) {
		words = append(words, "-S")
	}
	return words
}

// rewrites says whether tmux of that version has paste-buffer -S. A version that does
// not begin with two numbers, such as next-3.8 or openbsd-7.9, is not known.
func rewrites(version string) bool {
	var major, minor int
	if _, err := fmt.Sscanf(version, "%d.%d", &major, &minor); err != nil {
		return false
	}
	return major > 3 || major == 3 && minor >= 7
}

// pasted reads the answer to a paste.
func pasted(r tmux.Result, name string) actuate.Outcome {
	if find(r.Stdout, tokenPasting) == nil || find(r.Stdout, tokenDone) != nil {
		return outcome(r)
	}
	if r.Err == nil && strings.Contains(r.Stderr, "no buffer "+name) {
		return failed(spec.ReasonTmuxFailed, "tmux could not load the prompt, and nothing was pasted; it is tried again.")
	}
	return unclear(r)
}

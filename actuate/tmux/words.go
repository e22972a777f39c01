// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package tmux

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"unicode"

	"github.com/muxlet/muxlet/actuate"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec"
)

// quote makes one word for tmux's own parser. Nothing is expanded between single
// quotes; a single quote is written outside of them.
func quote(word string) string {
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// command is one tmux command for tmux's parser. A ; at the end of a word would
// separate commands even when it is quoted.
func command(words ...string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = quote(word)
	}
	return strings.Join(quoted, " ")
}

// sequence runs commands in one go of the server, until one fails.
func sequence(commands ...string) string { return strings.Join(commands, " ; ") }

func number(n int) string { return strconv.Itoa(n) }

// directory is the -c of a new pane, which is a format: every # is doubled, or
// #(…) in the name of a directory would be executed. It only serves what the
// person opens beside the client: the launcher goes where its order says. A
// name with control characters is left out, since tmux's parser changes them.
func directory(dir string) []string {
	if dir == "" || strings.ContainsFunc(dir, unicode.IsControl) {
		return nil
	}
	return []string{"-c", strings.ReplaceAll(dir, "#", "##")}
}

// labels sets the labels of a pane as options of the pane itself.
func labels(pane string, l observe.Labels) string {
	set := func(option, value string) string {
		return command("set-option", "-p", "-t", pane, option, value)
	}
	return sequence(
		set(observe.OptionInstance, l.Instance),
		set(observe.OptionUID, l.UID),
		set(observe.OptionName, l.Name),
		set(observe.OptionIncarnation, strconv.FormatInt(l.Incarnation, 10)),
		set(observe.OptionRole, l.Role),
		// -F expands it now: what runs in the pane later has another pid.
		command("set-option", "-p", "-F", "-t", pane, observe.OptionLaunched, "#{pane_pid}"),
		set(observe.OptionAttempt, l.Attempt),
	)
}

// keepDead makes the pane outlive its process, whatever the global option says by
// now: a pane that vanishes takes the end of its client along.
func keepDead(pane string) string {
	return command("set-option", "-p", "-t", pane, "remain-on-exit", "on")
}

// noManualSize takes back a global window-size manual: with it tmux 3.3a crashes at
// the next new window, and every session with it.
func noManualSize() string {
	return command("if-shell", "-F", "#{==:#{window-size},manual}", command("set-option", "-g", "window-size", "latest"))
}

// realSize gives the pane's window its size while condition, a format, holds;
// always when that is empty. With a person attached to any session at all tmux
// makes every new window as large as their terminal. The second command gives the
// size back to whoever attaches.
func realSize(pane string, l actuate.Launch, condition string) string {
	size := fmt.Sprintf("%dx%d", l.Columns, l.Rows)
	other := fmt.Sprintf("#{!=:#{window_width}x#{window_height},%s}", size)
	if condition != "" {
		other = fmt.Sprintf("#{&&:%s,%s}", condition, other)
	}
	return command("if-shell", "-F", "-t", pane, other, sequence(
		command("resize-window", "-t", pane, "-x", number(l.Columns), "-y", number(l.Rows)),
		command("set-option", "-w", "-u", "-t", pane, "window-size"),
	))
}

// noLabels removes the labels of a pane, and what else it was given as ours.
func noLabels(pane string) string {
	unset := func(option string) string { return command("set-option", "-p", "-u", "-t", pane, option) }
	return sequence(
		unset(observe.OptionInstance), unset(observe.OptionUID), unset(observe.OptionName),
		unset(observe.OptionIncarnation), unset(observe.OptionRole), unset(observe.OptionAttempt),
		unset(observe.OptionLaunched), unset("remain-on-exit"),
	)
}

// report prints a token with the pane's id and pid.
func report(token, pane string) string {
	return command("display-message", "-p", "-t", pane, token+" #{pane_id} #{pane_pid}")
}

// launcher is the argv of a pane.
func (t *Actuator) launcher(l actuate.Launch) []string {
	argv := append([]string{
		t.Binary, "launch", "--state", t.StateDir, "--runtime", t.RuntimeDir,
		"--uid", l.Labels.UID, "--attempt", l.Labels.Attempt,
	}, t.LaunchExtra...)
	return t.Shell.Argv(l.ShellMode, argv)
}

// Argv is the argv by which argv is executed in the environment that mode stands for.
func (s Shell) Argv(mode spec.ShellMode, argv []string) []string {
	switch mode {
	case spec.ShellNone:
		return argv
	case spec.ShellLogin:
		return append([]string{s.Path, "-lc", throughShell(s.Path, argv), "muxlet"}, argv...)
	case spec.ShellInteractive:
	}
	return append([]string{s.Path, "-lic", throughShell(s.Path, argv), "muxlet"}, argv...)
}

// throughShell is the command by which a shell replaces itself by argv, whatever
// its profile did. fish takes exactly one string for that, and its profile can
// change nothing about it. In the others a profile may have replaced the
// arguments of the shell (set -- …), which is why argv stands in the command as
// well, or have an alias or a function called exec: a backslash passes over the
// one, builtin over the other. dash and sh have no functions with that name.
func throughShell(shell string, argv []string) string {
	quoted := command(argv...)
	switch filepath.Base(shell) {
	case "fish":
		return `exec "$@"`
	case "bash", "zsh":
		return `\builtin \exec ` + quoted
	}
	return `\exec ` + quoted
}

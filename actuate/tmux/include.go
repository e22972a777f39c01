// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package tmux

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/muxlet/muxlet/actuate/process"
	"github.com/muxlet/muxlet/observe"
	observeprocess "github.com/muxlet/muxlet/observe/process"
	"github.com/muxlet/muxlet/observe/tmux"
)

// A person's own configuration file of tmux may hold anything: hooks that rename or kill what
// is made, kill-server, commands that never end, plugins. It is never run on the server that
// has the sessions. A server of its own runs it, with our configuration and one idle session,
// and what it has set there, options and keys, is what the file asks for. Whatever else it
// does happens on a server that is thrown away.

// Trial runs configuration files of a person.
type Trial struct {
	// Conn to the server of the trial: a socket of its own, which nobody else uses. Nothing of
	// what Conn leaves out of an environment reaches the file.
	Conn *tmux.Conn
	// Conf is the absolute path of our configuration.
	Conf string
	// Limit is how long the file may take; 0 means 10 s.
	Limit time.Duration
}

// Included is what a file asks for.
type Included struct {
	// Set are the commands of tmux that give it, each a line; Undo those that take it back.
	Set, Undo []string
	// LeftOut names what the file asks for and does not get.
	LeftOut []string
	// Problems are what is wrong with the file, each with its place as far as tmux tells it.
	Problems []string
}

const (
	trialSession = "include"
	trialLimit   = 10 * time.Second
	// settlePause is the time between two looks at what is set: plugins go on for a while.
	settlePause = 150 * time.Millisecond
	settleLooks = 10
	// endPatience is how long a server of a trial may take to end by itself.
	endPatience = time.Second
	endPoll     = 5 * time.Millisecond
)

// Try runs the file. The error says that it could not be tried, and then nothing is known of
// what it asks for.
func (t *Trial) Try(ctx context.Context, file string) (Included, error) {
	if err := readable(file); err != nil {
		return Included{}, fmt.Errorf("read %s: %w", file, err)
	}
	server, err := t.begin(ctx)
	if err != nil {
		return Included{}, err
	}
	defer t.end(server)
	before, err := t.look(ctx)
	if err != nil {
		return Included{}, fmt.Errorf("look at tmux before %s: %w", file, err)
	}
	problems := t.source(ctx, file)
	after, err := t.settled(ctx)
	if err != nil {
		return Included{}, fmt.Errorf("%s ends the tmux server, or makes it mute (%w)", file, err)
	}
	out := difference(before, after)
	out.Problems = problems
	return out, nil
}

// readable says why a file cannot be read. To open a pipe would take until somebody writes
// into it, and the daemon could not end meanwhile.
func readable(file string) error {
	info, err := os.Stat(file)
	if err == nil && !info.Mode().IsRegular() && file != os.DevNull {
		return errors.New("it is not a regular file")
	}
	var f *os.File
	if err == nil {
		f, err = os.Open(file)
	}
	if err != nil {
		return errors.Unwrap(err)
	}
	_ = f.Close()
	return nil
}

// begin starts the server, in the place of one that an earlier trial may have left.
func (t *Trial) begin(ctx context.Context) (server observe.Process, err error) {
	t.Clear(ctx)
	r := t.Conn.Start(ctx, t.Conf,
		"new-session", "-d", "-s", trialSession, "-x", "200", "-y", "50", "--", "/bin/sleep", "1000", ";",
		"set-option", "-t", "="+trialSession+":", "destroy-unattached", "off", ";", "display-message", "-p", "#{pid}")
	pid, err := strconv.Atoi(strings.TrimSpace(r.Stdout))
	if err != nil {
		err = fmt.Errorf("start a tmux server to try it on: %s", words(explain(r)))
	} else if server, _ = observeprocess.Identify(pid); server.Ticks == 0 {
		err = errors.New("start a tmux server to try it on: it has ended at once")
	} else if err = os.WriteFile(t.note(), fmt.Appendf(nil, "%d %d", server.PID, server.Ticks), 0o600); err != nil {
		err = fmt.Errorf("note the tmux server to try it on: %w", err)
	}
	if err != nil {
		// It may run without having said so.
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), endPatience)
		defer cancel()
		t.Clear(ending)
		return observe.Process{}, err
	}
	return server, nil
}

// note is the file that says which process the server is: one that is mute, or that waits
// for a command of the file to end, does not end when it is told to, and a daemon that was
// killed leaves it to the next one.
func (t *Trial) note() string { return t.Conn.Socket + ".server" }

// Clear ends the server of a trial that was broken off.
func (t *Trial) Clear(ctx context.Context) {
	var server observe.Process
	if text, err := os.ReadFile(t.note()); err == nil {
		if _, err := fmt.Sscan(string(text), &server.PID, &server.Ticks); err == nil {
			t.end(server)
		}
		_ = os.Remove(t.note())
	}
	if _, err := os.Lstat(t.Conn.Socket); err == nil {
		t.Conn.Run(ctx, nil, "kill-server")
		_ = os.Remove(t.Conn.Socket)
	}
}

func explain(r tmux.Result) string {
	if r.Err != nil {
		return r.Err.Error()
	}
	return r.Stderr + r.Stdout
}

// end ends the server, and whatever the file still runs below it: each trial would leave
// another one behind. Who has left the server's family is not found any more.
func (t *Trial) end(server observe.Process) {
	var family []observe.Process
	if observeprocess.State(server) == observe.Running {
		// What cannot be listed is left.
		family, _ = observeprocess.Descendants(server)
	}
	ctx, cancel := context.WithTimeout(context.Background(), endPatience)
	defer cancel()
	t.Conn.Run(ctx, nil, "kill-server")
	for observeprocess.State(server) == observe.Running && ctx.Err() == nil {
		time.Sleep(endPoll)
	}
	// One that does not answer would be left behind; one that has ended is not found.
	for _, p := range append(family, server) {
		_ = process.Signal(p.PID, syscall.SIGKILL, process.Itself(p))
	}
	_, _ = os.Remove(t.Conn.Socket), os.Remove(t.note())
}

// source runs the file. exit-empty is set back in the same breath: with it, and without an
// attached person, the server would end as soon as this call has.
func (t *Trial) source(ctx context.Context, file string) (problems []string) {
	limit := t.Limit
	if limit == 0 {
		limit = trialLimit
	}
	patient := *t.Conn
	patient.Timeout, patient.TimeoutOf = limit, nil
	r := patient.Run(ctx, nil, "source-file", literalPath(file), ";", "set-option", "-s", "exit-empty", "off")
	if r.TimedOut {
		problems = append(problems, fmt.Sprintf("%s: it has not ended within %s: what it set until then is in force; a command in it does not end, such as a run-shell without -b", file, limit))
	}
	return append(problems, locate(file, r.Stdout+r.Stderr)...)
}

// literalPath keeps source-file from taking a path for a pattern.
func literalPath(path string) string {
	return regexp.MustCompile(`[][*?\\]`).ReplaceAllString(path, `\$0`)
}

// placedPattern matches what tmux says with its place.
const placedPattern = `^(/[^:]*):([0-9]+): (.*)$`

// saidPattern matches what tmux 3.2 to 3.7 says of a command that fails as the file is run,
// and of which it does not tell the place.
const saidPattern = `^(invalid option|ambiguous option|unknown (?:key|value|command|option)|bad value|invalid key|no such (?:file|session|window|pane|table|client)|unknown flag|already set|not an array|can't (?:find|use|set)[^:]*|value is invalid|missing argument|too (?:few|many) arguments|usage|style is invalid|bad colour|invalid style|invalid or unknown command)[: ]`

// locate makes sentences of what tmux said. What the file itself prints is none of them.
func locate(file, said string) (problems []string) {
	placed, plain := regexp.MustCompile(placedPattern), regexp.MustCompile(saidPattern)
	for line := range strings.Lines(said) {
		line = strings.TrimRight(line, "\n")
		if placed.MatchString(line) {
			problems = append(problems, line)
		} else if plain.MatchString(line) || strings.HasPrefix(line, "/") && strings.HasSuffix(line, "No such file or directory") {
			problems = append(problems, placeOf(file, line)+": "+line)
		}
	}
	return problems
}

// placeOf is where what tmux complains of stands first in the file; the file alone when it
// does not, or stands in another file that this one names.
func placeOf(file, line string) string {
	data, err := os.ReadFile(file)
	if err != nil {
		return file
	}
	parts := strings.Split(line, ": ")
	for _, what := range []string{parts[len(parts)-1], parts[0]} {
		whole := regexp.MustCompile(`(^|[\s'"=])` + regexp.QuoteMeta(strings.TrimSpace(what)) + `($|[\s'"\[;])`)
		n := 0
		for text := range strings.Lines(string(data)) {
			n++
			if !strings.HasPrefix(strings.TrimSpace(text), "#") && whole.MatchString(strings.TrimRight(text, "\n")) {
				return file + ":" + strconv.Itoa(n)
			}
		}
	}
	return file
}

// settled looks until nothing changes any more, or for as long as a plugin may take.
func (t *Trial) settled(ctx context.Context) (after state, err error) {
	var text string
	for range settleLooks {
		after, err = t.look(ctx)
		if err != nil {
			return after, err
		}
		now := fmt.Sprint(after)
		if now == text {
			return after, nil
		}
		text = now
		select {
		case <-ctx.Done():
			return after, ctx.Err()
		case <-time.After(settlePause):
		}
	}
	return after, nil
}

// state is what is set on a server: of each thing the rest of the command that sets it, by
// the part of the command that says what it is.
type state map[string]string

const endOfList = "~muxlet~"

// look reads what is set. tmux writes it as commands that it can read again.
func (t *Trial) look(ctx context.Context) (state, error) {
	var line []string
	for _, list := range [][]string{
		{"show-options", "-s"}, {"show-options", "-g"}, {"show-options", "-gw"}, {"list-keys"},
		{"show-environment", "-g"}, {"show-hooks", "-g"}, {"show-hooks", "-gw"},
	} {
		line = append(append(line, list...), ";", "display-message", "-p", endOfList, ";")
	}
	r := t.Conn.Run(ctx, nil, line[:len(line)-1]...)
	lists := strings.Split(r.Stdout, endOfList+"\n")
	if r.Err != nil || r.ExitCode != 0 || len(lists) != 8 {
		return nil, errors.New(words(explain(r)))
	}
	out := state{}
	for i, flags := range []string{"-s", "-g", "-gw"} {
		for text := range strings.Lines(lists[i]) {
			name, value, _ := strings.Cut(strings.TrimRight(text, "\n"), " ")
			out["set-option "+flags+" "+name] = value
		}
	}
	key := regexp.MustCompile(`^bind-key\s+(-r\s+)?-T\s+(\S+)\s+(\S+)\s+(.*)$`)
	for text := range strings.Lines(lists[3]) {
		if m := key.FindStringSubmatch(strings.TrimRight(text, "\n")); m != nil {
			out["bind-key "+m[2]+" "+m[3]] = strings.TrimSpace(m[1]) + " " + m[4]
		}
	}
	for text := range strings.Lines(lists[4]) {
		if name, value, ok := strings.Cut(strings.TrimRight(text, "\n"), "="); ok && toPlugins(name) {
			out["set-environment "+name] = value
		}
	}
	for text := range strings.Lines(lists[5] + lists[6]) {
		if name, value, ok := strings.Cut(strings.TrimRight(text, "\n"), " "); ok {
			out["hook "+name] = value
		}
	}
	return out, nil
}

// toPlugins says whether a variable tells the scripts of plugins where they are.
func toPlugins(name string) bool {
	return strings.HasPrefix(name, "TMUX_PLUGIN") && !strings.ContainsAny(name, " \t")
}

// kept are options that the file does not get: without ours a server or a session would end
// by itself, what a person is asked for would leak into sessions, another word would mean one
// of the commands that we use, or the keys of a turn would go to a person's own panes as well.
var kept = []string{"exit-empty", "exit-unattached", "destroy-unattached", "update-environment", "command-alias", "synchronize-panes"}

// difference is what brings one state about from another, and what takes that back.
func difference(before, after state) (out Included) {
	var names []string
	for name := range after {
		if value, had := before[name]; !had || value != after[name] {
			names = append(names, name)
		}
	}
	for name := range before {
		if _, has := after[name]; !has {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		value, set := after[name]
		if left := leftOut(name, value); left != "" {
			out.LeftOut = append(out.LeftOut, left)
			continue
		}
		old, had := before[name]
		out.Set = append(out.Set, setting(name, value, set))
		out.Undo = append(out.Undo, setting(name, old, had))
	}
	out.LeftOut = slices.Compact(out.LeftOut)
	return out
}

// leftOut names what a file does not get; empty when it does.
func leftOut(name, value string) string {
	verb, rest, _ := strings.Cut(name, " ")
	switch verb {
	case "hook":
		hook, _, _ := strings.Cut(rest, "[")
		return "hook " + hook
	case "set-option":
		_, option, _ := strings.Cut(rest, " ")
		base, _, _ := strings.Cut(option, "[")
		// A global window-size manual crashes tmux 3.3a at the next new window.
		if slices.Contains(kept, base) || base == "window-size" && value == "manual" {
			return "option " + base
		}
		if strings.HasPrefix(base, "@muxlet-") {
			return "option " + base
		}
	}
	return ""
}

// setting is the command that sets a thing, or that takes it away. Values of options and the
// commands of keys are as tmux wrote them, quoted for its own parser.
func setting(name, value string, set bool) string {
	verb, rest, _ := strings.Cut(name, " ")
	switch verb {
	case "bind-key":
		table, key, _ := strings.Cut(rest, " ")
		if !set {
			return "unbind-key -q -T " + table + " " + key
		}
		flag, bound, _ := strings.Cut(value, " ")
		return strings.Join(strings.Fields("bind-key "+flag+" -T "+table+" "+key), " ") + " " + bound
	case "set-environment":
		if !set {
			return "set-environment -gu " + rest
		}
		return "set-environment -g " + rest + " " + quote(value)
	}
	flags, option, _ := strings.Cut(rest, " ")
	if !set {
		return "set-option -q " + flags + "u " + option
	}
	if value == "" {
		// Without a value a flag would be turned round.
		value = "''"
	}
	return "set-option -q " + flags + " " + option + " " + value
}

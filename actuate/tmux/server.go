// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package tmux

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"

	"github.com/muxlet/muxlet/actuate"
	"github.com/muxlet/muxlet/actuate/process"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec"
)

// startServer starts a tmux server with our configuration and makes it ours. A
// server that is there already is taken only when it is ours or when it is
// nobody's and empty. The server leaves our process group, session and
// terminal by itself, and finds no descriptor of ours.
func (t *Actuator) startServer(ctx context.Context) actuate.Outcome {
	if !safePattern.MatchString(t.Instance) || t.Instance == "" {
		return refused("The instance of this muxlet is not known; no tmux server was started.")
	}
	// tmux reports a missing file to nobody, and would end for lack of sessions.
	if _, err := os.Stat(t.Conf); err != nil {
		return failed(spec.ReasonTmuxServerFailed, fmt.Sprintf("The configuration of tmux could not be read (%v); restart muxlet to have it written again.", err))
	}
	if err := process.SealDescriptors(); err != nil {
		return failed(spec.ReasonTmuxServerFailed, fmt.Sprintf("The tmux server would inherit open files (%v); mount /proc and /dev.", err))
	}
	own := fmt.Sprintf("#{==:#{%s},%s}", observe.OptionServerInstance, t.Instance)
	free := fmt.Sprintf("#{&&:#{==:#{%s},},#{==:#{S:x},}}", observe.OptionServerInstance)
	ours := fmt.Sprintf("#{||:%s,%s}", own, free)
	r := t.Conn.Start(ctx, t.Conf, append([]string{"start-server", ";"}, branch("", ours, t.claim())...)...)
	o := outcome(r)
	switch {
	case o.Result == actuate.ResultRefused:
		return failed(spec.ReasonForeignServer, "The tmux server on the socket belongs to somebody else; stop it, or give muxlet another runtime directory.")
	case o.Result == actuate.ResultFailed && o.Reason != spec.ReasonTmuxNotFound:
		o.Reason = spec.ReasonTmuxServerFailed
	case o.Result == actuate.ResultDone:
		o.Message = t.makeRoom(ctx)
	}
	return o
}

// makeRoom lets the server that was just started have as many panes as the system
// allows. What goes wrong is only told: the server works, up to a lower number.
func (t *Actuator) makeRoom(ctx context.Context) (trouble string) {
	r := t.Conn.Run(ctx, nil, "display-message", "-p", "#{pid}")
	pid, err := strconv.Atoi(strings.TrimSpace(r.Stdout))
	if err == nil {
		err = process.RaiseOpenFiles(pid, isTmuxServer)
	}
	if err != nil {
		return fmt.Sprintf("The tmux server's limit of open files was not raised (%v).", err)
	}
	return ""
}

// claim makes the server ours, and lets it live without sessions and without
// people.
func (t *Actuator) claim() string {
	return sequence(t.claimed(), command("display-message", "-p", tokenDone))
}

func (t *Actuator) claimed() string {
	return sequence(
		command("set-option", "-s", "exit-empty", "off"),
		command("set-option", "-s", "exit-unattached", "off"),
		command("set-option", "-s", observe.OptionServerInstance, t.Instance),
	)
}

// configure gives our configuration to a server that is ours, or that was started by
// somebody else and is taken for ours. What it has to have comes first: a file may be
// damaged.
func (t *Actuator) configure(ctx context.Context, a actuate.Action) actuate.Outcome {
	guard, err := serverGuard(a.Server)
	if err != nil {
		return untouched(err)
	}
	if !safePattern.MatchString(t.Instance+a.Configuration) || t.Instance == "" {
		return refused("The instance of this muxlet is not known; the tmux server was not configured.")
	}
	claimed := a.Server.Instance != ""
	if claimed && a.Server.Instance != t.Instance {
		return refused("The tmux server belongs to another muxlet; it was left as it is.")
	}
	guard.require(observe.OptionServerInstance, a.Server.Instance)
	var sources []string
	for _, path := range []string{t.Undo, t.Conf, t.Include} {
		if path != "" {
			sources = append(sources, command("source-file", "-q", literalPath(path)))
		}
	}
	script := sequence(t.claimed(), sequence(sources...),
		command("set-option", "-s", observe.OptionConfiguration, a.Configuration), command("display-message", "-p", tokenDone))
	o := outcome(t.Conn.Run(ctx, nil, guard.line(script)...))
	if o.Result == actuate.ResultDone && !claimed {
		o.Message = t.makeRoom(ctx)
	}
	return o
}

// showWaiting tells the status line how many sessions wait. The options are of the server:
// each attached terminal is drawn anew, once.
func (t *Actuator) showWaiting(ctx context.Context, a actuate.Action) actuate.Outcome {
	guard, err := serverGuard(a.Server)
	if err != nil {
		return untouched(err)
	}
	if !safePattern.MatchString(a.Waiting.Longest) {
		return refused(fmt.Sprintf("%q is no name of a session.", a.Waiting.Longest))
	}
	guard.require(observe.OptionServerInstance, t.Instance)
	count := ""
	if a.Waiting.Count > 0 {
		count = number(a.Waiting.Count)
	}
	return outcome(t.Conn.Run(ctx, nil, guard.line(sequence(
		command("set-option", "-s", observe.OptionWaitingUntil, strconv.FormatInt(a.Waiting.Until, 10)),
		command("set-option", "-s", observe.OptionWaitingLongest, a.Waiting.Longest),
		command("set-option", "-s", observe.OptionWaiting, count),
		command("display-message", "-p", tokenDone),
	))...))
}

// keepServer claims a server anew that has been ours all the time, and that
// somebody has told to end, or to be somebody else's.
func (t *Actuator) keepServer(ctx context.Context, a actuate.Action) actuate.Outcome {
	guard, err := serverGuard(a.Server)
	if err != nil {
		return untouched(err)
	}
	if !safePattern.MatchString(t.Instance) || t.Instance == "" {
		return refused("The instance of this muxlet is not known; the tmux server was left as it is.")
	}
	return outcome(t.Conn.Run(ctx, nil, guard.line(t.claim())...))
}

// restoreSocket makes the tmux server create its socket again.
func restoreSocket(s observe.Server) actuate.Outcome { return signalServer(s, syscall.SIGUSR1) }

// reap makes the tmux server collect the ends of processes that it missed.
func reap(s observe.Server) actuate.Outcome { return signalServer(s, syscall.SIGCHLD) }

// signalServer reaches a server whose socket may be lost, and so cannot ask it
// who it is: the process itself is checked.
func signalServer(s observe.Server, sig syscall.Signal) actuate.Outcome {
	check := process.Itself(s.Process)
	if s.Process.Ticks == 0 {
		check = isTmuxServer
	}
	err := process.Signal(s.Process.PID, sig, check)
	switch {
	case err == nil:
		return actuate.Outcome{Result: actuate.ResultDone}
	case errors.Is(err, process.ErrGone):
		return refused("The tmux server has ended; it is looked at again.")
	}
	return failed(spec.ReasonTmuxFailed, fmt.Sprintf("The tmux server was not signalled (%v); it is tried again.", err))
}

// isTmuxServer checks the name that a tmux server gives itself. Both signals end
// a program that does not expect them.
func isTmuxServer(pid int) error {
	name, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/comm")
	if err != nil {
		return fmt.Errorf("identify the tmux server: %w", err)
	}
	if name = bytes.TrimSpace(name); string(name) != "tmux: server" {
		return fmt.Errorf("process %d is %q and not a tmux server: %w", pid, name, process.ErrGone)
	}
	return nil
}

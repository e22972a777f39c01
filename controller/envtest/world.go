// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package envtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/observe/process"
	"github.com/muxlet/muxlet/observe/tmux"
)

// Tmux runs a command on the private server as a person would, and returns what
// it printed.
func (e *Env) Tmux(args ...string) string {
	e.Helper()
	r := e.TryTmux(args...)
	if r.Err != nil || r.ExitCode != 0 {
		e.Fatalf("tmux %s: exit code %d, %v: %s", strings.Join(args, " "), r.ExitCode, r.Err, r.Stderr)
	}
	return strings.TrimSuffix(r.Stdout, "\n")
}

// TryTmux is Tmux for a command that may fail.
func (e *Env) TryTmux(args ...string) tmux.Result {
	conn := tmux.Conn{Socket: e.Socket(), Env: e.base(), Timeout: Patience}
	return conn.Run(context.Background(), nil, args...)
}

// Listing is what the private server shows; ok is false when it cannot be asked.
func (e *Env) Listing() (l observe.Listing, ok bool) {
	conn := tmux.Conn{Socket: e.Socket(), Env: e.base(), Timeout: Patience, TicksOf: ticksOf}
	answer := conn.List(context.Background(), time.Now)
	return answer.Listing, answer.Kind == observe.AnswerListed
}

// Server is the private tmux server; the test fails when it does not answer.
func (e *Env) Server() observe.Process {
	e.Helper()
	l, ok := e.Listing()
	if !ok {
		e.Fatal("the tmux server does not answer")
	}
	return l.Server.Process
}

// Panes are those whose label has the session's name; all panes for no name.
func (e *Env) Panes(session string) []observe.Pane {
	e.Helper()
	l, ok := e.Listing()
	if !ok {
		e.Fatal("the tmux server does not answer")
	}
	var out []observe.Pane
	for _, p := range l.Panes {
		if session == "" || p.Labels.Name == session {
			out = append(out, p)
		}
	}
	return out
}

// KillServer ends the tmux server as a crash does, and waits until it is gone.
func (e *Env) KillServer() {
	e.Helper()
	server := e.Server()
	e.Kill(server)
	e.WaitGone(server)
}

// Servers are the tmux servers on the socket's path, by the process table.
func (e *Env) Servers() []observe.Process {
	e.Helper()
	found, err := process.FindServers(e.Socket())
	if err != nil {
		e.Fatalf("find tmux servers: %v", err)
	}
	return found
}

// Process is the identity of the process that has a pid now.
func (e *Env) Process(pid int) observe.Process {
	e.Helper()
	p, state := process.Identify(pid)
	if state != observe.Running {
		e.Fatalf("process %d does not run", pid)
	}
	return p
}

// Signal sends a signal, such as SIGTERM, to a process by its identity. One that
// has ended is passed over.
func (e *Env) Signal(p observe.Process, name string) {
	e.Helper()
	if process.State(p) != observe.Running {
		return
	}
	if err := syscall.Kill(p.PID, unix.SignalNum(name)); err != nil && !errors.Is(err, syscall.ESRCH) {
		e.Fatalf("signal %s: %v", p, err)
	}
}

// WaitGone waits until the process has ended.
func (e *Env) WaitGone(p observe.Process) {
	e.Helper()
	e.Eventually(fmt.Sprintf("process %s ends", p), func() bool { return process.State(p) == observe.Gone })
}

// makeMeddler makes the program that is called instead of tmux.
func (e *Env) makeMeddler() {
	e.Helper()
	real, err := exec.LookPath("tmux")
	if err != nil {
		e.Fatalf("find tmux: %v", err)
	}
	script := fmt.Sprintf("#!/bin/sh\nreal=%s\nif [ -r %s ]; then . %s; fi\nexec \"$real\" \"$@\"\n", real, e.meddle(), e.meddle())
	e.conn.Command = filepath.Join(e.Dir, "tmux")
	if err := os.WriteFile(e.conn.Command, []byte(script), 0o700); err != nil {
		e.Fatalf("write meddler: %v", err)
	}
}

func (e *Env) meddle() string { return filepath.Join(e.Dir, "meddle.sh") }

// Meddle runs lines of shell before each call of tmux from now on. They find the
// words of the call in "$@" and the real tmux in $real, and may exit. Empty
// lines end that. The Env must have been Meddled with from its start.
func (e *Env) Meddle(lines string) {
	e.Helper()
	next := e.meddle() + ".new"
	err := os.WriteFile(next, []byte(lines), 0o600)
	if err == nil {
		err = os.Rename(next, e.meddle())
	}
	if err != nil {
		e.Fatalf("meddle: %v", err)
	}
}

// killAll ends every process of this world and names those that could not be
// ended.
func (e *Env) killAll() (left []string) {
	e.Helper()
	e.within(Patience, func() bool {
		left = nil
		for _, p := range e.processes() {
			if process.State(p) != observe.Running {
				continue
			}
			left = append(left, p.String())
			_ = syscall.Kill(p.PID, syscall.SIGCONT)
			_ = syscall.Kill(p.PID, syscall.SIGKILL)
		}
		return len(left) == 0
	})
	return left
}

// processes are those that name this world's directory in their command line or
// environment, and those that wrote into its journal.
func (e *Env) processes() []observe.Process {
	e.Helper()
	var out []observe.Process
	for _, entry := range e.Journal() {
		out = append(out, entry.Process)
	}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return out
	}
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		for _, file := range []string{"cmdline", "environ"} {
			content, err := os.ReadFile(filepath.Join("/proc", entry.Name(), file))
			if err == nil && bytes.Contains(content, []byte(e.Dir+"/")) {
				p, _ := process.Identify(pid)
				out = append(out, p)
				break
			}
		}
	}
	return out
}

// StartServer starts a tmux server on the socket as a person might, with the
// product's own configuration, and runs a command on it.
func (e *Env) StartServer(args ...string) {
	e.Helper()
	conn := tmux.Conn{Socket: e.Socket(), Env: e.base(), Timeout: Patience}
	r := conn.Start(context.Background(), e.conf(), args...)
	if r.Err != nil || r.ExitCode != 0 {
		e.Fatalf("start tmux server: exit code %d, %v: %s", r.ExitCode, r.Err, r.Stderr)
	}
}

// DropState deletes the state directory. No controller may run.
func (e *Env) DropState() {
	e.Helper()
	if e.running != nil {
		e.Fatal("a controller runs")
	}
	if err := os.RemoveAll(e.State); err != nil {
		e.Fatalf("delete state: %v", err)
	}
}

// CopyState copies the state directory to another place, or back with the two
// exchanged; what was there is replaced.
func (e *Env) CopyState(from, to string) {
	e.Helper()
	if err := os.RemoveAll(to); err != nil {
		e.Fatalf("delete state: %v", err)
	}
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		e.Fatalf("copy state: %v", err)
	}
}

// Marked are the processes of the whole machine that prove by their mark to be clients
// of this world's instance.
func (e *Env) Marked() []observe.MarkedProcess {
	e.Helper()
	instance := ""
	e.Eventually("the controller knows its instance", func() bool {
		instance = e.Controller().Status().Instance
		return instance != ""
	})
	found, err := process.Table{}.Scan(instance)
	if err != nil {
		e.Fatalf("search the process table: %v", err)
	}
	return found
}

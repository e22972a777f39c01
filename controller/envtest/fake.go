// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package envtest

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/muxlet/muxlet/observe"
)

// Script is what a fake client does. The zero value runs until it is ended. The
// fields are in the order in which they are carried out.
type Script struct {
	// Ignore are signals that it ignores, such as SIGHUP.
	Ignore []string `json:",omitempty"`
	// Forks are children that it starts; they ignore SIGHUP and run for ever.
	Forks []Fork `json:",omitempty"`
	// Closes makes it close what it inherited: the lease is dropped by that.
	Closes bool `json:",omitempty"`
	// Rename is the name that it gives itself in the process table and in its
	// command line.
	Rename string `json:",omitempty"`
	// Forgets makes it overwrite its environment, and with it the mark.
	Forgets bool `json:",omitempty"`
	// Prints is what it writes to its terminal.
	Prints string `json:",omitempty"`
	// Composes gives it an input line: it takes down each prompt that it is given. Class is
	// the class of its hooks; empty for none. The argument behind the script is its
	// conversation.
	Composes bool   `json:",omitempty"`
	Class    string `json:",omitempty"`
	// Ends makes it end by itself after Lives: by Signal if that is given, else
	// with status Exit.
	Ends   bool          `json:",omitempty"`
	Lives  time.Duration `json:",omitempty"`
	Exit   int           `json:",omitempty"`
	Signal string        `json:",omitempty"`
}

// Fork is a way in which a fake client starts a child.
type Fork string

// The ways to start a child.
const (
	// ForkPlain leaves it in the client's process group.
	ForkPlain Fork = "Plain"
	// ForkGroup gives it a process group of its own.
	ForkGroup Fork = "Group"
	// ForkSession gives it a session of its own, without a terminal.
	ForkSession Fork = "Session"
)

// Command is the argv of a fake client.
func (e *Env) Command(s Script) []string {
	e.Helper()
	script, err := json.Marshal(s)
	if err != nil {
		e.Fatalf("encode script: %v", err)
	}
	return []string{e.self, roleClient, e.Dir, string(script)}
}

// clientMain is the fake client: DIR SCRIPT [more arguments, which it only
// writes down].
func clientMain(args []string) int {
	var s Script
	if len(args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: fake-client DIR SCRIPT")
		return 2
	}
	if err := json.Unmarshal([]byte(args[1]), &s); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	if err := s.play(args[0], args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 3
	}
	if err := self(eventEnd).write(args[0]); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	if s.Signal != "" {
		_ = syscall.Kill(os.Getpid(), unix.SignalNum(s.Signal))
		waitForEver()
	}
	return s.Exit
}

// play carries the script out up to its end.
func (s Script) play(dir string, args []string) error {
	// It is up only once nothing can kill it any more that it ignores.
	for _, name := range s.Ignore {
		signal.Ignore(unix.SignalNum(name))
	}
	if err := self(eventStart).write(dir); err != nil {
		return err
	}
	for _, fork := range s.Forks {
		if err := startChild(dir, fork); err != nil {
			return err
		}
	}
	if s.Closes {
		closeInherited()
	}
	if s.Rename != "" {
		if err := rename(s.Rename); err != nil {
			return err
		}
	}
	if s.Forgets {
		if err := overwrite(environmentBounds, "x"); err != nil {
			return err
		}
	}
	if s.Prints != "" {
		_, _ = os.Stdout.WriteString(s.Prints + "\n")
	}
	if s.Composes {
		return s.compose(dir, args)
	}
	if !s.Ends {
		waitForEver()
	}
	<-time.After(s.Lives)
	return nil
}

// twinMain becomes a fake client that its mark proves to be one of a session,
// although nobody has started it: DIR SESSION MARK, where the mark lacks the
// process.
func twinMain(args []string) int {
	mark, err := observe.ParseMark(args[2] + "/1/1")
	if err == nil {
		mark.Process, err = identity()
	}
	if err == nil {
		env := append(os.Environ(), observe.EnvSession+"="+args[1], observe.EnvClient+"="+mark.String())
		err = syscall.Exec("/proc/self/exe", []string{os.Args[0], roleClient, args[0], "{}"}, env)
	}
	fmt.Fprintln(os.Stderr, err)
	return 3
}

// Twin starts a second client of a running session, in a tmux session of the
// person's, and returns what it wrote about itself.
func (e *Env) Twin(session string) Entry {
	e.Helper()
	pane := e.Panes(session)[0]
	attempt := "00000000-0000-0000-0000-000000000000"
	mark := strings.Join([]string{pane.Labels.Instance, pane.Labels.UID, fmt.Sprint(pane.Labels.Incarnation), attempt}, "/")
	e.Tmux("new-session", "-d", "-s", "twin", "--", e.self, roleTwin, e.Dir, session, mark)
	var twin Entry
	e.Eventually("the twin runs", func() bool {
		for _, start := range e.Clients(session) {
			if start.Attempt == attempt {
				twin = start
			}
		}
		return twin.Attempt == attempt
	})
	return twin
}

// waitForEver waits in a way that the runtime does not take for a deadlock.
func waitForEver() {
	for range time.Tick(time.Hour) {
	}
}

// self is what this process knows of itself.
func self(event string) Entry {
	e := Entry{Event: event, Session: os.Getenv(observe.EnvSession)}
	if event != eventStart {
		return e
	}
	if mark, err := observe.ParseMark(os.Getenv(observe.EnvClient)); err == nil {
		e.Attempt, e.Incarnation = mark.Attempt, mark.Incarnation
	}
	e.Argv = os.Args
	for _, pair := range os.Environ() {
		name, _, _ := strings.Cut(pair, "=")
		e.Env = append(e.Env, name)
	}
	e.Dir, _ = os.Getwd()
	return e
}

func startChild(dir string, how Fork) error {
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find oneself: %w", err)
	}
	cmd := exec.Command(program, roleChild, dir)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	switch how {
	case ForkPlain:
	case ForkGroup:
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	case ForkSession:
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		cmd.Stdin, cmd.Stdout, cmd.Stderr = nil, nil, nil
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start child: %w", err)
	}
	go func() { _ = cmd.Wait() }()
	return nil
}

// childMain is a child of a fake client: it runs until it is ended by a signal
// of its own.
func childMain(args []string) int {
	signal.Ignore(syscall.SIGHUP)
	if err := self(eventChild).write(args[0]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 3
	}
	waitForEver()
	return 0
}

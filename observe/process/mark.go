// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/muxlet/muxlet/observe"
)

// ErrNoMark says that the environment of a process was read and makes it no client
// of muxlet.
var ErrNoMark = errors.New("no client mark of its own")

// MarkOf returns the mark of a process that its own pid and start ticks confirm.
// ErrNoMark: it has none, or one that it inherited from a client. Any other error:
// its environment could not be read, which is no evidence either way. A process
// can overwrite its environment: a mark proves a client, its absence proves
// nothing.
func MarkOf(pid int) (observe.MarkedProcess, error) {
	e, err := lookUp(pid)
	if err != nil {
		return observe.MarkedProcess{}, err
	}
	return markOf(e)
}

// Scan returns the marked processes of our own uid that run. An empty instance
// stands for any. A process that shows no environment, as it does while it executes
// a program, is looked at again at the end; those whose environment could not be read are left out. The error says
// that the process table itself could not be read.
func Scan(instance string) ([]observe.MarkedProcess, error) { return ScanOf(os.Geteuid(), instance) }

// ScanOf finds those of another uid, as root can.
func ScanOf(uid int, instance string) ([]observe.MarkedProcess, error) {
	own, err := readOf(uid)
	if err != nil {
		return nil, fmt.Errorf("scanning for clients: %w", err)
	}
	var found []observe.MarkedProcess
	for pass := 0; pass < 2; pass++ {
		var bare []entry
		for _, e := range own {
			m, err := markOf(e)
			if errors.Is(err, errNoEnvironment) {
				bare = append(bare, e)
			}
			if err == nil && (instance == "" || m.Instance == instance) {
				found = append(found, m)
			}
		}
		own = bare
	}
	return found, nil
}

func markOf(e entry) (observe.MarkedProcess, error) {
	if e.ended {
		return observe.MarkedProcess{}, ErrNoMark
	}
	environment, err := environmentOf(e.pid)
	if err != nil {
		return observe.MarkedProcess{}, fmt.Errorf("reading the environment of process %d: %w", e.pid, err)
	}
	text, _ := variable(environment, observe.EnvClient)
	mark, err := observe.ParseMark(text)
	if err != nil || mark.Process != e.identity() {
		return observe.MarkedProcess{}, ErrNoMark
	}
	session, _ := variable(environment, observe.EnvSession)
	tmux, _ := variable(environment, "TMUX")
	return observe.MarkedProcess{Mark: mark, Session: session, Parent: e.parent, Socket: socketOf(tmux)}, nil
}

// Variable returns what the environment of a process had of the name when it began to
// run its program. ok is false when it had none, or when that could not be read.
func Variable(p observe.Process, name string) (value string, ok bool) {
	e, err := lookUp(p.PID)
	if err != nil || e.ended || e.identity() != p {
		return "", false
	}
	environment, err := environmentOf(p.PID)
	if err != nil {
		return "", false
	}
	return variable(environment, name)
}

// Environment returns the NAME=value strings that p had when it began to run its
// program. An error says that they could not be read, or that p was not itself before
// and after they were.
func Environment(p observe.Process) ([]string, error) {
	if err := stillItself(p); err != nil {
		return nil, err
	}
	environment, err := environmentOf(p.PID)
	if err != nil {
		return nil, fmt.Errorf("reading the environment of process %s: %w", p, err)
	}
	list := make([]string, len(environment))
	for i, v := range environment {
		list[i] = string(v)
	}
	return list, stillItself(p)
}

func stillItself(p observe.Process) error {
	e, err := lookUp(p.PID)
	if err == nil && (e.ended || e.identity() != p) {
		err = errors.New("it has ended")
	}
	if err != nil {
		return fmt.Errorf("reading the environment of process %s: %w", p, err)
	}
	return nil
}

// socketOf takes the socket's path from the variable TMUX, which tmux makes of
// the path, the server's pid and the session's number.
func socketOf(tmux string) string {
	for range 2 {
		i := strings.LastIndexByte(tmux, ',')
		if i < 0 {
			return ""
		}
		tmux = tmux[:i]
	}
	return tmux
}

// variable returns the last value of name: what a program that sets it twice
// meant.
func variable(environment [][]byte, name string) (string, bool) {
	value, found := "", false
	for _, v := range environment {
		if after, ok := bytes.CutPrefix(v, []byte(name+"=")); ok {
			value, found = string(after), true
		}
	}
	return value, found
}

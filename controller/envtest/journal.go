// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package envtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/observe/process"
)

// The events that launchers, fake clients and their children write down.
const (
	eventLaunch = "launch"
	eventParked = "parked"
	eventPassed = "passed"
	eventStart  = "start"
	eventEnd    = "end"
	eventChild  = "child"
)

// Entry is one line of what launchers and clients wrote about themselves.
type Entry struct {
	Event string
	// Session is the name, Attempt and Incarnation are those of the client's mark
	// or of the launcher's arguments.
	Session     string
	Attempt     string `json:",omitempty"`
	Incarnation int64  `json:",omitempty"`
	Stage       Stage  `json:",omitempty"`
	Process     observe.Process
	// Argv, Env (names only) and Dir of a client.
	Argv []string `json:",omitempty"`
	Env  []string `json:",omitempty"`
	Dir  string   `json:",omitempty"`
	At   time.Time
}

// Runs says whether the process that wrote the entry still runs.
func (e Entry) Runs() bool { return process.State(e.Process) == observe.Running }

func journalPath(dir string) string { return filepath.Join(dir, "journal") }

// write appends the entry, completed by who writes it and when. One write(2) at
// the end of a file is not torn by others.
func (e Entry) write(dir string) error {
	var err error
	if e.Process, err = identity(); err != nil {
		return err
	}
	e.At = time.Now()
	line, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("encode journal entry: %w", err)
	}
	f, err := os.OpenFile(journalPath(dir), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("open journal: %w", err)
	}
	defer f.Close()
	if _, err := f.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("write journal: %w", err)
	}
	return nil
}

// identity is that of the process itself.
func identity() (observe.Process, error) {
	ticks, err := process.Ticks(os.Getpid())
	if err != nil {
		return observe.Process{}, fmt.Errorf("identify oneself: %w", err)
	}
	return observe.Process{PID: os.Getpid(), Ticks: ticks}, nil
}

// Journal is everything that launchers and clients wrote down, in order.
func (e *Env) Journal() []Entry {
	e.Helper()
	data, err := os.ReadFile(journalPath(e.Dir))
	if err != nil {
		return nil
	}
	var out []Entry
	for line := range bytes.Lines(data) {
		var entry Entry
		if err := json.Unmarshal(line, &entry); err != nil {
			e.Errorf("the journal has a line that does not parse: %v: %s", err, line)
			continue
		}
		out = append(out, entry)
	}
	return out
}

func (e *Env) entries(event, session string) []Entry {
	e.Helper()
	return slices.DeleteFunc(e.Journal(), func(entry Entry) bool {
		return entry.Event != event || (session != "" && entry.Session != session)
	})
}

// Starts are all clients of a session that were ever executed, by their own
// account, in order.
func (e *Env) Starts(session string) []Entry {
	e.Helper()
	return e.entries(eventStart, session)
}

// Launches are all launchers of a session that were ever executed.
func (e *Env) Launches(session string) []Entry {
	e.Helper()
	return e.entries(eventLaunch, session)
}

// Children are the processes that clients of a session forked.
func (e *Env) Children(session string) []Entry {
	e.Helper()
	return e.entries(eventChild, session)
}

// Clients are the clients of a session that run now.
func (e *Env) Clients(session string) []Entry {
	e.Helper()
	return slices.DeleteFunc(e.Starts(session), func(entry Entry) bool { return !entry.Runs() })
}

// Client is the one client of a session that runs now. It is waited for; the test
// fails when there is more than one.
func (e *Env) Client(session string) Entry {
	e.Helper()
	var clients []Entry
	e.Eventually("a client of session "+session+" runs", func() bool {
		clients = e.Clients(session)
		return len(clients) > 0
	})
	if len(clients) != 1 {
		e.Fatalf("session %s has %d live clients instead of one: %s", session, len(clients), pids(clients))
	}
	return clients[0]
}

// NoClient fails the test when a client of the session runs.
func (e *Env) NoClient(session string) {
	e.Helper()
	if clients := e.Clients(session); len(clients) > 0 {
		e.Fatalf("session %s has live clients: %s", session, pids(clients))
	}
}

func pids(entries []Entry) string {
	words := make([]string, len(entries))
	for i, entry := range entries {
		words[i] = entry.Process.String()
	}
	return strings.Join(words, ", ")
}

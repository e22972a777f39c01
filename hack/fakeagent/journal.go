// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// entry is one line of the journal.
type entry struct {
	At time.Time `json:"at"`
	// Agent is claude, codex or gem; Event start, prompt, answer, keys or end.
	Agent string `json:"agent"`
	Event string `json:"event"`
	Pid   int    `json:"pid"`
	// Session and Mark are MUXLET_SESSION and MUXLET_CLIENT.
	Session string `json:"session,omitempty"`
	Mark    string `json:"mark,omitempty"`
	// Argv without the program, Directory, Size of the terminal, as columns x rows, and
	// the Environment, each of a start.
	Argv        []string          `json:"argv,omitempty"`
	Directory   string            `json:"directory,omitempty"`
	Size        string            `json:"size,omitempty"`
	Environment map[string]string `json:"environment,omitempty"`
	// Conversation at that time.
	Conversation string `json:"conversation,omitempty"`
	// Text of a prompt, an answer or typed keys; how a client ended.
	Text string `json:"text,omitempty"`
}

// journal is shared by all clients of one installation.
type journal struct {
	path, agent string
}

func newJournal(root, agent string) journal {
	return journal{path: filepath.Join(root, "journal.jsonl"), agent: agent}
}

// write adds a line in one call, so that lines of several clients do not mix.
func (j journal) write(e entry) {
	e.At, e.Agent, e.Pid = time.Now(), j.agent, os.Getpid()
	e.Session, e.Mark = os.Getenv("MUXLET_SESSION"), os.Getenv("MUXLET_CLIENT")
	data, err := json.Marshal(e)
	if err != nil {
		return
	}
	file, err := os.OpenFile(j.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return
	}
	defer func() { _ = file.Close() }()
	_, _ = file.Write(append(data, '\n'))
	if e.Event == "prompt" {
		_ = file.Sync()
	}
}

// receipt writes down a prompt, byte by byte, and has it on disk before it is answered:
// it is the witness of its delivery.
func (j journal) receipt(prompt string) { j.write(entry{Event: "prompt", Text: prompt}) }

// start writes down what the client was started with. The values are those of a
// test's world: the real ones are never run by this.
func (j journal) start(args []string, conversation string) {
	directory, _ := os.Getwd()
	environment := map[string]string{}
	for _, v := range os.Environ() {
		name, value, _ := strings.Cut(v, "=")
		environment[name] = value
	}
	columns, rows := terminalSize()
	j.write(entry{
		Event: "start", Argv: args, Directory: directory, Environment: environment,
		Size: fmt.Sprintf("%dx%d", columns, rows), Conversation: conversation,
	})
}

// startTicks is when this process was started, as field 22 of /proc/PID/stat has it;
// empty where there is none.
func startTicks() string {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(os.Getpid()) + "/stat")
	if err != nil {
		return ""
	}
	_, rest, _ := strings.Cut(string(data), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 20 {
		return ""
	}
	return fields[19]
}

// take removes a flag without a value from the arguments.
func take(args []string, name string) (rest []string, found bool) {
	i := slices.Index(args, name)
	if i < 0 {
		return args, false
	}
	return slices.Delete(slices.Clone(args), i, i+1), true
}

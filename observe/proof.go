// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"path"
	"slices"
	"strings"
)

// Proves says whether a report comes from the given client, which the attempt has
// started. See Doubt.
func Proves(r Report, client Process, attempt string) bool {
	return Doubt(r, client, attempt) == ""
}

// Doubt says why a report does not prove that it comes from the given client, in
// words for the log; it is empty when it does.
//
// Whatever runs below a client inherits its variables: a second agent that somebody
// starts by hand in it, or that a tool of it starts, sends the same mark and the
// same class. What tells them apart is the line of processes from the client down
// to the hook:
//
//	client                     sh → hook      Claude Code
//	client (node) → codex    → sh → hook      a wrapper and its program
//	client (bash) → claude   → sh → hook      a person's script around it
//	client → zsh → claude    → sh → hook      a second agent in a tool's shell: no
//	client → claude          → sh → hook      the client's own program again: no
//
// So the agent is reached through shells and then programs, each another one, and
// from the agent to the hook there are only shells. A program whose path could not
// be read (one that makes itself unreadable, as a hardened agent does) may be one
// of those programs, and with two such ones they could be the same. A report that
// is refused in error costs little, since the client's own files tell the same; one
// that is taken in error puts a conversation into the wrong session.
func Doubt(r Report, client Process, attempt string) string {
	if client.PID < 1 || client.Ticks == 0 {
		return "the session has no client that is known by its start"
	}
	if attempt == "" || r.Mark.Attempt != attempt {
		return "it carries the mark of another attempt"
	}
	at := slices.IndexFunc(r.Chain, func(a Ancestor) bool { return a.Process == client })
	switch {
	case at < 0:
		return "its sender does not descend from the client"
	case at == 0:
		return ""
	}
	// The hook itself comes first; what is told apart is between the client and it.
	return doubtLine(r.Chain[1 : at+1])
}

// doubtLine judges the processes from the hook's parent up to the client.
func doubtLine(line []Ancestor) string {
	var programs []string
	left := false // the shells below the agent have begun
	for _, a := range slices.Backward(line) {
		program := strings.TrimSuffix(a.Executable, " (deleted)")
		switch {
		case IsShell(program):
			left = len(programs) > 0
		case left:
			return "another program runs between the client's and its sender"
		case slices.Contains(programs, program):
			return "the client's program runs a second time between it and its sender"
		default:
			programs = append(programs, program)
		}
	}
	return ""
}

// shells are the programs that only pass on what they are told to run.
var shells = []string{"sh", "dash", "bash", "zsh", "fish", "ksh", "ksh93", "mksh", "busybox"}

// IsShell says whether the program of that path is a shell.
func IsShell(program string) bool { return slices.Contains(shells, path.Base(program)) }

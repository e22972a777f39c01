// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

const theAttempt = "5f0c8a36-0d7e-4a53-9a3e-2f6f3ad0a6ee"

// reportFrom has the line of processes as a person writes it, from the outermost
// down; the one in brackets is the client, pid 100 and start 1000. A ? is a program
// whose path could not be read.
func reportFrom(line string) Report {
	r := Report{Mark: Mark{Attempt: theAttempt}}
	programs := strings.Fields(line)
	at := 0
	for i, p := range programs {
		if strings.HasPrefix(p, "[") {
			at = i
		}
	}
	for i, p := range programs {
		a := Ancestor{
			Process:    Process{PID: 100 + i - at, Ticks: uint64(1000 + i - at)},
			Executable: "/usr/bin/" + strings.Trim(p, "[]"),
		}
		if strings.Trim(p, "[]") == "?" {
			a.Executable = ""
		}
		r.Chain = append([]Ancestor{a}, r.Chain...)
	}
	return r
}

var theClient = Process{PID: 100, Ticks: 1000}

const (
	elsewhere  = "its sender does not descend from the client"
	interposed = "another program runs between the client's and its sender"
	twice      = "the client's program runs a second time between it and its sender"
)

func TestAReportCountsOnlyWhenTheSessionsOwnAgentHasSentIt(t *testing.T) {
	for name, c := range map[string]struct{ line, doubt string }{
		"claude, its hook by a shell":              {"tmux [claude] sh muxlet", ""},
		"claude, without a shell":                  {"tmux [claude] muxlet", ""},
		"a hook that is a script":                  {"tmux [claude] sh bash muxlet", ""},
		"codex, a wrapper and its program":         {"tmux [node] codex sh muxlet", ""},
		"codex without its wrapper":                {"tmux [codex] bash muxlet", ""},
		"a manager of versions around codex":       {"tmux [volta-shim] node codex sh muxlet", ""},
		"a person's script around claude":          {"tmux [bash] claude sh muxlet", ""},
		"a script around it in the hook's shell":   {"tmux [bash] claude bash muxlet", ""},
		"a script that calls a script":             {"tmux [bash] sh claude dash muxlet", ""},
		"a script around codex":                    {"tmux [zsh] node codex zsh muxlet", ""},
		"a client that is a script itself":         {"tmux [bash] muxlet", ""},
		"the client itself":                        {"tmux [muxlet]", ""},
		"busybox for a shell":                      {"tmux [claude] busybox muxlet", ""},
		"below a person's shell in the pane":       {"tmux bash [claude] sh muxlet", ""},
		"claude in claude's tool":                  {"tmux [claude] zsh claude sh muxlet", interposed},
		"another version of it there":              {"tmux [claude-1] zsh claude-2 sh muxlet", interposed},
		"claude started by claude":                 {"tmux [claude] claude sh muxlet", twice},
		"codex in claude's tool":                   {"tmux [claude] zsh node codex sh muxlet", interposed},
		"claude in codex's tool":                   {"tmux [node] codex bash claude sh muxlet", interposed},
		"codex in codex's tool":                    {"tmux [node] codex bash node codex sh muxlet", interposed},
		"codex started by codex":                   {"tmux [node] codex node codex sh muxlet", twice},
		"claude in the tool of a script's claude":  {"tmux [bash] claude bash claude sh muxlet", interposed},
		"claude in the tool of scripts' claude":    {"tmux [bash] bash claude sh claude sh muxlet", interposed},
		"claude in a tmux of its own below claude": {"tmux [claude] sh tmux sh claude sh muxlet", interposed},
		"an agent behind a tool's program":         {"tmux [claude] zsh make sh claude sh muxlet", interposed},
		"a hook run by hand in a tool's shell":     {"tmux [claude] zsh make muxlet", interposed},
		"the client's path cannot be read":         {"tmux [?] sh muxlet", ""},
		"codex below its wrapper cannot be read":   {"tmux [node] ? sh muxlet", ""},
		"two that cannot be read":                  {"tmux [?] ? sh muxlet", twice},
		"one that cannot be read, below a shell":   {"tmux [claude] sh ? muxlet", interposed},
		"a person's pane beside the client":        {"tmux zsh claude sh muxlet", elsewhere},
	} {
		t.Run(name, func(t *testing.T) {
			r := reportFrom(c.line)
			if c.doubt == elsewhere {
				for i := range r.Chain {
					r.Chain[i].PID += 50
				}
			}
			assert.Equal(t, c.doubt, Doubt(r, theClient, theAttempt))
			assert.Equal(t, c.doubt == "", Proves(r, theClient, theAttempt))
		})
	}
}

func TestAProgramThatWasReplacedIsStillTheSame(t *testing.T) {
	r := reportFrom("tmux [claude] claude sh muxlet")
	r.Chain[2].Executable += " (deleted)"
	assert.Equal(t, twice, Doubt(r, theClient, theAttempt))
	shell := reportFrom("tmux [claude] sh muxlet")
	shell.Chain[1].Executable += " (deleted)"
	assert.Empty(t, Doubt(shell, theClient, theAttempt))
}

func TestAReportOfAnotherRunDoesNotCount(t *testing.T) {
	r := reportFrom("tmux [claude] sh muxlet")
	const otherAttempt = "it carries the mark of another attempt"
	assert.Equal(t, elsewhere, Doubt(r, Process{PID: 100, Ticks: 1001}, theAttempt), "its pid was used again")
	assert.Equal(t, elsewhere, Doubt(r, Process{PID: 900, Ticks: 9000}, theAttempt), "the client is another one now")
	assert.Equal(t, otherAttempt, Doubt(r, theClient, "another"))
	assert.Equal(t, otherAttempt, Doubt(r, theClient, ""), "no attempt is none")
	r.Mark.Attempt = ""
	assert.Equal(t, otherAttempt, Doubt(r, theClient, ""))
}

func TestNothingIsProvenWithoutTheClientsStartOrAChain(t *testing.T) {
	r := reportFrom("tmux [claude] sh muxlet")
	for _, client := range []Process{{}, {PID: 100}, {Ticks: 1000}} {
		assert.False(t, Proves(r, client, theAttempt), client.String())
	}
	r.Chain = nil
	assert.Equal(t, elsewhere, Doubt(r, theClient, theAttempt))
	r.Chain = []Ancestor{{}}
	assert.Equal(t, elsewhere, Doubt(r, theClient, theAttempt))
}

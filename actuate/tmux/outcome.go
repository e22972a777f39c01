// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package tmux

import (
	"fmt"
	"strings"

	"github.com/muxlet/muxlet/actuate"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/observe/tmux"
	"github.com/muxlet/muxlet/spec"
)

// The tokens that a command line prints. tmux's exit code says nothing about
// which branch was taken, nor how far it went.
const (
	// tokenRan, with the pane's id and pid: a launcher was started.
	tokenRan = "muxlet-ran"
	// tokenDone: everything was done.
	tokenDone = "muxlet-done"
	// tokenRefused: a precondition did not hold.
	tokenRefused = "muxlet-refused"
	// tokenMoved: every precondition held but that of the cursor.
	tokenMoved = "muxlet-moved"
	// tokenTaken: what is typed would not reach the program, or not it alone.
	tokenTaken = "muxlet-taken"
	// tokenPasting: a paste is the next command.
	tokenPasting = "muxlet-pasting"
)

// find returns the words behind a token: nil when it was not printed.
func find(stdout, token string) []string {
	for line := range strings.Lines(stdout) {
		if fields := strings.Fields(line); len(fields) > 0 && fields[0] == token {
			return fields[1:]
		}
	}
	return nil
}

// outcome reads an answer by its tokens; without one, by what proves that
// nothing was carried out. Whatever remains is unclear.
func outcome(r tmux.Result) actuate.Outcome {
	switch {
	case find(r.Stdout, tokenDone) != nil:
		return actuate.Outcome{Result: actuate.ResultDone}
	case find(r.Stdout, tokenRefused) != nil:
		return refused("The tmux server or the pane is not what it was when this was decided; it is looked at again.")
	case find(r.Stdout, tokenMoved) != nil:
		return actuate.Outcome{
			Result: actuate.ResultRefused, Reason: spec.ReasonCursorMoved,
			Message: "The cursor of the client is not where it was seen, so what it shows has changed; it is looked at again.",
		}
	case find(r.Stdout, tokenTaken) != nil:
		return actuate.Outcome{
			Result: actuate.ResultRefused, Reason: spec.ReasonPaneInputTaken,
			Message: "A person has switched the pane's input off, or has it copied to other panes, so nothing is typed; undo that with select-pane -e, or synchronize-panes off.",
		}
	case find(r.Stdout, tokenRan) != nil:
		return unclear(r)
	}
	switch tmux.Classify(r.Stdout, r.Stderr, r.ExitCode, r.Err) {
	case observe.AnswerNoBinary:
		return failed(spec.ReasonTmuxNotFound, fmt.Sprintf("The tmux program could not be executed (%v); install tmux, or set tmux.command.", r.Err))
	case observe.AnswerNoSocket, observe.AnswerRefused:
		return failed(spec.ReasonTmuxUnreachable, fmt.Sprintf("tmux could not be reached (%s); it is looked at again.", words(r.Stderr)))
	case observe.AnswerDenied:
		return failed(spec.ReasonTmuxDenied, fmt.Sprintf("tmux refused access (%s); look at the owner of its socket.", words(r.Stderr)))
	case observe.AnswerMismatch:
		return failed(spec.ReasonTmuxMismatch, fmt.Sprintf("The tmux program and the running tmux server do not understand each other (%s); set tmux.command to the server's own version.", words(r.Stderr)))
	case observe.AnswerTimeout, observe.AnswerIncomplete, observe.AnswerFailed, observe.AnswerListed:
	}
	return refusedCommand(r)
}

// refusedCommand recognises that tmux itself refused the command which would
// have had the effect.
func refusedCommand(r tmux.Result) actuate.Outcome {
	text := words(r.Stderr)
	switch {
	case r.Err == nil && strings.HasPrefix(text, "error creating "):
		// tmux answers 0 when a new server could not make its socket.
		return failed(spec.ReasonTmuxFailed, fmt.Sprintf("tmux could not make its socket: %s.", text))
	case r.Err != nil || r.ExitCode != 1:
	case strings.HasPrefix(text, "duplicate session: "):
		return failed(spec.ReasonNameConflict, fmt.Sprintf(
			"There is a tmux session %q already that is not muxlet's; rename or close it.", strings.TrimPrefix(text, "duplicate session: ")))
	case text != "" && !lost(text):
		return failed(spec.ReasonTmuxFailed, fmt.Sprintf("tmux did not carry it out: %s.", text))
	}
	return unclear(r)
}

// lost says whether the connection broke off after the command was sent. tmux
// before 3.6 says the same of a newer server that lives.
func lost(text string) bool {
	return strings.Contains(text, "server exited") || strings.Contains(text, "lost server")
}

func unclear(r tmux.Result) actuate.Outcome {
	message := "tmux did not say whether it was carried out"
	if r.Err != nil {
		message += fmt.Sprintf(" (%v)", r.Err)
	} else if text := words(r.Stderr); text != "" {
		message += fmt.Sprintf(" (%s)", text)
	}
	reason := spec.ReasonTmuxFailed
	if r.TimedOut {
		reason = spec.ReasonTmuxTimeout
	}
	return actuate.Outcome{Result: actuate.ResultUnclear, Reason: reason, Message: message + "; it is looked at again."}
}

func refused(message string) actuate.Outcome {
	return actuate.Outcome{Result: actuate.ResultRefused, Reason: spec.ReasonUnknown, Message: message}
}

// untouched is the outcome of an action that was not even asked for.
func untouched(err error) actuate.Outcome {
	return refused(fmt.Sprintf("Nothing was done: %v.", err))
}

func failed(reason, message string) actuate.Outcome {
	return actuate.Outcome{Result: actuate.ResultFailed, Reason: reason, Message: message}
}

// words is tmux's own text as one line.
func words(text string) string { return strings.Join(strings.Fields(text), " ") }

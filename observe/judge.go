// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"fmt"
	"strings"

	"github.com/muxlet/muxlet/spec"
)

// ServerState is the judgement of our tmux server.
type ServerState int

// The judgements of our tmux server.
const (
	// ServerUnknown: nothing is proven; nothing may be started or stopped.
	ServerUnknown ServerState = iota
	// ServerNone: it is proven that no server of ours exists.
	ServerNone
	// ServerRunning: the server gave a listing that counts.
	ServerRunning
)

// String is the word shown to people.
func (s ServerState) String() string {
	switch s {
	case ServerNone:
		return "None"
	case ServerRunning:
		return "Running"
	case ServerUnknown:
		return "Unknown"
	}
	return fmt.Sprintf("ServerState(%d)", int(s))
}

// Repair is what may be done about a server that cannot be asked.
type Repair int

// The repairs of a server.
const (
	// RepairNone: waiting is all that helps.
	RepairNone Repair = iota
	// RepairSocket: SIGUSR1 to the recorded server makes its socket anew.
	RepairSocket
)

// String is the word shown to people.
func (r Repair) String() string {
	switch r {
	case RepairNone:
		return "None"
	case RepairSocket:
		return "Socket"
	}
	return fmt.Sprintf("Repair(%d)", int(r))
}

// ServerView is what an answer and the recorded server prove together.
type ServerView struct {
	// State of our server.
	State ServerState
	// Listing that counts, when State is ServerRunning.
	Listing Listing
	// New says that the server that answered is another run than the recorded
	// one, or that none was recorded; only with ServerRunning.
	New bool
	// Reason (one of spec's) and Message (one sentence), when State is
	// ServerUnknown.
	Reason, Message string
	// Repair that fits, when State is ServerUnknown.
	Repair Repair
}

// JudgeServer says what the answer a proves about our tmux server.
//
// recorded is the server that was last known to be ours, nil when there is none,
// and recordedState is the judgement of its process. instance is our own; empty
// when it is not known yet, and then any server on our path is taken for ours.
//
// A listing counts only from the recorded server, or from another one once the
// recorded one is proven Gone. Silence on the path proves that there is no server
// only when no recorded one can be alive.
func JudgeServer(a Answer, recorded *Server, recordedState Liveness, instance string) ServerView {
	if recorded == nil {
		recordedState = Gone
	}
	switch a.Kind {
	case AnswerListed:
		return judgeListing(a.Listing, recorded, recordedState, instance)
	case AnswerNoSocket, AnswerRefused:
		return judgeSilence(recorded, recordedState)
	case AnswerTimeout:
		return unknown(spec.ReasonTmuxTimeout, "tmux did not answer in time", a)
	case AnswerDenied:
		return unknown(spec.ReasonTmuxDenied, "tmux or its socket refused access", a)
	case AnswerNoBinary:
		return unknown(spec.ReasonTmuxNotFound, "the tmux program could not be executed", a)
	case AnswerMismatch:
		return unknown(spec.ReasonTmuxMismatch, "the tmux program and the running tmux server speak different protocols", a)
	case AnswerIncomplete:
		return unknown(spec.ReasonListingIncomplete, "the listing of tmux broke off or was malformed", a)
	case AnswerFailed:
		if recordedState == Running && strings.Contains(a.Message, "server exited unexpectedly") {
			return unknown(spec.ReasonTmuxFailed, fmt.Sprintf("tmux server %d runs, but the tmux program says otherwise, as one of another version does", recorded.Process.PID), a)
		}
		return unknown(spec.ReasonTmuxFailed, "tmux failed in a way that proves nothing", a)
	}
	return unknown(spec.ReasonTmuxFailed, fmt.Sprintf("tmux gave an answer of unknown kind %d", int(a.Kind)), a)
}

func judgeListing(l Listing, recorded *Server, recordedState Liveness, instance string) ServerView {
	if recorded != nil && recorded.Same(l.Server) {
		return ServerView{State: ServerRunning, Listing: l}
	}
	switch recordedState {
	case Running:
		return ServerView{
			Reason: spec.ReasonTwoServers, Repair: RepairSocket,
			Message: fmt.Sprintf("tmux server %d answers on %s while the recorded server %d still runs; the recorded one is asked to take its socket back",
				l.Server.Process.PID, l.Server.Socket, recorded.Process.PID),
		}
	case LivenessUnknown:
		return recordedUnknown(recorded)
	case Gone:
	}
	if theirs := l.Server.Instance; theirs != "" && instance != "" && theirs != instance {
		return ServerView{
			Reason: spec.ReasonForeignServer,
			Message: fmt.Sprintf("the tmux server %d on %s belongs to another instance of muxlet (%s); give this one a runtime directory of its own",
				l.Server.Process.PID, l.Server.Socket, theirs),
		}
	}
	return ServerView{State: ServerRunning, Listing: l, New: true}
}

func judgeSilence(recorded *Server, recordedState Liveness) ServerView {
	switch recordedState {
	case Gone:
		return ServerView{State: ServerNone}
	case Running:
		return ServerView{
			Reason: spec.ReasonTmuxUnreachable, Repair: RepairSocket,
			Message: fmt.Sprintf("tmux server %d runs but nobody answers on %s; it is asked to make its socket anew",
				recorded.Process.PID, recorded.Socket),
		}
	case LivenessUnknown:
	}
	return recordedUnknown(recorded)
}

// recordedUnknown is the view when all depends on a process that could not be
// looked at.
func recordedUnknown(recorded *Server) ServerView {
	return ServerView{
		Reason: spec.ReasonProcessUnknown,
		Message: fmt.Sprintf("the process table did not say whether the recorded tmux server %d still runs; it is looked at again",
			recorded.Process.PID),
	}
}

// unknown is the view of an answer that proves nothing; tmux's own words follow.
func unknown(reason, message string, a Answer) ServerView {
	if a.Message != "" {
		message += ": " + a.Message
	}
	return ServerView{Reason: reason, Message: message}
}

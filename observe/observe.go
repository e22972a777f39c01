// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

// Package observe says what was seen: panes, processes, the tmux server, and
// what all of that proves together. Every judgement is three-valued and its
// zero value is Unknown, so that ignorance never passes for absence. This
// package holds values and pure functions; its leaves do the looking, and no
// leaf ever changes what it looks at.
package observe

import (
	"fmt"
	"time"
)

// Presence is the judgement of a pane.
type Presence int

// The judgements of a pane.
const (
	// PresenceUnknown: tmux could not be asked, or its answer does not count.
	PresenceUnknown Presence = iota
	// Absent: a listing that counts does not have the pane.
	Absent
	// Dead: the pane is there and its process has ended.
	Dead
	// Present: the pane is there and tmux holds its process to be running.
	Present
)

// String is the word shown to people.
func (p Presence) String() string {
	switch p {
	case Absent:
		return "Absent"
	case Dead:
		return "Dead"
	case Present:
		return "Present"
	case PresenceUnknown:
		return "Unknown"
	}
	return fmt.Sprintf("Presence(%d)", int(p))
}

// Liveness is the judgement of a process, or of a lease's holder.
type Liveness int

// The judgements of a process.
const (
	// LivenessUnknown: the process table could not be read.
	LivenessUnknown Liveness = iota
	// Gone: no process has this pid and these start ticks, or it is a zombie.
	Gone
	// Running: the process with this pid and these start ticks runs.
	Running
)

// String is the word shown to people.
func (l Liveness) String() string {
	switch l {
	case Gone:
		return "Gone"
	case Running:
		return "Running"
	case LivenessUnknown:
		return "Unknown"
	}
	return fmt.Sprintf("Liveness(%d)", int(l))
}

// Process is the identity of a process: a pid alone is re-used. The zero value
// is no process.
type Process struct {
	// PID is the process id.
	PID int `json:"pid"`
	// Ticks is the start time in clock ticks since boot (Linux: field 22 of
	// /proc/PID/stat) or the platform's equivalent. 0: not known.
	Ticks uint64 `json:"ticks"`
}

// IsZero says whether p names no process.
func (p Process) IsZero() bool { return p.PID == 0 }

// String is pid@ticks.
func (p Process) String() string { return fmt.Sprintf("%d@%d", p.PID, p.Ticks) }

// Server is one run of a tmux server.
type Server struct {
	// Process is the server's own process. Ticks is 0 when they could not be
	// read.
	Process Process `json:"process"`
	// StartTime is tmux's start_time, in seconds since 1970.
	StartTime int64 `json:"startTime"`
	// Socket is the path on which it was reached.
	Socket string `json:"socket"`
	// Version is tmux's own, such as 3.3a.
	Version string `json:"version,omitempty"`
	// Instance is the value of @muxlet-server-instance; empty when it is not set.
	Instance string `json:"instance,omitempty"`
}

// Same says whether s and other are the same run of a tmux server. A server that
// was found in the process table has no start time yet: then its process decides.
func (s Server) Same(other Server) bool {
	if s.StartTime == 0 || other.StartTime == 0 {
		return s.Process == other.Process
	}
	return s.Process.PID == other.Process.PID && s.StartTime == other.StartTime
}

// Labels are the pane options by which muxlet knows its panes.
type Labels struct {
	// Instance, UID, Name, Attempt and Role as set in the creating command line.
	Instance, UID, Name, Attempt, Role string
	// Incarnation that the attempt was to be; 0 when the label is not a number.
	Incarnation int64
}

// RoleClient is the role label of a session's managed pane.
const RoleClient = "client"

// Pane is one pane of a listing.
type Pane struct {
	// SessionID ($3), WindowID (@4) and PaneID (%5) are tmux's own ids.
	SessionID, WindowID, PaneID string
	// SessionName is the name of the tmux session that holds the pane, SessionLabel
	// the value of its OptionSession.
	SessionName, SessionLabel string
	// PID of the pane's first process.
	PID int
	// State is Present or Dead.
	State Presence
	// ExitStatus and ExitSignal of a dead pane, as far as tmux knows them: nil
	// and 0 when it does not (tmux 3.3a loses them; 3.2 has no signal).
	ExitStatus *int
	ExitSignal int
	// Attached counts the tmux clients attached to the sessions that show the
	// pane: a linked window has several.
	Attached int
	// InFront counts the tmux clients that have the pane in front of them: it is the active
	// one of the window that their session shows.
	InFront int
	// Labels of the pane. Options fall through from wider scopes: compare whole
	// values.
	Labels Labels
	// LaunchedPID is the pid that the pane had when a launcher was started in it; 0
	// when it carries none.
	LaunchedPID int
}

// Taken says whether a person has run something else in the pane since a launcher
// was started in it. Its labels survive that, and so prove nothing about what
// runs.
func (p Pane) Taken() bool { return p.LaunchedPID != 0 && p.LaunchedPID != p.PID }

// Husk says whether tmux failed to start a process in the dead pane: fork or the
// making of its terminal failed (measured with 3.3a: pid -1). One more respawn of
// it, or a reset, crashes that server, and every session with it.
func (p Pane) Husk() bool { return p.State == Dead && p.PID < 0 }

// Own says whether the tmux session that holds the pane was made for the session
// whose labels the pane carries.
func (p Pane) Own() bool {
	return p.SessionLabel != "" && p.SessionLabel == SessionLabel(p.Labels.Instance, p.Labels.UID)
}

// StatusKnown says whether tmux has collected the end of a dead pane's process.
func (p Pane) StatusKnown() bool { return p.ExitStatus != nil || p.ExitSignal != 0 }

// Listing is one complete answer of one tmux server.
type Listing struct {
	// Began and Ended bound the time at which the listing was true.
	Began, Ended time.Time
	// Server that answered.
	Server Server
	// Panes, each once, although windows can be linked into several sessions.
	Panes []Pane
	// Sessions maps the name of each tmux session to its id.
	Sessions map[string]string
	// Owned maps the OptionSession of each tmux session that has one to its id.
	Owned map[string]string
	// Configuration is the OptionConfiguration of the server.
	Configuration string
	// Lapsed are the options without which the server does not outlive its sessions
	// or its people, and which somebody has changed.
	Lapsed []string
}

// AnswerKind classifies what came of asking a tmux server.
type AnswerKind int

// The kinds of answers. Only Listed proves anything by itself.
const (
	// AnswerFailed: tmux failed in a way that proves nothing.
	AnswerFailed AnswerKind = iota
	// AnswerListed: a complete listing.
	AnswerListed
	// AnswerNoSocket: there is no socket on the path.
	AnswerNoSocket
	// AnswerRefused: nobody listens on the socket now.
	AnswerRefused
	// AnswerTimeout: no answer within the deadline.
	AnswerTimeout
	// AnswerDenied: access was refused.
	AnswerDenied
	// AnswerNoBinary: the tmux program could not be executed.
	AnswerNoBinary
	// AnswerMismatch: client and server speak different protocols.
	AnswerMismatch
	// AnswerIncomplete: the listing broke off or was malformed.
	AnswerIncomplete
)

// Answer is what came of asking a tmux server once.
type Answer struct {
	// Kind of the answer.
	Kind AnswerKind
	// Listing of kind AnswerListed.
	Listing Listing
	// Message is tmux's own text or the error, for a person.
	Message string
	// At is when the question was asked.
	At time.Time
}

// Exit is the end of a process as the kernel tells it.
type Exit struct {
	// Code of an exit; 0 when a signal ended the process.
	Code int `json:"code"`
	// Signal that ended it; 0 for an exit.
	Signal int `json:"signal,omitempty"`
}

// Notice says that a watched process has ended. Key is whatever its watch was
// given.
type Notice struct {
	Process Process
	Key     string
}

// Mark is the content of the variable MUXLET_CLIENT of a client. It proves
// something only for the process whose pid and ticks it names: children inherit
// the text.
type Mark struct {
	Instance, UID, Attempt string
	Incarnation            int64
	Process                Process
}

// MarkedProcess is a process that was proven to be a client by its own mark.
type MarkedProcess struct {
	Mark
	// Session is the value of MUXLET_SESSION, the session's name at its start.
	Session string
	// Parent is the pid of its parent.
	Parent int
	// Socket is the path of the tmux socket in its variable TMUX; empty when it
	// has none.
	Socket string
}

// Lease says who holds a session's lease.
type Lease struct {
	// State is Running when a process holds it, Gone when nobody does.
	State Liveness
	// Holder is the pid of the holder; 0 when there is none.
	Holder int
}

// ReceiptStage is how far a launcher got.
type ReceiptStage string

// The stages of a receipt.
const (
	// StageExec: everything is prepared and the client is executed next, by the
	// same process.
	StageExec ReceiptStage = "Exec"
	// StageFailed: the client was not executed, and never will be by this
	// attempt.
	StageFailed ReceiptStage = "Failed"
)

// Receipt is what a launcher leaves on disk about one attempt.
type Receipt struct {
	// Attempt it is about.
	Attempt string `json:"attempt"`
	// Process of the launcher, which is the client's after a successful exec.
	Process Process `json:"process"`
	// Stage reached.
	Stage ReceiptStage `json:"stage"`
	// Reason (one of spec's) and Message of a failure.
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// LookedFor and LookedIn are the program and the directories in which it was
	// searched, for reason CommandNotFound.
	LookedFor string   `json:"lookedFor,omitempty"`
	LookedIn  []string `json:"lookedIn,omitempty"`
	// File that could not be used, for the EnvFile and the Conversation reasons.
	File string `json:"file,omitempty"`
	// Home and ConfigDirectory are those of the client's environment, as its class
	// names them; absolute, or empty where they are not known, and for a class that runs
	// the session's own command.
	Home            string `json:"home,omitempty"`
	ConfigDirectory string `json:"configDirectory,omitempty"`
	// Scope that the launcher has entered; zero for none. ScopeProblem is why it has not
	// entered the one that it was to; empty when it has, or there was none.
	Scope        Scope  `json:"scope,omitzero"`
	ScopeProblem string `json:"scopeProblem,omitempty"`
	// At is when it was written.
	At time.Time `json:"at"`
}

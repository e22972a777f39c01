// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

// Package actuate says what can be done to the world: one Action at a time,
// each with the preconditions under which it may happen, and what came of it.
// This package holds values and the port; its leaves do the acting. No leaf
// decides anything, retries anything, or assumes that an action has worked: the
// next observation tells.
package actuate

import (
	"context"
	"time"

	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec"
)

// Kind of an action.
type Kind string

// The kinds of actions.
const (
	// ActionNone does nothing.
	ActionNone Kind = ""
	// ActionStartServer starts a tmux server on our socket. Only to be asked for
	// when it is proven that none of ours lives.
	ActionStartServer Kind = "StartServer"
	// ActionStartUnit asks systemd to start Unit, which owns the tmux server on our socket,
	// and does not wait for it. Only to be asked for when it is proven that none of ours lives.
	ActionStartUnit Kind = "StartUnit"
	// ActionConfigure gives Server, which is ours or which nobody has claimed, our
	// configuration, what the person's own file asks for, and our instance.
	ActionConfigure Kind = "Configure"
	// ActionRestoreSocket sends SIGUSR1 to Server: tmux makes its socket again.
	ActionRestoreSocket Kind = "RestoreSocket"
	// ActionReap sends SIGCHLD to Server: tmux collects ends that it missed.
	ActionReap Kind = "Reap"
	// ActionCreate makes a tmux session with one labelled pane that runs Launch.
	ActionCreate Kind = "Create"
	// ActionRespawn runs Launch in Pane, which is ours and dead.
	ActionRespawn Kind = "Respawn"
	// ActionRespawnKill runs Launch in Pane, whose process is proven Gone although
	// tmux still holds it to be alive.
	ActionRespawnKill Kind = "RespawnKill"
	// ActionKillPane removes Pane. tmux removes the session with its last pane.
	ActionKillPane Kind = "KillPane"
	// ActionRelease takes our labels from Pane, in which a person runs something else
	// by now: it is theirs.
	ActionRelease Kind = "Release"
	// ActionKeepServer sets the options anew without which Server would end by
	// itself, and our instance.
	ActionKeepServer Kind = "KeepServer"
	// ActionShowWaiting has Server's status line tell Waiting.
	ActionShowWaiting Kind = "ShowWaiting"
	// ActionClearBuffers deletes the paste buffers of Server that broken off hand-overs of
	// this muxlet have left. No prompt stays where a person's next paste would find it.
	ActionClearBuffers Kind = "ClearBuffers"
	// ActionSignal sends Signal to each of Processes that still is itself.
	ActionSignal Kind = "Signal"
	// ActionKeys types Keys into Pane, whose client is to end by them.
	ActionKeys Kind = "Keys"
	// ActionPaste pastes the prompt of Turn into Pane, whose client lives. It is never
	// repeated, unless it is Refused or Failed: then nothing was pasted.
	ActionPaste Kind = "Paste"
	// ActionSubmit types Keys into Pane: they submit what was pasted.
	ActionSubmit Kind = "Submit"
	// ActionQueue runs Turn.Command, which puts the prompt into the client's own queue.
	// It is never repeated, unless it is Refused or Failed: then nothing was executed.
	ActionQueue Kind = "Queue"
)

// Signal that muxlet sends to clients.
type Signal string

// The signals.
const (
	SignalTerm      Signal = "SIGTERM"
	SignalKill      Signal = "SIGKILL"
	SignalInterrupt Signal = "SIGINT"
	SignalHangup    Signal = "SIGHUP"
	SignalQuit      Signal = "SIGQUIT"
)

// Action is one thing to do.
type Action struct {
	// Kind of the action; the other fields are those that its kind needs.
	Kind Kind
	// Unit of ActionStartUnit is the name of a service.
	Unit string
	// Server is a precondition: pid and start time must still be the same.
	Server observe.Server
	// Pane is a precondition: id, pid and attempt label must still be the same.
	Pane observe.Pane
	// Launch is what to run.
	Launch Launch
	// Processes and Signal of ActionSignal.
	Processes []observe.Process
	Signal    Signal
	// Keys of ActionKeys and ActionSubmit, in tmux's notation.
	Keys []string
	// Turn of ActionPaste, ActionSubmit and ActionQueue.
	Turn Turn
	// Configuration of ActionConfigure names what Server is given; empty when that has no name.
	Configuration string
	// Waiting of ActionShowWaiting.
	Waiting Waiting
}

// Waiting is how many sessions wait for a person.
type Waiting struct {
	// Count of them; 0 clears what is shown.
	Count int
	// Longest is the name of the one that waits longest.
	Longest string
	// Until when that is shown as it is without another word, in seconds since 1970.
	Until int64
}

// Turn is what is handed over to a client.
type Turn struct {
	// Name of the turn.
	Name string
	// PromptFile is the path of the file that holds the prompt and nothing else.
	PromptFile string
	// Step, of ActionPaste and ActionSubmit, is the observe.TurnStep once the act was done.
	Step string
	// Cursor, of ActionPaste and ActionSubmit, is a precondition when it is not nil: where
	// the program's cursor must still be. Where it alone does not hold the action is
	// Refused with spec.ReasonCursorMoved.
	Cursor *observe.Cursor
	// Continues, of ActionPaste, is a pattern of prompts behind which a space is pasted,
	// since the client would make a new line of the submit key.
	Continues string
	// Command of ActionQueue: its words may have $(PROMPT), and the variables of
	// Variables. Without $(PROMPT) it reads the prompt from its standard input.
	Command   []string
	Variables map[string]string
	// Client of ActionQueue, in whose environment and directory the command is run.
	Client    observe.Process
	Directory string
}

// Launch is what a pane is created with. Nothing that a person wrote is in it
// but the directory, which tmux gets for the person's own later splits.
type Launch struct {
	// Labels to set on the pane. Labels.Name is the tmux session's name as well.
	Labels observe.Labels
	// Directory is the expanded workspace directory.
	Directory string
	// Into is the id of a tmux session of ours, such as $3, in which ActionCreate
	// opens a window; empty for a session of its own.
	Into string
	// ShellMode says how the launcher is reached.
	ShellMode spec.ShellMode
	// Columns, Rows and HistoryLimit of a new pane.
	Columns, Rows, HistoryLimit int
}

// Result of an action.
type Result string

// The results.
const (
	// ResultUnclear: the action may or may not have happened.
	ResultUnclear Result = ""
	// ResultDone: it happened.
	ResultDone Result = "Done"
	// ResultRefused: a precondition did not hold and nothing happened.
	ResultRefused Result = "Refused"
	// ResultFailed: it did not happen.
	ResultFailed Result = "Failed"
)

// Outcome is what came of an action.
type Outcome struct {
	Result Result
	// Reason is one of spec's; empty when Done.
	Reason string
	// Message for a person; empty when Done.
	Message string
	// Screen is what the pane held when the action overwrote or removed it; nil when
	// it did not, or when that could not be had.
	Screen *observe.Screen
}

// Actuator performs actions.
type Actuator interface {
	// Do performs a. It returns when the effect was asked for, not when it shows,
	// and at the latest at ctx's deadline.
	Do(ctx context.Context, a Action) Outcome
}

// Order is what one attempt is to run. It travels to the launcher in the
// session's record, which only its owner can read.
type Order struct {
	// Instance, UID, Session (the name), Incarnation and Attempt make up the mark.
	Instance    string `json:"instance"`
	UID         string `json:"uid"`
	Session     string `json:"session"`
	Incarnation int64  `json:"incarnation"`
	Attempt     string `json:"attempt"`
	// Command and, behind it, Args are the client's argv: see spec.Argv. The launcher
	// expands $(NAME) in the words of Command when Class is not nil; Args stand as they
	// are.
	Command []string `json:"command,omitempty"`
	Args    []string `json:"args,omitempty"`
	// Class is what the launcher has to do for the client's class; nil for one that runs
	// the session's own command.
	Class *ClassOrder `json:"class,omitempty"`
	// PromptFile is the file with the prompt with which the client begins, for $(PROMPT)
	// in PromptArgs, which stand behind Args; both are empty for a client that begins
	// without one.
	PromptFile string   `json:"promptFile,omitempty"`
	PromptArgs []string `json:"promptArgs,omitempty"`
	// Directory is the expanded workspace directory.
	Directory string `json:"directory"`
	// Scope that the client is put into; nil for none.
	Scope *ScopeOrder `json:"scope,omitempty"`
	// Env and EnvFrom as the spec has them; files are read by the launcher.
	Env     []spec.EnvVar        `json:"env,omitempty"`
	EnvFrom []spec.EnvFromSource `json:"envFrom,omitempty"`
	// ShellMode by which the launcher was reached.
	ShellMode spec.ShellMode `json:"shellMode"`
	// Base is the environment of ShellMode None, as NAME=value.
	Base []string `json:"base,omitempty"`
}

// ScopeOrder is the control group that a client is to have for itself.
type ScopeOrder struct {
	// Name of the scope; see observe.ScopeName. It is in the record, and so on disk, before
	// anybody is asked for it.
	Name string `json:"name"`
	// Bus is the address of the bus of the user's systemd manager; empty when there is none,
	// then Problem says why.
	Bus     string `json:"bus,omitempty"`
	Problem string `json:"problem,omitempty"`
	// Slice below which it is made, and Description of it.
	Slice       string `json:"slice"`
	Description string `json:"description"`
	// MemoryBytes, CPUMicroseconds (of each second) and Tasks that it may have; 0 for no
	// limit.
	MemoryBytes     uint64 `json:"memoryBytes,omitempty"`
	CPUMicroseconds uint64 `json:"cpuMicroseconds,omitempty"`
	Tasks           uint64 `json:"tasks,omitempty"`
	// StopTimeout is what its processes have to end when it is stopped, as at a shutdown.
	StopTimeout time.Duration `json:"stopTimeout"`
	// Required says that nothing is executed without it.
	Required bool `json:"required,omitempty"`
}

// Limited says whether it has any limit.
func (o *ScopeOrder) Limited() bool {
	return o.MemoryBytes > 0 || o.CPUMicroseconds > 0 || o.Tasks > 0
}

// ClassOrder is what a launcher does for a client class.
type ClassOrder struct {
	// Name of the class.
	Name string `json:"name"`
	// Variables of muxlet, by name, that $(NAME) stands for. HOME, CONFIG_DIRECTORY and
	// the client's environment are added by the launcher.
	Variables map[string]string `json:"variables,omitempty"`
	// ConfigDirectory, Env and UnsetEnv as the class has them.
	ConfigDirectory spec.ClassDirectory `json:"configDirectory,omitempty"`
	Env             []spec.EnvVar       `json:"env,omitempty"`
	UnsetEnv        []string            `json:"unsetEnv,omitempty"`
	// Resume is the conversation whose evidence the launcher verifies in the client's own
	// environment before it executes anything; nil for a fresh start.
	Resume *ResumeOrder `json:"resume,omitempty"`
}

// ResumeOrder is a conversation that a client is to be brought back with.
type ResumeOrder struct {
	// ID of the conversation.
	ID string `json:"id"`
	// Reports, Transcript and TranscriptPattern of its class.
	Reports           spec.ReportsType `json:"reports,omitempty"`
	Transcript        string           `json:"transcript,omitempty"`
	TranscriptPattern string           `json:"transcriptPattern,omitempty"`
	// ConfigDirectory in which it was last known to be; empty when that is not known.
	ConfigDirectory string `json:"configDirectory,omitempty"`
}

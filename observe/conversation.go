// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"time"

	"github.com/muxlet/muxlet/spec"
)

// ConversationRef names a conversation and where its evidence is looked for.
type ConversationRef struct {
	// Class is the spec of the client class that it belongs to.
	Class *spec.ClientClassSpec
	// ID of the conversation.
	ID string
	// Session is the session's name.
	Session string
	// Directory is the workspace directory in which it began; absolute.
	Directory string
	// Home and ConfigDirectory are those of the client's environment; empty when they
	// are not known.
	Home, ConfigDirectory string
	// Ran says that a client has had turns of it with that config directory, so that
	// something must be in there.
	Ran bool
}

// EvidenceState says whether a conversation can be resumed.
type EvidenceState int

// The states. Only EvidenceAbsent and EvidenceUnusable prove that it cannot.
const (
	// EvidenceUnknown: it could not be read, or it is not known where to look.
	EvidenceUnknown EvidenceState = iota
	// EvidenceResumable: the transcript is there and has begun, or the class has no
	// transcript to look at.
	EvidenceResumable
	// EvidenceAbsent: there is no transcript where it would have to be.
	EvidenceAbsent
	// EvidenceUnusable: there is one, and it is empty, damaged or without a turn.
	EvidenceUnusable
)

// Evidence is what was found of a conversation.
type Evidence struct {
	State EvidenceState
	// Path of the transcript; of one that was not found, what was looked for.
	Path string
	// Holder is the pid of a live process that has the conversation open; 0 when none is
	// known.
	Holder int
	// Message says what was found, for a person; never what a conversation holds.
	Message string
}

// Readiness says whether a client can take a turn.
type Readiness int

// The readinesses.
const (
	// ReadinessUnknown: nothing tells.
	ReadinessUnknown Readiness = iota
	// NotReady: it starts, or it asks something.
	NotReady
	// Ready: it can.
	Ready
)

// Attention is a question that a person must answer.
type Attention struct {
	// Reason is one of spec's, or the class's own.
	Reason string
	// Message for a person; it quotes nothing of the screen.
	Message string
}

// Failure is a turn that has failed.
type Failure struct {
	// Reason is one of spec's, or the class's own.
	Reason string
	// Retry says whether others with the same credential would fail alike.
	Retry spec.RetryClass
	// Until is when the client may be used again; zero when it does not say so.
	Until time.Time
	// At is when it was found.
	At time.Time
}

// Sight is what one client shows: its screen, its own files, and what it has
// reported, taken together by JudgeSight. It says nothing about its life.
type Sight struct {
	// At is when the client was last looked at; zero when it never was.
	At        time.Time
	Readiness Readiness
	Activity  spec.Activity
	// Attention is the question on the screen; nil when there is none.
	Attention *Attention
	// Failure of the last turn; nil when it went well or none was.
	Failure *Failure
	// Screen is the last lines with content, at most 10; only kept while a question
	// waits or the client is not ready.
	Screen []string
	// Blank is true when the screen was read and shows nothing at all.
	Blank bool
	// Conversation is the id that the client's own files name now; empty when they do
	// not.
	Conversation string
	// Since is since when Activity is what it is, as far as anything tells; zero before
	// the first look.
	Since time.Time
	// WorkingAt is when the client was last found to work; zero when it never was.
	WorkingAt time.Time
	// WorkingSince is since when it works by what its own files say; zero when they do not
	// say so. TurnAt is when a turn last ended, well or not, by what they say; zero when
	// they never did.
	WorkingSince, TurnAt time.Time
}

// Files is what a client's own files tell of it: Claude's registry, Codex's locks
// and rollout.
type Files struct {
	// Conversation that the client has now; empty when the files do not tell, or tell
	// several.
	Conversation string
	// Activity, Unknown when they do not tell.
	Activity spec.Activity
	// ActivityAt is when it became so; zero when they do not tell.
	ActivityAt time.Time
	// Waiting is what the client says that it waits for, in its own words.
	Waiting string
	// Failure of the last turn; nil when it went well or the files do not tell.
	Failure *Failure
	// TurnAt is when the last turn went well or failed; zero when the files do not tell,
	// or when it goes on or was interrupted.
	TurnAt time.Time
}

// ReportKind says what a report means, whatever the client calls it.
type ReportKind string

// The kinds of reports.
const (
	// ReportStarted: a conversation begins or is taken up; the client can take a turn.
	ReportStarted ReportKind = "Started"
	// ReportPrompted: a turn was submitted.
	ReportPrompted ReportKind = "Prompted"
	// ReportWorking: a tool is being used.
	ReportWorking ReportKind = "Working"
	// ReportAsked: the client asks for a permission or an answer.
	ReportAsked ReportKind = "Asked"
	// ReportDone: the turn has ended.
	ReportDone ReportKind = "Done"
	// ReportFailed: the turn has failed for good.
	ReportFailed ReportKind = "Failed"
	// ReportEnded: the conversation ends, or the client does.
	ReportEnded ReportKind = "Ended"
	// ReportOther: it only shows that the client lives and which conversation it has.
	ReportOther ReportKind = "Other"
)

// Report is what a client's hook has told. It has no text of a conversation.
type Report struct {
	// ID makes it known when it comes twice: once by the socket, once by the spool.
	ID string `json:"id"`
	// Class of the hook command: claude or codex, or a declared class's name.
	Class string `json:"class"`
	// Kind of the report; Event is the client's own word for it.
	Kind  ReportKind `json:"kind"`
	Event string     `json:"event,omitempty"`
	// Source is the client's own word for how a conversation began (startup, resume,
	// clear, fork) or ended.
	Source string `json:"source,omitempty"`
	// Conversation is its id, Transcript the path of its file as reported.
	Conversation string `json:"conversation,omitempty"`
	Transcript   string `json:"transcript,omitempty"`
	// Failure is the client's own word for why the turn has failed, such as rate_limit.
	Failure string `json:"failure,omitempty"`
	// Prompt is the digest of the prompt that was submitted; see PromptDigest.
	Prompt string `json:"prompt,omitempty"`
	// At is when the hook ran.
	At time.Time `json:"at"`
	// Mark is the client's mark as the hook inherited it. It proves nothing by itself.
	Mark Mark `json:"mark"`
	// Chain are the hook's own process and those above it, each the parent of the one
	// before it, with their executables; the client must be among them.
	Chain []Ancestor `json:"chain,omitempty"`
}

// Repeats says whether a report may be a second one of the question that was reported
// before: Claude Code notifies of a dialog 6 s after it has asked for the permission
// (2.1.332).
func (r Report) Repeats() bool { return r.Kind == ReportAsked && r.Event == "Notification" }

// Ancestor is one process above a hook.
type Ancestor struct {
	Process
	// Executable is the path of its program; empty when it could not be read.
	Executable string `json:"executable,omitempty"`
}

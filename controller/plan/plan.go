// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

// Package plan decides. Compute takes everything that is known about one
// session and returns what its record becomes, at most one action, and why. It
// is a pure function: no clock, no I/O, no logger, no randomness; the same
// input gives the same plan. It never acts on an observation that could not be
// made, and it never takes a name, a record or a pid for proof of life.
package plan

import (
	"time"

	"github.com/muxlet/muxlet/actuate"
	"github.com/muxlet/muxlet/controller/record"
	"github.com/muxlet/muxlet/controller/turn"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec"
)

// Input is everything that a decision about one session rests on.
type Input struct {
	// Now is the instant of the decision.
	Now time.Time
	// Desired is what the manifests say.
	Desired Desired
	// Record is the session's durable memory.
	Record record.Record
	// Seen is what tmux and the process table say.
	Seen Seen
	// Workspace is the state of the workspace directory.
	Workspace Workspace
	// Block says whether the cause of Record.Block still stands.
	Block Obstacle
	// Class is the client class of the spec in force, from what is declared or built in;
	// nil when there is none of that name now.
	Class *Class
	// Evidence is what was found of Record.Conversation, or of the conversation that
	// spec.conversation.id asks to adopt.
	Evidence observe.Evidence
	// Rival is the other session that has that conversation; empty when none has.
	Rival string
	// Heard are the conversations that the present client has told of, oldest first. Those
	// of an incarnation above the one of the plan's record, or of its pending attempt,
	// were not heard yet and are to be given again.
	Heard []Heard
	// Sight is what the present client shows.
	Sight observe.Sight
	// Probed is what its liveness probe has said of the present client.
	Probed observe.Probed
	// Hold is why nothing that uses the session's credential is started; zero when
	// nothing is held.
	Hold Hold
	// Turns of the session that are not over, in the order of their hand-over.
	Turns []turn.Turn
	// Hand is what was seen for the hand-over of the first of them; zero when nobody
	// looked.
	Hand observe.Hand
	// PromptFile is the path of the file that holds the prompt of the first of Turns.
	PromptFile string
	// Waited is Plan.Waiting of the pass before this one; zero when that is not known.
	Waited Verdict
	// Told is what the reports of the present client, or of the last one, tell of turns.
	Told observe.Told
	// HandOver is what came of this daemon's last act for the first of Turns; zero when
	// it has done nothing about that.
	HandOver HandOver
	// Grant says whether a start may be put in flight now.
	Grant Grant
	// Limits are what may run out by a start.
	Limits observe.Limits
	// Scopes says whether a client can be put into one.
	Scopes Scopes
	// New is what a new attempt is made of.
	New NewAttempt
	// Policy is what the settings say.
	Policy Policy
	// Started is when the daemon began to look: what nobody has told or shown since then
	// may have been told before.
	Started time.Time
	// FirstLook is true until a decision was made on a known observation since
	// the daemon started.
	FirstLook bool
}

// Want is what the manifests want of a session.
type Want int

// The wants. The zero value changes nothing.
const (
	// Keep: go on with the last good spec; also while a removal settles or is
	// held.
	Keep Want = iota
	// Remove: the document is gone, completely read, settled and not held.
	Remove
)

// Desired is what the manifests say about one session.
type Desired struct {
	Want Want
	// Spec is the valid spec in force; nil when there never was one.
	Spec   *spec.SessionSpec
	Labels map[string]string
	File   string
	Held   string
	// Refusal is why the session must not be started: two documents have its name
	// and none of them runs, or its record cannot be used.
	Refusal Verdict
}

// Sight says whether an observation was made.
type Sight int

// The sights.
const (
	// SightUnknown: tmux or the process table could not be asked.
	SightUnknown Sight = iota
	// SightKnown: everything in Seen is true as of Seen.At.
	SightKnown
)

// Confirmation says whether a mass death was looked at twice.
type Confirmation int

// The confirmations.
const (
	// Unconfirmed: most sessions were seen dead at once and one more look is due.
	Unconfirmed Confirmation = iota
	// Confirmed: nothing unusual, or seen twice.
	Confirmed
)

// SeenPane is a pane with our labels and what the process table says of its
// first process.
type SeenPane struct {
	observe.Pane
	// Process is the identity of the pane's first process; zero when unknown.
	Process observe.Process
	// Live judges that process.
	Live observe.Liveness
}

// ReceiptState says whether a receipt was found.
type ReceiptState int

// The states of a receipt.
const (
	// ReceiptUnknown: it could not be read.
	ReceiptUnknown ReceiptState = iota
	// ReceiptMissing: the launcher has written none.
	ReceiptMissing
	// ReceiptFound: there is one.
	ReceiptFound
)

// Seen is what was observed of one session.
type Seen struct {
	Sight Sight
	// Reason and Message of SightUnknown.
	Reason, Message string
	// At is when the observation was made; UnknownFor how long there was none.
	At         time.Time
	UnknownFor time.Duration
	// Confirmation of a mass death.
	Confirmation Confirmation
	// ServerState and Server of the tmux server.
	ServerState observe.ServerState
	Server      observe.Server
	// ServerFailure is why no tmux server could be started; empty when none was
	// tried or needed.
	ServerFailure string
	// Panes with our instance and the session's uid.
	Panes []SeenPane
	// Clients that run and are proven to be the session's: by their mark, or by
	// holding its lease while no attempt is pending (then without attempt).
	Clients []observe.MarkedProcess
	// Client judges Record.Client's process, ClientExit is its end as far as the
	// kernel tells, GoneFor how long it has been known to be Gone.
	Client     observe.Liveness
	ClientExit *observe.Exit
	GoneFor    time.Duration
	// Engine judges Record.Client.Engine, EngineGoneFor is how long it has been known to
	// be Gone. NextEngine is what was found where the record names none that runs; zero
	// with NoEngine when it is proven that there is none.
	Engine        observe.Liveness
	EngineGoneFor time.Duration
	NextEngine    observe.Process
	NoEngine      bool
	// Outdated is true when that process was found to be Gone after At: what is seen
	// of the panes is from its lifetime.
	Outdated bool
	// StartFailure is what tmux said when it started nothing for the pending attempt;
	// empty when it did not say so.
	StartFailure string
	// Receipt of the pending attempt, and its process.
	ReceiptState   ReceiptState
	Receipt        observe.Receipt
	ReceiptProcess observe.Liveness
	// Lease of the session.
	Lease observe.Lease
	// Stop judges Record.Stop's process; Tree is its descendants now, TreeRunning
	// those of Record.Stop.Descendants that still run.
	Stop              observe.Liveness
	Tree, TreeRunning []observe.Process
	// Remains are the processes in scopes of the session that belong to no client of it
	// which runs or is on its way; looked for while a stop goes on or there is no client.
	// While a stop goes on they are among TreeRunning.
	Remains []observe.Process
	// OOM is what the kernel has ended in the scope of Record.Client.
	OOM observe.OOM
	// NotFound is true when the pane in which Client has died shows the words of its
	// class for a conversation that does not exist.
	NotFound bool
	// OwnSession is the tmux session that was made for this one and still is there;
	// only looked for when it has no pane of ours.
	OwnSession string
	// NameHolder is the tmux session that has the wanted name without a pane of
	// ours; empty when there is none.
	NameHolder string
}

// Class is a client class that is declared or built in.
type Class struct {
	Name string
	Spec *spec.ClientClassSpec
	// Revision of it; see spec.ClassRevision.
	Revision string
}

// Heard is a conversation that a client has told of.
type Heard struct {
	// ID of it.
	ID string
	// Reason is one of spec's Replaced reasons, for the history of the one before it.
	Reason string
	// Incarnation that told it.
	Incarnation int64
	// Class is the name of the client class as the report has it; empty when it does not
	// say so.
	Class string
	// At is when the client told it; zero for now.
	At time.Time
	// Begun says that it has had a turn.
	Begun bool
}

// Hold is a failure by which every client with the same credential fails.
type Hold struct {
	// Reason is one of spec's; empty when nothing is held.
	Reason string
	// Session that has failed first.
	Session string
	// Until is when one may be started again.
	Until time.Time
}

// Workspace is the state of the workspace directory.
type Workspace struct {
	// Path in use, with ~ and $VAR expanded: of the directories that DirectoryOf names,
	// the first, or the second when the first is proven to be missing and the second can
	// be used.
	Path string
	// Wanted is spec.workspace.directory, with ~ and $VAR expanded.
	Wanted string
	// Obstacle is the reason why it cannot be used; empty when it can, or when the
	// start will make it.
	Obstacle string
	// Message for a person.
	Message string
}

// Obstacle says whether the cause of a block stands. The zero value lets the
// block stand.
type Obstacle int

// The obstacles.
const (
	ObstacleStands Obstacle = iota
	ObstacleCleared
)

// Grant says whether a start may be put in flight.
type Grant int

// The grants.
const (
	GrantNone Grant = iota
	GrantStart
)

// NewAttempt is what a new attempt is made of.
type NewAttempt struct {
	// ID is a fresh UUID.
	ID string
	// Instance of this muxlet.
	Instance string
	// Conversation is a fresh UUID for a class whose conversations are Assigned.
	Conversation string
	// Variables of muxlet for $(NAME), but for those that the record has: see
	// spec.ClassVariables.
	Variables map[string]string
	// Base is the environment of shellMode None, as NAME=value.
	Base []string
}

// Policy is what the settings say.
type Policy struct {
	BackOffInitial, BackOffMax, BackOffReset time.Duration
	// UnknownGrace is how long an unknown observation goes without a word.
	UnknownGrace time.Duration
	// Confirm is how long after the last act of a hand-over a turn may take to be
	// confirmed; zero for 30 s.
	Confirm time.Duration
	// Shell is the path of the program through which launchers are reached in shell
	// modes Interactive and Login; for messages only.
	Shell string
}

// Verdict is why the plan is what it is.
type Verdict struct {
	// Rule that decided.
	Rule string
	// Reason is one of spec's; Message is for a person.
	Reason, Message string
}

// EventType as in Kubernetes.
type EventType string

// The types of events.
const (
	Normal  EventType = "Normal"
	Warning EventType = "Warning"
)

// Event is something worth telling.
type Event struct {
	Type            EventType
	Reason, Message string
}

// Fate of a record.
type Fate int

// The fates.
const (
	// FateKeep: the record stays.
	FateKeep Fate = iota
	// FateArchive: the session is gone; its record goes to the archive.
	FateArchive
)

// Plan is a decision.
type Plan struct {
	// Record as it must be on disk before Action is performed.
	Record record.Record
	// Action to perform; Kind is ActionNone for none.
	Action actuate.Action
	// Verdict says why.
	Verdict Verdict
	// Events to record.
	Events []Event
	// RequeueAfter is when to decide again; 0 when only a change matters.
	RequeueAfter time.Duration
	// NextAttempt is when a start is due; zero when none is waited for.
	NextAttempt time.Time
	// Fate of the record.
	Fate Fate
	// Looked is true when the session's own state was judged: FirstLook is over.
	Looked bool
	// Pending names what an edit waits for; empty when the client is up to date.
	// PendingReason is one of spec's: UpdatePending or ConversationElsewhere.
	Pending, PendingReason string
	// InFlight is true while a start has not come to its end: the attempt is pending, or
	// its client is not ready, asks nothing, and its time to get ready is not over.
	InFlight bool
	// Same is true when the next pass may rest on the same observation.
	Same bool
	// Turns that have changed, as they must be on disk, after Record, before Action is
	// performed. Each is refused when it was changed by another meanwhile: then nothing is
	// done.
	Turns []turn.Turn
	// Initial is the turn that is to be made of spec.initialPrompt before Record is saved;
	// nil for none.
	Initial *InitialTurn
	// Waiting says why the first turn that is pending waits; zero when none does.
	Waiting Verdict
}

// HandOver is what came of an act of this daemon for a turn.
type HandOver struct {
	// Turn is its name; empty: nothing was done by this daemon.
	Turn string
	// DoneAt is when the prompt was pasted or queued, as tmux or the command has told;
	// zero when that is not known.
	DoneAt time.Time
	// Nothing is true when it is proven that nothing of the prompt was handed over.
	Nothing bool
	// Reason and Message of that.
	Reason, Message string
	// Moved counts how often an act was refused because the cursor had moved since the
	// look on which it rested.
	Moved int
	// Untyped is true when the last submit key is proven not to have been typed.
	Untyped bool
}

// InitialTurn is the first turn of a conversation that muxlet begins.
type InitialTurn struct {
	// Request makes it known when it is asked for twice.
	Request string
	Prompt  string
}

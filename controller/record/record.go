// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

// Package record keeps what a session must remember across every crash: one
// small file per session, atomic, checksummed and versioned, with its previous
// generation beside it. It never guesses: a damaged file is set aside and
// reported, one of a newer version is left untouched.
package record

import (
	"maps"
	"slices"
	"time"

	"github.com/muxlet/muxlet/actuate"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec"
)

// Version of the record's format. History: 1, the first; 2, with conversations, which a
// muxlet that knows version 1 only would drop when it writes the record again.
const Version = 2

// Record is the durable memory of one session.
//
//	              attempt opened        receipt Exec          client Gone
//	(no client) ---------------> Attempt -----------> Client ------------> LastTermination
//	     ^                          |  receipt Failed,             ^  Stop: being ended by us
//	     |                          v  or fence closed             |
//	     +-------- Block, BackOff, Latch: why there is none -------+
type Record struct {
	// UID of the session; it outlives renames of files and the daemon.
	UID string `json:"uid"`
	// Name of the session.
	Name string `json:"name"`
	// CreatedAt is when the session was first seen.
	CreatedAt time.Time `json:"createdAt"`
	// Generation rises with each change of the spec.
	Generation int64 `json:"generation"`
	// Spec is the last good spec, and Labels the labels beside it.
	Spec   *spec.SessionSpec `json:"spec,omitempty"`
	Labels map[string]string `json:"labels,omitempty"`
	// File that declares the session.
	File string `json:"file,omitempty"`
	// Held is why the session's removal is held back; empty when it is not.
	Held string `json:"held,omitempty"`
	// RemovedAt is when the session's removal was decided; zero while it is wanted.
	// What began to be removed is not started again by a restart.
	RemovedAt time.Time `json:"removedAt,omitzero"`

	// Class is the last good class of that spec, ClassName its name and ClassRevision its
	// revision (see spec.ClassRevision). It is nil before there was one, and for class
	// exec as it is built in: that one is always there.
	Class         *spec.ClientClassSpec `json:"class,omitempty"`
	ClassName     string                `json:"className,omitempty"`
	ClassRevision string                `json:"classRevision,omitempty"`
	// Conversation of the session; nil while it has none.
	Conversation *Conversation `json:"conversation,omitempty"`
	// History are the conversations before it, the latest first, at most MaxHistory.
	History []PastConversation `json:"history,omitempty"`
	// AdoptedID is the spec.conversation.id that was taken up last: once is enough.
	AdoptedID string `json:"adoptedID,omitempty"`

	// Incarnation is the highest number spent.
	Incarnation int64 `json:"incarnation"`
	// LastFailed is the attempt that ended last without a client: its number was not
	// spent, though a pane may still carry it.
	LastFailed string `json:"lastFailed,omitempty"`
	// Attempt that is pending; nil when there is none.
	Attempt *Attempt `json:"attempt,omitempty"`
	// Client that was executed last and whose end was not accounted for yet.
	Client *Client `json:"client,omitempty"`
	// Stop that is in progress.
	Stop *Stop `json:"stop,omitempty"`
	// Intent of a person about one incarnation.
	Intent *Intent `json:"intent,omitempty"`
	// Demand is a person's wish for a client now.
	Demand *Demand `json:"demand,omitempty"`

	// LastTermination is the end that was accounted for last.
	LastTermination *Termination `json:"lastTermination,omitempty"`
	// Survivors are descendants that a restart left running.
	Survivors []observe.Process `json:"survivors,omitempty"`
	// BackOff counts deaths.
	BackOff BackOff `json:"backOff"`
	// Latch is why the session stays down until a demand.
	Latch *Latch `json:"latch,omitempty"`
	// Block is why a start is of no use until the world or the spec changes.
	Block *Block `json:"block,omitempty"`
}

// Fence says whether a launcher may still execute an attempt's client. The
// zero value forbids it.
type Fence string

// The fences.
const (
	// FenceClosed forbids the launcher to go on.
	FenceClosed Fence = ""
	// FenceOpen lets it.
	FenceOpen Fence = "Open"
)

// Attempt is one try to start an incarnation.
type Attempt struct {
	ID          string        `json:"id"`
	Incarnation int64         `json:"incarnation"`
	Fence       Fence         `json:"fence"`
	OpenedAt    time.Time     `json:"openedAt"`
	Order       actuate.Order `json:"order"`
	// Spec it was made from, without its initialPrompt.
	Spec spec.SessionSpec `json:"spec"`
	// ClassRevision of the class that it was made by; see spec.ClassRevision.
	ClassRevision string `json:"classRevision,omitempty"`
	// Resumes is the conversation that it brings back; empty for a fresh start.
	Resumes string `json:"resumes,omitempty"`
	// Demand that it serves; nil when nobody asked for it.
	Demand *Demand `json:"demand,omitempty"`
	// Turn that its client begins with, by the argument of its class; empty for none.
	Turn string `json:"turn,omitempty"`
	// Initial is true when there was a spec.initialPrompt, which is not kept in Spec.
	Initial bool `json:"initial,omitempty"`
	// ClosedAt is when the fence was closed, Reason and Message are why.
	ClosedAt time.Time `json:"closedAt,omitzero"`
	Reason   string    `json:"reason,omitempty"`
	Message  string    `json:"message,omitempty"`
}

// Client is one executed incarnation.
type Client struct {
	Incarnation int64           `json:"incarnation"`
	Attempt     string          `json:"attempt"`
	Process     observe.Process `json:"process"`
	// Pane and PanePID say where it was executed. PanePID is the pid of the
	// pane's first process, as a rule the client itself.
	Pane    string `json:"pane,omitempty"`
	PanePID int    `json:"panePID,omitempty"`
	// StartedAt is when it was executed, or adopted.
	StartedAt time.Time `json:"startedAt"`
	// Launched is the spec it was started from; nil when that is not known.
	Launched *spec.SessionSpec `json:"launched,omitempty"`
	// Server is the tmux server that holds the pane.
	Server observe.Server `json:"server"`
	// ClassRevision and Resumes of its attempt.
	ClassRevision string `json:"classRevision,omitempty"`
	Resumes       string `json:"resumes,omitempty"`
	// Directory in which it was started, Home and ConfigDirectory of its environment;
	// empty when they are not known.
	Directory       string `json:"directory,omitempty"`
	Home            string `json:"home,omitempty"`
	ConfigDirectory string `json:"configDirectory,omitempty"`
	// Engine is the process that does its work, which may be the client itself; zero when
	// its class names none or none was seen yet.
	Engine observe.Process `json:"engine,omitzero"`
	// ReadyAt is when it was first seen to be ready; zero before.
	ReadyAt time.Time `json:"readyAt,omitzero"`
	// Demand of its attempt, until it is ready: a client that ends before that has not
	// satisfied it.
	Demand *Demand `json:"demand,omitempty"`
	// Scope that it was put into; zero for none, or when that is not known.
	Scope observe.Scope `json:"scope,omitzero"`
	// OOMKills are the processes in it, ended by the kernel for want of memory, of which was
	// told.
	OOMKills int `json:"oomKills,omitempty"`
	// InitialDue is true until the initial prompt of the conversation that it has begun
	// became a turn.
	InitialDue bool `json:"initialDue,omitempty"`
}

// MaxHistory is the number of earlier conversations that are kept.
const MaxHistory = 50

// Conversation is the client's own history.
type Conversation struct {
	// ID is the client's own.
	ID     string                  `json:"id"`
	Source spec.ConversationSource `json:"source"`
	// Class is the name of the client class that it belongs to: no other ever gets its
	// id.
	Class string `json:"class"`
	// Directory is the workspace directory in which it began. Home and ConfigDirectory
	// are those of the client that had it last; empty when they are not known.
	Directory       string `json:"directory"`
	Home            string `json:"home,omitempty"`
	ConfigDirectory string `json:"configDirectory,omitempty"`
	// BoundAt is when it became the session's.
	BoundAt time.Time `json:"boundAt"`
	// Used is true once a client was executed with it. Begun is true once there was
	// evidence that it can be resumed, or a report of a turn: before, there is nothing
	// to lose.
	Used  bool `json:"used,omitempty"`
	Begun bool `json:"begun,omitempty"`
	// NotFound counts the resumes in a row that ended soon with the class's words for a
	// conversation that is gone.
	NotFound int `json:"notFound,omitempty"`
}

// PastConversation is one that another has replaced.
type PastConversation struct {
	Conversation
	// ReplacedAt is when, Reason why: one of spec's Replaced reasons.
	ReplacedAt time.Time `json:"replacedAt"`
	Reason     string    `json:"reason"`
}

// StopReason says why a process is ended and what follows.
type StopReason string

// The reasons of a stop.
const (
	StopSuspended    StopReason = "Suspended"
	StopTerminated   StopReason = "Terminated"
	StopRestarting   StopReason = "Restarting"
	StopRemoved      StopReason = "Removed"
	StopUpdating     StopReason = "Updating"
	StopOrphan       StopReason = "Orphan"
	StopDuplicate    StopReason = "Duplicate"
	StopStartTimeout StopReason = "StartTimeout"
	StopLeftover     StopReason = "Leftover"
	StopEngineGone   StopReason = "EngineGone"
	StopForTurn      StopReason = "ForTurn"
	StopProbeFailed  StopReason = "LivenessProbeFailed"
)

// EndsTree says whether the descendants are ended as well.
func (r StopReason) EndsTree() bool {
	switch r {
	case StopSuspended, StopTerminated, StopRemoved:
		return true
	case StopStartTimeout:
		// No client ran: what a profile left would be one more with each attempt.
		return true
	case StopRestarting, StopUpdating, StopOrphan, StopDuplicate, StopLeftover, StopEngineGone, StopForTurn, StopProbeFailed:
	}
	return false
}

// Stop is the ending of one process by us.
type Stop struct {
	Reason  StopReason      `json:"reason"`
	Process observe.Process `json:"process"`
	// PoliteAt is when the way of the client's class was asked for, where that is not
	// SIGTERM; zero when there was none.
	PoliteAt time.Time `json:"politeAt,omitzero"`
	// TermAt is when SIGTERM was asked for. The descendants are noted before the first
	// of both.
	TermAt time.Time `json:"termAt,omitzero"`
	// KillAt is when SIGKILL was last asked for.
	KillAt time.Time `json:"killAt,omitzero"`
	// Descendants noted before the first signal.
	Descendants []observe.Process `json:"descendants,omitempty"`
	// TreeTermAt and TreeKillAt are the same for the descendants.
	TreeTermAt time.Time `json:"treeTermAt,omitzero"`
	TreeKillAt time.Time `json:"treeKillAt,omitzero"`
}

// IntentKind is what a person wants done to one incarnation.
type IntentKind string

// The intents.
const (
	IntentTerminate IntentKind = "Terminate"
	IntentRestart   IntentKind = "Restart"
)

// Intent of a person about the incarnation that ran when it was given.
type Intent struct {
	Kind        IntentKind `json:"kind"`
	Incarnation int64      `json:"incarnation"`
	At          time.Time  `json:"at"`
}

// Demand is a person's wish for a client now.
type Demand struct {
	// Reason is one of spec's: Resumed, Attached, Restarting or Updating.
	Reason string    `json:"reason"`
	At     time.Time `json:"at"`
	// Fresh asks for a new conversation.
	Fresh bool `json:"fresh,omitempty"`
}

// Termination is the end of an incarnation, or of an attempt without one.
type Termination struct {
	Incarnation int64         `json:"incarnation,omitempty"`
	Exit        *observe.Exit `json:"exit,omitempty"`
	Reason      string        `json:"reason"`
	Message     string        `json:"message,omitempty"`
	At          time.Time     `json:"at"`
}

// BackOff counts deaths.
type BackOff struct {
	// Deaths in a row, each within resetAfter of its start.
	Deaths int `json:"deaths,omitempty"`
	// LastDeathAt is when the last of them was accounted for.
	LastDeathAt time.Time `json:"lastDeathAt,omitzero"`
	// BoughtAt is when a demand last bought an immediate attempt.
	BoughtAt time.Time `json:"boughtAt,omitzero"`
}

// Latch is why a session stays down until a demand.
type Latch struct {
	// Reason is Terminated, Completed or NotRecovered.
	Reason  string    `json:"reason"`
	Message string    `json:"message,omitempty"`
	At      time.Time `json:"at"`
}

// Block is a failure that trying again cannot mend.
type Block struct {
	Reason  string `json:"reason"`
	Message string `json:"message"`
	// LookedFor and LookedIn of CommandNotFound, LookedFor and File (its interpreter)
	// of CommandNotExecutable, File of the EnvFile reasons: what to look at again.
	LookedFor string   `json:"lookedFor,omitempty"`
	LookedIn  []string `json:"lookedIn,omitempty"`
	File      string   `json:"file,omitempty"`
	// At is when the failure was found.
	At time.Time `json:"at"`
}

// RestartCount is the number of incarnations after the first.
func (r *Record) RestartCount() int64 { return max(r.Incarnation-1, 0) }

// Copy returns a deep copy, so that a plan can change it freely.
func (r Record) Copy() Record {
	out := r
	out.Spec = r.Spec.DeepCopy()
	out.Labels = maps.Clone(r.Labels)
	out.Class = r.Class.DeepCopy()
	out.Conversation = copyOf(r.Conversation)
	out.History = slices.Clone(r.History)
	if out.Attempt = copyOf(r.Attempt); out.Attempt != nil {
		out.Attempt.copyInside()
	}
	if out.Client = copyOf(r.Client); out.Client != nil {
		out.Client.Launched = r.Client.Launched.DeepCopy()
		out.Client.Demand = copyOf(r.Client.Demand)
	}
	if out.Stop = copyOf(r.Stop); out.Stop != nil {
		out.Stop.Descendants = slices.Clone(r.Stop.Descendants)
	}
	out.Intent = copyOf(r.Intent)
	out.Demand = copyOf(r.Demand)
	if out.LastTermination = copyOf(r.LastTermination); out.LastTermination != nil {
		out.LastTermination.Exit = copyOf(r.LastTermination.Exit)
	}
	out.Survivors = slices.Clone(r.Survivors)
	out.Latch = copyOf(r.Latch)
	if out.Block = copyOf(r.Block); out.Block != nil {
		out.Block.LookedIn = slices.Clone(r.Block.LookedIn)
	}
	return out
}

// copyInside replaces what a shares with the attempt that it is a copy of.
func (a *Attempt) copyInside() {
	a.Spec = *a.Spec.DeepCopy()
	a.Demand = copyOf(a.Demand)
	o := &a.Order
	o.Command, o.Base, o.Args = slices.Clone(o.Command), slices.Clone(o.Base), slices.Clone(o.Args)
	o.PromptArgs = slices.Clone(o.PromptArgs)
	o.Scope = copyOf(o.Scope)
	if o.Class = copyOf(o.Class); o.Class != nil {
		o.Class.Variables = maps.Clone(o.Class.Variables)
		o.Class.Env, o.Class.UnsetEnv = (&spec.ClientClassSpec{Env: o.Class.Env}).DeepCopy().Env, slices.Clone(o.Class.UnsetEnv)
		o.Class.Resume = copyOf(o.Class.Resume)
	}
	inside := (&spec.ClientSpec{Env: o.Env, EnvFrom: o.EnvFrom}).DeepCopy()
	o.Env, o.EnvFrom = inside.Env, inside.EnvFrom
}

func copyOf[T any](p *T) *T {
	if p == nil {
		return nil
	}
	v := *p
	return &v
}

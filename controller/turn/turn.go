// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

// Package turn keeps the turns that were sent to sessions: what is in the queue, what
// was handed over, what became of it. Each is on disk before anybody is told that it
// was taken, and before anything is done about it. It decides nothing and hands
// nothing over.
package turn

import (
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muxlet/muxlet/spec"
)

// Phase is how far a turn has come.
type Phase string

// The phases, in their order.
//
//	Pending -----> Delivering -----> Delivered -----> Over
//	   |  ^            |                                ^
//	   |  +------------+ nothing was handed over        |
//	   +------------------------------------------------+
const (
	// Pending: nothing of it was handed over.
	Pending Phase = "Pending"
	// Delivering: its hand-over has begun, or may have.
	Delivering Phase = "Delivering"
	// Delivered: the client has it and works on it.
	Delivered Phase = "Delivered"
	// Over: nothing more will be done or learned.
	Over Phase = "Over"
)

// State is one condition of a turn.
type State struct {
	Status  metav1.ConditionStatus `json:"status"`
	Reason  string                 `json:"reason"`
	Message string                 `json:"message,omitempty"`
	// At is when Status last changed.
	At time.Time `json:"at"`
}

// Turn is the durable memory of one turn, without its prompt.
type Turn struct {
	// Name is "<session>-<number>".
	Name string `json:"name"`
	// UID of the object.
	UID string `json:"uid"`
	// Session and SessionUID say to whom it was sent, Number in which order.
	Session    string `json:"session"`
	SessionUID string `json:"sessionUID"`
	Number     int64  `json:"number"`
	// Request is the value of spec.TurnRequestAnnotation; empty for none.
	Request string `json:"request,omitempty"`
	// Initial is true for a spec.initialPrompt.
	Initial   bool      `json:"initial,omitempty"`
	CreatedAt time.Time `json:"createdAt"`
	// Deadline by which the hand-over has to begin; zero for none.
	Deadline time.Time `json:"deadline,omitzero"`
	// Bytes and Lines of the prompt; Digest of it: see observe.PromptDigest.
	Bytes  int64  `json:"bytes"`
	Lines  int64  `json:"lines"`
	Digest string `json:"digest"`

	Phase Phase `json:"phase"`
	// Delivered and Completed are its conditions.
	Delivered State `json:"delivered"`
	Completed State `json:"completed"`
	// Retryable says, of one that has failed, whether to send it again can help.
	Retryable bool `json:"retryable,omitempty"`

	// Incarnation and Attempt to which it was handed over, or is about to be; Conversation
	// that the client had then.
	Incarnation  int64  `json:"incarnation,omitempty"`
	Attempt      string `json:"attempt,omitempty"`
	Conversation string `json:"conversation,omitempty"`
	// Method by which it is handed over.
	Method spec.SubmitMethod `json:"method,omitempty"`
	// HandedAt is when the hand-over began; PastedAt when the prompt is known to have
	// reached the client, or its queue; zero before.
	HandedAt time.Time `json:"handedAt,omitzero"`
	PastedAt time.Time `json:"pastedAt,omitzero"`
	// Submits counts the submit keys, SubmittedAt is when the last one was asked for, and
	// Before the digest of the screen right before the first.
	Submits     int       `json:"submits,omitempty"`
	SubmittedAt time.Time `json:"submittedAt,omitzero"`
	Before      string    `json:"before,omitempty"`
	// DeliveredAt is when the client has taken it; FinishedAt when it was over.
	DeliveredAt time.Time `json:"deliveredAt,omitzero"`
	FinishedAt  time.Time `json:"finishedAt,omitzero"`

	// Revision rises with each save. An update of another revision than the present one is
	// refused.
	Revision int64 `json:"revision"`
}

// Request is a turn to be made.
type Request struct {
	Session, SessionUID string
	// ID makes it known when it comes twice; empty: it is always another one.
	ID string
	// Initial turns come before all that are pending.
	Initial bool
	// Deadline; zero for none.
	Deadline time.Time
	// Prompt as it is handed over, valid by spec.CheckPrompt.
	Prompt string
}

// ErrChanged is matched by the error of an update of a turn that is another one by
// now: whoever decided about it looks again.
var ErrChanged = errors.New("the turn has changed meanwhile")

// ErrFull is matched by the error of a request for which there is no room in the
// session's queue.
var ErrFull = errors.New("too many turns wait")

// Limits of what is kept; 0 Turns or Bytes are no limit.
type Limits struct {
	// Turns of each session that are over, and how long they are kept.
	Turns int
	Age   time.Duration
	// Bytes of all prompts. Those of turns that are over are dropped, the oldest first.
	Bytes int64
}

// MaxPending is how many turns of one session can wait.
const MaxPending = 1000

// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package spec

import "strings"

// EffectKind is what becomes of a session's client.
type EffectKind string

// The kinds of effects.
const (
	// EffectUnknown: it cannot be told, such as while tmux does not answer.
	EffectUnknown EffectKind = "Unknown"
	// EffectUntouched: the client stays, or the session stays down.
	EffectUntouched EffectKind = "Untouched"
	// EffectRestartsWhenIdle: the client is replaced once it is idle.
	EffectRestartsWhenIdle EffectKind = "RestartsWhenIdle"
	// EffectRestartsNow: the client is replaced at once.
	EffectRestartsNow EffectKind = "RestartsNow"
	// EffectAtNextRestart: the client stays, and the next one is another one.
	EffectAtNextRestart EffectKind = "AtNextRestart"
	// EffectStarted: the session has no client and gets one.
	EffectStarted EffectKind = "Started"
	// EffectStopped: the client is ended, and the session stays down.
	EffectStopped EffectKind = "Stopped"
	// EffectBlocked: no client can be started. One that runs is kept if another could
	// not follow it by what is known before it is ended.
	EffectBlocked EffectKind = "Blocked"
	// EffectRemoved: the session goes.
	EffectRemoved EffectKind = "Removed"
	// EffectHeld: what the documents say is not in force; the session goes on with its
	// last good one.
	EffectHeld EffectKind = "Held"
)

// Effect is what becomes of a session's client and of its conversation.
type Effect struct {
	Kind EffectKind `json:"kind"`
	// Resumes is the conversation that the next client brings back; empty for none.
	Resumes string `json:"resumes,omitempty"`
	// Fresh is why the next client begins a new conversation; empty when it does not, or
	// has none.
	Fresh string `json:"fresh,omitempty"`
	// Reason is the reason of a condition that comes of it, and Message is for a person:
	// what is waited for, what stands in the way, why it is held.
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// Warning is what a person may not expect; empty for nothing.
	Warning string `json:"warning,omitempty"`
}

// String is the effect in words, without the warning.
func (e Effect) String() string {
	words := map[EffectKind]string{
		EffectUnknown: "not known", EffectUntouched: "untouched", EffectRestartsWhenIdle: "restarts when idle",
		EffectRestartsNow: "restarts now", EffectAtNextRestart: "at its next restart", EffectStarted: "started",
		EffectStopped: "stopped", EffectBlocked: "blocked", EffectRemoved: "removed", EffectHeld: "held",
	}[e.Kind]
	switch {
	case e.Resumes != "":
		words += ", resumes " + e.Resumes
	case e.Fresh != "":
		words += ", fresh conversation (" + e.Fresh + ")"
	}
	var why []string
	for _, part := range []string{e.Reason, e.Message} {
		if part != "" {
			why = append(why, part)
		}
	}
	if len(why) > 0 {
		words += " (" + strings.Join(why, ": ") + ")"
	}
	return words
}

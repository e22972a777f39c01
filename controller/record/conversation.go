// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package record

import (
	"slices"
	"time"

	"github.com/muxlet/muxlet/spec"
)

// Retire puts the conversation into the history, for one of spec's Replaced reasons.
// One that no client was ever given, and that is nobody's choice, is forgotten.
func (r *Record) Retire(reason string, at time.Time) {
	c := r.Conversation
	r.Conversation = nil
	if c == nil || c.spare() {
		return
	}
	r.forget(c.ID)
	r.History = slices.Insert(r.History, 0, PastConversation{Conversation: *c, ReplacedAt: at, Reason: reason})
	for len(r.History) > MaxHistory {
		r.History = slices.Delete(r.History, r.least(), r.least()+1)
	}
}

// spare is true for an id that was made up and never used.
func (c *Conversation) spare() bool {
	return !c.Used && !c.Begun && c.Source == spec.SourceAssigned
}

// least is the entry of the history that is missed least: the oldest that never had a
// turn, else the oldest.
func (r *Record) least() int {
	last := len(r.History) - 1
	for i := last; i > 0; i-- {
		if !r.History[i].Begun {
			return i
		}
	}
	return last
}

// Past finds the conversation in the history.
func (r *Record) Past(id string) (PastConversation, bool) {
	at := r.past(id)
	if at < 0 {
		return PastConversation{}, false
	}
	return r.History[at], true
}

func (r *Record) past(id string) int {
	return slices.IndexFunc(r.History, func(p PastConversation) bool { return p.ID == id })
}

// Bind makes c the conversation; the one before it must have been retired. What the
// history has of c leaves it.
func (r *Record) Bind(c Conversation) {
	r.forget(c.ID)
	r.Conversation = &c
}

func (r *Record) forget(id string) {
	if at := r.past(id); at >= 0 {
		r.History = slices.Delete(r.History, at, at+1)
	}
}

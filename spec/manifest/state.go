// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"maps"
	"time"

	"github.com/muxlet/muxlet/spec"
)

// State is what one Resolve leaves to the next. The zero value is the state
// before the first reading. A State is a value: no function changes the one that
// it is given.
type State struct {
	roots    map[string]baseline
	sessions map[string]memory
	classes  map[string]classMemory
}

// baseline is a root as it was when nothing was missing.
type baseline struct {
	access    Access
	device    uint64
	documents int
}

// memory is what is remembered of one session.
type memory struct {
	// good is the last valid document and file the one that declared the session
	// last, valid or not.
	good *spec.Session
	file string
	// winner is the file whose document goes on while two have the name.
	winner string
	// since is when the document was first missing; zero while it is there.
	since time.Time
	// held is the message under which the removal is held; empty if it is not.
	held string
	// damaged is set while held because a damaged file may have the document.
	damaged bool
	verdict verdict
	// readings that may have been made before the verdict: it outlives them.
	readings int
}

// verdict is why a missing document means a removal. It stands until the
// document is back, so that what began to be removed is not started again by a
// directory that disappears meanwhile.
type verdict string

const (
	undecided verdict = ""
	settled   verdict = "settled"
	confirmed verdict = "confirmed"
	deleted   verdict = "deleted"
)

// Confirm ends the holds of the named sessions: the next Resolve removes them,
// unless their documents are back. With no names it ends all holds, those of client
// classes too, except of sessions whose file is damaged: a typing mistake somewhere else is no part of
// what a person who confirms has in mind.
func Confirm(s State, names []string) State {
	next := s.clone()
	all := names == nil
	if all {
		for name, m := range next.sessions {
			if m.held != "" && !m.damaged {
				names = append(names, name)
			}
		}
	}
	for name, m := range next.classes {
		if all && m.held != "" && !m.damaged {
			m.verdict = confirmed
			next.classes[name] = m
		}
	}
	for _, name := range names {
		if m, found := next.sessions[name]; found && m.held != "" {
			m.verdict = confirmed
			next.sessions[name] = m
		}
	}
	return next
}

// Deleted marks a session as deleted by a person: without guard and settle time
// it is removed as soon as no document declares it. The mark ends when the
// document is seen again.
func Deleted(s State, name string) State {
	next := s.clone()
	m := next.sessions[name]
	m.verdict = deleted
	// The reading that is resolved next may have been made before the file was
	// edited; the one after it was not.
	m.readings = 1
	next.sessions[name] = m
	return next
}

// DeletedClass does the same for a client class, if no document declares it in the
// reading that is resolved next.
func DeletedClass(s State, name string) State {
	next := s.clone()
	if m, found := next.classes[name]; found {
		m.verdict = deleted
		next.classes[name] = m
	}
	return next
}

// Remembers tells whether a valid document of the session was seen, so that
// Known.LastGood is of no use.
func (s State) Remembers(name string) bool { return s.sessions[name].good != nil }

func (s State) clone() State {
	next := State{roots: maps.Clone(s.roots), sessions: maps.Clone(s.sessions), classes: maps.Clone(s.classes)}
	if next.roots == nil {
		next.roots = map[string]baseline{}
	}
	if next.sessions == nil {
		next.sessions = map[string]memory{}
	}
	if next.classes == nil {
		next.classes = map[string]classMemory{}
	}
	return next
}

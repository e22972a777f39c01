// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

// Package notify decides which notification is due. It remembers what a person was
// told of each session, so that each state is told once: not again while it holds, not
// again after a restart, and not at all once it is over or was seen. It tells nobody
// anything, asks for no time and reads nothing: all of that is given to it.
package notify

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/muxlet/muxlet/spec"
)

const (
	// settle is how long a state must hold before it is told, at least, and twice that at
	// most: what is answered at once disturbs nobody, and all states that begin within one
	// such span are told at the same time, and so together.
	settle = time.Second
	// alone is how many sessions are told of one by one, of those that are due at once
	// with the same event; of more than that a person is told once, together.
	alone = 3
	// most is how many notifications there are within the shortest interval of one
	// session, of all sessions.
	most = 10
	// tries is how often a notification is tried that fails.
	tries = 3
	// echo is how much later the same question may be reported once more: Claude Code
	// notifies of a permission dialog 6 s after it has reported it.
	echo = 15 * time.Second
)

// Occasion is a state of a session that a person may be told of.
type Occasion struct {
	Event spec.NotificationEvent
	// Reason and Message of the condition.
	Reason, Message string
	// Since when the session waits.
	Since time.Time
	// Attempt of the client; empty without one.
	Attempt string
}

// Subject is a session as it is now.
type Subject struct {
	UID, Name string
	// Known says that what its client shows was looked at. While it is not, a state that
	// is not among the occasions is not over.
	Known bool
	// Watched says that a person has it in front of them.
	Watched bool
	// Occasions that hold and that nobody has seen, at most one of each event.
	Occasions []Occasion
}

// Policy says what is told, and how often.
type Policy struct {
	On []spec.NotificationEvent
	// MinInterval between two notifications of one session.
	MinInterval time.Duration
	// FocusAfter is how long a session has to be in front of a person to count as seen.
	FocusAfter time.Duration
}

// Notice is one notification that is due.
type Notice struct {
	Event spec.NotificationEvent
	// About has one session, or several that are told together: the one that waits longest
	// first.
	About []About
}

// About is what there is to tell of one session.
type About struct {
	UID, Name string
	Occasion
}

// Mark is what must be remembered across a restart: that a person was told.
type Mark struct {
	UID     string                 `json:"uid"`
	Event   spec.NotificationEvent `json:"event"`
	Reason  string                 `json:"reason"`
	Attempt string                 `json:"attempt,omitempty"`
	// Since when the work had ended; zero of all else.
	Since time.Time `json:"since,omitzero"`
}

// Book has what was told of each session, and what was not yet. It is for one goroutine
// at a time.
type Book struct {
	entries map[string]*entry
	// revision counts the changes of the marks.
	revision int
	// epoch is from when the spans are counted in which states begin together.
	epoch time.Time
	// sent are the times of the last notifications, oldest first.
	sent []time.Time
}

// entry is what is known of one session.
type entry struct {
	name           string
	known, watched bool
	// watchedAt is since when it is watched; told when a person was last told of it.
	watchedAt, told time.Time
	states          map[spec.NotificationEvent]*state
}

// state is an occasion that holds.
type state struct {
	Occasion
	// first is when it was first seen to hold.
	first time.Time
	// told says that a person was told, or has seen it; tried counts the tries.
	told  bool
	tried int
	// kept is true of one that an earlier run has told, until it is seen to hold.
	kept bool
}

// NewBook makes a Book in which a person was told what the marks say.
func NewBook(marks []Mark) *Book {
	b := &Book{entries: map[string]*entry{}}
	for _, m := range marks {
		b.entry(m.UID).states[m.Event] = &state{Occasion: Occasion{Event: m.Event, Reason: m.Reason, Attempt: m.Attempt, Since: m.Since}, told: true, kept: true}
	}
	return b
}

func (b *Book) entry(uid string) *entry {
	e := b.entries[uid]
	if e == nil {
		e = &entry{states: map[spec.NotificationEvent]*state{}}
		b.entries[uid] = e
	}
	return e
}

// Marks are what is to be remembered, in a fixed order.
func (b *Book) Marks() []Mark {
	marks := []Mark{}
	for _, uid := range slices.Sorted(maps.Keys(b.entries)) {
		for _, event := range spec.NotificationEvents {
			if s := b.entries[uid].states[event]; s != nil && s.told {
				mark := Mark{UID: uid, Event: event, Reason: s.Reason, Attempt: s.Attempt}
				if event == spec.NotifyTurnCompleted {
					mark.Since = s.Since.Round(0).UTC()
				}
				marks = append(marks, mark)
			}
		}
	}
	return marks
}

// Revision is another number whenever the Marks may have changed.
func (b *Book) Revision() int { return b.revision }

// Observe takes in a session as it is now, and says whether that may be a reason to ask
// what is due.
func (b *Book) Observe(now time.Time, s Subject) (news bool) {
	if b.entries[s.UID] == nil && len(s.Occasions) == 0 {
		return false
	}
	e := b.entry(s.UID)
	news = e.known != s.Known || e.watched != s.Watched
	e.name, e.known = s.Name, s.Known
	e.watch(now, s.Watched)
	holds := map[spec.NotificationEvent]bool{}
	for _, o := range s.Occasions {
		holds[o.Event] = true
		news = b.take(now, e, o) || news
	}
	for event := range e.states {
		if s.Known && !holds[event] {
			b.drop(e, event)
			news = true
		}
	}
	if len(e.states) == 0 && e.told.IsZero() {
		delete(b.entries, s.UID)
	}
	return news
}

// take takes in an occasion that holds, and says whether it is another one than before.
func (b *Book) take(now time.Time, e *entry, o Occasion) (news bool) {
	before := e.states[o.Event]
	if before != nil && before.sameAs(o) {
		before.Occasion, before.kept = o, false
		return false
	}
	b.drop(e, o.Event)
	e.states[o.Event] = &state{Occasion: o, first: now}
	return true
}

// drop forgets a state that is over.
func (b *Book) drop(e *entry, event spec.NotificationEvent) {
	if s := e.states[event]; s != nil && s.told {
		b.revision++
	}
	delete(e.states, event)
}

// sameAs says whether an occasion is the one that is known. A question that is reported
// once more is; so is a question that an earlier run has told, of which only the reason
// is comparable. Ended work of another time is other work.
func (s *state) sameAs(o Occasion) bool {
	switch {
	case s.Reason != o.Reason || s.Attempt != o.Attempt:
		return false
	case o.Event == spec.NotifyTurnCompleted:
		return s.Since.Equal(o.Since)
	case s.kept, o.Event == spec.NotifyStalled:
		return true
	}
	return o.Since.Sub(s.Since) <= echo
}

// Watch says whether a person has a session in front of them, and whether that is news.
func (b *Book) Watch(now time.Time, uid string, watched bool) (news bool) {
	e := b.entries[uid]
	if e == nil || e.watched == watched {
		return false
	}
	e.watch(now, watched)
	return true
}

func (e *entry) watch(now time.Time, watched bool) {
	if watched && !e.watched {
		e.watchedAt = now
	}
	e.watched = watched
}

// Forget drops what is known of a session.
func (b *Book) Forget(uid string) {
	if e := b.entries[uid]; e != nil {
		for event := range e.states {
			b.drop(e, event)
		}
		delete(b.entries, uid)
	}
}

// Keep forgets all sessions but those that are known.
func (b *Book) Keep(known func(uid string) bool) {
	for uid := range b.entries {
		if !known(uid) {
			b.Forget(uid)
		}
	}
}

// Open are the sessions of which something is not told yet.
func (b *Book) Open() []string {
	var open []string
	for uid, e := range b.entries {
		for _, s := range e.states {
			if !s.told {
				open = append(open, uid)
				break
			}
		}
	}
	return open
}

// Failed says that a notification did not reach the person. It is tried again, a few
// times at most, while its state holds.
func (b *Book) Failed(n Notice) {
	for _, a := range n.About {
		if e := b.entries[a.UID]; e != nil {
			if s := e.states[n.Event]; s != nil && s.sameAs(a.Occasion) && s.tried < tries {
				s.told = false
				b.revision++
			}
		}
	}
}

// Due gives what a person is to be told now, at most so many notifications, and counts
// it as told: whoever asks sees to it that the Marks are on disk before anything is
// done. again is when to ask next if nothing changes; zero for never.
func (b *Book) Due(now time.Time, p Policy, room int) (due []Notice, again time.Time) {
	w := &wait{}
	b.sent = slices.DeleteFunc(b.sent, func(at time.Time) bool { return !at.Add(p.MinInterval).After(now) || at.After(now) })
	ready := b.ready(now, p, w)
	for _, event := range spec.NotificationEvents {
		about := ready[event]
		for _, n := range bundle(event, about, b.room(p, room-len(due))) {
			b.tell(now, n)
			due = append(due, n)
			about = about[len(n.About):]
		}
		if len(about) > 0 && len(b.sent) > 0 && room > len(due) {
			w.until(b.sent[0].Add(p.MinInterval))
		}
	}
	return due, w.at
}

// Next is when something is due; zero for never. It may be more than there is room for.
func (b *Book) Next(now time.Time, p Policy) time.Time {
	w := &wait{}
	if len(b.ready(now, p, w)) > 0 {
		return now
	}
	return w.at
}

// room is how many notifications there may be now.
func (b *Book) room(p Policy, free int) int {
	if p.MinInterval == 0 {
		return free
	}
	return min(free, most-len(b.sent))
}

// ready are the sessions of which a person is to be told, by event.
func (b *Book) ready(now time.Time, p Policy, w *wait) map[spec.NotificationEvent][]About {
	ready := map[spec.NotificationEvent][]About{}
	for uid, e := range b.entries {
		s := e.next(p)
		if s == nil {
			if len(e.states) == 0 && !e.told.Add(p.MinInterval).After(now) {
				delete(b.entries, uid)
			}
			continue
		}
		at := b.settled(s.first)
		if !e.told.IsZero() && !e.told.After(now) {
			at = later(at, e.told.Add(p.MinInterval))
		}
		switch {
		case !e.known:
		case e.watched && e.seen(now, s, p, w):
			s.told = true
			b.revision++
		case e.watched:
		case at.After(now):
			w.until(at)
		default:
			ready[s.Event] = append(ready[s.Event], About{UID: uid, Name: e.name, Occasion: s.Occasion})
		}
	}
	for _, about := range ready {
		slices.SortFunc(about, func(x, y About) int { return cmp.Or(x.Since.Compare(y.Since), strings.Compare(x.Name, y.Name)) })
	}
	return ready
}

// settled is when a state that was first seen at a time may be told.
func (b *Book) settled(first time.Time) time.Time {
	if b.epoch.IsZero() {
		b.epoch = first
	}
	// Added to the epoch, so that a clock that jumps changes nothing.
	since := first.Add(settle).Sub(b.epoch)
	span := since.Truncate(settle)
	if span < since {
		span += settle
	}
	return b.epoch.Add(span)
}

// next is the most urgent state of which a person is to be told; nil for none.
func (e *entry) next(p Policy) *state {
	for _, event := range spec.NotificationEvents {
		if s := e.states[event]; s != nil && !s.told && slices.Contains(p.On, event) {
			return s
		}
	}
	return nil
}

// seen says whether a person has had the state in front of them for long enough.
func (e *entry) seen(now time.Time, s *state, p Policy, w *wait) bool {
	at := later(e.watchedAt, s.first).Add(p.FocusAfter)
	if at.After(now) {
		w.until(at)
		return false
	}
	return true
}

// bundle makes notifications of sessions that are due with the same event, no more
// than there is room for: one by one, or together when they are many.
func bundle(event spec.NotificationEvent, about []About, room int) []Notice {
	switch {
	case len(about) == 0 || room <= 0:
		return nil
	case len(about) > alone || len(about) > room:
		return []Notice{{Event: event, About: about}}
	}
	var notices []Notice
	for _, a := range about {
		notices = append(notices, Notice{Event: event, About: []About{a}})
	}
	return notices
}

// tell counts a notification as told.
func (b *Book) tell(now time.Time, n Notice) {
	b.sent = append(b.sent, now)
	for _, a := range n.About {
		e := b.entries[a.UID]
		e.told = now
		e.states[n.Event].told = true
		e.states[n.Event].tried++
	}
	b.revision++
}

// wait is the first of several times.
type wait struct{ at time.Time }

func (w *wait) until(at time.Time) {
	if w.at.IsZero() || at.Before(w.at) {
		w.at = at
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

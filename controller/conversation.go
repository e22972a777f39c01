// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"maps"
	"strings"
	"time"

	"github.com/muxlet/muxlet/controller/plan"
	"github.com/muxlet/muxlet/controller/record"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec"
	"github.com/muxlet/muxlet/spec/manifest"
)

// classOf is the client class of a spec, from what is declared now or built in; nil
// when there is none of that name, or when another document may declare it than those
// that could be read: then the last good one counts, if the record has it.
func (c *Controller) classOf(r record.Record, sp *spec.SessionSpec) *plan.Class {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.resolveClass(r, sp)
}

// resolveClass is classOf. c.mu is held.
func (c *Controller) resolveClass(r record.Record, sp *spec.SessionSpec) *plan.Class {
	return classIn(&c.desired, r, sp)
}

// classIn is the class of a spec by a set of documents.
func classIn(set *manifest.DesiredSet, r record.Record, sp *spec.SessionSpec) *plan.Class {
	name := sp.ClientClassName
	if name == "" {
		name = spec.ClassExec
	}
	class, doubt := set.Class(name)
	if class == nil || doubt != "" && r.Class != nil && r.ClassName == name {
		return nil
	}
	return &plan.Class{Name: name, Spec: &class.Spec, Revision: spec.ClassRevision(class)}
}

// classInForce is the class by which the decisions about a session go; nil while there
// is none. c.mu is held.
func (c *Controller) classInForce(s *session) *plan.Class {
	sp, _ := c.declared(s)
	if sp == nil {
		return nil
	}
	return plan.ClassOf(&s.rec, sp, c.resolveClass(s.rec, sp))
}

// asksToAdopt says whether the spec names a conversation that was not taken up yet.
func asksToAdopt(r record.Record, sp *spec.SessionSpec) bool {
	id := sp.Conversation.ID
	return id != "" && id != r.AdoptedID && (r.Conversation == nil || r.Conversation.ID != id)
}

// evidence is what was found last of one conversation, and when it was asked for. It
// belongs to the worker that has the session's key.
type evidence struct {
	of    observe.ConversationRef
	found observe.Evidence
	at    time.Time
	// known says that found was found at all.
	known bool
	aside aside[answered]
}

// answered is evidence of what was asked for, which may be another conversation by
// now.
type answered struct {
	of    observe.ConversationRef
	found observe.Evidence
	at    time.Time
}

// same compares what is looked for. Its class is compared by what is looked for with
// it.
func (e *evidence) same(ref observe.ConversationRef) bool {
	a, b := e.of, ref
	sameClass := a.Class != nil && b.Class != nil && a.Class.Conversation == b.Class.Conversation && a.Class.Reports == b.Class.Reports
	a.Class, b.Class = nil, nil
	return sameClass && a == b
}

// take keeps an answer, if it is to what ref asks.
func (e *evidence) take(got answered, ref observe.ConversationRef) {
	if (&evidence{of: got.of}).same(ref) {
		e.found, e.at, e.known = got.found, got.at, true
	}
}

// evidenceOf gives the evidence of ref. One that is not older than fresh is waited for
// within the patience, and what is older is no answer then: a start must not rest on
// what was true before the client's death. Without patience it is what was found last.
func (c *Controller) evidenceOf(s *session, ref observe.ConversationRef, fresh time.Time, patience time.Duration) observe.Evidence {
	e := &s.evidence
	if !e.same(ref) {
		e.of, e.known, e.found = ref, false, observe.Evidence{}
	}
	// One that nobody waited for is newer than what was found before.
	if got, ok := e.aside.answered(); ok {
		e.take(got, ref)
	}
	// The answer to an earlier question may be the first to come.
	for range 2 {
		if e.known && !e.at.Before(fresh) {
			return e.found
		}
		got, ok := c.askEvidence(s, ref, patience)
		if !ok {
			break
		}
		e.take(got, ref)
	}
	if patience > 0 && (!e.known || e.at.Before(fresh)) {
		return observe.Evidence{Message: "its transcript could not be read in time: the file system does not answer"}
	}
	return e.found
}

// lateAnswer is how old the answer about a conversation may be that a start rests on,
// where the file system is too slow for a newer one; somewhat more than the patience of
// a look.
const lateAnswer = 3 * time.Second

// evidenceForStart looks anew. Where that takes longer than a pass can wait, the answer
// to the question of an earlier pass has to do, unless something has changed since: else
// a session on a slow file system would ask for ever and never be started.
func (c *Controller) evidenceForStart(s *session, ref observe.ConversationRef, now, changed time.Time) observe.Evidence {
	found := c.evidenceOf(s, ref, now, asidePatience)
	if e := &s.evidence; e.known && e.at.Before(now) && !e.at.Before(now.Add(-lateAnswer)) && e.at.After(changed) {
		return e.found
	}
	return found
}

// lastChange is when the session's client ended last, or a person asked for one.
func lastChange(in *plan.Input) time.Time {
	var last time.Time
	if t := in.Record.LastTermination; t != nil {
		last = t.At
	}
	if in.Record.Client != nil {
		last = in.Now.Add(-in.Seen.GoneFor)
	}
	if d := in.Record.Demand; d != nil && d.At.After(last) {
		last = d.At
	}
	return last
}

func (c *Controller) askEvidence(s *session, ref observe.ConversationRef, patience time.Duration) (answered, bool) {
	began, before, known := c.Clock.Now(), s.evidence.found, s.evidence.known
	found := make(chan observe.Evidence, 1)
	return s.evidence.aside.ask(c.Clock, patience, func() answered {
		got := c.Clients.Evidence(ref)
		found <- got
		return answered{ref, got, began}
	}, func() {
		// Somebody waits for it, or it is news.
		if got := <-found; patience > 0 || !known || got != before {
			c.queue.Add(s.name)
		}
	})
}

// gatherConversation adds what is known of the conversation to a decision's input.
func (c *Controller) gatherConversation(s *session, in *plan.Input, sp *spec.SessionSpec) {
	c.mu.Lock()
	in.Heard = c.heardOf(s)
	if t := s.present(); t != nil {
		in.Sight = t.present()
	}
	due := s.evidenceDue
	s.evidenceDue = false
	c.mu.Unlock()
	ref, known := plan.Reference(*in)
	if !known || c.Clients == nil {
		return
	}
	now := c.Clock.Now()
	if mayStart(s, in, sp) {
		in.Evidence = c.evidenceForStart(s, ref, now, lastChange(in))
		in.Rival = c.claim(s, ref.ID, asksToAdopt(s.rec, sp) && ref.ID == sp.Conversation.ID)
		return
	}
	old := now.Add(-c.settings().Resync)
	if s.rec.Client == nil {
		old = now.Add(-restResyncs * c.settings().Resync)
	}
	if due {
		old = now
	}
	in.Evidence = c.evidenceOf(s, ref, old, 0)
	if asksToAdopt(s.rec, sp) && ref.ID == sp.Conversation.ID {
		// A client is not ended for a conversation that the next one would not get.
		in.Rival = c.claim(s, ref.ID, true)
	}
}

// mayStart says whether this pass may lead to a start: then what it rests on is
// looked at anew.
func mayStart(s *session, in *plan.Input, sp *spec.SessionSpec) bool {
	r := &s.rec
	if r.Attempt != nil || (r.Client != nil && in.Seen.Client != observe.Gone) {
		return false
	}
	if sleeps(in, sp) {
		return false
	}
	return !sp.Suspend && (r.Latch == nil || r.Demand != nil || len(in.Turns) > 0)
}

// mayTry says whether nothing but its credential is known to keep the session down: the
// one that is to try the credential must not be one that cannot be started.
func mayTry(s *session, in *plan.Input, sp *spec.SessionSpec) bool {
	blocked := s.rec.Block != nil && in.Block == plan.ObstacleStands && s.rec.Demand == nil
	return mayStart(s, in, sp) && !blocked && in.Desired.Refusal.Reason == "" && in.Workspace.Obstacle == "" &&
		in.Rival == "" && in.Evidence.Holder == 0
}

// claim names the session that has the conversation id, if another one has. Else the
// id is kept for s until its pass is over: two that take up the same at the same
// time must not both find it free. Of two that ask to adopt it the older one gets it.
func (c *Controller) claim(s *session, id string, adopt bool) (rival string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if rival = c.rivalOf(s, id, adopt); rival == "" {
		c.claims[id] = s.name
	}
	return rival
}

// rivalOf is the session that has the conversation id, or is to have it before s; empty
// for none. c.mu is held.
func (c *Controller) rivalOf(s *session, id string, adopt bool) string {
	if owner := c.ownerOf(id, s); owner != nil && (adopt || c.claims[id] == owner.name || !succeeds(s, owner)) {
		return owner.name
	}
	if adopt {
		if elder := c.elderOf(id, s); elder != nil {
			return elder.name
		}
	}
	return ""
}

// succeeds: the records of s and other have the same conversation, as they do when a
// session that was removed is declared again after another has taken up what it had. It
// is of the one that took it up later, as soon as no client of the other has it: each
// would wait for the other for ever.
func succeeds(s, other *session) bool {
	if other.rec.Client != nil || other.rec.Attempt != nil || other.rec.Conversation == nil || s.rec.Conversation == nil {
		return false
	}
	x, y := s.rec.Conversation.BoundAt, other.rec.Conversation.BoundAt
	return x.After(y) || x.Equal(y) && s.name < other.name
}

// unclaim ends what claim has begun. c.mu is held.
func (c *Controller) unclaim(s *session) {
	maps.DeleteFunc(c.claims, func(_, name string) bool { return name == s.name })
}

// ownerOf is the session, other than s, whose record has the conversation, or which
// is about to have it; nil for none. c.mu is held.
func (c *Controller) ownerOf(id string, s *session) *session {
	if id == "" {
		return nil
	}
	if name := c.claims[id]; name != "" && name != s.name {
		return c.sessions[name]
	}
	for _, other := range c.sessions {
		if other != s && other.rec.Conversation != nil && other.rec.Conversation.ID == id {
			return other
		}
	}
	return nil
}

// elderOf is a session, older than s, that asks to adopt the same conversation; nil
// for none. c.mu is held.
func (c *Controller) elderOf(id string, s *session) *session {
	for _, other := range c.sessions {
		sp, _ := c.declared(other)
		if d := c.desired.Sessions[other.name]; d.Session != nil {
			sp = &d.Session.Spec
		}
		if other == s || sp == nil || sp.Conversation.ID != id || !asksToAdopt(other.rec, sp) {
			continue
		}
		if older(other, s) {
			return other
		}
	}
	return nil
}

func older(a, b *session) bool {
	x, y := createdAt(a), createdAt(b)
	if a.rec.UID == "" || x.IsZero() {
		return false
	}
	return x.Before(y) || (x.Equal(y) && a.name < b.name)
}

const (
	// quickExit is how soon after its start a client ends that has not found its
	// conversation; see plan.
	quickExit = 30 * time.Second
	// notFoundLines is how far up its words may have been scrolled by what tmux writes
	// into a dead pane.
	notFoundLines = 20
)

// notFound says whether the dead pane of a client that was to resume a conversation
// shows the words of its class for one that does not exist.
func (c *Controller) notFound(ctx context.Context, s *session, in plan.Input) bool {
	client := s.rec.Client
	if client == nil || client.Resumes == "" || in.Seen.Client != observe.Gone || in.Now.Sub(client.StartedAt) > quickExit+in.Seen.GoneFor {
		return false
	}
	class := plan.ClassOf(&in.Record, in.Record.Spec, in.Class)
	if class == nil || class.Spec.Conversation.NotFoundPattern == "" {
		return false
	}
	if s.notFoundOf == client.Attempt {
		return s.notFound
	}
	for _, pane := range in.Seen.Panes {
		if pane.PaneID != client.Pane || pane.State != observe.Dead || pane.Labels.Attempt != client.Attempt {
			continue
		}
		taken, err := c.Tmux.Capture(ctx, pane.PaneID, notFoundLines)
		if err != nil || taken.Attempt != client.Attempt || !taken.Dead {
			return false
		}
		s.notFoundOf = client.Attempt
		s.notFound = observe.Matches(class.Spec.Conversation.NotFoundPattern, strings.Join(taken.Own().Lines, "\n"))
		return s.notFound
	}
	return false
}

// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/muxlet/muxlet/controller/plan"
	"github.com/muxlet/muxlet/controller/record"
	"github.com/muxlet/muxlet/controller/server"
	"github.com/muxlet/muxlet/spec"
	"github.com/muxlet/muxlet/spec/durable"
	"github.com/muxlet/muxlet/spec/manifest"
)

// loadRecords reads what an earlier daemon remembered. Nothing in it is shown as
// true before it was observed.
func (c *Controller) loadRecords() error {
	if err := c.Store.Prepare(); err != nil {
		return err
	}
	loaded, err := c.Store.Load()
	if err != nil {
		return err
	}
	for _, uid := range loaded.Recovered {
		c.Log.Info("Recovered record from its previous generation", "sessionUID", uid)
	}
	// The API may be served already.
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, b := range loaded.Bad {
		c.Log.Error(b.Err, "Record could not be used", "sessionUID", b.UID, "session", b.Name)
		switch {
		case b.Name != "" && !errors.Is(b.Err, durable.ErrCorrupt):
			c.bad[b.Name] = b
		case !errors.Is(b.Err, durable.ErrCorrupt):
			c.tell("", b.UID, plan.Event{Type: plan.Warning, Reason: spec.ReasonRecordTooNew, Message: badRecord(b).Message})
		default:
			c.tell(b.Name, b.UID, plan.Event{Type: plan.Warning, Reason: spec.ReasonRecordQuarantined, Message: quarantinedMessage(b.UID)})
			if b.Name == "" {
				c.nameless[b.UID] = true
			} else {
				c.damaged[b.Name] = true
			}
		}
	}
	for _, r := range loaded.Records {
		s := newSession(r.Name)
		s.hold(r)
		c.sessions[r.Name] = s
		c.publish(s)
		c.first.expect(r.Name)
		if r.Attempt != nil {
			c.budget.hold(r.Name)
			c.attempts[r.Attempt.ID] = r.Name
		}
	}
	return nil
}

func quarantinedMessage(uid string) string {
	return fmt.Sprintf("Both generations of the record were damaged and set aside (quarantine/%s.json): what runs is adopted by its labels, else the session begins anew, unless it had a conversation", uid)
}

// quarantineBlock is why a record that is made anew must not lead to a blank start: the
// session had one that was damaged, or may have had it, since it was declared when this
// daemon came and there is one that tells no name. plan lets it stand for a client that
// has conversations, and only until a person decides. c.mu is held.
func (c *Controller) quarantineBlock(name string) *record.Block {
	if !c.damaged[name] && (len(c.nameless) == 0 || c.first.told) {
		return nil
	}
	return &record.Block{Reason: spec.ReasonRecordQuarantined, At: c.now(), Message: fmt.Sprintf(
		"its record was damaged and set aside (quarantine/), so that its conversation is not known any more: name it in spec.conversation.id, or begin a new one with `muxlet resume %s --fresh`", name)}
}

// tellNameless tells a session that gets a record of a damaged one that did not
// tell its name. With its uid it was this session's own; otherwise it may have
// been, unless its own was archived.
func (c *Controller) tellNameless(r record.Record, archived bool) {
	if len(c.nameless) == 0 || archived {
		return
	}
	message := "A damaged record that did not tell its session was set aside (quarantine/): if it was this session's, its numbers and back-off begin anew"
	if c.nameless[r.UID] {
		delete(c.nameless, r.UID)
		message = quarantinedMessage(r.UID)
	}
	c.tell(r.Name, r.UID, plan.Event{Type: plan.Warning, Reason: spec.ReasonRecordQuarantined, Message: message})
}

// unfinishedRetry is when a manifest that is being written is looked at again: no
// notice comes when its writer closes it.
const unfinishedRetry = 100 * time.Millisecond

// watchManifests reads the manifests at hints, at the end of settle times and at
// each resync, until ctx ends.
func (c *Controller) watchManifests(ctx context.Context) {
	period := c.settings().Resync
	resync := c.Clock.NewTicker(period)
	defer func() { resync.Stop() }()
	for {
		if now := c.settings().Resync; now != period {
			period = now
			resync.Stop()
			resync = c.Clock.NewTicker(period)
		}
		next := c.refresh(nil)
		c.tidy()
		var settle <-chan time.Time
		if !next.IsZero() {
			settle = c.Clock.After(max(next.Sub(c.now()), time.Millisecond))
		}
		select {
		case <-ctx.Done():
			return
		case <-c.watcher.Hints():
		case <-settle:
		case <-c.reread:
			// Less may be kept by now.
			c.tidied = time.Time{}
			c.lookAtAll()
		case <-resync.C():
			c.lookAtAll()
		}
	}
}

// lookAtAll asks for a look at the server that is passed on to every session.
func (c *Controller) lookAtAll() {
	c.mu.Lock()
	c.resyncDue = true
	c.mu.Unlock()
	c.queue.Add(serverKey)
}

// refresh reads the manifests once and asks for a look at each session of which
// something else is wanted now. change, when given, edits the state first. It
// returns when another reading is due; zero when only a change matters.
func (c *Controller) refresh(change func(manifest.State) manifest.State) time.Time {
	c.desiredMu.Lock()
	defer c.desiredMu.Unlock()
	began, settings := c.Clock.Now(), c.settings()
	c.reader.Defaults = settings.SessionDefaults
	reading := c.reader.Read(settings.Manifests)
	now := c.now()
	if change != nil {
		c.manifestState = change(c.manifestState)
	}
	set, state := manifest.Resolve(c.manifestState, reading, c.known(), now, settings.ManifestPolicy)
	c.manifestState = state
	c.noteRoots(reading)
	c.watcher.Sync(reading)
	for _, name := range c.take(set) {
		// Whether an edit may replace the client depends on who is attached now.
		c.enqueue(name, began)
	}
	if soon := now.Add(unfinishedRetry); reading.Unfinished && (set.NextCheck.IsZero() || soon.Before(set.NextCheck)) {
		return soon
	}
	return set.NextCheck
}

// noteRoots remembers what was found in each root, for a person who finds nothing.
func (c *Controller) noteRoots(reading manifest.Reading) {
	roots := make([]server.ManifestRoot, 0, len(reading.Roots))
	for _, root := range reading.Roots {
		roots = append(roots, server.ManifestRoot{Path: root.Path, Files: filesBelow(root.Path, reading.Files), Problem: root.Message})
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.roots = roots
}

func filesBelow(root string, files []manifest.File) int {
	n := 0
	for _, f := range files {
		if f.Path == root || strings.HasPrefix(f.Path, strings.TrimSuffix(root, "/")+"/") {
			n++
		}
	}
	return n
}

// known is what the records say of each session. The last good document is copied
// only where the readings so far have not shown one. c.desiredMu is held.
func (c *Controller) known() []manifest.Known {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := make([]manifest.Known, 0, len(c.sessions))
	for name, s := range c.sessions {
		r := s.rec
		if r.UID == "" {
			continue
		}
		k := manifest.Known{Name: name, UID: r.UID, File: r.File, Held: r.Held, Running: r.Client != nil || r.Attempt != nil}
		if !r.RemovedAt.IsZero() {
			k.Removal = manifest.RemovalDecided
		}
		if r.Spec != nil && !c.manifestState.Remembers(name) {
			k.LastGood = sessionObject(r)
		}
		known = append(known, k)
	}
	slices.SortFunc(known, func(a, b manifest.Known) int { return strings.Compare(a.Name, b.Name) })
	return known
}

// take makes set the desired one and returns the names of which something is
// different.
func (c *Controller) take(set manifest.DesiredSet) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.desired
	c.desired, c.read, c.readAt = set, true, c.Clock.Now()
	var changed []string
	for name, d := range set.Sessions {
		s := c.sessions[name]
		if s == nil {
			if d.Presence == manifest.Removed {
				continue
			}
			s = newSession(name)
			c.sessions[name] = s
			c.publish(s)
		}
		old, had := before.Sessions[name]
		news := !had || differs(old, d)
		if news || classDiffers(&before, &set, d) {
			s.wanted++
			changed = append(changed, name)
		}
		if news {
			c.tellDesired(s, old, d)
		}
	}
	for name, s := range c.sessions {
		if _, ok := set.Sessions[name]; !ok && s.rec.UID == "" {
			delete(c.sessions, name)
			c.retract(s)
			c.forgetNotified(s)
		}
	}
	c.publishClasses()
	c.tellProblems(before.Problems, set.Problems)
	return changed
}

// classDiffers says whether the class of a session is another one than before.
func classDiffers(before, now *manifest.DesiredSet, d manifest.Desired) bool {
	if d.Session == nil {
		return false
	}
	a, doubtA := before.Class(d.Session.Spec.ClientClassName)
	b, doubtB := now.Class(d.Session.Spec.ClientClassName)
	return a != b || doubtA != doubtB
}

func differs(a, b manifest.Desired) bool {
	return a.Presence != b.Presence || a.Session != b.Session || a.File != b.File || a.Line != b.Line ||
		a.Reason != b.Reason || a.Message != b.Message || !slices.Equal(a.Problems, b.Problems)
}

// tellDesired says once what is wrong with a session's document.
func (c *Controller) tellDesired(s *session, old, d manifest.Desired) {
	if d.Reason == old.Reason && d.Message == old.Message {
		return
	}
	switch d.Reason {
	case spec.ReasonInvalid, spec.ReasonDuplicateName, spec.ReasonRemovalHeld:
		c.tell(s.name, s.rec.UID, plan.Event{Type: plan.Warning, Reason: d.Reason, Message: d.Message})
	case spec.ReasonAccepted:
		if len(d.Problems) > 0 {
			c.tell(s.name, s.rec.UID, plan.Event{Type: plan.Warning, Reason: spec.ReasonDuplicateName, Message: d.Message})
		}
	}
}

// tellProblems logs each problem of the files once.
func (c *Controller) tellProblems(before, now []spec.Problem) {
	told := make(map[spec.Problem]bool, len(before))
	for _, p := range before {
		told[p] = true
	}
	for _, p := range now {
		if !told[p] {
			c.Log.Info("Found a problem in a manifest", "problem", p.Error())
		}
	}
}

// readPatience is how long a start waits for the first reading of the manifests.
// A directory on a dead mount must not keep every session down: then the last
// good specs are in force.
const readPatience = 10 * time.Second

// wish is what the manifests say about a session.
type wish struct {
	plan.Desired
	source spec.SourceStatus
	// early is true while the manifests were not read yet: nothing is started that
	// a document may forbid by now.
	early bool
	// presence of its document.
	presence manifest.Presence
	// problem is why the present document is not in use.
	problem plan.Verdict
	// count is the session's count of changes that this is the state of.
	count int
}

// remembered is the record with what the manifests have decided about its
// removal, so that the next daemon goes on with it.
func (w wish) remembered(r record.Record, now time.Time) record.Record {
	switch w.presence {
	case manifest.Removed:
		if r.RemovedAt.IsZero() {
			r.RemovedAt = now
		}
	case manifest.Present:
		r.RemovedAt = time.Time{}
	case manifest.Held, manifest.Settling, manifest.PresenceUnknown:
	}
	return r
}

// wishOf turns what the manifests say into what plan is asked.
func (c *Controller) wishOf(s *session) wish {
	c.mu.Lock()
	defer c.mu.Unlock()
	d, ok := c.desired.Sessions[s.name]
	w := wish{source: spec.SourceStatus{File: s.rec.File}, count: s.wanted}
	if !c.read || !ok {
		w.Held = s.rec.Held
		w.early = !c.read && c.Clock.Now().Sub(c.startedAt) < readPatience
		switch {
		case !s.rec.RemovedAt.IsZero():
			w.Refusal = plan.Verdict{Reason: spec.ReasonRemoved, Message: "its removal is under way"}
		case w.early:
			w.Refusal = plan.Verdict{Reason: spec.ReasonStarting, Message: "the manifests were not read yet"}
		}
		return w
	}
	w.take(d)
	if b, ok := c.bad[s.name]; ok && s.rec.UID == "" {
		w.Refusal = badRecord(b)
		w.problem = w.Refusal
	}
	return w
}

// take is what one document, or its absence, asks for.
func (w *wish) take(d manifest.Desired) {
	w.presence = d.Presence
	w.File, w.source.File, w.source.Line = d.File, d.File, d.Line
	if d.Session != nil {
		w.Spec, w.Labels = &d.Session.Spec, d.Session.Labels
	}
	switch d.Presence {
	case manifest.Removed:
		w.Want = plan.Remove
	case manifest.Held:
		w.Held, w.source.Held = d.Message, d.Message
	case manifest.Settling, manifest.Present, manifest.PresenceUnknown:
	}
	w.takeProblems(d)
}

// takeProblems notes what is wrong with the document, and whether that is a
// reason not to start. One that is in force has a problem when another document
// has its name.
func (w *wish) takeProblems(d manifest.Desired) {
	if d.Reason == spec.ReasonInvalid || d.Reason == spec.ReasonDuplicateName {
		w.problem = plan.Verdict{Reason: d.Reason, Message: problems(d)}
	}
	if w.problem.Reason != "" || len(d.Problems) > 0 {
		w.source.Error = problems(d)
	}
	if d.Reason == spec.ReasonDuplicateName || d.Session == nil {
		w.Refusal = w.problem
	}
}

func problems(d manifest.Desired) string {
	if d.Message != "" {
		return d.Message
	}
	words := make([]string, 0, len(d.Problems))
	for _, p := range d.Problems {
		words = append(words, p.Error())
	}
	return strings.Join(words, "; ")
}

func badRecord(b record.Bad) plan.Verdict {
	return plan.Verdict{Reason: spec.ReasonRecordTooNew, Message: fmt.Sprintf("record %s cannot be used: %v; mend that and start the daemon again, or move the file away to start anew", b.UID, b.Err)}
}

// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muxlet/muxlet/controller/plan"
	"github.com/muxlet/muxlet/controller/record"
	"github.com/muxlet/muxlet/controller/server"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec"
	"github.com/muxlet/muxlet/spec/manifest"
)

const (
	// foresightLimit is how long all of an answer may take, and lookLimit how long tmux is
	// waited for.
	foresightLimit = 3 * time.Second
	lookLimit      = 1500 * time.Millisecond
	// foreseenAtOnce is how many sessions are looked at at the same time.
	foreseenAtOnce = 8
)

// foresight is one answer to what would become of the sessions.
type foresight struct {
	*Controller
	// before and set are what the documents say and would say; edited says that they are
	// two.
	before, set manifest.DesiredSet
	edited      bool
	snap        *snapshot
	instance    string
}

// Diff tells what would be different if manifests said something else, and what comes
// of it.
func (c *Controller) Diff(ctx context.Context, request server.DiffRequest) (server.DiffResult, error) {
	<-c.loaded
	began := c.Clock.Now()
	ctx, cancel := context.WithTimeout(ctx, foresightLimit)
	defer cancel()
	f := &foresight{Controller: c, edited: len(request.Files) > 0}
	if err := f.read(request.Files); err != nil {
		return server.DiffResult{}, err
	}
	names := f.touched()
	result := server.DiffResult{Sessions: make([]server.SessionDiff, len(names)), Classes: f.classes()}
	if len(names) == 0 {
		return result, nil
	}
	f.look(ctx, began)
	var all sync.WaitGroup
	places := make(chan struct{}, foreseenAtOnce)
	for i, name := range names {
		places <- struct{}{}
		all.Go(func() {
			result.Sessions[i] = f.session(ctx, name)
			<-places
		})
	}
	all.Wait()
	result.Sessions = slices.DeleteFunc(result.Sessions, func(d server.SessionDiff) bool { return !f.edited && nothingWaits(d) })
	return result, nil
}

// read judges the documents as they would be, by what judges them when they are.
func (f *foresight) read(files []server.DiffFile) error {
	c := f.Controller
	c.refresh(nil)
	c.desiredMu.Lock()
	defer c.desiredMu.Unlock()
	c.mu.Lock()
	f.before, f.instance = c.desired, c.instance
	if !c.server.scanned {
		f.instance = ""
	}
	read := c.read
	c.mu.Unlock()
	f.set = f.before
	switch {
	case !read:
		return server.NewError(metav1.StatusReasonServiceUnavailable, "", "the manifests were not read yet: try again in a moment")
	case !f.edited:
		return nil
	}
	contents := make(map[string][]byte, len(files))
	for _, file := range files {
		contents[file.Path] = file.Content
	}
	settings := c.settings()
	c.reader.Defaults = settings.SessionDefaults
	reading, err := c.reader.Read(settings.Manifests).With(contents, settings.SessionDefaults)
	if err != nil {
		return server.NewError(server.ReasonInvalid, "", err.Error())
	}
	f.set, _ = manifest.Resolve(c.manifestState, reading, c.known(), c.now(), settings.ManifestPolicy)
	return nil
}

// touched are the sessions of which something else would be wanted; without an edit all
// for which something is left to do.
func (f *foresight) touched() []string {
	var names []string
	for name, d := range f.set.Sessions {
		was, had := f.before.Sessions[name]
		if f.edited && had && was.Session == d.Session && was.Presence == d.Presence && was.Reason == d.Reason && !classDiffers(&f.before, &f.set, d) {
			continue
		}
		names = append(names, name)
	}
	if !f.edited {
		f.mu.Lock()
		names = slices.DeleteFunc(names, func(name string) bool {
			s := f.sessions[name]
			return s != nil && s.rest != nil && s.wanted == s.judged && f.set.Sessions[name].Reason == spec.ReasonAccepted
		})
		f.mu.Unlock()
	}
	slices.Sort(names)
	return names
}

// classes that would be others.
func (f *foresight) classes() []server.ClassDiff {
	names := maps.Clone(f.before.Classes)
	maps.Copy(names, f.set.Classes)
	var out []server.ClassDiff
	for _, name := range slices.Sorted(maps.Keys(names)) {
		was, _ := f.before.Class(name)
		is, _ := f.set.Class(name)
		if !equality.Semantic.DeepEqual(was, is) {
			out = append(out, server.ClassDiff{Name: name, InForce: was.DeepCopy(), Wanted: is.DeepCopy()})
		}
	}
	return out
}

// look lists the panes once for all. A tmux that does not answer is not waited for.
func (f *foresight) look(ctx context.Context, notBefore time.Time) {
	ctx, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
	seen := make(chan *snapshot, 1)
	// The listing is shared with the loop, and goes on without whoever waits for it.
	go func() { seen <- f.Controller.look(context.WithoutCancel(ctx), notBefore) }()
	select {
	case f.snap = <-seen:
	case <-ctx.Done():
		f.snap = &snapshot{began: notBefore, view: observe.ServerView{
			State: observe.ServerUnknown, Reason: spec.ReasonTmuxTimeout, Message: fmt.Sprintf("tmux did not answer within %s", lookLimit)}}
	}
}

// session is what would be different of one.
func (f *foresight) session(ctx context.Context, name string) server.SessionDiff {
	d := f.set.Sessions[name]
	out := server.SessionDiff{Name: name, File: d.File, Line: d.Line, InForce: documentOf(f.before.Sessions[name].Session), Wanted: documentOf(d.Session)}
	in, s := f.input(name, d)
	if !f.edited {
		out.InForce = launchedFrom(&in.Record, out.Wanted)
	}
	switch d.Presence {
	case manifest.Held, manifest.Settling, manifest.Removed:
		out.Wanted = nil
	case manifest.Present, manifest.PresenceUnknown:
	}
	out.Effect = f.effect(ctx, in, s, d)
	return out
}

// effect is what the documents decide by themselves, else what the loop would do.
func (f *foresight) effect(ctx context.Context, in plan.Input, s *session, d manifest.Desired) spec.Effect {
	switch {
	case d.Presence == manifest.Held, d.Session != nil && d.Presence == manifest.Present && d.Reason != spec.ReasonAccepted:
		return spec.Effect{Kind: spec.EffectHeld, Reason: d.Reason, Message: problems(d)}
	case d.Presence == manifest.Settling:
		in.Desired.Want = plan.Remove
		e := plan.Foresee(in, f.outlook(ctx, s, d))
		e.Message = cmp.Or(e.Message, d.Message)
		return e
	case in.Record.UID == "" && in.Desired.Refusal.Reason == "":
		return spec.Effect{Kind: spec.EffectUnknown, Reason: in.Seen.Reason, Message: in.Seen.Message}
	case in.Record.UID == "":
		return spec.Effect{Kind: spec.EffectBlocked, Reason: in.Desired.Refusal.Reason, Message: in.Desired.Refusal.Message}
	}
	return plan.Foresee(in, f.outlook(ctx, s, d))
}

// nothingWaits: the session is as its documents want it.
func nothingWaits(d server.SessionDiff) bool {
	return d.Effect.Kind == spec.EffectUntouched && d.Effect.Warning == ""
}

// documentOf is what a document declares of a session.
func documentOf(s *spec.Session) *spec.Session {
	if s == nil {
		return nil
	}
	return &spec.Session{
		TypeMeta:   metav1.TypeMeta{APIVersion: spec.GroupVersion.String(), Kind: spec.KindSession},
		ObjectMeta: metav1.ObjectMeta{Name: s.Name, Labels: maps.Clone(s.Labels)},
		Spec:       *s.Spec.DeepCopy(),
	}
}

// launchedFrom is what the session's client was started from; what is wanted where
// nothing runs or that is not known.
func launchedFrom(r *record.Record, wanted *spec.Session) *spec.Session {
	if r.Client == nil || r.Client.Launched == nil || wanted == nil {
		return wanted
	}
	out := documentOf(wanted)
	out.Spec = *spec.LaunchedAs(r.Client.Launched, &wanted.Spec)
	return out
}

// input is gather without anything that a look leaves behind: of s a copy that nobody
// else has.
func (f *foresight) input(name string, d manifest.Desired) (plan.Input, *session) {
	c := f.Controller
	w := wish{}
	w.take(d)
	view := newSession(name)
	in := plan.Input{Now: c.now(), Policy: c.policy(), Grant: plan.GrantStart}
	c.mu.Lock()
	if s := c.sessions[name]; s != nil && s.rec.UID != "" {
		view.rec = s.rec.Copy()
		in.Turns = c.book.open(s.rec.UID)
		in.Heard, in.Told, in.FirstLook, in.Probed = c.heardOf(s), toldOf(s, in.Turns), !s.seen, s.probing.probed
		if t := s.present(); t != nil {
			in.Sight = t.present()
		}
	} else if bad, ok := c.bad[name]; ok {
		w.Refusal = badRecord(bad)
	}
	c.mu.Unlock()
	if view.rec.UID == "" && w.Refusal.Reason == "" && w.Spec != nil && f.snap.view.State != observe.ServerUnknown && !f.snap.unproven {
		view.rec, _ = c.firstRecord(name, labelsOf(f.snap, name))
	}
	in.Desired, in.Record = w.Desired, w.remembered(view.rec, in.Now)
	in.Seen = c.see(view, f.snap, f.instance)
	sp := w.Spec
	if sp == nil {
		sp = view.rec.Spec
	}
	if sp == nil {
		return in, view
	}
	in.Class = classIn(&f.set, view.rec, sp)
	in.Hold, in.Limits = c.heldNow(view, plan.ClassOf(&in.Record, sp, in.Class), sp), c.limitsOf(f.snap)
	in.New = plan.NewAttempt{ID: c.NewID(), Conversation: c.NewID(), Instance: f.instance}
	return in, view
}

// outlook looks for one session.
func (f *foresight) outlook(ctx context.Context, s *session, d manifest.Desired) plan.Outlook {
	return &outlook{foresight: f, ctx: ctx, s: s, d: d}
}

type outlook struct {
	*foresight
	ctx context.Context
	s   *session
	d   manifest.Desired
}

// Workspace looks anew, whatever runs in it.
func (o *outlook) Workspace(rec *record.Record, s *spec.SessionSpec) plan.Workspace {
	view := newSession(o.s.name)
	view.rec = *rec
	return o.workspaceOf(o.ctx, view, s, plan.Seen{})
}

// Evidence looks anew. A file system that does not answer is not waited for.
func (o *outlook) Evidence(ref observe.ConversationRef) (observe.Evidence, string) {
	o.mu.Lock()
	s := o.sessions[o.s.name]
	if s == nil {
		s = o.s
	}
	adopt := o.d.Session != nil && ref.ID == o.d.Session.Spec.Conversation.ID && asksToAdopt(s.rec, &o.d.Session.Spec)
	rival := o.rivalOf(s, ref.ID, adopt)
	o.mu.Unlock()
	if o.Clients == nil {
		return observe.Evidence{}, rival
	}
	found := make(chan observe.Evidence, 1)
	go func() { found <- o.Clients.Evidence(ref) }()
	select {
	case e := <-found:
		if o.own(e.Holder) {
			e.Holder = 0
		}
		return e, rival
	case <-o.ctx.Done():
		return observe.Evidence{Message: "its transcript could not be read in time: the file system does not answer"}, rival
	}
}

// own says whether a pid is of the session's client, or of what that has started.
func (o *outlook) own(pid int) bool {
	client := o.s.rec.Client
	if client == nil || pid == 0 {
		return false
	}
	is := func(p observe.Process) bool { return p.PID == pid }
	return is(client.Process) || is(client.Engine) || slices.ContainsFunc(o.descendants(client.Process), is)
}

// heldNow is why nothing with the credential of s is started now; nothing is tried by
// that.
func (c *Controller) heldNow(s *session, class *plan.Class, sp *spec.SessionSpec) plan.Hold {
	c.mu.Lock()
	defer c.mu.Unlock()
	if class == nil || class.Spec == nil || len(c.holds.held) == 0 {
		return plan.Hold{}
	}
	h := c.holds.held[credentialOf(class, sp, s.rec, c.Base)]
	if h == nil || h.trial == s.name {
		return plan.Hold{}
	}
	return plan.Hold{Reason: h.reason, Session: h.session, Until: h.until}
}

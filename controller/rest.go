// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muxlet/muxlet/actuate"
	"github.com/muxlet/muxlet/controller/plan"
	"github.com/muxlet/muxlet/observe"
)

// restResyncs is after how many resyncs a session at rest gets a whole pass all
// the same.
const restResyncs = 20

// rest is what a pass found of a session that waits for nothing: its client runs in its
// pane, or it is dormant. As long as a resync finds the same, a pass would come to the
// same end, and is not made: with 1,000 sessions at rest a resync is one listing
// and a look at each process.
type rest struct {
	// state of the tmux server, for a session that is dormant.
	state  observe.ServerState
	server observe.Server
	panes  []observe.Pane
	// client is zero for a session that is dormant.
	client observe.Process
	// engine of the client; zero when its class names none.
	engine observe.Process
	// since is when that pass was.
	since time.Time
}

// restOf is what has to stay as it is for the session to be at rest after a
// pass; nil when the pass did or waits for something. c.mu is held.
func (c *Controller) restOf(s *session, in plan.Input, w wish, p plan.Plan) *rest {
	waits := w.early || p.Action.Kind != actuate.ActionNone || p.RequeueAfter > 0 || p.Pending != "" || len(s.reports) > 0
	if waits || len(in.Turns) > 0 || len(p.Turns) > 0 || p.Initial != nil {
		return nil
	}
	r := &rest{state: in.Seen.ServerState, server: in.Seen.Server, since: c.Clock.Now()}
	if client := s.rec.Client; client != nil {
		r.client, r.engine = client.Process, client.Engine
	}
	if !c.mayRest(s, in, p) {
		return nil
	}
	for _, pane := range in.Seen.Panes {
		if !r.expects(pane) {
			return nil
		}
		r.panes = append(r.panes, pane.Pane)
	}
	return r
}

// mayRest says whether a pass found a session that is dormant, or whose client is all
// that is wanted and known. c.mu is held.
func (c *Controller) mayRest(s *session, in plan.Input, p plan.Plan) bool {
	client := s.rec.Client
	if client == nil {
		return p.Verdict.Rule == "Dormant" && len(in.Seen.Clients) == 0 && s.rec.Attempt == nil
	}
	// An engine may be seen yet.
	return p.Verdict.Rule == "Live" && !c.evidenceLacks(s) && (!client.Engine.IsZero() || plan.EngineOf(in) == "")
}

// expects says whether the session's panes may be as this one is: that of its client, or
// those of earlier ones.
func (r *rest) expects(pane plan.SeenPane) bool {
	if r.client.IsZero() {
		return pane.State != observe.Present
	}
	return pane.State == observe.Present && pane.PID == r.client.PID
}

// evidenceLacks says whether it is not known yet that the session's conversation has
// begun and can be resumed: what its client writes comes a moment after its reports, and
// some clients report nothing. Each resync looks then. c.mu is held.
func (c *Controller) evidenceLacks(s *session) bool {
	known := s.rec.Conversation
	if known == nil {
		return false
	}
	e := &s.evidence
	return !known.Begun || e.of.ID != known.ID || e.found.State != observe.EvidenceResumable
}

// enqueueRestless asks for a look at every session but those at rest.
func (c *Controller) enqueueRestless(snap *snapshot, notBefore time.Time) {
	for _, name := range c.restless(snap) {
		c.enqueue(name, notBefore)
	}
}

func (c *Controller) restless(snap *snapshot) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var names []string
	for name, s := range c.sessions {
		if !c.rests(s, snap) {
			names = append(names, name)
			continue
		}
		if s.status.Evidence != nil {
			evidence := *s.status.Evidence
			evidence.ObservedAt = metav1.NewTime(snap.began)
			s.status.Evidence = &evidence
		}
	}
	return names
}

// rests says whether snap shows the session as the pass found it that put it to
// rest. c.mu is held.
func (c *Controller) rests(s *session, snap *snapshot) bool {
	r := s.rest
	return r != nil && s.wanted == s.judged && len(s.requests) == 0 && c.Clock.Now().Sub(r.since) < restResyncs*c.settings().Resync &&
		snap.view.State == r.serverState() && snap.confirmation == plan.Confirmed && snap.view.Listing.Server == r.server &&
		slices.Equal(snap.panes[s.rec.UID], r.panes) && c.goesOn(r.client) && c.goesOn(r.engine)
}

// serverState of tmux by which it rests: a client needs a server.
func (r *rest) serverState() observe.ServerState {
	if r.client.IsZero() {
		return r.state
	}
	return observe.ServerRunning
}

// goesOn says whether a process is known to run, if it is any.
func (c *Controller) goesOn(p observe.Process) bool {
	return p.IsZero() || c.Deaths.State(p) == observe.Running
}

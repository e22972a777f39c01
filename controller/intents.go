// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/muxlet/muxlet/controller/plan"
	"github.com/muxlet/muxlet/controller/record"
	"github.com/muxlet/muxlet/controller/server"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec"
	"github.com/muxlet/muxlet/spec/manifest"
)

// requestTimeout bounds how long a request waits, for its worker and for tmux.
const requestTimeout = 4 * time.Second

// requestRemoval is the request of a delete, after the document was removed.
const requestRemoval plan.Request = "Removal"

// applyRequests writes down what people asked for. It is done by the worker that
// has the key, so that two requests cannot interleave with a decision.
func (c *Controller) applyRequests(s *session) {
	c.mu.Lock()
	requests := s.requests
	s.requests = nil
	c.mu.Unlock()
	if len(requests) == 0 {
		return
	}
	for _, r := range requests {
		next, refusal := c.apply(s.rec, c.wishOf(s), r.kind)
		if refusal.Reason == "" {
			if err := c.Store.Save(next); err != nil {
				refusal = plan.Refusal{Reason: spec.ReasonStateUnwritable, Message: err.Error()}
			} else {
				c.mu.Lock()
				s.hold(next)
				c.mu.Unlock()
			}
		}
		r.answer <- refusal
	}
}

// apply is what a record becomes by a request, or why that is refused. A request is
// judged by the spec in force, which the record may not have yet: resume edits the
// document just before it asks.
func (c *Controller) apply(rec record.Record, w wish, kind plan.Request) (record.Record, plan.Refusal) {
	inForce, recorded := w.Spec, rec.Spec
	if inForce != nil {
		rec.Spec = inForce
	}
	next, refusal := plan.Apply(rec, kind, c.now())
	next.Spec = recorded
	ends := kind == requestRemoval || kind == plan.RequestTerminate
	switch {
	case rec.UID == "" && refusal.Reason == "":
		refusal = unrecorded(inForce)
	case !ends && (w.Want == plan.Remove || w.Refusal.Reason == spec.ReasonRemoved):
		refusal = plan.Refusal{Reason: refusedGone}
	case kind == requestRemoval:
		next.RemovedAt = c.now()
	}
	return next, refusal
}

// unrecorded is the refusal of a session without a record.
func unrecorded(inForce *spec.SessionSpec) plan.Refusal {
	if inForce == nil {
		return plan.Refusal{Reason: spec.ReasonInvalid, Message: "it has no valid document"}
	}
	return plan.Refusal{Reason: spec.ReasonNotYetObserved, Message: "tmux and the process table were not looked at yet; try again"}
}

// ask hands a request to the session's worker and waits until it is on disk.
func (c *Controller) ask(ctx context.Context, name string, kind plan.Request) error {
	return c.askUntil(ctx, name, kind, c.Clock.After(requestTimeout))
}

func (c *Controller) askUntil(ctx context.Context, name string, kind plan.Request, timeout <-chan time.Time) error {
	<-c.loaded
	r := request{kind: kind, answer: make(chan plan.Refusal, 1)}
	c.mu.Lock()
	s := c.sessions[name]
	if s == nil {
		c.mu.Unlock()
		return server.NewNotFound(name)
	}
	s.requests = append(s.requests, r)
	select {
	case s.wake <- struct{}{}:
	default:
	}
	c.mu.Unlock()
	c.enqueue(name, c.Clock.Now())
	select {
	case refusal := <-r.answer:
		return refused(name, refusal)
	case <-ctx.Done():
	case <-timeout:
	}
	return c.withdraw(ctx, s, r)
}

// withdraw takes a request back that nobody has answered in time: what was refused must
// not be done later, when nobody expects it. A removal goes on, since its document is
// gone; and what is being written down at this moment is as good as done.
func (c *Controller) withdraw(ctx context.Context, s *session, r request) error {
	words := "its worker waits for tmux; nothing was done, try again"
	if r.kind == requestRemoval {
		words = "its worker waits for tmux; its document is removed, and the rest is done when tmux answers"
	} else {
		c.mu.Lock()
		before := len(s.requests)
		s.requests = slices.DeleteFunc(s.requests, func(other request) bool { return other.answer == r.answer })
		taken := len(s.requests) == before
		c.mu.Unlock()
		if taken {
			return refused(s.name, <-r.answer)
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return server.NewError(server.ReasonTmuxUnavailable, s.name, words)
}

// refusedGone is the refusal of a session that has been removed meanwhile.
const refusedGone = "Gone"

func refused(name string, r plan.Refusal) error {
	switch r.Reason {
	case "":
		return nil
	case refusedGone:
		return server.NewNotFound(name)
	case plan.RefusedSuspended:
		return server.NewError(server.ReasonSuspended, name, r.Message+": `muxlet resume "+name+"` ends that")
	case plan.RefusedRunning:
		return server.NewError(server.ReasonAlreadyRunning, name, r.Message)
	case spec.ReasonInvalid:
		return server.NewError(server.ReasonInvalid, name, r.Message)
	case spec.ReasonNotYetObserved:
		return server.NewError(server.ReasonTmuxUnavailable, name, r.Message)
	default:
		return server.NewError(server.ReasonProvisioningFailed, name, r.Message)
	}
}

// SetSuspend edits spec.suspend of the document. It is lifted only where a client could
// be had: a resume that is refused must leave the session suspended.
func (c *Controller) SetSuspend(ctx context.Context, name string, suspend bool) error {
	file, err := c.fileOf(name)
	if err != nil {
		return err
	}
	c.mu.Lock()
	present := c.desired.Sessions[name].Presence == manifest.Present
	c.mu.Unlock()
	if !present || file == "" {
		return server.NewError(server.ReasonConflict, name, "its document is not there now, so it cannot be edited: put the file back")
	}
	if !suspend {
		if err := c.obstacleTo(ctx, name, c.Clock.After(requestTimeout)); err != nil {
			return err
		}
	}
	if err := manifest.SetSuspend(file, name, suspend); err != nil {
		return uneditable(name, file, err)
	}
	c.takeSuspend(ctx, name, suspend)
	return nil
}

// editPatience bounds how long an edit of our own is waited for, editPeriod is the time
// between two looks.
const (
	editPatience = time.Second
	editPeriod   = 10 * time.Millisecond
)

// takeSuspend reads the manifests until an edit of our own is in force. A process that is
// being forked while the file is written has it open for writing until it executes its
// program; a reading in that moment takes the file for unfinished, and a demand that
// follows would be refused by the spec before the edit.
func (c *Controller) takeSuspend(ctx context.Context, name string, suspend bool) {
	inForce := func() bool {
		c.refresh(nil)
		c.mu.Lock()
		defer c.mu.Unlock()
		s := c.desired.Sessions[name].Session
		return s == nil || s.Spec.Suspend == suspend
	}
	for end := c.Clock.Now().Add(editPatience); !inForce() && c.Clock.Now().Before(end); {
		select {
		case <-ctx.Done():
			return
		case <-c.Clock.After(editPeriod):
		}
	}
}

// Resume records a demand for a client, with a fresh conversation if that is asked
// for.
func (c *Controller) Resume(ctx context.Context, name string, fresh bool) error {
	if fresh {
		return c.demand(ctx, name, plan.RequestFresh)
	}
	return c.demand(ctx, name, plan.RequestResume)
}

// Attach records that a person wants to attach to a client: a demand where there is
// none, and nothing where there is one.
func (c *Controller) Attach(ctx context.Context, name string) error {
	err := c.demand(ctx, name, plan.RequestAttach)
	if server.ReasonOf(err) == server.ReasonAlreadyRunning {
		return nil
	}
	return err
}

// Restart asks for the running client to be replaced. One that could not be replaced is
// not ended.
func (c *Controller) Restart(ctx context.Context, name string) error {
	return c.demand(ctx, name, plan.RequestRestart)
}

// Terminate asks for the client to be ended and kept down until a demand.
func (c *Controller) Terminate(ctx context.Context, name string) error {
	return c.ask(ctx, name, plan.RequestTerminate)
}

// demand asks for a client. What cannot be had now is refused before anything is
// written down: a demand that outlived its refusal would start a client, or wake a
// session that a person has terminated, long after nobody waits for it any more.
func (c *Controller) demand(ctx context.Context, name string, kind plan.Request) error {
	<-c.loaded
	timeout := c.Clock.After(requestTimeout)
	c.mu.Lock()
	s := c.sessions[name]
	recorded, rec := s != nil && s.rec.UID != "", record.Record{}
	if recorded {
		rec = s.rec.Copy()
	}
	c.mu.Unlock()
	if recorded {
		if _, refusal := c.apply(rec, c.wishOf(s), kind); refusal.Reason != "" {
			return refused(name, refusal)
		}
		if err := c.obstacleTo(ctx, name, timeout); err != nil {
			return err
		}
		// The client that runs would end, and no other could be started.
		if why := plan.Unlimitable(cmp.Or(c.wishOf(s).Spec, rec.Spec), c.scopesFor()); kind == plan.RequestRestart && why != "" {
			return server.NewError(server.ReasonProvisioningFailed, name, why)
		}
	}
	return c.askUntil(ctx, name, kind, timeout)
}

// obstacleTo looks, now, whether a client of the session could be started as far as
// tmux and the workspace are concerned. What else may be in its way is found by trying.
func (c *Controller) obstacleTo(ctx context.Context, name string, timeout <-chan time.Time) error {
	if err := c.tmuxAnswers(ctx, name, timeout); err != nil {
		return err
	}
	c.mu.Lock()
	s := c.sessions[name]
	if s == nil {
		c.mu.Unlock()
		return server.NewNotFound(name)
	}
	// A session of its own: this is not the worker.
	asked := newSession(name)
	asked.rec = s.rec.Copy()
	c.mu.Unlock()
	sp := c.wishOf(s).Spec
	if sp == nil {
		sp = asked.rec.Spec
	}
	if sp == nil {
		return nil
	}
	if w := c.workspaceOf(ctx, asked, sp, plan.Seen{}); w.Obstacle != "" {
		return server.NewError(server.ReasonWorkspaceMissing, name, w.Message)
	}
	return nil
}

// tmuxAnswers asks tmux now.
func (c *Controller) tmuxAnswers(ctx context.Context, name string, timeout <-chan time.Time) error {
	// The look is shared, and goes on for the others when this one stops waiting.
	looking, cancel := context.WithCancel(context.WithoutCancel(ctx))
	looked := make(chan *snapshot, 1)
	go func() {
		defer cancel()
		looked <- c.look(looking, c.Clock.Now())
	}()
	go func() {
		select {
		case <-c.ending:
			cancel()
		case <-looking.Done():
		}
	}()
	select {
	case snap := <-looked:
		if snap.view.State == observe.ServerUnknown {
			return server.NewError(server.ReasonTmuxUnavailable, name, snap.view.Message)
		}
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-timeout:
		return server.NewError(server.ReasonTmuxUnavailable, name, "tmux does not answer; nothing was done, try again")
	}
}

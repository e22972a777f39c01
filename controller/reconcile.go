// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/muxlet/muxlet/actuate"
	"github.com/muxlet/muxlet/controller/metrics"
	"github.com/muxlet/muxlet/controller/plan"
	"github.com/muxlet/muxlet/controller/record"
	"github.com/muxlet/muxlet/controller/status"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec"
)

const (
	// actTimeout bounds one action.
	actTimeout = 10 * time.Second
	// unwritableRetry is when a record that could not be written is tried again.
	unwritableRetry = 5 * time.Second
	// receiptPatience is when a start is looked at without a hint of its receipt.
	receiptPatience = 25 * time.Millisecond
	// atOnce is so soon that it is now where tmux is told to look after its dead: the next
	// pass waits for its answer anyway, and a timer would take 1.5 ms, a tenth of a restart.
	atOnce = time.Millisecond
	// inspectTimeout bounds a look at a workspace directory.
	inspectTimeout = time.Second
	// holderPatience is how long an unmarked process must hold a lease to be taken
	// for a client.
	holderPatience = time.Second
	// probePatience bounds a look at the cause of a block.
	probePatience = 200 * time.Millisecond
)

// reconcileSession brings one session one step closer to what is wanted:
// desired → record → observe → compute → save → at most one action → status.
func (c *Controller) reconcileSession(ctx context.Context, name string) {
	c.mu.Lock()
	s := c.sessions[name]
	instance := c.instance
	if !c.server.scanned {
		instance = ""
	}
	c.mu.Unlock()
	if s == nil {
		return
	}
	recorded := s.rec.UID != ""
	if recorded {
		c.applyRequests(s)
	}
	snap := c.lookFor(ctx, s)
	if snap.view.State == observe.ServerUnknown {
		c.Metrics.Failed(metrics.FailedObservation)
		c.noteUnknown()
	}
	w := c.wishOf(s)
	if !recorded {
		made := instance != "" && c.makeRecord(s, snap, w)
		c.applyRequests(s)
		if !made {
			c.showWithoutRecord(s, w, snap)
			return
		}
	}
	c.takeReports(s)
	in := c.gather(ctx, s, snap, w, instance)
	p := plan.Compute(in)
	c.carryOut(ctx, s, in, &p)
	c.finish(ctx, s, in, w, p)
}

// freshness is the oldest observation that will do for this pass.
func (c *Controller) freshness(s *session) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	need := s.notBefore
	if !s.dueAt.IsZero() && !s.dueAt.After(c.Clock.Now()) && s.dueAt.After(need) {
		need = s.dueAt
	}
	s.dueAt = time.Time{}
	if s.lastAct.After(need) {
		need = s.lastAct
	}
	return need
}

// carryOut saves the record and then performs the plan's action. A record that
// cannot be saved stops everything: nothing may happen that is not on disk.
func (c *Controller) carryOut(ctx context.Context, s *session, in plan.Input, p *plan.Plan) {
	if p.Fate == plan.FateArchive {
		c.archive(s, p)
		return
	}
	err := c.makeInitial(s, p)
	if err == nil {
		err = c.saveRecord(s, p)
	}
	if err != nil {
		c.Metrics.Failed(metrics.FailedSave)
		c.Log.V(1).Info("Record was not saved", "session", s.name, "err", err.Error())
		c.settleHeard(s, len(in.Heard), err)
		c.settleTold(s, err)
		c.refuseUnsaved(s, in, p, err)
		return
	}
	c.settleHeard(s, len(in.Heard), nil)
	c.settleBudget(s, *p)
	for _, e := range p.Events {
		c.tell(s.name, s.rec.UID, e)
	}
	if c.saveTurns(s, in, p) && p.Action.Kind != actuate.ActionNone && !c.late(s, p) {
		c.act(ctx, s, p)
	}
}

// saveRecord makes the plan's record the one on disk, if it is another one.
func (c *Controller) saveRecord(s *session, p *plan.Plan) error {
	if !s.changed(p.Record) {
		return nil
	}
	if err := c.save(p); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.trackAttempt(s, p.Record)
	c.countRestart(&s.rec, &p.Record)
	s.hold(p.Record)
	return nil
}

// save writes the plan's record. A start needs room for what its launcher
// writes as well.
func (c *Controller) save(p *plan.Plan) error {
	if starts(p.Action.Kind) {
		return c.saveForStart(p.Record)
	}
	return c.Store.Save(p.Record)
}

func (c *Controller) saveForStart(r record.Record) error {
	if err := c.Store.Room(); err != nil {
		return err
	}
	return c.Store.Save(r)
}

func starts(k actuate.Kind) bool {
	return k == actuate.ActionCreate || k == actuate.ActionRespawn || k == actuate.ActionRespawnKill
}

// refuseUnsaved keeps the old record and takes the plan back.
func (c *Controller) refuseUnsaved(s *session, in plan.Input, p *plan.Plan, err error) {
	*p = plan.Plan{
		Record:       in.Record,
		Verdict:      plan.Verdict{Rule: "Save", Reason: spec.ReasonStateUnwritable, Message: err.Error()},
		RequeueAfter: unwritableRetry,
	}
	p.Waiting = p.Verdict
	c.settleBudget(s, *p)
}

// trackAttempt remembers whose receipt an attempt's is, and forgets receipts
// that were accounted for. c.mu is held.
func (c *Controller) trackAttempt(s *session, next record.Record) {
	before, after := s.rec.Attempt, next.Attempt
	if before != nil && (after == nil || after.ID != before.ID) {
		delete(c.attempts, before.ID)
	}
	if after != nil {
		c.attempts[after.ID] = s.name
	}
	if before != nil && after == nil && (next.Client == nil || next.Client.Attempt != before.ID) {
		c.Receipts.Forget(before.ID)
	}
	if s.rec.Client != nil && next.Client == nil {
		c.Receipts.Forget(s.rec.Client.Attempt)
	}
}

// settleBudget gives the place in flight back once nothing is, and wakes whom
// there is a place for.
func (c *Controller) settleBudget(s *session, p plan.Plan) {
	if s.rec.Attempt == nil && p.InFlight {
		// An earlier daemon has started it.
		c.budget.hold(s.name)
	}
	c.wake(c.budget.settle(s.name, s.rec.Attempt != nil || p.InFlight, p.Verdict.Reason == spec.ReasonWaitingForBudget))
}

func (c *Controller) wake(keys []string) {
	for _, key := range keys {
		c.queue.Add(key)
	}
}

// act performs the action. What came of it is only logged: the next observation
// tells.
func (c *Controller) act(ctx context.Context, s *session, p *plan.Plan) {
	a := p.Action
	if starts(a.Kind) {
		c.limits.spend()
		if !c.makeWorkspace(s) {
			return
		}
	}
	ctx, cancel := context.WithTimeout(ctx, actTimeout)
	defer cancel()
	out := c.perform(ctx, s, a)
	c.countOutcome(out)
	c.keepScreen(s, out.Screen)
	c.mu.Lock()
	s.lastAct = c.Clock.Now()
	c.mu.Unlock()
	c.Log.V(1).Info("Acted", "session", s.name, "action", a.Kind, "result", out.Result, "message", out.Message)
	if out.Result == actuate.ResultFailed && s.rec.Attempt != nil {
		if starts(a.Kind) {
			s.startFailure, s.startFailureOf = strings.TrimSuffix(out.Message, "."), s.rec.Attempt.ID
		}
		c.tell(s.name, s.rec.UID, plan.Event{Type: plan.Warning, Reason: out.Reason, Message: out.Message})
	}
	c.noteHandOver(s, a, out)
	if out.Result == actuate.ResultDone && a.Kind == actuate.ActionRelease {
		c.tell(s.name, s.rec.UID, plan.Event{Type: plan.Normal, Reason: spec.ReasonPaneTaken, Message: fmt.Sprintf(
			"Pane %s runs what a person has started there and is theirs now; the client does not come back in it", a.Pane.PaneID)})
	}
	switch {
	case handsOver(a.Kind):
		p.RequeueAfter = time.Millisecond
	case out.Result != actuate.ResultDone || a.Kind == actuate.ActionReap || a.Kind == actuate.ActionSignal || a.Kind == actuate.ActionKeys:
	case starts(a.Kind):
		// The launcher's receipt gives a hint; until then there is little to see.
		p.RequeueAfter = receiptPatience
	default:
		p.RequeueAfter = time.Millisecond
	}
}

// makeWorkspace makes the directory where the spec asks for that.
func (c *Controller) makeWorkspace(s *session) bool {
	if !s.missing {
		return true
	}
	s.ensureFailure = plan.Verdict{}
	w := s.rec.Spec.Workspace
	err := c.Workspaces.Ensure(s.rec.Attempt.Order.Directory, w.Type)
	if err == nil {
		return true
	}
	s.ensureFailure = plan.Verdict{Reason: spec.ReasonWorkspaceInaccessible, Message: err.Error()}
	c.tell(s.name, s.rec.UID, plan.Event{Type: plan.Warning, Reason: spec.ReasonWorkspaceInaccessible, Message: err.Error()})
	return false
}

// archive puts the record out of the way and forgets the session.
func (c *Controller) archive(s *session, p *plan.Plan) {
	err := c.endTurns(s)
	if err == nil {
		err = c.Store.Archive(p.Record)
	}
	if err != nil {
		c.Metrics.Failed(metrics.FailedSave)
		c.Log.Error(err, "Record was not archived", "session", s.name)
		p.Fate, p.RequeueAfter = plan.FateKeep, unwritableRetry
		p.Verdict.Reason, p.Verdict.Message = spec.ReasonStateUnwritable, err.Error()
		c.settleBudget(s, *p)
		return
	}
	for _, e := range p.Events {
		c.tell(s.name, s.rec.UID, e)
	}
	c.mu.Lock()
	delete(c.sessions, s.name)
	delete(c.byUID, s.rec.UID)
	c.unclaim(s)
	c.retract(s)
	c.forgetNotified(s)
	// Who asked for something meanwhile learns that there is nothing to ask of.
	for _, r := range s.requests {
		r.answer <- plan.Refusal{Reason: refusedGone}
	}
	s.requests = nil
	for _, w := range s.reports {
		w.done(nil)
	}
	s.reports = nil
	delete(c.desired.Sessions, s.name)
	c.mu.Unlock()
	// One that was made meanwhile has nobody else who ends it: its sender looks for the
	// session after it is kept.
	if len(c.book.open(s.rec.UID)) > 0 {
		if err := c.endTurns(s); err != nil {
			c.Log.Error(err, "Turns of a removed session were not ended", "session", s.name)
		}
	}
	c.book.forget(s.rec.UID)
	for process := range s.watched {
		c.eyes.forget(process)
	}
	if s.scope.Name != "" {
		c.Scopes.Forget(s.scope)
	}
	c.settleBudget(&session{name: s.name}, plan.Plan{})
	c.Log.Info("Removed session", "session", s.name, "sessionUID", s.rec.UID)
	// The document may be back already: the next reading tells.
	c.refresh(nil)
}

// finish publishes the status, follows the processes that matter now, and asks
// for the next look.
func (c *Controller) finish(ctx context.Context, s *session, in plan.Input, w wish, p plan.Plan) {
	if p.Fate == plan.FateArchive {
		return
	}
	c.captureScreen(ctx, s, p)
	// Whoever sees the status finds the event.
	c.tellHindrance(s, p.Verdict)
	c.tellScope(s, in, p)
	c.book.label(s.rec.UID, s.rec.Labels)
	c.book.wait(s.rec.UID, p.Waiting)
	c.mu.Lock()
	c.noteSeen(s, in.Seen)
	c.planProbe(s)
	s.status, s.judged = status.Summarize(c.summaryOf(s, in, w, p)), w.count
	c.tellQuestion(s, s.status)
	c.unclaim(s)
	s.rest = c.restOf(s, in, w, p)
	c.publish(s)
	c.noteOccasions(s, w, in.Seen)
	s.observed = s.observed || in.Seen.Sight == plan.SightKnown && !w.early
	if p.Looked && in.Seen.Sight == plan.SightKnown && !s.seen && !w.early {
		s.seen = true
		c.first.done(s.name, p)
	}
	c.mu.Unlock()
	c.askOn(s)
	c.logDecision(s, p)
	c.follow(s, in)
	c.tellFirstLook()
	if p.Verdict.Reason == spec.ReasonServerStarting {
		c.wantServer()
	}
	if w.early && p.RequeueAfter == 0 {
		c.enqueueAfter(s.name, readPatience)
	}
	switch {
	case p.Same:
		c.queue.Add(s.name)
	case p.Action.Kind == actuate.ActionReap && p.RequeueAfter <= atOnce:
		c.enqueue(s.name, c.Clock.Now())
	case p.RequeueAfter > 0:
		c.enqueueAfter(s.name, p.RequeueAfter)
	}
}

// askOn asks for what a pass leaves to do beside it: a first look at what a client
// shows, and another pass for reports that came before the client was known.
func (c *Controller) askOn(s *session) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.rec.Client == nil {
		return
	}
	if len(s.reports) > 0 && s.rec.Attempt == nil {
		c.queue.Add(s.name)
	}
	class := c.classInForce(s)
	if class != nil && looksAt(class.Spec) && s.present().sight.At.IsZero() {
		c.screensDue.AddAfter(s.name, firstLook)
	}
}

// summaryOf is what a status is made from. c.mu is held.
func (c *Controller) summaryOf(s *session, in plan.Input, w wish, p plan.Plan) status.Input {
	out := status.Input{
		Now: in.Now, Previous: s.status, Plan: p, Seen: in.Seen, Workspace: in.Workspace,
		Refusal: w.problem, Source: w.source, LastScreen: s.screen,
		Class: c.classInForce(s), Evidence: in.Evidence, EvidenceOf: s.evidence.of.ID, Sight: in.Sight,
	}
	out.Probed, out.NextProbe = in.Probed, s.probing.dueAt
	out.Watched = out.Class != nil && looksAt(out.Class.Spec)
	if t := s.present(); t != nil {
		out.ActiveSince, out.ReportedAt = t.since, t.reportedAt
		out.AsksSince, out.SeenAt = t.focus.asks, t.focus.seen
	}
	return out
}

func (c *Controller) logDecision(s *session, p plan.Plan) {
	v := plan.Verdict{Rule: p.Verdict.Rule, Reason: p.Verdict.Reason}
	if v == s.logged && p.Action.Kind == actuate.ActionNone {
		return
	}
	s.logged = v
	c.Log.V(1).Info("Decided", "session", s.name, "sessionUID", s.rec.UID, "incarnation", s.rec.Incarnation, "rule", v.Rule,
		"reason", v.Reason, "message", p.Verdict.Message, "action", p.Action.Kind, "requeueAfter", p.RequeueAfter)
}

// follow watches the processes whose death matters, and no others.
func (c *Controller) follow(s *session, in plan.Input) {
	c.followScope(s)
	wanted := map[observe.Process]bool{}
	if r := s.rec; r.Client != nil {
		wanted[r.Client.Process] = true
		if !r.Client.Engine.IsZero() {
			wanted[r.Client.Engine] = true
		}
	}
	if s.rec.Stop != nil {
		wanted[s.rec.Stop.Process] = true
	}
	if s.rec.Attempt != nil {
		for _, pane := range in.Seen.Panes {
			if pane.Labels.Attempt == s.rec.Attempt.ID && !pane.Process.IsZero() {
				wanted[pane.Process] = true
			}
		}
	}
	for process := range s.watched {
		if !wanted[process] {
			c.eyes.forget(process)
			delete(s.watched, process)
		}
	}
	for process := range wanted {
		if s.watched[process] {
			continue
		}
		if err := c.Deaths.Watch(process, s.name); err != nil {
			c.Log.V(1).Info("Process is not watched, its death is found at resync", "session", s.name, "panePID", process.PID, "err", err.Error())
		}
		s.watched[process] = true
	}
}

// tell records an event and logs it.
func (c *Controller) tell(name, uid string, e plan.Event) {
	c.Log.Info("Recorded event", "session", name, "type", e.Type, "reason", e.Reason, "message", e.Message)
	err := c.Recorder.Record(status.Event{Session: name, UID: uid, Type: string(e.Type), Reason: e.Reason, Message: e.Message, Last: c.now()})
	if err != nil {
		c.Log.Error(err, "Event was not written", "session", name)
	}
}

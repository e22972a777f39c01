// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/muxlet/muxlet/controller/plan"
	"github.com/muxlet/muxlet/controller/record"
	"github.com/muxlet/muxlet/controller/status"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec"
)

// gather collects everything that a decision about s rests on. It changes
// nothing.
func (c *Controller) gather(ctx context.Context, s *session, snap *snapshot, w wish, instance string) plan.Input {
	in := plan.Input{
		Now: c.now(), Desired: w.Desired, Record: w.remembered(s.rec, c.now()), Policy: c.policy(), FirstLook: !s.seen && !w.early,
		Seen: c.see(s, snap, instance),
	}
	c.gatherTurns(s, &in)
	sp := s.rec.Spec
	if w.Spec != nil {
		sp = w.Spec
	}
	if sp == nil {
		return in
	}
	in.Class = c.classOf(s.rec, sp)
	in.Probed = c.probedOf(s)
	if s.rec.Attempt == nil || !sp.Resources.Limits.None() {
		in.Scopes = c.scopesFor()
	}
	c.seeEngine(&in)
	in.Workspace = c.workspaceOf(ctx, s, sp, in.Seen)
	in.Seen.NotFound = c.notFound(ctx, s, in)
	if s.rec.Block != nil {
		in.Block = c.obstacleOf(s)
	}
	c.gatherConversation(s, &in, sp)
	in.Hold = c.holdOf(s, plan.ClassOf(&in.Record, sp, in.Class), mayTry(s, &in, sp))
	// A client that is found to be gone can be followed by a start in this pass.
	if s.rec.Attempt == nil && (s.rec.Client == nil || in.Seen.Client == observe.Gone) && !sleeps(&in, sp) {
		in.Grant, in.Limits = c.budget.reserve(s.name), c.limitsOf(snap)
		c.gatherAttempt(&in, sp, instance)
	}
	if len(in.Turns) > 0 && plan.WantsHand(in) {
		c.gatherHand(ctx, s, &in)
	}
	return in
}

// sleeps says whether a session is to have no client until somebody needs one: what a
// start rests on is not looked at then.
func sleeps(in *plan.Input, sp *spec.SessionSpec) bool {
	r := &in.Record
	return sp.ProvisioningPolicy == spec.ProvisioningOnDemand && r.Client == nil && r.Attempt == nil && r.Demand == nil && len(in.Turns) == 0
}

// gatherAttempt adds what a new attempt is made of. What its class needs on disk, such
// as the file that wires the client's hooks, is there before the client is.
func (c *Controller) gatherAttempt(in *plan.Input, sp *spec.SessionSpec, instance string) {
	in.New = plan.NewAttempt{ID: c.NewID(), Instance: instance, Base: c.Base}
	class := plan.ClassOf(&in.Record, sp, in.Class)
	if class == nil {
		return
	}
	if class.Spec.Conversation.Identity == spec.IdentityAssigned {
		in.New.Conversation = c.NewID()
	}
	if c.Hooks == nil {
		return
	}
	variables, err := c.Hooks.Ensure(class.Name, class.Spec.Reports)
	if err != nil && in.Desired.Refusal.Reason == "" {
		in.Desired.Refusal = plan.Verdict{Reason: spec.ReasonStateUnwritable, Message: err.Error()}
	}
	in.New.Variables = variables
}

// see judges everything that was observed about a session.
func (c *Controller) see(s *session, snap *snapshot, instance string) plan.Seen {
	_, _, unknownSince := c.eyes.latest()
	seen := plan.Seen{At: snap.began, Confirmation: snap.confirmation, ServerState: snap.view.State}
	switch {
	case snap.view.State == observe.ServerUnknown:
		seen.Reason, seen.Message = snap.view.Reason, snap.view.Message
		if !unknownSince.IsZero() {
			seen.UnknownFor = c.Clock.Now().Sub(unknownSince)
		}
		return seen
	case snap.unproven:
		seen.Reason, seen.Message = spec.ReasonNotYetObserved, "looking for a tmux server of ours that cannot be reached"
		return seen
	case instance == "":
		seen.Reason, seen.Message = spec.ReasonNotYetObserved, "the process table was not searched yet"
		return seen
	}
	seen.Sight = plan.SightKnown
	seen.Server = snap.view.Listing.Server
	c.mu.Lock()
	seen.ServerFailure = c.server.failure
	c.mu.Unlock()
	c.seePanes(&seen, s, snap, instance)
	c.seeProcesses(&seen, s, snap)
	c.seeClients(&seen, s, instance)
	c.seeScopes(&seen, s, instance)
	return seen
}

func (c *Controller) seePanes(seen *plan.Seen, s *session, snap *snapshot, instance string) {
	for _, p := range snap.panes[s.rec.UID] {
		process, live := c.identify(s, p.PID)
		seen.Panes = append(seen.Panes, plan.SeenPane{Pane: p, Process: process, Live: live})
	}
	if len(seen.Panes) > 0 {
		return
	}
	seen.OwnSession = snap.own[observe.SessionLabel(instance, s.rec.UID)]
	if seen.OwnSession == "" {
		seen.NameHolder = snap.holders[s.name]
	}
}

// identify finds out who has the pid now. While the recorded client runs, its pid
// is nobody else's.
func (c *Controller) identify(s *session, pid int) (observe.Process, observe.Liveness) {
	if client := s.rec.Client; client != nil && client.Process.PID == pid && c.eyes.stateOf(client.Process) == observe.Running {
		return client.Process, observe.Running
	}
	return c.Processes.Identify(pid)
}

// seeProcesses judges the processes that the record names.
func (c *Controller) seeProcesses(seen *plan.Seen, s *session, snap *snapshot) {
	if client := s.rec.Client; client != nil {
		seen.Client = c.eyes.stateOf(client.Process)
		if seen.Client == observe.Gone {
			since := c.eyes.markGone(client.Process, c.Clock.Now())
			seen.GoneFor, seen.Outdated = c.Clock.Now().Sub(since), snap.began.Before(since)
			seen.ClientExit = c.Deaths.Exit(client.Process)
		}
	}
	if stop := s.rec.Stop; stop != nil {
		seen.Stop = c.Processes.State(stop.Process)
		if stop.TermAt.IsZero() {
			seen.Tree = c.descendants(stop.Process)
		}
		for _, p := range stop.Descendants {
			if c.Processes.State(p) != observe.Gone {
				seen.TreeRunning = append(seen.TreeRunning, p)
			}
		}
	}
	seen.Lease = c.Processes.Lease(s.rec.UID)
	a := s.rec.Attempt
	if a == nil {
		c.seeUnrecorded(seen, s)
		return
	}
	if s.startFailureOf == a.ID {
		seen.StartFailure = s.startFailure
	}
	// The process is judged before the receipt is read: when it is Gone, the
	// receipt is final.
	receipt, state := c.receipt(a.ID)
	if state == plan.ReceiptFound {
		seen.ReceiptProcess = c.Processes.State(receipt.Process)
		if seen.ReceiptProcess == observe.Gone {
			receipt, state = c.receipt(a.ID)
		}
	}
	seen.Receipt, seen.ReceiptState = receipt, state
}

// seeUnrecorded reads the receipt of a client that runs in our pane and that the record
// does not know.
func (c *Controller) seeUnrecorded(seen *plan.Seen, s *session) {
	known := s.rec.Client
	if known != nil && seen.Client != observe.Gone {
		return
	}
	for _, p := range seen.Panes {
		if p.State == observe.Present && p.Labels.Attempt != "" && (known == nil || p.Labels.Attempt != known.Attempt) {
			seen.Receipt, seen.ReceiptState = c.receipt(p.Labels.Attempt)
			return
		}
	}
}

func (c *Controller) receipt(attempt string) (observe.Receipt, plan.ReceiptState) {
	r, err := c.Receipts.Read(attempt)
	switch {
	case err == nil:
		return r, plan.ReceiptFound
	case errors.Is(err, fs.ErrNotExist):
		return observe.Receipt{}, plan.ReceiptMissing
	}
	return observe.Receipt{}, plan.ReceiptUnknown
}

func (c *Controller) descendants(p observe.Process) []observe.Process {
	tree, err := c.Processes.Descendants(p)
	if err != nil {
		return nil
	}
	return tree
}

// seeClients finds the live clients: those that the scan found, the one that the
// receipt names, the one in our pane, and whoever holds the lease.
func (c *Controller) seeClients(seen *plan.Seen, s *session, instance string) {
	if seen.ReceiptState == plan.ReceiptFound && seen.ReceiptProcess == observe.Running {
		c.noteMark(s, seen.Receipt.Process.PID, instance)
	}
	if seen.Client != observe.Running {
		for _, p := range seen.Panes {
			if p.State == observe.Present && p.Live == observe.Running {
				c.noteMark(s, p.PID, instance)
			}
		}
	}
	c.seeHolder(seen, s, instance)
}

// seeHolder adds who holds the lease although the record knows nothing of it.
func (c *Controller) seeHolder(seen *plan.Seen, s *session, instance string) {
	holder := seen.Lease.Holder
	expected := s.rec.Attempt != nil || (s.rec.Client != nil && s.rec.Client.Process.PID == holder)
	if seen.Lease.State != observe.Running || holder == 0 || expected {
		seen.Clients = c.eyes.marked(s.rec.UID)
		return
	}
	c.noteMark(s, holder, instance)
	seen.Clients = c.eyes.marked(s.rec.UID)
	if known(seen.Clients, holder) {
		return
	}
	if process, live := c.Processes.Identify(holder); live == observe.Running && c.settledHolder(s, process) {
		seen.Clients = append(seen.Clients, observe.MarkedProcess{Mark: observe.Mark{UID: s.rec.UID, Process: process}})
	}
}

// settledHolder says whether a process without a mark has held the lease for a
// while. A launcher that is about to refuse holds it for a moment.
func (c *Controller) settledHolder(s *session, p observe.Process) bool {
	now := c.Clock.Now()
	if s.holder != p {
		s.holder, s.holderSince = p, now
	}
	left := holderPatience - now.Sub(s.holderSince)
	if left > 0 {
		c.enqueueAfter(s.name, left)
	}
	return left <= 0
}

func known(clients []observe.MarkedProcess, pid int) bool {
	for _, m := range clients {
		if m.Process.PID == pid {
			return true
		}
	}
	return false
}

// noteMark remembers a process that proves by its mark to be a client of s.
func (c *Controller) noteMark(s *session, pid int, instance string) {
	m, err := c.Processes.MarkOf(pid)
	if err == nil && m.UID == s.rec.UID && m.Instance == instance {
		c.eyes.note(m)
	}
}

// workspaceOf is the finding about the workspace. While a client runs in it, the
// finding that it was started with will do: a look may hang with a dead mount.
func (c *Controller) workspaceOf(ctx context.Context, s *session, sp *spec.SessionSpec, seen plan.Seen) plan.Workspace {
	primary, fallback := plan.DirectoryOf(&s.rec, sp)
	of := inspectedOf{sp.Workspace, primary}
	if seen.Client == observe.Running && s.inspected.Path != "" && s.inspected.Obstacle == "" && s.inspectedOf == of {
		return s.inspected
	}
	s.inspectedOf = of
	if fallback == "" {
		s.inspected = c.inspect(ctx, s, sp)
		return s.inspected
	}
	s.inspected = c.inspectBound(ctx, s, sp, primary)
	return s.inspected
}

// inspectBound looks at the directory of a conversation that has begun. Only when that
// is proven to be missing, and the one that the spec wants can be used, that one is.
func (c *Controller) inspectBound(ctx context.Context, s *session, sp *spec.SessionSpec, bound string) plan.Workspace {
	wanted, err := c.Workspaces.Expand(sp.Workspace.Directory)
	if err == nil && wanted == bound {
		return c.inspect(ctx, s, sp)
	}
	limited, cancel := context.WithTimeout(ctx, inspectTimeout)
	defer cancel()
	w := plan.Workspace{Path: bound, Wanted: wanted}
	w.Obstacle, w.Message = c.Workspaces.Inspect(limited, bound)
	s.missing = false
	if w.Obstacle == spec.ReasonWorkspaceMissing {
		return c.inspect(ctx, s, sp)
	}
	return w
}

// obstacleOf looks whether the cause of a block stands. The look has a goroutine
// of its own, since a file on a dead mount never answers; meanwhile it stands.
func (c *Controller) obstacleOf(s *session) plan.Obstacle {
	earlier := s.probe != nil
	if !earlier {
		s.probe = make(chan plan.Obstacle, 1)
		go func(b record.Block, profile []string, found chan<- plan.Obstacle) {
			if blockCleared(&b) || anyChangedSince(profile, b.At) {
				found <- plan.ObstacleCleared
				return
			}
			found <- plan.ObstacleStands
		}(*s.rec.Block, c.profileBehind(s.rec), s.probe)
	}
	patience := probePatience
	if earlier {
		// It was waited for once.
		patience = time.Millisecond
	}
	select {
	case found := <-s.probe:
		s.probe = nil
		return found
	case <-c.Clock.After(patience):
		return plan.ObstacleStands
	}
}

// inspect looks at the workspace directory. A directory that the start will make
// is no obstacle.
func (c *Controller) inspect(ctx context.Context, s *session, sp *spec.SessionSpec) plan.Workspace {
	path, err := c.Workspaces.Expand(sp.Workspace.Directory)
	if err != nil {
		return plan.Workspace{Path: sp.Workspace.Directory, Obstacle: spec.ReasonWorkspaceMissing, Message: err.Error()}
	}
	ctx, cancel := context.WithTimeout(ctx, inspectTimeout)
	defer cancel()
	w := plan.Workspace{Path: path, Wanted: path}
	w.Obstacle, w.Message = c.Workspaces.Inspect(ctx, path)
	s.missing = w.Obstacle == spec.ReasonWorkspaceMissing
	if w.Obstacle == spec.ReasonWorkspaceMissing && sp.Workspace.Type == spec.WorkspaceDirectoryOrCreate {
		w.Obstacle, w.Message = s.ensureFailure.Reason, s.ensureFailure.Message
	}
	if w.Obstacle == "" || w.Obstacle == s.ensureFailure.Reason {
		s.ensureFailure = plan.Verdict{}
	}
	return w
}

// blockCleared looks whether what failed for good would go well now.
func blockCleared(b *record.Block) bool {
	switch b.Reason {
	case spec.ReasonCommandNotFound:
		if b.LookedFor == "" {
			return false
		}
		for _, dir := range b.LookedIn {
			if executable(filepath.Join(dir, b.LookedFor)) {
				return true
			}
		}
		return filepath.IsAbs(b.LookedFor) && executable(b.LookedFor)
	case spec.ReasonCommandNotExecutable:
		return changedSince(b.LookedFor, b.At) || b.File != "" && executable(b.File)
	case spec.ReasonResourcesUnsupported:
		return managerCleared(b)
	case spec.ReasonEnvFileMissing:
		_, err := os.Stat(b.File)
		return err == nil
	case spec.ReasonEnvFileUnreadable:
		return unix.Access(b.File, unix.R_OK) == nil
	case spec.ReasonEnvFileInvalid:
		return changedSince(b.File, b.At)
	}
	// The workspace is looked at in every pass; a block for it was left by the
	// launcher, which may have seen what we do not.
	return true
}

// changedSince says whether a file, its mode or its owner changed after a moment.
// The time of its content alone may be old: mv and cp -p keep it.
func changedSince(path string, moment time.Time) bool {
	var st unix.Stat_t
	err := unix.Stat(path, &st)
	return err == nil && time.Unix(st.Ctim.Unix()).After(moment)
}

func executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// showWithoutRecord publishes why a declared session has no record yet.
func (c *Controller) showWithoutRecord(s *session, w wish, snap *snapshot) {
	v := w.Refusal
	if v.Reason == "" {
		v = s.unmade
	}
	if v.Reason == spec.ReasonStateUnwritable {
		c.enqueueAfter(s.name, unwritableRetry)
	}
	seen := plan.Seen{At: snap.began, Sight: plan.SightKnown}
	if v.Reason == "" {
		v = plan.Verdict{Reason: spec.ReasonStarting, Message: "waiting for the first observation"}
		seen = plan.Seen{Reason: spec.ReasonNotYetObserved, Message: "tmux and the process table were not looked at yet"}
		if snap.view.State == observe.ServerUnknown {
			seen.Reason, seen.Message = snap.view.Reason, snap.view.Message
			v.Message = snap.view.Message
		}
		c.enqueueAfter(s.name, unknownPoll)
	}
	p := plan.Plan{Verdict: v}
	p.Verdict.Rule = "Refusal"
	c.tellHindrance(s, v)
	c.mu.Lock()
	defer c.mu.Unlock()
	s.created = firstTime(s.created, c.now())
	s.judged, s.observed = w.count, s.observed || seen.Sight == plan.SightKnown && !w.early
	s.status = status.Summarize(status.Input{Now: c.now(), Previous: s.status, Plan: p, Seen: seen, Refusal: w.problem, Source: w.source, Class: c.classInForce(s)})
	c.publish(s)
	c.noteOccasions(s, w, seen)
}

func firstTime(a, b time.Time) time.Time {
	if a.IsZero() {
		return b
	}
	return a
}

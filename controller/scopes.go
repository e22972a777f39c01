// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/muxlet/muxlet/actuate"
	"github.com/muxlet/muxlet/controller/plan"
	"github.com/muxlet/muxlet/controller/record"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec"
)

// Scopes looks at the control groups of clients. It changes nothing.
type Scopes interface {
	// Bus is the address of the user's systemd manager; empty, with half a sentence why,
	// when there is none.
	Bus() (address, why string)
	// Of are the scopes of an instance that are there, by the uid of their session and by
	// incarnation. An error says that this is not known.
	Of(instance string) (map[string]map[int64]observe.Scope, error)
	// Members are the processes in a scope that may be signalled.
	Members(s observe.Scope) ([]observe.Process, error)
	// Watch counts what the kernel ends in a scope for want of memory, and gives a notice
	// with key of each. Again, it does nothing.
	Watch(s observe.Scope, key string)
	// Forget stops that.
	Forget(s observe.Scope)
	// OOM is what was counted in a scope that is watched.
	OOM(s observe.Scope) observe.OOM
	Notices() <-chan string
}

const (
	// sweepResyncs is after how many resyncs scopes are looked for whose session is gone.
	sweepResyncs = 40
	// sweepGrace is how long what is in one of them has to end by itself.
	sweepGrace = 3 * time.Second
	// busPatience bounds a look whether somebody listens on a bus.
	busPatience = 150 * time.Millisecond
)

// watchScopes turns notices of what the kernel has ended into hints.
func (c *Controller) watchScopes(ctx context.Context) {
	if c.Scopes == nil {
		return
	}
	for {
		select {
		case <-ctx.Done():
			return
		case key, open := <-c.Scopes.Notices():
			if !open {
				return
			}
			c.enqueue(key, time.Time{})
		}
	}
}

// scopesFor says whether a client could be put into a scope now.
func (c *Controller) scopesFor() plan.Scopes {
	if c.Scopes == nil {
		return plan.Scopes{Known: true, Problem: "this system has no systemd"}
	}
	if c.settings().Scopes == spec.ScopesNever {
		return plan.Scopes{Known: true, Problem: "the settings say scopes: Never"}
	}
	bus, why := c.Scopes.Bus()
	return plan.Scopes{Known: true, Bus: bus, Problem: why}
}

// seeScopes adds what is in the session's scopes, where that matters: while something is
// ended, and while there is no client.
func (c *Controller) seeScopes(seen *plan.Seen, s *session, instance string) {
	r := &s.rec
	if c.Scopes == nil {
		return
	}
	if r.Client != nil && r.Client.Scope.Name != "" {
		seen.OOM = c.Scopes.OOM(r.Client.Scope)
	}
	if r.Stop == nil && (r.Client != nil || r.Attempt != nil) {
		return
	}
	seen.Remains = slices.DeleteFunc(c.membersOf(s, instance), func(p observe.Process) bool { return isClient(seen, p) })
	if r.Stop == nil {
		return
	}
	for _, p := range seen.Remains {
		if p != r.Stop.Process && !slices.Contains(seen.TreeRunning, p) {
			seen.TreeRunning = append(seen.TreeRunning, p)
		}
	}
}

// membersOf are the processes in scopes of the session's earlier clients, and of one that
// is being ended.
func (c *Controller) membersOf(s *session, instance string) []observe.Process {
	scopes, err := c.Scopes.Of(instance)
	if err != nil {
		c.Log.V(1).Info("Scopes were not listed", "session", s.name, "err", err.Error())
		return nil
	}
	var all []observe.Process
	for incarnation, scope := range scopes[s.rec.UID] {
		if !isOver(&s.rec, incarnation) {
			continue
		}
		members, err := c.Scopes.Members(scope)
		if err != nil {
			c.Log.V(1).Info("Processes of a scope were not listed", "session", s.name, "scope", scope.Name, "err", err.Error())
		}
		if !c.shared(s.rec.UID, members) {
			all = append(all, members...)
		}
	}
	return all
}

// shared says whether what is in a scope of a session is not that session's alone. A daemon
// that a person has started in its terminal starts the tmux server there, and with it every
// launcher, and each client that gets no scope of its own: who of them is whose cannot be
// told by the scope, and it would be the end of all sessions.
func (c *Controller) shared(uid string, members []observe.Process) bool {
	c.mu.Lock()
	server := c.server.recorded
	c.mu.Unlock()
	return slices.ContainsFunc(members, func(p observe.Process) bool {
		return server != nil && p == server.Process || c.eyes.isOthers(uid, p)
	})
}

// isOver says whether the incarnation's scope is one of those that the record accounts for
// as over, or ends: not that of a client that runs beside what is ended, nor of one that
// nobody knows yet.
func isOver(r *record.Record, incarnation int64) bool {
	if a := r.Attempt; a != nil && r.Client == nil && r.Stop != nil && r.Stop.Reason == record.StopStartTimeout && incarnation == a.Incarnation {
		return true
	}
	if c := r.Client; c != nil && incarnation == c.Incarnation {
		return r.Stop != nil && r.Stop.Process == c.Process
	}
	return incarnation <= r.Incarnation
}

// isClient says whether a process is a client of the session, which is judged by itself.
func isClient(seen *plan.Seen, p observe.Process) bool {
	return slices.ContainsFunc(seen.Clients, func(m observe.MarkedProcess) bool { return m.Process == p })
}

// followScope has the scope of the present client watched, and no other of the session.
func (c *Controller) followScope(s *session) {
	if c.Scopes == nil {
		return
	}
	var wanted observe.Scope
	if s.rec.Client != nil {
		wanted = s.rec.Client.Scope
	}
	if s.scope != wanted && s.scope.Name != "" {
		c.Scopes.Forget(s.scope)
	}
	if s.scope = wanted; wanted.Name != "" {
		c.Scopes.Watch(wanted, s.name)
	}
}

// tellScope tells once, as long as this daemon runs, that a client is outside of the
// scope that it should have.
func (c *Controller) tellScope(s *session, in plan.Input, p plan.Plan) {
	problem := in.Seen.Receipt.ScopeProblem
	if problem == "" || p.Verdict.Reason != spec.ReasonStarted || s.scopeTold {
		return
	}
	s.scopeTold = true
	e := plan.Event{Type: plan.Warning, Reason: spec.ReasonScopeFailed, Message: "The client runs outside of a scope of its own: " + problem}
	if r := p.Record.Client.Launched; r != nil && !r.Resources.Limits.None() {
		e.Reason, e.Message = spec.ReasonResourcesIgnored, "The client runs without its limits (spec.resources): "+problem
	}
	c.tell(s.name, s.rec.UID, e)
}

// managerCleared says whether a launcher might get its scope now. A manager that has
// refused would do so again, until another one has taken its place.
func managerCleared(b *record.Block) bool {
	return b.File == "" || listens(b.File) && (b.LookedFor == "" || changedSince(b.File, b.At))
}

// listens says whether somebody listens on a Unix socket.
func listens(path string) bool {
	conn, err := net.DialTimeout("unix", path, busPatience)
	return err == nil && conn.Close() == nil
}

// sweepScopes ends what is left in scopes of sessions that are proven to be gone: their
// record is in the archive, and no client of them runs. Who was left running by
// deletionPolicy Orphan stays. It is done once tmux and the process table were looked
// at, and now and then after that.
func (c *Controller) sweepScopes(ctx context.Context) {
	now := c.Clock.Now()
	c.mu.Lock()
	instance, actuator := c.instance, c.actuator
	due := c.Scopes != nil && c.server.scanned && instance != "" && actuator != nil && !now.Before(c.sweepDue)
	c.mu.Unlock()
	if !due {
		return
	}
	c.sweepDue = now.Add(sweepResyncs * c.settings().Resync)
	scopes, err := c.Scopes.Of(instance)
	if err != nil {
		c.Log.Error(err, "Scopes were not listed")
		return
	}
	left := map[string]time.Time{}
	for uid, of := range scopes {
		if !c.gone(uid) {
			continue
		}
		for _, scope := range of {
			since, again := c.sweeping[scope.Name]
			if !again {
				since = now
			}
			if c.sweepScope(ctx, actuator, uid, scope, since, again) {
				left[scope.Name] = since
			}
		}
	}
	if c.sweeping = left; len(left) > 0 {
		c.sweepDue = now.Add(sweepGrace)
		c.queue.AddAfter(serverKey, sweepGrace)
	}
}

// sweepScope signals what is in a scope, and says whether anything was.
func (c *Controller) sweepScope(ctx context.Context, actuator actuate.Actuator, uid string, scope observe.Scope, since time.Time, again bool) bool {
	members, err := c.Scopes.Members(scope)
	if err != nil || len(members) == 0 || c.shared(uid, members) {
		return false
	}
	signal := actuate.SignalTerm
	if again && c.Clock.Now().Sub(since) >= sweepGrace {
		signal = actuate.SignalKill
	}
	if !again {
		c.tell("", "", plan.Event{Type: plan.Warning, Reason: spec.ReasonLeftoversEnded, Message: fmt.Sprintf(
			"Ending %d processes that a session that was removed has left in %s", len(members), scope.Name)})
	}
	ctx, cancel := context.WithTimeout(ctx, actTimeout)
	defer cancel()
	out := actuator.Do(ctx, actuate.Action{Kind: actuate.ActionSignal, Signal: signal, Processes: members})
	c.Log.Info("Signalled what a removed session has left", "scope", scope.Name, "signal", signal, "processes", len(members), "result", out.Result)
	return true
}

// gone says whether a session is proven to have been removed, with everything that is
// its.
func (c *Controller) gone(uid string) bool {
	c.mu.Lock()
	known := c.byUID[uid] != nil || len(c.bad) > 0
	c.mu.Unlock()
	if known || len(c.eyes.marked(uid)) > 0 || c.Processes.Lease(uid).State != observe.Gone {
		return false
	}
	r, archived := c.Store.Removed(uid)
	return archived && (r.Spec == nil || r.Spec.DeletionPolicy != spec.DeletionOrphan)
}

// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muxlet/muxlet/controller/server"
	"github.com/muxlet/muxlet/spec"
	"github.com/muxlet/muxlet/spec/manifest"
)

var _ server.Backend = (*Controller)(nil)

// Sessions lists all sessions by name.
func (c *Controller) Sessions() spec.SessionList {
	<-c.loaded
	c.mu.Lock()
	defer c.mu.Unlock()
	// Whatever is published is published under the same lock.
	out := spec.SessionList{ListMeta: metav1.ListMeta{ResourceVersion: c.journals.Sessions.Revision()}, Items: make([]spec.Session, 0, len(c.sessions))}
	for _, s := range c.sessions {
		out.Items = append(out.Items, c.object(s))
	}
	slices.SortFunc(out.Items, func(a, b spec.Session) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// Session is one of them.
func (c *Controller) Session(name string) (spec.Session, error) {
	<-c.loaded
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.sessions[name]
	if s == nil {
		return spec.Session{}, server.NewNotFound(name)
	}
	return c.object(s), nil
}

// unvisited is the status of a session that this daemon has not looked at yet.
// Nothing that an earlier daemon wrote is passed on as true.
func unvisited(incarnation int64) spec.SessionStatus {
	st := spec.SessionStatus{Client: spec.ClientStatus{Incarnation: incarnation, RestartCount: max(incarnation-1, 0)}}
	for _, t := range spec.ConditionTypes {
		st.Conditions = append(st.Conditions, metav1.Condition{Type: t, Status: metav1.ConditionUnknown, Reason: spec.ReasonNotYetObserved, Message: "not looked at since the daemon started"})
	}
	return st
}

// Delete removes the document that declares the session.
func (c *Controller) Delete(ctx context.Context, name string) error {
	file, err := c.fileOf(name)
	if err != nil {
		return err
	}
	if err := c.recordFirst(ctx, name); err != nil {
		return err
	}
	if file != "" {
		if err := manifest.Remove(file, name); err != nil && !errors.Is(err, manifest.ErrNotDeclared) {
			return uneditable(name, file, err)
		}
	}
	c.refresh(func(s manifest.State) manifest.State { return manifest.Deleted(s, name) })
	// The answer is given when the removal is on disk. A session without a record, or
	// one that is gone by now, has nothing to write down.
	err = c.ask(ctx, name, requestRemoval)
	switch server.ReasonOf(err) {
	case server.ReasonProvisioningFailed, server.ReasonTmuxUnavailable:
		return err
	}
	return ctx.Err()
}

// recordFirst sees to it that a session is known for what it is before its
// document goes. After a loss of the state a client may run of which only a look
// tells that it is the session's; without document and record it would be
// nobody's, and run for ever.
func (c *Controller) recordFirst(ctx context.Context, name string) error {
	c.mu.Lock()
	s := c.sessions[name]
	recorded := s == nil || s.rec.UID != ""
	c.mu.Unlock()
	if recorded {
		return nil
	}
	err := c.ask(ctx, name, requestRemoval)
	switch server.ReasonOf(err) {
	case server.ReasonInvalid, server.ReasonNotFound:
		// No client was started from a document that never was valid.
		return nil
	}
	return err
}

func (c *Controller) fileOf(name string) (string, error) {
	<-c.loaded
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.sessions[name]
	if s == nil {
		return "", server.NewNotFound(name)
	}
	if d, ok := c.desired.Sessions[name]; ok && d.File != "" {
		return d.File, nil
	}
	return s.rec.File, nil
}

func uneditable(name, file string, err error) error {
	switch {
	case errors.Is(err, manifest.ErrReadOnly):
		return server.NewError(server.ReasonForbidden, name, fmt.Sprintf("%s cannot be written: edit it where it comes from", file))
	case errors.Is(err, manifest.ErrChanged):
		return server.NewError(server.ReasonConflict, name, err.Error())
	}
	return server.NewError(server.ReasonInvalid, name, err.Error())
}

// Prune ends the removals that are held back.
func (c *Controller) Prune(_ context.Context, confirm bool) (server.PruneResult, error) {
	<-c.loaded
	// What was removed a moment ago is held only once it was looked for.
	c.refresh(nil)
	held := c.held()
	if !confirm || len(held) == 0 {
		return server.PruneResult{WouldRemove: held}, nil
	}
	c.refresh(func(s manifest.State) manifest.State { return manifest.Confirm(s, nil) })
	still := map[manifest.Ref]bool{}
	for _, h := range c.held() {
		still[manifest.Ref{Kind: h.Kind, Name: h.Name}] = true
	}
	out := server.PruneResult{}
	for _, h := range held {
		if still[manifest.Ref{Kind: h.Kind, Name: h.Name}] {
			out.WouldRemove = append(out.WouldRemove, h)
		} else {
			out.Removed = append(out.Removed, h)
		}
	}
	return out, nil
}

func (c *Controller) held() []server.HeldRemoval {
	c.mu.Lock()
	defer c.mu.Unlock()
	var held []server.HeldRemoval
	for name, d := range c.desired.Sessions {
		if d.Presence == manifest.Held {
			held = append(held, server.HeldRemoval{Name: name, Message: d.Message})
		}
	}
	for name, d := range c.desired.Classes {
		if d.Presence == manifest.Held {
			held = append(held, server.HeldRemoval{Kind: spec.KindClientClass, Name: name, Message: d.Message})
		}
	}
	slices.SortFunc(held, func(a, b server.HeldRemoval) int {
		return cmp.Or(strings.Compare(a.Kind, b.Kind), strings.Compare(a.Name, b.Name))
	})
	return held
}

// Status of the daemon itself.
func (c *Controller) Status() server.DaemonStatus {
	held := c.held()
	snap, lastKnown, _ := c.eyes.latest()
	socket := c.socket()
	c.mu.Lock()
	defer c.mu.Unlock()
	st := server.DaemonStatus{
		Version: c.Version, PID: os.Getpid(), StartedAt: metav1.NewTime(c.startedAt), Instance: c.instance,
		Manifests: c.settings().Manifests, StateDir: c.StateDir, RuntimeDir: c.RuntimeDir, TmuxSocket: socket,
		Tmux: server.ObservedStatus{State: server.StateUnknown, Reason: spec.ReasonNotYetObserved, Message: "tmux was not asked yet", At: metav1.NewTime(lastKnown)},
		Held: held, Roots: c.roots,
	}
	st.Problems = c.hindered()
	if failing := c.notifier.failing(); failing != "" {
		st.Problems = append(st.Problems, failing)
	}
	for _, p := range c.desired.Problems {
		st.Problems = append(st.Problems, p.Error())
	}
	if snap != nil {
		v := snap.view
		st.Tmux.State, st.Tmux.Reason, st.Tmux.Message = v.State.String(), v.Reason, v.Message
		st.Tmux.ServerPID, st.Tmux.ServerVersion = v.Listing.Server.Process.PID, v.Listing.Server.Version
		st.Unclaimed = c.unclaimed(snap)
	}
	return st
}

// unclaimed are panes of this instance that no session claims. c.mu is held.
func (c *Controller) unclaimed(snap *snapshot) []server.UnclaimedPane {
	claimed := map[string]bool{}
	for _, s := range c.sessions {
		claimed[s.rec.UID] = true
	}
	var out []server.UnclaimedPane
	for uid, panes := range snap.panes {
		for _, p := range panes {
			if !claimed[uid] {
				out = append(out, server.UnclaimedPane{Pane: p.PaneID, TmuxSession: p.SessionName, Name: p.Labels.Name, UID: uid, PID: p.PID})
			}
		}
	}
	slices.SortFunc(out, func(a, b server.UnclaimedPane) int { return strings.Compare(a.Pane, b.Pane) })
	return out
}

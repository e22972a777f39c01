// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/muxlet/muxlet/actuate"
	"github.com/muxlet/muxlet/controller/record"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec"
)

const (
	// scopeSlice is the unit below which the scopes of all clients are.
	scopeSlice = "muxlet.slice"
	// oomPatience is how far a client's end and what the kernel ended in its scope may lie
	// apart for one to be the other. The kernel tells first, and a large process takes a
	// while to end.
	oomPatience = 5 * time.Second
	// oomSettle is how long what the kernel has ended may be the client itself, whose own
	// end is seen a moment later.
	oomSettle = time.Second
)

// Scopes says whether clients can be put into scopes.
type Scopes struct {
	// Known is true when it was looked at.
	Known bool
	// Bus is the address of the user's systemd manager; empty when there is none that could
	// be asked, then Problem says why.
	Bus, Problem string
}

// needsLimits says whether the session's client is not to run without its limits.
func needsLimits(s *spec.SessionSpec) bool {
	return !s.Resources.Limits.None() && s.Resources.OnUnsupported != spec.UnsupportedIgnore
}

// unlimitable is why the limits of the session cannot be put in force; empty when they
// can as far as is known, or need not.
func (p *pass) unlimitable() string { return Unlimitable(p.rec.Spec, p.Scopes) }

// Unlimitable is why a spec's limits cannot be put in force, in one sentence; empty when
// they can as far as is known, or need not. The spec may be nil.
func Unlimitable(s *spec.SessionSpec, scopes Scopes) string {
	if s == nil || !scopes.Known || scopes.Bus != "" || !needsLimits(s) {
		return ""
	}
	return fmt.Sprintf("spec.resources.limits cannot be put in force: %s; start the systemd manager of this user (loginctl enable-linger), or set spec.resources.onUnsupported: Ignore", scopes.Problem)
}

// scopeOrder is the scope of a new client; nil when it needs none and could have none.
func (p *pass) scopeOrder(incarnation int64) *actuate.ScopeOrder {
	limits := &p.rec.Spec.Resources.Limits
	if p.Scopes.Bus == "" && limits.None() {
		return nil
	}
	o := &actuate.ScopeOrder{
		Name: observe.ScopeName(p.New.Instance, p.rec.UID, incarnation), Bus: p.Scopes.Bus, Problem: p.Scopes.Problem,
		Slice: scopeSlice, Description: "muxlet session " + p.rec.Name, StopTimeout: p.grace(), Required: needsLimits(p.rec.Spec),
	}
	o.MemoryBytes = amountOf(limits.Memory, (*resource.Quantity).Value)
	// A thousandth of a processor is a millisecond of each second.
	o.CPUMicroseconds = amountOf(limits.CPU, (*resource.Quantity).MilliValue) * 1000
	if limits.Tasks != nil {
		o.Tasks = uint64(*limits.Tasks)
	}
	return o
}

func amountOf(q *resource.Quantity, value func(*resource.Quantity) int64) uint64 {
	if q == nil {
		return 0
	}
	return uint64(max(value(q), 0))
}

// remains are the processes that are left in the session's scopes though its client is
// gone and none is on its way.
func (p *pass) remains() []observe.Process {
	if p.rec.Client != nil || p.rec.Attempt != nil {
		return nil
	}
	return p.Seen.Remains
}

// oomKilled says whether the client that has ended so was ended by the kernel for want of
// memory. tmux may have lost the signal.
func (p *pass) oomKilled(e end) bool {
	if p.Seen.OOM.At.IsZero() || e.exit != nil && e.exit.Signal != sigKill {
		return false
	}
	apart := p.Now.Add(-p.Seen.GoneFor).Sub(p.Seen.OOM.At)
	return apart.Abs() <= oomPatience
}

const sigKill = 9

// memorySentence names the limit that the client was launched with.
func memorySentence(c *record.Client) string {
	if c.Launched == nil || c.Launched.Resources.Limits.Memory == nil {
		return "the machine, or a control group around the session, has run out of memory"
	}
	limit := c.Launched.Resources.Limits.Memory.DeepCopy()
	return fmt.Sprintf("it had used up its limit of %s (spec.resources.limits.memory)", &limit)
}

// tellOOM tells once of what the kernel has ended in the scope of a client that goes on.
// again is when to look, where it may have been the client itself.
func (p *pass) tellOOM(c *record.Client) (again time.Duration) {
	oom := p.Seen.OOM
	if oom.Kills <= c.OOMKills {
		return 0
	}
	if left := oom.At.Add(oomSettle).Sub(p.Now); left > 0 && left <= oomSettle {
		return left
	}
	c.OOMKills = oom.Kills
	p.event(Warning, spec.ReasonOOMKilled, fmt.Sprintf("A process that incarnation %d had started was ended for want of memory: %s; the client, pid %d, goes on",
		c.Incarnation, memorySentence(c), c.Process.PID))
	return 0
}

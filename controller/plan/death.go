// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/muxlet/muxlet/actuate"
	"github.com/muxlet/muxlet/controller/record"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec"
)

// end is how a client came to its end.
type end struct {
	exit *observe.Exit
	// own is true when the client ended in a pane that outlived it. A client that
	// was lost with its pane, its server or its host did not end by itself.
	own bool
}

func (e end) sentence() string {
	switch {
	case e.exit == nil:
		return "how it ended was not observed"
	case e.exit.Signal != 0:
		return fmt.Sprintf("ended by %s", SignalName(e.exit.Signal))
	default:
		return fmt.Sprintf("exited with status %d", e.exit.Code)
	}
}

func (e end) reason() string {
	switch {
	case e.exit == nil:
		return spec.ReasonLost
	case e.exit.Signal != 0:
		return spec.ReasonKilled
	case e.exit.Code == 0:
		return spec.ReasonCompleted
	default:
		return spec.ReasonExited
	}
}

// SignalName is the usual name of a signal's number, such as SIGKILL.
func SignalName(n int) string {
	if name := unix.SignalName(unix.Signal(n)); name != "" {
		return name
	}
	return fmt.Sprintf("signal %d", n)
}

// endOfClient reads how the recorded client ended. tmux 3.3a loses most SIGKILLs
// of a quiet machine (facts: 61 of 71): then the pane is dead without a status,
// or not even dead, until the server gets a SIGCHLD. wait is true while that may
// still help; the plan then has the action and the time to look again.
func (p *pass) endOfClient() (e end, wait bool) {
	pane, found := p.panePIDOf(p.rec.Client)
	if !found {
		return end{exit: p.Seen.ClientExit}, false
	}
	if pane.StatusKnown() {
		return end{exit: exitOf(pane.Pane), own: true}, false
	}
	// A shell between the pane and the client has an end of its own; the client's
	// is in no pane then.
	shellRemains := pane.State == observe.Present && pane.PID != p.rec.Client.Process.PID && pane.Live != observe.Gone
	if shellRemains && pane.Live == observe.LivenessUnknown {
		p.plan.RequeueAfter = pollSlow
		return end{}, true
	}
	if shellRemains || p.Seen.GoneFor >= statusPatience {
		return end{exit: p.Seen.ClientExit, own: true}, false
	}
	p.plan.Action = actuate.Action{Kind: actuate.ActionReap, Server: p.Seen.Server}
	p.plan.RequeueAfter = max(pollStatus, p.Seen.GoneFor/4)
	return end{}, true
}

// lookAgain: the client has ended since tmux was asked. Nothing is decided on a
// listing from its lifetime. tmux gets its SIGCHLD while it is asked again: the
// answer then tells the end, which costs a restart no second question. An end
// that was asked for is the Stop's to judge.
func (p *pass) lookAgain() bool {
	c := p.rec.Client
	if c == nil || p.rec.Stop != nil || p.Seen.Client != observe.Gone || !p.Seen.Outdated {
		return false
	}
	if p.Seen.ServerState == observe.ServerRunning {
		p.plan.Action = actuate.Action{Kind: actuate.ActionReap, Server: p.Seen.Server}
	}
	return p.say(spec.ReasonDied, fmt.Sprintf("pid %d is gone; asking tmux what is left of it", c.Process.PID), soon)
}

// panePIDOf finds the pane that the client was executed in, as long as it still
// shows the same first process.
func (p *pass) panePIDOf(c *record.Client) (SeenPane, bool) {
	for _, pane := range p.Seen.Panes {
		if pane.Labels.Attempt == c.Attempt && (pane.PID == c.PanePID || pane.PID == c.Process.PID) {
			return pane, true
		}
	}
	return SeenPane{}, false
}

func exitOf(pane observe.Pane) *observe.Exit {
	if pane.ExitSignal != 0 {
		return &observe.Exit{Signal: pane.ExitSignal}
	}
	if pane.ExitStatus == nil {
		return nil
	}
	return &observe.Exit{Code: *pane.ExitStatus}
}

// accountDeath: the recorded client is gone and nobody stopped it. The end is
// written down once, counted, and judged by the restart policy.
func (p *pass) accountDeath() bool {
	c := p.rec.Client
	if c == nil {
		return false
	}
	switch p.Seen.Client {
	case observe.Gone:
	case observe.Running:
		return false
	case observe.LivenessUnknown:
		return p.say(spec.ReasonProcessUnknown, fmt.Sprintf("whether pid %d still runs could not be read", c.Process.PID), pollSlow)
	}
	e, wait := p.endOfClient()
	if wait {
		return p.say(spec.ReasonDied, fmt.Sprintf("pid %d is gone; waiting for its end to be known", c.Process.PID), p.plan.RequeueAfter)
	}
	t := record.Termination{Incarnation: c.Incarnation, Exit: e.exit, Reason: e.reason(), Message: e.sentence(), At: p.Now}
	if p.oomKilled(e) {
		t.Reason, t.Message = spec.ReasonOOMKilled, "ended by the kernel for want of memory: "+memorySentence(c)
	}
	if !e.own {
		t.Message = "its pane was lost; " + e.sentence()
	}
	p.countDeath(c.StartedAt)
	p.countNotFound(c, e)
	p.closeClient(t)
	p.tellDeath(c, e, t)
	if e.own {
		p.judgeExit(e)
	}
	return false
}

func (p *pass) tellDeath(c *record.Client, e end, t record.Termination) {
	kind := Warning
	if e.own && e.exit != nil && *e.exit == (observe.Exit{}) {
		kind = Normal
	}
	reason := spec.ReasonDied
	if t.Reason == spec.ReasonOOMKilled {
		reason = t.Reason
	}
	p.event(kind, reason, fmt.Sprintf("Incarnation %d, pid %d: %s", c.Incarnation, c.Process.PID, t.Message))
}

// judgeExit: a client's own exit may be the end of its work.
func (p *pass) judgeExit(e end) {
	if p.rec.Spec == nil {
		return
	}
	if completes(p.rec.Spec.RestartPolicy, e.exit) {
		p.latch(spec.ReasonCompleted, fmt.Sprintf("%s; restartPolicy is %s", e.sentence(), p.rec.Spec.RestartPolicy))
		p.event(Normal, spec.ReasonCompleted, "Stays down: "+p.rec.Latch.Message)
	}
}

// completes says whether the policy leaves a client down after its own exit; an
// unknown status is a failure.
func completes(policy spec.RestartPolicy, exit *observe.Exit) bool {
	switch policy {
	case spec.RestartNever:
		return true
	case spec.RestartOnFailure:
		return exit != nil && *exit == (observe.Exit{})
	default:
		return false
	}
}

// countDeath counts the nth death in a row. A client that lived long enough
// starts the count anew.
func (p *pass) countDeath(startedAt time.Time) {
	if p.Now.Sub(startedAt) >= p.Policy.BackOffReset {
		p.rec.BackOff.Deaths = 0
	}
	p.rec.BackOff.Deaths++
	p.rec.BackOff.LastDeathAt = p.Now.Add(-min(p.Seen.GoneFor, statusPatience))
}

// wait is the time from the nth death in a row to the next start: 0, 1, 2, 4 …
// times the initial wait, at most the maximum.
func (p Policy) wait(deaths int) time.Duration {
	if deaths <= 1 {
		return 0
	}
	w := p.BackOffInitial
	for n := 2; n < deaths && w < p.BackOffMax; n++ {
		w *= 2
	}
	return min(w, p.BackOffMax)
}

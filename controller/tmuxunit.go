// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"time"

	"github.com/muxlet/muxlet/actuate"
	"github.com/muxlet/muxlet/controller/plan"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec"
)

const (
	// unitPoll is the time between two looks for a server that was asked for.
	unitPoll = 100 * time.Millisecond
	// unitTries are how often a unit is asked for before it is said that it does not come:
	// three and a half seconds, while a unit is started in a fraction of one.
	unitTries = 4
)

// startUnit asks systemd to start the unit that owns the tmux server. That the unit was
// asked for is no proof of a server: the next looks tell.
func (c *Controller) startUnit(ctx context.Context, actuator actuate.Actuator, unit string) time.Duration {
	out := actuate.Outcome{Result: actuate.ResultFailed}
	if err := c.PrepareRuntime(); err != nil {
		out.Message = err.Error()
	} else {
		out = actuator.Do(ctx, actuate.Action{Kind: actuate.ActionStartUnit, Unit: unit})
	}
	c.Log.V(1).Info("Asked for the unit of the tmux server", "unit", unit, "result", out.Result, "message", out.Message)
	switch {
	case ctx.Err() != nil:
		return 0
	case out.Result != actuate.ResultDone:
		return c.serverFailed("no tmux server runs: " + out.Message)
	}
	c.mu.Lock()
	tries := c.server.failures + 1
	c.mu.Unlock()
	if tries > unitTries {
		return c.serverFailed(fmt.Sprintf("no tmux server answers on %s, though systemd was asked to start %s: look at its status with systemctl", c.socket(), unit))
	}
	after := c.serverTried()
	if tries == 1 {
		c.tell("", "", plan.Event{Type: plan.Normal, Reason: spec.ReasonServerAsked, Message: "Asked systemd to start " + unit + ", which owns the tmux server"})
	}
	return c.untilAnswer(after)
}

// untilAnswer is when to look for a server again: often while one was just asked for, since
// nobody gives notice of it.
func (c *Controller) untilAnswer(left time.Duration) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.settings().ServerUnit != "" && c.server.failure == "" && c.server.failures > 0 {
		return min(left, unitPoll)
	}
	return left
}

// tellSharedUnit tells of a server that systemd would end with this daemon, once for each
// server: a crash or a restart of the daemon would be the end of every client.
func (c *Controller) tellSharedUnit(s observe.Server) {
	c.mu.Lock()
	known := c.SharedUnit == nil || c.server.unitOf == s.Process
	c.server.unitOf = s.Process
	c.mu.Unlock()
	if known {
		return
	}
	unit := c.SharedUnit(s.Process)
	if unit == "" {
		return
	}
	message := fmt.Sprintf("The tmux server (pid %d) is in this daemon's own unit %s: every session would end with the daemon; \"muxlet install\" gives the server a unit of its own, and the next server is in it",
		s.Process.PID, unit)
	c.Log.Error(nil, "Tmux server would end with the daemon", "serverPID", s.Process.PID, "unit", unit)
	c.tell("", "", plan.Event{Type: plan.Warning, Reason: spec.ReasonServerSharesUnit, Message: message})
}

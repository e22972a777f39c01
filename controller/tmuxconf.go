// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"time"

	"github.com/muxlet/muxlet/actuate"
	"github.com/muxlet/muxlet/controller/plan"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec"
)

// configured is a configuration that a server was given.
type configured struct {
	server observe.Process
	name   string
	at     time.Time
	told   bool
}

// configuration names what the tmux server is to have.
func (c *Controller) configuration() string {
	if c.TmuxConfiguration == nil {
		return ""
	}
	return c.TmuxConfiguration()
}

// Reconfigure asks for a look at whether the tmux server has its configuration.
func (c *Controller) Reconfigure() { c.queue.Add(serverKey) }

// reconfigure gives our server its configuration when it has another one. One that does not
// take it is given it again with each resync, and told of once.
func (c *Controller) reconfigure(ctx context.Context, actuator actuate.Actuator, l observe.Listing) {
	name, now := c.configuration(), c.Clock.Now()
	if name == "" || l.Configuration == name {
		return
	}
	next := configured{server: l.Server.Process, name: name, at: now}
	c.mu.Lock()
	last := c.server.configured
	c.mu.Unlock()
	same := last.server == next.server && last.name == name
	if same && now.Sub(last.at) < c.settings().Resync {
		return
	}
	out := actuate.Outcome{Result: actuate.ResultFailed}
	if err := c.PrepareRuntime(); err != nil {
		out.Message = err.Error()
	} else {
		out = actuator.Do(ctx, actuate.Action{Kind: actuate.ActionConfigure, Server: l.Server, Configuration: name})
	}
	next.told = same && last.told
	if out.Result != actuate.ResultDone && !next.told {
		next.told = true
		c.tell("", "", plan.Event{Type: plan.Warning, Reason: spec.ReasonTmuxNotConfigured, Message: "The tmux server did not take its configuration: " + out.Message})
	}
	c.mu.Lock()
	c.server.configured = next
	c.mu.Unlock()
	c.Log.Info("Gave the tmux server its configuration", "serverPID", l.Server.Process.PID, "configuration", name, "result", out.Result, "message", out.Message)
}

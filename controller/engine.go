// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"github.com/muxlet/muxlet/controller/plan"
	"github.com/muxlet/muxlet/observe"
)

// seeEngine judges the engine of a client that runs, and looks for one where the record
// names none, or one that is gone.
func (c *Controller) seeEngine(in *plan.Input) {
	executable := plan.EngineOf(*in)
	if executable == "" || in.Seen.Client != observe.Running {
		return
	}
	client := in.Record.Client
	if known := client.Engine; !known.IsZero() {
		if in.Seen.Engine = c.eyes.stateOf(known); in.Seen.Engine != observe.Gone {
			return
		}
		in.Seen.EngineGoneFor = c.Clock.Now().Sub(c.eyes.markGone(known, c.Clock.Now()))
	}
	next, err := c.Processes.Engine(client.Process, executable)
	if err != nil {
		c.Log.V(1).Info("Engine of a client was not looked for", "session", in.Record.Name, "err", err.Error())
		return
	}
	in.Seen.NextEngine, in.Seen.NoEngine = next, next.IsZero()
}

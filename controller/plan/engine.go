// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"time"

	"github.com/muxlet/muxlet/controller/record"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec"
)

// EngineOf is the base name of the program that does the work of the session's client;
// empty when the class that it was started by names none, or is not in force.
func EngineOf(in Input) string {
	s, c := in.Desired.Spec, in.Record.Client
	if s == nil {
		s = in.Record.Spec
	}
	if s == nil || c == nil {
		return ""
	}
	return (&pass{class: ClassOf(&in.Record, s, in.Class)}).engineOf(c)
}

func (p *pass) engineOf(c *record.Client) string {
	if class := p.classOfClient(c); class != nil {
		return class.Spec.Engine.Executable
	}
	return ""
}

// engineGone: the client's process may be a wrapper, and the program that does its
// work may end without it. Its pane then looks alive for ever and takes no turn. But a
// wrapper ends a moment after its engine as a rule, and that end is the one to tell; it
// may start its engine again; and one that is on its way may run a program of that name
// first. So it is ended only when the engine that was seen is proven to be gone and no
// other is there, after a patience. What could not be read, and an engine that was
// never seen, decide nothing.
func (p *pass) engineGone(c *record.Client) bool {
	executable := p.engineOf(c)
	if executable == "" {
		return false
	}
	if p.Seen.Engine != observe.Running && !p.Seen.NextEngine.IsZero() {
		c.Engine = p.Seen.NextEngine
		return false
	}
	if c.Engine.IsZero() || p.Seen.Engine != observe.Gone || !p.Seen.NoEngine || c.Engine == c.Process {
		return false
	}
	patience := p.enginePatience(c)
	if left := patience - p.Seen.EngineGoneFor; left > 0 {
		return p.say(spec.ReasonEngineGone, fmt.Sprintf("pid %d runs without %s, pid %d, which has ended; it is ended in %s unless it ends by itself or starts another",
			c.Process.PID, executable, c.Engine.PID, left.Round(time.Second)), max(left, soon))
	}
	return p.beginStop(record.StopEngineGone, c.Process)
}

// enginePatience is how long a client may live without its engine.
func (p *pass) enginePatience(c *record.Client) time.Duration {
	if !p.watched(c) || !c.ReadyAt.IsZero() {
		return enginePatience
	}
	return max(enginePatience, p.readyTimeout())
}

// pollEngine is when to look for an engine that was not seen yet, as long as the client
// may be on its way to it.
func (p *pass) pollEngine(c *record.Client) time.Duration {
	age := p.Now.Sub(c.StartedAt)
	if !c.Engine.IsZero() || p.engineOf(c) == "" || age >= p.readyTimeout() {
		return 0
	}
	return poll(age)
}

// closeWrapper writes down the end of a client whose engine had ended before it. It is
// judged as an end of which the status is not known.
func (p *pass) closeWrapper(c *record.Client, e end) {
	message := "the program that does its work ended and its wrapper did not"
	p.countDeath(c.StartedAt)
	p.closeClient(record.Termination{Incarnation: c.Incarnation, Exit: e.exit, Reason: spec.ReasonEngineGone, Message: message, At: p.Now})
	p.event(Warning, spec.ReasonEngineGone, fmt.Sprintf("Incarnation %d, pid %d, was ended: %s", c.Incarnation, c.Process.PID, message))
	p.judgeExit(end{own: true})
}

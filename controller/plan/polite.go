// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"time"

	"github.com/muxlet/muxlet/actuate"
	"github.com/muxlet/muxlet/controller/record"
	"github.com/muxlet/muxlet/observe"
)

// asked is when the process was first asked to end; zero before.
func asked(s *record.Stop) time.Time {
	if !s.PoliteAt.IsZero() {
		return s.PoliteAt
	}
	return s.TermAt
}

func howAsked(s *record.Stop) string {
	if s.PoliteAt.IsZero() {
		return "SIGTERM"
	}
	return "its class's way to end it"
}

// politeness is how much of the grace period the class's own way to end a client gets
// before SIGTERM.
func politeness(grace time.Duration) time.Duration { return max(grace/3, time.Second) }

// politeSignals are those that a class may name, but for SIGTERM, which follows anyway.
var politeSignals = map[string]actuate.Signal{
	string(actuate.SignalInterrupt): actuate.SignalInterrupt,
	string(actuate.SignalHangup):    actuate.SignalHangup,
	string(actuate.SignalQuit):      actuate.SignalQuit,
}

// askPolitely ends a client in the way of its class. Keys would reach whatever runs in
// the pane: they are typed only where that is the client.
func (p *pass) askPolitely(s *record.Stop) bool {
	c := p.rec.Client
	if c == nil || c.Process != s.Process {
		return false
	}
	class := p.classOfClient(c)
	if class == nil {
		return false
	}
	if len(class.Spec.Stop.Keys) == 0 {
		sig, ok := politeSignals[class.Spec.Stop.Signal]
		if ok {
			p.signal(sig, s.Process)
		}
		return ok
	}
	pane, ok := p.paneOf(liveClient{process: c.Process, panePID: c.PanePID})
	if !ok || pane.Live != observe.Running || pane.Taken() {
		return false
	}
	p.plan.Action = actuate.Action{Kind: actuate.ActionKeys, Server: p.Seen.Server, Pane: pane.Pane, Keys: class.Spec.Stop.Keys}
	return true
}

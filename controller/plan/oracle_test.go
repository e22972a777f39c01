// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/actuate"
	"github.com/muxlet/muxlet/controller/record"
	"github.com/muxlet/muxlet/observe"
)

// decide computes a plan and checks it against what holds for every plan.
func decide(t *testing.T, in Input) Plan {
	t.Helper()
	before := copyOf(in)
	p := Compute(in)
	require.Equal(t, before, in, "the input was changed")
	require.Equal(t, p, Compute(in), "the same input gave another plan")
	require.Empty(t, violations(in, p))
	return p
}

// copyOf shares nothing with in that a computation could change.
func copyOf(in Input) Input {
	in.Record = in.Record.Copy()
	in.Desired.Spec = in.Desired.Spec.DeepCopy()
	in.Seen.Panes = slices.Clone(in.Seen.Panes)
	in.Seen.Clients = slices.Clone(in.Seen.Clients)
	in.Seen.Tree = slices.Clone(in.Seen.Tree)
	in.Seen.TreeRunning = slices.Clone(in.Seen.TreeRunning)
	in.New.Variables = maps.Clone(in.New.Variables)
	return in
}

// violations are the invariants that a plan breaks, in words.
func violations(in Input, p Plan) []string {
	v := &verdicts{}
	before, after := in.Record, p.Record
	v.must(p.RequeueAfter >= 0, "a look in the past is asked for")
	v.must(after.UID == before.UID && after.Name == before.Name && after.CreatedAt.Equal(before.CreatedAt), "the session became another one")
	v.must(after.Incarnation >= before.Incarnation, "the incarnation fell from %d to %d", before.Incarnation, after.Incarnation)
	v.must(after.Generation >= before.Generation, "the generation fell")
	if in.Desired.Spec == nil {
		v.must(after.Generation == before.Generation, "without a spec there is no new generation")
	}
	v.must(after.Attempt == nil || after.Client == nil || before.Attempt != nil && before.Client != nil, "an attempt is pending beside a client")
	v.must(p.Fate == FateKeep || in.Desired.Want == Remove, "a session was removed that nobody removed")
	v.must(p.Fate == FateKeep || p.Action.Kind == actuate.ActionNone, "a removed session acts")
	v.must(p.Verdict.Rule != "" && p.Verdict.Reason != "", "the plan does not say why")
	if in.Seen.Sight == SightUnknown {
		v.whileUnknown(in, p)
	}
	v.must(!p.InFlight || after.Attempt != nil || after.Client != nil, "nothing is in flight")
	v.stops(in, p)
	v.action(in, p)
	v.conversation(in, p)
	v.engine(in, p)
	v.probe(in, p)
	v.turns(in, p)
	return v.broken
}

type verdicts struct{ broken []string }

func (v *verdicts) must(holds bool, format string, args ...any) {
	if !holds {
		v.broken = append(v.broken, fmt.Sprintf(format, args...))
	}
}

// whileUnknown: invariant 2.
func (v *verdicts) whileUnknown(in Input, p Plan) {
	v.must(p.Action.Kind == actuate.ActionNone, "%s although nothing was observed", p.Action.Kind)
	clamped := prepare(in)
	v.must(p.Fate == FateKeep && !p.Looked && reflect.DeepEqual(p.Events, clamped.plan.Events), "something was concluded although nothing was observed")
	v.must(equalRecords(clamped.rec, p.Record), "the record changed although nothing was observed")
}

// stops: a stop begins for a process that is proven to be ours only, and never
// with a signal.
func (v *verdicts) stops(in Input, p Plan) {
	s := p.Record.Stop
	if s == nil || in.Record.Stop != nil && in.Record.Stop.Process == s.Process {
		return
	}
	v.must(!s.Process.IsZero(), "a stop of no process")
	v.must(s.TermAt.IsZero() && p.Action.Kind == actuate.ActionNone, "a stop began with an action")
	known := in.Record.Client != nil && in.Record.Client.Process == s.Process || slices.Contains(in.Record.Survivors, s.Process) ||
		in.Record.Stop != nil && slices.Contains(in.Record.Stop.Descendants, s.Process) || slices.Contains(in.Seen.Remains, s.Process)
	for _, c := range in.Seen.Clients {
		known = known || c.Process == s.Process
	}
	for _, pane := range in.Seen.Panes {
		known = known || pane.Process == s.Process && pane.Live == observe.Running
	}
	v.must(known, "a stop of %s, which nothing names", s.Process)
}

// action: invariants 4, 5 and 10.
func (v *verdicts) action(in Input, p Plan) {
	a := p.Action
	v.must(a.Server == (observe.Server{}) || a.Server.Same(in.Seen.Server), "the action is for another server")
	switch a.Kind {
	case actuate.ActionNone, actuate.ActionReap:
	case actuate.ActionCreate:
		v.must(len(in.Seen.Panes) == 0 && in.Seen.NameHolder == "", "a session is created beside another one")
		v.start(in, p)
	case actuate.ActionRespawn, actuate.ActionRespawnKill:
		v.pane(in, a)
		v.must(a.Kind == actuate.ActionRespawnKill || a.Pane.State == observe.Dead, "a respawn into a pane that is not dead")
		v.start(in, p)
	case actuate.ActionKillPane:
		v.pane(in, a)
	case actuate.ActionRelease:
		v.release(in, a)
	case actuate.ActionSignal:
		v.signal(in, p)
	case actuate.ActionKeys:
		v.keys(in, p)
	case actuate.ActionPaste, actuate.ActionSubmit, actuate.ActionQueue: // see turns
	case actuate.ActionStartServer, actuate.ActionStartUnit, actuate.ActionConfigure, actuate.ActionRestoreSocket, actuate.ActionKeepServer, actuate.ActionClearBuffers, actuate.ActionShowWaiting:
		v.must(false, "%s is not a session's to do", a.Kind)
	}
}

// pane: only ours, and only one without a running process.
func (v *verdicts) pane(in Input, a actuate.Action) {
	for _, pane := range in.Seen.Panes {
		if pane.PaneID == a.Pane.PaneID {
			v.must(pane.Pane == a.Pane, "the action's pane is not the one that was seen")
			v.must(pane.State == observe.Dead || pane.Live == observe.Gone, "%s of a pane whose process runs", a.Kind)
			return
		}
	}
	v.must(false, "%s of pane %q, which was not seen", a.Kind, a.Pane.PaneID)
}

// release: only a pane that a person runs something in, and that no client of ours
// can be in.
func (v *verdicts) release(in Input, a actuate.Action) {
	for _, pane := range in.Seen.Panes {
		if pane.PaneID != a.Pane.PaneID {
			continue
		}
		v.must(pane.Pane == a.Pane, "the action's pane is not the one that was seen")
		v.must(pane.Taken() && pane.State == observe.Present && pane.Live == observe.Running, "a release of a pane that nobody has taken")
		for _, c := range in.Seen.Clients {
			known := in.Record.Client != nil && in.Record.Client.Process == c.Process && in.Seen.Client == observe.Gone
			v.must(known || c.Process.PID != pane.PID, "a release of the pane of a live client")
		}
		return
	}
	v.must(false, "a release of pane %q, which was not seen", a.Pane.PaneID)
}

func (v *verdicts) start(in Input, p Plan) {
	v.wanted(in, p)
	after := p.Record.Attempt
	v.must(in.Record.Client == nil || in.Seen.Client == observe.Gone, "a start beside the recorded client")
	for _, c := range in.Seen.Clients {
		known := in.Record.Client != nil && in.Record.Client.Process == c.Process
		v.must(known && in.Seen.Client == observe.Gone, "a start beside pid %d, which is a live client", c.Process.PID)
	}
	v.must(in.Record.Stop == nil || in.Seen.Stop == observe.Gone, "a start during a stop")
	v.must(in.Seen.ServerState == observe.ServerRunning && in.Seen.Confirmation == Confirmed && in.Grant == GrantStart, "a start that was not due")
	v.must(!scarce(in.Limits.Terminals, spareTerminals) && !scarce(in.Limits.ServerFiles, spareServerFiles), "a start without the means for it")
	v.must(in.Desired.Want == Keep && !p.Record.Spec.Suspend && p.Record.Latch == nil, "a start that nobody wants")
	if after == nil {
		v.must(false, "a start without an attempt in the record")
		return
	}
	v.must(in.Record.Attempt == nil || in.Record.Attempt.ID != after.ID, "the attempt was pending before")
	v.must(after.ID == p.Action.Launch.Labels.Attempt && after.ID == in.New.ID && after.ID == after.Order.Attempt, "the attempt on disk is another one")
	v.must(after.Fence == record.FenceOpen, "the attempt is fenced off")
	v.must(after.Incarnation == p.Record.Incarnation+1, "the attempt's number is not the next one")
}

// keys: only into the pane that the client which is being ended runs in.
func (v *verdicts) keys(in Input, p Plan) {
	s, c := in.Record.Stop, in.Record.Client
	if s == nil || c == nil {
		v.must(false, "keys without a stop of the client on disk")
		return
	}
	v.must(s.Process == c.Process && in.Seen.Stop == observe.Running && len(p.Action.Keys) > 0, "keys for another process than the client")
	for _, pane := range in.Seen.Panes {
		if pane.PaneID == p.Action.Pane.PaneID {
			holds := pane.PID != 0 && (pane.PID == c.Process.PID || pane.PID == c.PanePID)
			v.must(pane.Pane == p.Action.Pane && holds && pane.State == observe.Present && pane.Live == observe.Running && !pane.Taken(), "keys into a pane that the client is not in")
			return
		}
	}
	v.must(false, "keys into pane %q, which was not seen", p.Action.Pane.PaneID)
}

// signal: only to processes that the record names.
func (v *verdicts) signal(in Input, p Plan) {
	s := in.Record.Stop
	if s == nil {
		v.must(false, "a signal without a stop on disk")
		return
	}
	for _, target := range p.Action.Processes {
		v.must(target == s.Process || slices.Contains(s.Descendants, target), "a signal to %s, which the record does not name", target)
	}
	v.must(len(p.Action.Processes) > 0, "a signal to nobody")
}

// equalRecords compares as the disk does.
func equalRecords(a, b record.Record) bool { return bytes.Equal(jsonOf(a), jsonOf(b)) }

func jsonOf(r record.Record) []byte {
	data, err := json.Marshal(r)
	if err != nil {
		panic(err)
	}
	return data
}

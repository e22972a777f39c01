// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"time"

	"github.com/muxlet/muxlet/controller/turn"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec"
)

// turns gives an input turns, and what is known of them.
func (d dice) turns(in Input) Input {
	if d.one(2) {
		return in
	}
	in.PromptFile = "/turns/prompt"
	for n := range 1 + d.IntN(3) {
		t := pending(int64(n+1), sentAt(time.Duration(d.IntN(9000))*time.Millisecond), dueIn([]time.Duration{-time.Second, time.Second, time.Minute, time.Hour}[d.IntN(4)]))
		if t.Initial = n == 0 && d.one(4); t.Initial {
			t.Deadline = time.Time{}
		}
		if n == 0 && !d.one(3) {
			t = d.underWay(in, t)
		}
		in.Turns = append(in.Turns, t)
	}
	if c := in.Record.Client; c != nil && d.one(2) {
		// A client that can take one.
		in.Record.Stop, in.Record.Attempt, in.Record.Intent, in.Seen.Client, in.Seen.Sight = nil, nil, nil, observe.Running, SightKnown
		in.Seen.ServerState, in.Seen.Server, in.Seen.Outdated, in.Desired.Want = observe.ServerRunning, server, false, Keep
		c.ReadyAt, in.Seen.Clients = now.Add(-time.Minute), nil
		if in.Desired.Spec != nil {
			in.Desired.Spec.Suspend = false
		} else if in.Record.Spec != nil {
			in.Record.Spec.Suspend = false
		}
		if s := in.Record.Spec; s != nil && !d.one(3) {
			c.Launched, in.Desired.Spec, in.Class = s.DeepCopy(), nil, classNamed(s.ClientClassName)
		}
		if !d.one(3) {
			in.Sight.Attention, in.Sight.Activity = nil, spec.ActivityIdle
		}
		if len(in.Seen.Panes) == 0 {
			in.Seen.Panes = []SeenPane{d.pane(1)}
		}
		if !d.one(8) {
			p := &in.Seen.Panes[0]
			p.State, p.Live, p.PID, p.LaunchedPID, p.Labels.Attempt, p.Process = observe.Present, observe.Running, c.PanePID, c.PanePID, c.Attempt, process(c.PanePID)
		}
	}
	if !d.one(3) {
		in.Hand = observe.Hand{At: now, Composing: observe.Composing(d.IntN(4)), Digest: []string{"before", "after"}[d.IntN(2)], Working: d.one(4)}
		if d.one(5) {
			in.Hand.Attention = observe.AttentionFor(spec.ReasonQuestion)
		}
	}
	d.known(&in)
	return in
}

// underWay makes t one that was handed over, to the client of in or to another.
func (d dice) underWay(in Input, t turn.Turn) turn.Turn {
	attempt, incarnation := "a2", int64(2)
	switch {
	case in.Record.Client != nil && !d.one(4):
		attempt, incarnation = in.Record.Client.Attempt, in.Record.Client.Incarnation
	case in.Record.Attempt != nil && d.one(2):
		attempt, incarnation = in.Record.Attempt.ID, in.Record.Attempt.Incarnation
	}
	methods := []spec.SubmitMethod{spec.SubmitPaste, spec.SubmitPaste, spec.SubmitQueue, spec.SubmitArgument}
	age := time.Duration(d.IntN(40)) * time.Second
	t.CreatedAt = ago(age + time.Second)
	t = t.Begin(ago(age), methods[d.IntN(4)], incarnation, attempt, "c1")
	if !d.one(3) {
		t.PastedAt = t.HandedAt.Add(age / 4)
		if t.Submits = d.IntN(4); t.Submits > 0 && t.Method == spec.SubmitPaste {
			t.SubmittedAt, t.Before = t.HandedAt.Add(age/2), "before"
		} else {
			t.Submits = 0
		}
	}
	if d.one(3) {
		t = t.Deliver(t.HandedAt.Add(age/2), "told")
	}
	return t
}

func (d dice) known(in *Input) {
	t := in.Turns[0]
	if d.one(2) {
		in.HandOver = HandOver{Turn: t.Name, Moved: d.IntN(5), Untyped: d.one(3)}
		switch d.IntN(3) {
		case 0:
			in.HandOver.DoneAt = d.time()
		case 1:
			in.HandOver.Nothing = t.PastedAt.IsZero()
		}
	}
	if d.one(2) {
		in.Told = observe.Told{Attempt: t.Attempt, Done: d.time(), Failed: d.time(), Failure: "overloaded"}
		in.Told.Prompted = []observe.Prompted{{At: d.time(), Digest: []string{"", "d1", "d9"}[d.IntN(3)]}}
	}
	if d.one(3) {
		in.Sight.Since, in.Sight.WorkingAt, in.Sight.WorkingSince, in.Sight.TurnAt = d.time(), d.time(), d.time(), d.time()
	}
	if d.one(2) {
		in.Started = d.time()
	}
}

// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"

	"github.com/muxlet/muxlet/actuate"
	"github.com/muxlet/muxlet/controller/record"
	"github.com/muxlet/muxlet/controller/turn"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec"
)

// turns: what holds for the turns of every plan.
func (v *verdicts) turns(in Input, p Plan) {
	left := after(in, p)
	for _, changed := range p.Turns {
		i := slices.IndexFunc(in.Turns, func(t turn.Turn) bool { return t.Name == changed.Name })
		if i < 0 {
			v.must(false, "turn %s came from nowhere", changed.Name)
			continue
		}
		v.must(changed != in.Turns[i], "turn %s is saved and has not changed", changed.Name)
		v.step(in, p, in.Turns[i], changed)
	}
	waits, open := false, false
	for i, t := range left {
		waits, open = waits || t.Phase == turn.Pending, open || t.Phase != turn.Over
		if t.Phase == turn.Pending {
			v.must(t.Deadline.IsZero() || in.Now.Before(t.Deadline), "turn %s outlives its deadline", t.Name)
			v.must(in.Desired.Want != Remove && (p.Record.Spec == nil || !p.Record.Spec.Suspend), "turn %s waits for a session that nobody wants", t.Name)
		}
		begun := t.Phase == turn.Delivering && in.Turns[i].Phase == turn.Pending
		v.must(!begun || !slices.ContainsFunc(left[:i], func(b turn.Turn) bool { return b.Phase != turn.Over }), "turn %s overtakes another", t.Name)
	}
	v.must(waits == (p.Waiting.Reason != ""), "why the next turn waits is not told, or told of none")
	v.must(!open || p.RequeueAfter > 0 || p.Fate == FateArchive, "an open turn depends on a hint")
	v.handing(in, p)
}

// step: one step of one turn.
func (v *verdicts) step(in Input, p Plan, before, next turn.Turn) {
	v.must(before.Phase != turn.Over, "turn %s had ended", before.Name)
	v.must(next.UID == before.UID && next.Number == before.Number && next.Digest == before.Digest && next.Revision == before.Revision, "turn %s became another one", before.Name)
	v.must(next.Submits >= before.Submits && next.Submits <= maxSubmits || next.Phase == turn.Pending, "turn %s has %d keys", next.Name, next.Submits)
	if before.Phase == turn.Pending && next.Phase == turn.Over {
		v.refused(in, p, next)
	}
	if before.Phase == turn.Delivered {
		v.must(next.Phase == turn.Delivered || next.Phase == turn.Over, "turn %s was delivered before", next.Name)
	}
	if next.Delivered.Status == "True" && before.Delivered.Status != "True" {
		v.must(evident(in, p, next), "turn %s is called delivered without evidence: %s", next.Name, next.Delivered.Message)
	}
	if next.Completed.Status == "True" {
		told := in.Told.Attempt == next.Attempt && !in.Told.Done.Before(next.DeliveredAt)
		seen := !in.Sight.TurnAt.Before(next.DeliveredAt) || !in.Sight.WorkingAt.Before(next.HandedAt)
		v.must(told || seen, "turn %s is called completed without evidence", next.Name)
	}
	if next.Phase == turn.Pending && before.Phase == turn.Delivering {
		nothing := in.HandOver.Turn == before.Name && in.HandOver.Nothing
		unstarted := before.Method == spec.SubmitArgument && p.Record.Client == nil && p.Record.Incarnation < before.Incarnation
		v.must(nothing || unstarted, "turn %s is tried again, and may have been handed over", before.Name)
	}
	failed := next.Phase == turn.Over && next.Delivered.Status == "False" && before.Phase == turn.Delivering
	v.must(!failed || before.Submits == 0 && before.Method != spec.SubmitQueue || in.HandOver.Nothing, "turn %s is called undelivered after a key", next.Name)
}

// refused: a turn is a demand. It is not refused by what it has to wake.
func (v *verdicts) refused(in Input, p Plan, t turn.Turn) {
	r := p.Record
	switch {
	case t.Initial || in.Seen.Sight != SightKnown:
	case p.Verdict.Rule == "Dormant":
		v.must(t.Delivered.Reason != spec.ReasonClientDied, "turn %s did not wake a dormant session", t.Name)
	case p.Verdict.Rule == "Latch":
		unwanted := t.Delivered.Reason == spec.ReasonDeadlineExceeded || in.Record.Intent != nil
		v.must(unwanted || r.Latch != nil && !t.CreatedAt.After(r.Latch.At), "turn %s did not release a latch that is older", t.Name)
	case p.Verdict.Rule == "BackOff":
		// Its one try, at most one in ten seconds.
		bought := r.BackOff.BoughtAt
		paid := !t.CreatedAt.After(bought) || in.Now.Sub(bought) < buyInterval
		v.must(t.Delivered.Reason != spec.ReasonCrashLoopBackOff || paid, "turn %s was refused the attempt that it could buy", t.Name)
	}
}

// evident says whether anything tells that the client has t.
func evident(in Input, p Plan, t turn.Turn) bool {
	told := in.Told.Attempt == t.Attempt && slices.ContainsFunc(in.Told.Prompted, func(r observe.Prompted) bool {
		return !r.At.Before(t.HandedAt) && (r.Digest == t.Digest || r.Digest == "")
	})
	files := !in.Sight.WorkingSince.Before(t.HandedAt) || !in.Sight.TurnAt.Before(t.SubmittedAt)
	shown := t.Submits > 0 && in.Hand.At.After(t.SubmittedAt) && in.Hand.Composing != observe.ComposingPrompt
	executed := t.Method == spec.SubmitArgument && p.Record.Client != nil && p.Record.Client.Attempt == t.Attempt
	return told || files || shown || executed
}

// handing: what is done for a turn is on disk before, and is done to a client that can
// take it.
func (v *verdicts) handing(in Input, p Plan) {
	a := p.Action
	begun := 0
	for _, t := range p.Turns {
		if t.Phase == turn.Delivering && t.HandedAt.Equal(in.Now) && t.PastedAt.IsZero() && t.Submits == 0 {
			begun++
		}
	}
	if a.Kind != actuate.ActionPaste && a.Kind != actuate.ActionQueue && a.Kind != actuate.ActionSubmit {
		v.must(begun == 0 || p.Record.Attempt != nil && p.Record.Attempt.Turn != "", "a hand-over is marked, and nothing is done")
		return
	}
	i := slices.IndexFunc(in.Turns, func(t turn.Turn) bool { return t.Name == a.Turn.Name })
	if i != 0 {
		v.must(false, "%s of a turn that is not the first", a.Kind)
		return
	}
	before, next := in.Turns[0], after(in, p)[0]
	v.must(next.Phase == turn.Delivering && a.Turn.PromptFile == in.PromptFile, "%s of a turn that is not being handed over", a.Kind)
	c := in.Record.Client
	v.must(c != nil && in.Seen.Client == observe.Running && next.Attempt == c.Attempt && p.Record.Stop == nil && p.Record.Attempt == nil, "%s for another client", a.Kind)
	v.must(in.Desired.Want == Keep && !p.Record.Spec.Suspend && p.Record.Intent == nil, "%s for a session that nobody wants", a.Kind)
	if c == nil || c.Launched != nil && classNamed(c.Launched.ClientClassName) == nil {
		return
	}
	s := submitOf(ClassOf(&in.Record, p.Record.Spec, in.Class))
	sighted := !in.Sight.At.Before(c.StartedAt)
	v.must(!sighted || in.Sight.Attention == nil, "%s although a question waits", a.Kind)
	if a.Kind == actuate.ActionSubmit {
		v.submit(in, before, next, s)
		v.within(in, p, c)
		return
	}
	v.must(before.Phase == turn.Pending, "%s of a turn that was handed over before", a.Kind)
	v.must(!sighted || in.Sight.Activity != spec.ActivityWorking || s.queues(), "%s while the client works", a.Kind)
	if a.Kind == actuate.ActionPaste {
		h := in.Hand
		v.must(!h.At.IsZero() && h.Attention == nil && (!h.Working || s.queues()), "a paste that is not welcome")
		v.must(h.Composing == observe.ComposingNothing || h.Composing == observe.ComposingUnknown && !s.composes(), "a paste into an input line that is not empty")
		v.within(in, p, c)
	}
}

func (v *verdicts) submit(in Input, before, next turn.Turn, s submit) {
	h := in.Hand
	keys, pasted := observe.KeysAfter(h.Step, before.Name)
	again := in.HandOver.Turn == before.Name && in.HandOver.Untyped || pasted && keys < before.Submits
	v.must(next.Submits == before.Submits+1 || again && next.Submits == before.Submits, "a key that is not counted")
	v.must(next.Method == spec.SubmitPaste && !next.PastedAt.IsZero(), "a key for what was not pasted")
	first := before.Submits == 0 || again
	stands := h.Composing == observe.ComposingPrompt || first && h.Composing == observe.ComposingUnknown && !s.composes()
	v.must(!h.At.IsZero() && h.Attention == nil && stands, "a key where the prompt does not stand")
}

// within: only the pane that the client runs in.
func (v *verdicts) within(in Input, p Plan, c *record.Client) {
	for _, pane := range in.Seen.Panes {
		if pane.Pane == p.Action.Pane {
			holds := pane.PID != 0 && (pane.PID == c.Process.PID || pane.PID == c.PanePID)
			v.must(holds && pane.State == observe.Present && pane.Live == observe.Running && !pane.Taken(), "a hand-over into a pane that the client is not in")
			return
		}
	}
	v.must(false, "a hand-over into a pane that was not seen")
}

// wanted: invariant 9. Nothing is started on demand unless somebody asks.
func (v *verdicts) wanted(in Input, p Plan) {
	if s := p.Record.Spec; s == nil || s.ProvisioningPolicy != spec.ProvisioningOnDemand {
		return
	}
	r := in.Record
	asked := r.Demand != nil || r.Intent != nil || r.Attempt != nil && r.Attempt.Demand != nil || r.Client != nil && r.Client.Demand != nil
	sent := slices.ContainsFunc(in.Turns, func(t turn.Turn) bool { return !t.Initial && t.Phase != turn.Over })
	v.must(asked || sent, "a start that nobody has asked for")
}

// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/actuate"
	"github.com/muxlet/muxlet/controller/record"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec"
)

func TestARequestIsWrittenDown(t *testing.T) {
	wants := func(reason string) func(*record.Record) {
		return func(r *record.Record) { r.Demand = &record.Demand{Reason: reason, At: now} }
	}
	intent := func(kind record.IntentKind, incarnation int64) func(*record.Record) {
		return func(r *record.Record) { r.Intent = &record.Intent{Kind: kind, Incarnation: incarnation, At: now} }
	}
	fresh := func(r *record.Record) { r.Demand = &record.Demand{Reason: spec.ReasonResumed, At: now, Fresh: true} }
	noDemand := func(r *record.Record) { r.Demand = nil }
	noIntent := func(r *record.Record) { r.Intent = nil }
	nothing := func(*record.Record) {}
	terminating := stopping(record.StopTerminated, intends(record.IntentTerminate, 3))
	for _, r := range []struct {
		name    string
		in      Input
		request Request
		refused string
		changes func(*record.Record)
	}{
		{"resume of one that is down is a demand", down(), RequestResume, "", wants(spec.ReasonResumed)},
		{"resume of one that is latched as well", down(latched(spec.ReasonTerminated)), RequestResume, "", wants(spec.ReasonResumed)},
		{"resume of one that runs is refused", up(), RequestResume, RefusedRunning, nil},
		{"resume of one that is starting is refused", starting(), RequestResume, RefusedRunning, nil},
		{"resume of one that is suspended is refused", down(ofSpec(suspended)), RequestResume, RefusedSuspended, nil},
		{"resume of one that runs and is suspended is refused for that", up(ofSpec(suspended)), RequestResume, RefusedSuspended, nil},
		{"resume of one that is being ended is a demand", stopping(record.StopUpdating), RequestResume, "", wants(spec.ReasonResumed)},
		{"resume of one that is to be restarted is a demand", up(intends(record.IntentRestart, 3)), RequestResume, "", wants(spec.ReasonResumed)},
		{"resume takes a termination back", terminating, RequestResume, "", allOf(noIntent, wants(spec.ReasonResumed))},
		{"resume takes a termination of a start back", starting(intends(record.IntentTerminate, 4)), RequestResume, "", allOf(noIntent, wants(spec.ReasonResumed))},
		{"a fresh one takes the termination of one that still runs back, and replaces it", up(intends(record.IntentTerminate, 3)), RequestFresh, "", allOf(intent(record.IntentRestart, 3), fresh)},
		{"and of a start", starting(intends(record.IntentTerminate, 4)), RequestFresh, "", allOf(intent(record.IntentRestart, 4), fresh)},
		{"one that is being ended is followed by it", terminating, RequestFresh, "", allOf(noIntent, fresh)},
		{"resume without a spec is written down", down(ofRecord(func(r *record.Record) { r.Spec = nil })), RequestResume, "", wants(spec.ReasonResumed)},
		{"restart is about the incarnation that runs", up(), RequestRestart, "", intent(record.IntentRestart, 3)},
		{"restart of one that is suspended is refused", up(ofSpec(suspended)), RequestRestart, RefusedSuspended, nil},
		{"restart of one that is down is a demand", down(), RequestRestart, "", wants(spec.ReasonRestarting)},
		{"restart of one that is starting is what happens already", starting(), RequestRestart, "", nothing},
		{"restart takes a termination of a start back", starting(intends(record.IntentTerminate, 4)), RequestRestart, "", noIntent},
		{"restart takes a termination of a running one back", terminating, RequestRestart, "", intent(record.IntentRestart, 3)},
		{"restart takes a termination of one that is down back", down(intends(record.IntentTerminate, 3)), RequestRestart, "", allOf(noIntent, wants(spec.ReasonRestarting))},
		{"terminate is about the incarnation that runs", up(), RequestTerminate, "", intent(record.IntentTerminate, 3)},
		{"terminate is about the one that is starting", starting(), RequestTerminate, "", intent(record.IntentTerminate, 4)},
		{"terminate of one that is down is about the last one, and takes a demand back", down(demanded), RequestTerminate, "", allOf(intent(record.IntentTerminate, 3), noDemand)},
		{"terminate takes a restart back", up(intends(record.IntentRestart, 3)), RequestTerminate, "", intent(record.IntentTerminate, 3)},
		{"terminate of one that is suspended is kept as well", down(ofSpec(suspended)), RequestTerminate, "", intent(record.IntentTerminate, 3)},
	} {
		t.Run(r.name, func(t *testing.T) {
			before, want := r.in.Record.Copy(), r.in.Record.Copy()
			got, refusal := Apply(r.in.Record, r.request, now)
			require.Equal(t, before, r.in.Record, "the input was changed")
			require.Equal(t, r.refused, refusal.Reason)
			if r.refused != "" {
				require.NotEmpty(t, refusal.Message)
			} else {
				r.changes(&want)
			}
			require.Equal(t, want, got)
		})
	}
}

// applied is what follows from requests that are given one after the other.
func applied(t *testing.T, in Input, requests ...Request) Input {
	t.Helper()
	for _, r := range requests {
		in.Record, _ = Apply(in.Record, r, in.Now)
	}
	return in
}

// N2: two demands at once, one client.
func TestTwoDemandsAreOneClient(t *testing.T) {
	in := applied(t, down(latched(spec.ReasonTerminated)), RequestResume, RequestResume)
	p := decide(t, in)
	require.Equal(t, actuate.ActionCreate, p.Action.Kind)
	in.Record = p.Record
	_, refusal := Apply(in.Record, RequestResume, now)
	require.Equal(t, RefusedRunning, refusal.Reason)
	in.Seen.Panes = []SeenPane{pane("%4", 4, 200)}
	in.New.ID = "a5"
	p = decide(t, in)
	require.Equal(t, "a4", p.Record.Attempt.ID)
	require.Zero(t, p.Action)
}

// N6: parallel restarts, one client.
func TestTwoRestartsAreOneRestart(t *testing.T) {
	in := applied(t, up(), RequestRestart, RequestRestart)
	in.Record = decide(t, in).Record
	in.Seen.Stop = observe.Running
	in = applied(t, in, RequestRestart)
	in.Seen.Stop = observe.Gone
	exited(0)(&in)
	p := decide(t, in)
	require.Equal(t, actuate.ActionRespawn, p.Action.Kind)
	require.Equal(t, int64(4), p.Record.Attempt.Incarnation)
	require.Nil(t, p.Record.Intent)
	in.Record = applied(t, Input{Record: p.Record, Now: now}, RequestRestart).Record
	in.Seen.Panes = []SeenPane{pane("%4", 4, 200)}
	receipt(observe.StageExec, 0)(&in)
	seesClient(marked(4, 200))(&in)
	in.Record, in.Seen.Client, in.Seen.Stop = decide(t, in).Record, observe.Running, observe.LivenessUnknown
	require.Equal(t, spec.ReasonRunning, decide(t, in).Verdict.Reason, "the later restart was the one that happened already")
}

// The last word counts, whichever order the words come in and whatever happens
// between them and the pass.
func TestTheLastWordCounts(t *testing.T) {
	dies := func(in Input) Input {
		exited(1)(&in)
		in.Seen.Stop = observe.Gone
		return in
	}
	for _, r := range []struct {
		name  string
		words []Request
		down  bool
	}{
		{"terminate", []Request{RequestTerminate}, true},
		{"restart, terminate", []Request{RequestRestart, RequestTerminate}, true},
		{"terminate, resume", []Request{RequestTerminate, RequestResume}, false},
		{"terminate, restart", []Request{RequestTerminate, RequestRestart}, false},
		{"terminate, resume, terminate", []Request{RequestTerminate, RequestResume, RequestTerminate}, true},
	} {
		for _, life := range []struct {
			name string
			in   func() Input
		}{
			{"the client has died meanwhile", func() Input { return dies(applied(t, up(), r.words...)) }},
			{"the client is being ended for an edit", func() Input { return dies(applied(t, stopping(record.StopUpdating), r.words...)) }},
			{"the client is being terminated", func() Input {
				return dies(applied(t, stopping(record.StopTerminated, intends(record.IntentTerminate, 3)), r.words...))
			}},
			{"there is none", func() Input { return applied(t, down(), r.words...) }},
		} {
			t.Run(r.name+"; "+life.name, func(t *testing.T) {
				p := decide(t, life.in())
				if r.down {
					require.Equal(t, spec.ReasonTerminated, p.Verdict.Reason)
					require.Equal(t, spec.ReasonTerminated, p.Record.Latch.Reason)
					return
				}
				require.Equal(t, "Start", p.Verdict.Rule)
				require.Nil(t, p.Record.Latch)
			})
		}
	}
}

// A14: a terminated session stays down over a restart of the daemon, and a demand
// brings it up once.
func TestATerminatedSessionComesBackByADemand(t *testing.T) {
	in := applied(t, down(), RequestTerminate)
	in.Record = decide(t, in).Record
	in.FirstLook = true
	p := decide(t, in)
	require.Equal(t, spec.ReasonTerminated, p.Verdict.Reason)
	in.Record, in.Now = p.Record, now.Add(time.Hour)
	in = applied(t, in, RequestResume)
	p = decide(t, in)
	require.Equal(t, actuate.ActionCreate, p.Action.Kind)
	require.Nil(t, p.Record.Latch)
}

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

// readyFor: the client was first seen to be ready that long ago.
func readyFor(d time.Duration) given {
	return ofRecord(func(r *record.Record) { r.Client.ReadyAt = ago(d) })
}

func aged(d time.Duration) given {
	return ofRecord(func(r *record.Record) { r.Client.StartedAt = ago(d) })
}

// shows is what a look at the client has found just now.
func shows(edit func(*observe.Sight)) given {
	return func(in *Input) {
		in.Sight.At = now
		edit(&in.Sight)
	}
}

func isReady(s *observe.Sight)  { s.Readiness = observe.Ready }
func notReady(s *observe.Sight) { s.Readiness = observe.NotReady }
func blank(s *observe.Sight)    { s.Readiness, s.Blank = observe.NotReady, true }

func asks(s *observe.Sight) {
	s.Readiness, s.Attention = observe.NotReady, &observe.Attention{Reason: spec.ReasonTrustRequired, Message: "trust it?"}
}

func does(a spec.Activity) func(*observe.Sight) {
	return func(s *observe.Sight) { s.Readiness, s.Activity = observe.Ready, a }
}

// F5, R2: what lives is not ended for what it shows; only what shows nothing is.
func TestAClientIsReadyWhenItShowsThat(t *testing.T) {
	of := func(age time.Duration, gs ...given) Input {
		return up(append([]given{ofClass(codex), aged(age)}, gs...)...)
	}
	verdict := func(reason string, requeue time.Duration, inFlight bool, changes func(*record.Record)) expect {
		return expect{rule: "Live", reason: reason, requeue: requeue, looked: true, changes: changes, also: func(t *testing.T, p Plan) {
			require.Equal(t, inFlight, p.InFlight, "in flight")
		}}
	}
	readyNow := func(r *record.Record) { r.Client.ReadyAt = now }
	stops := expect{rule: "Live", reason: spec.ReasonStopping, requeue: soon, looked: true, changes: ending(record.StopStartTimeout, 100)}
	older := func(in *Input) { in.Sight.At = in.Record.Client.StartedAt.Add(-time.Second) }
	check(t, []row{
		{"ready: that is written down once", of(2*time.Second, shows(isReady)), verdict(spec.ReasonReady, 0, false, readyNow)},
		{"and stays so", of(2*time.Second, readyFor(time.Second), shows(notReady)), verdict(spec.ReasonReady, 0, false, nil)},
		{"and takes back what was not found", of(2*time.Second, shows(isReady), has(begun(codex, "c1"), notFound(1))), verdict(spec.ReasonReady, 0, false, allOf(readyNow, func(r *record.Record) { r.Conversation.NotFound = 0 }))},
		{"not ready: it is looked at soon", of(100*time.Millisecond, shows(notReady)), verdict(spec.ReasonNotReady, pollSlow, true, nil)},
		{"and later more rarely", of(19*time.Second, shows(notReady)), verdict(spec.ReasonNotReady, time.Second, true, nil)},
		{"never looked at", of(time.Second), verdict(spec.ReasonNotReady, pollSlow, true, nil)},
		{"what its predecessor showed does not count", of(time.Second, shows(isReady), older), verdict(spec.ReasonNotReady, pollSlow, true, nil)},
		{"it asks something: a person must answer, others may start", of(time.Second, shows(asks)), verdict(spec.ReasonTrustRequired, 0, false, nil)},
		{"it asks something though it was ready", of(time.Second, readyFor(0), shows(asks)), verdict(spec.ReasonTrustRequired, 0, false, nil)},
		{"what it shows is not known: it may be a question", of(20*time.Second, shows(notReady)), verdict(spec.ReasonQuestion, 0, false, nil)},
		{"also hours later", of(5*time.Hour, shows(notReady)), verdict(spec.ReasonQuestion, 0, false, nil)},
		{"blank: it may be slow", of(20*time.Second, shows(blank)), verdict(spec.ReasonNotReady, time.Second, false, nil)},
		{"blank for as long as a start may take: it is ended", of(time.Minute, shows(blank)), stops},
		{"but not for what an earlier look has found", of(time.Minute, shows(blank), func(in *Input) { in.Sight.At = ago(time.Second) }), verdict(spec.ReasonNotReady, time.Second, false, nil)},
		{"nor without any look", of(time.Hour), verdict(spec.ReasonNotReady, time.Second, false, nil)},
		{"nor once it was ready", of(time.Hour, readyFor(time.Minute), shows(blank)), verdict(spec.ReasonReady, 0, false, nil)},
		{"reports alone tell too, and 30 s is the default", up(ofClass(claude), aged(29*time.Second), shows(notReady)), verdict(spec.ReasonNotReady, time.Second, true, nil)},
		{"as far as they do", up(ofClass(claude), aged(30*time.Second), shows(notReady)), verdict(spec.ReasonQuestion, 0, false, nil)},
		{"a class that does not tell is ready at once", up(ofClass(plain)), verdict(spec.ReasonRunning, 0, false, nil)},
		{"and may ask all the same", up(ofClass(plain), shows(asks)), verdict(spec.ReasonTrustRequired, 0, false, nil)},
		{"exec never asks nor tells", up(), verdict(spec.ReasonRunning, 0, false, nil)},
	})
}

func TestAStartIsInFlightUntilItIsReady(t *testing.T) {
	require.True(t, decide(t, starting(ofClass(codex))).InFlight)
	require.True(t, decide(t, down(ofClass(codex))).InFlight, "its attempt was opened now")
	require.False(t, decide(t, down(ofClass(codex), func(in *Input) { in.Grant = GrantNone })).InFlight)
	require.False(t, decide(t, stopping(record.StopUpdating, ofClass(codex), aged(time.Second))).InFlight)
}

// R2: a client that never shows anything is counted like one that died.
func TestAClientThatStaysBlankIsCounted(t *testing.T) {
	p := decide(t, stopping(record.StopStartTimeout, ofClass(codex), has(begun(codex, "c1")), stopped(signalled(15)), termed(time.Second)))
	require.Equal(t, 1, p.Record.BackOff.Deaths)
	require.Equal(t, spec.ReasonStartTimeout, p.Record.LastTermination.Reason)
	require.Equal(t, []string{"Warning StartTimeout"}, eventsOf(p))
	require.Equal(t, "codex resume c1", runs(p), "it comes back with its conversation")
}

// P1: an edit waits for the client to be idle, and is shown meanwhile.
func TestAnEditWaitsUntilTheClientIsIdle(t *testing.T) {
	attached := ofSeen(func(s *Seen) { s.Panes[0].Attached = 1 })
	of := func(gs ...given) Input {
		return up(append([]given{ofClass(claude), has(begun(claude, "c1")), readyFor(time.Minute), edited(func(s *spec.SessionSpec) { s.Client.Args = []string{"--model", "opus"} })}, gs...)...)
	}
	waits := func(requeue time.Duration, until string) func(*testing.T, Plan) {
		return func(t *testing.T, p Plan) {
			require.Contains(t, p.Pending, "spec.client.args changed: waits until "+until)
			require.Equal(t, spec.ReasonUpdatePending, p.PendingReason)
			require.Equal(t, requeue, p.RequeueAfter)
		}
	}
	updating := []string{"Normal Updating"}
	unready := ofRecord(func(r *record.Record) { r.Client.ReadyAt = time.Time{} })
	follow(t, []step{
		{name: "it works", in: of(shows(does(spec.ActivityWorking))), reason: spec.ReasonReady, id: "c1", also: waits(pollActivity, "it does not work")},
		{name: "it asks", in: of(shows(does(spec.ActivityAwaitingInput))), reason: spec.ReasonReady, id: "c1", also: waits(pollDetach, "its question is answered")},
		{name: "it asks before it was ever ready: nothing is lost", in: of(unready, shows(does(spec.ActivityAwaitingInput))), reason: spec.ReasonStopping, id: "c1", events: updating},
		{name: "it is idle", in: of(shows(does(spec.ActivityIdle))), reason: spec.ReasonStopping, id: "c1", events: updating},
		{name: "it is idle under a person's eyes", in: of(shows(does(spec.ActivityIdle)), attached), reason: spec.ReasonStopping, id: "c1", events: updating},
		{name: "it does not tell, and nobody is attached", in: of(), reason: spec.ReasonStopping, id: "c1", events: updating},
		{name: "it does not tell, and somebody is", in: of(attached), reason: spec.ReasonReady, id: "c1", also: waits(pollDetach, "nobody is attached")},
		{name: "what its predecessor did does not count", in: of(shows(does(spec.ActivityWorking)), func(in *Input) { in.Sight.At = ago(time.Hour) }), reason: spec.ReasonStopping, id: "c1", events: updating},
		{name: "Recreate does not wait", in: of(edited(strategy(spec.UpdateRecreate)), shows(does(spec.ActivityWorking))), reason: spec.ReasonStopping, id: "c1", events: updating},
	})
}

func TestWhatAClientWasStartedFromIncludesItsClass(t *testing.T) {
	newer := plain
	newer.Revision = "r2"
	declared := func(c Class) given { return func(in *Input) { in.Class = &c } }
	of := func(gs ...given) Input {
		return up(append([]given{ofClass(plain), has(begun(plain, "c1")), findsNoFile}, gs...)...)
	}
	updating := []string{"Normal Updating"}
	follow(t, []step{
		{name: "the same", in: of(), reason: spec.ReasonRunning, id: "c1"},
		{name: "another revision", in: of(declared(newer)), reason: spec.ReasonStopping, id: "c1", events: updating},
		{name: "it vanished: the last good one is the same", in: of(func(in *Input) { in.Class = nil }), reason: spec.ReasonRunning, id: "c1"},
		{name: "another class", in: of(toClass(none)), reason: spec.ReasonStopping, id: "c1", events: updating},
		{name: "a class that there is not: it is kept, since no other could be started", in: of(edited(strategy(spec.UpdateRecreate)), toClass(none), func(in *Input) { in.Class = nil }), reason: spec.ReasonRunning, id: "c1", also: func(t *testing.T, p Plan) {
			require.Contains(t, p.Pending, `no client class "none"`)
			require.Zero(t, p.RequeueAfter)
		}},
		{name: "an edit that must not be started: it is kept", in: of(edited(strategy(spec.UpdateRecreate)), toClass(none), func(in *Input) {
			in.Desired.Refusal = Verdict{Reason: spec.ReasonInvalid, Message: "class none refuses client.command"}
		}), reason: spec.ReasonRunning, id: "c1", also: func(t *testing.T, p Plan) { require.Contains(t, p.Pending, "refuses client.command") }},
		{name: "an id to take up", in: of(edited(adopts("c7"))), reason: spec.ReasonStopping, id: "c1", events: updating},
		{name: "an id that it has", in: of(edited(adopts("c1"))), reason: spec.ReasonRunning, id: "c1"},
		{name: "an id that was taken back", in: of(ofSpec(adopts("c7")), ofRecord(func(r *record.Record) { r.AdoptedID = "c7" }), edited(adopts(""))), reason: spec.ReasonRunning, id: "c1"},
	})
}

// E2, E3: what fails alike is not started; what runs is left alone.
func TestACredentialThatFailsHoldsStarts(t *testing.T) {
	held := func(until time.Time) given {
		return func(in *Input) {
			in.Hold = Hold{Reason: spec.ReasonUsageLimited, Session: "other", Until: until}
		}
	}
	of := func(gs ...given) Input {
		return down(append([]given{ofClass(claude), has(begun(claude, "c1"))}, gs...)...)
	}
	follow(t, []step{
		{name: "until the time that it tells", in: of(held(now.Add(time.Hour))), reason: spec.ReasonUsageLimited, id: "c1", also: func(t *testing.T, p Plan) {
			require.Equal(t, now.Add(time.Hour), p.NextAttempt)
			require.Equal(t, time.Hour, p.RequeueAfter)
			require.Contains(t, p.Verdict.Message, "session other")
		}},
		{name: "or until it is told otherwise", in: of(held(time.Time{})), reason: spec.ReasonUsageLimited, id: "c1", also: func(t *testing.T, p Plan) {
			require.Equal(t, pollBudget, p.RequeueAfter)
		}},
		{name: "then one is started", in: of(held(now)), reason: spec.ReasonStarting, runs: resume, id: "c1"},
		{name: "a person may try", in: of(held(now.Add(time.Hour)), demanded), reason: spec.ReasonStarting, runs: resume, id: "c1"},
		{name: "who runs is left alone", in: up(ofClass(claude), has(begun(claude, "c1")), readyFor(time.Minute), held(now.Add(time.Hour))), reason: spec.ReasonReady, id: "c1"},
	})
}

func TestAClientIsEndedInTheWayOfItsClass(t *testing.T) {
	polite := func(age time.Duration) given {
		return ofRecord(func(r *record.Record) { r.Stop.PoliteAt = ago(age) })
	}
	of := func(c Class, gs ...given) Input {
		return stopping(record.StopRestarting, append([]given{ofClass(c)}, gs...)...)
	}
	asked := func(r *record.Record) { r.Stop.PoliteAt = now }
	termedNow := func(r *record.Record) { r.Stop.TermAt = now }
	signalled := func(sig actuate.Signal, requeue time.Duration, change func(*record.Record)) expect {
		return expect{rule: "Stop", reason: spec.ReasonStopping, action: actuate.ActionSignal, requeue: requeue, changes: change, also: signals(sig, 100)}
	}
	types := expect{rule: "Stop", reason: spec.ReasonStopping, action: actuate.ActionKeys, requeue: 10 * time.Second / 3, changes: asked, also: func(t *testing.T, p Plan) {
		require.Equal(t, []string{"C-c", "C-c"}, p.Action.Keys)
		require.Equal(t, "%3", p.Action.Pane.PaneID)
	}}
	waits := func(requeue time.Duration) expect {
		return expect{rule: "Stop", reason: spec.ReasonStopping, requeue: requeue}
	}
	kills := func(r *record.Record) { r.Stop.KillAt = now }
	killed := expect{rule: "Stop", reason: spec.ReasonStopping, action: actuate.ActionSignal, requeue: killRepeat, events: []string{"Warning Killed"}, changes: kills, also: signals(actuate.SignalKill, 100)}
	check(t, []row{
		{"SIGTERM is nothing special", of(claude), signalled(actuate.SignalTerm, 10*time.Second, termedNow)},
		{"its own signal is first", of(plain), signalled(actuate.SignalInterrupt, 10*time.Second/3, asked)},
		{"and gets a third of the grace", of(plain, polite(3*time.Second)), waits(10*time.Second/3 - 3*time.Second)},
		{"then comes SIGTERM", of(plain, polite(10*time.Second/3)), signalled(actuate.SignalTerm, 10*time.Second-10*time.Second/3, termedNow)},
		{"then the rest of the grace", of(plain, polite(5*time.Second), termed(time.Second)), waits(5 * time.Second)},
		{"then SIGKILL", of(plain, polite(10*time.Second), termed(6*time.Second)), killed},
		{"a grace of two seconds has one for it", of(plain, ofSpec(graceOf(2)), polite(time.Second)), signalled(actuate.SignalTerm, time.Second, termedNow)},
		{"a grace of one second has no time for SIGTERM", of(plain, ofSpec(graceOf(1)), polite(time.Second)), killed},
		{"none at all kills", of(plain, ofSpec(graceOf(0)), polite(0)), killed},
		{"keys are typed into its pane", of(none), types},
		{"not into one that a person has taken", of(none, taken(0)), signalled(actuate.SignalTerm, 10*time.Second, termedNow)},
		{"nor for a client without its pane", stopping(record.StopOrphan, ofClass(none), noPanes), signalled(actuate.SignalTerm, leftoverGrace, termedNow)},
		{"nor for a process that is not the client", of(none, ofRecord(func(r *record.Record) { r.Stop.Process = process(99) })), expect{
			rule: "Stop", reason: spec.ReasonStopping, action: actuate.ActionSignal, requeue: 10 * time.Second, changes: termedNow, also: signals(actuate.SignalTerm, 99),
		}},
		{"a class that it was not started by says nothing about it", of(claude, toClass(none), edited(strategy(spec.UpdateOnRestart))), expect{
			rule: "Stop", reason: spec.ReasonStopping, action: actuate.ActionSignal, requeue: 10 * time.Second, also: signals(actuate.SignalTerm, 100), changes: func(r *record.Record) {
				r.Stop.TermAt = now
				r.Spec.ClientClassName, r.Spec.UpdateStrategy.Type = none.Name, spec.UpdateOnRestart
				r.Generation++
				r.Class, r.ClassName = none.Spec, none.Name
			},
		}},
	})

	p := decide(t, of(plain, stopped(exited(0)), polite(time.Second)))
	require.Equal(t, "ended by muxlet (Restarting), by its class's way to end it", p.Record.LastTermination.Message)
}

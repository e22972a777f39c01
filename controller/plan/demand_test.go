// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/actuate"
	"github.com/muxlet/muxlet/controller/record"
	"github.com/muxlet/muxlet/controller/turn"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec"
)

// demand of a person, made that long ago.
func demand(reason string, age time.Duration) *record.Demand {
	return &record.Demand{Reason: reason, At: ago(age)}
}

func TestASessionOnDemandHasAClientWhenItIsAskedFor(t *testing.T) {
	of := func(gs ...given) Input { return down(append([]given{ofSpec(onDemand)}, gs...)...) }
	live := func(gs ...given) Input {
		return up(append([]given{ofClass(claude), has(begun(claude, "c1")), ofSpec(onDemand), readyFor(time.Minute)}, gs...)...)
	}
	rests := expect{rule: "Dormant", reason: spec.ReasonDormant, looked: true}
	died := func(events ...string) expect {
		e := rests
		e.events = events
		e.changes = allOf(ended(spec.ReasonExited, &observe.Exit{Code: 1}), counted)
		return e
	}
	check(t, []row{
		{"nobody asks", of(), rests},
		{"nobody asks since the first look", of(firstLook), rests},
		{"a person does", of(demanded), expect{rule: "Start", reason: spec.ReasonStarting, action: actuate.ActionCreate, requeue: pollReceipt, looked: true, changes: opened}},
		{"a turn does", of(sent(pending(1))), expect{rule: "Start", reason: spec.ReasonStarting, action: actuate.ActionCreate, requeue: pollReceipt, looked: true, changes: opened}},
		{"an initial turn does not", of(sent(pending(1, initial))), rests},
		{"a turn that is over does not", of(sent(pending(1).Cancel(now))), rests},
		{"its client has died", live(exited(1)), died("Warning Died")},
		{"a latch says more", of(latched(spec.ReasonTerminated)), expect{rule: "Latch", reason: spec.ReasonTerminated, looked: true}},
	})
}

func TestADemandLastsUntilItsClientIsReady(t *testing.T) {
	asked := demand(spec.ReasonResumed, time.Minute)
	wanted := func(in *Input) {
		if in.Record.Attempt != nil {
			in.Record.Attempt.Demand = asked
		} else {
			in.Record.Client.Demand = asked
		}
	}
	launched := func(c Class, gs ...given) Input {
		return starting(append([]given{ofClass(c), ofSpec(onDemand), wanted}, gs...)...)
	}
	young := func(gs ...given) Input {
		return up(append([]given{ofClass(claude), has(begun(claude, "c1")), ofSpec(onDemand), aged(time.Second), wanted, acts("", notReady)}, gs...)...)
	}
	executed := []given{receipt(observe.StageExec, time.Second), seesClient(marked(4, 200))}
	calm := func(in *Input) { in.Grant = GrantNone }
	for name, row := range map[string]struct {
		in Input
		// record is where the demand is afterwards: its reason in the record, and the client's.
		record, client string
		reason         string
	}{
		"executed, and it tells when it is ready":     {launched(claude, executed...), "", spec.ReasonResumed, spec.ReasonStarted},
		"executed, and nobody tells":                  {launched(none, executed...), "", "", spec.ReasonStarted},
		"not executed":                                {launched(claude, failed(spec.ReasonExecFailed), calm), spec.ReasonResumed, "", spec.ReasonWaitingForBudget},
		"a permanent obstacle":                        {launched(claude, failed(spec.ReasonCommandNotFound)), "", "", spec.ReasonDormant},
		"not executed, and suspended meanwhile":       {launched(claude, failed(spec.ReasonExecFailed), edited(suspended)), "", "", spec.ReasonSuspended},
		"not ready yet":                               {young(), "", spec.ReasonResumed, spec.ReasonNotReady},
		"it asks something":                           {young(shows(asks)), "", spec.ReasonResumed, spec.ReasonTrustRequired},
		"ready":                                       {young(shows(isReady)), "", "", spec.ReasonReady},
		"it died before":                              {young(exited(1), calm), spec.ReasonResumed, "", spec.ReasonWaitingForBudget},
		"it died after":                               {young(readyFor(time.Second), exited(1), calm), "", "", spec.ReasonDormant},
		"it showed nothing and was ended":             {stopping(record.StopStartTimeout, ofClass(claude), has(begunConversation()), ofSpec(onDemand), wanted, stopped(exited(0)), termed(time.Second), calm), spec.ReasonResumed, "", spec.ReasonWaitingForBudget},
		"it was terminated":                           {stopping(record.StopTerminated, ofClass(claude), ofSpec(onDemand), wanted, intends(record.IntentTerminate, 3), stopped(exited(0)), termed(time.Second)), "", "", spec.ReasonTerminated},
		"it was restarted":                            {stopping(record.StopRestarting, ofClass(claude), has(begunConversation()), ofSpec(onDemand), wanted, intends(record.IntentRestart, 3), stopped(exited(0)), termed(time.Second), calm), spec.ReasonRestarting, "", spec.ReasonWaitingForBudget},
		"it has completed":                            {young(ofSpec(restartPolicy(spec.RestartNever)), exited(0)), "", "", spec.ReasonCompleted},
		"it is asked for again while it is not ready": {young(func(in *Input) { in.Record.Demand = demand(spec.ReasonAttached, 0) }), "", spec.ReasonAttached, spec.ReasonNotReady},
		"an eager session needs none back":            {young(ofSpec(func(s *spec.SessionSpec) { s.ProvisioningPolicy = spec.ProvisioningEager }), exited(1), calm), "", "", spec.ReasonWaitingForBudget},
	} {
		t.Run(name, func(t *testing.T) {
			p := decide(t, row.in)
			got := []string{"", "", p.Verdict.Reason}
			if d := p.Record.Demand; d != nil {
				got[0] = d.Reason
			}
			if c := p.Record.Client; c != nil && c.Demand != nil {
				got[1] = c.Demand.Reason
			}
			require.Equal(t, []string{row.record, row.client, row.reason}, got, p.Verdict.Message)
		})
	}
}

func TestADemandThatWasGivenBackWaitsForItsTime(t *testing.T) {
	of := func(died, bought time.Duration, gs ...given) Input {
		return down(append([]given{ofSpec(onDemand), deaths(5, died), boughtAgo(bought), func(in *Input) { in.Record.Demand = demand(spec.ReasonResumed, 2*time.Second) }}, gs...)...)
	}
	p := decide(t, of(time.Second, time.Minute))
	require.Equal(t, spec.ReasonCrashLoopBackOff, p.Verdict.Reason, "it had its try, and that failed")
	require.Equal(t, 7*time.Second, p.RequeueAfter)
	require.NotNil(t, p.Record.Demand)
	require.Equal(t, actuate.ActionCreate, decide(t, of(3*time.Second, time.Minute)).Action.Kind, "it had none")
	require.Equal(t, spec.ReasonCrashLoopBackOff, decide(t, of(3*time.Second, time.Second)).Verdict.Reason, "it has bought one")

	held := func(in *Input) { in.Hold = Hold{Reason: spec.ReasonUsageLimited, Until: now.Add(time.Hour)} }
	require.Equal(t, actuate.ActionCreate, decide(t, of(20*time.Second, time.Minute, held)).Action.Kind, "a person's word is worth a try")
	require.Equal(t, spec.ReasonUsageLimited, decide(t, of(time.Second, time.Minute, held, deaths(1, time.Second))).Verdict.Reason, "but one")
}

// A turn is a demand, once.
func TestATurnBuysOneAttempt(t *testing.T) {
	of := func(bought time.Duration, gs ...given) Input {
		return down(append([]given{deaths(9, 2*time.Second), boughtAgo(bought), sent(pending(1, dueIn(time.Hour)))}, gs...)...)
	}
	p := decide(t, of(time.Minute))
	require.Equal(t, actuate.ActionCreate, p.Action.Kind)
	require.Equal(t, now, p.Record.BackOff.BoughtAt)
	require.Equal(t, 9, p.Record.BackOff.Deaths, "the count goes on")

	p = decide(t, of(500*time.Millisecond))
	require.Equal(t, spec.ReasonCrashLoopBackOff, p.Verdict.Reason, "it was bought after the turn was sent")
	require.Equal(t, now.Add(126*time.Second), p.NextAttempt)

	p = decide(t, of(5*time.Second))
	require.Equal(t, now.Add(5*time.Second), p.NextAttempt, "at most one in ten seconds")

	p = decide(t, of(time.Minute, func(in *Input) { in.Turns[0] = pending(1, initial) }))
	require.Equal(t, spec.ReasonCrashLoopBackOff, p.Verdict.Reason, "an initial turn buys nothing")
}

func TestATurnIsReasonEnoughToRecover(t *testing.T) {
	of := func(gs ...given) Input {
		return down(append([]given{firstLook, ofSpec(recovery(spec.RecoveryDormant))}, gs...)...)
	}
	require.Equal(t, spec.ReasonNotRecovered, decide(t, of()).Verdict.Reason)
	require.Equal(t, actuate.ActionCreate, decide(t, of(sent(pending(1)))).Action.Kind)
	lost := up(firstLook, ofClass(claude), ofSpec(recovery(spec.RecoveryDormant)), exited(1), func(in *Input) { in.Record.Client.Demand = demand(spec.ReasonResumed, time.Second) })
	require.Nil(t, decide(t, lost).Record.Latch, "a person has asked for the client that was lost before it was ready")
}

func TestAnEditReplacesAClientOnDemand(t *testing.T) {
	in := up(ofSpec(onDemand), ofSpec(strategy(spec.UpdateRecreate)), edited(otherCommand))
	p := decide(t, in)
	require.Equal(t, record.StopUpdating, p.Record.Stop.Reason)
	require.Equal(t, &record.Demand{Reason: spec.ReasonUpdating, At: now}, p.Record.Demand)
	require.Nil(t, decide(t, up(ofSpec(strategy(spec.UpdateRecreate)), edited(otherCommand))).Record.Demand, "an eager session gets one anyway")
}

func TestAnEditWaitsForTheTurnThatIsUnderWay(t *testing.T) {
	for name, under := range map[string]turn.Turn{
		"being handed over": delivering(1, spec.SubmitPaste, time.Second), "delivered": delivered(1, time.Second),
	} {
		p := decide(t, able(sent(under), edited(otherCommand)))
		require.Nil(t, p.Record.Stop, name)
		require.Contains(t, p.Pending, "the turn that it was given has ended", name)
	}
	p := decide(t, able(sent(pending(1)), edited(otherCommand)))
	require.Equal(t, record.StopUpdating, p.Record.Stop.Reason, "one that waits is given to the next client")
}

func TestAttachIsADemand(t *testing.T) {
	r, refusal := Apply(down(latched(spec.ReasonTerminated)).Record, RequestAttach, now)
	require.Empty(t, refusal)
	require.Equal(t, &record.Demand{Reason: spec.ReasonAttached, At: now}, r.Demand)
	r, refusal = Apply(up(intends(record.IntentTerminate, 3)).Record, RequestAttach, now)
	require.Empty(t, refusal, "it takes a termination back that is under way")
	require.Nil(t, r.Intent)
	for reason, in := range map[string]Input{RefusedRunning: up(), RefusedSuspended: down(ofSpec(suspended))} {
		same, refusal := Apply(in.Record, RequestAttach, now)
		require.Equal(t, reason, refusal.Reason)
		require.Equal(t, in.Record, same)
	}
	_, refusal = Apply(starting().Record, RequestAttach, now)
	require.Equal(t, RefusedRunning, refusal.Reason)
}

func TestAnInitialPromptIsTheFirstTurnOfAConversation(t *testing.T) {
	hello := ofSpec(startsWith("hello"))
	due := ofRecord(func(r *record.Record) { r.Client.InitialDue = true })
	notDue := ofRecord(func(r *record.Record) { r.Client.InitialDue = false })
	of := func(gs ...given) Input {
		return up(append([]given{ofClass(claude), has(begun(claude, "c1")), hello, due, aged(time.Minute), acts(spec.ActivityIdle)}, gs...)...)
	}
	for name, row := range map[string]struct {
		in    Input
		asked bool
		due   bool
	}{
		"once its client is ready":       {of(), true, false},
		"not before":                     {of(aged(time.Second), acts("", notReady)), false, true},
		"not while it asks":              {of(shows(asks)), false, true},
		"not twice":                      {of(notDue), false, false},
		"not without one":                {of(ofSpec(startsWith(""))), false, true},
		"an edit says nothing to it":     {of(notDue, ofSpec(startsWith("")), edited(startsWith("new"))), false, false},
		"also for a class without any":   {up(ofClass(none), hello, due), true, false},
		"one that waits is used again":   {of(sent(pending(1, initial))), false, false},
		"one that is handed over is not": {of(sent(delivered(1, time.Second, func(t *turn.Turn) { t.Initial = true }))), true, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := decide(t, row.in)
			require.Equal(t, row.asked, p.Initial != nil, p.Verdict.Message)
			require.Equal(t, row.due, p.Record.Client.InitialDue)
			if row.asked {
				require.Equal(t, "initial/a3", p.Initial.Request)
				require.Positive(t, p.RequeueAfter)
			}
		})
	}
	p := decide(t, of(sent(pending(1)), screen(observe.ComposingNothing)))
	require.Equal(t, &InitialTurn{Request: "initial/a3", Prompt: "hello"}, p.Initial)
	require.Equal(t, actuate.ActionNone, p.Action.Kind, "it comes before what was sent")
	require.Equal(t, spec.ReasonQueued, p.Waiting.Reason)

	for name, row := range map[string]struct {
		with []given
		due  bool
	}{
		"a fresh conversation":       {[]given{hello}, true},
		"no initial prompt":          {nil, false},
		"one that is resumed":        {[]given{hello, ofRecord(func(r *record.Record) { r.Attempt.Resumes = "c1" })}, false},
		"one that began with a turn": {[]given{hello, ofRecord(func(r *record.Record) { r.Attempt.Turn = "shop-1" })}, false},
	} {
		t.Run("due: "+name, func(t *testing.T) {
			in := starting(append([]given{ofClass(claude), receipt(observe.StageExec, time.Second), seesClient(marked(4, 200))}, row.with...)...)
			in.Record.Attempt.Initial = in.Record.Spec.InitialPrompt != ""
			require.Equal(t, row.due, decide(t, in).Record.Client.InitialDue)
		})
	}

	p = decide(t, of(ofSpec(startsWith("a block\nof YAML\n"))))
	require.Equal(t, "a block\nof YAML", p.Initial.Prompt)

	p = decide(t, down(ofClass(claude), ofSpec(onDemand), sent(pending(1, initial))))
	require.Equal(t, []string{"Over delivered=False(ClientDied)"}, phrases(p.Turns), "nobody asks for its client any more")
}

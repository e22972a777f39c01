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

// engine is the process that does the work of the client, pid 100.
var engine = process(101)

// knowsEngine: it was seen before, and is that now.
func knowsEngine(live observe.Liveness) given {
	return func(in *Input) { in.Record.Client.Engine, in.Seen.Engine = engine, live }
}

// lostEngine: it is proven to be gone that long, and there is no other.
func lostEngine(d time.Duration) given {
	return func(in *Input) {
		knowsEngine(observe.Gone)(in)
		in.Seen.EngineGoneFor, in.Seen.NoEngine = d, true
	}
}

func findsEngine(p observe.Process) given { return func(in *Input) { in.Seen.NextEngine = p } }

// C6: what lives is ended when it is proven to be a shell around nothing.
func TestAClientIsEndedWhenItsEngineIsGone(t *testing.T) {
	of := func(gs ...given) Input {
		return up(append([]given{ofClass(wrapper), readyFor(30 * time.Second)}, gs...)...)
	}
	rests := expect{rule: "Live", reason: spec.ReasonReady, looked: true}
	finds := func(p observe.Process) expect {
		return expect{rule: "Live", reason: spec.ReasonReady, looked: true, changes: func(r *record.Record) { r.Client.Engine = p }}
	}
	waits := func(requeue time.Duration) expect {
		return expect{rule: "Live", reason: spec.ReasonEngineGone, looked: true, requeue: requeue}
	}
	blind := ofSeen(func(s *Seen) {
		s.Sight, s.Reason, s.Message = SightUnknown, spec.ReasonTmuxTimeout, "tmux did not answer"
	})
	ends := expect{rule: "Live", reason: spec.ReasonStopping, requeue: soon, looked: true, changes: ending(record.StopEngineGone, 100)}
	starting := of(aged(8*time.Second), lostEngine(5*time.Second))
	starting.Record.Client.ReadyAt = time.Time{}
	late := of(aged(30*time.Second), lostEngine(20*time.Second))
	late.Record.Client.ReadyAt = time.Time{}
	check(t, []row{
		{"it is written down once it is seen", of(findsEngine(engine)), finds(engine)},
		{"and then it is known", of(knowsEngine(observe.Running)), rests},
		{"the client may do its work itself", of(findsEngine(process(100))), finds(process(100))},
		{"while it runs, what else is there does not count", of(knowsEngine(observe.Running), findsEngine(process(102))), rests},
		{"gone: the wrapper may end by itself", of(lostEngine(0)), waits(3 * time.Second)},
		{"for three seconds", of(lostEngine(2 * time.Second)), waits(time.Second)},
		{"then it is ended", of(lostEngine(3 * time.Second)), ends},
		{"another one takes its place", of(lostEngine(time.Minute), findsEngine(process(102))), finds(process(102))},
		{"whether there is another one is not known", of(lostEngine(time.Minute), func(in *Input) { in.Seen.NoEngine = false }), rests},
		{"whether it is gone is not known", of(lostEngine(time.Minute), knowsEngine(observe.LivenessUnknown)), rests},
		{"never seen", of(func(in *Input) { in.Seen.NoEngine, in.Seen.EngineGoneFor = true, time.Hour }), rests},
		{"on its way it has as long as a start may take", starting, waits(15 * time.Second)},
		{"and no longer", late, ends},
		{"its class names none any more", of(lostEngine(time.Minute), ofClass(codex)), rests},
		{"tmux does not tell", of(lostEngine(time.Minute), blind), expect{rule: "Unknown", reason: spec.ReasonTmuxTimeout}},
		{"the client has ended as well: that is the death", of(lostEngine(time.Minute), signalled(9), deaths(1, time.Second)), expect{
			rule: "BackOff", reason: spec.ReasonCrashLoopBackOff, requeue: time.Second, looked: true, events: []string{"Warning Died"},
			changes: allOf(ended(spec.ReasonKilled, &observe.Exit{Signal: 9}), counted),
		}},
	})
}

func TestAnEngineIsLookedForWhileTheClientStarts(t *testing.T) {
	plainWrapper := Class{Name: "plain", Spec: &spec.ClientClassSpec{Start: spec.ClassCommand{Command: []string{"w"}}, Engine: spec.ClassEngine{Executable: "e"}}}
	of := func(gs ...given) Input { return up(append([]given{ofClass(plainWrapper)}, gs...)...) }
	runs := func(requeue time.Duration) expect {
		return expect{rule: "Live", reason: spec.ReasonRunning, looked: true, requeue: requeue}
	}
	check(t, []row{
		{"soon", of(aged(0)), runs(pollReceipt)},
		{"and then more rarely", of(aged(2 * time.Second)), runs(500 * time.Millisecond)},
		{"not for ever", of(aged(time.Minute)), runs(0)},
		{"not once it is known", of(aged(0), knowsEngine(observe.Running)), runs(0)},
		{"a class without readiness waits for three seconds from the first", of(aged(5*time.Second), lostEngine(2*time.Second)), expect{
			rule: "Live", reason: spec.ReasonEngineGone, looked: true, requeue: time.Second,
		}},
	})
}

func TestAClientThatIsEndedForItsEngineHasDied(t *testing.T) {
	of := func(gs ...given) Input {
		return stopping(record.StopEngineGone, append([]given{ofClass(wrapper), lostEngine(5 * time.Second), readyFor(30 * time.Second), stopped(signalled(15))}, gs...)...)
	}
	exit := &observe.Exit{Signal: 15}
	over := func(changes ...func(*record.Record)) func(*record.Record) {
		return allOf(append([]func(*record.Record){func(r *record.Record) { r.Stop = nil }, ended(spec.ReasonEngineGone, exit), counted}, changes...)...)
	}
	check(t, []row{
		{"it has three seconds", stopping(record.StopEngineGone, ofSpec(graceOf(30)), termed(time.Second)), expect{rule: "Stop", reason: spec.ReasonStopping, requeue: 2 * time.Second}},
		{"and waits after many", of(deaths(2, time.Minute)), expect{
			rule: "BackOff", reason: spec.ReasonCrashLoopBackOff, requeue: 2 * time.Second, looked: true, events: []string{"Warning EngineGone"}, changes: over(),
		}},
		{"its end is one whose status is not known: Never stays down", of(ofSpec(restartPolicy(spec.RestartNever))), expect{
			rule: "Latch", reason: spec.ReasonCompleted, looked: true, events: []string{"Warning EngineGone", "Normal Completed"},
			changes: over(func(r *record.Record) { r.Latch = &record.Latch{Reason: spec.ReasonCompleted, At: now} }),
		}},
	})
	for _, policy := range []spec.RestartPolicy{spec.RestartAlways, spec.RestartOnFailure} {
		p := decide(t, of(has(begun(wrapper, "c1")), ofSpec(restartPolicy(policy))))
		require.Equal(t, actuate.ActionRespawn, p.Action.Kind, p.Verdict.Message)
		require.Equal(t, "codex resume c1", runs(p))
		require.Equal(t, 1, p.Record.BackOff.Deaths)
	}
}

// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/utils/ptr"

	"github.com/muxlet/muxlet/actuate"
	"github.com/muxlet/muxlet/controller/record"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec"
)

// aProbe is asked every ten seconds, and replaces a client after three failures.
func aProbe() *spec.LivenessProbe {
	return &spec.LivenessProbe{
		Exec: spec.ProbeExec{Command: []string{"check"}}, InitialDelaySeconds: ptr.To[int32](30), PeriodSeconds: ptr.To[int32](10),
		TimeoutSeconds: ptr.To[int32](2), FailureThreshold: ptr.To[int32](3),
	}
}

func hasProbe(s *spec.SessionSpec) { s.LivenessProbe = aProbe() }

// probed: the last probe of the session's client has said that, so long ago.
func probed(failures int, last observe.ProbeOutcome, past time.Duration) given {
	return func(in *Input) {
		in.Probed = observe.Probed{Attempt: "a3", Of: aProbe(), Failures: failures, At: in.Now.Add(-past), Last: observe.ProbeResult{Outcome: last, Message: "check said so"}}
	}
}

func saidNo(times int) given { return probed(times, observe.ProbeFailed, 0) }

// C6: a client that runs is ended when the person's own program says often enough that
// it does nothing any more.
func TestAClientIsReplacedAfterFailedProbes(t *testing.T) {
	of := func(gs ...given) Input { return up(append([]given{ofSpec(hasProbe)}, gs...)...) }
	rests := expect{rule: "Live", reason: spec.ReasonRunning, looked: true}
	ends := expect{
		rule: "Probe", reason: spec.ReasonStopping, requeue: soon, looked: true, events: []string{"Warning LivenessProbeFailed"},
		changes: ending(record.StopProbeFailed, 100),
	}
	blind := ofSeen(func(s *Seen) {
		s.Sight, s.Reason, s.Message = SightUnknown, spec.ReasonTmuxTimeout, "tmux did not answer"
	})
	unready := of(ofClass(claude), readyFor(time.Second), saidNo(3))
	unready.Record.Client.ReadyAt = time.Time{}
	check(t, []row{
		{"nothing was said yet", of(), rests},
		{"it succeeds", of(probed(0, observe.ProbeSucceeded, 0)), rests},
		{"it fails once", of(saidNo(1)), rests},
		{"it fails twice", of(saidNo(2)), rests},
		{"it fails three times", of(saidNo(3)), ends},
		{"more often than it need", of(saidNo(7)), ends},
		{"it gave no answer", of(probed(0, observe.ProbeUnknown, 0)), rests},
		{"it gave none after two failures", of(probed(2, observe.ProbeUnknown, 0)), rests},
		{"it gave none after three failures that nobody acted on", of(probed(3, observe.ProbeUnknown, 0)), ends},
		{"there is no probe any more", of(edited(func(s *spec.SessionSpec) { s.LivenessProbe = nil }), saidNo(3)), expect{
			rule: "Live", reason: spec.ReasonRunning, looked: true,
			changes: func(r *record.Record) { r.Spec.LivenessProbe, r.Generation = nil, 2 },
		}},
		{"it is another one now", of(edited(func(s *spec.SessionSpec) { s.LivenessProbe.Exec.Command = []string{"better"} }), saidNo(3)), expect{
			rule: "Live", reason: spec.ReasonRunning, looked: true,
			changes: func(r *record.Record) { r.Spec.LivenessProbe.Exec.Command, r.Generation = []string{"better"}, 2 },
		}},
		{"its threshold is another one now", of(edited(func(s *spec.SessionSpec) { *s.LivenessProbe.FailureThreshold = 1 }), saidNo(2)), expect{
			rule: "Live", reason: spec.ReasonRunning, looked: true,
			changes: func(r *record.Record) { *r.Spec.LivenessProbe.FailureThreshold, r.Generation = 1, 2 },
		}},
		{"that was said of an earlier client", of(saidNo(3), func(in *Input) { in.Probed.Attempt = "a2" }), rests},
		{"it was said just now", of(probed(3, observe.ProbeFailed, 22*time.Second)), ends},
		{"it was said long ago", of(probed(3, observe.ProbeFailed, 23*time.Second)), rests},
		{"the clock was set back", of(probed(3, observe.ProbeFailed, -time.Hour)), ends},
		{"while tmux cannot be asked nothing is done", of(saidNo(3), blind), expect{rule: "Unknown", reason: spec.ReasonTmuxTimeout}},
		{"nor while the process is not known", of(saidNo(3), ofSeen(func(s *Seen) { s.Client = observe.LivenessUnknown })), expect{rule: "Death", reason: spec.ReasonProcessUnknown, requeue: pollSlow}},
		{"what a person wants comes first", of(saidNo(3), intends(record.IntentRestart, 3)), expect{
			rule: "Intent", reason: spec.ReasonStopping, requeue: soon, changes: ending(record.StopRestarting, 100),
		}},
		{"and suspends", of(saidNo(3), ofSpec(suspended)), expect{
			rule: "Suspend", reason: spec.ReasonStopping, requeue: soon, looked: true, changes: ending(record.StopSuspended, 100),
		}},
		{"it comes before an edit that waits", of(saidNo(3), edited(otherCommand), func(in *Input) { in.Seen.Panes[0].Attached = 1 }), expect{
			rule: "Probe", reason: spec.ReasonStopping, requeue: soon, looked: true, events: []string{"Warning LivenessProbeFailed"},
			changes: allOf(ending(record.StopProbeFailed, 100), func(r *record.Record) { otherCommand(r.Spec); r.Generation = 2 }),
		}},
		{"a client that is not ready is not judged", unready, expect{rule: "Live", reason: spec.ReasonNotReady, looked: true, requeue: time.Second}},
		{"one whose class tells when it is ready is, then", of(ofClass(claude), readyFor(time.Minute), saidNo(3)), ends},
	})
}

func TestWhatAProbeSaidIsTold(t *testing.T) {
	p := decide(t, up(ofSpec(hasProbe), saidNo(3)))
	require.Equal(t, "Ending incarnation 3, pid 100: its liveness probe failed 3 times in a row; the last time check said so", p.Events[0].Message)
	require.Contains(t, p.Verdict.Message, "its liveness probe has failed")
	once := func(s *spec.SessionSpec) { s.LivenessProbe = aProbe(); *s.LivenessProbe.FailureThreshold = 1 }
	in := up(ofSpec(once), saidNo(1))
	in.Probed.Of, in.Probed.Last.Message = in.Record.Spec.LivenessProbe, ""
	require.Equal(t, "Ending incarnation 3, pid 100: its liveness probe failed once", decide(t, in).Events[0].Message)
}

func TestAClientThatIsEndedForItsProbeHasDied(t *testing.T) {
	of := func(gs ...given) Input {
		return stopping(record.StopProbeFailed, append([]given{ofSpec(hasProbe), termed(time.Second), stopped(signalled(15))}, gs...)...)
	}
	exit := &observe.Exit{Signal: 15}
	over := func(changes ...func(*record.Record)) func(*record.Record) {
		return allOf(append([]func(*record.Record){func(r *record.Record) { r.Stop = nil }, ended(spec.ReasonLivenessProbeFailed, exit), counted}, changes...)...)
	}
	check(t, []row{
		{"it has its whole grace period", stopping(record.StopProbeFailed, ofSpec(graceOf(30)), termed(time.Second)), expect{rule: "Stop", reason: spec.ReasonStopping, requeue: 29 * time.Second}},
		{"it comes back", of(), respawns([]string{"Normal Stopped"}, over())},
		{"and waits after many", of(deaths(2, time.Minute)), expect{
			rule: "BackOff", reason: spec.ReasonCrashLoopBackOff, requeue: 2 * time.Second, looked: true, events: []string{"Normal Stopped"}, changes: over(),
		}},
		{"also when it has no probe any more", of(ofSpec(func(s *spec.SessionSpec) { s.LivenessProbe = nil })), respawns([]string{"Normal Stopped"}, over())},
		{"Never stays down", of(ofSpec(restartPolicy(spec.RestartNever))), expect{
			rule: "Latch", reason: spec.ReasonCompleted, looked: true, events: []string{"Normal Stopped", "Normal Completed"},
			changes: over(func(r *record.Record) { r.Latch = &record.Latch{Reason: spec.ReasonCompleted, At: now} }),
		}},
	})
	for _, policy := range []spec.RestartPolicy{spec.RestartAlways, spec.RestartOnFailure} {
		p := decide(t, of(ofClass(codex), has(begun(codex, "c1")), ofSpec(restartPolicy(policy)), saidNo(3)))
		require.Equal(t, actuate.ActionRespawn, p.Action.Kind, p.Verdict.Message)
		require.Equal(t, "codex resume c1", runs(p), "its conversation is resumed")
		require.Equal(t, 1, p.Record.BackOff.Deaths)
		require.Contains(t, p.Record.LastTermination.Message, "its liveness probe failed 3 times in a row; the last time check said so; ended by muxlet")
	}
}

func TestAClientIsAskedFromItsInitialDelayOn(t *testing.T) {
	in := up(ofSpec(hasProbe))
	of := func(edit func(*record.Record)) *spec.LivenessProbe {
		r := in.Record.Copy()
		edit(&r)
		probe, _ := ProbeOf(&r, nil)
		return probe
	}
	probe, from := ProbeOf(&in.Record, nil)
	require.Equal(t, aProbe(), probe)
	require.Equal(t, in.Record.Client.StartedAt.Add(30*time.Second), from)
	require.Nil(t, of(func(r *record.Record) { r.Client = nil }), "nobody runs")
	require.Nil(t, of(func(r *record.Record) { r.Spec = nil }), "nothing is wanted")
	require.Nil(t, of(func(r *record.Record) { r.Spec.LivenessProbe = nil }), "nobody is to be asked")
	require.Nil(t, of(func(r *record.Record) { r.Spec.Suspend = true }), "it is suspended")
	require.Nil(t, of(ending(record.StopUpdating, 100)), "it is being ended")
	require.Nil(t, of(func(r *record.Record) { r.Attempt = &record.Attempt{} }), "another one is started")
	require.Nil(t, of(func(r *record.Record) {
		r.Spec.ClientClassName, r.Client.Launched.ClientClassName, r.Class, r.ClassName = claude.Name, claude.Name, claude.Spec, claude.Name
	}), "it is not ready yet")
	require.NotNil(t, of(func(r *record.Record) {
		r.Spec.ClientClassName, r.Client.Launched.ClientClassName, r.Class, r.ClassName = claude.Name, claude.Name, claude.Spec, claude.Name
		r.Client.ReadyAt = now
	}), "it is ready")
}

func TestAProbeHasDefaults(t *testing.T) {
	probe := &spec.LivenessProbe{}
	require.Equal(t, 10*time.Second, ProbePeriod(probe))
	require.Equal(t, time.Second, ProbeTimeout(probe))
	require.Equal(t, 3, ProbeThreshold(probe))
}

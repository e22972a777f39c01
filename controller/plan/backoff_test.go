// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/controller/record"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec"
)

// E1: the nth death in a row waits 0, 1, 2, 4 … times the initial wait, capped.
func TestTheBackOffGrowsAndIsCapped(t *testing.T) {
	second := Policy{BackOffInitial: time.Second, BackOffMax: 5 * time.Minute}
	for deaths, want := range []time.Duration{0, 0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300} {
		require.Equal(t, want*time.Second, second.wait(deaths), "%d deaths", deaths)
	}
	require.Equal(t, 5*time.Minute, second.wait(1<<40))
	require.Equal(t, time.Second, Policy{BackOffInitial: time.Minute, BackOffMax: time.Second}.wait(2), "the cap is below the initial wait")
	require.Equal(t, 30*time.Millisecond, Policy{BackOffInitial: 10 * time.Millisecond, BackOffMax: 30 * time.Millisecond}.wait(9))
}

func TestTheBackOffHoldsAStart(t *testing.T) {
	waits := func(requeue time.Duration) expect {
		return expect{rule: "BackOff", reason: spec.ReasonCrashLoopBackOff, requeue: requeue, looked: true, also: func(t *testing.T, p Plan) {
			require.Equal(t, now.Add(requeue), p.NextAttempt)
		}}
	}
	check(t, []row{
		{"not after the first death", down(deaths(1, 0)), creates(nil)},
		{"a second after the second", down(deaths(2, 0)), waits(time.Second)},
		{"counted from the death", down(deaths(4, 3*time.Second)), waits(time.Second)},
		{"and no longer", down(deaths(4, 4*time.Second)), creates(nil)},
		// It is in the record, and so it outlives the daemon.
		{"at the first look of another daemon as well", down(deaths(4, 3*time.Second), firstLook), waits(time.Second)},
		{"not longer because a clock has jumped back", down(deaths(4, -time.Hour)), expect{
			rule: "BackOff", reason: spec.ReasonCrashLoopBackOff, requeue: 4 * time.Second, looked: true, changes: func(r *record.Record) { r.BackOff.LastDeathAt = now },
		}},
		{"not when the settings have become shorter", func() Input {
			in := down(deaths(20, 3*time.Second))
			in.Policy.BackOffMax = 3 * time.Second
			return in
		}(), creates(nil)},
		{"not after an edit", down(deaths(20, 0), edited(restartPolicy(spec.RestartOnFailure))), creates(nil, func(r *record.Record) {
			r.Spec.RestartPolicy, r.Generation, r.BackOff = spec.RestartOnFailure, 2, record.BackOff{}
		})},
	})
}

func TestTheBackOffIsToldInWords(t *testing.T) {
	in := down(deaths(4, 3*time.Second), ofRecord(func(r *record.Record) { r.LastTermination = &record.Termination{Message: "exited with status 1"} }))
	require.Equal(t, "4 deaths in a row, the last: exited with status 1; the next start is in 1s", decide(t, in).Verdict.Message)
	require.Equal(t, "4 deaths in a row, the last: not known; the next start is in 1s", decide(t, down(deaths(4, 3*time.Second))).Verdict.Message)
}

// A demand buys one attempt in ten seconds and leaves the count alone.
func TestADemandBuysOneImmediateAttempt(t *testing.T) {
	bought := func(age time.Duration) given {
		return ofRecord(func(r *record.Record) { r.BackOff.BoughtAt = ago(age) })
	}
	buys := func(r *record.Record) { r.BackOff.BoughtAt = now }
	waits := func(requeue time.Duration) expect {
		return expect{rule: "BackOff", reason: spec.ReasonCrashLoopBackOff, requeue: requeue, looked: true}
	}
	check(t, []row{
		{"at once", down(deaths(9, 0), demanded), creates(nil, buys)},
		{"ten seconds after the last one", down(deaths(9, 0), demanded, bought(10*time.Second)), creates(nil, buys)},
		{"not before, but the demand is kept", down(deaths(9, 0), demanded, bought(9*time.Second)), waits(time.Second)},
		{"and never later than without it", down(deaths(3, 0), demanded, bought(0)), waits(2 * time.Second)},
		{"not later because a clock has jumped back", down(deaths(9, 0), demanded, bought(-time.Hour)), expect{
			rule: "BackOff", reason: spec.ReasonCrashLoopBackOff, requeue: 10 * time.Second, looked: true, changes: buys,
		}},
		{"nothing is bought when nothing is to be waited for", down(deaths(1, 0), demanded), creates(nil)},
		{"a bought attempt is one: without another demand the wait goes on", down(deaths(9, 0), bought(time.Minute)), waits(128 * time.Second)},
	})
}

func TestALifeOfTenMinutesResetsTheCount(t *testing.T) {
	for _, r := range []struct {
		life time.Duration
		want int
	}{
		{10*time.Minute - 1, 5},
		{10 * time.Minute, 1},
		{-time.Hour, 5}, // a clock that has jumped back
	} {
		p := decide(t, up(exited(1), deaths(4, time.Hour), ofRecord(func(rec *record.Record) { rec.Client.StartedAt = ago(r.life) })))
		require.Equal(t, r.want, p.Record.BackOff.Deaths, r.life)
	}
}

func TestADeathIsDatedBackToWhenItWasSeen(t *testing.T) {
	for goneFor, want := range map[time.Duration]time.Time{0: now, 300 * time.Millisecond: ago(300 * time.Millisecond), time.Hour: ago(time.Second)} {
		p := decide(t, up(exited(1), gone(goneFor)))
		require.Equal(t, want, p.Record.BackOff.LastDeathAt)
	}
}

// E1, B13: a client that dies at once, for ever, whatever its status.
func TestACrashLoopGrowsAndNeverGivesUp(t *testing.T) {
	in := up(exited(0))
	var waits []time.Duration
	for n := range 12 {
		p := decide(t, in)
		if p.Verdict.Rule == "BackOff" {
			waits = append(waits, p.RequeueAfter)
			in.Record, in.Now = p.Record, in.Now.Add(p.RequeueAfter)
			p = decide(t, in)
		}
		require.Equal(t, "Start", p.Verdict.Rule)
		require.Equal(t, int64(4+n), p.Record.Attempt.Incarnation)
		// It is executed, and ends within the same instant.
		in.Record = p.Record
		a := p.Record.Attempt
		in.Record.Client = &record.Client{Incarnation: a.Incarnation, Attempt: a.ID, Process: process(100), PanePID: 100, StartedAt: in.Now}
		in.Record.Incarnation, in.Record.Attempt = a.Incarnation, nil
		in.Seen.Panes[0].Labels.Attempt = a.ID
		in.New.ID = fmt.Sprintf("b%d", n)
		in.Seen.Client = observe.Gone
	}
	require.Equal(t, []time.Duration{1e9, 2e9, 4e9, 8e9, 16e9, 32e9, 64e9, 128e9, 256e9, 300e9, 300e9}, waits)
}

// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/controller/record"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec"
)

// situations are sessions in every state that a record can be in; each of them
// calls for something as soon as there is sight.
func situations() map[string]Input {
	return map[string]Input{
		"to be started":                   down(),
		"never started":                   down(ofRecord(func(r *record.Record) { r.Incarnation = 0 })),
		"without a valid document":        down(ofRecord(func(r *record.Record) { r.Spec = nil }), func(in *Input) { in.Desired = Desired{} }),
		"to be adopted":                   down(seesPane(pane("%3", 3, 100)), seesClient(marked(3, 100))),
		"running":                         up(),
		"dead":                            up(exited(1)),
		"dead with its server":            up(gone(0), noServer),
		"orphaned":                        up(noPanes),
		"doubled":                         up(seesClient(marked(2, 90))),
		"starting":                        starting(),
		"starting, executed":              starting(receipt(observe.StageExec, 0)),
		"starting, failed":                starting(receipt(observe.StageFailed, 0)),
		"starting, late":                  starting(ofRecord(func(r *record.Record) { r.Attempt.OpenedAt = ago(time.Hour) })),
		"starting, lost":                  starting(noServer),
		"stopping":                        stopping(record.StopUpdating),
		"stopping, to be killed":          stopping(record.StopUpdating, ofRecord(func(r *record.Record) { r.Stop.TermAt = ago(time.Hour) })),
		"stopped":                         stopping(record.StopTerminated, exited(0), ofSeen(func(s *Seen) { s.Stop = observe.Gone })),
		"removed":                         up(removed),
		"removed, down":                   down(removed),
		"removed, orphan":                 up(ofSpec(deletion(spec.DeletionOrphan)), removed),
		"suspended":                       up(edited(suspended)),
		"to be terminated":                up(intends(record.IntentTerminate, 3)),
		"to be restarted":                 up(intends(record.IntentRestart, 3)),
		"terminated while it was down":    down(intends(record.IntentTerminate, 3)),
		"edited":                          up(ofSpec(strategy(spec.UpdateRecreate)), edited(otherCommand)),
		"terminated":                      down(latched(spec.ReasonTerminated)),
		"terminated and demanded":         down(latched(spec.ReasonTerminated), demanded),
		"not to be recovered":             down(firstLook, ofSpec(recovery(spec.RecoveryDormant))),
		"blocked":                         down(blocked(spec.ReasonCommandNotFound)),
		"blocked, cleared":                down(blocked(spec.ReasonCommandNotFound), func(in *Input) { in.Block = ObstacleCleared }),
		"in back-off":                     down(deaths(5, time.Second)),
		"in back-off from the far future": down(deaths(5, -time.Hour)),
	}
}

// D1, D2: what could not be observed changes nothing, whatever the record holds.
func TestNothingIsDoneWhileNothingIsObserved(t *testing.T) {
	for name, in := range situations() {
		t.Run(name, func(t *testing.T) {
			in.Seen.Sight, in.Seen.Reason, in.Seen.Message = SightUnknown, spec.ReasonTmuxTimeout, "tmux did not answer"
			in.Record.BackOff.LastDeathAt = minTime(in.Record.BackOff.LastDeathAt, now)
			want := in.Record.Copy()
			if in.Desired.Spec != nil && in.Desired.Spec.Suspend || name == "edited" {
				want.Spec, want.Generation = in.Desired.Spec, want.Generation+1
			}
			p := decide(t, in)
			require.Equal(t, "Unknown", p.Verdict.Rule)
			require.Equal(t, spec.ReasonTmuxTimeout, p.Verdict.Reason)
			require.Equal(t, "tmux did not answer", p.Verdict.Message)
			require.Equal(t, want, p.Record)
			require.Zero(t, p.Action)
			require.Zero(t, p.RequeueAfter)
			require.Empty(t, p.Events)
			require.Equal(t, FateKeep, p.Fate)
			require.False(t, p.Looked)
		})
	}
}

func minTime(a, b time.Time) time.Time {
	if a.After(b) {
		return b
	}
	return a
}

// Every situation but one asks for something when there is sight: the test above
// would otherwise prove nothing.
func TestEverySituationIsDecidedByAnotherRuleWithSight(t *testing.T) {
	for name, in := range situations() {
		t.Run(name, func(t *testing.T) {
			require.NotEqual(t, "Unknown", decide(t, in).Verdict.Rule)
		})
	}
}

func TestTheZeroInputDoesNothing(t *testing.T) {
	p := Compute(Input{})
	require.Equal(t, Plan{Verdict: Verdict{Rule: "Unknown"}}, p)
}

func TestUnknownIsSaidAfterAGrace(t *testing.T) {
	for _, r := range []struct {
		name       string
		unknownFor time.Duration
		grace      time.Duration
		want       string
	}{
		{"at first only the reason is told", 0, 5 * time.Second, "tmux did not answer"},
		{"short of the grace as well", 5*time.Second - 1, 5 * time.Second, "tmux did not answer"},
		{"from the grace on, for how long", 5 * time.Second, 5 * time.Second, "tmux did not answer; unknown for 5s, nothing is started or stopped meanwhile"},
		{"without a grace not before it has lasted", 0, 0, "tmux did not answer"},
		{"without a grace at once", time.Second, 0, "tmux did not answer; unknown for 1s, nothing is started or stopped meanwhile"},
	} {
		t.Run(r.name, func(t *testing.T) {
			in := up(ofSeen(func(s *Seen) {
				s.Sight, s.Reason, s.Message, s.UnknownFor = SightUnknown, spec.ReasonTmuxTimeout, "tmux did not answer", r.unknownFor
			}))
			in.Policy.UnknownGrace = r.grace
			require.Equal(t, r.want, decide(t, in).Verdict.Message)
		})
	}
}

func TestDesiredBecomesTheLastGoodSpec(t *testing.T) {
	back := record.BackOff{Deaths: 4, LastDeathAt: ago(time.Second), BoughtAt: ago(time.Second)}
	busy := ofRecord(func(r *record.Record) { r.BackOff = back })
	for _, r := range []struct {
		name string
		in   Input
		want func(*record.Record)
	}{
		{"an edit is a new generation, resets the back-off and takes a block away", up(busy, blocked(spec.ReasonCommandNotFound), edited(otherCommand)),
			func(r *record.Record) {
				otherCommand(r.Spec)
				r.Generation, r.BackOff, r.Block = 2, record.BackOff{}, nil
			}},
		{"a policy-only edit is one as well", up(busy, edited(restartPolicy(spec.RestartNever))), func(r *record.Record) {
			restartPolicy(spec.RestartNever)(r.Spec)
			r.Generation, r.BackOff = 2, record.BackOff{}
		}},
		{"an edit is none when it says the same", up(busy, blocked(spec.ReasonCommandNotFound), edited(func(s *spec.SessionSpec) { s.Client.Args = []string{} })), nil},
		{"the first spec is generation 1", up(ofRecord(func(r *record.Record) { r.Spec, r.Generation = nil, 0 })), func(r *record.Record) {
			r.Spec, r.Generation = aSpec(), 1
		}},
		{"without a valid document the last good spec stays", up(busy, func(in *Input) { in.Desired = Desired{} }), func(r *record.Record) { r.File = "/m/shop.yaml" }},
		{"labels are not part of the generation", up(busy, func(in *Input) { in.Desired.Labels = map[string]string{"repo": "other"} }), func(r *record.Record) {
			r.Labels = map[string]string{"repo": "other"}
		}},
		{"labels can go away", up(func(in *Input) { in.Desired.Labels = nil }), func(r *record.Record) { r.Labels = nil }},
		{"a document that has moved is the same session", up(busy, func(in *Input) { in.Desired.File = "/m/other.yaml" }), func(r *record.Record) { r.File = "/m/other.yaml" }},
		{"a held removal is remembered", up(func(in *Input) { in.Desired.Held = "the root is gone" }), func(r *record.Record) { r.Held = "the root is gone" }},
		{"and forgotten", up(ofRecord(func(r *record.Record) { r.Held = "the root is gone" })), func(r *record.Record) { r.Held = "" }},
	} {
		t.Run(r.name, func(t *testing.T) {
			r.in.Seen.Sight = SightUnknown
			r.in.Seen.Reason = spec.ReasonTmuxTimeout
			want := r.in.Record.Copy()
			if r.want != nil {
				r.want(&want)
			}
			require.Equal(t, want, decide(t, r.in).Record)
		})
	}
}

func TestTheLastGoodSpecIsACopy(t *testing.T) {
	in := down(edited(otherCommand))
	p := decide(t, in)
	in.Desired.Spec.Client.Command[0] = "changed later"
	require.Equal(t, "agent", p.Record.Spec.Client.Command[0])
}

// A clock that jumps back stretches nothing: what it has written lies in the
// future.
func TestTimesFromTheFutureBecomeNow(t *testing.T) {
	future := now.Add(time.Hour)
	in := up(ofRecord(func(r *record.Record) {
		r.BackOff = record.BackOff{Deaths: 3, LastDeathAt: future, BoughtAt: future}
		r.Attempt = &record.Attempt{ID: "a4", Incarnation: 4, OpenedAt: future}
		r.Client.StartedAt = future
		r.Stop = &record.Stop{Process: process(1), TermAt: future, KillAt: future, TreeTermAt: future, TreeKillAt: future}
	}))
	in.Seen.Sight = SightUnknown
	in.Seen.Reason = spec.ReasonTmuxTimeout
	r := decide(t, in).Record
	require.Equal(t, record.BackOff{Deaths: 3, LastDeathAt: now, BoughtAt: now}, r.BackOff)
	require.Equal(t, now, r.Attempt.OpenedAt)
	require.Equal(t, now, r.Client.StartedAt)
	require.Equal(t, record.Stop{Process: process(1), TermAt: now, KillAt: now, TreeTermAt: now, TreeKillAt: now}, *r.Stop)
}

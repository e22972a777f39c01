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

var descendants = []observe.Process{process(101), process(102)}

func noted(r *record.Record) { r.Stop.Descendants = descendants }

func termed(age time.Duration) given {
	return ofRecord(func(r *record.Record) { r.Stop.TermAt = ago(age) })
}

func killed(age time.Duration) given {
	return ofRecord(func(r *record.Record) { r.Stop.KillAt = ago(age) })
}

// ended: the process of the stop, which is the client, ended so.
func stopped(how given) given {
	return func(in *Input) {
		how(in)
		in.Seen.Stop = observe.Gone
	}
}

func TestAStopGoesItsWay(t *testing.T) {
	terms := func(requeue time.Duration) expect {
		return expect{rule: "Stop", reason: spec.ReasonStopping, action: actuate.ActionSignal, requeue: requeue, changes: func(r *record.Record) {
			r.Stop.TermAt = now
		}, also: signals(actuate.SignalTerm, 100)}
	}
	kills := expect{rule: "Stop", reason: spec.ReasonStopping, action: actuate.ActionSignal, requeue: killRepeat, events: []string{"Warning Killed"}, changes: func(r *record.Record) {
		r.Stop.KillAt = now
	}, also: signals(actuate.SignalKill, 100)}
	changed := func(e expect, more func(*record.Record)) expect {
		if e.changes != nil {
			more = allOf(e.changes, more)
		}
		e.changes = more
		return e
	}
	killsAgain := kills
	killsAgain.reason, killsAgain.events = spec.ReasonClientIgnoresKill, nil
	waits := func(reason string, requeue time.Duration) expect {
		return expect{rule: "Stop", reason: reason, requeue: requeue}
	}
	tree := ofSeen(func(s *Seen) { s.Tree = descendants })
	treeNoted := terms(10 * time.Second)
	treeNoted.changes = allOf(func(r *record.Record) { r.Stop.TermAt = now }, noted)
	const updating = record.StopUpdating
	check(t, []row{
		{"SIGTERM comes first", stopping(updating), terms(10 * time.Second)},
		{"with it the descendants are noted", stopping(updating, tree), treeNoted},
		{"nothing is sent to what could not be judged", stopping(updating, ofSeen(func(s *Seen) { s.Stop = observe.LivenessUnknown })), waits(spec.ReasonProcessUnknown, pollSlow)},
		{"the grace is waited for", stopping(updating, termed(9*time.Second)), waits(spec.ReasonStopping, time.Second)},
		{"descendants that come later are not noted", stopping(updating, termed(9*time.Second), tree), waits(spec.ReasonStopping, time.Second)},
		{"then SIGKILL comes", stopping(updating, termed(10*time.Second)), kills},
		{"that is waited for", stopping(updating, termed(10*time.Second), killed(400*time.Millisecond)), waits(spec.ReasonStopping, 600*time.Millisecond)},
		{"and sent again, and a person is told", stopping(updating, termed(11*time.Second), killed(time.Second)), killsAgain},
		{"and told between two signals as well", stopping(updating, termed(12*time.Second), killed(400*time.Millisecond)), waits(spec.ReasonClientIgnoresKill, 600*time.Millisecond)},
		{"the spec says how long the grace is", stopping(updating, ofSpec(graceOf(30)), termed(10*time.Second)), waits(spec.ReasonStopping, 20*time.Second)},
		{"ten seconds when there is no spec", stopping(updating, func(in *Input) { in.Desired.Spec, in.Record.Spec = nil, nil }, termed(9*time.Second)), waits(spec.ReasonStopping, time.Second)},
		{"ten seconds when the spec says nothing", stopping(updating, ofSpec(func(s *spec.SessionSpec) { s.TerminationGracePeriodSeconds = nil }), termed(9*time.Second)), waits(spec.ReasonStopping, time.Second)},
		{"without a grace the next look is at once", stopping(updating, ofSpec(graceOf(0))), terms(soon)},
		{"and kills", stopping(updating, ofSpec(graceOf(0)), termed(0)), kills},
		{"an orphan gets three seconds", stopping(record.StopOrphan, ofSpec(graceOf(30))), terms(3 * time.Second)},
		{"no more", stopping(record.StopOrphan, ofSpec(graceOf(30)), termed(3*time.Second)), kills},
		{"a duplicate as well", stopping(record.StopDuplicate, ofSpec(graceOf(30)), termed(3*time.Second)), kills},
		{"a leftover as well", stopping(record.StopLeftover, ofSpec(graceOf(30)), termed(3*time.Second)), kills},
		{"less when the spec says so", stopping(record.StopOrphan, ofSpec(graceOf(1)), termed(time.Second)), kills},
		{"one that did not start in time gets its whole grace", stopping(record.StopStartTimeout, ofSpec(graceOf(30)), termed(3*time.Second)), waits(spec.ReasonStopping, 27*time.Second)},
		{"it is gone on with although nobody wants it any more, and then for good", stopping(record.StopUpdating, removed, termed(10*time.Second)), changed(kills, func(r *record.Record) { r.Stop.Reason = record.StopRemoved })},
		{"it becomes one for good when the session is suspended meanwhile", stopping(record.StopRestarting, ofSpec(suspended), termed(10*time.Second)), changed(kills, func(r *record.Record) { r.Stop.Reason = record.StopSuspended })},
		{"one for good keeps its own reason", stopping(record.StopTerminated, ofSpec(suspended), termed(9*time.Second)), waits(spec.ReasonStopping, time.Second)},
		{"one of another process does as well", stopping(record.StopDuplicate, ofSpec(suspended), ofRecord(func(r *record.Record) { r.Stop.Process = process(90) }), termed(time.Second)), waits(spec.ReasonStopping, 2*time.Second)},
		{"and one of a shell that was left", stopping(record.StopLeftover, ofSpec(suspended), noClients, ofRecord(func(r *record.Record) { r.Client, r.Stop.Process = nil, process(99) }), termed(time.Second)), waits(spec.ReasonStopping, 2*time.Second)},
		{"an orphan gets no more time by that", stopping(record.StopOrphan, noPanes, ofSpec(suspended), ofSpec(graceOf(30)), termed(3*time.Second)), changed(kills, func(r *record.Record) { r.Stop.Reason = record.StopSuspended })},
		{"nor when it is removed", stopping(record.StopOrphan, noPanes, removed, ofSpec(graceOf(30)), termed(3*time.Second)), changed(kills, func(r *record.Record) { r.Stop.Reason = record.StopRemoved })},
		{"nor when it is terminated", stopping(record.StopOrphan, noPanes, intends(record.IntentTerminate, 3), ofSpec(graceOf(30)), termed(3*time.Second)), changed(kills, func(r *record.Record) { r.Stop.Reason = record.StopTerminated })},
		{"a client in its pane gets its whole grace when it is ended for good", stopping(record.StopSuspended, ofSpec(suspended), termed(5*time.Second)), waits(spec.ReasonStopping, 5*time.Second)},
		{"so does the shell that it has left", stopping(record.StopRemoved, removed, ofRecord(func(r *record.Record) { r.Client, r.Stop.Process = nil, process(99) }), noClients, termed(5*time.Second)), waits(spec.ReasonStopping, 5*time.Second)},
		{"so does another process, beside an orphan", stopping(record.StopRemoved, removed, noPanes, ofRecord(func(r *record.Record) { r.Stop.Process = process(99) }), termed(5*time.Second)), waits(spec.ReasonStopping, 5*time.Second)},
		{"and although it is wanted again", stopping(record.StopSuspended, termed(10*time.Second)), kills},
		{"a clock that has jumped back makes the grace begin anew, at most", stopping(updating, termed(-time.Hour)), expect{
			rule: "Stop", reason: spec.ReasonStopping, requeue: 10 * time.Second, changes: func(r *record.Record) { r.Stop.TermAt = now },
		}},
	})
}

func signals(sig actuate.Signal, pids ...int) func(*testing.T, Plan) {
	return func(t *testing.T, p Plan) {
		t.Helper()
		var got []int
		for _, target := range p.Action.Processes {
			got = append(got, target.PID)
		}
		require.Equal(t, pids, got)
		require.Equal(t, sig, p.Action.Signal)
	}
}

// K1: what the client has left is ended as well where the stop is for good.
func TestTheDescendantsAreEndedWhereTheStopIsForGood(t *testing.T) {
	left := func(gs ...given) []given {
		return append([]given{stopped(exited(0)), termed(5 * time.Second), ofRecord(noted), ofSeen(func(s *Seen) { s.TreeRunning = descendants })}, gs...)
	}
	treeAt := func(term, kill time.Duration) given {
		return ofRecord(func(r *record.Record) {
			r.Stop.TreeTermAt = ago(term)
			if kill >= 0 {
				r.Stop.TreeKillAt = ago(kill)
			}
		})
	}
	acts := func(sig actuate.Signal, requeue time.Duration, change func(*record.Record)) expect {
		return expect{rule: "Stop", reason: spec.ReasonStopping, action: actuate.ActionSignal, requeue: requeue, changes: change, also: signals(sig, 101, 102)}
	}
	terms := func(requeue time.Duration) expect {
		return acts(actuate.SignalTerm, requeue, func(r *record.Record) { r.Stop.TreeTermAt = now })
	}
	kills := func(requeue time.Duration) expect {
		return acts(actuate.SignalKill, requeue, func(r *record.Record) { r.Stop.TreeKillAt = now })
	}
	waits := func(requeue time.Duration) expect {
		return expect{rule: "Stop", reason: spec.ReasonStopping, requeue: requeue}
	}
	var rows []row
	for _, reason := range []record.StopReason{record.StopSuspended, record.StopTerminated, record.StopRemoved} {
		rows = append(rows, row{string(reason) + " ends them politely", stopping(reason, left()...), terms(pollReceipt)})
	}
	const reason = record.StopSuspended
	check(t, append(rows,
		row{"they get time", stopping(reason, left(treeAt(time.Second, -1))...), waits(250 * time.Millisecond)},
		row{"at most three seconds", stopping(reason, left(treeAt(3*time.Second, -1))...), kills(750 * time.Millisecond)},
		row{"and are looked at when these are over", stopping(reason, left(treeAt(2999*time.Millisecond, -1))...), waits(time.Millisecond)},
		row{"SIGKILL gets a second", stopping(reason, left(treeAt(4*time.Second, 999*time.Millisecond))...), waits(time.Second)},
		row{"and comes again", stopping(reason, left(treeAt(9*time.Second, time.Second))...), kills(time.Second)},
		row{"without a grace they are looked at again at once", stopping(reason, left(ofSpec(graceOf(0)))...), terms(soon)},
		row{"and killed", stopping(reason, left(ofSpec(graceOf(0)), treeAt(0, -1))...), kills(pollReceipt)},
	))
}

func TestARestartLeavesTheDescendantsAndListsThem(t *testing.T) {
	for _, reason := range []record.StopReason{record.StopRestarting, record.StopUpdating, record.StopOrphan} {
		in := stopping(reason, stopped(exited(0)), termed(time.Second), ofRecord(noted), ofSeen(func(s *Seen) { s.TreeRunning = descendants[1:] }))
		p := decide(t, in)
		require.Equal(t, actuate.ActionRespawn, p.Action.Kind, reason)
		require.Equal(t, descendants[1:], p.Record.Survivors, reason)
	}
	in := stopping(record.StopUpdating, stopped(exited(0)), termed(time.Second), ofRecord(noted))
	require.Empty(t, decide(t, in).Record.Survivors, "those that have ended meanwhile are not listed")
}

// The client is gone already, and what its restarts left is not.
func TestWhatRestartsLeftIsEndedWithTheSession(t *testing.T) {
	left := ofRecord(func(r *record.Record) { r.Survivors = descendants })
	ends := func(rule string, reason record.StopReason, looked bool) expect {
		return expect{rule: rule, reason: spec.ReasonStopping, requeue: soon, looked: looked, changes: func(r *record.Record) {
			r.Stop, r.Survivors = &record.Stop{Reason: reason, Process: descendants[0], Descendants: descendants}, nil
		}}
	}
	check(t, []row{
		{"removed", down(left, removed), ends("Remove", record.StopRemoved, true)},
		{"suspended", down(left, ofSpec(suspended)), ends("Suspend", record.StopSuspended, true)},
		{"terminated", down(left, intends(record.IntentTerminate, 3)), ends("Intent", record.StopTerminated, false)},
		{"not when an earlier one was terminated", up(left, intends(record.IntentTerminate, 2)), expect{rule: "Live", reason: spec.ReasonRunning, looked: true, changes: func(r *record.Record) { r.Intent = nil }}},
		{"not when it is restarted", down(left, intends(record.IntentRestart, 3)), creates(nil, restartWanted)},
		{"not with a client that is to go on", up(left, ofSpec(deletion(spec.DeletionOrphan)), removed), expect{rule: "Remove", reason: spec.ReasonOrphaned, fate: FateArchive, looked: true, events: []string{"Normal Orphaned"}}},
	})
	in := down(left, intends(record.IntentTerminate, 3))
	in.Record = decide(t, in).Record
	in.Seen.Stop, in.Seen.TreeRunning = observe.Gone, descendants[1:]
	p := decide(t, in)
	require.Equal(t, actuate.SignalTerm, p.Action.Signal)
	in.Record, in.Seen.TreeRunning = p.Record, nil
	p = decide(t, in)
	require.Equal(t, spec.ReasonTerminated, p.Record.Latch.Reason, "and the intent is obeyed then")
}

// What earlier restarts left is ended by the next stop for good, and listed by
// the next one that is not.
func TestWhatEarlierStopsLeftBelongsToTheNextOne(t *testing.T) {
	in := up(intends(record.IntentRestart, 3), ofRecord(func(r *record.Record) { r.Survivors = descendants[:1] }))
	in.Record = decide(t, in).Record
	require.Equal(t, descendants[:1], in.Record.Stop.Descendants)
	require.Empty(t, in.Record.Survivors)
	in.Seen.Stop, in.Seen.Tree = observe.Running, descendants[1:]
	in.Record = decide(t, in).Record
	require.Equal(t, descendants, in.Record.Stop.Descendants)
	stopped(exited(0))(&in)
	in.Seen.TreeRunning = descendants
	in.Record = decide(t, in).Record
	require.Equal(t, descendants, in.Record.Survivors)
}

func TestAStopEndsWithItsProcess(t *testing.T) {
	over := func(change ...func(*record.Record)) func(*record.Record) {
		return allOf(append([]func(*record.Record){func(r *record.Record) { r.Stop = nil }}, change...)...)
	}
	zero, kill := &observe.Exit{}, &observe.Exit{Signal: 9}
	const looked = true
	starts := func(events []string, change ...func(*record.Record)) expect {
		return expect{rule: "Start", reason: spec.ReasonStarting, action: actuate.ActionRespawn, requeue: pollReceipt, looked: looked, events: events, changes: over(append(change, opened)...)}
	}
	rests := func(rule, reason string, events []string, change ...func(*record.Record)) expect {
		return expect{rule: rule, reason: reason, looked: looked, events: events, changes: over(change...)}
	}
	latch := func(r *record.Record) { r.Intent, r.Latch = nil, &record.Latch{Reason: spec.ReasonTerminated, At: now} }
	check(t, []row{
		{"updated: the next one is started, and nothing is counted", stopping(record.StopUpdating, stopped(exited(0))), starts([]string{"Normal Stopped"}, ended(spec.ReasonStopped, zero))},
		{"restarted: the same", stopping(record.StopRestarting, intends(record.IntentRestart, 3), stopped(signalled(9))), starts([]string{"Normal Stopped"}, ended(spec.ReasonStopped, kill), restartWanted)},
		// A14
		{"terminated: it stays down", stopping(record.StopTerminated, intends(record.IntentTerminate, 3), stopped(exited(0))), rests("Latch", spec.ReasonTerminated, []string{"Normal Stopped", "Normal Terminated"}, ended(spec.ReasonStopped, zero), latch)},
		{"terminated and wanted again meanwhile: the last word counts", stopping(record.StopTerminated, demanded, stopped(exited(0))), starts([]string{"Normal Stopped"}, ended(spec.ReasonStopped, zero))},
		{"updated and terminated meanwhile: the person's word counts", stopping(record.StopUpdating, intends(record.IntentTerminate, 3), stopped(exited(0))), rests("Latch", spec.ReasonTerminated, []string{"Normal Stopped", "Normal Terminated"}, ended(spec.ReasonStopped, zero), latch)},
		{"suspended: it stays down", stopping(record.StopSuspended, ofSpec(suspended), stopped(exited(0))), rests("Suspend", spec.ReasonSuspended, []string{"Normal Stopped"}, ended(spec.ReasonStopped, zero))},
		{"suspended and wanted again meanwhile", stopping(record.StopSuspended, stopped(exited(0))), starts([]string{"Normal Stopped"}, ended(spec.ReasonStopped, zero))},
		{"its restart policy is about own exits, and this was none", stopping(record.StopUpdating, ofSpec(restartPolicy(spec.RestartNever)), stopped(exited(0))), starts([]string{"Normal Stopped"}, ended(spec.ReasonStopped, zero))},
		{"an orphan counts: it was lost with its pane", stopping(record.StopOrphan, deaths(1, time.Minute), stopped(gone(0)), noPanes, ofSeen(func(s *Seen) { s.ClientExit = kill })), expect{
			rule: "BackOff", reason: spec.ReasonCrashLoopBackOff, requeue: time.Second, looked: looked, events: []string{"Warning Lost"}, changes: over(ended(spec.ReasonLost, kill), counted),
		}},
		{"an orphan's own exit completes nothing", stopping(record.StopOrphan, ofSpec(restartPolicy(spec.RestartNever)), stopped(gone(0)), noPanes), expect{
			rule: "Start", reason: spec.ReasonStarting, action: actuate.ActionCreate, requeue: pollReceipt, looked: looked, events: []string{"Warning Lost"}, changes: over(ended(spec.ReasonLost, nil), counted, opened),
		}},
		{"an orphan that no record names leaves no trace", down(ofRecord(ending(record.StopOrphan, 90)), ofSeen(func(s *Seen) { s.Stop = observe.Gone })), expect{
			rule: "Start", reason: spec.ReasonStarting, action: actuate.ActionCreate, requeue: pollReceipt, looked: looked, changes: over(opened),
		}},
		{"a duplicate leaves the client alone", up(ofRecord(ending(record.StopDuplicate, 90)), noClients, ofSeen(func(s *Seen) { s.Stop = observe.Gone })), expect{
			rule: "Live", reason: spec.ReasonRunning, looked: looked, changes: over(),
		}},
		{"other live clients are judged in a pass of their own", up(ofRecord(ending(record.StopDuplicate, 90)), ofSeen(func(s *Seen) { s.Stop = observe.Gone })), expect{
			rule: "Stop", reason: spec.ReasonStopping, requeue: soon, changes: over(),
		}},
	})
}

func TestTheEndOfAStoppedClientIsWaitedFor(t *testing.T) {
	silent := func(gs ...given) Input {
		return stopping(record.StopUpdating, append([]given{stopped(gone(0)), dead(0, nil, 0)}, gs...)...)
	}
	check(t, []row{
		{"tmux is asked to collect it", silent(), expect{rule: "Stop", reason: spec.ReasonStopping, action: actuate.ActionReap, requeue: pollStatus}},
		{"a look that saw the client before it ended is repeated", silent(ofSeen(func(s *Seen) { s.Client = observe.Running })), expect{rule: "Stop", reason: spec.ReasonStopping, requeue: pollStatus}},
		{"for a second", silent(stopped(gone(time.Second)), dead(0, nil, 0)), expect{
			rule: "Start", reason: spec.ReasonStarting, action: actuate.ActionRespawn, requeue: pollReceipt, looked: true, events: []string{"Normal Stopped"},
			changes: allOf(func(r *record.Record) { r.Stop = nil }, ended(spec.ReasonStopped, nil), opened),
		}},
	})
}

func TestTheEndOfAStopIsToldInWords(t *testing.T) {
	for want, in := range map[string]Input{
		"ended by muxlet (Updating), by SIGTERM":                        stopping(record.StopUpdating, stopped(exited(0)), termed(time.Second)),
		"ended by muxlet (Updating), by SIGKILL after the grace period": stopping(record.StopUpdating, stopped(exited(0)), termed(time.Minute), killed(time.Second)),
		"ended before muxlet signalled it (Updating)":                   stopping(record.StopUpdating, stopped(exited(0))),
		"its pane was lost; ended by SIGHUP":                            stopping(record.StopOrphan, stopped(gone(0)), noPanes, ofSeen(func(s *Seen) { s.ClientExit = &observe.Exit{Signal: 1} })),
	} {
		require.Equal(t, want, decide(t, in).Record.LastTermination.Message)
	}
}

// Every reason has its words; "ending pid 100: " alone would tell nothing.
func TestEveryStopSaysWhy(t *testing.T) {
	seen := map[string]bool{}
	for _, reason := range []record.StopReason{
		record.StopSuspended, record.StopTerminated, record.StopRestarting, record.StopRemoved, record.StopUpdating,
		record.StopOrphan, record.StopDuplicate, record.StopStartTimeout, record.StopLeftover, record.StopEngineGone, record.StopProbeFailed,
	} {
		sentence := stopSentence(reason, process(100))
		require.Greater(t, len(sentence), len("ending pid 100: "), reason)
		require.False(t, seen[sentence], reason)
		seen[sentence] = true
	}
}

// tmux 3.3a crashes when it is asked a second time to respawn a pane in which it
// could not start a process.
func TestAPaneInWhichTmuxCouldStartNothingIsRemoved(t *testing.T) {
	husk := []given{seesPane(pane("%3", 3, -1)), dead(0, nil, 0)}
	goes := func(changes func(*record.Record), events ...string) expect {
		return expect{rule: "Leftover", reason: spec.ReasonStarting, action: actuate.ActionKillPane, requeue: pollSlow, events: events, changes: changes}
	}
	check(t, []row{
		{"before the next start", down(husk...), goes(nil)},
		{"also while the session stays down", down(append(husk, latched(spec.ReasonTerminated))...), goes(nil)},
		{"also when it is suspended", down(append(husk, ofSpec(suspended))...), goes(nil)},
	})
}

// The shell through which the client was launched outlives it. It is ended while
// it is known to be ours, whatever follows.
func TestALeftoverShellIsEnded(t *testing.T) {
	shell := shellBelow
	dies := func(gs ...given) []given {
		return append([]given{shell, gone(0), ofSeen(func(s *Seen) { s.ClientExit = &observe.Exit{} })}, gs...)
	}
	ends := func(events []string, change ...func(*record.Record)) expect {
		return expect{rule: "Leftover", reason: spec.ReasonStopping, requeue: soon, events: events, changes: allOf(append(change, ending(record.StopLeftover, 99))...)}
	}
	died := []func(*record.Record){ended(spec.ReasonCompleted, &observe.Exit{}), counted}
	check(t, []row{
		{"after a death", up(dies()...), ends([]string{"Normal Died"}, died...)},
		{"also when the session is complete", up(dies(ofSpec(restartPolicy(spec.RestartNever)))...), ends([]string{"Normal Died", "Normal Completed"}, append(died, func(r *record.Record) {
			r.Latch = &record.Latch{Reason: spec.ReasonCompleted, At: now}
		})...)},
		{"also when it is suspended", up(dies(ofSpec(suspended))...), ends([]string{"Normal Died"}, died...)},
		{"after a stop", stopping(record.StopUpdating, dies(ofSeen(func(s *Seen) { s.Stop = observe.Gone }))...), ends([]string{"Normal Stopped"}, func(r *record.Record) {
			r.Stop = nil
		}, ended(spec.ReasonStopped, &observe.Exit{}))},
		{"with what it has started, when the session is removed", up(dies(removed)...), expect{
			rule: "Remove", reason: spec.ReasonStopping, requeue: soon, looked: true, events: []string{"Normal Died"}, changes: allOf(append(died, ending(record.StopRemoved, 99))...),
		}},
		{"not what has got its pid after its end", up(dies(gone(time.Second), reused(0))...), respawns([]string{"Normal Died"}, append(died, func(r *record.Record) {
			r.BackOff.LastDeathAt = ago(time.Second)
		})...)},
		{"not what has got the client's pid, though tmux does not say that it is dead", up(gone(time.Second), ofSeen(func(s *Seen) { s.Panes[0].Process.Ticks = 99_999 })), expect{
			rule: "Occupied", reason: spec.ReasonNameConflict, looked: true, events: []string{"Warning Died"}, changes: allOf(ended(spec.ReasonLost, nil), counted, func(r *record.Record) {
				r.BackOff.LastDeathAt = ago(time.Second)
			}),
		}},
		{"not the shell of another attempt", up(dies(ofSeen(func(s *Seen) { s.Panes[0].Labels.Attempt = "a2" }))...), expect{
			rule: "Occupied", reason: spec.ReasonNameConflict, looked: true, events: []string{"Warning Died"}, changes: allOf(died...),
		}},
		{"not while its client runs", up(shell), expect{rule: "Live", reason: spec.ReasonRunning, looked: true}},
		{"not while nothing is known of it: the death waits", up(dies(ofSeen(func(s *Seen) { s.Panes[0].Live = observe.LivenessUnknown }))...), expect{
			rule: "Death", reason: spec.ReasonDied, requeue: pollSlow,
		}},
		{"not what a person has run there", up(dies(ofSeen(func(s *Seen) { s.Panes[0].PID, s.Panes[0].Process = 555, process(555) }))...), expect{
			rule: "Occupied", reason: spec.ReasonNameConflict, looked: true, events: []string{"Warning Died"},
			changes: allOf(append(died, func(r *record.Record) { r.LastTermination.Reason = spec.ReasonCompleted })...),
			also: func(t *testing.T, p Plan) {
				require.Contains(t, p.Record.LastTermination.Message, "its pane was lost")
			},
		}},
	})
}

// A stop from its beginning to its verified end, with a client that ignores
// SIGTERM.
func TestAStopRunsToItsVerifiedEnd(t *testing.T) {
	in := up(edited(suspended), edited(graceOf(2)), ofSeen(func(s *Seen) { s.Tree = descendants }))
	var actions []string
	for range 20 {
		p := decide(t, in)
		if p.Action.Kind != actuate.ActionNone {
			actions = append(actions, in.Now.Sub(now).Round(time.Second).String()+" "+string(p.Action.Signal))
		}
		in.Record = p.Record
		in.Now = in.Now.Add(max(p.RequeueAfter, soon))
		if s := p.Record.Stop; s == nil {
			in.Seen.Stop = observe.LivenessUnknown
		} else if s.KillAt.IsZero() {
			in.Seen.Stop = observe.Running
		} else {
			in.Seen.Stop = observe.Gone
			signalled(9)(&in)
			in.Seen.TreeRunning = s.Descendants
			if !s.TreeTermAt.IsZero() {
				in.Seen.TreeRunning = nil
			}
		}
	}
	require.Equal(t, []string{"0s SIGTERM", "2s SIGKILL", "3s SIGTERM"}, actions)
	require.Nil(t, in.Record.Client)
	require.Nil(t, in.Record.Stop)
	require.Equal(t, &observe.Exit{Signal: 9}, in.Record.LastTermination.Exit)
	require.Zero(t, in.Record.BackOff.Deaths)
	require.Equal(t, spec.ReasonSuspended, decide(t, in).Verdict.Reason)
}

func TestASignalHasAName(t *testing.T) {
	require.Equal(t, "SIGKILL", SignalName(9))
	require.Equal(t, "signal 99", SignalName(99))
	require.Equal(t, "exited with status 3", end{exit: exitOf(observe.Pane{ExitStatus: ptr.To(3)})}.sentence())
}

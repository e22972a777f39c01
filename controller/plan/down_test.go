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

func TestARemovedSessionIsTakenAway(t *testing.T) {
	orphan := ofSpec(deletion(spec.DeletionOrphan))
	kills := expect{rule: "Remove", reason: spec.ReasonRemoved, action: actuate.ActionKillPane, requeue: pollSlow, looked: true}
	goes := expect{rule: "Remove", reason: spec.ReasonRemoved, fate: FateArchive, looked: true, events: []string{"Normal Removed"}}
	deadPane := []given{seesPane(pane("%3", 3, 100)), dead(0, ptr.To(0), 0)}
	check(t, []row{
		{"its client is stopped first", up(removed), expect{rule: "Remove", reason: spec.ReasonStopping, requeue: soon, looked: true, changes: ending(record.StopRemoved, 100)}},
		{"also without a spec", up(removed, func(in *Input) { in.Desired.Spec, in.Record.Spec = nil, nil }), expect{rule: "Remove", reason: spec.ReasonStopping, requeue: soon, looked: true, changes: ending(record.StopRemoved, 100)}},
		{"or left running, by its deletionPolicy", up(orphan, removed), expect{rule: "Remove", reason: spec.ReasonOrphaned, fate: FateArchive, looked: true, events: []string{"Normal Orphaned"}}},
		{"then its dead pane goes", down(append(deadPane, removed)...), kills},
		{"also one that tmux wrongly holds to be alive", down(seesPane(pane("%3", 3, 100)), ofSeen(func(s *Seen) { s.Panes[0].Live = observe.Gone }), removed), kills},
		{"also a dead one whose pid is another process's by now", down(seesPane(pane("%3", 3, 100)), reused(0), removed), kills},
		{"its pane goes although a client would have been left running", down(append(deadPane, orphan, removed)...), kills},
		{"a pane that could not be judged is waited for", down(seesPane(pane("%3", 3, 100)), ofSeen(func(s *Seen) { s.Panes[0].Live = observe.LivenessUnknown }), removed), expect{
			rule: "Remove", reason: spec.ReasonProcessUnknown, requeue: pollSlow, looked: true,
		}},
		{"a pane in which a person runs something is left to them", down(seesPane(pane("%3", 3, 555)), removed), goes},
		{"and is theirs, when it is proven that they started it there", down(seesPane(pane("%3", 3, 100)), taken(0), removed), expect{
			rule: "Remove", reason: spec.ReasonRemoved, action: actuate.ActionRelease, requeue: pollSlow, looked: true,
		}},
		{"then its record goes", down(removed), goes},
		// C5
		{"also when its tmux server is gone", down(noServer, removed), goes},
		{"also while it is suspended", down(ofSpec(suspended), removed), goes},
		{"also while it is latched, blocked and in back-off", down(latched(spec.ReasonTerminated), blocked(spec.ReasonCommandNotFound), deaths(9, 0), removed), goes},
		{"also when two documents had its name", down(removed, func(in *Input) { in.Desired.Refusal.Reason = spec.ReasonDuplicateName }), goes},
		{"its death is accounted for on the way", up(exited(0), removed), expect{
			rule: "Remove", reason: spec.ReasonRemoved, action: actuate.ActionKillPane, requeue: pollSlow, looked: true, events: []string{"Normal Died"},
			changes: allOf(ended(spec.ReasonCompleted, &observe.Exit{}), counted),
		}},
	})
}

// A client that was left running comes back with its session: its record knows it.
func TestAnOrphanedClientStaysInTheArchivedRecord(t *testing.T) {
	p := decide(t, up(ofSpec(deletion(spec.DeletionOrphan)), removed))
	require.Equal(t, process(100), p.Record.Client.Process)
}

// A13
func TestASuspendedSessionHasNoClient(t *testing.T) {
	rests := func(changes func(*record.Record), events ...string) expect {
		return expect{rule: "Suspend", reason: spec.ReasonSuspended, looked: true, changes: changes, events: events}
	}
	edit := func(r *record.Record) {
		r.Spec.Suspend = true
		r.Generation++
	}
	check(t, []row{
		{"it is stopped", up(edited(suspended)), expect{rule: "Suspend", reason: spec.ReasonStopping, requeue: soon, looked: true, changes: allOf(edit, ending(record.StopSuspended, 100))}},
		{"before an intent is obeyed", up(ofSpec(suspended), intends(record.IntentRestart, 3)), expect{rule: "Suspend", reason: spec.ReasonStopping, requeue: soon, looked: true, changes: ending(record.StopSuspended, 100)}},
		{"and rests", down(ofSpec(suspended)), rests(nil)},
		{"at the first look after a reboot as well, and is not to be recovered later", down(ofSpec(suspended), ofSpec(recovery(spec.RecoveryDormant)), firstLook), rests(nil)},
		{"a demand does not start it, nor later", down(ofSpec(suspended), demanded), rests(func(r *record.Record) { r.Demand = nil })},
		{"nor does a restart", down(ofSpec(suspended), intends(record.IntentRestart, 3)), rests(func(r *record.Record) { r.Intent = nil })},
		{"a person's terminate outlasts it", down(ofSpec(suspended), intends(record.IntentTerminate, 3)), rests(func(r *record.Record) {
			r.Intent, r.Latch = nil, &record.Latch{Reason: spec.ReasonTerminated, At: now}
		}, "Normal Terminated")},
		{"its dead pane stays, with its last screen", down(ofSpec(suspended), seesPane(pane("%3", 3, 100)), dead(0, ptr.To(0), 0)), rests(nil)},
	})
}

func TestAnIntentEndsTheIncarnationThatItIsAbout(t *testing.T) {
	stops := func(reason record.StopReason) expect {
		return expect{rule: "Intent", reason: spec.ReasonStopping, requeue: soon, changes: ending(reason, 100)}
	}
	forgets := func(r *record.Record) { r.Intent = nil }
	latch := allOf(forgets, func(r *record.Record) { r.Latch = &record.Latch{Reason: spec.ReasonTerminated, At: now} })
	stays := expect{rule: "Latch", reason: spec.ReasonTerminated, looked: true, events: []string{"Normal Terminated"}, changes: latch}
	check(t, []row{
		{"terminate", up(intends(record.IntentTerminate, 3)), stops(record.StopTerminated)},
		{"restart", up(intends(record.IntentRestart, 3)), stops(record.StopRestarting)},
		{"any up to the one that is meant", up(intends(record.IntentTerminate, 7)), stops(record.StopTerminated)},
		{"a later one is not terminated", up(intends(record.IntentTerminate, 2)), expect{rule: "Live", reason: spec.ReasonRunning, looked: true, changes: forgets}},
		// N6
		{"a later one is not restarted", up(intends(record.IntentRestart, 2)), expect{rule: "Live", reason: spec.ReasonRunning, looked: true, changes: forgets}},
		{"before a change of its spec is looked at", up(intends(record.IntentTerminate, 3), ofSpec(strategy(spec.UpdateRecreate)), edited(otherCommand)), expect{
			rule: "Intent", reason: spec.ReasonStopping, requeue: soon, changes: allOf(ending(record.StopTerminated, 100), func(r *record.Record) {
				otherCommand(r.Spec)
				r.Generation++
			}),
		}},
		// N1
		{"a session that is down stays down", down(intends(record.IntentTerminate, 3)), stays},
		{"one that never ran as well", down(intends(record.IntentTerminate, 0), ofRecord(func(r *record.Record) { r.Incarnation = 0 })), stays},
		{"also when it has just died by itself: the person's word counts", up(exited(1), intends(record.IntentTerminate, 3)), expect{
			rule: "Latch", reason: spec.ReasonTerminated, looked: true, events: []string{"Warning Died", "Normal Terminated"},
			changes: allOf(ended(spec.ReasonExited, &observe.Exit{Code: 1}), counted, latch),
		}},
		{"a completed one that was to be restarted is started", up(exited(0), ofSpec(restartPolicy(spec.RestartNever)), intends(record.IntentRestart, 3)),
			respawns([]string{"Normal Died", "Normal Completed"}, ended(spec.ReasonCompleted, &observe.Exit{}), counted, restartWanted)},
		{"a restart keeps the demand that is there", down(intends(record.IntentRestart, 3), demanded), creates(nil, forgets)},
	})
}

func TestWhatCannotBeStartedIsRefused(t *testing.T) {
	refusal := func(in *Input) {
		in.Desired.Refusal = Verdict{Reason: spec.ReasonDuplicateName, Message: "two files declare it"}
	}
	check(t, []row{
		{"two documents have its name", down(refusal), expect{rule: "Refusal", reason: spec.ReasonDuplicateName, looked: true}},
		{"it runs: then it goes on", up(refusal), expect{rule: "Live", reason: spec.ReasonRunning, looked: true}},
		{"no valid document was ever seen", down(func(in *Input) { in.Desired.Spec, in.Record.Spec = nil, nil }), expect{rule: "Refusal", reason: spec.ReasonInvalid, looked: true}},
		{"the last good spec is enough", down(func(in *Input) { in.Desired = Desired{Labels: in.Desired.Labels} }), creates(nil)},
	})
}

// A2: recoveryPolicy is about a session that had a client and is found without
// one when the daemon first looks.
func TestRecoveryPolicyIsAskedAtTheFirstLookOnly(t *testing.T) {
	dormant := ofSpec(recovery(spec.RecoveryDormant))
	latch := func(r *record.Record) { r.Latch = &record.Latch{Reason: spec.ReasonNotRecovered, At: now} }
	stays := expect{rule: "Latch", reason: spec.ReasonNotRecovered, looked: true, events: []string{"Normal NotRecovered"}, changes: latch}
	check(t, []row{
		{"Dormant stays down", down(dormant, firstLook), stays},
		{"Dormant stays down when its death is found just now", up(exited(0), dormant, firstLook), expect{
			rule: "Latch", reason: spec.ReasonNotRecovered, looked: true, events: []string{"Normal Died", "Normal NotRecovered"},
			changes: allOf(ended(spec.ReasonCompleted, &observe.Exit{}), counted, latch),
		}},
		{"also when the tmux server is gone", down(dormant, firstLook, noServer), stays},
		{"also when something else keeps it down for now", down(dormant, firstLook, func(in *Input) {
			in.Desired.Refusal = Verdict{Reason: spec.ReasonDuplicateName, Message: "two files declare it"}
		}), expect{rule: "Refusal", reason: spec.ReasonDuplicateName, looked: true, events: []string{"Normal NotRecovered"}, changes: latch}},
		{"Resume starts it", down(firstLook), creates(nil)},
		{"Dormant starts one that never had a client", down(dormant, firstLook, ofRecord(func(r *record.Record) { r.Incarnation = 0 })), creates(nil)},
		{"Dormant starts one that dies under the daemon's eyes", up(exited(0), dormant), respawns([]string{"Normal Died"}, ended(spec.ReasonCompleted, &observe.Exit{}), counted)},
		{"Dormant starts one that is wanted", down(dormant, firstLook, demanded), creates(nil)},
		{"Dormant goes on with a start that a person asked for", starting(dormant, firstLook, fenced(spec.ReasonStartFailed), noPanes, ofRecord(func(r *record.Record) {
			r.Attempt.ID, r.Attempt.Demand = "a9", &record.Demand{Reason: spec.ReasonResumed, At: now}
		})), creates([]string{"Warning StartFailed"}, counted, func(r *record.Record) {
			r.LastFailed, r.LastTermination = "a9", &record.Termination{Reason: spec.ReasonStartFailed, At: now}
		})},
		{"Dormant stays down when nobody asked for the start", starting(dormant, firstLook, fenced(spec.ReasonStartFailed), dead(0, ptr.To(1), 0)), expect{
			rule: "Latch", reason: spec.ReasonNotRecovered, looked: true, events: []string{"Warning StartFailed", "Normal NotRecovered"}, changes: allOf(counted, latch, func(r *record.Record) {
				r.LastFailed = r.Attempt.ID
				r.Attempt, r.LastTermination = nil, &record.Termination{Reason: spec.ReasonStartFailed, At: now}
			}),
		}},
		{"Dormant keeps one that runs", up(dormant, firstLook), expect{rule: "Live", reason: spec.ReasonRunning, looked: true}},
		{"Dormant leaves another latch as it is", down(dormant, firstLook, latched(spec.ReasonTerminated)), expect{rule: "Latch", reason: spec.ReasonTerminated, looked: true}},
		{"without a spec nothing is judged", down(firstLook, func(in *Input) { in.Desired.Spec, in.Record.Spec = nil, nil }), expect{rule: "Refusal", reason: spec.ReasonInvalid, looked: true}},
	})
}

// Invariant 9, N4: a latch is released by a demand.
func TestALatchIsReleasedByADemandOnly(t *testing.T) {
	release := func(r *record.Record) { r.Latch = nil }
	lastExit := func(exit *observe.Exit) given {
		return ofRecord(func(r *record.Record) { r.LastTermination = &record.Termination{Exit: exit, At: now} })
	}
	var rows []row
	for _, reason := range []string{spec.ReasonTerminated, spec.ReasonCompleted, spec.ReasonNotRecovered} {
		// What completed would complete again.
		complete := []given{latched(reason), ofSpec(restartPolicy(spec.RestartNever)), lastExit(&observe.Exit{})}
		holds := expect{rule: "Latch", reason: reason, looked: true}
		rows = append(rows,
			row{reason + " holds", down(complete...), holds},
			row{reason + " holds at the first look of another daemon", down(append(complete, firstLook)...), holds},
			row{reason + " holds against an edit", down(append(complete, edited(otherCommand))...), expect{rule: "Latch", reason: reason, looked: true, changes: func(r *record.Record) {
				otherCommand(r.Spec)
				r.Generation++
			}}},
			row{reason + " is released by a demand", down(append(complete, demanded)...), creates(nil, release)},
			row{reason + " is released by a demand that has to wait for a server", down(append(complete, demanded, noServer)...), expect{
				rule: "Server", reason: spec.ReasonServerStarting, looked: true, changes: release,
			}},
		)
	}
	completed := latched(spec.ReasonCompleted)
	never := restartPolicy(spec.RestartNever)
	edits := func(policy spec.RestartPolicy) func(*record.Record) {
		return func(r *record.Record) {
			r.Spec.RestartPolicy = policy
			r.Generation++
		}
	}
	check(t, append(rows,
		row{"a session is no longer complete when its restart policy says otherwise", down(completed, ofSpec(never), lastExit(&observe.Exit{}), edited(restartPolicy(spec.RestartAlways))), creates(nil, release, edits(spec.RestartAlways))},
		row{"it is still complete by a policy that says the same of its end", down(completed, ofSpec(never), lastExit(&observe.Exit{}), edited(restartPolicy(spec.RestartOnFailure))), expect{
			rule: "Latch", reason: spec.ReasonCompleted, looked: true, changes: edits(spec.RestartOnFailure),
		}},
		row{"it is still complete when its end is not known", down(completed), expect{rule: "Latch", reason: spec.ReasonCompleted, looked: true}},
		row{"a person's terminate does not depend on the restart policy", down(latched(spec.ReasonTerminated), ofSpec(never), lastExit(&observe.Exit{}), edited(restartPolicy(spec.RestartAlways))), expect{
			rule: "Latch", reason: spec.ReasonTerminated, looked: true, changes: edits(spec.RestartAlways),
		}},
	))
}

// Invariant 10: what a person runs in our pane is theirs.
func TestAPaneInUseIsLeftAlone(t *testing.T) {
	foreign := seesPane(pane("%3", 3, 555))
	check(t, []row{
		{"a person runs something in it", down(foreign), expect{rule: "Occupied", reason: spec.ReasonNameConflict, looked: true}},
		{"although a client is wanted now", down(foreign, demanded), expect{rule: "Occupied", reason: spec.ReasonNameConflict, looked: true}},
		{"although another pane of ours is free", down(seesPane(pane("%2", 2, 50)), dead(0, nil, 9), foreign), expect{rule: "Occupied", reason: spec.ReasonNameConflict, looked: true}},
		{"nothing is known of its process", down(foreign, ofSeen(func(s *Seen) { s.Panes[0].Live = observe.LivenessUnknown })), expect{rule: "Occupied", reason: spec.ReasonProcessUnknown, requeue: pollSlow, looked: true}},
	})
}

// D8: what is proven to be a person's own respawn takes the pane; the client comes
// back beside it. What it is that runs in a pane is judged by the pid that the pane
// had when a launcher was started in it.
func TestAPaneThatAPersonHasTakenIsTheirs(t *testing.T) {
	ours := seesPane(pane("%3", 3, 100))
	released := expect{rule: "Occupied", reason: spec.ReasonPaneTaken, action: actuate.ActionRelease, requeue: pollSlow, looked: true}
	lost := func(e expect) expect {
		e.events, e.changes = []string{"Warning Died"}, allOf(ended(spec.ReasonLost, nil), counted)
		return e
	}
	fenced := func(r *record.Record) { closed(r, spec.ReasonStartFailed) }
	check(t, []row{
		{"it is given up to them", down(ours, taken(0)), released},
		{"with the death of the client that was in it", up(taken(0), gone(0)), lost(released)},
		{"not before the client has ended", up(taken(0)), expect{
			rule: "Orphan", reason: spec.ReasonStopping, requeue: soon, events: []string{"Warning Orphan"}, changes: ending(record.StopOrphan, 100),
		}},
		{"not when what they ran has ended: then it is our dead pane", down(ours, taken(0), dead(0, ptr.To(0), 0)), respawns(nil)},
		{"not while it is not known whether that runs", down(ours, taken(0), ofSeen(func(s *Seen) { s.Panes[0].Live = observe.LivenessUnknown })), expect{
			rule: "Occupied", reason: spec.ReasonProcessUnknown, requeue: pollSlow, looked: true,
		}},
		{"not while the session is to stay down", down(ours, taken(0), ofSpec(suspended)), expect{rule: "Suspend", reason: spec.ReasonSuspended, looked: true}},
		{"a start whose pane they took is given up", starting(taken(0)), expect{rule: "Attempt", reason: spec.ReasonStarting, requeue: soon, changes: fenced}},
		{"and nothing in that pane is ended for it", starting(taken(0), ofRecord(fenced)), expect{
			rule: "Occupied", reason: spec.ReasonPaneTaken, action: actuate.ActionRelease, requeue: pollSlow, looked: true,
			events: []string{"Warning StartFailed"}, changes: func(r *record.Record) {
				r.Attempt, r.LastFailed = nil, "a4"
				r.LastTermination = &record.Termination{Reason: spec.ReasonStartFailed, At: now}
				counted(r)
			},
		}},
	})
}

func TestAPermanentReasonWaitsForTheWorld(t *testing.T) {
	missing := func(in *Input) {
		in.Workspace = Workspace{Path: "/work", Obstacle: spec.ReasonWorkspaceMissing, Message: "it is not there"}
	}
	cleared := func(in *Input) { in.Block = ObstacleCleared }
	waits := func(reason string, changes func(*record.Record)) expect {
		return expect{rule: "Block", reason: reason, looked: true, changes: changes}
	}
	const reason = spec.ReasonCommandNotFound
	unblocked := func(r *record.Record) { r.Block = nil }
	check(t, []row{
		// B10
		{"the workspace is missing", down(missing), waits(spec.ReasonWorkspaceMissing, nil)},
		{"the workspace is missing, whatever a person wants", down(missing, demanded), waits(spec.ReasonWorkspaceMissing, func(r *record.Record) { r.Demand = nil })},
		{"the workspace is missing, and a running client is left alone", up(missing), expect{rule: "Live", reason: spec.ReasonRunning, looked: true}},
		{"the workspace is back", down(), creates(nil)},
		// E7
		{"a block stands", down(blocked(reason)), waits(reason, nil)},
		{"however long ago", down(blocked(reason), deaths(1, 24*time.Hour)), waits(reason, nil)},
		{"its cause is gone: at once", down(blocked(reason), cleared), creates(nil, unblocked, func(r *record.Record) { r.BackOff.BoughtAt = now })},
		{"its cause is gone: at once, also in back-off, and the count stays", down(blocked(reason), cleared, deaths(8, 0)), creates(nil, unblocked, func(r *record.Record) {
			r.BackOff = record.BackOff{Deaths: 8, BoughtAt: now}
		})},
		{"its cause is gone again, ten seconds after the last time", down(blocked(reason), cleared, deaths(3, 0), ofRecord(func(r *record.Record) { r.BackOff.BoughtAt = ago(10 * time.Second) })), creates(nil, unblocked, func(r *record.Record) {
			r.BackOff = record.BackOff{Deaths: 3, BoughtAt: now}
		})},
		{"its cause seems gone again and again: the back-off decides", down(blocked(reason), cleared, deaths(3, 0), ofRecord(func(r *record.Record) { r.BackOff.BoughtAt = ago(9 * time.Second) })), expect{
			rule: "BackOff", reason: spec.ReasonCrashLoopBackOff, requeue: 2 * time.Second, looked: true, changes: unblocked,
		}},
		{"a person wants one try all the same, and the count stays", down(blocked(reason), demanded, deaths(8, 0)), creates(nil, unblocked, func(r *record.Record) { r.BackOff.BoughtAt = now })},
		{"an edit takes it away", down(blocked(reason), deaths(8, 0), edited(otherCommand)), creates(nil, unblocked, func(r *record.Record) {
			otherCommand(r.Spec)
			r.Generation, r.BackOff = 2, record.BackOff{}
		})},
	})
}

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

// receipt of the pending attempt, written that long ago by pid 200, which runs
// when it says Exec.
func receipt(stage observe.ReceiptStage, age time.Duration) given {
	return func(in *Input) {
		in.Seen.ReceiptState = ReceiptFound
		in.Seen.Receipt = observe.Receipt{Attempt: "a4", Process: process(200), Stage: stage, At: ago(age)}
		in.Seen.ReceiptProcess = observe.Running
		if stage == observe.StageFailed {
			in.Seen.Receipt.Reason, in.Seen.Receipt.Message = spec.ReasonExecFailed, "the system refused"
			in.Seen.ReceiptProcess = observe.Gone
		}
	}
}

func failed(reason string) given {
	return func(in *Input) {
		receipt(observe.StageFailed, 0)(in)
		in.Seen.Receipt.Reason = reason
		in.Seen.Receipt.LookedFor, in.Seen.Receipt.LookedIn, in.Seen.Receipt.File = "agent", []string{"/bin"}, "/env"
		dead(0, ptr.To(1), 0)(in)
	}
}

// closed gives the attempt up now.
func closed(r *record.Record, reason string) {
	r.Attempt.Fence, r.Attempt.Reason, r.Attempt.ClosedAt = record.FenceClosed, reason, now
}

func fenced(reason string) given {
	return ofRecord(func(r *record.Record) { r.Attempt.Fence, r.Attempt.Reason = record.FenceClosed, reason })
}

// executed makes the attempt's client the recorded one.
func executed(incarnation int64, pid, panePID int) func(*record.Record) {
	return func(r *record.Record) {
		r.Client = &record.Client{
			Incarnation: incarnation, Attempt: label(incarnation), Process: process(pid), StartedAt: now, Launched: r.Attempt.Spec.DeepCopy(), Server: server,
		}
		if panePID != 0 {
			r.Client.Pane, r.Client.PanePID = "%4", panePID
		}
		r.Attempt, r.Block = nil, nil
		r.Incarnation = max(r.Incarnation, incarnation)
	}
}

func startedAt(age time.Duration, change func(*record.Record)) func(*record.Record) {
	return func(r *record.Record) {
		change(r)
		r.Client.StartedAt = ago(age)
	}
}

func TestAnExecutedAttemptIsAnIncarnation(t *testing.T) {
	started := func(change func(*record.Record)) expect {
		return expect{rule: "Attempt", reason: spec.ReasonStarted, requeue: soon, events: []string{"Normal Started"}, changes: change}
	}
	mark := seesClient(marked(4, 200))
	hides := ofSeen(func(s *Seen) { s.ReceiptProcess = observe.Running })
	ended := ofSeen(func(s *Seen) { s.ReceiptProcess = observe.Gone })
	check(t, []row{
		{"when its mark is seen", starting(receipt(observe.StageExec, 0), mark), started(executed(4, 200, 200))},
		{"when its process runs and hides its mark, after a second", starting(receipt(observe.StageExec, time.Second), hides), started(startedAt(time.Second, executed(4, 200, 200)))},
		{"when its process has ended already", starting(receipt(observe.StageExec, 0), ended, dead(0, ptr.To(0), 0)), started(executed(4, 200, 200))},
		{"when its process has ended and its pane is gone", starting(receipt(observe.StageExec, 0), ended, noServer), started(func(r *record.Record) {
			executed(4, 200, 0)(r)
			r.Client.Server = observe.Server{}
		})},
		{"also behind a closed fence: the launcher was past it", starting(receipt(observe.StageExec, 0), mark, fenced(spec.ReasonStartTimeout)), started(executed(4, 200, 200))},
		{"also when nobody wants it any more", starting(receipt(observe.StageExec, 0), mark, removed), started(executed(4, 200, 200))},
		{"and a block is over", starting(receipt(observe.StageExec, 0), mark, blocked(spec.ReasonCommandNotFound)), started(executed(4, 200, 200))},
		{"written by a clock that has jumped back since", starting(receipt(observe.StageExec, -time.Hour), mark), started(executed(4, 200, 200))},
		{"and hidden, with such a clock", starting(receipt(observe.StageExec, -time.Hour), hides, ofRecord(func(r *record.Record) { r.Attempt.OpenedAt = ago(time.Second) })), started(executed(4, 200, 200))},
	})
}

func TestAnAttemptIsNotYetExecuted(t *testing.T) {
	waits := func(reason string, requeue time.Duration) expect {
		return expect{rule: "Attempt", reason: reason, requeue: requeue}
	}
	check(t, []row{
		{"while its mark is not seen", starting(receipt(observe.StageExec, time.Second-1)), waits(spec.ReasonStarting, pollStatus)},
		{"while nothing is known of its process", starting(receipt(observe.StageExec, time.Hour), ofSeen(func(s *Seen) { s.ReceiptProcess = observe.LivenessUnknown })), waits(spec.ReasonProcessUnknown, pollSlow)},
		{"while its receipt cannot be read", starting(ofSeen(func(s *Seen) { s.ReceiptState = ReceiptUnknown })), waits(spec.ReasonStarting, pollSlow)},
		{"while its receipt cannot be read, whatever was read before", starting(receipt(observe.StageExec, time.Hour), ofSeen(func(s *Seen) { s.ReceiptState = ReceiptUnknown })), waits(spec.ReasonStarting, pollSlow)},
		{"while its receipt cannot be read and the lease is held, however late and unwanted", starting(removed, noPanes, ofSeen(func(s *Seen) {
			s.ReceiptState, s.Lease.State = ReceiptUnknown, observe.Running
		}), ofRecord(func(r *record.Record) { r.Attempt.OpenedAt = ago(time.Hour) })), waits(spec.ReasonStarting, pollSlow)},
		{"but not for ever, when nobody holds the lease", starting(noPanes, ofSeen(func(s *Seen) {
			s.ReceiptState, s.Lease.State = ReceiptUnknown, observe.Gone
		}), ofRecord(func(r *record.Record) { r.Attempt.OpenedAt = ago(time.Minute) })), expect{
			rule: "Attempt", reason: spec.ReasonStarting, requeue: soon, changes: func(r *record.Record) {
				closed(r, spec.ReasonStartFailed)
			},
		}},
	})
}

// Rule 6: an executed client that is gone already is an incarnation that ended,
// and its death is counted.
func TestAnAttemptThatDiedAtOnceIsCounted(t *testing.T) {
	in := starting(receipt(observe.StageExec, 0), dead(0, ptr.To(3), 0), ofSeen(func(s *Seen) { s.ReceiptProcess = observe.Gone }))
	in.Record = decide(t, in).Record
	in.Seen.Client, in.Seen.ReceiptState, in.New.ID = observe.Gone, ReceiptMissing, "a5"
	p := decide(t, in)
	require.Equal(t, int64(4), p.Record.Incarnation)
	require.Equal(t, 1, p.Record.BackOff.Deaths)
	require.Equal(t, &record.Termination{Incarnation: 4, Exit: &observe.Exit{Code: 3}, Reason: spec.ReasonExited, Message: "exited with status 3", At: now}, p.Record.LastTermination)
	require.Equal(t, int64(5), p.Record.Attempt.Incarnation)
}

// A launcher that was past the fence, and was ended with its attempt: its number
// is spent, and its exit is no exit of its own.
func TestAGivenUpAttemptThatWasExecutedSpendsItsNumber(t *testing.T) {
	ended := []given{receipt(observe.StageExec, 0), dead(0, ptr.To(0), 0), ofSeen(func(s *Seen) { s.ReceiptProcess = observe.Gone }), ofSpec(restartPolicy(spec.RestartNever))}
	over := func(r *record.Record) { r.Incarnation, r.Attempt = 4, nil }
	gives := expect{rule: "Attempt", reason: spec.ReasonStarting, requeue: soon, changes: over}
	counts := gives
	counts.events, counts.changes = []string{"Warning StartTimeout"}, allOf(over, counted, func(r *record.Record) {
		r.LastTermination = &record.Termination{Incarnation: 4, Reason: spec.ReasonStartTimeout, At: now}
	})
	earlier := ofRecord(func(r *record.Record) {
		r.LastTermination = &record.Termination{Incarnation: 3, Reason: spec.ReasonExited, At: now}
	})
	old := ofRecord(func(r *record.Record) {
		r.LastTermination = &record.Termination{Reason: spec.ReasonExecFailed, At: ago(time.Minute)}
	})
	check(t, []row{
		{"not counted, and an earlier failure keeps its own account", starting(append(ended, fenced(spec.ReasonSuspended), old)...), gives},
		{"counted when it was late", starting(append(ended, fenced(spec.ReasonStartTimeout))...), counts},
		{"not counted when nobody wanted it", starting(append(ended, fenced(spec.ReasonSuspended), earlier)...), gives},
		{"while nothing is known of its process it is waited for", starting(append(ended, fenced(spec.ReasonStartTimeout), ofSeen(func(s *Seen) { s.ReceiptProcess = observe.LivenessUnknown }))...), expect{
			rule: "Attempt", reason: spec.ReasonProcessUnknown, requeue: pollSlow,
		}},
	})
}

// M4: the receipt was lost with the state directory, the client lives.
func TestAMarkedClientWithoutReceiptIsAdopted(t *testing.T) {
	late := ofRecord(func(r *record.Record) { r.Attempt.OpenedAt = ago(time.Second) })
	mark := seesClient(marked(4, 200))
	adoption := expect{
		rule: "Attempt", reason: spec.ReasonAdopted, requeue: soon, events: []string{"Normal Adopted"},
		changes: startedAt(time.Second, executed(4, 200, 200)),
	}
	waits := expect{rule: "Attempt", reason: spec.ReasonStarting, requeue: pollReceipt, changes: func(r *record.Record) { r.Incarnation = 4 }}
	check(t, []row{
		{"when there is none", starting(late, mark), adoption},
		{"when it cannot be read", starting(late, mark, ofSeen(func(s *Seen) { s.ReceiptState = ReceiptUnknown })), adoption},
		{"behind a closed fence as well", starting(late, mark, fenced(spec.ReasonStartTimeout)), adoption},
		{"not at once: the receipt may have been read before it was written", starting(mark), waits},
		{"nor at once when it cannot be read", starting(mark, ofSeen(func(s *Seen) { s.ReceiptState = ReceiptUnknown })), waits},
		{"when it tells of a failure: the mark is the better evidence", starting(late, mark, receipt(observe.StageFailed, time.Minute)), adoption},
		{"nor is the attempt given up meanwhile", starting(mark, receipt(observe.StageFailed, time.Minute), removed), waits},
	})
}

func TestAFailureReceiptEndsTheAttempt(t *testing.T) {
	// A first failure waits for nothing; the second one is in back-off.
	again := func(reason string, more ...func(*record.Record)) expect {
		return expect{
			rule: "BackOff", reason: spec.ReasonCrashLoopBackOff, requeue: time.Second, looked: true, events: []string{"Warning " + reason},
			changes: allOf(append(more, counted, func(r *record.Record) {
				r.LastFailed = r.Attempt.ID
				r.Attempt, r.LastTermination = nil, &record.Termination{Reason: reason, At: now}
			})...),
		}
	}
	waitsForWorld := func(reason string) expect {
		e := again(reason, func(r *record.Record) {
			r.Block = &record.Block{Reason: reason, LookedFor: "agent", LookedIn: []string{"/bin"}, File: "/env", At: now}
		})
		e.rule, e.reason, e.requeue = "Block", reason, 0
		return e
	}
	var rows []row
	for _, reason := range []string{
		spec.ReasonCommandNotFound, spec.ReasonWorkspaceMissing, spec.ReasonWorkspaceNotDirectory, spec.ReasonWorkspaceInaccessible,
		spec.ReasonEnvFileMissing, spec.ReasonEnvFileUnreadable, spec.ReasonEnvFileInvalid, spec.ReasonCommandNotExecutable,
	} {
		require.True(t, Permanent(reason))
		// E7
		rows = append(rows, row{reason + " waits for the world or the spec to change", starting(deaths(1, time.Second), failed(reason)), waitsForWorld(reason)})
	}
	for _, reason := range []string{spec.ReasonExecFailed, spec.ReasonLeaseHeld, spec.ReasonStateUnwritable, spec.ReasonFenced} {
		require.False(t, Permanent(reason))
		rows = append(rows, row{reason + " is tried again after the back-off", starting(deaths(1, time.Second), failed(reason)), again(reason)})
	}
	check(t, append(rows,
		row{"when its pane is gone as well", starting(deaths(1, time.Second), failed(spec.ReasonExecFailed), noPanes), again(spec.ReasonExecFailed)},
		row{"when the pane's process is gone although tmux does not say so", starting(deaths(1, time.Second), failed(spec.ReasonExecFailed), ofSeen(func(s *Seen) {
			s.Panes[0].State = observe.Present
		})), again(spec.ReasonExecFailed)},
	))
}

// A number is spent by an executed client only.
func TestAFailedAttemptSpendsNoNumber(t *testing.T) {
	in := starting(failed(spec.ReasonExecFailed))
	in.New.ID = "a5"
	p := decide(t, in)
	require.Equal(t, actuate.ActionRespawn, p.Action.Kind)
	require.Equal(t, int64(3), p.Record.Incarnation)
	require.Equal(t, int64(4), p.Record.Attempt.Incarnation)
	require.Equal(t, "a5", p.Record.Attempt.ID)
}

func TestAFailedLauncherIsGivenASecondToEnd(t *testing.T) {
	lingers := func(age time.Duration, gs ...given) Input {
		return starting(append([]given{receipt(observe.StageFailed, age)}, gs...)...)
	}
	waits := expect{rule: "Attempt", reason: spec.ReasonStarting, requeue: pollStatus}
	ends := expect{rule: "Attempt", reason: spec.ReasonStopping, requeue: soon, changes: ending(record.StopLeftover, 200)}
	unknown := ofSeen(func(s *Seen) { s.Panes[0].Live = observe.LivenessUnknown })
	old := ofRecord(func(r *record.Record) { r.Attempt.OpenedAt = ago(time.Second) })
	check(t, []row{
		{"it is waited for", lingers(time.Second - 1), waits},
		{"then it is ended", lingers(time.Second), ends},
		{"unless nothing is known of it", lingers(time.Hour, unknown), expect{rule: "Attempt", reason: spec.ReasonProcessUnknown, requeue: pollSlow}},
		{"a clock that has jumped back does not stretch that", lingers(-time.Hour, old), ends},
	})
}

func TestASilentLauncherIsWaitedFor(t *testing.T) {
	old := func(d time.Duration) given {
		return ofRecord(func(r *record.Record) { r.Attempt.OpenedAt = ago(d) })
	}
	waits := func(requeue time.Duration) expect {
		return expect{rule: "Attempt", reason: spec.ReasonStarting, requeue: requeue}
	}
	check(t, []row{
		{"often at first", starting(old(0)), waits(pollReceipt)},
		{"less often later", starting(old(2 * time.Second)), waits(500 * time.Millisecond)},
		{"at least every second", starting(old(30 * time.Second)), waits(time.Second)},
		{"and at the timeout", starting(old(time.Minute - time.Millisecond)), waits(time.Millisecond)},
		{"although its process could not be judged", starting(old(0), ofSeen(func(s *Seen) { s.Panes[0].Live = observe.LivenessUnknown })), waits(pollReceipt)},
		{"although its spec has changed", starting(old(0), edited(otherCommand)), expect{rule: "Attempt", reason: spec.ReasonStarting, requeue: pollReceipt, changes: func(r *record.Record) {
			otherCommand(r.Spec)
			r.Generation = 2
		}}},
	})
}

// Giving up is two steps: the fence is on disk before anything follows from it.
func TestASilentAttemptIsFencedOff(t *testing.T) {
	gives := func(reason string) expect {
		return expect{rule: "Attempt", reason: spec.ReasonStarting, requeue: soon, changes: func(r *record.Record) {
			closed(r, reason)
		}}
	}
	old := ofRecord(func(r *record.Record) { r.Attempt.OpenedAt = ago(time.Minute) })
	check(t, []row{
		// R2
		{"at its startup timeout", starting(old), gives(spec.ReasonStartTimeout)},
		{"at the timeout of the spec that it was made from", starting(ofRecord(func(r *record.Record) {
			r.Attempt.Spec.StartupTimeoutSeconds = ptr.To[int32](1)
			r.Attempt.OpenedAt = ago(time.Second)
		})), gives(spec.ReasonStartTimeout)},
		{"at a minute when that says nothing", starting(old, ofRecord(func(r *record.Record) { r.Attempt.Spec.StartupTimeoutSeconds = nil })), gives(spec.ReasonStartTimeout)},
		{"when its pane is dead", starting(dead(0, ptr.To(127), 0)), gives(spec.ReasonStartFailed)},
		{"when its pane is dead, whatever has got its pid since", starting(reused(0)), gives(spec.ReasonStartFailed)},
		{"when its process is gone although tmux does not say so", starting(ofSeen(func(s *Seen) { s.Panes[0].Live = observe.Gone })), gives(spec.ReasonStartFailed)},
		{"when it has no pane", starting(noPanes), gives(spec.ReasonStartFailed)},
		{"when the pane is another attempt's", starting(noPanes, seesPane(pane("%3", 3, 200))), gives(spec.ReasonStartFailed)},
		{"when there is no tmux server", starting(noServer), gives(spec.ReasonStartFailed)},
		// N2
		{"when its session was removed", starting(removed), gives(spec.ReasonRemoved)},
		{"when its session was suspended", starting(ofSpec(suspended)), gives(spec.ReasonSuspended)},
		{"when it was terminated", starting(intends(record.IntentTerminate, 4)), gives(spec.ReasonTerminated)},
		{"but not when a restart was asked for", starting(intends(record.IntentRestart, 4)), expect{rule: "Attempt", reason: spec.ReasonStarting, requeue: pollReceipt}},
	})
}

func TestAnAttemptIsGivenUpWithAReasonInWords(t *testing.T) {
	old := ofRecord(func(r *record.Record) { r.Attempt.OpenedAt = ago(time.Minute) })
	for want, in := range map[string]Input{
		"the pane was not there": starting(noPanes),
		"respawn pane failed":    starting(noPanes, ofSeen(func(s *Seen) { s.StartFailure = "respawn pane failed" })),
		"the shell ended before it reached the launcher (exited with status 127)": starting(dead(0, ptr.To(127), 0)),
		"the launcher was not reached within 1m0s: the shell's profile may hang":  starting(old),
		"given up before the client was executed":                                 starting(removed),
	} {
		require.Contains(t, decide(t, in).Record.Attempt.Message, want)
	}
}

func TestAFencedAttemptIsGivenUpStepByStep(t *testing.T) {
	over := dead(0, ptr.To(1), 0)
	failure := func(reason string) expect {
		return expect{
			rule: "BackOff", reason: spec.ReasonCrashLoopBackOff, requeue: time.Second, looked: true, events: []string{"Warning " + reason},
			changes: allOf(counted, func(r *record.Record) {
				r.LastFailed = r.Attempt.ID
				r.Attempt, r.LastTermination = nil, &record.Termination{Reason: reason, At: now}
			}),
		}
	}
	stops := func(reason record.StopReason) expect {
		return expect{rule: "Attempt", reason: spec.ReasonStopping, requeue: soon, changes: ending(reason, 200)}
	}
	lease := func(state observe.Liveness) given { return ofSeen(func(s *Seen) { s.Lease.State = state }) }
	waits := expect{rule: "Attempt", reason: spec.ReasonStarting, requeue: pollReceipt}
	once := deaths(1, time.Second)
	check(t, []row{
		{"the process that hangs is ended", starting(fenced(spec.ReasonStartTimeout)), stops(record.StopStartTimeout)},
		{"for good when the session was removed", starting(fenced(spec.ReasonRemoved)), stops(record.StopRemoved)},
		{"or suspended", starting(fenced(spec.ReasonSuspended)), stops(record.StopSuspended)},
		{"or terminated", starting(fenced(spec.ReasonTerminated)), stops(record.StopTerminated)},
		{"nothing is ended that could not be judged", starting(fenced(spec.ReasonStartTimeout), ofSeen(func(s *Seen) { s.Panes[0].Live = observe.LivenessUnknown })), expect{
			rule: "Attempt", reason: spec.ReasonProcessUnknown, requeue: pollSlow,
		}},
		{"while a launcher holds the lease it is not given up", starting(fenced(spec.ReasonStartTimeout), over, lease(observe.Running)), waits},
		{"nor while the lease cannot be asked", starting(fenced(spec.ReasonStartTimeout), over, lease(observe.LivenessUnknown)), waits},
		{"gone and the lease free: it has failed", starting(once, fenced(spec.ReasonStartTimeout), over), failure(spec.ReasonStartTimeout)},
		{"the same with a receipt that cannot be read: its number counts as spent", starting(once, fenced(spec.ReasonStartTimeout), over, ofSeen(func(s *Seen) { s.ReceiptState = ReceiptUnknown }), ofRecord(func(r *record.Record) {
			r.Attempt.OpenedAt = ago(time.Minute)
		})), func() expect {
			e := failure(spec.ReasonStartTimeout)
			e.changes = allOf(e.changes, func(r *record.Record) { r.Incarnation = 4 })
			return e
		}()},
		{"the same without a pane", starting(once, fenced(spec.ReasonStartFailed), noPanes), failure(spec.ReasonStartFailed)},
		{"a failure receipt that came in time tells more", starting(once, fenced(spec.ReasonStartTimeout), failed(spec.ReasonExecFailed), ofSeen(func(s *Seen) {
			s.Lease.State = observe.Running
		})), failure(spec.ReasonExecFailed)},
	})
}

func TestAnAttemptThatNobodyWantsIsNotCounted(t *testing.T) {
	over := dead(0, ptr.To(1), 0)
	ends := func(r *record.Record) { r.Attempt, r.LastFailed = nil, r.Attempt.ID }
	check(t, []row{
		{"removed", starting(removed, fenced(spec.ReasonRemoved), over), expect{rule: "Remove", reason: spec.ReasonRemoved, action: actuate.ActionKillPane, requeue: pollSlow, looked: true, changes: ends}},
		{"suspended", starting(ofSpec(suspended), fenced(spec.ReasonSuspended), over), expect{rule: "Suspend", reason: spec.ReasonSuspended, looked: true, changes: ends}},
		{"terminated", starting(intends(record.IntentTerminate, 4), fenced(spec.ReasonTerminated), over), expect{
			rule: "Latch", reason: spec.ReasonTerminated, looked: true, events: []string{"Normal Terminated"},
			changes: allOf(ends, func(r *record.Record) {
				r.Intent, r.Latch = nil, &record.Latch{Reason: spec.ReasonTerminated, At: now}
			}),
		}},
	})
}

// Rule 6 from end to end: a launcher that never comes is fenced off, ended, and
// its attempt has failed and is counted.
func TestAHangingLauncherIsGivenUp(t *testing.T) {
	in := starting(deaths(1, time.Hour), ofRecord(func(r *record.Record) { r.Attempt.OpenedAt = ago(time.Minute) }))
	var reasons []string
	for range 20 {
		p := decide(t, in)
		reasons = append(reasons, string(p.Action.Kind)+"/"+p.Verdict.Reason)
		in.Record = p.Record
		in.Seen.Stop = observe.LivenessUnknown
		if s := p.Record.Stop; s != nil {
			in.Seen.Stop = observe.Running
			if !s.KillAt.IsZero() {
				in.Seen.Stop = observe.Gone
				dead(0, nil, 9)(&in)
			}
		}
		if p.Record.Attempt == nil {
			break
		}
		in.Now = in.Now.Add(p.RequeueAfter)
	}
	require.Equal(t, []string{"/Starting", "/Stopping", "Signal/Stopping", "Signal/Stopping", "/CrashLoopBackOff"}, reasons)
	require.Equal(t, spec.ReasonStartTimeout, in.Record.LastTermination.Reason)
	require.Contains(t, in.Record.LastTermination.Message, "profile")
	require.Equal(t, 2, in.Record.BackOff.Deaths)
	require.Equal(t, int64(3), in.Record.Incarnation)
}

// The next pass needs no other listing than the one that showed the pane.
func TestTheObservationThatShowedAStartWillDoForItsClient(t *testing.T) {
	seen := starting(receipt(observe.StageExec, 0), seesClient(marked(4, 200)))
	require.True(t, Compute(seen).Same)
	seen.Seen.Panes = nil
	require.False(t, Compute(seen).Same, "its pane is younger than the listing")
	require.False(t, Compute(starting()).Same)
}

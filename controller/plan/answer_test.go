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

func notDelivered(reason string) []string {
	return []string{"Over delivered=False(" + reason + ") retryable"}
}

// messageHas looks for words in the message of the first turn.
func messageHas(words ...string) func(*testing.T, Plan) {
	return func(t *testing.T, p Plan) {
		for _, word := range words {
			require.Contains(t, p.Turns[0].Delivered.Message, word)
		}
	}
}

// Invariant 11: what cannot be is answered at once, and everything at its deadline.
func TestATurnThatCannotBeHandedOverIsAnswered(t *testing.T) {
	of := func(gs ...given) Input { return down(append([]given{sent(pending(1))}, gs...)...) }
	knownBlock := func(age time.Duration) given {
		return func(in *Input) {
			blocked(spec.ReasonCommandNotFound)(in)
			in.Record.Block.At = ago(age)
		}
	}
	held := func(until time.Time) given {
		return func(in *Input) { in.Hold = Hold{Reason: spec.ReasonUsageLimited, Until: until} }
	}
	refused := func(reason string) given {
		return func(in *Input) { in.Desired.Refusal = Verdict{Reason: reason, Message: "two files declare it"} }
	}
	checkTurns(t, []turnRow{
		{name: "its directory is missing", in: of(func(in *Input) {
			in.Workspace.Obstacle, in.Workspace.Message = spec.ReasonWorkspaceMissing, "make /work"
		}), is: notDelivered(spec.ReasonWorkspaceMissing), also: messageHas("make /work", "send it again")},
		{name: "its command is missing: one try", in: of(knownBlock(time.Minute)), is: nil, action: actuate.ActionCreate},
		{name: "and was found missing since", in: of(knownBlock(0)), is: notDelivered(spec.ReasonCommandNotFound), also: messageHas("it is not there")},
		{name: "a try was paid for a moment ago: none is left", in: of(knownBlock(5*time.Second), sentNow, deaths(5, 5*time.Second), boughtAgo(5*time.Second)), is: notDelivered(spec.ReasonCommandNotFound)},
		{name: "it was mended since", in: of(knownBlock(5*time.Second), sentNow, deaths(5, 5*time.Second), boughtAgo(5*time.Second), func(in *Input) { in.Block = ObstacleCleared }), reason: spec.ReasonCrashLoopBackOff, again: 3 * time.Second},
		{name: "two files declare it", in: of(refused(spec.ReasonDuplicateName)), is: notDelivered(spec.ReasonDuplicateName)},
		{name: "its class is not there", in: of(ofSpec(func(s *spec.SessionSpec) { s.ClientClassName = "nobody" })), is: notDelivered(spec.ReasonClassNotFound)},
		{name: "its name is another's", in: of(ofSeen(func(s *Seen) { s.NameHolder = "$9" })), is: notDelivered(spec.ReasonNameConflict)},
		{name: "its conversation is missing, and that is held", in: of(ofClass(claude), has(begun(claude, "c1")), ofSpec(holds), finds(observe.EvidenceAbsent)), is: notDelivered(spec.ReasonConversationMissing)},
		{name: "its record was lost", in: of(ofClass(claude), blocked(spec.ReasonRecordQuarantined)), is: notDelivered(spec.ReasonRecordQuarantined)},
		{name: "it was completed since", in: of(latched(spec.ReasonCompleted), func(in *Input) { in.Record.Latch.At = now }), is: notDelivered(spec.ReasonCompleted)},
		{name: "its credential is held for ever", in: of(held(time.Time{})), is: notDelivered(spec.ReasonUsageLimited)},
		{name: "its credential is held for too long", in: of(held(now.Add(2 * time.Minute))), is: notDelivered(spec.ReasonUsageLimited), also: messageHas("2026-03-01T12:02:00Z")},
		{name: "its credential is held for a moment", in: of(held(now.Add(30 * time.Second))), waits: spec.ReasonUsageLimited, again: pollTurnPending},
		{name: "the next start is too late", in: of(deaths(12, 10*time.Second), boughtAgo(500*time.Millisecond)), is: notDelivered(spec.ReasonCrashLoopBackOff), also: messageHas("2026-03-01T12:04:50Z", "after the turn's deadline")},
		{name: "the next start is in time", in: of(deaths(5, 3*time.Second), boughtAgo(500*time.Millisecond)), waits: spec.ReasonCrashLoopBackOff},
		{name: "there is no place for it yet", in: of(func(in *Input) { in.Grant = GrantNone }), waits: spec.ReasonWaitingForBudget, again: pollTurnPending},
		{name: "no tmux server can be started", in: of(noServer, ofSeen(func(s *Seen) { s.ServerFailure = "no tmux" }), func(in *Input) { in.Turns[0].CreatedAt = ago(4 * time.Second) }), is: notDelivered(spec.ReasonTmuxUnavailable), also: messageHas("no tmux")},
		{name: "at first that may be over soon", in: of(noServer, ofSeen(func(s *Seen) { s.ServerFailure = "no tmux" })), waits: spec.ReasonTmuxServerFailed},
		{name: "tmux has not answered for long", in: of(blind, ofSeen(func(s *Seen) { s.UnknownFor = 5 * time.Second })), is: notDelivered(spec.ReasonTmuxUnavailable), also: messageHas("tmux is mute", "muxlet get")},
		{name: "not since it was sent", in: of(blind, ofSeen(func(s *Seen) { s.UnknownFor = 4500 * time.Millisecond }), func(in *Input) { in.Turns[0].CreatedAt = ago(4 * time.Second) }), is: notDelivered(spec.ReasonTmuxUnavailable)},
		{name: "once", in: of(blind, ofSeen(func(s *Seen) { s.UnknownFor = time.Second }), func(in *Input) { in.Turns[0].CreatedAt = ago(30 * time.Second) }), waits: spec.ReasonTmuxTimeout, again: pollTurn},
		{name: "its deadline has come", in: of(func(in *Input) {
			in.Turns[0].Deadline, in.Waited = now, Verdict{Reason: spec.ReasonNotReady, Message: "pid 7 is not ready"}
		}), is: notDelivered(spec.ReasonDeadlineExceeded), action: actuate.ActionCreate, also: messageHas("pid 7 is not ready", spec.ReasonNotReady, "never delivered")},
		{name: "an initial one has none", in: of(func(in *Input) { in.Turns[0] = pending(1, initial, sentAt(time.Hour)) }), action: actuate.ActionCreate, waits: spec.ReasonStarting},
		{name: "all that wait are answered", in: of(sent(pending(2)), refused(spec.ReasonDuplicateName)), is: append(notDelivered(spec.ReasonDuplicateName), notDelivered(spec.ReasonDuplicateName)...)},
		{name: "each at its own deadline", in: of(sent(pending(2, dueIn(0))), func(in *Input) { in.Grant = GrantNone }), is: append([]string{isPending}, notDelivered(spec.ReasonDeadlineExceeded)...), also: func(t *testing.T, p Plan) {
			require.Contains(t, p.Turns[0].Delivered.Message, "turn shop-1 comes first")
		}},
		{name: "the clock was set back: no deadline grows by that", in: of(func(in *Input) {
			in.Turns[0].CreatedAt, in.Turns[0].Deadline, in.Grant = now.Add(time.Hour), now.Add(time.Hour+time.Minute), GrantNone
		}), is: []string{isPending}, also: func(t *testing.T, p Plan) {
			require.Equal(t, []time.Time{now, now.Add(time.Minute)}, []time.Time{p.Turns[0].CreatedAt, p.Turns[0].Deadline})
		}},
	})
}

// sentNow makes turn 1 one that was sent just now.
func sentNow(in *Input) { in.Turns[0].CreatedAt = now }

func boughtAgo(d time.Duration) given {
	return ofRecord(func(r *record.Record) { r.BackOff.BoughtAt = ago(d) })
}

func TestAPersonsStopEndsWhatIsPending(t *testing.T) {
	two := sent(pending(1, sentAt(time.Minute)), pending(2, sentAt(0)))
	gone := "Over delivered=False(Removed)"
	ofTerminate := func(in *Input) {
		in.Record.Intent = &record.Intent{Kind: record.IntentTerminate, Incarnation: 3, At: ago(time.Second)}
	}
	checkTurns(t, []turnRow{
		{name: "suspended", in: able(two, edited(suspended)), is: append(notDelivered(spec.ReasonSuspended), notDelivered(spec.ReasonSuspended)...), also: messageHas("muxlet resume shop")},
		{name: "suspended while tmux does not answer", in: able(two, edited(suspended), blind), is: append(notDelivered(spec.ReasonSuspended), notDelivered(spec.ReasonSuspended)...)},
		{name: "removed", in: able(two, removed), is: []string{gone, gone}},
		{name: "terminated: what was sent before that", in: able(two, ofTerminate), is: append(notDelivered(spec.ReasonTerminated), isPending), reason: spec.ReasonStopping},
		{name: "restarted: nothing ends", in: able(two, intends(record.IntentRestart, 3)), reason: spec.ReasonStopping},
		{name: "what was sent after the word starts the next one at once", in: down(sent(pending(2, sentAt(0))), ofTerminate), action: actuate.ActionCreate, also: func(t *testing.T, p Plan) {
			require.Nil(t, p.Record.Latch)
			require.Nil(t, p.Record.Intent)
		}},
		{name: "what was sent after the latch wakes it", in: down(sent(pending(2, sentAt(0))), latched(spec.ReasonTerminated)), action: actuate.ActionCreate},
		{name: "what was sent before does not", in: down(sent(pending(1, sentAt(time.Hour))), latched(spec.ReasonTerminated)), is: notDelivered(spec.ReasonTerminated)},
	})
}

func TestWhatTheSweeperDoes(t *testing.T) {
	waits := Verdict{Reason: spec.ReasonClientWorking, Message: "the client works on something"}
	late := pending(1, dueIn(0))
	out, expired := Expire(late, waits, now)
	require.True(t, expired)
	require.Equal(t, "Over delivered=False(DeadlineExceeded) retryable", phrase(out))
	require.Contains(t, out.Delivered.Message, "ClientWorking: the client works on something")
	out, expired = Expire(late, Verdict{}, now)
	require.True(t, expired)
	require.NotContains(t, out.Delivered.Message, "waited")
	for _, goesOn := range []turn.Turn{pending(1), pending(1, initial), delivering(1, spec.SubmitPaste, time.Hour, dueIn(-time.Minute))} {
		out, expired = Expire(goesOn, waits, now)
		require.False(t, expired)
		require.Equal(t, goesOn, out)
	}
	require.Equal(t, "Over delivered=False(TmuxUnavailable) retryable", phrase(Unavailable(pending(1), "tmux is mute", now)))
	under := delivering(1, spec.SubmitPaste, time.Second)
	require.Equal(t, under, Unavailable(under, "tmux is mute", now), "what may have been handed over is not failed")
}

func TestALookIsAskedForWhenItIsOfUse(t *testing.T) {
	require.False(t, WantsHand(able()), "nothing is to be handed over")
	require.True(t, WantsHand(able(sent(pending(1)))))
	require.True(t, WantsHand(able(sent(pending(1)), screen(observe.ComposingOther))), "an older look is forgotten")
	require.False(t, WantsHand(able(sent(pending(1)), acts(spec.ActivityWorking))))
	require.False(t, WantsHand(able(sent(delivered(1, time.Second)))))
	require.True(t, WantsHand(handing(time.Minute, edits(pastedFor(time.Second)), did(1, doneAgo(time.Second)))))
	require.False(t, WantsHand(down(sent(pending(1)))))
}

func TestASessionAtRestWithoutTurnsHasNoPass(t *testing.T) {
	require.Zero(t, decide(t, able()).RequeueAfter)
	require.Zero(t, decide(t, down(ofSpec(onDemand))).RequeueAfter)
	over := delivered(1, time.Minute).Complete(now)
	require.Zero(t, decide(t, able(sent(over))).RequeueAfter)
	require.Positive(t, decide(t, able(sent(pending(1)))).RequeueAfter)
}

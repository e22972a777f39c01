// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/controller/record"
	"github.com/muxlet/muxlet/controller/turn"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec"
)

const (
	isCompleted  = "Over delivered=True(Delivered) completed=True(Completed)"
	isUnreported = "Over delivered=True(Delivered) completed=Unknown(NotReported)"
)

// blind: tmux does not answer.
func blind(in *Input) {
	in.Seen.Sight, in.Seen.Reason, in.Seen.Message = SightUnknown, spec.ReasonTmuxTimeout, "tmux is mute"
}

func TestAClientConfirmsItsTurnItself(t *testing.T) {
	of := func(gs ...given) Input {
		return handing(10*time.Second, edits(pastedFor(9*time.Second), submitted(1, 8*time.Second)), append([]given{did(1, doneAgo(9*time.Second)), screen(observe.ComposingNothing)}, gs...)...)
	}
	unpasted := func(gs ...given) Input {
		return handing(10*time.Second, nil, append([]given{screen(observe.ComposingNothing)}, gs...)...)
	}
	checkTurns(t, []turnRow{
		{name: "its hook tells the prompt", in: of(tells(promptedAgo(time.Second, "d1"))), is: []string{"Delivered"}, also: func(t *testing.T, p Plan) {
			require.Equal(t, ago(time.Second), p.Turns[0].DeliveredAt, "the time is the hook's")
		}},
		{name: "also while tmux does not answer", in: of(tells(promptedAgo(time.Second, "d1")), blind), is: []string{"Delivered"}},
		{name: "another prompt is another's", in: of(tells(promptedAgo(time.Second, "d9"))), is: []string{isDelivering}},
		{name: "the same prompt, before it was handed over", in: of(tells(promptedAgo(11*time.Second, "d1"))), is: []string{isDelivering}},
		{name: "one of several", in: of(tells(promptedAgo(2*time.Second, "d9"), promptedAgo(time.Second, "d1"))), is: []string{"Delivered"}},
		{name: "a hook that does not tell what it was", in: of(tells(promptedAgo(time.Second, ""))), is: []string{"Delivered"}},
		{name: "unless the prompt may never have been pasted", in: unpasted(tells(promptedAgo(time.Second, ""))), is: []string{isDelivering}},
		{name: "an earlier daemon's, and the hook tells", in: unpasted(tells(promptedAgo(time.Second, "d1"))), is: []string{"Delivered"}},
		{name: "another client's report", in: of(tells(promptedAgo(time.Second, "d1")), func(in *Input) { in.Told.Attempt = "a2" }), is: []string{isDelivering}},
		{name: "its files say that it works since", in: of(acts(spec.ActivityWorking, filesWork(7*time.Second))), is: []string{"Delivered"}, also: func(t *testing.T, p Plan) {
			require.Equal(t, ago(7*time.Second), p.Turns[0].DeliveredAt)
		}},
		{name: "that it works since before", in: of(acts(spec.ActivityIdle, filesWork(11*time.Second))), is: []string{isDelivering}},
		{name: "that a turn has ended since", in: of(acts(spec.ActivityIdle, turnEnded(time.Second))), is: []string{isCompleted}},
		{name: "that one has ended before the key", in: of(acts(spec.ActivityIdle, turnEnded(9*time.Second))), is: []string{isDelivering}},
		{name: "of a client that queues the end may be another's", in: of(ofClass(wrapper), acts(spec.ActivityIdle, turnEnded(time.Second))), is: []string{isDelivering}},
		{name: "of a client that queues the work may be another's", in: of(ofClass(wrapper), acts(spec.ActivityWorking, filesWork(7*time.Second)), screen(observe.ComposingUnknown)), is: []string{isDelivering}},
		{name: "what its files say before a key is another's", in: unpasted(acts(spec.ActivityIdle, filesWork(time.Second), turnEnded(time.Second))), is: []string{isDelivering}},
		{name: "a turn that is short is told of at once", in: of(tells(promptedAgo(7*time.Second, "d1"), doneTurn(6*time.Second))), is: []string{isCompleted}},
	})
}

func TestATurnEndsAsItsClientTells(t *testing.T) {
	of := func(age time.Duration, gs ...given) Input {
		return able(append([]given{sent(delivered(1, age))}, gs...)...)
	}
	failed := func(reason string, retryable string) []string {
		return []string{"Over delivered=True(Delivered) completed=False(" + reason + ")" + retryable}
	}
	checkTurns(t, []turnRow{
		{name: "well", in: of(time.Minute, tells(doneTurn(time.Second))), is: []string{isCompleted}, also: func(t *testing.T, p Plan) {
			require.Equal(t, ago(time.Second), p.Turns[0].FinishedAt)
		}},
		{name: "well, while tmux does not answer", in: of(time.Minute, tells(doneTurn(time.Second)), blind), is: []string{isCompleted}},
		{name: "well, before its client died", in: of(time.Minute, tells(doneTurn(time.Second)), exited(1), func(in *Input) { in.Grant = GrantNone }), is: []string{isCompleted}},
		{name: "an end from before it", in: of(time.Minute, acts(spec.ActivityWorking), tells(doneTurn(2*time.Minute))), again: pollTurnWorking},
		{name: "badly, by what all would fail with", in: of(time.Minute, tells(failedTurn(time.Second, "billing_error"))), is: failed(spec.ReasonUsageLimited, "")},
		{name: "badly, by what may be over", in: of(time.Minute, tells(failedTurn(time.Second, "overloaded"))), is: failed(spec.ReasonModelUnavailable, " retryable")},
		{name: "the first end counts", in: of(time.Minute, tells(failedTurn(time.Second, "overloaded"), doneTurn(2*time.Second))), is: []string{isCompleted}},
		{name: "and a failure as well", in: of(time.Minute, tells(failedTurn(2*time.Second, "overloaded"), doneTurn(time.Second))), is: failed(spec.ReasonModelUnavailable, " retryable")},
		{name: "a client that queues ends what it worked on before", in: of(time.Second, ofClass(wrapper), tells(doneTurn(0)), acts(spec.ActivityWorking, turnEnded(0)))},
		{name: "and this one", in: of(time.Minute, ofClass(wrapper), tells(promptedAgo(2*time.Second, "d1"), doneTurn(time.Second))), is: []string{isCompleted}},
		{name: "its files tell", in: of(time.Minute, acts(spec.ActivityIdle, turnEnded(time.Second))), is: []string{isCompleted}},
		{name: "its files tell of a failure", in: of(time.Minute, acts(spec.ActivityIdle, turnEnded(time.Second), fails(time.Second, spec.RetryAgain))), is: failed(spec.ReasonUsageLimited, " retryable")},
		{name: "of an older one", in: of(time.Minute, acts(spec.ActivityIdle, sinceAgo(time.Second), fails(2*time.Minute, spec.RetryAgain))), again: pollTurn},
		{name: "a failure that it still works at", in: of(time.Minute, acts(spec.ActivityWorking, fails(time.Second, spec.RetryAgain)))},
		{name: "it works", in: of(time.Hour, acts(spec.ActivityWorking)), again: pollTurnWorking},
		{name: "it asks", in: of(time.Hour, acts(spec.ActivityAwaitingInput)), again: pollTurnWorking},
		{name: "it is idle since a moment", in: of(time.Hour, acts(spec.ActivityIdle, sinceAgo(9*time.Second))), again: pollTurn},
		{name: "it is idle since ten seconds", in: of(time.Hour, acts(spec.ActivityIdle, sinceAgo(10*time.Second))), is: []string{isUnreported}},
		{name: "it was idle before, too", in: of(9*time.Second, acts(spec.ActivityIdle)), again: pollTurn},
		{name: "and ten seconds after the delivery", in: of(10*time.Second, acts(spec.ActivityIdle)), is: []string{isUnreported}},
		{name: "what it does is not known", in: of(time.Hour, acts(spec.ActivityUnknown, sinceAgo(59*time.Second))), again: pollTurn},
		{name: "for a minute", in: of(time.Hour, acts(spec.ActivityUnknown, sinceAgo(time.Minute))), is: []string{isUnreported}},
		{name: "it was not looked at since", in: of(59*time.Second, acts(spec.ActivityIdle, lookedAt(2*time.Minute)), aged(time.Hour)), again: pollTurn},
		{name: "for a minute", in: of(time.Minute, acts(spec.ActivityIdle, lookedAt(2*time.Minute)), aged(time.Hour)), is: []string{isUnreported}},
		{name: "a new daemon looks first", in: of(time.Hour, func(in *Input) { in.Sight, in.Started = observe.Sight{}, ago(time.Second) }), again: pollTurn},
		{name: "it worked when it was looked at last, ten minutes ago", in: of(time.Hour, acts(spec.ActivityWorking, lookedAt(10*time.Minute)), aged(2*time.Hour)), is: []string{isUnreported}},
	})
}

func TestAClassWithoutReportsTellsByItsScreen(t *testing.T) {
	of := func(age time.Duration, gs ...given) Input {
		return able(append([]given{ofClass(none), sent(delivered(1, age))}, gs...)...)
	}
	checkTurns(t, []turnRow{
		{name: "it was seen to work, and does not", in: of(time.Minute, acts(spec.ActivityIdle, workedAgo(2*time.Second))), is: []string{isCompleted}},
		{name: "since a moment", in: of(time.Minute, acts(spec.ActivityIdle, workedAgo(time.Second))), again: pollTurn},
		{name: "it works", in: of(time.Hour, acts(spec.ActivityWorking)), again: pollTurnWorking},
		{name: "it was seen to work before only", in: of(9*time.Second, acts(spec.ActivityIdle, workedAgo(time.Minute))), again: pollTurn},
		{name: "for ten seconds", in: of(10*time.Second, acts(spec.ActivityIdle, workedAgo(time.Minute))), is: []string{isUnreported}},
		{name: "it never was", in: of(10*time.Second, acts(spec.ActivityIdle)), is: []string{isUnreported}},
		{name: "a new daemon looks first", in: of(time.Hour, func(in *Input) { in.Sight, in.Started = observe.Sight{}, ago(time.Second) }), again: pollTurn},
		{name: "it worked when it was looked at last", in: of(time.Hour, acts(spec.ActivityWorking, lookedAt(10*time.Minute)), aged(2*time.Hour)), is: []string{isUnreported}},
		{name: "one that tells nothing at all", in: of(time.Second, ofClass(plain)), is: []string{isUnreported}},
	})
}

func TestATurnEndsWithItsClient(t *testing.T) {
	calm := func(in *Input) { in.Grant = GrantNone }
	begun := func(edits ...func(*turn.Turn)) given {
		return sent(delivering(1, spec.SubmitPaste, 5*time.Second, edits...))
	}
	key := edits(pastedFor(4*time.Second), submitted(1, time.Second))
	stopped := func(reason record.StopReason, gs ...given) Input {
		return stopping(reason, append([]given{ofClass(claude), has(begunConversation()), termed(time.Second), stopped(exited(0)), calm}, gs...)...)
	}
	terminated := intends(record.IntentTerminate, 3)
	twins := func(in *Input) {
		in.Record.Client, in.Seen.Panes = nil, nil
		in.Seen.Clients = []observe.MarkedProcess{marked(3, 100), marked(2, 101)}
		in.Seen.Client = observe.LivenessUnknown
	}
	lost := func(reason string) string { return "Over delivered=True(Delivered) completed=False(" + reason + ")" }
	checkTurns(t, []turnRow{
		{name: "before a key: nothing was submitted", in: able(begun(), did(1), exited(1), calm), is: []string{"Over delivered=False(ClientDied) retryable"}},
		{name: "after a key: that is not known", in: able(begun(key...), did(1), exited(1), calm), is: []string{"Over delivered=Unknown(ClientDied) completed=Unknown(NotConfirmed)"}},
		{name: "after a key, and it had told", in: able(begun(key...), tells(promptedAgo(time.Millisecond, "d1")), exited(1), calm), is: []string{lost(spec.ReasonClientDied)}},
		{name: "with a turn", in: able(sent(delivered(1, time.Minute)), exited(1), calm), is: []string{lost(spec.ReasonClientDied)}},
		{name: "a refused paste was no hand-over", in: able(begun(), did(1, nothing), exited(1), calm), is: []string{"Pending delivered=False(Pending)"}},
		{name: "not while tmux does not answer", in: able(sent(delivered(1, time.Second)), exited(1), blind)},
		{name: "nor when its record was lost meanwhile", in: able(sent(delivered(1, time.Second)), blind, ofRecord(func(r *record.Record) { r.Client = nil }))},
		{name: "not before its end is accounted for", in: able(sent(delivered(1, time.Second)), gone(0), dead(0, nil, 0)), reason: spec.ReasonDied, action: "Reap"},
		{name: "not while a lost record is followed by an adoption", in: able(sent(delivered(1, time.Second)), ofRecord(func(r *record.Record) { r.Client = nil })), reason: spec.ReasonAdopted},
		{name: "nor while of two clients nobody knows which to keep", in: able(sent(delivered(1, time.Second)), twins), reason: spec.ReasonDuplicateClient},
		{name: "unless that goes on", in: able(sent(delivered(1, staleWindow)), twins), is: []string{isUnreported}, reason: spec.ReasonDuplicateClient},
		{name: "in the hand-over as well", in: able(sent(delivering(1, spec.SubmitPaste, staleWindow)), twins), is: []string{"Over delivered=Unknown(NotConfirmed) completed=Unknown(NotConfirmed)"}, reason: spec.ReasonDuplicateClient},
		{name: "with a server that was lost", in: able(sent(delivered(1, time.Minute)), noServer, gone(time.Second)), is: []string{lost(spec.ReasonClientDied)}},
		{name: "terminated with a turn", in: stopped(record.StopTerminated, terminated, sent(delivered(1, time.Minute))), is: []string{lost(spec.ReasonTerminated)}},
		{name: "terminated in the hand-over", in: stopped(record.StopTerminated, terminated, begun(key...)), is: []string{"Over delivered=Unknown(Terminated) completed=Unknown(NotConfirmed)"}},
		{name: "terminated before a key", in: stopped(record.StopTerminated, terminated, begun()), is: []string{"Over delivered=False(Terminated) retryable"}},
		{name: "suspended with a turn", in: stopped(record.StopSuspended, ofSpec(suspended), sent(delivered(1, time.Minute))), is: []string{lost(spec.ReasonSuspended)}},
		{name: "removed with a turn", in: stopped(record.StopRemoved, removed, noPanes, sent(delivered(1, time.Minute))), is: []string{lost(spec.ReasonRemoved)}},
		{name: "restarted with a turn", in: stopped(record.StopRestarting, intends(record.IntentRestart, 3), sent(delivered(1, time.Minute))), is: []string{lost(spec.ReasonClientDied)}},
		{name: "removed, and the client was left running", in: able(removed, ofSpec(deletion(spec.DeletionOrphan)), sent(delivered(1, time.Minute, func(t *turn.Turn) {}), pending(2))), is: []string{lost(spec.ReasonRemoved), "Over delivered=False(Removed)"}, also: func(t *testing.T, p Plan) {
			require.Equal(t, FateArchive, p.Fate)
		}},
		{name: "crashed between the record and the turn: the latch tells", in: down(ofClass(claude), sent(delivered(1, time.Minute)), latched(spec.ReasonTerminated)), is: []string{lost(spec.ReasonTerminated)}},
	})
}

// begunConversation is what the client of these tests has.
func begunConversation() record.Conversation { return begun(claude, "c1") }

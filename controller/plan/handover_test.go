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

const (
	isPending    = "Pending"
	isDelivering = "Delivering delivered=Unknown(Delivering)"
)

// N1, N2
func TestATurnIsPastedOnlyWhereItIsWelcome(t *testing.T) {
	of := func(gs ...given) Input { return able(append([]given{sent(pending(1))}, gs...)...) }
	empty := screen(observe.ComposingNothing)
	begun := func(t *testing.T, p Plan) {
		got := p.Turns[0]
		require.Equal(t, pending(1).Begin(now, spec.SubmitPaste, 3, "a3", "c1"), got, "the mark is on disk before anything is pasted")
		require.Equal(t, "%3", p.Action.Pane.PaneID)
		require.Equal(t, server, p.Action.Server)
		require.Equal(t, actuate.Turn{Name: "shop-1", PromptFile: "/state/turns/u/1.prompt", Step: "shop-1/0", Cursor: &observe.Cursor{X: 3, Y: 4}, Continues: `\\\z`}, p.Action.Turn)
	}
	checkTurns(t, []turnRow{
		{name: "first the screen is looked at", in: of(), looks: true, reason: spec.ReasonReady, waits: spec.ReasonPending, again: pollSlow},
		{name: "an empty input line takes it", in: of(empty), is: []string{isDelivering}, action: actuate.ActionPaste, reason: spec.ReasonReady, again: soon, also: begun},
		{name: "a person's words stand in it", in: of(screen(observe.ComposingOther)), waits: spec.ReasonComposerInUse, again: pollTurn},
		{name: "the same words stand in it already", in: of(screen(observe.ComposingPrompt)), waits: spec.ReasonComposerInUse},
		{name: "it is not on the screen", in: of(screen(observe.ComposingUnknown)), waits: spec.ReasonComposerInUse},
		{name: "a class that does not say where it is", in: of(ofClass(plain), screen(observe.ComposingUnknown)), is: []string{isDelivering}, action: actuate.ActionPaste},
		{name: "the screen asks something", in: of(screen(observe.ComposingNothing, handAsks)), waits: spec.ReasonPermissionRequired},
		{name: "the screen shows work", in: of(screen(observe.ComposingNothing, handWorks)), waits: spec.ReasonClientWorking},
		{name: "the client works", in: of(empty, acts(spec.ActivityWorking)), waits: spec.ReasonClientWorking, again: pollTurn},
		{name: "a client that queues turns works", in: of(ofClass(wrapper), empty, acts(spec.ActivityWorking)), is: []string{isDelivering}, action: actuate.ActionPaste},
		{name: "a question waits", in: of(empty, shows(asks)), waits: spec.ReasonTrustRequired, reason: spec.ReasonTrustRequired, again: pollTurnPending},
		{name: "it is not ready", in: of(empty, ofRecord(func(r *record.Record) { r.Client.ReadyAt, r.Client.StartedAt = time.Time{}, ago(time.Second) }), acts("", notReady)), waits: spec.ReasonNotReady},
		{name: "its pane is dead and it is not known whether it runs", in: of(empty, dead(0, nil, 0), ofSeen(func(s *Seen) { s.Client = observe.LivenessUnknown })), reason: spec.ReasonProcessUnknown},
		{name: "its pane is another's", in: of(empty, shellBelow, taken(0)), is: []string{isPending}, also: func(t *testing.T, p Plan) { require.NotEqual(t, actuate.ActionPaste, p.Action.Kind) }},
		{name: "tmux does not answer", in: of(empty, ofSeen(func(s *Seen) { s.Sight, s.Reason, s.Message = SightUnknown, spec.ReasonTmuxTimeout, "mute" })), reason: spec.ReasonTmuxTimeout, waits: spec.ReasonTmuxTimeout, again: pollTurn},
		{name: "its class is not in force", in: of(empty, ofSpec(strategy(spec.UpdateOnRestart)), ofRecord(func(r *record.Record) { r.Client.Launched.ClientClassName = "other" })), waits: spec.ReasonUpdatePending},
		{name: "its client is being ended", in: stopping(record.StopRestarting, ofClass(claude), sent(pending(1)), empty, termed(time.Second)), waits: spec.ReasonStopping},
		{name: "an animated screen has moved the cursor twice", in: of(empty, did(1, moved(2))), is: []string{isDelivering}, action: actuate.ActionPaste, also: begun},
		{name: "and three times", in: of(empty, did(1, moved(3))), is: []string{isDelivering}, action: actuate.ActionPaste, also: func(t *testing.T, p Plan) {
			require.Nil(t, p.Action.Turn.Cursor)
		}},
		{name: "another turn's refusals do not count", in: of(empty, did(9, moved(3))), is: []string{isDelivering}, action: actuate.ActionPaste, also: begun},
	})
}

func TestTurnsComeOneAtATimeAndInOrder(t *testing.T) {
	empty := screen(observe.ComposingNothing)
	checkTurns(t, []turnRow{
		{name: "the first of two", in: able(sent(pending(1), pending(2)), empty), is: []string{isDelivering, isPending}, action: actuate.ActionPaste, waits: spec.ReasonQueued},
		{name: "while one is handed over", in: able(sent(delivering(1, spec.SubmitPaste, time.Second, pastedFor(0)), pending(2)), empty, did(1, doneAgo(0))), is: []string{isDelivering, isPending}, waits: spec.ReasonQueued},
		{name: "when the one before it is over at once", in: able(ofClass(plain), sent(delivering(1, spec.SubmitPaste, 2*time.Second, pastedFor(2*time.Second), submitted(1, time.Second)), pending(2)), screen(observe.ComposingUnknown), did(1, doneAgo(2*time.Second))),
			is: []string{"Over delivered=True(Delivered) completed=Unknown(NotReported)", isPending}, waits: spec.ReasonPending},
		{name: "while the client has one", in: able(sent(delivered(1, time.Second), pending(2)), empty), waits: spec.ReasonQueued, reason: spec.ReasonReady, again: pollTurn},
		{name: "the one before it has just ended: what was looked at was about that", in: able(sent(delivered(1, time.Second), pending(2)), empty, tells(doneTurn(0))), is: []string{"Over delivered=True(Delivered) completed=True(Completed)", isPending}, waits: spec.ReasonPending, again: soon},
	})
}

func TestAQueueIsUsedInAConversationThatHasBegun(t *testing.T) {
	of := func(gs ...given) Input {
		return able(append([]given{ofClass(codex), has(begun(codex, "c1")), sent(pending(1))}, gs...)...)
	}
	queued := func(edits ...func(*turn.Turn)) given {
		return func(in *Input) { in.Turns = []turn.Turn{delivering(1, spec.SubmitQueue, 10*time.Second, edits...)} }
	}
	checkTurns(t, []turnRow{
		{name: "it is given to the queue, without a look", in: of(), is: []string{isDelivering}, action: actuate.ActionQueue, again: soon, also: func(t *testing.T, p Plan) {
			a := p.Action.Turn
			require.Equal(t, codex.Spec.Submit.Command, a.Command)
			require.Equal(t, "c1", a.Variables[spec.VarConversationID])
			require.Equal(t, "hook", a.Variables[spec.VarHook])
			require.Equal(t, process(100), a.Client)
			require.Equal(t, "/state/turns/u/1.prompt", a.PromptFile)
		}},
		{name: "one that has not begun is pasted to", in: of(has(begun(codex, "c1"), neverBegun), finds(observe.EvidenceUnknown)), looks: true},
		{name: "one that is not known as well", in: of(ofRecord(func(r *record.Record) { r.Conversation = nil })), looks: true},
		{name: "not while it works", in: of(acts(spec.ActivityWorking)), waits: spec.ReasonClientWorking},
		{name: "the command has done it", in: of(queued(), did(1, doneAgo(9*time.Second))), is: []string{isDelivering}, also: func(t *testing.T, p Plan) {
			require.Equal(t, ago(9*time.Second), p.Turns[0].PastedAt)
		}},
		{name: "it could not be executed", in: of(queued(), did(1, nothing)), is: []string{"Pending delivered=False(Pending)"}},
		{name: "it has failed: it may be in the queue", in: of(queued(), did(1)), again: pollTurn},
		{name: "and nothing tells of it", in: of(queued(func(t *turn.Turn) { t.HandedAt = ago(30 * time.Second) }), did(1)), is: []string{"Over delivered=Unknown(NotConfirmed) completed=Unknown(NotConfirmed)"}},
		{name: "the daemon was restarted", in: of(queued(func(t *turn.Turn) { t.HandedAt = ago(30 * time.Second) })), is: []string{"Over delivered=Unknown(Interrupted) completed=Unknown(NotConfirmed)"}},
		{name: "its client tells", in: of(queued(), did(1, doneAgo(9*time.Second)), tells(promptedAgo(time.Second, "d1"))), is: []string{"Delivered"}},
		{name: "it works: on what stood in its queue before", in: of(queued(), did(1, doneAgo(9*time.Second)), acts(spec.ActivityWorking, filesWork(time.Second))), is: []string{isDelivering}},
		{name: "and tells of that, without what it was", in: of(queued(), did(1, doneAgo(9*time.Second)), tells(promptedAgo(time.Second, ""))), is: []string{isDelivering}},
		{name: "its client ends: it is in a queue that outlives it", in: of(queued(), exited(1), did(1, doneAgo(9*time.Second)), func(in *Input) { in.Grant = GrantNone }), is: []string{"Over delivered=Unknown(ClientDied) completed=Unknown(NotConfirmed)"}},
	})
}

func TestAnArgumentIsGivenAtAStartOnly(t *testing.T) {
	live := func(gs ...given) Input {
		return up(append([]given{ofClass(arguer), readyFor(time.Minute), acts(spec.ActivityIdle), sent(pending(1))}, gs...)...)
	}
	with := pending(1).Begin(ago(time.Second), spec.SubmitArgument, 4, "a4", "")
	launched := func(gs ...given) Input {
		return starting(append([]given{ofClass(arguer), sent(with), ofRecord(func(r *record.Record) { r.Attempt.Turn = "shop-1" })}, gs...)...)
	}
	another := func(in *Input) { in.New.ID = "a5" }
	running := func(gs ...given) Input {
		return live(append([]given{func(in *Input) {
			in.Turns = []turn.Turn{delivering(1, spec.SubmitArgument, 10*time.Second, pastedFor(9*time.Second))}
		}}, gs...)...)
	}
	checkTurns(t, []turnRow{
		{name: "a client that is idle is ended for it", in: live(), is: []string{isPending}, reason: spec.ReasonStopping, waits: spec.ReasonStarting, also: func(t *testing.T, p Plan) {
			require.Equal(t, record.StopForTurn, p.Record.Stop.Reason)
		}},
		{name: "one that works is not", in: live(acts(spec.ActivityWorking)), waits: spec.ReasonClientWorking},
		{name: "one of which that is not known is not", in: live(acts(spec.ActivityUnknown)), waits: spec.ReasonClientWorking},
		{name: "the next one begins with it", in: down(ofClass(arguer), sent(pending(1))), is: []string{isDelivering}, action: actuate.ActionCreate, also: func(t *testing.T, p Plan) {
			a := p.Record.Attempt
			require.Equal(t, []any{"shop-1", "/state/turns/u/1.prompt", []string{"$(PROMPT)"}}, []any{a.Turn, a.Order.PromptFile, a.Order.PromptArgs})
			require.Equal(t, []any{"a4", int64(4), spec.SubmitArgument}, []any{p.Turns[0].Attempt, p.Turns[0].Incarnation, p.Turns[0].Method})
		}},
		{name: "other classes' clients begin without", in: down(ofClass(none), sent(pending(1))), action: actuate.ActionCreate, also: func(t *testing.T, p Plan) {
			require.Empty(t, p.Record.Attempt.Turn)
			require.Empty(t, p.Record.Attempt.Order.PromptFile)
		}},
		{name: "while it starts nothing is known", in: launched(), again: pollReceipt},
		{name: "its launcher has failed", in: launched(failed(spec.ReasonExecFailed), func(in *Input) { in.Grant = GrantNone }), is: []string{"Pending delivered=False(Starting)"}},
		{name: "the next client does not begin without it", in: launched(failed(spec.ReasonExecFailed), another), is: []string{"Pending delivered=False(Starting)"}, reason: spec.ReasonStarting, again: soon, also: func(t *testing.T, p Plan) {
			require.Nil(t, p.Record.Attempt)
		}},
		{name: "a session that rests is woken by it again", in: launched(failed(spec.ReasonExecFailed), another, ofSpec(onDemand)), is: []string{"Pending delivered=False(Starting)"}, again: soon},
		{name: "it was executed: a class that reports tells", in: launched(receipt(observe.StageExec, time.Second), seesClient(marked(4, 200))), reason: spec.ReasonStarted, also: func(t *testing.T, p Plan) {
			require.Equal(t, ago(time.Second), p.Turns[0].PastedAt)
			require.False(t, p.Record.Client.InitialDue, "its conversation has had its first turn")
		}},
		{name: "its client has told", in: running(tells(promptedAgo(8*time.Second, "d1"))), is: []string{"Delivered"}},
		{name: "or it has not for too long", in: running(func(in *Input) { in.Turns[0].HandedAt, in.Turns[0].PastedAt = ago(time.Minute), ago(time.Minute) }), is: []string{"Over delivered=Unknown(NotConfirmed) completed=Unknown(NotConfirmed)"}},
		{name: "its client has ended without a word", in: running(exited(1), func(in *Input) { in.Grant = GrantNone }), is: []string{"Over delivered=Unknown(ClientDied) completed=Unknown(NotConfirmed)"}},
	})
	t.Run("a class that tells nothing has it once it was executed", func(t *testing.T) {
		mute := arguer
		mute.Spec = arguer.Spec.DeepCopy()
		mute.Spec.Reports = spec.ReportsNone
		p := decide(t, launched(ofClass(mute), receipt(observe.StageExec, time.Second), seesClient(marked(4, 200))))
		require.Equal(t, []string{"Over delivered=True(Delivered) completed=Unknown(NotReported)"}, phrases(p.Turns))
	})
}

// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/actuate"
	"github.com/muxlet/muxlet/controller/turn"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec"
)

// handing is a session whose client is being given turn 1 by a paste, begun that long
// ago.
func handing(age time.Duration, edits []func(*turn.Turn), gs ...given) Input {
	return able(append([]given{sent(delivering(1, spec.SubmitPaste, age, edits...))}, gs...)...)
}

func edits(edits ...func(*turn.Turn)) []func(*turn.Turn) { return edits }

const (
	isInterrupted  = "Over delivered=Unknown(Interrupted) completed=Unknown(NotConfirmed)"
	isNotSubmitted = "Over delivered=Unknown(NotSubmitted) completed=Unknown(NotConfirmed)"
	isNotConfirmed = "Over delivered=Unknown(NotConfirmed) completed=Unknown(NotConfirmed)"
)

// N3: the prompt is pasted once, whatever comes of it.
func TestAPasteIsNeverRepeated(t *testing.T) {
	one := time.Second
	checkTurns(t, []turnRow{
		{name: "tmux has told that it was done", in: handing(one, nil, did(1, doneAgo(100*time.Millisecond))), is: []string{isDelivering}, again: 200 * time.Millisecond, also: func(t *testing.T, p Plan) {
			require.Equal(t, ago(100*time.Millisecond), p.Turns[0].PastedAt)
		}},
		{name: "it was refused since the client had died: it wakes a session that rests", in: handing(one, nil, did(1, nothing), ofSpec(onDemand), exited(1)), is: []string{"Pending delivered=False(Pending)"}, reason: spec.ReasonDormant, again: soon},
		{name: "it was refused: nothing was handed over", in: handing(one, nil, did(1, nothing)), is: []string{"Pending delivered=False(Pending)"}, waits: spec.ReasonPending, again: pollTurn, also: func(t *testing.T, p Plan) {
			require.Empty(t, p.Turns[0].Attempt)
			require.Equal(t, "the pane is dead", p.Turns[0].Delivered.Message)
		}},
		{name: "its prompt is gone: it never can be", in: handing(one, nil, did(1, nothing, func(h *HandOver) { h.Reason = spec.ReasonPromptLost })), is: []string{"Over delivered=False(PromptLost) retryable"}, again: pollTurn},
		{name: "it was refused because of the cursor: at once again", in: handing(one, nil, did(1, nothing, moved(1))), is: []string{"Pending delivered=False(Pending)"}, again: soon},
		{name: "whether it was done is not known: the screen is looked at", in: handing(one, nil, did(1)), looks: true, again: pollTurn},
		{name: "it stands there", in: handing(one, nil, did(1), screen(observe.ComposingPrompt)), is: []string{isDelivering}, again: soon, also: func(t *testing.T, p Plan) {
			require.Equal(t, now, p.Turns[0].PastedAt)
		}},
		{name: "nothing stands there: that proves nothing", in: handing(one, nil, did(1), screen(observe.ComposingNothing)), again: pollTurn},
		{name: "something else does", in: handing(29*time.Second, nil, did(1), screen(observe.ComposingOther)), again: pollTurn},
		{name: "an earlier daemon has begun it, and it stands there", in: handing(one, nil, screen(observe.ComposingPrompt)), is: []string{isDelivering}, again: soon},
		{name: "an earlier daemon has begun it, and its pane says that it was pasted", in: handing(one, nil, screen(observe.ComposingUnknown, stepped("shop-1/0"))), is: []string{isDelivering}, again: soon},
		{name: "an earlier daemon has begun it, and it does not", in: handing(one, nil, screen(observe.ComposingNothing)), again: pollTurn},
		{name: "what was done for another turn tells nothing", in: handing(one, nil, did(9, doneAgo(0)), screen(observe.ComposingNothing)), again: pollTurn},
		{name: "an earlier hand-over of the same turn tells nothing", in: handing(one, nil, did(1, doneAgo(time.Minute)), screen(observe.ComposingNothing)), again: pollTurn},
		{name: "and nobody tells", in: handing(30*time.Second, nil, screen(observe.ComposingNothing)), is: []string{isInterrupted}},
		{name: "a new daemon waits as long", in: handing(time.Hour, nil, screen(observe.ComposingNothing), func(in *Input) { in.Started = ago(29 * time.Second) }), again: pollTurn},
		{name: "a class that tells nothing: its pane is asked", in: handing(one, nil, ofClass(plain)), looks: true, again: pollSlow},
		{name: "and says nothing: nobody will ever know", in: handing(one, nil, ofClass(plain), screen(observe.ComposingUnknown)), is: []string{isInterrupted}},
		{name: "also when the key was pressed", in: handing(one, edits(pastedFor(one), submitted(1, one)), ofClass(plain), screen(observe.ComposingUnknown), started(0)), is: []string{isInterrupted}},
	})
}

// Of a class whose screen alone tells, and that shows its input line, a new daemon goes
// on where the prompt still stands: left there it would be in the way of each turn that
// follows.
func TestAnInterruptedHandOverGoesOnWhereThePromptStands(t *testing.T) {
	of := func(steps []func(*turn.Turn), gs ...given) Input {
		mute := Class{Name: "mute", Spec: &spec.ClientClassSpec{Submit: spec.ClassSubmit{Confirm: spec.ConfirmScreen, Composer: spec.ClassComposer{Pattern: "> (?P<text>.*)"}}}}
		return handing(10*time.Second, steps, append([]given{ofClass(mute), started(time.Second)}, gs...)...)
	}
	pressed := edits(pastedFor(9*time.Second), submitted(1, 8*time.Second))
	prompt, none := screen(observe.ComposingPrompt), screen(observe.ComposingNothing)
	checkTurns(t, []turnRow{
		{name: "it is looked for", in: of(nil), looks: true, again: pollSlow},
		{name: "it stands there", in: of(nil, prompt), is: []string{isDelivering}, again: soon, also: func(t *testing.T, p Plan) {
			require.Equal(t, now, p.Turns[0].PastedAt)
		}},
		{name: "then it has its time to settle", in: of(edits(pastedFor(200*time.Millisecond)), prompt), again: 100 * time.Millisecond},
		{name: "and is submitted", in: of(edits(pastedFor(900*time.Millisecond)), prompt), is: []string{isDelivering}, action: actuate.ActionSubmit, again: soon},
		{name: "a key that did nothing is repeated", in: of(edits(pastedFor(900*time.Millisecond), submitted(1, 8*time.Second)), prompt), is: []string{isDelivering}, action: actuate.ActionSubmit, again: soon},
		{name: "not on a dialog", in: of(edits(pastedFor(900*time.Millisecond)), screen(observe.ComposingPrompt, handAsks)), again: pollSlow},
		{name: "it does not stand there", in: of(nil, none), is: []string{isInterrupted}},
		{name: "nor after a key", in: of(pressed, none), is: []string{isInterrupted}},
		{name: "its pane says that it was pasted", in: of(nil, screen(observe.ComposingUnknown, stepped("shop-1/0"))), is: []string{isDelivering}, again: soon, also: func(t *testing.T, p Plan) {
			require.Equal(t, now, p.Turns[0].PastedAt)
		}},
		{name: "and that the key was not typed", in: of(pressed, screen(observe.ComposingUnknown, stepped("shop-1/0"))), is: []string{isDelivering}, again: soon, also: func(t *testing.T, p Plan) {
			require.Equal(t, []any{now, 1, ago(8 * time.Second)}, []any{p.Turns[0].PastedAt, p.Turns[0].Submits, p.Turns[0].SubmittedAt})
		}},
		{name: "then it is typed in its place", in: of(edits(pastedFor(900*time.Millisecond), submitted(1, 8*time.Second)), ofClass(plain), screen(observe.ComposingUnknown, stepped("shop-1/0"))), action: actuate.ActionSubmit, again: soon, also: func(t *testing.T, p Plan) {
			require.Empty(t, p.Turns, "it is counted already")
			require.Equal(t, "shop-1/1", p.Action.Turn.Step)
		}},
		{name: "or that it was: the screen tells", in: of(pressed, screen(observe.ComposingUnknown, stepped("shop-1/1"))), is: []string{isDelivering}, again: soon, also: func(t *testing.T, p Plan) {
			require.Equal(t, []any{now, 1, now}, []any{p.Turns[0].PastedAt, p.Turns[0].Submits, p.Turns[0].SubmittedAt})
		}},
		{name: "it says that of another turn", in: of(nil, screen(observe.ComposingUnknown, stepped("shop-11/0"))), is: []string{isInterrupted}},
		{name: "a class that does not say where its input line is", in: of(nil, ofClass(plain), screen(observe.ComposingUnknown, stepped("shop-1/0"))), is: []string{isDelivering}, again: soon},
		{name: "what was submitted by this daemon is judged as ever", in: of(edits(pastedFor(900*time.Millisecond), submitted(1, 500*time.Millisecond)), none), is: []string{"Over delivered=True(Delivered) completed=Unknown(NotReported)"}, again: 0},
	})
}

func TestASubmitKeyIsPressedWhereThePromptStands(t *testing.T) {
	of := func(settled time.Duration, gs ...given) Input {
		return handing(settled+time.Second, edits(pastedFor(settled)), append([]given{did(1, doneAgo(settled))}, gs...)...)
	}
	pressed := func(t *testing.T, p Plan) {
		got := p.Turns[0]
		require.Equal(t, []any{1, now, "after"}, []any{got.Submits, got.SubmittedAt, got.Before})
		require.Equal(t, []string{"Enter"}, p.Action.Keys)
		require.Equal(t, "%3", p.Action.Pane.PaneID)
		require.Equal(t, &observe.Cursor{X: 3, Y: 4}, p.Action.Turn.Cursor)
	}
	prompt := screen(observe.ComposingPrompt)
	checkTurns(t, []turnRow{
		{name: "not before the client has had its time", in: of(200*time.Millisecond, prompt), again: 100 * time.Millisecond},
		{name: "then the screen is looked at", in: of(time.Second), looks: true, again: pollReceipt},
		{name: "an older look does not count", in: of(400*time.Millisecond, screen(observe.ComposingPrompt, func(h *observe.Hand) { h.At = ago(200 * time.Millisecond) })), looks: true},
		{name: "it stands there", in: of(300*time.Millisecond, prompt), is: []string{isDelivering}, action: actuate.ActionSubmit, again: soon, also: pressed},
		{name: "nothing stands there", in: of(time.Second, screen(observe.ComposingNothing)), again: pollSlow},
		{name: "something else does", in: of(time.Second, screen(observe.ComposingOther))},
		{name: "the input line is not to be seen", in: of(time.Second, screen(observe.ComposingUnknown))},
		{name: "a class that does not say where it is", in: of(time.Second, ofClass(plain), screen(observe.ComposingUnknown)), is: []string{isDelivering}, action: actuate.ActionSubmit, also: pressed},
		{name: "the screen asks something: Enter would answer it", in: of(time.Second, screen(observe.ComposingPrompt, handAsks))},
		{name: "a question waits", in: of(time.Second, prompt, shows(asks)), reason: spec.ReasonTrustRequired, again: pollTurn},
		{name: "the client has begun to work", in: of(time.Second, screen(observe.ComposingPrompt, handWorks))},
		{name: "a client that queues may work", in: of(time.Second, ofClass(wrapper), screen(observe.ComposingPrompt, handWorks)), is: []string{isDelivering}, action: actuate.ActionSubmit, also: pressed},
		{name: "it never could be pressed", in: of(30*time.Second, screen(observe.ComposingPrompt, handAsks)), is: []string{isNotSubmitted}},
		{name: "an earlier daemon has pasted it", in: handing(2*time.Second, edits(pastedFor(time.Second)), prompt), is: []string{isDelivering}, action: actuate.ActionSubmit, also: pressed},
		{name: "after three refusals the cursor is not asked", in: of(time.Second, prompt, did(1, doneAgo(time.Second), moved(3))), is: []string{isDelivering}, action: actuate.ActionSubmit, also: func(t *testing.T, p Plan) {
			require.Nil(t, p.Action.Turn.Cursor)
		}},
		{name: "a class has another key", in: of(time.Second, ofClass(Class{Name: "other", Spec: &spec.ClientClassSpec{Submit: spec.ClassSubmit{Key: "C-d"}}}), screen(observe.ComposingUnknown)), is: []string{isDelivering}, action: actuate.ActionSubmit, also: func(t *testing.T, p Plan) {
			require.Equal(t, []string{"C-d"}, p.Action.Keys)
		}},
	})
}

func TestTheKeyIsRepeatedWhileThePromptStandsThere(t *testing.T) {
	of := func(n int, age time.Duration, gs ...given) Input {
		return handing(time.Minute, edits(pastedFor(50*time.Second), submitted(n, age)), append([]given{did(1, doneAgo(50*time.Second))}, gs...)...)
	}
	prompt := screen(observe.ComposingPrompt)
	checkTurns(t, []turnRow{
		{name: "it takes its time", in: of(1, 2*time.Second, prompt), again: 500 * time.Millisecond},
		{name: "the screen is looked at", in: of(1, 3*time.Second), looks: true, again: pollReceipt},
		{name: "it was swallowed", in: of(1, 3*time.Second, prompt), is: []string{isDelivering}, action: actuate.ActionSubmit, also: func(t *testing.T, p Plan) {
			require.Equal(t, []any{2, now, "before"}, []any{p.Turns[0].Submits, p.Turns[0].SubmittedAt, p.Turns[0].Before})
		}},
		{name: "twice", in: of(2, 3*time.Second, prompt), is: []string{isDelivering}, action: actuate.ActionSubmit},
		{name: "three times are enough", in: of(3, 20*time.Second, prompt)},
		{name: "and it ends", in: of(3, 30*time.Second, prompt), is: []string{isNotSubmitted}, also: func(t *testing.T, p Plan) {
			require.Contains(t, p.Turns[0].Delivered.Message, "3 keys")
		}},
		{name: "it ends without a look as well", in: of(1, 30*time.Second), is: []string{isNotConfirmed}, looks: true},
		{name: "nothing stands there any more, and nobody tells", in: of(1, 29*time.Second, screen(observe.ComposingNothing))},
		{name: "for too long", in: of(1, 30*time.Second, screen(observe.ComposingNothing)), is: []string{isNotConfirmed}},
		{name: "no key where the input line is not to be seen", in: of(1, 5*time.Second, screen(observe.ComposingUnknown))},
		{name: "nor on a question", in: of(1, 5*time.Second, screen(observe.ComposingPrompt, handAsks))},
		{name: "one that was not typed is typed in its place", in: of(2, time.Second, prompt, did(1, doneAgo(time.Minute), untyped)), is: []string{isDelivering}, action: actuate.ActionSubmit, also: func(t *testing.T, p Plan) {
			require.Empty(t, p.Turns, "it is counted already")
		}},
		{name: "but not when it is too late", in: of(2, 30*time.Second, prompt, did(1, doneAgo(time.Minute), untyped)), is: []string{isNotSubmitted}},
		{name: "a command has left the input line: no report tells of one", in: of(1, time.Second, screen(observe.ComposingNothing, func(h *observe.Hand) { h.Command = true })), is: []string{"Delivered"}},
		{name: "not while it stands there", in: of(1, time.Second, screen(observe.ComposingPrompt, func(h *observe.Hand) { h.Command = true }))},
		{name: "but not where nothing stands", in: of(1, time.Second, screen(observe.ComposingNothing, handWorks), did(1, doneAgo(time.Minute), untyped))},
		{name: "while a client that queues works it is awaited", in: of(1, time.Hour, ofClass(wrapper), acts(spec.ActivityWorking), screen(observe.ComposingUnknown), func(in *Input) { in.Turns[0].HandedAt, in.Turns[0].PastedAt = ago(2*time.Hour), ago(2*time.Hour) })},
	})
}

func TestAScreenConfirmsWhatItCan(t *testing.T) {
	of := func(c Class, age time.Duration, gs ...given) Input {
		return handing(time.Minute, edits(pastedFor(50*time.Second), submitted(1, age)), append([]given{ofClass(c), did(1, doneAgo(50*time.Second))}, gs...)...)
	}
	checkTurns(t, []turnRow{
		{name: "the screen has changed", in: of(none, time.Second, screen(observe.ComposingUnknown)), is: []string{"Delivered"}, reason: spec.ReasonRunning},
		{name: "of a class that tells no end that is all", in: of(plain, time.Second, screen(observe.ComposingUnknown)), is: []string{"Over delivered=True(Delivered) completed=Unknown(NotReported)"}},
		{name: "it has not", in: of(plain, time.Second, screen(observe.ComposingUnknown, digest("before"))), again: 250 * time.Millisecond},
		{name: "for five seconds", in: of(plain, 5*time.Second, screen(observe.ComposingUnknown, digest("before"))), is: []string{isNotConfirmed}},
		{name: "a look from before the key does not count", in: of(plain, 0, screen(observe.ComposingUnknown)), looks: true},
		{name: "hooks that never tell: it has left the input line and the client works", in: of(claude, time.Second, screen(observe.ComposingNothing, handWorks)), is: []string{"Delivered"}},
		{name: "by what was seen before as well", in: of(claude, time.Second, screen(observe.ComposingNothing), acts(spec.ActivityWorking)), is: []string{"Delivered"}},
		{name: "a client that queues has it in its queue", in: of(wrapper, time.Second, screen(observe.ComposingNothing, handWorks)), is: []string{"Delivered"}},
		{name: "it has left the input line, and that is all", in: of(claude, time.Second, screen(observe.ComposingNothing))},
		{name: "it stands there, and the client works", in: of(claude, time.Second, screen(observe.ComposingPrompt, handWorks))},
		{name: "the input line is not to be seen", in: of(claude, time.Second, screen(observe.ComposingUnknown, handWorks))},
	})
}

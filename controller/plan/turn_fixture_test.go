// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/actuate"
	"github.com/muxlet/muxlet/controller/turn"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec"
)

// pending is turn n of the session, sent a second ago, with a minute to go.
func pending(n int64, edits ...func(*turn.Turn)) turn.Turn {
	t := turn.Turn{
		Name: fmt.Sprintf("shop-%d", n), Session: "shop", SessionUID: uid, Number: n, CreatedAt: ago(time.Second), Deadline: now.Add(time.Minute),
		Bytes: 5, Lines: 1, Digest: fmt.Sprintf("d%d", n), Phase: turn.Pending, Revision: 1,
	}
	for _, edit := range edits {
		edit(&t)
	}
	return t
}

// delivering is turn n, whose hand-over to the client of attempt a3 began that long ago.
func delivering(n int64, method spec.SubmitMethod, age time.Duration, edits ...func(*turn.Turn)) turn.Turn {
	t := pending(n, sentAt(age+time.Second)).Begin(ago(age), method, 3, "a3", "c1")
	for _, edit := range edits {
		edit(&t)
	}
	return t
}

// delivered is turn n, which the client of attempt a3 has had for that long.
func delivered(n int64, age time.Duration, edits ...func(*turn.Turn)) turn.Turn {
	t := delivering(n, spec.SubmitPaste, age+time.Second, pastedFor(age+time.Second), submitted(1, age)).Deliver(ago(age), "told")
	for _, edit := range edits {
		edit(&t)
	}
	return t
}

func sentAt(age time.Duration) func(*turn.Turn) {
	return func(t *turn.Turn) { t.CreatedAt = ago(age) }
}

func initial(t *turn.Turn) { t.Initial, t.Deadline = true, time.Time{} }

func dueIn(d time.Duration) func(*turn.Turn) {
	return func(t *turn.Turn) { t.Deadline = now.Add(d) }
}

func pastedFor(d time.Duration) func(*turn.Turn) {
	return func(t *turn.Turn) { t.PastedAt = ago(d) }
}

// submitted: n keys were asked for, the last that long ago.
func submitted(n int, age time.Duration) func(*turn.Turn) {
	return func(t *turn.Turn) { t.Submits, t.SubmittedAt, t.Before = n, ago(age), "before" }
}

func sent(turns ...turn.Turn) given {
	return func(in *Input) { in.Turns, in.PromptFile = append(in.Turns, turns...), "/state/turns/u/1.prompt" }
}

// screen is a look at the screen that was made now.
func screen(c observe.Composing, edits ...func(*observe.Hand)) given {
	return func(in *Input) {
		in.Hand = observe.Hand{At: now, Composing: c, Cursor: observe.Cursor{X: 3, Y: 4}, Digest: "after"}
		for _, edit := range edits {
			edit(&in.Hand)
		}
	}
}

func digest(d string) func(*observe.Hand)  { return func(h *observe.Hand) { h.Digest = d } }
func stepped(s string) func(*observe.Hand) { return func(h *observe.Hand) { h.Step = s } }
func handWorks(h *observe.Hand)            { h.Working = true }
func handAsks(h *observe.Hand)             { h.Attention = observe.AttentionFor(spec.ReasonPermissionRequired) }

// did is what this daemon knows of its last act for turn n.
func did(n int64, edits ...func(*HandOver)) given {
	return func(in *Input) {
		in.HandOver = HandOver{Turn: fmt.Sprintf("shop-%d", n)}
		for _, edit := range edits {
			edit(&in.HandOver)
		}
	}
}

// started: the daemon was, that long ago.
func started(ago time.Duration) given {
	return func(in *Input) { in.Started = in.Now.Add(-ago) }
}

func doneAgo(d time.Duration) func(*HandOver) { return func(h *HandOver) { h.DoneAt = ago(d) } }
func nothing(h *HandOver) {
	h.Nothing, h.Reason, h.Message = true, spec.ReasonPending, "the pane is dead"
}
func moved(n int) func(*HandOver) { return func(h *HandOver) { h.Moved = n } }
func untyped(h *HandOver)         { h.Untyped = true }

// tells is what the reports of the client of attempt a3 say.
func tells(edits ...func(*observe.Told)) given {
	return func(in *Input) {
		in.Told.Attempt = "a3"
		for _, edit := range edits {
			edit(&in.Told)
		}
	}
}

func promptedAgo(d time.Duration, digest string) func(*observe.Told) {
	return func(t *observe.Told) { t.Prompted = append(t.Prompted, observe.Prompted{At: ago(d), Digest: digest}) }
}
func doneTurn(d time.Duration) func(*observe.Told) { return func(t *observe.Told) { t.Done = ago(d) } }
func failedTurn(d time.Duration, word string) func(*observe.Told) {
	return func(t *observe.Told) { t.Failed, t.Failure = ago(d), word }
}

// acts is what the client was last seen to do, since a minute.
func acts(a spec.Activity, edits ...func(*observe.Sight)) given {
	return func(in *Input) {
		in.Sight = observe.Sight{At: now, Readiness: observe.Ready, Activity: a, Since: ago(time.Minute)}
		if a == spec.ActivityWorking {
			in.Sight.WorkingAt = now
		}
		for _, edit := range edits {
			edit(&in.Sight)
		}
	}
}

func sinceAgo(d time.Duration) func(*observe.Sight) {
	return func(s *observe.Sight) { s.Since = ago(d) }
}
func workedAgo(d time.Duration) func(*observe.Sight) {
	return func(s *observe.Sight) { s.WorkingAt = ago(d) }
}
func filesWork(d time.Duration) func(*observe.Sight) {
	return func(s *observe.Sight) { s.WorkingSince = ago(d) }
}
func turnEnded(d time.Duration) func(*observe.Sight) {
	return func(s *observe.Sight) { s.TurnAt = ago(d) }
}
func lookedAt(d time.Duration) func(*observe.Sight) { return func(s *observe.Sight) { s.At = ago(d) } }
func fails(d time.Duration, retry spec.RetryClass) func(*observe.Sight) {
	return func(s *observe.Sight) {
		s.Failure = &observe.Failure{Reason: spec.ReasonUsageLimited, Retry: retry, At: ago(d)}
	}
}

// able is a session of class claude whose client can take a turn and does nothing.
func able(gs ...given) Input {
	return up(append([]given{ofClass(claude), has(begun(claude, "c1")), readyFor(time.Minute), acts(spec.ActivityIdle)}, gs...)...)
}

func onDemand(s *spec.SessionSpec) { s.ProvisioningPolicy = spec.ProvisioningOnDemand }

func startsWith(prompt string) func(*spec.SessionSpec) {
	return func(s *spec.SessionSpec) { s.InitialPrompt = prompt }
}

// turnRow is one sentence about what becomes of turns.
type turnRow struct {
	name string
	in   Input
	// is what the turns are afterwards: see phrase. The same as before when it is empty.
	is []string
	// reason of the verdict, and why the first that is pending waits; not compared when empty.
	reason, waits string
	action        actuate.Kind
	// again is when to look again at the latest.
	again time.Duration
	looks bool
	also  func(*testing.T, Plan)
}

// phrase is a turn in words: its phase, then Delivered and Completed where they tell.
func phrase(t turn.Turn) string {
	words := string(t.Phase)
	if t.Delivered.Reason != "" && t.Phase != turn.Delivered {
		words += fmt.Sprintf(" delivered=%s(%s)", t.Delivered.Status, t.Delivered.Reason)
	}
	if t.Phase == turn.Over && t.Completed.Reason != spec.ReasonNotDelivered {
		words += fmt.Sprintf(" completed=%s(%s)", t.Completed.Status, t.Completed.Reason)
	}
	if t.Retryable {
		words += " retryable"
	}
	return words
}

func phrases(turns []turn.Turn) []string {
	words := []string{}
	for _, t := range turns {
		words = append(words, phrase(t))
	}
	return words
}

// after are the turns as the plan leaves them.
func after(in Input, p Plan) []turn.Turn {
	var out []turn.Turn
	for _, t := range in.Turns {
		for _, changed := range p.Turns {
			if changed.Name == t.Name {
				t = changed
			}
		}
		out = append(out, t)
	}
	return out
}

func checkTurns(t *testing.T, rows []turnRow) {
	t.Helper()
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			p := decide(t, r.in)
			turns := after(r.in, p)
			want := r.is
			if want == nil {
				want = phrases(r.in.Turns)
			}
			require.Equal(t, want, phrases(turns), "%s: %s (%s)", p.Verdict.Rule, p.Verdict.Message, p.Waiting.Message)
			if r.reason != "" {
				require.Equal(t, r.reason, p.Verdict.Reason, p.Verdict.Message)
			}
			if r.waits != "" {
				require.Equal(t, r.waits, p.Waiting.Reason, p.Waiting.Message)
			}
			require.Equal(t, r.action, p.Action.Kind, "action: %s", p.Verdict.Message)
			require.Equal(t, r.looks, compute(r.in).wantsHand, "a look is asked for")
			if r.again > 0 {
				require.Equal(t, r.again, p.RequeueAfter, "again: %s", p.Verdict.Message)
			}
			for _, tt := range p.Turns {
				if tt.Phase == turn.Over && tt.Delivered.Status != "True" {
					require.Contains(t, tt.Delivered.Message, " ", "a person is told why")
				}
			}
			if r.also != nil {
				r.also(t, p)
			}
		})
	}
}

// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muxlet/muxlet/controller/plan"
	"github.com/muxlet/muxlet/controller/server"
	"github.com/muxlet/muxlet/controller/turn"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec"
)

func pendingTurn(session string, number int64) turn.Turn {
	return turn.Turn{
		Name: fmt.Sprintf("%s-%d", session, number), Session: session, SessionUID: "uid-" + session, Number: number, Phase: turn.Pending,
		Delivered: turn.State{Status: metav1.ConditionFalse, Reason: spec.ReasonPending}, Completed: turn.State{Status: metav1.ConditionUnknown, Reason: spec.ReasonPending},
	}
}

func reasonOf(t *testing.T, b *turnBook, name string) string {
	t.Helper()
	served, ok := b.find(name)
	require.True(t, ok)
	return meta.FindStatusCondition(served.Status.Conditions, spec.ConditionDelivered).Reason
}

func TestTheFirstPendingTurnSaysWhatItWaitsForAndTheOthersForIt(t *testing.T) {
	b := newTurnBook(server.NewJournals(time.Now(), 1).Turns)
	for n := int64(1); n <= 3; n++ {
		b.put(pendingTurn("a", n))
	}
	b.put(pendingTurn("b", 1))
	b.wait("uid-a", plan.Verdict{Reason: spec.ReasonNotReady, Message: "it starts"})
	require.Equal(t, spec.ReasonNotReady, reasonOf(t, b, "a-1"))
	require.Equal(t, spec.ReasonQueued, reasonOf(t, b, "a-2"))
	require.Equal(t, spec.ReasonPending, reasonOf(t, b, "b-1"))
	require.Equal(t, spec.ReasonNotReady, b.waits("uid-a").Reason)

	before := b.journal.Revision()
	b.wait("uid-a", plan.Verdict{Reason: spec.ReasonNotReady, Message: "it starts"})
	require.Equal(t, before, b.journal.Revision(), "the same is published once")

	first := pendingTurn("a", 1).Begin(time.Now(), spec.SubmitPaste, 1, "x", "")
	b.put(first)
	require.Equal(t, spec.ReasonDelivering, reasonOf(t, b, "a-1"))
	require.Equal(t, spec.ReasonPending, reasonOf(t, b, "a-2"), "what the one before it waited for says nothing about it")
	require.True(t, b.inHand("uid-a"))
	initial := pendingTurn("a", 4)
	initial.Initial = true
	b.put(initial)
	var order []string
	for _, o := range b.open("uid-a") {
		order = append(order, o.Name)
	}
	require.Equal(t, []string{"a-1", "a-4", "a-2", "a-3"}, order)
	b.put(first.GiveUp(time.Now(), spec.ReasonInterrupted, ""))
	require.False(t, b.inHand("uid-a"))
	b.gone(initial)
	require.Equal(t, spec.ReasonPending, reasonOf(t, b, "a-2"))
	_, ok := b.find("a-4")
	require.False(t, ok)
}

func TestTurnsAreListedBySessionAndNumberWithTheLabelsOfTheirSession(t *testing.T) {
	b := newTurnBook(server.NewJournals(time.Now(), 1).Turns)
	b.label("uid-a", map[string]string{"repo": "shop"})
	for _, n := range []int64{10, 2, 1} {
		b.put(pendingTurn("a", n))
	}
	b.put(pendingTurn("B", 1))
	served, version := b.list()
	var names []string
	for _, o := range served {
		names = append(names, o.Name)
	}
	require.Equal(t, []string{"B-1", "a-1", "a-2", "a-10"}, names)
	require.Equal(t, "shop", served[1].Labels["repo"])
	require.Equal(t, b.journal.Revision(), version)
	b.label("uid-a", map[string]string{"repo": "other"})
	one, _ := b.find("a-10")
	require.Equal(t, "other", one.Labels["repo"])
	require.NotEmpty(t, one.ResourceVersion)
}

// A report comes twice, once by the socket and once by the spool, and late.
func TestWhatReportsTellOfTurns(t *testing.T) {
	at := func(n int) time.Time { return time.Unix(int64(1000+n), 0) }
	var told telling
	for range 2 {
		for _, n := range []int{3, 1, 2} {
			told.noteTurn(observe.Report{Kind: observe.ReportPrompted, At: at(n), Prompt: fmt.Sprint(n)})
		}
	}
	require.Equal(t, []observe.Prompted{{At: at(1), Digest: "1"}, {At: at(2), Digest: "2"}, {At: at(3), Digest: "3"}}, told.told.Prompted)
	told.noteTurn(observe.Report{Kind: observe.ReportDone, At: at(5)})
	told.noteTurn(observe.Report{Kind: observe.ReportDone, At: at(4)})
	told.noteTurn(observe.Report{Kind: observe.ReportFailed, At: at(6), Failure: "rate_limit"})
	require.Equal(t, at(5), told.told.Done)
	require.Equal(t, at(6), told.told.Failed)
	require.Equal(t, "rate_limit", told.told.Failure)
	for n := range 100 {
		told.noteTurn(observe.Report{Kind: observe.ReportPrompted, At: at(10 + n)})
	}
	require.Len(t, told.told.Prompted, mostPrompted)
	require.Equal(t, at(109), told.told.Prompted[mostPrompted-1].At)
}

// A thousand sessions keep a hundred turns each that are over: who looks at those that
// wait does not walk past them.
func TestTurnsThatAreOverAreServedAndNotLookedThrough(t *testing.T) {
	b := newTurnBook(server.NewJournals(time.Now(), 1).Turns)
	handed := time.Unix(1000, 0)
	over := pendingTurn("a", 1).Begin(handed, spec.SubmitPaste, 1, "x", "").Deliver(handed, "told").Complete(handed)
	b.put(pendingTurn("a", 1))
	b.put(over)
	require.Empty(t, b.unfinished)
	require.Empty(t, b.open("uid-a"))
	require.True(t, b.last(over))
	b.label("uid-a", map[string]string{"repo": "shop"})
	served, ok := b.find("a-1")
	require.True(t, ok)
	require.Equal(t, "shop", served.Labels["repo"])
	require.Equal(t, spec.TurnCompleted, spec.DisplayTurnStatus(served))

	later := pendingTurn("a", 2).Begin(handed.Add(time.Second), spec.SubmitPaste, 1, "x", "")
	b.put(later)
	require.False(t, b.last(over))
	b.gone(later)
	require.False(t, b.last(over), "its answer is still followed by another one")
	b.gone(over)
	require.Empty(t, b.keys)
	require.Empty(t, b.handed)
}

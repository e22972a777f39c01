// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muxlet/muxlet/controller/plan"
	"github.com/muxlet/muxlet/controller/record"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec"
)

// agent makes the session one of a class whose clients have conversations and tell
// what they do.
func agent(in *Input) {
	in.Class = &plan.Class{Name: "agent", Spec: &spec.ClientClassSpec{
		Ready: spec.ClassReady{Pattern: "ready"}, Conversation: spec.ClassConversation{Identity: spec.IdentityAssigned},
	}}
	in.Watched = true
}

func asking(reason string) given {
	return func(in *Input) {
		in.Sight.Attention = &observe.Attention{Reason: reason, Message: "it asks"}
		in.Sight.Activity, in.Sight.Screen = spec.ActivityAwaitingInput, []string{"Do you trust it?"}
	}
}

func bound(begun bool) given {
	return func(in *Input) {
		in.Plan.Record.Conversation = &record.Conversation{ID: "c1", Source: spec.SourceAssigned, Class: "agent", Directory: "/work", Begun: begun}
	}
}

func TestTheConversationsCondition(t *testing.T) {
	const yes, no, unknown = metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown
	for name, r := range map[string]struct {
		in     Input
		status metav1.ConditionStatus
		reason string
	}{
		"bound":                 {up(spec.ReasonReady, agent, bound(true)), yes, spec.ReasonConversationBound},
		"bound without client":  {down(spec.ReasonCrashLoopBackOff, agent, bound(true)), yes, spec.ReasonConversationBound},
		"without a turn":        {up(spec.ReasonReady, agent, bound(false)), no, spec.ReasonConversationNew},
		"not told":              {up(spec.ReasonReady, agent), no, spec.ReasonConversationPending},
		"none yet":              {down(spec.ReasonStarting, agent), no, spec.ReasonConversationPending},
		"missing":               {down(spec.ReasonConversationMissing, agent, bound(true)), no, spec.ReasonConversationMissing},
		"elsewhere":             {down(spec.ReasonConversationElsewhere, agent, bound(true)), no, spec.ReasonConversationElsewhere},
		"another session's":     {down(spec.ReasonConversationInUse, agent, bound(true)), no, spec.ReasonConversationInUse},
		"not readable":          {down(spec.ReasonConversationUnknown, agent, bound(true)), unknown, spec.ReasonConversationUnknown},
		"class not found":       {down(spec.ReasonClassNotFound, func(in *Input) { in.Class = nil }), unknown, spec.ReasonClassNotFound},
		"class not known":       {down(spec.ReasonInvalid, func(in *Input) { in.Class = nil }), unknown, spec.ReasonUnknown},
		"class without":         {up(spec.ReasonRunning), no, spec.ReasonNotApplicable},
		"tmux does not answer":  {up("", agent, bound(true), blind), yes, spec.ReasonConversationBound},
		"a damaged record":      {down(spec.ReasonRecordQuarantined, agent), no, spec.ReasonRecordQuarantined},
		"damaged, client lives": {up(spec.ReasonReady, agent), no, spec.ReasonConversationPending},
	} {
		t.Run(name, func(t *testing.T) {
			c := meta.FindStatusCondition(Summarize(r.in).Conditions, spec.ConditionConversationBound)
			require.Equal(t, r.status, c.Status, "%s: %s", c.Reason, c.Message)
			require.Equal(t, r.reason, c.Reason)
			require.NotEmpty(t, c.Message)
		})
	}
}

// F5: a session that asks is alive, not ready, and says which question waits.
func TestAClientThatAsksIsAliveAndNotReady(t *testing.T) {
	s := Summarize(up(spec.ReasonTrustRequired, agent, asking(spec.ReasonTrustRequired)))
	for kind, status := range map[string]metav1.ConditionStatus{
		spec.ConditionClientAlive: metav1.ConditionTrue, spec.ConditionReady: metav1.ConditionFalse, spec.ConditionInputRequired: metav1.ConditionTrue,
		spec.ConditionStalled: metav1.ConditionFalse,
	} {
		require.True(t, meta.IsStatusConditionPresentAndEqual(s.Conditions, kind, status), kind)
	}
	for _, kind := range []string{spec.ConditionReady, spec.ConditionInputRequired} {
		require.Equal(t, spec.ReasonTrustRequired, meta.FindStatusCondition(s.Conditions, kind).Reason)
	}
	assert.False(t, s.Client.Ready)
	assert.Equal(t, spec.ActivityAwaitingInput, s.Activity.State)
	assert.Equal(t, []string{"Do you trust it?"}, s.Evidence.LastScreen)

	answered := Summarize(up(spec.ReasonReady, agent))
	assert.True(t, answered.Client.Ready)
	assert.Empty(t, answered.Evidence.LastScreen)
	assert.True(t, meta.IsStatusConditionFalse(answered.Conditions, spec.ConditionInputRequired))
}

func TestAClientIsReadyOnceItSaysSoWhereItsClassTells(t *testing.T) {
	for name, r := range map[string]struct {
		in    Input
		ready bool
	}{
		"executed":                      {up(spec.ReasonStarted, agent, executed(observe.Running)), false},
		"not ready":                     {up(spec.ReasonNotReady, agent), false},
		"ready":                         {up(spec.ReasonReady, agent), true},
		"adopted":                       {up(spec.ReasonAdopted, agent), false},
		"adopted, was ready":            {up(spec.ReasonAdopted, agent, func(in *Input) { in.Plan.Record.Client.ReadyAt = now }), true},
		"an unknown question":           {up(spec.ReasonQuestion, agent), false},
		"being ended":                   {up(spec.ReasonStopping, agent, stopping(client)), false},
		"of a class that does not tell": {up(spec.ReasonStarted, executed(observe.Running)), true},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, r.ready, Summarize(r.in).Client.Ready)
		})
	}
}

func TestTheConversationsStatusHasItsHistoryAndWhatIsKnownOfIt(t *testing.T) {
	found := func(id string, state observe.EvidenceState) given {
		return func(in *Input) { in.EvidenceOf, in.Evidence = id, observe.Evidence{State: state, Path: "/t.jsonl"} }
	}
	replaced := now.Add(-time.Hour)
	past := func(in *Input) {
		in.Plan.Record.History = []record.PastConversation{{
			Conversation: record.Conversation{ID: "c0", Class: "agent"}, ReplacedAt: replaced, Reason: spec.ReplacedCleared,
		}}
	}
	s := Summarize(up(spec.ReasonReady, agent, bound(true), past, found("c1", observe.EvidenceResumable))).Conversation
	yes := true
	assert.Equal(t, &spec.ConversationStatus{
		ID: "c1", Source: spec.SourceAssigned, Resumable: &yes, Transcript: "/t.jsonl", Directory: "/work",
		History: []spec.PastConversation{{ID: "c0", ReplacedAt: metav1.NewTime(replaced), Reason: spec.ReplacedCleared, ClientClassName: "agent"}},
	}, s)

	known := func(in *Input) { in.Previous.Conversation = s }
	assert.Equal(t, &yes, Summarize(up("", agent, bound(true), known, found("c1", observe.EvidenceUnknown))).Conversation.Resumable, "what was known stays")
	no := Summarize(up(spec.ReasonReady, agent, bound(true), known, found("c1", observe.EvidenceUnusable))).Conversation
	assert.False(t, *no.Resumable)
	assert.Empty(t, no.Transcript)
	assert.Nil(t, Summarize(up(spec.ReasonReady, agent, bound(true), found("c0", observe.EvidenceResumable))).Conversation.Resumable, "evidence of another one")
	assert.Nil(t, Summarize(up(spec.ReasonRunning)).Conversation)
}

func TestActivityKeepsItsTimeAndDoesNotOutliveItsClient(t *testing.T) {
	works := func(in *Input) {
		in.Sight.Activity, in.ActiveSince, in.ReportedAt = spec.ActivityWorking, now.Add(-time.Minute), now.Add(-time.Second)
		in.Sight.Failure = &observe.Failure{Reason: spec.ReasonUsageLimited, Until: now.Add(time.Hour)}
	}
	first := Summarize(up(spec.ReasonReady, agent, works))
	a := first.Activity
	require.Equal(t, spec.ActivityWorking, a.State)
	require.Equal(t, now.Add(-time.Minute), a.Since.UTC())
	require.Equal(t, now.Add(-time.Second), a.ReportedAt.UTC())
	require.Equal(t, spec.ReasonUsageLimited, a.Failure)
	require.Equal(t, now.Add(time.Hour), a.RetryTime.UTC())

	later := up(spec.ReasonReady, agent, works, func(in *Input) { in.Previous, in.ActiveSince = first, now })
	require.Equal(t, a.Since, Summarize(later).Activity.Since)
	require.Nil(t, Summarize(down(spec.ReasonDied, agent, works)).Activity)
	require.Nil(t, Summarize(up(spec.ReasonRunning, works)).Activity, "its class does not tell")
	require.Equal(t, a, Summarize(up("", agent, blind, func(in *Input) { in.Previous = first })).Activity, "shown with Observed=False")
}

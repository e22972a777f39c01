// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muxlet/muxlet/spec"
)

// asking is a session whose client waits for a person.
func asking(reason string) *spec.Session {
	s := &spec.Session{}
	s.Name = "shop"
	s.Spec.ClientClassName = spec.ClassClaude
	s.Status.Activity = &spec.ActivityStatus{State: spec.ActivityAwaitingInput}
	for kind, status := range map[string]metav1.ConditionStatus{
		spec.ConditionObserved: metav1.ConditionTrue, spec.ConditionClientAlive: metav1.ConditionTrue, spec.ConditionReady: metav1.ConditionFalse,
		spec.ConditionInputRequired: metav1.ConditionTrue,
	} {
		s.Status.Conditions = append(s.Status.Conditions, metav1.Condition{Type: kind, Status: status, Reason: reason, Message: "it asks"})
	}
	return s
}

func TestTheActivityColumnSaysWhatIsAskedAndWhatHasFailed(t *testing.T) {
	s := asking(spec.ReasonTrustRequired)
	assert.Equal(t, "AwaitingInput (TrustRequired)", activityCell(s, time.Time{}))
	assert.Equal(t, spec.StatusRunning, spec.DisplayStatus(s))
	assert.True(t, spec.WaitsForPerson(s))

	s.Status.Conditions[3] = metav1.Condition{Type: spec.ConditionInputRequired, Status: metav1.ConditionFalse}
	s = &spec.Session{Status: spec.SessionStatus{
		Conditions: []metav1.Condition{{Type: spec.ConditionObserved, Status: metav1.ConditionTrue}},
		Activity:   &spec.ActivityStatus{State: spec.ActivityIdle},
	}}
	assert.Equal(t, "Idle", activityCell(s, time.Time{}))
	assert.False(t, spec.WaitsForPerson(s))
	s.Status.Activity.Failure = spec.ReasonAuthenticationFailed
	assert.Equal(t, "Idle (AuthenticationFailed)", activityCell(s, time.Time{}))
	assert.True(t, spec.WaitsForPerson(s), "only a person can renew a credential")
	s.Status.Conditions[0].Status = metav1.ConditionFalse
	assert.Equal(t, absent, activityCell(s, time.Time{}), "what is not observed is not shown")
	assert.Equal(t, absent, activityCell(&spec.Session{}, time.Time{}))
}

func TestADescriptionHasTheConversationWithItsHistoryAndTheQuestion(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	at := func(before time.Duration) metav1.Time { return metav1.NewTime(now.Add(-before)) }
	yes, reported, retry := true, at(10*time.Second), at(-time.Hour)
	s := asking(spec.ReasonPermissionRequired)
	s.Status.Conversation = &spec.ConversationStatus{
		ID: "c2", Source: spec.SourceReported, Resumable: &yes, Transcript: "/t/c2.jsonl", Directory: "/work",
		History: []spec.PastConversation{
			{ID: "c1", ReplacedAt: at(time.Hour), Reason: spec.ReplacedCleared, ClientClassName: spec.ClassClaude},
			{ID: "c0", ReplacedAt: at(2 * time.Hour), Reason: spec.ReplacedClassChanged, ClientClassName: spec.ClassCodex},
		},
	}
	s.Status.Activity = &spec.ActivityStatus{
		State: spec.ActivityAwaitingInput, Since: at(time.Minute), ReportedAt: &reported, Failure: spec.ReasonUsageLimited, RetryTime: &retry,
	}
	d := &description{Session: s, sheet: sheet{now: now}, status: spec.DisplayStatus(s), screen: []string{"Do you want to proceed?"}}
	text := d.text()
	for _, line := range []string{
		"What to do:     The client asks whether it may do something. Answer it: muxlet attach shop. Nothing is typed meanwhile.",
		"  Id:           c2", "  Resumable:    yes, by /t/c2.jsonl",
		"  Earlier:      c1 until 60m ago (Cleared): another one was begun in the client",
		"                c0 until 120m ago (ClassChanged): the session got another client class, class codex",
		"  State:        AwaitingInput for 60s", "  Question:     PermissionRequired: it asks", "  Reported:     10s ago (2026-03-01T11:59:50Z)",
		"  Failure:      UsageLimited; it may be used again in 60m (2026-03-01T13:00:00Z)", "  | Do you want to proceed?",
	} {
		assert.Contains(t, text, line+"\n")
	}
}

// A client whose turn has failed runs on, and what helps is not done by waiting.
func TestADescriptionSaysWhatToDoAboutAFailedTurn(t *testing.T) {
	for failure, want := range map[string]string{
		spec.ReasonAuthenticationFailed: "muxlet attach shop", spec.ReasonUsageLimited: "muxlet attach shop", spec.ReasonModelUnavailable: "", "": "",
	} {
		s := &spec.Session{}
		s.Name, s.Status.Activity = "shop", &spec.ActivityStatus{State: spec.ActivityIdle, Failure: failure}
		advice := whatToDo(s, spec.StatusRunning, spec.ReasonReady)
		assert.Contains(t, advice, want, failure)
		assert.Equal(t, want == "", advice == "", failure)
		assert.Empty(t, whatToDo(s, spec.StatusTerminated, ""), "nothing runs")
	}
}

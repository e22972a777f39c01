// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muxlet/muxlet/spec"
	"github.com/muxlet/muxlet/spec/lazyregexp"
)

func createdAt(s *session) time.Time {
	if s.rec.CreatedAt.IsZero() {
		return s.created
	}
	return s.rec.CreatedAt
}

// sameStatus says whether a status says the same as another one, for those who
// watch. Each pass observes anew, and messages tell ages and countdowns: what
// differs in nothing else is the same, or a thousand sessions at rest would make
// a thousand changes at each resync.
func sameStatus(a, b *spec.SessionStatus) bool {
	return a.ObservedGeneration == b.ObservedGeneration &&
		a.ConsecutiveDeaths == b.ConsecutiveDeaths &&
		a.Workspace == b.Workspace &&
		a.NextAttemptTime.Equal(b.NextAttemptTime) &&
		slices.EqualFunc(a.Conditions, b.Conditions, sameCondition) &&
		sameClient(&a.Client, &b.Client) &&
		same(a.Conversation, b.Conversation, sameConversation) &&
		same(a.Activity, b.Activity, sameActivity) &&
		same(a.LivenessProbe, b.LivenessProbe, sameProbe) &&
		same(a.Tmux, b.Tmux, func(x, y *spec.TmuxStatus) bool { return *x == *y }) &&
		same(a.Source, b.Source, func(x, y *spec.SourceStatus) bool { return *x == *y }) &&
		same(a.Evidence, b.Evidence, sameEvidence) &&
		same(a.Decision, b.Decision, sameDecision)
}

// same compares two things that may not be there.
func same[T any](a, b *T, equal func(a, b *T) bool) bool {
	if a == nil || b == nil {
		return a == b
	}
	return equal(a, b)
}

func sameCondition(a, b metav1.Condition) bool {
	return a.Type == b.Type && a.Status == b.Status && a.Reason == b.Reason && a.ObservedGeneration == b.ObservedGeneration &&
		a.LastTransitionTime.Equal(&b.LastTransitionTime) && sameWords(a.Message, b.Message)
}

func sameClient(a, b *spec.ClientStatus) bool {
	return a.Incarnation == b.Incarnation && a.Pid == b.Pid && a.RestartCount == b.RestartCount && a.Ready == b.Ready &&
		a.StartedAt.Equal(b.StartedAt) && slices.Equal(a.Survivors, b.Survivors) &&
		same(a.Scope, b.Scope, func(x, y *spec.ScopeStatus) bool { return *x == *y }) &&
		same(a.LastTermination, b.LastTermination, sameTermination)
}

func sameTermination(a, b *spec.Termination) bool {
	return a.Incarnation == b.Incarnation && a.Signal == b.Signal && a.Reason == b.Reason && a.Message == b.Message &&
		a.FinishedAt.Equal(&b.FinishedAt) && same(a.ExitCode, b.ExitCode, func(x, y *int32) bool { return *x == *y })
}

func sameConversation(a, b *spec.ConversationStatus) bool {
	return a.ID == b.ID && a.Source == b.Source && a.Transcript == b.Transcript && a.Directory == b.Directory &&
		same(a.Resumable, b.Resumable, func(x, y *bool) bool { return *x == *y }) &&
		slices.EqualFunc(a.History, b.History, func(x, y spec.PastConversation) bool {
			return x.ID == y.ID && x.Reason == y.Reason && x.ClientClassName == y.ClientClassName && x.ReplacedAt.Equal(&y.ReplacedAt)
		})
}

// sameActivity passes over when the client last reported: a heartbeat is no change.
func sameActivity(a, b *spec.ActivityStatus) bool {
	return a.State == b.State && a.Since.Equal(&b.Since) && a.Failure == b.Failure && a.RetryTime.Equal(b.RetryTime) &&
		a.AsksSince.Equal(b.AsksSince) && a.SeenAt.Equal(b.SeenAt)
}

// sameProbe passes over the times: each probe has others.
func sameProbe(a, b *spec.LivenessProbeStatus) bool {
	return a.Result == b.Result && a.Message == b.Message && a.ConsecutiveFailures == b.ConsecutiveFailures
}

// sameEvidence passes over when it was observed: that is each time.
func sameEvidence(a, b *spec.EvidenceStatus) bool {
	return a.Pane == b.Pane && a.Process == b.Process && sameWords(a.Message, b.Message) && slices.Equal(a.LastScreen, b.LastScreen)
}

func sameDecision(a, b *spec.DecisionStatus) bool {
	return a.Rule == b.Rule && a.Action == b.Action && a.Reason == b.Reason && a.At.Equal(&b.At) && sameWords(a.Message, b.Message)
}

// spans are lengths of time, as messages tell them: 7s, 1m30s, 250ms.
var spans = lazyregexp.New(`\b(\d+(\.\d+)?(h|ms|µs|m|s))+\b`)

// sameWords compares two messages but for the lengths of time in them.
func sameWords(a, b string) bool {
	return a == b || spans.Get().ReplaceAllLiteralString(a, "*") == spans.Get().ReplaceAllLiteralString(b, "*")
}

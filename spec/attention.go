// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"cmp"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
)

// AsksForAttention says whether a session asks for a person's attention: its client has
// a question, or has ended work, and nobody has had it in front of them for long enough
// since. A question that was seen still waits, and is still the condition InputRequired.
func AsksForAttention(s *Session) bool {
	asks := meta.IsStatusConditionTrue(s.Status.Conditions, ConditionInputRequired)
	a := s.Status.Activity
	switch {
	case a == nil || a.AsksSince == nil:
		return asks
	case a.State != ActivityAwaitingInput && a.State != ActivityIdle && !asks:
		return false
	}
	return a.SeenAt == nil || a.SeenAt.Before(a.AsksSince)
}

// WaitsForPerson says whether a session goes on only when a person acts: it asks for
// attention, its credential is refused, or something is in its way. One that was told to
// rest waits for nothing, and one at which a person has looked goes on to wait without a
// word.
func WaitsForPerson(s *Session) bool {
	if AsksForAttention(s) {
		return true
	}
	if a := s.Status.Activity; a != nil && a.Failure == ReasonAuthenticationFailed {
		return true
	}
	switch DisplayStatus(s) {
	case StatusCompleted, StatusSuspended, StatusTerminated, StatusDormant:
		return false
	}
	return meta.IsStatusConditionTrue(s.Status.Conditions, ConditionStalled)
}

// WaitingSince is since when a session waits for a person, and zero when it does not or
// when that is not known.
func WaitingSince(s *Session) time.Time {
	if !WaitsForPerson(s) {
		return time.Time{}
	}
	if a := s.Status.Activity; a != nil && a.AsksSince != nil && AsksForAttention(s) {
		return a.AsksSince.Time
	}
	for _, waits := range []string{ConditionInputRequired, ConditionStalled} {
		if c := meta.FindStatusCondition(s.Status.Conditions, waits); c != nil && meta.IsStatusConditionTrue(s.Status.Conditions, waits) {
			return c.LastTransitionTime.Time
		}
	}
	return time.Time{}
}

// CompareWaiting orders sessions as a person wants them: those that wait for one first,
// the one that waits longest before the others, those of which that is not known last of
// them; all others after them, by name.
func CompareWaiting(a, b *Session) int {
	waitsA, waitsB := WaitsForPerson(a), WaitsForPerson(b)
	if waitsA != waitsB {
		return cmp.Compare(rank(waitsA), rank(waitsB))
	}
	if waitsA {
		sinceA, sinceB := WaitingSince(a), WaitingSince(b)
		if sinceA.IsZero() != sinceB.IsZero() {
			return cmp.Compare(rank(!sinceA.IsZero()), rank(!sinceB.IsZero()))
		}
		if c := sinceA.Compare(sinceB); c != 0 {
			return c
		}
	}
	return strings.Compare(a.Name, b.Name)
}

// rank is lower for what comes first.
func rank(first bool) int {
	if first {
		return 0
	}
	return 1
}

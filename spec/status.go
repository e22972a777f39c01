// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DisplayStatus computes the word of the STATUS column from the conditions. It
// is computed for each look and stored nowhere. What was not observed is
// Unknown, whatever else is known.
func DisplayStatus(s *Session) Status {
	conditions := s.Status.Conditions
	if !meta.IsStatusConditionTrue(conditions, ConditionObserved) {
		return StatusUnknown
	}
	alive := meta.FindStatusCondition(conditions, ConditionClientAlive)
	switch {
	case alive == nil || alive.Status == metav1.ConditionUnknown:
		return StatusUnknown
	case alive.Status == metav1.ConditionTrue:
		return aliveStatus(conditions)
	}
	return downStatus(conditions)
}

// aliveStatus is the word for a session whose client runs.
func aliveStatus(conditions []metav1.Condition) Status {
	for _, reason := range reasons(conditions) {
		switch reason {
		case ReasonStopping, ReasonRestarting, ReasonUpdating, ReasonOrphan, ReasonPaneGone, ReasonEngineGone,
			ReasonDuplicateClient, ReasonClientIgnoresKill, ReasonSuspended, ReasonTerminated, ReasonRemoved:
			return StatusStopping
		case ReasonStarting, ReasonNotReady:
			return StatusStarting
		}
	}
	return StatusRunning
}

// downStatus is the word for a session whose client is proven not to run. Work
// under way comes first, then what is wrong with the document, then why it rests.
func downStatus(conditions []metav1.Condition) Status {
	found := reasons(conditions)
	stalled := map[string]Status{}
	if c := meta.FindStatusCondition(conditions, ConditionStalled); c != nil && c.Status == metav1.ConditionTrue {
		stalled[c.Reason] = StatusBlocked
	}
	for _, words := range []map[string]Status{underWay, refused, resting, stalled, waiting} {
		for _, reason := range found {
			if word, ok := words[reason]; ok {
				return word
			}
		}
	}
	return StatusStarting
}

var (
	underWay = map[string]Status{
		ReasonStarting: StatusStarting,
		ReasonStopping: StatusStopping,
		ReasonRemoved:  StatusStopping,
	}
	refused = map[string]Status{
		ReasonInvalid:       StatusInvalid,
		ReasonDuplicateName: StatusConflict,
		ReasonNameConflict:  StatusConflict,
	}
	resting = map[string]Status{
		ReasonSuspended:    StatusSuspended,
		ReasonTerminated:   StatusTerminated,
		ReasonCompleted:    StatusCompleted,
		ReasonNotRecovered: StatusDormant,
		ReasonDormant:      StatusDormant,
	}
	waiting = map[string]Status{
		ReasonConfirming:       StatusUnknown,
		ReasonCrashLoopBackOff: StatusCrashLoopBackOff,
		ReasonStartFailed:      StatusCrashLoopBackOff,
		ReasonStartTimeout:     StatusCrashLoopBackOff,
		ReasonAttemptAbandoned: StatusCrashLoopBackOff,
		ReasonTmuxServerFailed: StatusCrashLoopBackOff,

		ReasonConversationUnknown:  StatusBlocked,
		ReasonAuthenticationFailed: StatusBlocked,
		ReasonUsageLimited:         StatusBlocked,
	}
)

// reasons are those that can decide the word: of Accepted when it is False, of
// Stalled and Suspended when they are True, and of Ready and ClientAlive.
func reasons(conditions []metav1.Condition) []string {
	var found []string
	for _, c := range []struct {
		name string
		when []metav1.ConditionStatus
	}{
		{ConditionAccepted, []metav1.ConditionStatus{metav1.ConditionFalse}},
		{ConditionSuspended, []metav1.ConditionStatus{metav1.ConditionTrue}},
		{ConditionStalled, []metav1.ConditionStatus{metav1.ConditionTrue}},
		{ConditionReady, []metav1.ConditionStatus{metav1.ConditionFalse, metav1.ConditionUnknown}},
		{ConditionClientAlive, []metav1.ConditionStatus{metav1.ConditionTrue, metav1.ConditionFalse}},
	} {
		for _, status := range c.when {
			if meta.IsStatusConditionPresentAndEqual(conditions, c.name, status) {
				found = append(found, meta.FindStatusCondition(conditions, c.name).Reason)
			}
		}
	}
	return found
}

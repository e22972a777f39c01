// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestASessionAsksForAttentionUntilAPersonHasLookedAtIt(t *testing.T) {
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	at := func(seconds int) *metav1.Time {
		return &metav1.Time{Time: noon.Add(time.Duration(seconds) * time.Second)}
	}
	question := []metav1.Condition{{Type: ConditionInputRequired, Status: metav1.ConditionTrue, Reason: ReasonTrustRequired}}
	unknown := []metav1.Condition{{Type: ConditionInputRequired, Status: metav1.ConditionUnknown, Reason: ReasonTmuxUnavailable}}
	for name, r := range map[string]struct {
		status SessionStatus
		asks   bool
	}{
		"nothing is known":                            {SessionStatus{}, false},
		"a question":                                  {SessionStatus{Conditions: question, Activity: &ActivityStatus{State: ActivityAwaitingInput, AsksSince: at(0)}}, true},
		"a question whose time is not known":          {SessionStatus{Conditions: question, Activity: &ActivityStatus{State: ActivityAwaitingInput}}, true},
		"a question of a class that tells no more":    {SessionStatus{Conditions: question}, true},
		"a question that was seen":                    {SessionStatus{Conditions: question, Activity: &ActivityStatus{State: ActivityAwaitingInput, AsksSince: at(0), SeenAt: at(5)}}, false},
		"a new question after one that was seen":      {SessionStatus{Conditions: question, Activity: &ActivityStatus{State: ActivityAwaitingInput, AsksSince: at(9), SeenAt: at(5)}}, true},
		"it has ended work":                           {SessionStatus{Activity: &ActivityStatus{State: ActivityIdle, AsksSince: at(0)}}, true},
		"it has ended work and that was seen":         {SessionStatus{Activity: &ActivityStatus{State: ActivityIdle, AsksSince: at(0), SeenAt: at(0)}}, false},
		"it works again":                              {SessionStatus{Activity: &ActivityStatus{State: ActivityWorking, AsksSince: at(0)}}, false},
		"it was never seen to work":                   {SessionStatus{Activity: &ActivityStatus{State: ActivityIdle, SeenAt: at(0)}}, false},
		"whether a question waits is not known":       {SessionStatus{Conditions: unknown}, false},
		"tmux cannot be asked, and it had ended work": {SessionStatus{Conditions: unknown, Activity: &ActivityStatus{State: ActivityIdle, AsksSince: at(0)}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, r.asks, AsksForAttention(&Session{Status: r.status}))
		})
	}
}

func TestTheSessionThatWaitsLongestComesFirst(t *testing.T) {
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	at := func(seconds int) *metav1.Time {
		return &metav1.Time{Time: noon.Add(time.Duration(seconds) * time.Second)}
	}
	stalled := func(seconds int) []metav1.Condition {
		return []metav1.Condition{{Type: ConditionStalled, Status: metav1.ConditionTrue, LastTransitionTime: *at(seconds)}}
	}
	session := func(name string, status SessionStatus) *Session {
		return &Session{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: status}
	}
	asked := session("asked", SessionStatus{Activity: &ActivityStatus{State: ActivityIdle, AsksSince: at(20)}})
	refused := session("refused", SessionStatus{Activity: &ActivityStatus{State: ActivityIdle, Failure: ReasonAuthenticationFailed}})
	sessions := []*Session{
		session("b", SessionStatus{}), refused, asked,
		session("blocked", SessionStatus{Conditions: stalled(10)}), session("a", SessionStatus{}),
	}
	slices.SortFunc(sessions, CompareWaiting)
	var names []string
	for _, s := range sessions {
		names = append(names, s.Name)
	}
	assert.Equal(t, []string{"blocked", "asked", "refused", "a", "b"}, names)
	assert.Equal(t, at(20).Time, WaitingSince(asked))
	assert.Zero(t, WaitingSince(refused))
	assert.Zero(t, WaitingSince(session("a", SessionStatus{Conditions: nil})))
}

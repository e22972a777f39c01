// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muxlet/muxlet/controller/plan"
	"github.com/muxlet/muxlet/spec"
)

// hindrances are why nothing is started although nothing is wrong with the
// session: something of the system is used up. Trying again goes on all the time,
// and is told once.
var hindrances = map[string]bool{
	spec.ReasonStateUnwritable: true, spec.ReasonTooManyTerminals: true, spec.ReasonTooManyOpenFiles: true,
}

// tellHindrance records an event when a hindrance begins, and remembers it for
// the daemon's status.
func (c *Controller) tellHindrance(s *session, v plan.Verdict) {
	if !hindrances[v.Reason] {
		v = plan.Verdict{}
	}
	c.mu.Lock()
	before := s.hindered.Reason
	s.hindered = v
	c.mu.Unlock()
	if v.Reason != "" && before != v.Reason {
		c.tell(s.name, s.rec.UID, plan.Event{Type: plan.Warning, Reason: v.Reason, Message: v.Message})
	}
}

// tellQuestion records an event when a client begins to ask a person something. What
// was not seen is neither a question nor the end of one.
func (c *Controller) tellQuestion(s *session, st spec.SessionStatus) {
	asks := meta.FindStatusCondition(st.Conditions, spec.ConditionInputRequired)
	if asks == nil || asks.Status == metav1.ConditionUnknown {
		return
	}
	reason := ""
	if asks.Status == metav1.ConditionTrue {
		reason = asks.Reason
	}
	before := s.asked
	s.asked = reason
	if reason != "" && reason != before {
		c.tell(s.name, s.rec.UID, plan.Event{Type: plan.Normal, Reason: reason, Message: asks.Message})
	}
}

// hindered has one line for each hindrance. c.mu is held.
func (c *Controller) hindered() []string {
	byReason := c.hindrances()
	lines := make([]string, 0, len(byReason))
	for _, reason := range slices.Sorted(maps.Keys(byReason)) {
		lines = append(lines, byReason[reason])
	}
	return lines
}

// hindrances has one line for each hindrance, by its reason: how many sessions it keeps
// down, and what one of them says of it. c.mu is held.
func (c *Controller) hindrances() map[string]string {
	count, message := map[string]int{}, map[string]string{}
	for _, s := range c.sessions {
		v := s.hindered
		if v.Reason == "" {
			continue
		}
		count[v.Reason]++
		if message[v.Reason] == "" || v.Message < message[v.Reason] {
			message[v.Reason] = v.Message
		}
	}
	lines := map[string]string{}
	for reason, n := range count {
		lines[reason] = fmt.Sprintf("nothing is started (%s, sessions that wait: %d): %s", reason, n, message[reason])
	}
	return lines
}

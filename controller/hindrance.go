// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"github.com/muxlet/muxlet/controller/plan"
	"github.com/muxlet/muxlet/spec"
)

// hindrances are why nothing is started although nothing is wrong with the
// session: something of the system is used up. Trying again goes on all the time,
// and is told once.
var hindrances = map[string]bool{
	spec.ReasonStateUnwritable: true, spec.ReasonTooManyTerminals: true, spec.ReasonTooManyOpenFiles: true,
}

// tellHindrance records an event when a hindrance begins.
func (c *Controller) tellHindrance(s *session, v plan.Verdict) {
	if !hindrances[v.Reason] {
		s.hindered = ""
		return
	}
	if s.hindered != v.Reason {
		s.hindered = v.Reason
		c.tell(s.name, s.rec.UID, plan.Event{Type: plan.Warning, Reason: v.Reason, Message: v.Message})
	}
}

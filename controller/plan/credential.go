// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"time"
)

// waitForCredential: a credential that was refused, or whose limit is used up, fails
// each client that has it. To start them all would spend the first requests after the
// limit on failures; those that run are left alone. A person's demand is worth a try.
func (p *pass) waitForCredential() bool {
	h := p.Hold
	if h.Reason == "" || p.untried() || (!h.Until.IsZero() && !h.Until.After(p.Now)) {
		return false
	}
	p.plan.NextAttempt = h.Until
	why := "another session with the same credential has failed"
	if h.Session == p.rec.Name {
		why = "it has failed"
	} else if h.Session != "" {
		why = fmt.Sprintf("session %s, which has the same credential, has failed", h.Session)
	}
	if h.Until.IsZero() {
		return p.say(h.Reason, why+"; `muxlet resume` tries at once", pollBudget)
	}
	left := h.Until.Sub(p.Now)
	return p.say(h.Reason, fmt.Sprintf("%s; the next start is in %s, and `muxlet resume` tries at once", why, left.Round(time.Second)), left)
}

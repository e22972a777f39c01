// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec"
)

const settlePoll = 50 * time.Millisecond

// moving are the reasons of sessions that are on their way.
var moving = []string{
	spec.ReasonStarting, spec.ReasonStarted, spec.ReasonStopping, spec.ReasonDied, spec.ReasonAdopted, spec.ReasonConfirming,
	spec.ReasonServerStarting, spec.ReasonWaitingForBudget, spec.ReasonRemoved, spec.ReasonRemovalSettling, spec.ReasonNotYetObserved,
	spec.ReasonUpdating, spec.ReasonOrphan, spec.ReasonNotReady,
}

// UntilSettled waits until every session has come to rest: running, kept down,
// or waiting for something that is not about to happen. The error names those
// that have not within the limit.
func (c *Controller) UntilSettled(ctx context.Context, limit time.Duration) error {
	end := c.Clock.Now().Add(limit)
	for {
		rest := c.unsettled()
		if len(rest) == 0 {
			return nil
		}
		if c.Clock.Now().After(end) {
			return fmt.Errorf("sessions %s have not come to rest within %s: see `muxlet describe`", strings.Join(rest, ", "), limit)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-c.Clock.After(settlePoll):
		}
	}
}

// unsettled names the sessions that are on their way; muxlet itself while it has
// not looked at everything.
func (c *Controller) unsettled() []string {
	snap, _, _ := c.eyes.latest()
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.read || snap == nil || !c.server.scanned || snap.view.State == observe.ServerUnknown || !c.desired.NextCheck.IsZero() {
		return []string{"(not everything was looked at)"}
	}
	var rest []string
	for name, s := range c.sessions {
		d := s.status.Decision
		if d == nil || s.judged != s.wanted || slices.Contains(moving, d.Reason) || d.Action != "" {
			rest = append(rest, name)
		}
	}
	slices.Sort(rest)
	return rest
}

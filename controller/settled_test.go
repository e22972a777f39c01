// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec"
)

// looked is a Controller that has looked at everything and knows one session for
// each decision.
func looked(t *testing.T, decisions map[string]*spec.DecisionStatus) *Controller {
	t.Helper()
	c := bare(t, Options{})
	c.read, c.server.scanned = true, true
	c.eyes.current = &snapshot{view: observe.ServerView{State: observe.ServerRunning}}
	for name, d := range decisions {
		s := newSession(name)
		s.status.Decision = d
		c.sessions[name] = s
	}
	return c
}

func TestSessionsAreSettledOnceNothingIsAboutToHappen(t *testing.T) {
	c := looked(t, map[string]*spec.DecisionStatus{
		"blocked":   {Reason: spec.ReasonWorkspaceMissing},
		"crashing":  {Reason: spec.ReasonCrashLoopBackOff},
		"running":   {Reason: spec.ReasonRunning},
		"suspended": {Reason: spec.ReasonSuspended},

		"acting":   {Reason: spec.ReasonRunning, Action: "KillPane"},
		"new":      nil,
		"starting": {Reason: spec.ReasonStarting},
		"stopping": {Reason: spec.ReasonStopping},
		"waiting":  {Reason: spec.ReasonWaitingForBudget},
	})
	// What is wanted has changed since the session was last judged.
	c.sessions["edited"] = newSession("edited")
	c.sessions["edited"].status.Decision, c.sessions["edited"].wanted = &spec.DecisionStatus{Reason: spec.ReasonRunning}, 1
	assert.Equal(t, []string{"acting", "edited", "new", "starting", "stopping", "waiting"}, c.unsettled())
}

func TestNothingIsSettledBeforeEverythingWasLookedAt(t *testing.T) {
	for name, spoil := range map[string]func(*Controller){
		"manifests not read":     func(c *Controller) { c.read = false },
		"tmux not asked":         func(c *Controller) { c.eyes.current = nil },
		"processes not searched": func(c *Controller) { c.server.scanned = false },
		"tmux unknown":           func(c *Controller) { c.eyes.current = &snapshot{} },
		"a removal is settling":  func(c *Controller) { c.desired.NextCheck = time.Now() },
	} {
		c := looked(t, nil)
		require.Empty(t, c.unsettled())
		spoil(c)
		assert.NotEmpty(t, c.unsettled(), name)
	}
}

func TestWaitingForRestEndsAtItsLimitAndNamesWhoIsOnTheWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := looked(t, map[string]*spec.DecisionStatus{"a": {Reason: spec.ReasonStarting}})
		defer synctest.Wait()
		defer c.queue.ShutDown()
		began := time.Now()
		err := c.UntilSettled(t.Context(), time.Minute)
		require.ErrorContains(t, err, "sessions a have not come to rest within 1m0s")
		assert.GreaterOrEqual(t, time.Since(began), time.Minute)
		assert.Less(t, time.Since(began), time.Minute+time.Second)

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, c.UntilSettled(ctx, time.Hour), context.DeadlineExceeded)

		time.AfterFunc(10*time.Second, func() {
			c.mu.Lock()
			c.sessions["a"].status.Decision = &spec.DecisionStatus{Reason: spec.ReasonRunning}
			c.mu.Unlock()
		})
		began = time.Now()
		require.NoError(t, c.UntilSettled(t.Context(), time.Minute))
		assert.Less(t, time.Since(began), 11*time.Second)
	})
}

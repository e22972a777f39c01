// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/spec"
)

// starting is how many witnesses had been executed and did not show their input line
// yet, at most, at one time.
func starting(all []testimony) (most int) {
	slices.SortStableFunc(all, func(a, b testimony) int { return a.At.Compare(b.At) })
	now := map[string]bool{}
	for _, t := range all {
		switch t.Event {
		case "start":
			now[t.Mark] = true
		case "ready":
			delete(now, t.Mark)
		}
		most = max(most, len(now))
	}
	return most
}

// A hundred sessions that nobody needs cost no process. One turn to each brings up as
// many clients at a time as the settings allow, and each gets its turn once.
func TestAHundredSessionsOnDemandHaveNoClientsUntilEachGetsATurn(t *testing.T) {
	t.Parallel()
	const many, budget = 100, 5
	w := newWorld(t, settings{"starts": settings{"maxInFlight": budget}})
	w.witnesses(200 * time.Millisecond)
	for i := range many {
		w.witness(fmt.Sprintf("s%02d", i), "provisioningPolicy: OnDemand")
	}
	w.start()
	w.waitFor("all are dormant", func() bool { return w.dormant() == many })
	w.holds("there is no client", 2*time.Second, func() bool {
		return !slices.ContainsFunc(w.processes(), func(p process) bool {
			return p.variable("MUXLET_SESSION") != "" || strings.Contains(p.argv, "/witness")
		})
	})
	assert.Equal(t, many, w.dormant())
	assert.Empty(t, w.testimonies(""))

	began := time.Now()
	sent := w.does("send", "-l", "kind=witness", "hello", "--wait", "none", "--timeout", "10m", "-o", "name")
	require.Len(t, strings.Fields(sent), many)
	waitFor(t, "each client has its turn", 5*time.Minute, func() bool { return len(w.testimonies("prompt")) >= many })
	t.Logf("One turn to each of %d, %d starts at a time, took %s", many, budget, time.Since(began).Round(time.Millisecond))
	w.waitFor("each turn is over", func() bool { return w.turnsThatAreOver() == many })
	w.holds("nothing more is delivered or started", 2*time.Second, func() bool { return len(w.testimonies("")) == 4*many })
	w.requireOneTurnEach(many, budget)
}

// turnsThatAreOver counts those that were delivered, and fails for any other that is
// over.
func (w *World) turnsThatAreOver() (n int) {
	w.Helper()
	turns, err := w.api.Turns(w.Context(), "", "")
	require.NoError(w, err)
	for i := range turns.Items {
		if turn := &turns.Items[i]; turn.Status.FinishedAt != nil {
			require.Equal(w, spec.TurnDelivered, spec.DisplayTurnStatus(turn), turn.Name)
			n++
		}
	}
	return n
}

// requireOneTurnEach asks the witnesses.
func (w *World) requireOneTurnEach(many, budget int) {
	w.Helper()
	all := w.testimonies("")
	for _, event := range []string{"start", "ready", "paste", "prompt"} {
		of := map[string]int{}
		for _, t := range all {
			if t.Event == event {
				of[t.Session]++
				assert.Equal(w, t.Text, map[string]string{"paste": "hello", "prompt": "hello"}[event])
			}
		}
		assert.Len(w, of, many, event)
		for session, n := range of {
			assert.Equal(w, 1, n, "%s of %s", event, session)
		}
	}
	most := starting(all)
	assert.LessOrEqual(w, most, budget, "starts at one time")
	w.Logf("At most %d clients were starting at one time", most)
}

// dormant counts the sessions that have no client and are not about to get one.
func (w *World) dormant() (n int) {
	w.Helper()
	list, err := w.api.Sessions(w.Context(), "")
	if err != nil {
		return 0
	}
	for i := range list.Items {
		if s := &list.Items[i]; spec.DisplayStatus(s) == spec.StatusDormant && s.Status.Client.Pid == 0 {
			n++
		}
	}
	return n
}

// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/controller/envtest"
)

// A11
func TestNeverMoreStartsAreInFlightThanTheLimitPermits(t *testing.T) {
	t.Parallel()
	const sessions, limit = 30, 2
	e := envtest.Start(t, envtest.Config{MaxInFlight: limit})
	names := make([]string, sessions)
	for i := range names {
		names[i] = fmt.Sprintf("s%02d", i)
	}
	gate := e.Hold(envtest.WithOrder, "")
	for _, name := range names {
		e.Apply(sleeper(e, name))
	}
	for passed := range sessions {
		var parked []envtest.Entry
		e.Eventually("as many launchers wait as may", func() bool {
			parked = gate.Parked()
			require.LessOrEqual(t, len(parked), limit)
			return len(parked) == min(limit, sessions-passed)
		})
		gate.Pass(parked[0])
	}
	for _, name := range names {
		e.WaitFor(name, envtest.Incarnation(1))
	}
}

// A11: a place in flight that is not used any more is given to who waits for it.
func TestAPlaceInFlightIsPassedOn(t *testing.T) {
	t.Parallel()
	e := envtest.Start(t, envtest.Config{MaxInFlight: 1})
	gate := e.Hold(envtest.AtEntry, "a")
	e.Apply(e.Fake("a", envtest.Script{}))
	gate.WaitParked()
	e.Apply(e.Fake("b", envtest.Script{}))
	e.WaitFor("b", envtest.Because("WaitingForBudget"))
	e.Always(stays, "b waits", func() bool { return len(e.Launches("b")) == 0 })

	// A new controller counts the start that it finds under way.
	e.Restart()
	e.WaitFor("b", envtest.Because("WaitingForBudget"))
	e.Always(stays, "b waits", func() bool { return len(e.Launches("b")) == 0 })

	require.NoError(t, e.Controller().Delete(t.Context(), "a"))
	e.WaitNoSession("a")
	e.WaitFor("b", envtest.Incarnation(1))
}

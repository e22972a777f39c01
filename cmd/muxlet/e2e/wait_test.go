// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/muxlet/muxlet/spec"
)

func TestWaitSeesWhatHappens(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	ready := w.open("wait", "s", "--for=create", "--timeout=2m")
	w.declare("s", "stay")
	ready.shows("session/s condition met")
	assert.Equal(t, "session/s condition met\n", w.does("wait", "s"))
	s := w.get("s")
	next := w.open("wait", "s", "--for=jsonpath={.status.client.incarnation}=2", "--timeout=2m")
	require.NoError(t, unix.Kill(pid(s), unix.SIGKILL))
	next.shows("session/s condition met")
	gone := w.open("wait", "s", "--for=delete", "--timeout=2m")
	w.does("delete", "s")
	gone.shows("session/s condition met")
}

// A wait outlives the daemon, and a session that a new daemon has not looked at yet is not
// taken for gone.
func TestWaitGoesOnWithTheNextDaemon(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.declare("s", "stay")
	w.start()
	w.runs("s")
	w.does("suspend", "s")
	ready := w.open("wait", "s", "--for=condition=Suspended=False", "--timeout=2m")
	gone := w.open("wait", "s", "--for=delete", "--timeout=2m")
	ready.shows("Waiting for condition=Suspended=False of session \"s\": it is Suspended")
	gone.shows("Waiting for delete of session \"s\"")
	w.kill()
	ready.shows("The daemon does not answer any more; waiting for it.")
	gone.shows("The daemon does not answer any more; waiting for it.")
	w.start()
	gone.shows("The daemon answers again.")
	w.does("resume", "s")
	ready.shows("session/s condition met")
	w.holds("the session is there", 2*time.Second, func() bool { return w.get("s") != nil })
	assert.NotContains(t, gone.text(), "condition met")
	w.does("delete", "s")
	gone.shows("session/s condition met")
}

func TestWaitEndsEarlyWhenNothingCanHappen(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write("lost.yaml", document("lost", "[sleep, '1000000']", w.home+"/none"))
	w.declare("held", "stay", "suspend: true")
	w.declare("rests", "stay", "provisioningPolicy: OnDemand")
	w.start()
	w.reaches("lost", spec.StatusBlocked)
	assert.Contains(t, w.refuses(4, "wait", "lost", "--timeout=5m"), "mkdir -p "+w.home+"/none")
	assert.Contains(t, w.refuses(4, "wait", "held", "--timeout=5m"), "muxlet resume held")
	assert.Contains(t, w.refuses(4, "wait", "rests", "--timeout=5m"), "it is Dormant")
	assert.Contains(t, w.refuses(3, "wait", "nobody", "--timeout=5m"), "not found")
	assert.Contains(t, w.refuses(5, "wait", "held", "--for=delete", "--timeout=100ms"), "was not seen within 100ms")
	w.declare("rests", "stay", "provisioningPolicy: OnDemand", "suspnd: true")
	w.becomes("rests", "refused", func(s *spec.Session) bool { return reason(s, spec.ConditionAccepted) == spec.ReasonInvalid })
	assert.Contains(t, w.refuses(1, "wait", "rests", "--for=condition=Accepted", "--timeout=5m"), "suspnd")
	w.declare("rests", "stay", "provisioningPolicy: OnDemand")
	w.becomes("rests", "accepted", func(s *spec.Session) bool { return isTrue(s, spec.ConditionAccepted) })
	w.does("send", "rests", "true", "--wait=none")
	turn := w.muxlet("wait", "turn/rests-1", "--timeout=5m")
	assert.Equal(t, 1, turn.code)
	assert.Contains(t, turn.errOut, "Error: turn \"rests-1\" to session \"rests\"", "a client that reads nothing has not taken it")
}

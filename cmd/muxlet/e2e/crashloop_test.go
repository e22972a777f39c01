// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/spec"
)

// waits for the nth death in a row with backOff.initial 100 ms.
func waitAfter(deaths int32) time.Duration { return 100 * time.Millisecond << max(deaths-2, 0) }

// waits until the session rests after that death or a later one.
func (w *World) inBackOff(name string, deaths int32) *spec.Session {
	w.Helper()
	return w.becomes(name, fmt.Sprintf("in back-off after %d deaths", deaths), func(s *spec.Session) bool {
		return spec.DisplayStatus(s) == spec.StatusCrashLoopBackOff && s.Status.ConsecutiveDeaths >= deaths && s.Status.NextAttemptTime != nil
	})
}

// E1.
func TestTheBackOffOfAClientThatDiesAtOnceGrowsAndIsKept(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{"backOff": settings{"initial": "100ms", "max": "1h"}})
	w.start()
	w.declare("s", "say boom exit 3")
	for deaths := int32(2); deaths <= 7; deaths++ {
		s := w.inBackOff("s", deaths)
		wait := s.Status.NextAttemptTime.Sub(s.Status.Client.LastTermination.FinishedAt.Time)
		assert.InDelta(t, waitAfter(s.Status.ConsecutiveDeaths).Seconds(), wait.Seconds(), 1.5, "after %d deaths", s.Status.ConsecutiveDeaths)
	}
	before := w.inBackOff("s", 7)
	starts := w.countOf("s")
	require.EqualValues(t, 7, before.Status.ConsecutiveDeaths)
	told := w.eventually([]string{"describe", "s"}, "CrashLoopBackOff", "(7th death in a row)", "exit code 3", "| boom", "Next attempt:")
	assert.Contains(t, told, "muxlet logs s")
	assert.Regexp(t, `(?m)^s +exec +CrashLoopBackOff +False +6 \(`, w.does("get"))

	w.kill()
	w.start()
	after := w.inBackOff("s", 7)
	assert.EqualValues(t, 7, after.Status.ConsecutiveDeaths)
	assert.WithinDuration(t, before.Status.NextAttemptTime.Time, after.Status.NextAttemptTime.Time, time.Second)
	assert.Equal(t, starts, w.countOf("s"), "a restart of the daemon is no way round the back-off")
	w.eventually([]string{"describe", "s"}, "(7th death in a row)", "exit code 3", "| boom")
	later := w.inBackOff("s", 8)
	assert.EqualValues(t, 8, later.Status.ConsecutiveDeaths)
	assert.Equal(t, starts+1, w.countOf("s"))

	w.declare("s", "say mended")
	s := w.runs("s")
	assert.True(t, s.Status.Client.StartedAt.Before(later.Status.NextAttemptTime), "an edit is tried at once")
	assert.Zero(t, s.Status.ConsecutiveDeaths)
}

// B13.
func TestAClientThatExitsWithStatusZeroAgainAndAgainIsInBackOff(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{"backOff": settings{"initial": "100ms", "max": "1h"}})
	w.start()
	w.declare("s", "exit 0")
	s := w.inBackOff("s", 5)
	assert.EqualValues(t, 0, *s.Status.Client.LastTermination.ExitCode)
}

func TestAResumeBuysOneAttemptWithoutResettingTheCount(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{"backOff": settings{"initial": "1h", "max": "1h"}})
	w.start()
	w.declare("s", "exit 1")
	s := w.inBackOff("s", 2)
	w.nth("s", 2)
	if a := w.muxlet("resume", "s"); a.code != 0 { // 0: it was seen to run for a moment
		assert.Equal(t, 6, a.code, a.text())
		assert.Contains(t, a.text(), "exited with status 1")
	}
	s = w.inBackOff("s", s.Status.ConsecutiveDeaths+1)
	assert.EqualValues(t, 3, s.Status.ConsecutiveDeaths)
	w.nth("s", 3)
}

// profile writes what every login shell of the world runs first.
func (w *World) profile(text string) {
	w.Helper()
	for _, name := range []string{".bash_profile", ".profile", ".zprofile"} {
		w.write(w.home+"/"+name, text)
	}
}

// interactive declares a client that is started through the account's shell.
func (w *World) interactive(name string, lines ...string) {
	w.Helper()
	w.write(name+".yaml", strings.Replace(w.document(name, "stay", lines...), "shellMode: None", "shellMode: Interactive", 1))
}

// neverAlive waits until the start has timed out twice; the session is never
// shown as alive meanwhile.
func (w *World) neverAlive(name string) {
	w.Helper()
	s := w.becomes(name, "timed out twice", func(s *spec.Session) bool {
		require.False(w, isTrue(s, spec.ConditionClientAlive), "not alive: %+v", s.Status.Conditions)
		require.False(w, isTrue(s, spec.ConditionReady))
		require.Zero(w, s.Status.Client.Pid)
		return s.Status.ConsecutiveDeaths >= 2
	})
	assert.Equal(w, "StartTimeout", s.Status.Client.LastTermination.Reason)
	assert.Zero(w, s.Status.Client.Incarnation, "a number is spent by an attempt whose client was executed")
	assert.Empty(w, w.startsOf(name))
	told := w.does("describe", name)
	assert.Contains(w, told, "StartTimeout")
	assert.Contains(w, told, "profile")
}

// R2.
func TestAProfileThatHangsEndsInStartTimeout(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.profile("echo before; sleep 1000000; echo after\n")
	w.start()
	w.interactive("s", "startupTimeoutSeconds: 1", "terminationGracePeriodSeconds: 1")
	w.neverAlive("s")
	w.profile("export FROM_PROFILE=yes\n")
	s := w.runs("s")
	assert.EqualValues(t, 1, s.Status.Client.Incarnation)
	clients := w.clients("s")
	require.Len(t, clients, 1)
	assert.Equal(t, "yes", clients[0].variable("FROM_PROFILE"), "the client has the environment of a new pane")
	hung := 0
	for _, p := range w.processes() {
		if p.argv == "sleep 1000000 " && p.pid != pid(s) {
			hung++
		}
	}
	assert.Zero(t, hung, "what the profile started is ended with its shell")
}

// C1.
func TestAProfileThatExecutesAnotherShellIsNeverAlive(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.profile("exec sh\n")
	w.start()
	w.interactive("s", "startupTimeoutSeconds: 1", "terminationGracePeriodSeconds: 1")
	w.neverAlive("s")
	w.profile("")
	w.runs("s")
}

func TestAProfileThatIsSlowIsWaitedFor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.profile("sleep 1.5\n")
	w.start()
	w.interactive("s", "startupTimeoutSeconds: 20")
	w.runsAs("s", 1)
	w.nth("s", 1)
	assert.Zero(t, w.get("s").Status.ConsecutiveDeaths)
}

func TestAProfileThatEndsTheShellIsAFailedStart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.profile("echo cannot go on; exit 5\n")
	w.start()
	w.interactive("s")
	s := w.becomes("s", "told how its shell ended", func(s *spec.Session) bool {
		last := s.Status.Client.LastTermination
		return last != nil && strings.Contains(last.Message, "the shell ended before it reached the launcher (exited with status 5)")
	})
	assert.Equal(t, "StartFailed", s.Status.Client.LastTermination.Reason)
	assert.Zero(t, s.Status.Client.Incarnation)
}

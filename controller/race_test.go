// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/utils/ptr"

	"github.com/muxlet/muxlet/actuate"
	"github.com/muxlet/muxlet/controller/envtest"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec"
)

// stages are all places in which a start can be interrupted.
var stages = []envtest.Stage{envtest.AtEntry, envtest.WithLease, envtest.WithOrder, envtest.WithReceipt}

// N2: nothing is left of a session that is deleted, and nothing comes of its
// start, wherever that was.
func TestADeleteDuringAStartLeavesNothing(t *testing.T) {
	for _, stage := range stages {
		t.Run(string(stage), func(t *testing.T) {
			t.Parallel()
			e := envtest.Start(t, envtest.Config{})
			gate := e.Hold(stage, "a")
			e.Apply(e.Fake("a", envtest.Script{}))
			launcher := gate.WaitParked()
			require.NoError(t, e.Controller().Delete(t.Context(), "a"))
			e.WaitNoSession("a")
			e.WaitGone(launcher.Process)
			gate.Open()
			assert.Zero(t, e.Records())
			assert.Empty(t, e.Panes(""))
			e.Always(stays, "nothing comes of it", func() bool { return len(e.Starts("a")) == 0 && len(e.Launches("a")) == 1 })
			receipts, err := filepath.Glob(filepath.Join(e.State, "receipts", "*"))
			require.NoError(t, err)
			assert.Empty(t, receipts)
		})
	}
}

// N2, A13: a suspend during a start.
func TestASuspendDuringAStartKeepsTheSessionDown(t *testing.T) {
	for _, stage := range stages {
		t.Run(string(stage), func(t *testing.T) {
			t.Parallel()
			e := envtest.Start(t, envtest.Config{})
			gate := e.Hold(stage, "a")
			e.Apply(e.Fake("a", envtest.Script{}))
			launcher := gate.WaitParked()
			require.NoError(t, e.Controller().SetSuspend(t.Context(), "a", true))
			e.WaitFor("a", envtest.Shows(spec.StatusSuspended))
			e.WaitGone(launcher.Process)
			gate.Open()
			e.Always(stays, "it stays down", func() bool { return len(e.Starts("a")) == 0 && len(e.Launches("a")) == 1 })
			assert.Zero(t, e.Record("a").BackOff.Deaths, "an end that was asked for is no death")
		})
	}
}

// N2
func TestTwoResumesAtOnceStartOneClient(t *testing.T) {
	t.Parallel()
	e := envtest.Start(t, envtest.Config{})
	e.Run("a")
	require.NoError(t, e.Controller().Terminate(t.Context(), "a"))
	e.WaitFor("a", envtest.Shows(spec.StatusTerminated))

	var both sync.WaitGroup
	for range 2 {
		both.Go(func() { _ = e.Controller().Resume(t.Context(), "a", false) })
	}
	both.Wait()
	e.WaitFor("a", envtest.Incarnation(2))
	e.Always(stays, "one client was started", func() bool { return len(e.Clients("a")) <= 1 && len(e.Launches("a")) == 2 })
}

// N2
func TestAClientThatIsKilledDuringAResumeIsReplacedOnce(t *testing.T) {
	for _, stage := range stages {
		t.Run(string(stage), func(t *testing.T) {
			t.Parallel()
			e := envtest.Start(t, envtest.Config{})
			e.Run("a")
			require.NoError(t, e.Controller().Terminate(t.Context(), "a"))
			e.WaitFor("a", envtest.Shows(spec.StatusTerminated))
			gate := e.Hold(stage, "a")
			require.NoError(t, e.Controller().Resume(t.Context(), "a", false))
			launcher := gate.WaitParked()

			e.Kill(launcher.Process)
			e.Eventually("another launcher waits", func() bool {
				parked := gate.Parked()
				return len(parked) == 1 && parked[0].Process != launcher.Process
			})
			gate.Open()
			e.WaitFor("a", envtest.Running)
			client := e.Client("a")
			assert.NotEqual(t, launcher.Attempt, client.Attempt)
			e.Always(stays, "one client was started", func() bool { return len(e.Clients("a")) == 1 && len(e.Launches("a")) == 3 })
		})
	}
}

// N6
func TestParallelRestartsEndInOneClient(t *testing.T) {
	t.Parallel()
	e := envtest.Start(t, envtest.Config{})
	e.Run("a")
	first := e.Client("a")
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() { _ = e.Controller().Restart(t.Context(), "a") })
	}
	done := make(chan struct{})
	go func() { all.Wait(); close(done) }()
	e.Eventually("all restarts were accepted", func() bool {
		require.LessOrEqual(t, len(e.Clients("a")), 1)
		select {
		case <-done:
			return true
		default:
			return false
		}
	})
	e.Eventually("another client runs", func() bool {
		clients := e.Clients("a")
		require.LessOrEqual(t, len(clients), 1)
		s, ok := e.Session("a")
		return ok && envtest.Running.Holds(s) && len(clients) == 1 && clients[0].Process != first.Process
	})
	e.Always(stays, "it stays the only one", func() bool { return len(e.Clients("a")) == 1 })
}

// R2: the launcher is never reached. It is ended with its pane.
func TestAStartThatNeverBecomesReadyEndsWithStartTimeout(t *testing.T) {
	t.Parallel()
	e := envtest.Start(t, envtest.Config{})
	gate := e.Hold(envtest.AtEntry, "a")
	s := e.Fake("a", envtest.Script{})
	s.Spec.StartupTimeoutSeconds = ptr.To[int32](1)
	e.Apply(s)
	launcher := gate.WaitParked()
	e.Eventually("the timeout is told", func() bool {
		s, ok := e.Session("a")
		last := s.Status.Client.LastTermination
		return ok && last != nil && last.Reason == spec.ReasonStartTimeout
	})
	assert.False(t, launcher.Runs())
	assert.NotEmpty(t, e.Events("a", spec.ReasonStartTimeout))
	gate.Open()
	e.WaitFor("a", envtest.Incarnation(1))
	assert.NotEqual(t, launcher.Attempt, e.Client("a").Attempt)
}

// detachingShell leaves the launcher behind, where nobody looks for it: it is no
// descendant of the shell any more, which would be ended with it.
const detachingShell = `#!/bin/sh
shift 3
( setsid "$@" </dev/null >/dev/null 2>&1 & )
exec sleep 1000
`

// R2: a launcher that outlives the attempt that was given up finds the fence
// closed, however late it comes.
func TestALauncherOfAnAttemptThatWasGivenUpExecutesNothing(t *testing.T) {
	t.Parallel()
	e := envtest.Start(t, envtest.Config{Shell: scriptedShell(t, detachingShell)})
	gate := e.Hold(envtest.AtEntry, "a")
	s := e.Fake("a", envtest.Script{})
	s.Spec.Client.ShellMode = spec.ShellLogin
	s.Spec.StartupTimeoutSeconds = ptr.To[int32](1)
	e.Apply(s)
	late := gate.WaitParked()
	e.Eventually("a second attempt is made", func() bool { return len(gate.Parked()) >= 2 })
	require.True(t, late.Runs())

	gate.Pass(late)
	e.WaitGone(late.Process)
	assert.Empty(t, e.Starts("a"), "the late launcher executed nothing")
	assert.LessOrEqual(t, len(e.Clients("a")), 1)
	gate.Open()
	e.Eventually("a later attempt succeeds", func() bool { return len(e.Starts("a")) > 0 })
	for _, start := range e.Starts("a") {
		assert.NotEqual(t, late.Attempt, start.Attempt)
	}
}

// obstinateShell leaves the launcher behind as well, and cannot be ended politely.
const obstinateShell = `#!/bin/sh
trap "" TERM
shift 3
setsid "$@" </dev/null >/dev/null 2>&1 &
exec sleep 1000
`

// R2: the fence is closed from the moment in which an attempt is given up, and not
// only once another one has taken its place.
func TestALauncherFindsTheFenceClosedWhileItsPaneIsStillBeingEnded(t *testing.T) {
	t.Parallel()
	e := envtest.Start(t, envtest.Config{Shell: scriptedShell(t, obstinateShell)})
	gate := e.Hold(envtest.AtEntry, "a")
	s := e.Fake("a", envtest.Script{})
	s.Spec.Client.ShellMode = spec.ShellLogin
	s.Spec.StartupTimeoutSeconds = ptr.To[int32](1)
	s.Spec.TerminationGracePeriodSeconds = ptr.To[int32](3600)
	e.Apply(s)
	late := gate.WaitParked()
	e.Eventually("its pane is being ended", func() bool { return len(e.Actions(actuate.ActionSignal)) > 0 })
	gate.Pass(late)
	e.WaitGone(late.Process)
	assert.Equal(t, late.Attempt, e.Record("a").Attempt.ID, "the attempt is still pending")
	assert.Empty(t, e.Starts("a"))
}

// R2: a launcher that has read its order before the fence was closed is waited
// for, since it may execute the client at any moment.
func TestAnAttemptIsNotGivenUpWhileItsLauncherHoldsTheLease(t *testing.T) {
	t.Parallel()
	e := envtest.Start(t, envtest.Config{Shell: scriptedShell(t, detachingShell)})
	gate := e.Hold(envtest.WithOrder, "a")
	s := e.Fake("a", envtest.Script{})
	s.Spec.Client.ShellMode = spec.ShellLogin
	s.Spec.StartupTimeoutSeconds = ptr.To[int32](1)
	e.Apply(s)
	late := gate.WaitParked()
	e.Eventually("its pane was given up", func() bool {
		panes := e.Panes("a")
		return len(panes) == 1 && panes[0].State == observe.Dead
	})
	e.Always(stays, "no other launcher is started", func() bool { return len(e.Launches("a")) == 1 })

	gate.Open()
	e.Eventually("the client without a pane was replaced", func() bool {
		clients := e.Clients("a")
		require.LessOrEqual(t, len(clients), 1)
		return len(clients) == 1 && clients[0].Process != late.Process
	})
	assert.EqualValues(t, 2, e.Client("a").Incarnation)
}

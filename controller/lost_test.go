// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muxlet/muxlet/actuate"
	"github.com/muxlet/muxlet/controller/envtest"
	"github.com/muxlet/muxlet/spec"
)

// A1 (without conversations)
func TestSessionsComeBackAfterTmuxDiedAndOneThatCannotBlocksNoOther(t *testing.T) {
	t.Parallel()
	e := envtest.Start(t, envtest.Config{})
	own := filepath.Join(e.Dir, "own")
	require.NoError(t, os.Mkdir(own, 0o700))
	lame := e.Fake("c", envtest.Script{})
	lame.Spec.Workspace.Directory = own
	e.Apply(lame)
	e.Run("a", "b")
	e.WaitFor("c", envtest.Running)

	e.Drop()
	e.KillServer()
	require.NoError(t, os.Remove(own))
	e.Boot()

	e.WaitFor("a", envtest.Incarnation(2))
	e.WaitFor("b", envtest.Incarnation(2))
	e.WaitFor("c", envtest.Shows(spec.StatusBlocked), envtest.Because(spec.ReasonWorkspaceMissing))

	require.NoError(t, os.Mkdir(own, 0o700))
	e.WaitFor("c", envtest.Incarnation(2))
	for _, name := range []string{"a", "b", "c"} {
		assert.EqualValues(t, 2, e.Client(name).Incarnation)
	}
}

// A2
func TestSessionsWhoseServerDiedWithoutADaemonSayWhyAndComeBack(t *testing.T) {
	t.Parallel()
	e := envtest.Start(t, envtest.Config{})
	e.Run("a", "b")
	e.Drop()
	e.KillServer()
	gate := e.Hold(envtest.AtEntry, "")
	e.Boot()

	for _, name := range []string{"a", "b"} {
		s := e.WaitFor(name, envtest.Shows(spec.StatusStarting),
			envtest.Condition(spec.ConditionReady, metav1.ConditionFalse, spec.ReasonStarting))
		last := s.Status.Client.LastTermination
		require.NotNil(t, last)
		assert.Equal(t, spec.ReasonLost, last.Reason)
		assert.Nil(t, last.ExitCode, "nobody saw how it ended")
		assert.Contains(t, last.Message, "pane was lost")
		assert.Zero(t, s.Status.Client.Pid)
	}
	assert.Equal(t, 2, e.Records())
	gate.Open()
	e.WaitFor("a", envtest.Incarnation(2))
	e.WaitFor("b", envtest.Incarnation(2))
}

// A3
func TestAKilledPaneIsToldAndTheSessionBroughtBack(t *testing.T) {
	t.Parallel()
	e := envtest.Start(t, envtest.Config{})
	e.Run("a")
	old := e.Client("a")

	e.Tmux("kill-pane", "-t", e.Panes("a")[0].PaneID)
	s := e.WaitFor("a", envtest.Incarnation(2))

	e.WaitGone(old.Process)
	assert.Contains(t, s.Status.Client.LastTermination.Message, "pane was lost")
	assert.Len(t, e.Events("a", spec.ReasonDied), 1)
	assert.EqualValues(t, 2, e.Client("a").Incarnation)
	assert.Len(t, e.Panes("a"), 1)
}

// A3
func TestAKilledClientIsBroughtBackInTheSamePane(t *testing.T) {
	t.Parallel()
	e := envtest.Start(t, envtest.Config{})
	e.Run("a")
	pane := e.Panes("a")[0]

	e.Kill(e.Client("a").Process)
	s := e.WaitFor("a", envtest.Incarnation(2))

	assert.Equal(t, "SIGKILL", s.Status.Client.LastTermination.Signal)
	assert.EqualValues(t, 137, *s.Status.Client.LastTermination.ExitCode)
	after := e.Panes("a")
	require.Len(t, after, 1)
	assert.Equal(t, pane.PaneID, after[0].PaneID)
}

// A6
func TestAnEmptyListingRemovesNothing(t *testing.T) {
	t.Parallel()
	e := envtest.Start(t, envtest.Config{})
	var names []string
	for i := range 10 {
		names = append(names, fmt.Sprintf("s%d", i))
	}
	for _, name := range names {
		e.Apply(sleeper(e, name))
	}
	for _, name := range names {
		e.WaitFor(name, envtest.Running)
	}
	e.Drop()
	for _, name := range names {
		e.Tmux("kill-session", "-t", "="+name)
	}
	listing, ok := e.Listing()
	require.True(t, ok)
	require.Empty(t, listing.Panes)
	gate := e.Hold(envtest.AtEntry, "")
	e.Boot()

	gate.WaitParked()
	e.Always(stays, "all ten records are there", func() bool { return e.Records() == 10 })
	assert.Empty(t, e.Actions(actuate.ActionKillPane, actuate.ActionSignal))
	gate.Open()
	for _, name := range names {
		e.WaitFor(name, envtest.Incarnation(2))
	}
}

// A8
func TestARestartOfTheDaemonKeepsEveryClient(t *testing.T) {
	t.Parallel()
	e := envtest.Start(t, envtest.Config{})
	names := []string{"a", "b", "c"}
	e.Run(names...)
	before := map[string]envtest.Entry{}
	for _, name := range names {
		before[name] = e.Client(name)
	}
	for range 5 {
		e.Restart()
		for _, name := range names {
			s := e.WaitFor(name, envtest.Incarnation(1))
			assert.Equal(t, before[name].Process.PID, s.Status.Client.Pid)
		}
	}
	for _, name := range names {
		assert.Equal(t, before[name].Process, e.Client(name).Process)
		assert.Len(t, e.Launches(name), 1)
	}
}

// A13
func TestASuspendedSessionIsSuspendedAfterAReboot(t *testing.T) {
	t.Parallel()
	e := envtest.Start(t, envtest.Config{})
	e.Run("a", "b")
	require.NoError(t, e.Controller().SetSuspend(t.Context(), "a", true))
	e.WaitFor("a", envtest.Shows(spec.StatusSuspended))
	e.NoClient("a")

	e.Drop()
	e.KillServer()
	e.Boot()

	e.WaitFor("b", envtest.Incarnation(2))
	e.WaitFor("a", envtest.Shows(spec.StatusSuspended))
	e.Always(stays, "the suspended session has no client", func() bool { return len(e.Launches("a")) == 1 })

	require.NoError(t, e.Controller().SetSuspend(t.Context(), "a", false))
	e.WaitFor("a", envtest.Incarnation(2))
}

func TestASessionWithRecoveryPolicyDormantStaysDownAfterALossUntilItIsResumed(t *testing.T) {
	t.Parallel()
	e := envtest.Start(t, envtest.Config{})
	s := e.Fake("a", envtest.Script{})
	s.Spec.RecoveryPolicy = spec.RecoveryDormant
	e.Apply(s)
	e.WaitFor("a", envtest.Running)
	e.Restart()
	e.WaitFor("a", envtest.Incarnation(1))

	e.Drop()
	e.KillServer()
	e.Boot()
	e.WaitFor("a", envtest.Shows(spec.StatusDormant), envtest.Because(spec.ReasonNotRecovered))
	e.Restart()
	e.WaitFor("a", envtest.Shows(spec.StatusDormant))
	e.Always(stays, "the session stays down", func() bool { return len(e.Launches("a")) == 1 })

	require.NoError(t, e.Controller().Resume(t.Context(), "a", false))
	e.WaitFor("a", envtest.Incarnation(2))
}

// N1
func TestASessionThatAPersonKillsComesBackAndOneTheyTerminateStaysDown(t *testing.T) {
	t.Parallel()
	e := envtest.Start(t, envtest.Config{})
	e.Run("a")
	e.Tmux("kill-session", "-t", "=a")
	e.WaitFor("a", envtest.Incarnation(2))

	require.NoError(t, e.Controller().Terminate(t.Context(), "a"))
	e.WaitFor("a", envtest.Shows(spec.StatusTerminated))
	e.NoClient("a")
	launches := len(e.Launches("a"))

	e.Restart()
	e.WaitFor("a", envtest.Shows(spec.StatusTerminated))
	e.Drop()
	e.KillServer()
	e.Boot()
	e.WaitFor("a", envtest.Shows(spec.StatusTerminated))
	e.Always(stays, "the terminated session stays down", func() bool { return len(e.Launches("a")) == launches })

	require.NoError(t, e.Controller().Resume(t.Context(), "a", false))
	e.WaitFor("a", envtest.Incarnation(3))
}

// sleeper is a session with the cheapest client there is.
func sleeper(e *envtest.Env, name string) *spec.Session {
	s := e.Fake(name, envtest.Script{})
	s.Spec.Client.Command = []string{"sleep", "1000"}
	return s
}

// stays is how long a test looks whether nothing happens: some passes.
const stays = 3 * envtest.Resync / 2

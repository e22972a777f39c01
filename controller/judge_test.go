// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muxlet/muxlet/actuate"
	"github.com/muxlet/muxlet/controller/envtest"
	"github.com/muxlet/muxlet/spec"
)

// stayingShell runs what it is told as a child, and goes on when that has ended.
const stayingShell = `#!/bin/sh
shift 3
"$@"
echo back in the shell
exec sleep 1000
`

// scriptedShell makes a program that stands for the person's shell.
func scriptedShell(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "sh")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o700))
	return path
}

// C1
func TestAShellThatOutlivesItsClientIsNotTakenForIt(t *testing.T) {
	t.Parallel()
	e := envtest.Start(t, envtest.Config{Shell: scriptedShell(t, stayingShell)})
	s := e.Fake("a", envtest.Script{})
	s.Spec.Client.ShellMode = spec.ShellInteractive
	e.Apply(s)
	e.WaitFor("a", envtest.Running)
	client, pane := e.Client("a"), e.Panes("a")[0]
	require.NotEqual(t, pane.PID, client.Process.PID, "the client is a child of the shell")

	shell := e.Process(pane.PID)
	gate := e.Hold(envtest.AtEntry, "a")
	e.Kill(client.Process)
	down := e.WaitFor("a", envtest.Condition(spec.ConditionClientAlive, metav1.ConditionFalse, ""))
	assert.Zero(t, down.Status.Client.Pid)
	assert.False(t, down.Status.Client.Ready)
	gate.WaitParked()
	gate.Open()

	e.WaitFor("a", envtest.Incarnation(2))
	after := e.Panes("a")
	require.Len(t, after, 1)
	assert.Equal(t, pane.PaneID, after[0].PaneID, "the next one came into the same pane")
	e.WaitGone(shell)
}

// noSuchFile puts the other wording of "no server" in place of tmux's own.
const noSuchFile = `
case "$*" in *list-panes*)
	case $("$real" "$@" 2>&1 >/dev/null) in "no server running on "*)
		echo "error connecting to /run/tmux.sock (No such file or directory)" >&2
		exit 1
	esac
esac`

// C4: either wording counts, since the recorded server is proven dead.
func TestBothWordingsOfNoServerLeadToRecovery(t *testing.T) {
	for name, meddle := range map[string]string{"no server running": "", "no such file": noSuchFile} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := envtest.Start(t, envtest.Config{Meddled: true})
			e.Run("a", "b")
			e.Drop()
			e.KillServer()
			e.Meddle(meddle)
			e.Boot()
			e.WaitFor("a", envtest.Incarnation(2))
			e.WaitFor("b", envtest.Incarnation(2))
			assert.Len(t, e.Servers(), 1)
		})
	}
}

// C4, under a running controller
func TestADeadServerIsReplacedAndItsSessionsBroughtBack(t *testing.T) {
	t.Parallel()
	e := envtest.Start(t, envtest.Config{})
	e.Run("a", "b")
	e.KillServer()
	e.WaitFor("a", envtest.Incarnation(2))
	e.WaitFor("b", envtest.Incarnation(2))
	assert.Len(t, e.Events("", spec.ReasonServerLost), 1)
	assert.Len(t, e.Servers(), 1)
}

// C5
func TestASessionWhoseServerIsGoneCanBeDeleted(t *testing.T) {
	t.Parallel()
	e := envtest.Start(t, envtest.Config{})
	e.Run("a")
	e.Drop()
	e.KillServer()
	e.Delete("a")
	e.Boot()
	// An emptied directory may be one that is not mounted: a person says that it
	// is meant.
	e.WaitFor("a", envtest.Condition(spec.ConditionAccepted, metav1.ConditionTrue, spec.ReasonRemovalHeld))
	require.NoError(t, e.Controller().Delete(t.Context(), "a"))
	e.WaitNoSession("a")
	assert.Zero(t, e.Records())
	assert.Len(t, e.Launches("a"), 1)
}

// C8
func TestWhatAnEarlierDaemonKnewIsNotShownAsTrue(t *testing.T) {
	t.Parallel()
	e := envtest.Start(t, envtest.Config{Meddled: true, TmuxTimeout: 2 * time.Second})
	e.Run("a")
	pid := e.Client("a").Process.PID
	e.Drop()
	e.Meddle(`exec sleep 1000`)
	e.Boot()

	s := e.WaitFor("a", envtest.Shows(spec.StatusUnknown), envtest.Condition(spec.ConditionClientAlive, metav1.ConditionUnknown, ""))
	assert.Zero(t, s.Status.Client.Pid)
	assert.False(t, s.Status.Client.Ready)
	assert.EqualValues(t, 1, s.Status.Client.Incarnation)
	e.WaitFor("a", envtest.Condition(spec.ConditionObserved, metav1.ConditionFalse, spec.ReasonTmuxTimeout))

	e.Meddle("")
	s = e.WaitFor("a", envtest.Incarnation(1))
	assert.Equal(t, pid, s.Status.Client.Pid)
}

// D4
func TestAClientIsAliveWhateverItCallsItself(t *testing.T) {
	for name, script := range map[string]envtest.Script{
		"with an unexpected name":          {Rename: "x) Z 1 (tmux:"},
		"without its environment":          {Forgets: true},
		"without what it inherited":        {Closes: true},
		"without name, environment, lease": {Rename: "node", Forgets: true, Closes: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := envtest.Start(t, envtest.Config{})
			e.Apply(e.Fake("a", script))
			e.WaitFor("a", envtest.Running)
			client := e.Client("a")

			e.Restart()
			s := e.WaitFor("a", envtest.Incarnation(1))
			e.Always(stays, "the client runs", envtest.Holds(e, "a", envtest.Incarnation(1)))
			assert.Equal(t, client.Process.PID, s.Status.Client.Pid)
			assert.Empty(t, e.Actions(actuate.ActionSignal))

			e.Kill(client.Process)
			e.WaitFor("a", envtest.Incarnation(2))
			assert.Len(t, e.Launches("a"), 2)
		})
	}
}

// D4, M4: with the state lost as well, the lease tells who it is.
func TestAClientThatHidesIsAdoptedByItsLease(t *testing.T) {
	t.Parallel()
	e := envtest.Start(t, envtest.Config{})
	e.Apply(e.Fake("a", envtest.Script{Rename: "node", Forgets: true}))
	e.WaitFor("a", envtest.Running)
	client := e.Client("a")
	e.Drop()
	e.DropState()
	e.Boot()
	s := e.WaitFor("a", envtest.Incarnation(1))
	assert.Equal(t, client.Process.PID, s.Status.Client.Pid)
	assert.Len(t, e.Launches("a"), 1)
}

// D4, M4: what nothing tells of is left alone, and nothing is started beside it.
func TestAClientThatNothingTellsOfIsNeitherTouchedNorDoubled(t *testing.T) {
	t.Parallel()
	e := envtest.Start(t, envtest.Config{})
	e.Apply(e.Fake("a", envtest.Script{Rename: "node", Forgets: true, Closes: true}))
	e.WaitFor("a", envtest.Running)
	client := e.Client("a")
	e.Drop()
	e.DropState()
	e.Boot()
	e.WaitFor("a", envtest.Shows(spec.StatusConflict))
	e.Always(stays, "the client runs alone", func() bool { return client.Runs() && len(e.Launches("a")) == 1 })

	e.Kill(client.Process)
	e.WaitFor("a", envtest.Incarnation(2))
}

// A person's panes, windows, names and their being there change no judgement.
// D8: and they survive a restart of the client.
func TestWhatAPersonDoesInASessionChangesNoJudgement(t *testing.T) {
	t.Parallel()
	e := envtest.Start(t, envtest.Config{})
	e.Run("a")
	client, pane := e.Client("a"), e.Panes("a")[0]
	e.Tmux("split-window", "-t", pane.PaneID, "--", "sleep", "1000")
	e.Tmux("new-window", "-t", "=a:", "-n", "mine", "--", "sleep", "1000")
	e.Tmux("rename-window", "-t", pane.PaneID, "x#{pid}")
	e.Tmux("break-pane", "-d", "-s", pane.PaneID)
	e.Tmux("rename-session", "-t", "=a:", "renamed")
	e.Attach("renamed")
	e.WaitFor("a", envtest.Check{Words: "is attached to", Holds: func(s spec.Session) bool {
		return s.Status.Tmux != nil && s.Status.Tmux.Attached == 1
	}})
	e.Always(stays, "the client runs", envtest.Holds(e, "a", envtest.Incarnation(1)))
	assert.Equal(t, client.Process, e.Client("a").Process)
	assert.Len(t, e.Panes(""), 3)

	e.Kill(client.Process)
	e.WaitFor("a", envtest.Incarnation(2))
	assert.Len(t, e.Panes(""), 3, "the person's panes are there")
	after := e.Panes("a")
	require.Len(t, after, 1)
	assert.Equal(t, pane.PaneID, after[0].PaneID)
	assert.Equal(t, "renamed", after[0].SessionName)
}

// E4, M4: the pane of a dead client of the session itself still has the name, and
// the state is lost. It is taken over, and no number is used again.
func TestADeadPaneOfTheSessionItselfIsTakenOverWithoutAnyState(t *testing.T) {
	t.Parallel()
	e := envtest.Start(t, envtest.Config{})
	e.Run("a")
	client, pane := e.Client("a"), e.Panes("a")[0]
	e.Drop()
	e.DropState()
	e.Kill(client.Process)
	e.WaitGone(client.Process)
	e.Boot()
	e.WaitFor("a", envtest.Incarnation(2))
	after := e.Panes("")
	require.Len(t, after, 1)
	assert.Equal(t, pane.PaneID, after[0].PaneID)
}

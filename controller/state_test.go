// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muxlet/muxlet/controller/envtest"
	"github.com/muxlet/muxlet/controller/server"
	"github.com/muxlet/muxlet/spec"
)

// M4
func TestRunningSessionsAreAdoptedWhenTheStateIsLost(t *testing.T) {
	t.Parallel()
	e := envtest.Start(t, envtest.Config{})
	e.Run("a", "b")
	e.Kill(e.Client("b").Process)
	e.WaitFor("b", envtest.Incarnation(2))
	a, b, server := e.Client("a"), e.Client("b"), e.Server()
	instance := e.Controller().Status().Instance
	e.Drop()
	e.DropState()
	e.Boot()

	s := e.WaitFor("a", envtest.Incarnation(1))
	assert.Equal(t, a.Process.PID, s.Status.Client.Pid)
	s = e.WaitFor("b", envtest.Incarnation(2))
	assert.Equal(t, b.Process.PID, s.Status.Client.Pid)
	assert.NotEmpty(t, e.Events("a", spec.ReasonAdopted))
	assert.Equal(t, instance, e.Controller().Status().Instance)
	assert.Equal(t, server, e.Server())
	assert.Len(t, e.Launches(""), 3)

	// The uid is the old one, too: what tmux shows is still ours.
	assert.Equal(t, e.Panes("a")[0].Labels.UID, string(s0(e, "a").UID))
	require.NoError(t, e.Controller().Delete(t.Context(), "a"))
	e.WaitNoSession("a")
	e.WaitGone(a.Process)
}

func s0(e *envtest.Env, name string) spec.Session {
	e.Helper()
	s, ok := e.Session(name)
	require.True(e, ok)
	return s
}

// M4: the state and the runtime directory are lost; the server is found as what
// it is, and asked for its socket.
func TestRunningSessionsAreAdoptedWhenStateAndRuntimeAreLost(t *testing.T) {
	t.Parallel()
	e := envtest.Start(t, envtest.Config{})
	e.Run("a")
	a, server := e.Client("a"), e.Server()
	e.Drop()
	e.DropState()
	require.NoError(t, os.RemoveAll(e.Runtime))
	e.Boot()
	s := e.WaitFor("a", envtest.Incarnation(1))
	assert.Equal(t, a.Process.PID, s.Status.Client.Pid)
	assert.Equal(t, server, e.Server())
	assert.Len(t, e.Launches("a"), 1)
}

// M4: a backup of the state is put back that knows an earlier incarnation, one
// that was suspended, and one that was about to start.
func TestARolledBackStateIsBroughtUpToWhatRuns(t *testing.T) {
	t.Parallel()
	e := envtest.Start(t, envtest.Config{})
	e.Run("a", "b")
	require.NoError(t, e.Controller().Terminate(t.Context(), "b"))
	e.WaitFor("b", envtest.Shows(spec.StatusTerminated))
	gate := e.Hold(envtest.AtEntry, "c")
	e.Apply(e.Fake("c", envtest.Script{}))
	gate.WaitParked()
	e.Drop()
	backup := filepath.Join(e.Dir, "backup")
	e.CopyState(e.State, backup)
	e.Boot()

	gate.Open()
	require.NoError(t, e.Controller().Resume(t.Context(), "b", false))
	e.WaitFor("b", envtest.Incarnation(2))
	e.WaitFor("c", envtest.Incarnation(1))
	for n := range 3 {
		e.Kill(e.Client("a").Process)
		e.WaitFor("a", envtest.Incarnation(int64(n)+2))
	}
	a, b, c := e.Client("a"), e.Client("b"), e.Client("c")
	launches := len(e.Launches(""))

	e.Drop()
	e.CopyState(backup, e.State)
	e.Boot()
	e.WaitFor("a", envtest.Incarnation(4))
	e.WaitFor("b", envtest.Incarnation(2))
	e.WaitFor("c", envtest.Incarnation(1))
	assert.Equal(t, a.Process, e.Client("a").Process)
	assert.Equal(t, b.Process, e.Client("b").Process)
	assert.Equal(t, c.Process, e.Client("c").Process)
	e.Always(stays, "nothing is started", func() bool { return len(e.Launches("")) == launches })

	e.Kill(a.Process)
	e.WaitFor("a", envtest.Incarnation(5))
}

// M4: the damaged record of a running session.
func TestASessionWhoseRecordIsDamagedGoesOn(t *testing.T) {
	t.Parallel()
	e := envtest.Start(t, envtest.Config{})
	e.Run("a")
	client := e.Client("a")
	e.Drop()
	records, err := filepath.Glob(filepath.Join(e.State, "records", "*"))
	require.NoError(t, err)
	for _, file := range records {
		require.NoError(t, os.WriteFile(file, []byte("{half a rec"), 0o600))
	}
	e.Boot()
	s := e.WaitFor("a", envtest.Incarnation(1))
	assert.Equal(t, client.Process.PID, s.Status.Client.Pid)
	assert.Len(t, e.Launches("a"), 1)
	assert.NotEmpty(t, e.Events("", spec.ReasonRecordQuarantined))
}

// A typing mistake in the document: the client is left alone, and when it dies it
// comes back with its last good spec, also under a daemon that never saw that.
func TestASessionGoesOnWithItsLastGoodSpec(t *testing.T) {
	t.Parallel()
	e := envtest.Start(t, envtest.Config{})
	e.Run("a")
	client := e.Client("a")
	e.Write("a.yaml", e.Document(e.Fake("a", envtest.Script{}))+"  restartPolcy: Never\n")
	s := e.WaitFor("a", envtest.Condition(spec.ConditionAccepted, metav1.ConditionFalse, spec.ReasonInvalid))
	require.NotNil(t, s.Status.Source)
	assert.Contains(t, s.Status.Source.Error, "restartPolicy", "the nearest right spelling")
	assert.Equal(t, client.Process, e.Client("a").Process)

	e.Kill(client.Process)
	e.WaitFor("a", envtest.Check{Words: "runs as incarnation 2", Holds: func(s spec.Session) bool {
		return s.Status.Client.Incarnation == 2 && s.Status.Client.Ready
	}})
	e.Drop()
	e.Kill(e.Client("a").Process)
	e.Boot()
	e.Eventually("a third client runs", func() bool { return len(e.Starts("a")) == 3 })
}

// An emptied manifest directory stops nothing; a delete that a person asked for
// does.
func TestAnEmptiedManifestDirectoryStopsNothing(t *testing.T) {
	t.Parallel()
	e := envtest.Start(t, envtest.Config{})
	names := []string{"a", "b", "c", "d"}
	for _, name := range names {
		e.Apply(sleeper(e, name))
	}
	for _, name := range names {
		e.WaitFor(name, envtest.Running)
	}
	for _, name := range names {
		e.Delete(name)
	}
	for _, name := range names {
		e.WaitFor(name, envtest.Condition(spec.ConditionAccepted, metav1.ConditionTrue, spec.ReasonRemovalHeld))
	}
	e.Restart()
	e.Always(stays, "all sessions go on", func() bool { return e.Records() == 4 && len(e.Panes("")) == 4 })
	for _, name := range names {
		e.WaitFor(name, envtest.Incarnation(1))
	}
	result, err := e.Controller().Prune(t.Context(), true)
	require.NoError(t, err)
	assert.Len(t, result.Removed, 4)
	for _, name := range names {
		e.WaitNoSession(name)
	}
	assert.Empty(t, e.Panes(""))
}

// A client that only a look can tell to be the session's is looked for before its
// document goes: without both it would run for ever.
func TestASessionIsNotDeletedBeforeItsClientIsLookedFor(t *testing.T) {
	t.Parallel()
	e := envtest.Start(t, envtest.Config{Meddled: true})
	e.Run("a")
	e.Drop()
	e.DropState()
	e.Meddle(`echo "lost server" >&2; exit 1`)
	e.Boot()
	e.Eventually("the session is known", func() bool { _, ok := e.Session("a"); return ok })
	err := e.Controller().Delete(e.Context(), "a")
	assert.Equal(t, server.ReasonTmuxUnavailable, server.ReasonOf(err))
	e.Client("a")

	e.Meddle("")
	e.Eventually("it is deleted", func() bool { return e.Controller().Delete(e.Context(), "a") == nil })
	e.WaitNoSession("a")
	e.NoClient("a")
}

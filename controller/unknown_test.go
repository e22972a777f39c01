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

// unknown checks that a session shows that it could not be looked at.
func unknown(reason string) []envtest.Check {
	return []envtest.Check{
		envtest.Shows(spec.StatusUnknown),
		envtest.Condition(spec.ConditionObserved, metav1.ConditionFalse, reason),
		envtest.Condition(spec.ConditionClientAlive, metav1.ConditionUnknown, ""),
		envtest.Condition(spec.ConditionReady, metav1.ConditionUnknown, ""),
	}
}

// onlyLooked says whether nothing was done since the first n actions but to
// repair the server's socket.
func onlyLooked(e *envtest.Env, n int) func() bool {
	return func() bool {
		for _, a := range e.Actions()[n:] {
			if a.Kind != actuate.ActionRestoreSocket {
				return false
			}
		}
		return true
	}
}

// D2, D9, C4: whatever tmux says instead of a whole listing proves nothing, even
// about a client that has died meanwhile.
func TestWhileTmuxCannotBeAskedNothingIsDone(t *testing.T) {
	for name, c := range map[string]struct{ meddle, reason string }{
		"EAGAIN": {
			`echo "error connecting to /run/tmux.sock (Resource temporarily unavailable)" >&2; exit 1`,
			spec.ReasonTmuxFailed,
		},
		"no answer":      {`exec sleep 1000`, spec.ReasonTmuxTimeout},
		"no word":        {`exit 1`, spec.ReasonTmuxFailed},
		"silence":        {`exit 0`, spec.ReasonListingIncomplete},
		"server exited":  {`echo "server exited unexpectedly" >&2; exit 1`, spec.ReasonTmuxFailed},
		"access refused": {`echo "access not allowed" >&2; exit 0`, spec.ReasonTmuxDenied},
		"half a listing": {`case "$*" in *list-panes*) "$real" "$@" | head -n 2; exit 0; esac`, spec.ReasonListingIncomplete},
		"half a line":    {`case "$*" in *list-panes*) "$real" "$@" | head -c 200; exit 0; esac`, spec.ReasonListingIncomplete},
		"no listener":    {`echo "no server running on /run/tmux.sock" >&2; exit 1`, spec.ReasonTmuxUnreachable},
		"no socket": {
			`echo "error connecting to /run/tmux.sock (No such file or directory)" >&2; exit 1`,
			spec.ReasonTmuxUnreachable,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := envtest.Start(t, envtest.Config{Meddled: true, TmuxTimeout: 3 * time.Second})
			e.Run("a", "b")
			survivor := e.Client("b")

			e.Meddle(c.meddle)
			e.WaitFor("a", unknown(c.reason)...)
			e.WaitFor("b", unknown(c.reason)...)
			n := len(e.Actions())
			e.Kill(e.Client("a").Process)
			e.Always(stays, "nothing is done", onlyLooked(e, n))
			assert.Equal(t, 2, e.Records())

			e.Meddle("")
			e.WaitFor("a", envtest.Incarnation(2))
			e.WaitFor("b", envtest.Incarnation(1))
			assert.Equal(t, survivor.Process, e.Client("b").Process)
			assert.Len(t, e.Servers(), 1)
		})
	}
}

// D1: the server answers nobody, so that all sessions look dead at once.
func TestAnUnreachableServerKillsNoSession(t *testing.T) {
	t.Parallel()
	e := envtest.Start(t, envtest.Config{TmuxTimeout: time.Second})
	names := []string{"a", "b", "c", "d", "e", "f"}
	for _, name := range names {
		e.Apply(sleeper(e, name))
	}
	pids := map[string]int{}
	for _, name := range names {
		pids[name] = e.WaitFor(name, envtest.Running).Status.Client.Pid
	}
	server := e.Server()
	e.Signal(server, "SIGSTOP")
	for _, name := range names {
		e.WaitFor(name, unknown(spec.ReasonTmuxTimeout)...)
	}
	n := len(e.Actions())
	e.Always(stays, "nothing is done", onlyLooked(e, n))
	e.Signal(server, "SIGCONT")
	for _, name := range names {
		s := e.WaitFor(name, envtest.Incarnation(1))
		assert.Equal(t, pids[name], s.Status.Client.Pid)
	}
	assert.Equal(t, server, e.Server())
}

// D1: the socket is lost while the server lives on; also across a restart, and
// with the whole runtime directory.
func TestALostSocketIsRecoveredWithoutASecondServer(t *testing.T) {
	for name, lose := range map[string]func(*envtest.Env) error{
		"socket": func(e *envtest.Env) error { return os.Remove(e.Socket()) },
		"runtime": func(e *envtest.Env) error {
			// In one step: the daemon makes anew what it misses meanwhile.
			away := e.Runtime + ".away"
			if err := os.Rename(e.Runtime, away); err != nil {
				return err
			}
			return os.RemoveAll(away)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := envtest.Start(t, envtest.Config{})
			e.Run("a")
			server, client := e.Server(), e.Client("a")
			for _, down := range []bool{false, true} {
				if down {
					e.Drop()
				}
				require.NoError(t, lose(e))
				if down {
					e.Boot()
				}
				e.Eventually("the socket is there again", func() bool {
					_, err := os.Stat(e.Socket())
					return err == nil
				})
				e.WaitFor("a", envtest.Incarnation(1))
				assert.Equal(t, server, e.Server())
				assert.Equal(t, client.Process, e.Client("a").Process)
			}
			assert.Len(t, e.Servers(), 1)
			assert.Len(t, e.Launches("a"), 1)
		})
	}
}

// D1: a second server takes the path of a server that lives.
func TestASecondServerOnThePathDoublesNothing(t *testing.T) {
	t.Parallel()
	e := envtest.Start(t, envtest.Config{})
	e.Run("a")
	first, client := e.Server(), e.Client("a")
	e.Drop()
	require.NoError(t, os.Remove(e.Socket()))
	e.StartServer("new-session", "-d", "-s", "a", "--", "sleep", "1000")
	second := e.Server()
	require.NotEqual(t, first, second)
	e.Boot()

	e.WaitFor("a", envtest.Incarnation(1))
	assert.Equal(t, first, e.Server(), "the recorded server took its socket back")
	assert.Equal(t, client.Process, e.Client("a").Process)
	assert.Len(t, e.Launches("a"), 1)
}

// D2
func TestWithoutATmuxProgramNothingIsKnownUntilItIsInstalled(t *testing.T) {
	t.Parallel()
	e := envtest.Make(t, envtest.Config{Meddled: true})
	program := filepath.Join(e.Dir, "tmux")
	require.NoError(t, os.Rename(program, program+".away"))
	e.Apply(e.Fake("a", envtest.Script{}))
	e.Boot()
	s := e.WaitFor("a", envtest.Condition(spec.ConditionObserved, metav1.ConditionFalse, spec.ReasonTmuxNotFound))
	assert.Equal(t, spec.StatusUnknown, spec.DisplayStatus(&s))
	assert.Empty(t, e.Actions())

	require.NoError(t, os.Rename(program+".away", program))
	e.WaitFor("a", envtest.Incarnation(1))

	require.NoError(t, os.Rename(program, program+".away"))
	e.WaitFor("a", unknown(spec.ReasonTmuxNotFound)...)
	require.NoError(t, os.Rename(program+".away", program))
	e.WaitFor("a", envtest.Incarnation(1))
}

// D2, X1: the running server is asked through its own program.
func TestARunningServerIsAskedWithoutTheTmuxProgram(t *testing.T) {
	t.Parallel()
	e := envtest.Make(t, envtest.Config{Meddled: true})
	e.Meddled = false
	e.Boot()
	e.Run("a")
	require.NoError(t, os.Remove(filepath.Join(e.Dir, "tmux")))
	e.Kill(e.Client("a").Process)
	e.WaitFor("a", envtest.Incarnation(2))
}

// F4
func TestAWedgedCallOfTmuxBlocksNoOtherSession(t *testing.T) {
	t.Parallel()
	e := envtest.Start(t, envtest.Config{Meddled: true, TmuxTimeout: 15 * time.Second})
	e.Run("a")
	e.Meddle(`case "$*" in *"'-s' 'b'"*) exec sleep 1000; esac`)
	e.Apply(e.Fake("b", envtest.Script{}))
	e.Eventually("the start of b is asked for", func() bool { return len(e.Actions(actuate.ActionCreate)) == 2 })
	asked := time.Now()

	e.Kill(e.Client("a").Process)
	e.Apply(e.Fake("c", envtest.Script{}))
	e.WaitFor("a", envtest.Incarnation(2))
	e.WaitFor("c", envtest.Incarnation(1))
	b, ok := e.Session("b")
	require.True(t, ok)
	assert.NotEqual(t, spec.StatusRunning, spec.DisplayStatus(&b))
	require.Less(t, time.Since(asked), 10*time.Second, "the call for b is still wedged")

	e.Meddle("")
	e.WaitFor("b", envtest.Incarnation(1))
	e.Client("b")
	assert.Len(t, e.Starts("b"), 1)
	assert.Empty(t, e.Panes("b")[1:])
}

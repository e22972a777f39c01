// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/utils/ptr"

	"github.com/muxlet/muxlet/actuate"
	"github.com/muxlet/muxlet/controller/envtest"
	"github.com/muxlet/muxlet/spec"
)

// stubborn is a session whose client ignores every polite signal and has children
// in its own process group, in another one, and in another session.
func stubborn(e *envtest.Env, name string) *spec.Session {
	s := e.Fake(name, envtest.Script{
		Ignore: []string{"SIGHUP", "SIGTERM"},
		Forks:  []envtest.Fork{envtest.ForkPlain, envtest.ForkGroup, envtest.ForkSession},
	})
	s.Spec.TerminationGracePeriodSeconds = ptr.To[int32](1)
	return s
}

// K1
func TestAStubbornClientAndItsChildrenAreEnded(t *testing.T) {
	for name, c := range map[string]struct {
		end   func(t *testing.T, e *envtest.Env) error
		ended func(e *envtest.Env)
	}{
		"by a delete": {
			func(t *testing.T, e *envtest.Env) error { return e.Controller().Delete(t.Context(), "a") },
			func(e *envtest.Env) {
				e.WaitNoSession("a")
				assert.Empty(e, e.Panes(""))
				assert.Zero(e, e.Records())
			},
		},
		"by a suspend": {
			func(t *testing.T, e *envtest.Env) error { return e.Controller().SetSuspend(t.Context(), "a", true) },
			func(e *envtest.Env) { e.WaitFor("a", envtest.Shows(spec.StatusSuspended)) },
		},
		"by a terminate": {
			func(t *testing.T, e *envtest.Env) error { return e.Controller().Terminate(t.Context(), "a") },
			func(e *envtest.Env) { e.WaitFor("a", envtest.Shows(spec.StatusTerminated)) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := envtest.Start(t, envtest.Config{})
			e.Apply(stubborn(e, "a"))
			client := e.Client("a")
			e.Eventually("its children run", func() bool { return len(e.Children("a")) == 3 })
			e.WaitFor("a", envtest.Running)

			require.NoError(t, c.end(t, e))
			c.ended(e)
			assert.False(t, client.Runs(), "the client was ended")
			for _, child := range e.Children("a") {
				assert.False(t, child.Runs(), "child %s was ended", child.Process)
			}
			assert.Len(t, e.Launches("a"), 1)
		})
	}
}

// A restart leaves the children and lists them.
func TestARestartLeavesTheClientsChildren(t *testing.T) {
	t.Parallel()
	e := envtest.Start(t, envtest.Config{})
	e.Apply(e.Fake("a", envtest.Script{Forks: []envtest.Fork{envtest.ForkSession}}))
	e.Client("a")
	e.Eventually("its child runs", func() bool { return len(e.Children("a")) == 1 })
	child := e.Children("a")[0]
	e.WaitFor("a", envtest.Running)

	require.NoError(t, e.Controller().Restart(t.Context(), "a"))
	s := e.WaitFor("a", envtest.Incarnation(2))
	assert.True(t, child.Runs())
	assert.Contains(t, s.Status.Client.Survivors, child.Process.PID)
}

// The tmux server is killed under clients that ignore its hang-up: each is ended
// before the next one is started.
func TestClientsThatOutliveTheirServerAreEndedBeforeOthersAreStarted(t *testing.T) {
	t.Parallel()
	for name, restart := range map[string]bool{"under the daemon": false, "while it is down": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := envtest.Start(t, envtest.Config{})
			names := []string{"a", "b", "c"}
			for _, name := range names {
				s := e.Fake(name, envtest.Script{Ignore: []string{"SIGHUP", "SIGTERM"}})
				s.Spec.TerminationGracePeriodSeconds = ptr.To[int32](1)
				e.Apply(s)
			}
			old := map[string]envtest.Entry{}
			for _, name := range names {
				e.WaitFor(name, envtest.Running)
				old[name] = e.Client(name)
			}
			if restart {
				e.Drop()
			}
			e.KillServer()
			if restart {
				e.Boot()
			}
			e.Eventually("each has one client, and it is another one", func() bool {
				done := true
				for _, name := range names {
					clients := e.Clients(name)
					require.LessOrEqual(t, len(clients), 1, "clients of %s", name)
					done = done && len(clients) == 1 && clients[0].Process != old[name].Process
				}
				return done
			})
			for _, name := range names {
				e.WaitFor(name, envtest.Incarnation(2))
				assert.False(t, old[name].Runs())
			}
		})
	}
}

// A client whose pane a person killed and which ignores the hang-up.
func TestAClientThatOutlivesItsPaneIsEndedFirst(t *testing.T) {
	t.Parallel()
	e := envtest.Start(t, envtest.Config{})
	e.Apply(e.Fake("a", envtest.Script{Ignore: []string{"SIGHUP"}, Closes: true, Rename: "node"}))
	old := e.Client("a")
	e.WaitFor("a", envtest.Running)
	e.Tmux("kill-pane", "-t", e.Panes("a")[0].PaneID)
	e.WaitFor("a", envtest.Incarnation(2))
	assert.False(t, old.Runs())
	assert.NotEmpty(t, e.Events("a", spec.ReasonOrphan))
	assert.Len(t, e.Actions(actuate.ActionSignal), 1, "SIGTERM was enough")
}

// The state is lost together with the server while clients live on: their marks
// tell whose they are.
func TestClientsThatOutliveServerAndStateAreFoundByTheirMarks(t *testing.T) {
	t.Parallel()
	e := envtest.Start(t, envtest.Config{})
	e.Apply(e.Fake("a", envtest.Script{Ignore: []string{"SIGHUP"}}))
	old := e.Client("a")
	e.WaitFor("a", envtest.Running)
	instance := e.Controller().Status().Instance
	e.Drop()
	e.KillServer()
	e.DropState()
	require.True(t, old.Runs())
	e.Boot()
	s := e.WaitFor("a", envtest.Running)
	assert.False(t, old.Runs())
	assert.Equal(t, instance, e.Controller().Status().Instance)
	assert.EqualValues(t, 2, s.Status.Client.Incarnation, "no number is used again")
}

// Two clients of one session: the one that the record knows stays.
func TestASecondClientOfASessionIsEnded(t *testing.T) {
	t.Parallel()
	e := envtest.Start(t, envtest.Config{})
	e.Run("a")
	client := e.Client("a")
	e.Drop()
	twin := e.Twin("a")
	e.Boot()
	e.WaitGone(twin.Process)
	e.WaitFor("a", envtest.Incarnation(1))
	assert.Equal(t, client.Process, e.Client("a").Process)
	assert.NotEmpty(t, e.Events("a", spec.ReasonDuplicateClient))
}

// Two clients of which the record knows none: the one in the session's pane is
// the session's.
func TestOfTwoUnknownClientsTheOneInThePaneStays(t *testing.T) {
	t.Parallel()
	e := envtest.Start(t, envtest.Config{})
	e.Run("a")
	client := e.Client("a")
	e.Drop()
	twin := e.Twin("a")
	e.DropState()
	e.Boot()
	e.WaitGone(twin.Process)
	e.WaitFor("a", envtest.Incarnation(1))
	assert.Equal(t, client.Process, e.Client("a").Process)
}

// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/muxlet/muxlet/actuate"
	"github.com/muxlet/muxlet/controller/envtest"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec"
)

// takes runs a person's own program in our pane and returns its process.
func (r room) takes() observe.Process {
	r.Helper()
	r.Tmux("respawn-pane", "-k", "-t", r.pane, "--", "sleep", "1000")
	return r.inside()
}

func (r room) inside() observe.Process {
	r.Helper()
	pid, err := strconv.Atoi(r.Tmux("display-message", "-p", "-t", r.pane, "#{pane_pid}"))
	require.NoError(r, err)
	return r.Process(pid)
}

// beside waits until the client runs in another pane than the one that was taken,
// and checks that this one is the person's, with what they run in it.
func (r room) beside(program observe.Process, incarnation int64) {
	r.Helper()
	s := r.WaitFor(r.name, envtest.Incarnation(incarnation))
	assert.NotEqual(r, r.pane, s.Status.Tmux.Pane)
	ours := r.Panes(r.name)
	require.Len(r, ours, 1, "the pane that they took has no label of ours")
	assert.Equal(r, s.Status.Tmux.Pane, ours[0].PaneID)
	assert.Equal(r, program, r.inside(), "what the person runs goes on")
	assert.NotEmpty(r, r.Events(r.name, spec.ReasonPaneTaken))
	r.Client(r.name)
}

// A person's own respawn takes the pane: what they run is theirs, the client comes
// back beside it, and the removal of the session leaves it alone.
func TestAPaneThatAPersonTakesIsTheirsAndTheClientComesBackBesideIt(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]envtest.Script{
		"the client ends by that":         {},
		"the client outlives the hang-up": {Ignore: []string{"SIGHUP"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := envtest.Start(t, envtest.Config{})
			e.Apply(e.Fake("a", script))
			e.WaitFor("a", envtest.Running)
			r := roomOf(e, "a")
			program := r.takes()
			r.beside(program, 2)
			assert.False(t, r.client.Runs())
			assert.Equal(t, r.Tmux("display-message", "-p", "-t", r.pane, "#{session_id}"), e.Panes("a")[0].SessionID, "in the same tmux session")
			e.Restart()
			r.beside(program, 2)

			require.NoError(t, e.Controller().Delete(t.Context(), "a"))
			e.WaitNoSession("a")
			assert.Equal(t, program, r.inside())
			assert.Len(t, e.Panes(""), 1)
		})
	}
}

// Without a command tmux runs our own launcher again, which refuses: the pane is
// ours still, and the client comes back in it.
func TestAPersonsRespawnWithoutACommandIsARestartInThePane(t *testing.T) {
	t.Parallel()
	for _, shell := range []spec.ShellMode{spec.ShellNone, spec.ShellLogin} {
		t.Run(string(shell), func(t *testing.T) {
			t.Parallel()
			e := envtest.Start(t, envtest.Config{})
			s := e.Fake("a", envtest.Script{})
			s.Spec.Client.ShellMode = shell
			e.Apply(s)
			e.WaitFor("a", envtest.Running)
			r := roomOf(e, "a")
			e.Tmux("respawn-pane", "-k", "-t", r.pane)
			e.WaitFor("a", envtest.Incarnation(2))
			after := e.Panes("")
			require.Len(t, after, 1)
			assert.Equal(t, r.pane, after[0].PaneID)
			e.Client("a")
			assert.False(t, r.client.Runs())
			assert.Len(t, e.Starts("a"), 2)
		})
	}
}

// A pane that is taken while its launcher is on the way: nothing that the person
// runs is ended when the start is given up.
func TestAStartWhosePaneAPersonTakesEndsNothingOfTheirs(t *testing.T) {
	t.Parallel()
	e := envtest.Start(t, envtest.Config{})
	gate := e.Hold(envtest.AtEntry, "a")
	s := e.Fake("a", envtest.Script{})
	s.Spec.StartupTimeoutSeconds = ptr.To[int32](2)
	e.Apply(s)
	gate.WaitParked()
	r := room{Env: e, name: "a", pane: e.Panes("a")[0].PaneID}
	program := r.takes()
	gate.Open()
	r.beside(program, 1)
}

// A dead pane that a person takes while the session is down is theirs as well. When
// what they ran has ended, it is our dead pane again.
func TestADeadPaneThatAPersonTakesIsTheirsWhileTheyUseIt(t *testing.T) {
	t.Parallel()
	e := envtest.Start(t, envtest.Config{})
	e.Run("a", "b")
	rooms := []room{roomOf(e, "a"), roomOf(e, "b")}
	programs := map[string]observe.Process{}
	for _, r := range rooms {
		require.NoError(t, e.Controller().Terminate(t.Context(), r.name))
		e.WaitFor(r.name, envtest.Shows(spec.StatusTerminated))
		programs[r.name] = r.takes()
	}
	e.Kill(programs["b"])
	e.WaitGone(programs["b"])
	since := time.Now()
	for _, r := range rooms {
		e.WaitFor(r.name, envtest.Shows(spec.StatusTerminated), lookedAt(since))
		require.NoError(t, e.Controller().Resume(t.Context(), r.name, false))
	}
	rooms[0].beside(programs["a"], 2)
	e.WaitFor("b", envtest.Incarnation(2))
	assert.Equal(t, rooms[1].pane, e.Panes("b")[0].PaneID)
}

// A person ends panes, windows and sessions of ours while others of theirs are
// there: the client comes back beside those, and never twice.
func TestWhatAPersonEndsComesBackBesideWhatTheyKeep(t *testing.T) {
	t.Parallel()
	e := envtest.Start(t, envtest.Config{})
	ends := map[string]func(r room){
		"pane":   func(r room) { r.splits(); r.Tmux("kill-pane", "-t", r.pane) },
		"window": func(r room) { r.opens(); r.Tmux("kill-window", "-t", r.pane) },
		"vanish": func(r room) {
			r.splits()
			r.Tmux("set-option", "-p", "-t", r.pane, "remain-on-exit", "off")
			r.Kill(r.client.Process)
		},
		"session": func(r room) {
			_, other := r.visits()
			r.Tmux("join-pane", "-s", r.splits(), "-t", other)
			r.Tmux("kill-session", "-t", "="+r.name)
		},
		"elsewhere": func(r room) {
			_, other := r.visits()
			r.Tmux("join-pane", "-s", r.pane, "-t", other)
			r.Tmux("kill-pane", "-t", r.pane)
		},
		// All windows of our tmux session are linked into an older one of theirs.
		"linked": func(r room) {
			r.Tmux("link-window", "-s", r.opens(), "-t", "=older:")
			r.Tmux("kill-pane", "-t", r.pane)
		},
	}
	e.Run("first")
	e.Tmux("new-session", "-d", "-s", "older", "--", "sleep", "1000")
	for name := range ends {
		e.Apply(e.Fake(name, envtest.Script{}))
	}
	for name := range ends {
		e.WaitFor(name, envtest.Running)
		ends[name](roomOf(e, name))
	}
	before := theirs(e)
	for name := range ends {
		s := e.WaitFor(name, envtest.Incarnation(2))
		assert.Equal(t, name, e.Tmux("display-message", "-p", "-t", s.Status.Tmux.Session+":", "#{session_name}"))
		assert.Len(t, e.Panes(name), 1)
		e.Client(name)
	}
	assert.Equal(t, before, theirs(e))
}

// opens makes a window of the person's in our tmux session and returns its pane.
func (r room) opens() string {
	r.Helper()
	return r.Tmux("new-window", "-d", "-P", "-F", "#{pane_id}", "-t", "="+r.name+":", "--", "sleep", "1000")
}

// A tmux session of ours that a person gives the name of another session is in
// that one's way, and is left alone.
func TestATmuxSessionThatIsRenamedToAnothersNameIsAConflict(t *testing.T) {
	t.Parallel()
	e := envtest.Start(t, envtest.Config{})
	e.Run("a")
	client := e.Client("a")
	e.Tmux("rename-session", "-t", "=a:", "b")
	e.Apply(e.Fake("b", envtest.Script{}))
	e.WaitFor("b", envtest.Shows(spec.StatusConflict), envtest.Because(spec.ReasonNameConflict))
	since := time.Now()
	e.WaitFor("a", envtest.Incarnation(1), lookedAt(since))
	e.Tmux("rename-session", "-t", "=b:", "mine")
	e.WaitFor("b", envtest.Incarnation(1))
	assert.Equal(t, client.Process, e.Client("a").Process)
	assert.Len(t, e.Launches("a"), 1)
}

// kill-server is a person's way to end everything: everything comes back, once.
func TestEverySessionComesBackAfterAPersonsKillServer(t *testing.T) {
	t.Parallel()
	e := envtest.Start(t, envtest.Config{})
	e.Run("a", "b")
	old := []envtest.Entry{e.Client("a"), e.Client("b")}
	server := e.Server()
	e.Tmux("kill-server")
	e.WaitGone(server)
	for i, name := range []string{"a", "b"} {
		e.WaitFor(name, envtest.Incarnation(2))
		assert.False(t, old[i].Runs())
		e.Client(name)
	}
}

// restart, suspend and terminate act on our pane, wherever a person has put it,
// and on nothing that stands around it. D8
func TestActionsReachTheClientWhereverItsPaneIs(t *testing.T) {
	t.Parallel()
	e := envtest.Start(t, envtest.Config{})
	e.Run("a")
	r := roomOf(e, "a")
	_, other := r.visits()
	r.splits()
	e.Tmux("join-pane", "-s", r.pane, "-t", other)
	before, window := theirs(e), r.window()

	require.NoError(t, e.Controller().Restart(t.Context(), "a"))
	e.WaitFor("a", envtest.Incarnation(2))
	require.NoError(t, e.Controller().SetSuspend(t.Context(), "a", true))
	e.WaitFor("a", envtest.Shows(spec.StatusSuspended))
	e.NoClient("a")
	require.NoError(t, e.Controller().SetSuspend(t.Context(), "a", false))
	e.WaitFor("a", envtest.Incarnation(3))
	e.Apply(edited(e, "a", spec.UpdateRecreate))
	e.WaitFor("a", envtest.Incarnation(4), envtest.Condition(spec.ConditionUpToDate, metav1.ConditionTrue, ""))
	require.NoError(t, e.Controller().Terminate(t.Context(), "a"))
	e.WaitFor("a", envtest.Shows(spec.StatusTerminated))
	require.NoError(t, e.Controller().Resume(t.Context(), "a", false))
	s := e.WaitFor("a", envtest.Incarnation(5))

	assert.Equal(t, r.pane, s.Status.Tmux.Pane)
	assert.Equal(t, window, r.window())
	assert.Equal(t, before, theirs(e))
	assert.Len(t, e.Actions(actuate.ActionCreate), 1)
}

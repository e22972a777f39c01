// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muxlet/muxlet/controller/envtest"
	"github.com/muxlet/muxlet/spec"
)

// echoes is a session whose client repeats each line that is typed.
func echoes(e *envtest.Env, name string) *spec.Session {
	e.Helper()
	s := e.Fake(name, envtest.Script{})
	s.Spec.Client.Command = []string{"cat"}
	return s
}

// attached is a session that so many people are attached to.
func attached(n int) envtest.Check {
	return envtest.Check{Words: "is attached to", Holds: func(s spec.Session) bool {
		return s.Status.Tmux != nil && s.Status.Tmux.Attached == n
	}}
}

// A person in front of a client, and another one in a group of their own who looks
// at another window, keep their views while the client dies, is suspended and
// replaced, and while the daemon is restarted. A8, D8
func TestAttachedPeopleKeepTheirViewWhileTheClientIsReplaced(t *testing.T) {
	t.Parallel()
	e := envtest.Start(t, envtest.Config{})
	e.Run("a")
	r := roomOf(e, "a")
	r.splits("-h", "-l", "30")
	window := r.opens()
	first := e.Attach("a")
	second := e.AttachWith(100, 30, "new-session", "-s", "mine", "-t", "=a", ";", "select-window", "-t", window)
	e.WaitFor("a", attached(2))
	before, people := theirs(e), []string{first.View(), second.View()}
	require.NotEqual(t, people[0], people[1])
	same := func() {
		t.Helper()
		views := []string{first.View(), second.View()}
		assert.Equal(t, people, views)
		assert.Equal(t, before, theirs(e))
		assert.Equal(t, r.pane, e.Panes("a")[0].PaneID)
	}

	e.Kill(r.client.Process)
	e.WaitFor("a", envtest.Incarnation(2))
	same()
	for range 2 {
		e.Restart()
		e.WaitFor("a", envtest.Incarnation(2), attached(2))
	}
	same()
	require.NoError(t, e.Controller().SetSuspend(t.Context(), "a", true))
	e.WaitFor("a", envtest.Shows(spec.StatusSuspended))
	same()
	require.NoError(t, e.Controller().SetSuspend(t.Context(), "a", false))
	e.WaitFor("a", envtest.Incarnation(3))
	same()
	e.Apply(edited(e, "a", spec.UpdateRecreate))
	e.WaitFor("a", envtest.Incarnation(4))
	same()
}

// What a person types goes to the client that runs, to none that ran before, and
// is lost while none does. A mode of tmux takes the keys until the client is
// replaced: then tmux leaves it, and the keys are the new client's.
func TestWhatAPersonTypesGoesToTheClientThatRuns(t *testing.T) {
	t.Parallel()
	e := envtest.Start(t, envtest.Config{})
	e.Apply(echoes(e, "a"))
	s := e.WaitFor("a", envtest.Running)
	pane := s.Status.Tmux.Pane
	screen := func() string { return e.Tmux("capture-pane", "-p", "-S", "-", "-t", pane) }
	person := e.Attach("a")
	person.Type("first\r")
	e.Eventually("the client repeats it", func() bool { return strings.Count(screen(), "first\n") == 2 })

	require.NoError(t, e.Controller().Terminate(t.Context(), "a"))
	e.WaitFor("a", envtest.Shows(spec.StatusTerminated))
	person.Type("nobody hears this\r")
	require.NoError(t, e.Controller().Resume(t.Context(), "a", false))
	e.WaitFor("a", envtest.Incarnation(2))
	person.Type("second\r")
	e.Eventually("the new client repeats it", func() bool { return strings.Count(screen(), "second\n") == 2 })

	e.Tmux("copy-mode", "-t", pane)
	s = e.WaitFor("a", envtest.Running)
	e.Kill(e.Process(s.Status.Client.Pid))
	e.Eventually("the client is replaced while the person types", func() bool {
		person.Type("\r")
		return envtest.Holds(e, "a", envtest.Incarnation(3))()
	})
	assert.Equal(t, "0", e.Tmux("display-message", "-p", "-t", pane, "#{pane_in_mode}"))
	person.Type("third\r")
	e.Eventually("the third client repeats it", func() bool { return strings.Count(screen(), "third\n") == 2 })
	assert.NotContains(t, screen(), "nobody hears this")
	assert.Equal(t, 2, strings.Count(screen(), "first\n"), "what was on the screen is in the history")
}

// F5: a small terminal, anywhere on the server, makes no new session small. Whoever
// attaches gives it theirs.
func TestNewSessionsHaveTheirOwnSizeWhateverTerminalIsAttached(t *testing.T) {
	t.Parallel()
	e := envtest.Start(t, envtest.Config{})
	e.Run("a")
	e.AttachWith(80, 24, "attach-session", "-t", "=a")
	e.WaitFor("a", attached(1))
	size := func(name string) string {
		return e.Tmux("display-message", "-p", "-t", e.Panes(name)[0].PaneID, "#{pane_width}x#{pane_height}")
	}
	assert.Equal(t, "80x23", size("a"))

	b := e.Fake("b", envtest.Script{})
	b.Spec.Terminal = spec.TerminalSpec{Columns: 132, Rows: 43}
	e.Apply(b)
	e.Run("c")
	e.WaitFor("b", envtest.Running)
	assert.Equal(t, "132x43", size("b"))
	assert.Equal(t, "200x50", size("c"))

	// Also for a client that comes back beside a person's panes.
	e.Tmux("split-window", "-d", "-t", e.Panes("b")[0].PaneID, "--", "sleep", "1000")
	e.Tmux("kill-pane", "-t", e.Panes("b")[0].PaneID)
	e.WaitFor("b", envtest.Incarnation(2))
	assert.Equal(t, "132x43", size("b"))
	e.AttachWith(90, 30, "attach-session", "-t", e.Panes("b")[0].PaneID)
	e.Eventually("the person's size holds", func() bool { return size("b") == "90x29" })
}

// P1: WhenIdle waits for a person who looks at the client through a group of their
// own, or in a session of theirs that its pane was moved to.
func TestAnEditWaitsForWhoeverHasTheClientBeforeThem(t *testing.T) {
	t.Parallel()
	e := envtest.Start(t, envtest.Config{})
	e.Run("group", "moved")
	_, other := roomOf(e, "moved").visits()
	e.Tmux("join-pane", "-s", roomOf(e, "moved").pane, "-t", other)
	people := map[string]*envtest.Terminal{
		"group": e.AttachWith(100, 30, "new-session", "-s", "mine", "-t", "=group"),
		"moved": e.Attach("my-moved"),
	}
	for name := range people {
		e.WaitFor(name, attached(1))
		e.Apply(edited(e, name, spec.UpdateWhenIdle))
	}
	for name := range people {
		s := e.WaitFor(name, envtest.Incarnation(1), envtest.Condition(spec.ConditionUpToDate, metav1.ConditionFalse, spec.ReasonUpdatePending))
		assert.NotZero(t, s.Status.Client.Pid)
	}
	e.Always(stays, "nothing is replaced", func() bool { return len(e.Launches("")) == 2 })
	for name, person := range people {
		person.Leave()
		e.WaitFor(name, envtest.Incarnation(2), envtest.Condition(spec.ConditionUpToDate, metav1.ConditionTrue, ""))
	}
}

// B10: the directory of a session that has run is gone when its client dies. The
// session names the directory and comes back in the same pane, before the same
// person, once the directory is there.
func TestASessionWhoseDirectoryIsGoneComesBackInItsPaneWithoutAnEdit(t *testing.T) {
	t.Parallel()
	e := envtest.Start(t, envtest.Config{})
	dir := filepath.Join(e.Dir, "own")
	require.NoError(t, os.Mkdir(dir, 0o700))
	s := e.Fake("a", envtest.Script{})
	s.Spec.Workspace.Directory = dir
	e.Apply(s)
	e.WaitFor("a", envtest.Running)
	r := roomOf(e, "a")
	r.splits()
	person := e.Attach("a")
	view := person.View()

	require.NoError(t, os.Remove(dir))
	e.WaitFor("a", envtest.Incarnation(1))
	e.Kill(r.client.Process)
	blocked := e.WaitFor("a", envtest.Shows(spec.StatusBlocked), envtest.Because(spec.ReasonWorkspaceMissing))
	assert.Contains(t, blocked.Status.Decision.Message, dir)
	require.NoError(t, os.Mkdir(dir, 0o700))
	e.WaitFor("a", envtest.Incarnation(2))
	assert.Equal(t, r.pane, e.Panes("a")[0].PaneID)
	assert.Equal(t, view, person.View())
}

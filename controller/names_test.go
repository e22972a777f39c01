// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/controller/envtest"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec"
)

// I1
func TestDeletingASessionLeavesOneWithALongerNameAlone(t *testing.T) {
	t.Parallel()
	e := envtest.Start(t, envtest.Config{})
	e.Run("a-1", "a-10", "a-11")
	gone, stays10 := e.Client("a-1"), e.Client("a-10")
	e.Delete("a-1")
	e.WaitNoSession("a-1")
	e.WaitGone(gone.Process)
	e.WaitFor("a-10", envtest.Incarnation(1))
	e.WaitFor("a-11", envtest.Incarnation(1))
	assert.Equal(t, stays10.Process, e.Client("a-10").Process)
	assert.Empty(t, e.Panes("a-1"))
	assert.Len(t, e.Panes(""), 2)
}

// I3
func TestTwoDaemonsDoNotSeeEachOthersSessions(t *testing.T) {
	t.Parallel()
	one, two := envtest.Start(t, envtest.Config{}), envtest.Start(t, envtest.Config{})
	one.Run("a", "b")
	two.Run("a", "b")
	a, b := two.Client("a"), two.Client("b")

	one.Delete("a")
	one.WaitNoSession("a")
	one.KillServer()
	one.WaitFor("b", envtest.Incarnation(2))
	one.Restart()
	two.Restart()
	one.WaitFor("b", envtest.Incarnation(2))
	two.WaitFor("a", envtest.Incarnation(1))
	two.WaitFor("b", envtest.Incarnation(1))
	assert.Equal(t, a.Process, two.Client("a").Process)
	assert.Equal(t, b.Process, two.Client("b").Process)
	assert.Empty(t, one.Controller().Status().Unclaimed)
	assert.Empty(t, two.Controller().Status().Unclaimed)
}

// I6
func TestAForeignTmuxSessionWithTheNameIsLeftAlone(t *testing.T) {
	t.Parallel()
	e := envtest.Start(t, envtest.Config{})
	e.Run("a")
	e.Tmux("new-session", "-d", "-s", "b", "--", "sleep", "1000")
	pid := e.Tmux("list-panes", "-t", "=b:", "-F", "#{pane_pid}")

	e.Apply(e.Fake("b", envtest.Script{}))
	s := e.WaitFor("b", envtest.Shows(spec.StatusConflict), envtest.Because(spec.ReasonNameConflict))
	assert.Contains(t, s.Status.Decision.Message, "b")
	e.Restart()
	e.WaitFor("b", envtest.Shows(spec.StatusConflict))
	e.Always(stays, "nothing is started", func() bool { return len(e.Launches("b")) == 0 })
	assert.Equal(t, pid, e.Tmux("list-panes", "-t", "=b:", "-F", "#{pane_pid}"))

	e.Tmux("kill-session", "-t", "=b")
	e.WaitFor("b", envtest.Incarnation(1))
}

// I6, E4: a pane of ours that an earlier incarnation died in is used again.
func TestTheDeadPaneOfAnEarlierIncarnationIsTakenOver(t *testing.T) {
	t.Parallel()
	e := envtest.Start(t, envtest.Config{})
	e.Run("a")
	pane, client := e.Panes("a")[0], e.Client("a")
	e.Drop()
	e.Kill(client.Process)
	e.WaitGone(client.Process)
	e.Boot()
	e.WaitFor("a", envtest.Incarnation(2))
	after := e.Panes("")
	require.Len(t, after, 1)
	assert.Equal(t, pane.PaneID, after[0].PaneID)
}

// K3: labels of another instance, even with this session's uid and name, make a
// pane nobody's. A process that inherited the mark of a client is no client.
func TestOnlyWhatIsProvenToBeOursIsTouched(t *testing.T) {
	t.Parallel()
	e := envtest.Start(t, envtest.Config{})
	s := e.Fake("a", envtest.Script{Forks: []envtest.Fork{envtest.ForkPlain, envtest.ForkSession}})
	e.Apply(s)
	client := e.Client("a")
	e.Eventually("its children run", func() bool { return len(e.Children("a")) == 2 })
	pane := e.Panes("a")[0]
	foreign := disguisedPane(e, "foreign", map[string]string{
		observe.OptionInstance: "another", observe.OptionUID: pane.Labels.UID, observe.OptionName: "a",
		observe.OptionAttempt: pane.Labels.Attempt, observe.OptionIncarnation: "1", observe.OptionRole: observe.RoleClient,
	})
	// A global option shows in every pane that has none of its own.
	bystander := disguisedPane(e, "bystander", nil)
	e.Tmux("set-option", "-g", observe.OptionUID, pane.Labels.UID)
	e.Tmux("set-option", "-g", observe.OptionName, "a")

	e.Always(stays, "the session goes on", envtest.Holds(e, "a", envtest.Incarnation(1)))
	for _, child := range e.Children("a") {
		assert.True(t, child.Runs(), "a child that inherited the mark")
	}
	require.NoError(t, e.Controller().Delete(t.Context(), "a"))
	e.WaitNoSession("a")
	e.WaitGone(client.Process)
	for _, p := range []observe.Process{foreign, bystander} {
		assert.Equal(t, p, e.Process(p.PID))
	}
	assert.Len(t, e.Panes(""), 2)
}

// disguisedPane makes a tmux session of a person's with options on its pane, and
// returns the process in it.
func disguisedPane(e *envtest.Env, session string, options map[string]string) observe.Process {
	e.Helper()
	e.Tmux("new-session", "-d", "-s", session, "--", "sleep", "1000")
	for option, value := range options {
		e.Tmux("set-option", "-p", "-t", "="+session+":", option, value)
	}
	pid, err := strconv.Atoi(e.Tmux("list-panes", "-t", "="+session+":", "-F", "#{pane_pid}"))
	require.NoError(e, err)
	return e.Process(pid)
}

// K2: a pane of ours without a session is shown and left alone.
func TestAPaneWithoutASessionIsShownAndKept(t *testing.T) {
	t.Parallel()
	e := envtest.Start(t, envtest.Config{})
	e.Run("a", "b")
	pane := e.Panes("b")[0]
	lost := disguisedPane(e, "lost", map[string]string{
		observe.OptionInstance: pane.Labels.Instance, observe.OptionUID: "11111111-2222", observe.OptionName: "lost",
		observe.OptionAttempt: "33333333-4444", observe.OptionIncarnation: "1", observe.OptionRole: observe.RoleClient,
	})
	e.Eventually("it is shown", func() bool {
		unclaimed := e.Controller().Status().Unclaimed
		return len(unclaimed) == 1 && unclaimed[0].Name == "lost" && unclaimed[0].PID == lost.PID
	})
	e.Always(stays, "it is kept", func() bool { return e.Process(lost.PID) == lost })
}

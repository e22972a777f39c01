// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/muxlet/muxlet/controller/envtest"
	"github.com/muxlet/muxlet/spec"
)

// edited is a fake session whose client has one more argument.
func edited(e *envtest.Env, name string, strategy spec.UpdateStrategyType) *spec.Session {
	s := e.Fake(name, envtest.Script{})
	s.Spec.Client.Args = []string{"--edited"}
	s.Spec.UpdateStrategy.Type = strategy
	return s
}

func TestAnEditOfTheCommandReplacesTheClientOnce(t *testing.T) {
	t.Parallel()
	e := envtest.Start(t, envtest.Config{})
	e.Run("a")
	old, pane := e.Client("a"), e.Panes("a")[0]
	e.Apply(edited(e, "a", spec.UpdateWhenIdle))
	e.WaitFor("a", envtest.Incarnation(2), envtest.Condition(spec.ConditionUpToDate, metav1.ConditionTrue, ""))
	assert.False(t, old.Runs())
	assert.Contains(t, e.Client("a").Argv, "--edited")
	assert.Equal(t, pane.PaneID, e.Panes("a")[0].PaneID)
	e.Apply(edited(e, "a", spec.UpdateWhenIdle))
	e.Always(stays, "it is replaced once", func() bool { return len(e.Launches("a")) == 2 })
}

func TestAnEditOfAPolicyRestartsNothing(t *testing.T) {
	t.Parallel()
	e := envtest.Start(t, envtest.Config{})
	e.Run("a")
	s := e.Fake("a", envtest.Script{})
	s.Labels = map[string]string{"k": "v"}
	s.Spec.RestartPolicy, s.Spec.RecoveryPolicy = spec.RestartNever, spec.RecoveryDormant
	s.Spec.UpdateStrategy.Type, s.Spec.DeletionPolicy = spec.UpdateRecreate, spec.DeletionOrphan
	s.Spec.Workspace.Type = spec.WorkspaceDirectoryOrCreate
	s.Spec.StartupTimeoutSeconds, s.Spec.TerminationGracePeriodSeconds = ptr.To[int32](7), ptr.To[int32](7)
	s.Spec.Terminal = spec.TerminalSpec{Columns: 90, Rows: 30, HistoryLimit: ptr.To[int32](100)}
	e.Apply(s)
	e.WaitFor("a", envtest.Check{Words: "has the new generation", Holds: func(s spec.Session) bool { return s.Generation == 2 }})
	e.WaitFor("a", envtest.Incarnation(1), envtest.Condition(spec.ConditionUpToDate, metav1.ConditionTrue, ""))
	assert.Len(t, e.Launches("a"), 1)
}

// WhenIdle waits for the person in front of the client to leave; the others do
// not ask.
func TestAnEditReplacesTheClientWhenItsStrategyAllowsIt(t *testing.T) {
	t.Parallel()
	e := envtest.Start(t, envtest.Config{})
	e.Run("idle", "now", "later")
	people := map[string]*envtest.Terminal{}
	for _, name := range []string{"idle", "now", "later"} {
		people[name] = e.Attach(name)
		e.WaitFor(name, envtest.Check{Words: "is attached to", Holds: func(s spec.Session) bool {
			return s.Status.Tmux != nil && s.Status.Tmux.Attached == 1
		}})
	}
	e.Apply(edited(e, "idle", spec.UpdateWhenIdle))
	e.Apply(edited(e, "now", spec.UpdateRecreate))
	e.Apply(edited(e, "later", spec.UpdateOnRestart))

	e.WaitFor("now", envtest.Incarnation(2))
	for _, name := range []string{"idle", "later"} {
		e.WaitFor(name, envtest.Incarnation(1), envtest.Condition(spec.ConditionUpToDate, metav1.ConditionFalse, spec.ReasonUpdatePending))
	}
	people["idle"].Leave()
	people["later"].Leave()
	e.WaitFor("idle", envtest.Incarnation(2))
	e.Always(stays, "the client is not replaced", func() bool { return len(e.Launches("later")) == 1 })

	require.NoError(t, e.Controller().Restart(t.Context(), "later"))
	e.WaitFor("later", envtest.Incarnation(2))
	assert.Contains(t, e.Client("later").Argv, "--edited")
}

func TestOneEditOneAdditionAndOneRemovalTouchThreeSessions(t *testing.T) {
	t.Parallel()
	e := envtest.Start(t, envtest.Config{})
	var names []string
	for i := range 8 {
		names = append(names, fmt.Sprintf("s%d", i))
		e.Apply(sleeper(e, names[i]))
	}
	for _, name := range names {
		e.WaitFor(name, envtest.Running)
	}
	e.Apply(edited(e, "s0", spec.UpdateRecreate))
	e.Delete("s1")
	e.Apply(sleeper(e, "new"))
	e.WaitFor("s0", envtest.Incarnation(2))
	e.WaitNoSession("s1")
	e.WaitFor("new", envtest.Incarnation(1))
	for _, name := range names[2:] {
		e.WaitFor(name, envtest.Incarnation(1))
	}
	assert.Len(t, e.Launches(""), 10)
}

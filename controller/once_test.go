// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/actuate"
	"github.com/muxlet/muxlet/controller/envtest"
)

// starting are the actions that start a launcher.
var starting = []actuate.Kind{actuate.ActionCreate, actuate.ActionRespawn, actuate.ActionRespawnKill}

// interruption drops the controller in the middle of a start: arm prepares it,
// reached waits until the start is there, and goOn is called once the controller
// is gone.
type interruption struct {
	arm     func(e *envtest.Env) *envtest.Gate
	reached func(e *envtest.Env, g *envtest.Gate)
	// attempts that the start takes in the end: a second one where nobody can know
	// of the first.
	attempts int
}

// atGate holds the launcher.
func atGate(stage envtest.Stage) interruption {
	return interruption{
		arm:      func(e *envtest.Env) *envtest.Gate { return e.Hold(stage, "a") },
		reached:  func(_ *envtest.Env, g *envtest.Gate) { g.WaitParked() },
		attempts: 1,
	}
}

// inAction stops the controller before or after it has asked tmux: act performs
// the action or not, and the controller hears nothing of it.
func inAction(attempts int, act func(do func() actuate.Outcome)) interruption {
	stopped := make(chan struct{}, 1)
	return interruption{
		attempts: attempts,
		arm: func(e *envtest.Env) *envtest.Gate {
			e.OnAct(func(ctx context.Context, a actuate.Action, do func() actuate.Outcome) actuate.Outcome {
				if a.Launch.Labels.Name != "a" {
					return do()
				}
				act(do)
				stopped <- struct{}{}
				<-ctx.Done()
				return actuate.Outcome{Message: "the controller is gone"}
			})
			return nil
		},
		reached: func(e *envtest.Env, _ *envtest.Gate) {
			e.Eventually("the action is asked for", func() bool { return len(stopped) == 1 })
		},
	}
}

func interruptions() map[string]interruption {
	return map[string]interruption{
		"after the record, before the action":  inAction(2, func(func() actuate.Outcome) {}),
		"after the action":                     inAction(1, func(do func() actuate.Outcome) { do() }),
		"before the launcher did anything":     atGate(envtest.AtEntry),
		"when the launcher has the lease":      atGate(envtest.WithLease),
		"when the launcher has read its order": atGate(envtest.WithOrder),
		"when the launcher has left a receipt": atGate(envtest.WithReceipt),
	}
}

// A client is started exactly once, wherever in its start the controller was
// dropped, and whether the launcher goes on before or after there is a new one.
func TestADroppedControllerLeadsToExactlyOneStart(t *testing.T) {
	for name := range interruptions() {
		for _, later := range []bool{false, true} {
			for _, respawn := range []bool{false, true} {
				t.Run(name+label(", the launcher first", later)+label(", in a dead pane", respawn), func(t *testing.T) {
					t.Parallel()
					exactlyOneStart(t, interruptions()[name], !later, respawn)
				})
			}
		}
	}
}

func label(text string, applies bool) string {
	if applies {
		return text
	}
	return ""
}

func exactlyOneStart(t *testing.T, in interruption, bootFirst, respawn bool) {
	e := envtest.Start(t, envtest.Config{})
	before := 0
	if respawn {
		e.Run("a")
		before = 1
		client := e.Client("a")
		e.Drop()
		e.Kill(client.Process)
		e.WaitGone(client.Process)
	}
	gate := in.arm(e)
	if respawn {
		e.Boot()
	} else {
		e.Apply(e.Fake("a", envtest.Script{}))
	}
	in.reached(e, gate)
	require.Len(t, e.Actions(starting...), before+1)

	e.Drop()
	e.OnAct(nil)
	goOn := func() {
		if gate != nil {
			gate.Open()
			e.Client("a")
		}
	}
	if !bootFirst {
		goOn()
	}
	e.Boot()
	if bootFirst {
		e.Eventually("the new controller looks", func() bool { return e.Controller().Health().Ready })
		goOn()
	}

	e.WaitFor("a", envtest.Incarnation(int64(before)+1))
	client := e.Client("a")
	assert.EqualValues(t, before+1, client.Incarnation)
	e.Always(stays, "it stays the only one", func() bool {
		return len(e.Starts("a")) == before+1 && len(e.Clients("a")) == 1
	})
	assert.Len(t, e.Actions(starting...), before+in.attempts)
	assert.Len(t, e.Panes("a"), 1)
	assert.Equal(t, client.Process.PID, e.Record("a").Client.Process.PID)
}

// The plain form: nothing was in progress.
func TestARunningClientIsStartedExactlyOnceAcrossControllers(t *testing.T) {
	t.Parallel()
	e := envtest.Start(t, envtest.Config{})
	e.Run("a")
	client := e.Client("a")
	e.Drop()
	require.True(t, client.Runs(), "a client does not need a controller")
	e.Boot()
	e.WaitFor("a", envtest.Incarnation(1))
	e.Always(stays, "it is the only one", func() bool { return len(e.Launches("a")) == 1 })
	assert.Equal(t, client.Process, e.Client("a").Process)
}

// The controller is dropped in the middle of a stop.
func TestAStopGoesOnUnderANewController(t *testing.T) {
	t.Parallel()
	e := envtest.Start(t, envtest.Config{})
	e.Apply(stubborn(e, "a"))
	e.Client("a")
	e.Eventually("its children run", func() bool { return len(e.Children("a")) == 3 })
	e.WaitFor("a", envtest.Running)
	require.NoError(t, e.Controller().Delete(t.Context(), "a"))
	e.Eventually("the first signal is sent", func() bool { return len(e.Actions(actuate.ActionSignal)) == 1 })
	e.Restart()
	e.WaitNoSession("a")
	e.NoClient("a")
	for _, child := range e.Children("a") {
		assert.False(t, child.Runs())
	}
	assert.Zero(t, e.Records())
	assert.Empty(t, e.Panes(""))
}

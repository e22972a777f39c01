// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/controller/envtest"
	"github.com/muxlet/muxlet/controller/server"
	"github.com/muxlet/muxlet/spec"
)

// operation is something that a daemon may crash in the middle of.
type operation struct {
	// prepare makes the world in which it happens, up to the moment before.
	prepare func(t *testing.T) *envtest.Env
	// do is what a person does. Its error says that it was not taken: then it may be
	// done again.
	do func(e *envtest.Env) error
	// arrived is how session a is in the end; nil for gone.
	arrived *envtest.Check
	// clients that were ever executed by then.
	clients int
	// check is what else holds in the end; nil for nothing.
	check func(e *envtest.Env)
}

// blank is a world without a session.
func blank(t *testing.T) *envtest.Env { return envtest.Start(t, envtest.Config{}) }

// oneRuns is a world in which session a runs.
func oneRuns(t *testing.T) *envtest.Env {
	e := blank(t)
	e.Run("a")
	e.Client("a")
	return e
}

// oneRests is a world in which session a was terminated.
func oneRests(t *testing.T) *envtest.Env {
	e := oneRuns(t)
	require.NoError(t, e.Controller().Terminate(t.Context(), "a"))
	e.WaitFor("a", envtest.Shows(spec.StatusTerminated))
	return e
}

func operations() map[string]operation {
	first, second := envtest.Incarnation(1), envtest.Incarnation(2)
	down, suspended := envtest.Shows(spec.StatusTerminated), envtest.Shows(spec.StatusSuspended)
	return map[string]operation{
		"a first start": {prepare: blank, arrived: &first, clients: 1, do: func(e *envtest.Env) error {
			e.Apply(e.Fake("a", envtest.Script{}))
			return nil
		}},
		"a death": {prepare: oneRuns, arrived: &second, clients: 2, do: func(e *envtest.Env) error {
			e.Kill(e.Client("a").Process)
			return nil
		}},
		"a resume": {prepare: oneRests, arrived: &second, clients: 2, do: func(e *envtest.Env) error {
			return e.Controller().Resume(e.Context(), "a", false)
		}},
		"an attach": {prepare: oneRests, arrived: &second, clients: 2, do: func(e *envtest.Env) error {
			return e.Controller().Attach(e.Context(), "a")
		}},
		"a restart": {prepare: oneRuns, arrived: &second, clients: 2, do: func(e *envtest.Env) error {
			return e.Controller().Restart(e.Context(), "a")
		}},
		"a termination": {prepare: oneRuns, arrived: &down, clients: 1, do: func(e *envtest.Env) error {
			return e.Controller().Terminate(e.Context(), "a")
		}},
		"a suspension": {prepare: oneRuns, arrived: &suspended, clients: 1, do: func(e *envtest.Env) error {
			return e.Controller().SetSuspend(e.Context(), "a", true)
		}},
		"an edit": {prepare: oneRuns, arrived: &second, clients: 2, do: func(e *envtest.Env) error {
			s := e.Fake("a", envtest.Script{})
			s.Spec.Client.Args, s.Spec.UpdateStrategy.Type = []string{"edited"}, spec.UpdateRecreate
			e.Apply(s)
			return nil
		}},
		"a deletion": {prepare: oneRuns, clients: 1, do: func(e *envtest.Env) error {
			return e.Controller().Delete(e.Context(), "a")
		}},
	}
}

// Invariants 4, 5 and 11: wherever the daemon crashes in the middle of something,
// before or after any of its writes and of its calls of tmux, the next one brings it to
// the same end with as many clients as if nothing had happened. What was answered is
// not forgotten; what was not can be asked for again.
func TestADaemonMayCrashAtEachStep(t *testing.T) {
	for name, op := range operations() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			steps := undisturbed(t, op)
			for after := range steps {
				t.Run(fmt.Sprintf("after %d of %d steps", after, len(steps)), func(t *testing.T) {
					t.Parallel()
					crashed(t, op, after)
				})
			}
		})
	}
}

// undisturbed finds the steps of an operation.
func undisturbed(t *testing.T, op operation) []string {
	e := op.prepare(t)
	before := len(e.Steps())
	require.NoError(t, op.do(e))
	op.wait(e)
	steps := e.Steps()[before:]
	require.NotEmpty(t, steps)
	t.Logf("steps: %q", steps)
	op.verify(e)
	return steps
}

// crashed is the operation with a daemon that crashes after so many steps.
func crashed(t *testing.T, op operation, after int) {
	e := op.prepare(t)
	crash := e.CrashAfter(after)
	refused := op.do(e)
	// tmux may have needed no reminder this time, and the end is reached a step earlier.
	e.Eventually("the controller crashes, or has no step left to take", func() bool {
		select {
		case <-crash:
			return true
		default:
			return op.holds(e)
		}
	})
	e.Restart()
	if refused != nil {
		err := op.do(e)
		require.True(t, err == nil || isDone(err), "done again: %v", err)
	}
	op.wait(e)
	e.Restart()
	op.wait(e)
	op.verify(e)
}

// isDone says that what was asked for again had been done the first time.
func isDone(err error) bool {
	reason := server.ReasonOf(err)
	return reason == server.ReasonAlreadyRunning || reason == server.ReasonNotFound
}

func (op operation) wait(e *envtest.Env) {
	e.Helper()
	if op.arrived == nil {
		e.WaitNoSession("a")
		return
	}
	e.WaitFor("a", *op.arrived)
}

func (op operation) holds(e *envtest.Env) bool {
	e.Helper()
	s, ok := e.Session("a")
	if op.arrived == nil {
		return !ok
	}
	return ok && op.arrived.Holds(s)
}

// verify looks at tmux, at the process table, at the disk, and at what the clients have
// written of themselves.
func (op operation) verify(e *envtest.Env) {
	e.Helper()
	lives := 0
	if op.arrived != nil && (op.arrived.Words == envtest.Incarnation(1).Words || op.arrived.Words == envtest.Incarnation(2).Words) {
		lives = 1
	}
	same := func() bool {
		return len(e.Clients("a")) == lives && len(e.Starts("a")) == op.clients && len(e.Marked()) == lives
	}
	e.Eventually("there are as many clients as there should be", same)
	e.Always(stays/2, "it stays so", same)
	if op.arrived == nil {
		assert.Empty(e, e.Panes(""))
		assert.Zero(e, e.Records())
		assert.Empty(e, e.Controller().Sessions().Items)
	} else {
		assert.Len(e, e.Panes(""), 1)
		assert.Equal(e, 1, e.Records())
		assert.Nil(e, e.Record("a").Attempt)
		assert.Equal(e, lives == 1, e.Record("a").Client != nil)
	}
	if op.check != nil {
		op.check(e)
	}
}

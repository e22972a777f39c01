// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muxlet/muxlet/controller/envtest"
	"github.com/muxlet/muxlet/controller/server"
	"github.com/muxlet/muxlet/spec"
)

// prompted is the turn that a daemon crashes during. It names itself, so that it is made
// once however often it is sent.
func prompted(c chats) error {
	o := spec.Turn{Spec: spec.TurnSpec{SessionName: "a", Prompt: "one\ntwo; three"}}
	o.Annotations = map[string]string{spec.TurnRequestAnnotation: "r-1"}
	_, _, err := c.Controller().CreateTurn(context.Background(), o)
	return err
}

// receivers are the sessions to which it is sent. What is done for a dormant one ends with
// all that is done for a client with reports that runs.
func receivers() map[string]func(c chats) {
	return map[string]func(c chats){
		"a client without reports": func(c chats) {
			c.Behave("a", envtest.Manners{Works: 300 * time.Millisecond})
			c.runs(classChat, "a")
		},
		"a dormant session": func(c chats) {
			s := c.session("a", classAgent)
			s.Spec.ProvisioningPolicy = spec.ProvisioningOnDemand
			c.Apply(s)
			c.WaitFor("a", envtest.Shows(spec.StatusDormant))
		},
	}
}

// F1, F3: wherever the daemon crashes during a hand-over, before or after any of its
// writes and of its calls of tmux, the prompt is received at most once; once if the turn
// is Delivered, and never if it is not. The session takes the next turn.
func TestADaemonMayCrashAtEachStepOfAHandOver(t *testing.T) {
	for name, prepare := range receivers() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := startChats(t, envtest.Config{})
			prepare(c)
			before := len(c.Steps())
			require.NoError(t, prompted(c))
			require.Equal(t, metav1.ConditionTrue, deliveredOf(c.waitEnd("a-1")).Status)
			steps := c.Steps()[before:]
			t.Logf("steps: %q", steps)
			for after := range steps {
				t.Run(fmt.Sprintf("after %d of %d steps", after, len(steps)), func(t *testing.T) {
					t.Parallel()
					crashedHandOver(t, prepare, after)
				})
			}
		})
	}
}

func crashedHandOver(t *testing.T, prepare func(chats), after int) {
	policy := patient
	// What a crash has left without a word is waited for in each of many worlds.
	policy.Confirm = 6 * time.Second
	c := startChats(t, envtest.Config{Policy: policy})
	prepare(c)
	crash := c.CrashAfter(after)
	refused := prompted(c)
	c.Eventually("the controller crashes, or has no step left to take", func() bool {
		select {
		case <-crash:
			return true
		default:
			made, err := c.Controller().Turn("a-1")
			return err == nil && made.Status.FinishedAt != nil
		}
	})
	c.Restart()
	if refused != nil {
		require.NoError(t, prompted(c))
	}
	ended := c.waitEnd("a-1")
	t.Logf("delivered: %v", deliveredOf(ended))
	agreesWithWitness(c, ended)
	assert.Len(t, c.Controller().Turns().Items, 1)
	goesOn(c)
	assert.Len(t, c.Marked(), 1)
	assert.Len(t, c.Panes("a"), 1)
	c.Restart()
	assert.GreaterOrEqual(t, len(c.Controller().Turns().Items), 2)
	agreesWithWitness(c, c.turn("a-1"))
}

// agreesWithWitness compares what is said of a turn with what the clients have received.
func agreesWithWitness(c chats, t spec.Turn) {
	c.Helper()
	received := 0
	for _, text := range c.ReceivedTexts("a") {
		if text == "one\ntwo; three" {
			received++
		}
	}
	said := deliveredOf(t)
	switch said.Status {
	case metav1.ConditionTrue:
		assert.Equal(c, 1, received, "it is Delivered (%s)", said.Reason)
	case metav1.ConditionFalse:
		assert.Zero(c, received, "it is not delivered (%s: %s)", said.Reason, said.Message)
	case metav1.ConditionUnknown:
		assert.LessOrEqual(c, received, 1, "it is uncertain (%s)", said.Reason)
	}
}

// goesOn: the next turn arrives. What an uncertain one has left in the input line is for
// a person to take away.
func goesOn(c chats) {
	c.Helper()
	c.WaitFor("a", envtest.Running)
	if deliveredOf(c.turn("a-1")).Status == metav1.ConditionUnknown {
		c.Tmux("send-keys", "-t", c.Panes("a")[0].PaneID, "C-c")
	}
	next := c.waitEnd(c.send("a", "next"))
	for next.Status.Retryable && deliveredOf(next).Status == metav1.ConditionFalse {
		// A loaded machine may make tmux answer late.
		next = c.waitEnd(c.send("a", "next"))
	}
	said := deliveredOf(next)
	assert.Equal(c, metav1.ConditionTrue, said.Status, "%s: %s", said.Reason, said.Message)
	assert.Contains(c, c.ReceivedTexts("a"), "next")
}

// The hand-over of turn a-1 is parked inside its call of tmux.

// eachHandOver runs a test with each call of a hand-over parked at both moments, each
// once going on and, if that is asked for, once with a daemon that crashes meanwhile.
func eachHandOver(t *testing.T, crashes bool, test func(t *testing.T, c chats, goOn func())) {
	for _, kind := range handingOver {
		eachMoment(t, string(kind)+" ", crashes, func(t *testing.T, m envtest.Moment, goOn func(*envtest.Env, *envtest.Parking)) {
			c := startChats(t, envtest.Config{})
			c.runs(classAgent, "a")
			p := c.Park(m, kind)
			require.NoError(t, prompted(c))
			p.Wait()
			test(t, c, func() { goOn(c.Env, p) })
		})
	}
}

// N1
func TestATerminateDuringAHandOverEndsTheTurnAndTheClient(t *testing.T) {
	eachHandOver(t, true, func(t *testing.T, c chats, goOn func()) {
		require.NoError(t, promptly(c.Env, func() error { return c.Controller().Terminate(t.Context(), "a") }))
		goOn()
		ended := c.waitEnd("a-1")
		agreesWithWitness(c, ended)
		staysDown(c.Env, spec.StatusTerminated)
		agreesWithWitness(c, c.turn("a-1"))

		// Only a turn that is sent after it wakes the session.
		next := c.waitEnd(c.send("a", "next"))
		assert.Equal(t, metav1.ConditionTrue, deliveredOf(next).Status)
		assert.EqualValues(t, 2, next.Status.Incarnation)
	})
}

// A13
func TestASuspendDuringAHandOverEndsTheTurnAndTheClient(t *testing.T) {
	eachHandOver(t, false, func(t *testing.T, c chats, goOn func()) {
		require.NoError(t, promptly(c.Env, func() error { return c.Controller().SetSuspend(t.Context(), "a", true) }))
		goOn()
		agreesWithWitness(c, c.waitEnd("a-1"))
		staysDown(c.Env, spec.StatusSuspended)
		agreesWithWitness(c, c.turn("a-1"))
		_, err := c.try("a", "next", 0)
		assert.Equal(t, server.ReasonSuspended, server.ReasonOf(err))
	})
}

// N2
func TestADeleteDuringAHandOverLeavesNothing(t *testing.T) {
	eachHandOver(t, true, func(t *testing.T, c chats, goOn func()) {
		require.NoError(t, promptly(c.Env, func() error { return c.Controller().Delete(t.Context(), "a") }))
		goOn()
		nothingIsLeft(c.Env)
		assert.Empty(t, c.Controller().Turns().Items)
		assert.Empty(t, turnFiles(c.Env), "prompts are left on disk")
		assert.LessOrEqual(t, len(c.Received("a")), 1)
	})
}

// What is being handed over cannot be taken back, and is received once all the same.
func TestACancelDuringAHandOverIsRefusedAndTheTurnGoesOn(t *testing.T) {
	eachHandOver(t, false, func(t *testing.T, c chats, goOn func()) {
		_, err := c.Controller().CancelTurn(t.Context(), "a-1")
		assert.Equal(t, server.ReasonConflict, server.ReasonOf(err))
		goOn()
		agreesWithWitness(c, c.waitEnd("a-1"))
		goesOn(c)
	})
}

// The client dies while it is handed a turn: it is brought back, and never gets that one
// again.
func TestAClientThatDiesDuringAHandOverNeverGetsTheTurnAgain(t *testing.T) {
	eachHandOver(t, false, func(t *testing.T, c chats, goOn func()) {
		c.Kill(c.Client("a").Process)
		goOn()
		agreesWithWitness(c, c.waitEnd("a-1"))
		c.WaitFor("a", envtest.Incarnation(2))
		goesOn(c)
		agreesWithWitness(c, c.turn("a-1"))
	})
}

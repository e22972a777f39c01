// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muxlet/muxlet/actuate"
	"github.com/muxlet/muxlet/controller"
	"github.com/muxlet/muxlet/controller/envtest"
	"github.com/muxlet/muxlet/controller/plan"
	"github.com/muxlet/muxlet/controller/server"
	"github.com/muxlet/muxlet/spec"
)

// patient is a policy under which tmux may be mute for a while.
var patient = plan.Policy{BackOffInitial: 10 * time.Millisecond, BackOffMax: 400 * time.Millisecond, BackOffReset: 10 * time.Minute, UnknownGrace: time.Minute}

func TestATurnThatCannotBeIsRefused(t *testing.T) {
	t.Parallel()
	c := startChats(t, envtest.Config{})
	suspended := c.session("down", classAgent)
	suspended.Spec.Suspend = true
	c.Apply(suspended)
	c.Apply(c.session("up", classAgent))
	c.Write("broken.yaml", "apiVersion: muxlet.dev/v1alpha1\nkind: Session\nmetadata: {name: broken}\nspec: {wrong: true}\n")
	c.WaitFor("down", envtest.Shows(spec.StatusSuspended))
	c.WaitFor("up", envtest.Running)
	c.WaitFor("broken", envtest.Shows(spec.StatusInvalid))
	for name, r := range map[string]struct {
		session, text string
		limit         time.Duration
		reason        metav1.StatusReason
		words         string
	}{
		"an unknown session":    {"nobody", "x", 0, server.ReasonNotFound, "not found"},
		"a suspended one":       {"down", "x", 0, server.ReasonSuspended, "muxlet resume down"},
		"no valid document":     {"broken", "x", 0, server.ReasonInvalid, "no valid document"},
		"no text":               {"up", "\n", 0, server.ReasonInvalid, "empty"},
		"white space":           {"up", " \t\n", 0, server.ReasonInvalid, "white space"},
		"a control character":   {"up", "a\x1bb", 0, server.ReasonInvalid, "U+001B (escape) at byte offset 1"},
		"a carriage return":     {"up", "a\r\nb", 0, server.ReasonInvalid, "convert the line ends"},
		"more than is taken":    {"up", strings.Repeat("x", spec.MaxPromptBytes+1), 0, server.ReasonInvalid, "at most"},
		"a deadline that is up": {"up", "x", -time.Second, server.ReasonInvalid, "deadline"},
	} {
		t.Run(name, func(t *testing.T) {
			o := spec.Turn{Spec: spec.TurnSpec{SessionName: r.session, Prompt: r.text}}
			if r.limit != 0 {
				o.Spec.Deadline = &metav1.Time{Time: time.Now().Add(r.limit)}
			}
			_, _, err := c.Controller().CreateTurn(context.Background(), o)
			require.Equal(t, r.reason, server.ReasonOf(err), "%v", err)
			require.ErrorContains(t, err, r.words)
		})
	}
	require.Empty(t, c.Controller().Turns().Items)
}

// A person who pipes something sends the same twice when the answer is lost.
func TestTheSameRequestIsOneTurn(t *testing.T) {
	t.Parallel()
	c := startChats(t, envtest.Config{})
	c.runs(classAgent, "a")
	o := spec.Turn{Spec: spec.TurnSpec{SessionName: "a", Prompt: "once"}}
	o.Annotations = map[string]string{spec.TurnRequestAnnotation: "r1"}
	first, existed, err := c.Controller().CreateTurn(context.Background(), o)
	require.NoError(t, err)
	require.False(t, existed)
	again, existed, err := c.Controller().CreateTurn(context.Background(), o)
	require.NoError(t, err)
	require.True(t, existed)
	require.Equal(t, first.UID, again.UID)
	require.Len(t, c.Controller().Turns().Items, 1)
}

// F4: tmux hangs, and with it every worker. A turn is taken at once, ends at its
// deadline, and is never delivered later.
func TestADeadlinePassesWhileTmuxHangs(t *testing.T) {
	t.Parallel()
	c := startChats(t, envtest.Config{Policy: patient})
	names := []string{"a", "b", "c", "d", "e", "f", "g", "h", "i"}
	c.runs(classAgent, names...)
	server := c.Server()
	c.Signal(server, "SIGSTOP")
	began := time.Now()
	turns := map[string]string{}
	for _, name := range names {
		made, err := c.try(name, "too late", 1500*time.Millisecond)
		require.NoError(t, err)
		turns[name] = made.Name
	}
	assert.Less(t, time.Since(began), time.Second, "nobody waits for tmux")
	for _, name := range names {
		ended := c.waitTurn(turns[name], spec.TurnFailed)
		delivered := deliveredOf(ended)
		require.Equal(t, spec.ReasonDeadlineExceeded, delivered.Reason, delivered.Message)
		require.True(t, ended.Status.Retryable)
		require.Less(t, ended.Status.FinishedAt.Sub(ended.Spec.Deadline.Time), 3*time.Second)
	}
	c.Signal(server, "SIGCONT")
	for _, name := range names {
		c.waitTurn(c.send(name, "in time"), spec.TurnCompleted)
		require.Equal(t, []string{"in time"}, c.ReceivedTexts(name))
	}
}

// A disk that is slow does not deliver a turn after its deadline.
func TestATurnIsNotHandedOverAfterItsDeadline(t *testing.T) {
	t.Parallel()
	deadline := make(chan time.Time, 1)
	c := startChats(t, envtest.Config{Adjust: func(o *controller.Options) {
		o.TurnStore = &unsaved{Turns: o.TurnStore, slow: func() {
			select {
			case at := <-deadline:
				<-time.After(time.Until(at) + 10*time.Millisecond)
			default:
			}
		}}
	}})
	c.runs(classAgent, "a")
	deadline <- time.Now().Add(time.Second)
	made, err := c.try("a", "too late", 900*time.Millisecond)
	require.NoError(t, err)
	require.Equal(t, spec.ReasonDeadlineExceeded, deliveredOf(c.waitTurn(made.Name, spec.TurnFailed)).Reason)
	c.waitTurn(c.send("a", "in time"), spec.TurnCompleted)
	require.Equal(t, []string{"in time"}, c.ReceivedTexts("a"))
	require.Len(t, c.Actions(actuate.ActionPaste), 1)
}

// With a tmux that does not answer a turn is not held until its deadline.
func TestATurnFailsSoonWhenTmuxDoesNotAnswer(t *testing.T) {
	t.Parallel()
	config := envtest.Config{TmuxTimeout: time.Second, Policy: patient}
	c := startChats(t, config)
	c.runs(classAgent, "a")
	server := c.Server()
	c.Signal(server, "SIGSTOP")
	c.WaitFor("a", envtest.Condition(spec.ConditionObserved, metav1.ConditionFalse, ""))
	ended := c.waitTurn(c.send("a", "hello"), spec.TurnFailed)
	require.Equal(t, spec.ReasonTmuxUnavailable, deliveredOf(ended).Reason)
	require.True(t, ended.Status.Retryable)
	require.Less(t, ended.Status.FinishedAt.Sub(ended.CreationTimestamp.Time), 8*time.Second)
	c.Signal(server, "SIGCONT")
	c.waitTurn(c.send("a", "again"), spec.TurnCompleted)
	require.Equal(t, []string{"again"}, c.ReceivedTexts("a"))
}

func deliveredOf(t spec.Turn) metav1.Condition {
	for _, c := range t.Status.Conditions {
		if c.Type == spec.ConditionDelivered {
			return c
		}
	}
	return metav1.Condition{}
}

// What waits for a session goes with it, and is not there after a restart either.
func TestADeletedSessionHasNoTurns(t *testing.T) {
	t.Parallel()
	c := startChats(t, envtest.Config{})
	c.Behave("a", envtest.Manners{Question: "Really?"})
	c.Apply(c.session("a", classAgent))
	c.WaitFor("a", envtest.Condition(spec.ConditionInputRequired, metav1.ConditionTrue, ""))
	name := c.send("a", "never")
	c.Delete("a")
	c.WaitNoSession("a")
	require.Empty(t, c.Controller().Turns().Items)
	_, err := c.Controller().Turn(name)
	require.Equal(t, server.ReasonNotFound, server.ReasonOf(err))
	_, err = c.try("a", "x", 0)
	require.Equal(t, server.ReasonNotFound, server.ReasonOf(err))
	objects, _ := c.Controller().Journals().Turns.List()
	require.Empty(t, objects)
	require.Contains(t, c.Events("a", spec.ReasonRemoved)[0].Message, "Turn a-1 was not delivered", "whoever waited for it learns why")
	require.Empty(t, c.prompts())
	c.Restart()
	c.Eventually("the state is loaded", func() bool { return c.Controller().Health().Ready })
	require.Empty(t, c.Controller().Turns().Items)
	c.Behave("a", envtest.Manners{})
	c.Apply(c.session("a", classAgent))
	c.WaitFor("a", envtest.Running)
	require.Empty(t, c.Controller().Turns().Items, "it has its record again, and not its turns")
	c.waitTurn(c.send("a", "anew"), spec.TurnCompleted)
	require.Equal(t, []string{"anew"}, c.ReceivedTexts("a"))
}

// prompts are the files of prompts on disk.
func (c chats) prompts() []string {
	c.Helper()
	files, err := filepath.Glob(filepath.Join(c.State, "turns", "*", "*.prompt"))
	require.NoError(c, err)
	return files
}

// A turn is taken back before it is handed over, and after that it is not.
func TestATurnIsTakenBack(t *testing.T) {
	t.Parallel()
	c := startChats(t, envtest.Config{})
	c.Behave("a", envtest.Manners{Hangs: true})
	c.runs(classAgent, "a")
	first := c.send("a", "first")
	second := c.send("a", "second")
	c.waitTurn(first, spec.TurnDelivered)
	ctx := context.Background()
	cancelled, err := c.Controller().CancelTurn(ctx, second)
	require.NoError(t, err)
	require.Equal(t, spec.TurnCancelled, spec.DisplayTurnStatus(&cancelled))
	_, err = c.Controller().CancelTurn(ctx, second)
	require.NoError(t, err, "once more is no mistake")
	_, err = c.Controller().CancelTurn(ctx, first)
	require.Equal(t, server.ReasonConflict, server.ReasonOf(err))
	require.ErrorContains(t, err, "handed over")
	require.Equal(t, server.ReasonConflict, server.ReasonOf(c.Controller().DeleteTurn(ctx, first)))
	require.NoError(t, c.Controller().DeleteTurn(ctx, second))
	require.Equal(t, server.ReasonNotFound, server.ReasonOf(c.Controller().DeleteTurn(ctx, second)))
	_, err = c.Controller().CancelTurn(ctx, "a-99")
	require.Equal(t, server.ReasonNotFound, server.ReasonOf(err))
	require.Equal(t, []string{"first"}, c.ReceivedTexts("a"))
	require.Empty(t, c.Events("a", spec.ReasonCancelled))
}

// A hundred at once are a hundred turns, each received once and in the order of their
// numbers.
func TestAHundredTurnsAtOnceArriveOnceEach(t *testing.T) {
	t.Parallel()
	c := startChats(t, envtest.Config{})
	sessions := []string{"a", "b", "c", "d"}
	c.runs(classAgent, sessions...)
	var mu sync.Mutex
	sent := map[string]string{}
	var wg sync.WaitGroup
	for n := range 100 {
		wg.Go(func() {
			text := fmt.Sprintf("prompt %d", n)
			made, err := c.try(sessions[n%len(sessions)], text, time.Hour)
			if assert.NoError(t, err) {
				mu.Lock()
				sent[made.Name] = text
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	require.Len(t, sent, 100)
	for _, session := range sessions {
		var want []string
		for n := 1; n <= 25; n++ {
			name := fmt.Sprintf("%s-%d", session, n)
			c.waitTurn(name, spec.TurnCompleted)
			want = append(want, sent[name])
		}
		require.Equal(t, want, c.ReceivedTexts(session))
	}
}

// Two daemons in a row know the same turns.
func TestTurnsOutliveTheDaemon(t *testing.T) {
	t.Parallel()
	c := startChats(t, envtest.Config{})
	c.Behave("a", envtest.Manners{Question: "Really?"})
	s := c.session("a", classAgent)
	s.Labels = map[string]string{"repo": "shop"}
	c.Apply(s)
	c.WaitFor("a", envtest.Condition(spec.ConditionInputRequired, metav1.ConditionTrue, ""))
	name := c.send("a", "it waits")
	before := c.waitReason(name, spec.ReasonPermissionRequired)
	require.Equal(t, s.Labels, before.Labels)
	c.Restart()
	after := c.waitReason(name, spec.ReasonPermissionRequired)
	require.Equal(t, before.UID, after.UID)
	require.Equal(t, "it waits", after.Spec.Prompt)
	require.Equal(t, s.Labels, after.Labels)
	require.Empty(t, c.Controller().Turns().Items[0].Spec.Prompt, "lists leave prompts out")
	c.Tmux("send-keys", "-t", c.Panes("a")[0].PaneID, "y")
	c.waitTurn(name, spec.TurnCompleted)
	require.Equal(t, []string{"it waits"}, c.ReceivedTexts("a"))
	require.NotContains(t, c.Log(), "it waits")
}

// waitReason waits until a turn is not delivered for the reason.
func (c chats) waitReason(name, reason string) (t spec.Turn) {
	c.Helper()
	c.Eventually("turn "+name+" waits because of "+reason, func() bool {
		var err error
		t, err = c.Controller().Turn(name)
		return err == nil && deliveredOf(t).Reason == reason
	})
	return t
}

// A prompt that is gone is not waited for.
func TestATurnWhosePromptIsGoneFails(t *testing.T) {
	t.Parallel()
	c := startChats(t, envtest.Config{})
	c.Behave("a", envtest.Manners{Question: "Really?"})
	c.Apply(c.session("a", classAgent))
	c.WaitFor("a", envtest.Condition(spec.ConditionInputRequired, metav1.ConditionTrue, ""))
	name := c.send("a", "hello")
	for _, file := range c.prompts() {
		require.NoError(t, os.Remove(file))
	}
	c.Tmux("send-keys", "-t", c.Panes("a")[0].PaneID, "y")
	require.Equal(t, spec.ReasonPromptLost, deliveredOf(c.waitTurn(name, spec.TurnFailed)).Reason)
}

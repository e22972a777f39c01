// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/actuate"
	"github.com/muxlet/muxlet/controller"
	"github.com/muxlet/muxlet/controller/envtest"
	"github.com/muxlet/muxlet/controller/plan"
	"github.com/muxlet/muxlet/spec"
)

// onDemand is a session without a client until somebody needs one.
func (c chats) onDemand(name string) *spec.Session {
	s := c.session(name, classAgent)
	s.Spec.ProvisioningPolicy = spec.ProvisioningOnDemand
	return s
}

// A session on demand has a client from a turn, a resume or an attach until that ends,
// whatever ends it and whoever restarts the daemon.
func TestASessionOnDemandHasAClientOnlyWhenSomebodyNeedsOne(t *testing.T) {
	t.Parallel()
	c := startChats(t, envtest.Config{})
	c.Apply(c.onDemand("a"))
	dormant := envtest.Shows(spec.StatusDormant)
	c.WaitFor("a", dormant)
	c.Always(stays, "nothing is started", func() bool { return len(c.Launches("a")) == 0 })

	c.waitTurn(c.send("a", "first"), spec.TurnCompleted)
	conversation := c.WaitFor("a", envtest.Incarnation(1)).Status.Conversation.ID
	c.Restart()
	c.WaitFor("a", envtest.Incarnation(1))
	c.Kill(c.Client("a").Process)
	c.WaitFor("a", dormant)
	c.Restart()
	c.WaitFor("a", dormant)
	c.Always(stays, "nothing is started", func() bool { return len(c.Launches("a")) == 1 })

	require.NoError(t, c.Controller().Resume(t.Context(), "a", false))
	c.WaitFor("a", envtest.Incarnation(2))
	c.KillServer()
	c.WaitFor("a", dormant)

	require.NoError(t, c.Controller().Attach(t.Context(), "a"))
	c.WaitFor("a", envtest.Incarnation(3))
	require.NoError(t, c.Controller().Attach(t.Context(), "a"), "there is one already")
	c.waitTurn(c.send("a", "second"), spec.TurnCompleted)
	require.Equal(t, conversation, c.WaitFor("a", envtest.Incarnation(3)).Status.Conversation.ID)
	require.Equal(t, []string{"first", "second"}, c.ReceivedTexts("a"))
	require.Len(t, c.Starts("a"), 3)
}

// A thousand sessions that nobody needs are looked at by one listing.
func TestADormantSessionCostsNoPass(t *testing.T) {
	t.Parallel()
	looks := &atomic.Int64{}
	const resync = time.Second
	e := envtest.Make(t, envtest.Config{Adjust: func(o *controller.Options) {
		o.Processes, o.Initial.Resync = counted{o.Processes, looks}, resync
	}})
	e.Write("class-agent.yaml", e.Class(classAgent, true))
	c := chats{e}
	for n := range 100 {
		c.Apply(c.onDemand(fmt.Sprintf("s%d", n)))
	}
	e.Boot()
	observedAt := func() time.Time {
		return c.WaitFor("s99", envtest.Shows(spec.StatusDormant)).Status.Evidence.ObservedAt.Time
	}
	c.Eventually("nobody is looked at while three resyncs go by", func() bool {
		before, at := looks.Load(), observedAt()
		c.Eventually("three resyncs", func() bool { return observedAt().After(at.Add(3 * resync)) })
		return looks.Load() == before
	})
	require.Empty(t, c.Launches(""))
	c.waitTurn(c.send("s7", "hello"), spec.TurnCompleted)
	require.Len(t, c.Starts(""), 1)
}

// A14: a session that was terminated is woken by a turn that is sent after that, with
// its history; one that waited is not delivered any more.
func TestATerminatedSessionIsWokenByATurn(t *testing.T) {
	t.Parallel()
	c := startChats(t, envtest.Config{})
	c.runs(classAgent, "a")
	c.waitTurn(c.send("a", "first"), spec.TurnCompleted)
	conversation := c.WaitFor("a", envtest.Running).Status.Conversation.ID
	c.asks("a")
	waits := c.send("a", "it waits")
	c.waitReason(waits, spec.ReasonPermissionRequired)
	require.NoError(t, c.Controller().Terminate(t.Context(), "a"))
	ended := c.waitTurn(waits, spec.TurnFailed)
	require.Equal(t, spec.ReasonTerminated, deliveredOf(ended).Reason)
	require.True(t, ended.Status.Retryable)
	c.WaitFor("a", envtest.Shows(spec.StatusTerminated))
	c.Behave("a", envtest.Manners{})
	c.Restart()
	c.WaitFor("a", envtest.Shows(spec.StatusTerminated))
	ended = c.waitTurn(c.send("a", "second"), spec.TurnCompleted)
	require.EqualValues(t, 2, ended.Status.Incarnation)
	require.Equal(t, conversation, ended.Status.ConversationID)
	require.Equal(t, []string{"first", "second"}, c.ReceivedTexts("a"))
}

func TestATurnEndsWhenItsSessionIsSuspended(t *testing.T) {
	t.Parallel()
	c := startChats(t, envtest.Config{})
	c.Behave("a", envtest.Manners{Question: "Really?"})
	s := c.session("a", classAgent)
	c.Apply(s)
	name := ""
	c.Eventually("the session takes a turn", func() bool {
		made, err := c.try("a", "it waits", 0)
		name = made.Name
		return err == nil
	})
	c.waitReason(name, spec.ReasonPermissionRequired)
	s.Spec.Suspend = true
	c.Apply(s)
	ended := c.waitTurn(name, spec.TurnFailed)
	require.Equal(t, spec.ReasonSuspended, deliveredOf(ended).Reason)
	require.True(t, ended.Status.Retryable)
	c.WaitFor("a", envtest.Shows(spec.StatusSuspended))
	require.Empty(t, c.Received("a"))
}

// The initial prompt is the first turn of each conversation that muxlet begins, whatever
// restarts in between.
func TestAnInitialPromptIsSentOncePerConversation(t *testing.T) {
	t.Parallel()
	c := startChats(t, envtest.Config{})
	s := c.session("a", classAgent)
	s.Spec.InitialPrompt = "begin\n"
	c.Apply(s)
	name := ""
	c.Eventually("the session takes a turn", func() bool {
		made, err := c.try("a", "mine", 0)
		name = made.Name
		return err == nil
	})
	c.waitTurn(name, spec.TurnCompleted)
	require.Equal(t, []string{"begin", "mine"}, c.ReceivedTexts("a"))
	c.Restart()
	c.WaitFor("a", envtest.Incarnation(1))
	c.Kill(c.Client("a").Process)
	c.WaitFor("a", envtest.Incarnation(2))
	c.waitTurn(c.send("a", "more"), spec.TurnCompleted)
	require.Equal(t, []string{"begin", "mine", "more"}, c.ReceivedTexts("a"), "its conversation goes on")
	require.NoError(t, c.Controller().Terminate(t.Context(), "a"))
	c.WaitFor("a", envtest.Shows(spec.StatusTerminated))
	require.NoError(t, c.Controller().Resume(t.Context(), "a", true))
	c.WaitFor("a", envtest.Incarnation(3))
	c.waitTurn(c.send("a", "anew"), spec.TurnCompleted)
	require.Equal(t, []string{"begin", "mine", "more", "begin", "anew"}, c.ReceivedTexts("a"))
	require.Len(t, c.Actions(actuate.ActionPaste), 5)
}

// A turn that cannot be delivered fails soon, with the reason and the next step; once
// the reason is gone, the same is delivered.
func TestATurnFailsSoonWithTheReason(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]struct {
		reason string
		breaks func(c chats, s *spec.Session)
		mends  func(c chats, s *spec.Session)
	}{
		"its directory is gone": {
			spec.ReasonWorkspaceMissing,
			func(c chats, s *spec.Session) { require.NoError(c, os.Remove(s.Spec.Workspace.Directory)) },
			func(c chats, s *spec.Session) { require.NoError(c, os.Mkdir(s.Spec.Workspace.Directory, 0o700)) },
		},
		"its command is gone": {
			spec.ReasonCommandNotFound,
			func(c chats, s *spec.Session) { require.NoError(c, os.Rename(c.program(), c.program()+".away")) },
			func(c chats, s *spec.Session) { require.NoError(c, os.Rename(c.program()+".away", c.program())) },
		},
		"its class is gone": {
			spec.ReasonClassNotFound,
			func(c chats, s *spec.Session) {
				s.Spec.ClientClassName = "nowhere"
				c.Apply(s)
				c.WaitFor("a", envtest.Because(spec.ReasonClassNotFound))
			},
			func(c chats, s *spec.Session) { s.Spec.ClientClassName = "own"; c.Apply(s) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := startChats(t, envtest.Config{})
			c.ownProgram()
			s := c.onDemand("a")
			s.Spec.ClientClassName = "own"
			s.Spec.Workspace.Directory = filepath.Join(c.Dir, "there")
			require.NoError(t, os.Mkdir(s.Spec.Workspace.Directory, 0o700))
			c.Apply(s)
			c.WaitFor("a", envtest.Shows(spec.StatusDormant))
			r.breaks(c, s)
			ended := c.waitTurn(c.send("a", "hello"), spec.TurnFailed)
			require.Equal(t, r.reason, deliveredOf(ended).Reason, deliveredOf(ended).Message)
			require.True(t, ended.Status.Retryable)
			require.NotEmpty(t, deliveredOf(ended).Message)
			require.Less(t, ended.Status.FinishedAt.Sub(ended.CreationTimestamp.Time), 5*time.Second)
			c.waitEvent("a", r.reason)
			r.mends(c, s)
			c.Eventually("the same is delivered", func() bool {
				made, err := c.try("a", "hello again", 0)
				if err != nil {
					return false
				}
				again := c.waitEnd(made.Name)
				return spec.DisplayTurnStatus(&again) == spec.TurnCompleted
			})
			require.Equal(t, []string{"hello again"}, c.ReceivedTexts("a"))
		})
	}
}

func (c chats) program() string { return filepath.Join(c.Dir, "client") }

// ownProgram declares class own, whose program can be taken away.
func (c chats) ownProgram() {
	c.Helper()
	bench := c.Command(envtest.Script{})[0]
	require.NoError(c, os.Symlink(bench, c.program()))
	c.Write("class-own.yaml", strings.ReplaceAll(c.Class("own", true), bench, c.program()))
}

// E1: when the next attempt lies past its deadline a turn does not wait for it.
func TestATurnDoesNotWaitForABackOffThatIsLongerThanItsDeadline(t *testing.T) {
	t.Parallel()
	c := startChats(t, envtest.Config{Policy: plan.Policy{
		BackOffInitial: time.Hour, BackOffMax: time.Hour, BackOffReset: 10 * time.Hour, UnknownGrace: time.Minute,
	}})
	// It is never ready: nothing can be pasted in the moment in which it lives.
	c.Write("class-unready.yaml", "apiVersion: muxlet.dev/v1alpha1\nkind: ClientClass\nmetadata: {name: unready}\nspec: {ready: {pattern: never shown}}\n")
	s := c.Fake("a", envtest.Script{Ends: true, Exit: 1})
	s.Spec.ClientClassName = "unready"
	c.Apply(s)
	c.WaitFor("a", envtest.Because(spec.ReasonCrashLoopBackOff))
	launches := len(c.Launches("a"))
	ended := c.waitTurn(c.send("a", "hello"), spec.TurnFailed)
	assert.Equal(t, spec.ReasonCrashLoopBackOff, deliveredOf(ended).Reason, deliveredOf(ended).Message)
	assert.True(t, ended.Status.Retryable)
	assert.Less(t, ended.Status.FinishedAt.Sub(ended.CreationTimestamp.Time), 5*time.Second)
	assert.LessOrEqual(t, len(c.Launches("a")), launches+1, "it buys one attempt")
}

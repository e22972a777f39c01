// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/muxlet/muxlet/controller/envtest"
	"github.com/muxlet/muxlet/controller/plan"
	"github.com/muxlet/muxlet/spec"
)

// The classes of the fake clients with an input line.
const (
	classChat  = "chat"
	classAgent = "agent"
)

// chats is a world in which clients have an input line.
type chats struct{ *envtest.Env }

func startChats(t *testing.T, config envtest.Config) chats {
	t.Helper()
	if config.Policy == (plan.Policy{}) {
		// A busy host is slow, and no turn of these tests is to fail by that.
		config.Policy = patient
	}
	e := envtest.Make(t, config)
	e.Write("class-chat.yaml", e.Class(classChat, false))
	e.Write("class-agent.yaml", e.Class(classAgent, true))
	e.Boot()
	return chats{e}
}

// session of one of the classes, not applied yet.
func (c chats) session(name, class string) *spec.Session {
	s := &spec.Session{}
	s.Name = name
	s.Spec.ClientClassName = class
	s.Spec.Client.ShellMode = spec.ShellNone
	s.Spec.Workspace.Directory = c.Work
	s.Spec.TerminationGracePeriodSeconds = ptr.To[int32](10)
	return s
}

// runs applies sessions and waits until their clients are ready.
func (c chats) runs(class string, names ...string) {
	c.Helper()
	for _, name := range names {
		c.Apply(c.session(name, class))
	}
	for _, name := range names {
		c.WaitFor(name, envtest.Running)
	}
}

// asks makes the clients of a session ask something, and waits until one does.
func (c chats) asks(session string) {
	c.Helper()
	c.Behave(session, envtest.Manners{Question: "Really?"})
	c.WaitFor(session, envtest.Condition(spec.ConditionInputRequired, metav1.ConditionTrue, ""))
}

// shows waits until a session's pane shows a text.
func (c chats) shows(session, text string) {
	c.Helper()
	pane := c.Panes(session)[0].PaneID
	c.Eventually("session "+session+" shows "+text, func() bool { return strings.Contains(c.Tmux("capture-pane", "-p", "-t", pane), text) })
}

// waitEvent waits for an event about a session.
func (c chats) waitEvent(session, reason string) {
	c.Helper()
	c.Eventually("an event "+reason, func() bool { return len(c.Events(session, reason)) > 0 })
}

// try sends a turn.
func (c chats) try(session, text string, limit time.Duration) (spec.Turn, error) {
	o := spec.Turn{Spec: spec.TurnSpec{SessionName: session, Prompt: text}}
	if limit > 0 {
		o.Spec.Deadline = &metav1.Time{Time: time.Now().Add(limit)}
	}
	made, _, err := c.Controller().CreateTurn(context.Background(), o)
	return made, err
}

// send sends a turn and returns its name.
func (c chats) send(session, text string) string {
	c.Helper()
	made, err := c.try(session, text, 0)
	require.NoError(c, err)
	return made.Name
}

func (c chats) turn(name string) spec.Turn {
	c.Helper()
	t, err := c.Controller().Turn(name)
	require.NoError(c, err)
	return t
}

// waitTurn waits until a turn shows one of the words.
func (c chats) waitTurn(name string, words ...spec.TurnPhase) (t spec.Turn) {
	c.Helper()
	c.Eventually(fmt.Sprintf("turn %s is %v", name, words), func() bool {
		var err error
		if t, err = c.Controller().Turn(name); err != nil {
			return false
		}
		for _, word := range words {
			if spec.DisplayTurnStatus(&t) == word {
				return true
			}
		}
		return false
	})
	return t
}

// waitEnd waits until a turn is over.
func (c chats) waitEnd(name string) (t spec.Turn) {
	c.Helper()
	c.Eventually("turn "+name+" is over", func() bool {
		var err error
		t, err = c.Controller().Turn(name)
		return err == nil && t.Status.FinishedAt != nil
	})
	return t
}

func TestATurnArrivesAndIsEnded(t *testing.T) {
	t.Parallel()
	for _, class := range []string{classChat, classAgent} {
		t.Run(class, func(t *testing.T) {
			t.Parallel()
			c := startChats(t, envtest.Config{})
			c.runs(class, "a")
			made := c.waitEnd(c.send("a", "hello\n"))
			require.Equal(t, metav1.ConditionTrue, deliveredOf(made).Status)
			require.Equal(t, "hello", made.Spec.Prompt)
			require.Equal(t, []string{"hello"}, c.ReceivedTexts("a"))
			require.EqualValues(t, 1, made.Status.Incarnation)
		})
	}
}

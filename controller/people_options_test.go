// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/controller/envtest"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec"
)

// What a person sets for the whole server harms no session: what would end the
// server is taken back, what is about theirs holds for theirs.
func TestOptionsOfAPersonHarmNoSession(t *testing.T) {
	t.Parallel()
	e := envtest.Start(t, envtest.Config{})
	e.Run("a")
	client, server, instance := e.Client("a"), e.Server(), e.Controller().Status().Instance
	// With both of its options on, the server ends as soon as nobody is attached.
	person := e.Attach("a")
	e.WaitFor("a", attached(1))
	for _, words := range [][]string{
		{"-g", "destroy-unattached", "on"}, {"-g", "remain-on-exit", "off"}, {"-s", "exit-empty", "on"}, {"-s", "exit-unattached", "on"},
		{"-s", observe.OptionServerInstance, "x"}, {"-g", observe.OptionUID, "x"}, {"-g", observe.OptionInstance, "x"},
		{"-g", observe.OptionLaunched, "1"}, {"-g", observe.OptionSession, "x"}, {"-g", "base-index", "7"},
		{"-g", "update-environment", "LANG"}, {"-g", "window-size", "manual"}, {"-g", "default-command", "false"},
	} {
		e.Tmux(append([]string{"set-option"}, words...)...)
	}
	e.Eventually("what would end the server is taken back", func() bool {
		l, ok := e.Listing()
		return ok && len(l.Lapsed) == 0 && l.Server.Instance == instance
	})
	e.Eventually("an event says so", func() bool { return len(e.Events("", spec.ReasonServerKept)) > 0 })
	person.Leave()
	e.Run("b")
	e.WaitFor("a", envtest.Incarnation(1))
	assert.Equal(t, client.Process, e.Client("a").Process)

	e.Kill(client.Process)
	e.Kill(e.Client("b").Process)
	for _, name := range []string{"a", "b"} {
		s := e.WaitFor(name, envtest.Incarnation(2))
		assert.Equal(t, "SIGKILL", s.Status.Client.LastTermination.Signal, "the dead pane has told how %s ended", name)
	}
	assert.Equal(t, "off", e.Tmux("show-options", "-gwv", "remain-on-exit"), "for theirs it is as they want it")

	for _, name := range []string{"a", "b"} {
		require.NoError(t, e.Controller().Delete(t.Context(), name))
		e.WaitNoSession(name)
	}
	assert.Equal(t, server, e.Server(), "the server stays without sessions")
}

// A person's view of their own that goes when they leave takes nothing along.
func TestAGroupThatEndsWithItsPersonTakesNothingAlong(t *testing.T) {
	t.Parallel()
	e := envtest.Start(t, envtest.Config{})
	e.Run("a")
	client := e.Client("a")
	person := e.AttachWith(100, 30, "new-session", "-s", "mine", "-t", "=a", ";", "set-option", "destroy-unattached", "on")
	e.WaitFor("a", attached(1))
	person.Leave()
	e.Eventually("their session is gone", func() bool {
		l, ok := e.Listing()
		return ok && l.Sessions["mine"] == ""
	})
	e.WaitFor("a", envtest.Incarnation(1), attached(0))
	assert.Equal(t, client.Process, e.Client("a").Process)
}

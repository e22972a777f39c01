// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package tmux

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/actuate"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/observe/tmux"
)

// said makes the pane show lines, and waits until it does.
func (h *host) said(p observe.Pane, lines ...string) {
	h.Helper()
	require.NoError(h, writeTTY(h.tmux("display-message", "-p", "-t", p.PaneID, "#{pane_tty}"), strings.Join(lines, "\r\n")+"\r\n"))
	require.Eventually(h, func() bool {
		s, err := h.conn.Capture(h.Context(), p.PaneID, 10)
		return err == nil && len(s.Lines) > 0 && s.Lines[len(s.Lines)-1] == lines[len(lines)-1]
	}, 20*time.Second, 5*time.Millisecond)
}

// A client's words are none of ours, even when they look like them.
var forged = []string{"muxlet-refused", "muxlet-done %9 1", "muxlet-ran %9 1", "~~\t1000", "last words"}

func TestWhatAPaneHeldComesOutOfTheActionThatOverwritesOrRemovesIt(t *testing.T) {
	h := newServer(t)
	respawn := func(p observe.Pane) actuate.Action {
		return actuate.Action{Kind: actuate.ActionRespawn, Server: h.listing().Server, Pane: p, Launch: h.launch("shop")}
	}
	kill := func(p observe.Pane) actuate.Action {
		return actuate.Action{Kind: actuate.ActionKillPane, Server: h.listing().Server, Pane: p}
	}
	p := h.create("shop")
	for _, action := range []func(observe.Pane) actuate.Action{respawn, kill} {
		h.said(p, forged...)
		dead := h.die(p)
		a := action(dead)
		outcome := h.Do(t.Context(), a)
		require.Equal(t, actuate.ResultDone, outcome.Result, outcome.Message)
		require.NotNil(t, outcome.Screen)
		s := outcome.Screen
		assert.Equal(t, p.Labels.Attempt, s.Attempt, "its labels are those of the client that has ended")
		assert.Equal(t, p.Labels.Incarnation, s.Incarnation)
		assert.True(t, s.Dead)
		assert.Equal(t, "last words", s.Lines[len(s.Lines)-1])
		assert.Contains(t, s.Lines, "muxlet-done %9 1")
		if a.Kind == actuate.ActionRespawn {
			h.ran(a.Launch)
			p = h.pane(a.Launch.Labels.Attempt)
		}
	}
	assert.Empty(t, h.listing().Panes)
	assert.Empty(t, h.tmux("list-buffers"), "nothing is left in the server")
}

func TestAPaneWithALongHistoryIsKeptInPart(t *testing.T) {
	h := newServer(t)
	p := h.create("shop")
	var lines []string
	for i := range 3000 {
		lines = append(lines, fmt.Sprintf("line %d", i))
	}
	h.said(p, lines...)
	outcome := h.Do(t.Context(), actuate.Action{Kind: actuate.ActionKillPane, Server: h.listing().Server, Pane: p})
	require.NotNil(t, outcome.Screen)
	assert.InDelta(t, observe.KeptLines, len(outcome.Screen.Lines), 30)
	assert.Equal(t, "line 2999", outcome.Screen.Lines[len(outcome.Screen.Lines)-1])
}

func TestWhatAnIncarnationHasShownIsToldFromWhatWasThereBefore(t *testing.T) {
	h := newServer(t)
	p := h.create("shop")
	h.said(p, "words of the first")
	a := actuate.Action{Kind: actuate.ActionRespawn, Server: h.listing().Server, Pane: h.die(p), Launch: h.launch("shop")}
	require.Equal(t, actuate.ResultDone, h.Do(t.Context(), a).Result)
	h.ran(a.Launch)
	h.said(h.pane(a.Launch.Labels.Attempt), "words of the second")
	s, err := h.conn.Capture(t.Context(), p.PaneID, 100)
	require.NoError(t, err)
	assert.Contains(t, s.Lines, "words of the first")
	assert.Equal(t, []string{"words of the second"}, s.Own().Lines)
}

// Starts share a call, and so an answer. What one client has shown is not taken
// for what tmux said to another start.
func TestScreensOfRespawnsThatShareACallStayApart(t *testing.T) {
	h := newServer(t)
	var actions []actuate.Action
	for i := range 8 {
		name := fmt.Sprint("s", i)
		p := h.create(name)
		h.said(p, "muxlet-begin 0", "muxlet-begin 1", "muxlet-refused", "words of "+name)
		actions = append(actions, actuate.Action{Kind: actuate.ActionRespawn, Pane: h.die(p), Launch: h.launch(name)})
	}
	for i := range actions {
		actions[i].Server = h.listing().Server
	}
	outcomes, calls := h.crowd(actions...)
	for i, o := range outcomes {
		require.Equal(t, actuate.ResultDone, o.Result, o.Message)
		require.NotNil(t, o.Screen)
		assert.Equal(t, fmt.Sprint("words of s", i), o.Screen.Lines[len(o.Screen.Lines)-1])
		assert.Equal(t, actions[i].Pane.Labels.Attempt, o.Screen.Attempt)
		h.ran(actions[i].Launch)
	}
	assert.LessOrEqual(t, calls, 3)
}

// A screen that cannot be had stops nothing.
func TestARespawnDoesNotDependOnTheScreen(t *testing.T) {
	h := newServer(t)
	p := h.create("shop")
	dead := h.die(p)
	guard, err := h.paneGuard(actuate.Action{Server: h.listing().Server, Pane: dead})
	require.NoError(t, err)
	l := h.launch("shop")
	mark := tmux.NewMark()
	script := h.respawnScript(actuate.Action{Kind: actuate.ActionRespawn, Pane: dead, Launch: l})
	r := h.conn.Run(t.Context(), nil, guard.line(withScreen(mark, "%4711", script))...)
	assert.Nil(t, cutScreen(&r, mark))
	outcome := h.settle(t.Context(), actuate.Action{Launch: l}, r)
	assert.Equal(t, actuate.ResultDone, outcome.Result, outcome.Message)
	h.ran(l)
}

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
)

// A pane in which a person runs something else loses everything that is ours, and
// nothing else. One in which our own launcher runs is refused, also when a person
// has started that anew.
func TestAPaneIsReleasedOnlyToWhoRunsSomethingElseInIt(t *testing.T) {
	h := newServer(t)
	p := h.create("shop")
	release := func() actuate.Action {
		return actuate.Action{Kind: actuate.ActionRelease, Server: h.listing().Server, Pane: h.pane(p.Labels.Attempt)}
	}
	assert.False(t, h.pane(p.Labels.Attempt).Taken())
	h.unchanged(release())
	h.tmux("respawn-pane", "-k", "-t", p.PaneID)
	assert.True(t, h.pane(p.Labels.Attempt).Taken())
	h.unchanged(release())

	h.tmux("respawn-pane", "-k", "-t", p.PaneID, "--", "sh", "-c", "exec sleep 1000 # a,b} #{pid}")
	theirs := h.pane(p.Labels.Attempt)
	assert.True(t, theirs.Taken())
	h.done(release())
	after := h.listing().Panes
	require.Len(t, after, 1)
	assert.Equal(t, observe.Labels{}, after[0].Labels)
	assert.Equal(t, []any{theirs.PaneID, theirs.PID, observe.Present, 0}, []any{after[0].PaneID, after[0].PID, after[0].State, after[0].LaunchedPID})
	assert.Empty(t, h.tmux("show-options", "-p", "-t", p.PaneID))
}

// A server that has been ours all the time is claimed anew, and no other one.
func TestAServerIsToldAnewToStay(t *testing.T) {
	h := newServer(t)
	h.create("shop")
	server := h.listing().Server
	h.tmux("set-option", "-s", "exit-empty", "on")
	h.tmux("set-option", "-s", observe.OptionServerInstance, "x")
	h.tmux("set-option", "-g", "remain-on-exit", "off")
	other := server
	other.StartTime++
	h.unchanged(actuate.Action{Kind: actuate.ActionKeepServer, Server: other})
	h.done(actuate.Action{Kind: actuate.ActionKeepServer, Server: server})
	after := h.listing()
	assert.Empty(t, after.Lapsed)
	assert.Equal(t, server, after.Server)
	assert.Equal(t, "off", h.tmux("show-options", "-gwv", "remain-on-exit"), "what is theirs to say stays")
}

// Where nobody is attached a new window has its own size, whatever the server's
// options make of it, and is nobody's in particular: it follows who attaches.
func TestANewSessionHasItsOwnSizeUnderAnyOption(t *testing.T) {
	h := newServer(t)
	for i, words := range [][]string{{"window-size", "manual"}, {"window-size", "smallest"}, {"default-size", "40x10"}} {
		h.tmux(append([]string{"set-option", "-g"}, words...)...)
		p := h.create(fmt.Sprintf("s%d", i))
		assert.Equal(t, "100x30", h.tmux("display-message", "-p", "-t", p.PaneID, "#{window_width}x#{window_height}"), words)
		assert.Empty(t, h.tmux("show-options", "-w", "-t", p.PaneID, "window-size"))
	}
}

// What was on the screen of a client that died is in the history of the next one.
func TestARespawnScrollsTheLastScreenIntoTheHistory(t *testing.T) {
	h := newServer(t)
	p := h.create("shop")
	require.NoError(t, writeTTY(h.tmux("display-message", "-p", "-t", p.PaneID, "#{pane_tty}"), "one\r\ntwo\r\nthree\r\n"))
	shows := func() bool {
		return strings.Contains(h.tmux("capture-pane", "-p", "-S", "-", "-t", p.PaneID), "one\ntwo\nthree\n")
	}
	require.Eventually(t, shows, 20*time.Second, 5*time.Millisecond)
	dead := h.die(p)
	h.done(actuate.Action{Kind: actuate.ActionRespawn, Server: h.listing().Server, Pane: dead, Launch: h.launch("shop")})
	assert.True(t, shows())
}

// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package tmux

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/actuate"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/observe/process"
	"github.com/muxlet/muxlet/spec"
)

// onPane are the actions that concern a pane.
func onPane(h *host, server observe.Server, p observe.Pane) []actuate.Action {
	return []actuate.Action{
		{Kind: actuate.ActionRespawn, Server: server, Pane: p, Launch: h.launch(p.Labels.Name)},
		{Kind: actuate.ActionRespawnKill, Server: server, Pane: p, Launch: h.launch(p.Labels.Name)},
		{Kind: actuate.ActionKillPane, Server: server, Pane: p},
		{Kind: actuate.ActionKeys, Server: server, Pane: p, Keys: []string{"C-c"}},
	}
}

// D8: the person's own panes survive, too.
func TestARespawnKeepsThePaneTheLayoutAndTheHistory(t *testing.T) {
	h := newServer(t)
	p := h.create("shop")
	h.tmux("split-window", "-h", "-t", p.PaneID, "--", "sleep", "1000")
	require.NoError(t, writeTTY(h.tmux("display-message", "-p", "-t", p.PaneID, "#{pane_tty}"), "OLD WORK\n"))
	require.Eventually(t, func() bool {
		return strings.Contains(h.tmux("capture-pane", "-p", "-t", p.PaneID), "OLD WORK")
	}, 20*time.Second, 5*time.Millisecond)
	dead := h.die(p)
	layout := h.tmux("list-windows", "-a", "-F", "#{window_id} #{window_layout}")

	l := h.launch("shop")
	h.done(actuate.Action{Kind: actuate.ActionRespawn, Server: h.listing().Server, Pane: dead, Launch: l})
	saw := h.ran(l)
	now := h.pane(l.Labels.Attempt)
	assert.Equal(t, p.PaneID, now.PaneID)
	assert.Equal(t, saw.PID, now.PID)
	assert.Equal(t, l.Labels, now.Labels)
	assert.Equal(t, observe.Present, now.State)
	assert.Equal(t, layout, h.tmux("list-windows", "-a", "-F", "#{window_id} #{window_layout}"))
	assert.Contains(t, h.tmux("capture-pane", "-p", "-S", "-", "-t", p.PaneID), "OLD WORK")
	assert.Len(t, h.listing().Panes, 2)
}

func TestALivePaneIsNotRespawnedWithoutForce(t *testing.T) {
	h := newServer(t)
	p := h.create("shop")
	h.unchanged(actuate.Action{Kind: actuate.ActionRespawn, Server: h.listing().Server, Pane: p, Launch: h.launch("shop")})
	assert.Equal(t, observe.Running, process.State(observe.Process{PID: p.PID, Ticks: ticks(p.PID)}))
}

func TestARespawnThatFailsLeavesTheLabelsOfTheAttemptThatRan(t *testing.T) {
	h := newServer(t)
	p := h.create("shop")
	guard, err := h.paneGuard(actuate.Action{Server: h.listing().Server, Pane: p})
	require.NoError(t, err)
	l := h.launch("shop")
	// As respawn does it, but on a live pane: tmux refuses that by itself.
	r := h.conn.Run(t.Context(), nil, guard.line(h.respawnScript(actuate.Action{
		Kind: actuate.ActionRespawn, Pane: p, Launch: l,
	}))...)
	assert.Contains(t, r.Stderr, "still active")
	outcome := h.settle(t.Context(), actuate.Action{Launch: l}, r)
	assert.Equal(t, actuate.ResultFailed, outcome.Result)
	assert.Equal(t, p, h.pane(p.Labels.Attempt))
}

func TestAForcedRespawnReplacesWhatTmuxHoldsToBeAlive(t *testing.T) {
	h := newServer(t)
	p := h.create("shop")
	l := h.launch("shop")
	h.done(actuate.Action{Kind: actuate.ActionRespawnKill, Server: h.listing().Server, Pane: p, Launch: l})
	saw := h.ran(l)
	now := h.pane(l.Labels.Attempt)
	assert.Equal(t, p.PaneID, now.PaneID)
	assert.Equal(t, saw.PID, now.PID)
	assert.NotEqual(t, p.PID, now.PID)
}

func TestKillingAPaneLeavesThePersonsPanesInItsSession(t *testing.T) {
	h := newServer(t)
	p := h.create("shop")
	h.tmux("split-window", "-t", p.PaneID, "--", "sleep", "1000")
	h.done(actuate.Action{Kind: actuate.ActionKillPane, Server: h.listing().Server, Pane: p})
	left := h.listing()
	require.Len(t, left.Panes, 1)
	assert.NotEqual(t, p.PaneID, left.Panes[0].PaneID)
	assert.Contains(t, left.Sessions, "shop")
}

func TestAPaneThatIsNoMoreIsRefusedAndNoOtherIsTouched(t *testing.T) {
	h := newServer(t)
	gone := h.create("shop")
	h.done(actuate.Action{Kind: actuate.ActionKillPane, Server: h.listing().Server, Pane: gone})
	for _, a := range onPane(h, h.listing().Server, gone) {
		h.unchanged(a)
	}
	h.create("other")
	for _, a := range onPane(h, h.listing().Server, gone) {
		h.unchanged(a)
	}
}

func TestAPaneThatAPersonRespawnedIsRefused(t *testing.T) {
	h := newServer(t)
	p := h.create("shop")
	h.tmux("respawn-pane", "-k", "-t", p.PaneID, "--", "sleep", "1000")
	require.Equal(t, p.Labels, h.pane(p.Labels.Attempt).Labels, "labels survive a person's respawn")
	for _, a := range onPane(h, h.listing().Server, p) {
		h.unchanged(a)
	}
}

func TestAPaneOfAnotherAttemptInstanceOrSessionIsRefused(t *testing.T) {
	h := newServer(t)
	p := h.create("shop")
	for _, option := range []string{observe.OptionAttempt, observe.OptionUID, observe.OptionInstance} {
		was := h.tmux("show-options", "-p", "-v", "-t", p.PaneID, option)
		h.tmux("set-option", "-p", "-t", p.PaneID, option, "other")
		for _, a := range onPane(h, h.listing().Server, p) {
			h.unchanged(a)
		}
		h.tmux("set-option", "-p", "-t", p.PaneID, option, was)
	}
	foreign := p
	foreign.Labels.Instance = "other"
	forged := p
	forged.Labels.Attempt = "#{@muxlet-attempt}"
	nameless := p
	nameless.PaneID = "shop"
	unlabelled := p
	unlabelled.Labels = observe.Labels{Instance: instance}
	for _, bad := range []observe.Pane{foreign, forged, nameless, unlabelled} {
		for _, a := range onPane(h, h.listing().Server, bad) {
			h.unchanged(a)
		}
	}
}

func TestAPaneOfAnEarlierServerIsRefusedThoughItsIDIsInUseAgain(t *testing.T) {
	h := newServer(t)
	old := h.create("shop")
	server := h.listing().Server
	h.stop()
	h.done(actuate.Action{Kind: actuate.ActionStartServer})
	require.NoError(t, os.Remove(filepath.Join(h.StateDir, old.Labels.Attempt)))
	h.attempts = 0
	now := h.create("shop")
	require.Equal(t, old.PaneID, now.PaneID)
	require.Equal(t, old.Labels, now.Labels)
	for _, a := range onPane(h, server, now) {
		h.unchanged(a)
	}
	h.unchanged(actuate.Action{Kind: actuate.ActionCreate, Server: server, Launch: h.launch("new")})
	later := h.listing().Server
	later.StartTime++
	h.unchanged(actuate.Action{Kind: actuate.ActionCreate, Server: later, Launch: h.launch("new")})
	h.unchanged(actuate.Action{Kind: actuate.ActionCreate, Launch: h.launch("new")})
}

// F4, D2: a wedged tmux call ends, and its result is not guessed.
func TestAServerThatDoesNotAnswerIsUnclear(t *testing.T) {
	h := newServer(t)
	server := h.listing().Server
	require.NoError(t, syscall.Kill(server.Process.PID, syscall.SIGSTOP))
	t.Cleanup(func() { _ = syscall.Kill(server.Process.PID, syscall.SIGCONT) })
	h.conn.Timeout = 200 * time.Millisecond
	outcome := h.Do(t.Context(), actuate.Action{Kind: actuate.ActionCreate, Server: server, Launch: h.launch("shop")})
	assert.Equal(t, actuate.ResultUnclear, outcome.Result)
	assert.Equal(t, spec.ReasonTmuxTimeout, outcome.Reason)

	require.NoError(t, syscall.Kill(server.Process.PID, syscall.SIGCONT))
	h.conn.Timeout = 20 * time.Second
	require.Eventually(t, func() bool {
		return h.conn.List(t.Context(), time.Now).Kind == observe.AnswerListed
	}, 20*time.Second, 20*time.Millisecond)
	for _, p := range h.listing().Panes {
		assert.NotEmpty(t, p.Labels.Attempt, "what it did afterwards is whole")
	}
}

func TestATmuxThatCannotBeReachedMeansThatNothingHappened(t *testing.T) {
	h := newHost(t)
	server := observe.Server{Process: observe.Process{PID: 4711}, StartTime: 1}
	a := actuate.Action{Kind: actuate.ActionCreate, Server: server, Launch: h.launch("shop")}
	outcome := h.Do(t.Context(), a)
	assert.Equal(t, actuate.ResultFailed, outcome.Result)
	assert.Equal(t, spec.ReasonTmuxUnreachable, outcome.Reason)
	assert.NoFileExists(t, h.conn.Socket)

	h.conn.Command = "no-such-tmux"
	outcome = h.Do(t.Context(), a)
	assert.Equal(t, actuate.ResultFailed, outcome.Result)
	assert.Equal(t, spec.ReasonTmuxNotFound, outcome.Reason)
}

// writeTTY shows text in a pane as its program would.
func writeTTY(tty, text string) error { return os.WriteFile(tty, []byte(text), 0) }

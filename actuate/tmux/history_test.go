// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package tmux

import (
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/actuate"
	"github.com/muxlet/muxlet/spec"
)

// T1: each session has its own limit, in the panes that a person adds as well,
// and what a person opens elsewhere has the default.
func TestEachSessionHasItsOwnHistoryLimit(t *testing.T) {
	h := newServer(t)
	limit := func(target string) string {
		t.Helper()
		return h.tmux("display-message", "-p", "-t", target, "#{history_limit}")
	}
	create := func(name, into string, lines int) string {
		t.Helper()
		l := h.launch(name)
		l.HistoryLimit, l.Into = lines, into
		h.done(actuate.Action{Kind: actuate.ActionCreate, Server: h.listing().Server, Launch: l})
		h.ran(l)
		return h.pane(l.Labels.Attempt).PaneID
	}
	small, none := create("small", "", 100), create("none", "", 0)
	assert.Equal(t, "100", limit(small))
	assert.Equal(t, "0", limit(none))
	added := h.tmux("split-window", "-d", "-P", "-F", "#{pane_id}", "-t", small, "--", "sleep", "1000")
	assert.Equal(t, "100", limit(added))
	theirs := h.tmux("new-session", "-d", "-P", "-F", "#{pane_id}", "--", "sleep", "1000")
	assert.Equal(t, strconv.Itoa(spec.DefaultHistoryLimit), limit(theirs))

	// The client comes back beside a person's pane, and its spec was edited.
	session := h.tmux("display-message", "-p", "-t", added, "#{session_id}")
	assert.Equal(t, "300", limit(create("small", session, 300)))

	// A respawn needs no limit: the pane keeps the one that it was made with.
	dead := h.die(h.pane("attempt-2"))
	l := h.launch("none")
	l.HistoryLimit = 70
	h.done(actuate.Action{Kind: actuate.ActionRespawn, Server: h.listing().Server, Pane: dead, Launch: l})
	assert.Equal(t, "0", limit(none))
}

func TestTheServersDefaultIsThatOfTheSpec(t *testing.T) {
	conf, err := os.ReadFile("../../config/tmux/muxlet.conf")
	require.NoError(t, err)
	assert.Contains(t, string(conf), "\nset-option -g history-limit "+strconv.Itoa(spec.DefaultHistoryLimit)+"\n")
}

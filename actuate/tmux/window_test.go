// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package tmux

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/muxlet/muxlet/actuate"
	"github.com/muxlet/muxlet/observe"
)

// A3, D8: our pane was killed while a person still had one in the same tmux session. The
// session carries our label, so that the client comes back in it, in a window
// of its own, and theirs stays as it is.
func TestAClientComesBackBesideAPersonsPanes(t *testing.T) {
	h := newServer(t)
	first := h.create("shop")
	assert.Equal(t, observe.SessionLabel(first.Labels.Instance, first.Labels.UID), first.SessionLabel)
	theirs := h.tmux("split-window", "-d", "-P", "-F", "#{pane_id}", "-t", first.PaneID, "--", "sleep", "1000")
	h.done(actuate.Action{Kind: actuate.ActionKillPane, Server: h.listing().Server, Pane: first})

	l := h.launch("shop")
	l.Into = first.SessionID
	h.done(actuate.Action{Kind: actuate.ActionCreate, Server: h.listing().Server, Launch: l})
	saw, p := h.ran(l), h.pane(l.Labels.Attempt)
	assert.Equal(t, first.SessionID, p.SessionID)
	assert.Equal(t, l.Labels, p.Labels)
	assert.Equal(t, saw.PID, p.PID)
	assert.NotEqual(t, first.WindowID, p.WindowID)
	assert.Equal(t, theirs, h.tmux("display-message", "-p", "-t", p.SessionID+":", "#{pane_id}"), "theirs stays in front")
}

// The session may have ended since it was looked at: then nothing is opened.
func TestAWindowIsNotOpenedInASessionThatIsGone(t *testing.T) {
	h := newServer(t)
	h.create("other")
	l := h.launch("shop")
	l.Into = "$9999"
	out := New(h.Config).Do(t.Context(), actuate.Action{Kind: actuate.ActionCreate, Server: h.listing().Server, Launch: l})
	assert.NotEqual(t, actuate.ResultDone, out.Result)
	assert.Len(t, h.listing().Panes, 1)
	l.Into = "other"
	out = New(h.Config).Do(t.Context(), actuate.Action{Kind: actuate.ActionCreate, Server: h.listing().Server, Launch: l})
	assert.Equal(t, actuate.ResultRefused, out.Result, "a name is not an id")
}

// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package tmux

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/actuate"
	"github.com/muxlet/muxlet/observe"
)

// types are the keys of one action.
func (h *host) types(p observe.Pane, keys ...string) actuate.Action {
	return actuate.Action{Kind: actuate.ActionKeys, Server: h.listing().Server, Pane: p, Keys: keys}
}

// reader makes what runs in the pane from now on a program that writes what is typed
// into the file, and returns the pane as muxlet would know it then.
func (h *host) reader(p observe.Pane, file string) observe.Pane {
	h.Helper()
	h.tmux("respawn-pane", "-k", "-t", p.PaneID, "--", "sh", "-c", `stty raw -echo; : >"$1"; exec cat >>"$1"`, "sh", file)
	require.Eventually(h, func() bool { _, err := os.Stat(file); return err == nil }, 20*time.Second, 5*time.Millisecond)
	for _, now := range h.listing().Panes {
		if now.PaneID == p.PaneID {
			return now
		}
	}
	require.Fail(h, "the pane is gone")
	return p
}

func (h *host) eventuallyReads(file, text string) {
	h.Helper()
	got := ""
	assert.Eventually(h, func() bool {
		data, err := os.ReadFile(file)
		got = string(data)
		return err == nil && got == text
	}, 20*time.Second, 5*time.Millisecond)
	require.Equal(h, text, got)
}

func TestKeysAreTypedIntoTheLivePaneAndEndItsClient(t *testing.T) {
	h := newServer(t)
	p := h.create("shop")
	h.done(h.types(p, "C-c"))
	require.Eventually(t, func() bool {
		h.done(actuate.Action{Kind: actuate.ActionReap, Server: h.listing().Server})
		return h.pane(p.Labels.Attempt).State == observe.Dead
	}, 20*time.Second, 20*time.Millisecond)
	h.unchanged(h.types(h.pane(p.Labels.Attempt), "C-c"))
}

func TestKeysArriveAsTheyAreWritten(t *testing.T) {
	h := newServer(t)
	file := filepath.Join(h.dir, "typed")
	p := h.reader(h.create("shop"), file)
	h.done(h.types(p, "-l", "/exit", ";", "a;", `'"$x`, "#{pid}", "C-c", "Escape", "Enter"))
	h.eventuallyReads(file, "-l/exit;a;'\"$x#{pid}\x03\x1b\r")
	for _, none := range [][]string{nil, {""}, {"C-c", "a\nb"}} {
		h.unchanged(h.types(p, none...))
	}
}

func TestKeysAreForTheClientWhateverAPersonLooksAtInItsPane(t *testing.T) {
	h := newServer(t)
	file := filepath.Join(h.dir, "typed")
	p := h.reader(h.create("shop"), file)
	typed := ""
	for _, mode := range [][]string{{"copy-mode"}, {"copy-mode", "-u"}, {"choose-tree"}, {"clock-mode"}, {"customize-mode"}} {
		h.tmux(append(mode, "-t", p.PaneID)...)
		require.Equal(t, "1", h.tmux("display-message", "-p", "-t", p.PaneID, "#{pane_in_mode}"), mode)
		h.done(h.types(p, "q", "C-c"))
		typed += "q\x03"
		h.eventuallyReads(file, typed)
		assert.Equal(t, "0", h.tmux("display-message", "-p", "-t", p.PaneID, "#{pane_in_mode}"), mode)
	}
}

func TestKeysReachNoOtherPane(t *testing.T) {
	h := newServer(t)
	file, theirs := filepath.Join(h.dir, "typed"), filepath.Join(h.dir, "theirs")
	p := h.reader(h.create("shop"), file)
	h.tmux("split-window", "-t", p.PaneID, "--", "sh", "-c", `stty raw -echo; : >"$1"; exec cat >>"$1"`, "sh", theirs)
	require.Eventually(t, func() bool { _, err := os.Stat(theirs); return err == nil }, 20*time.Second, 5*time.Millisecond)
	h.done(h.types(p, "a"))
	h.eventuallyReads(file, "a")

	h.tmux("set-option", "-w", "-t", p.PaneID, "synchronize-panes", "on")
	h.unchanged(h.types(p, "b"))
	h.tmux("set-option", "-w", "-t", p.PaneID, "synchronize-panes", "off")
	h.done(h.types(p, "c"))
	h.eventuallyReads(file, "ac")
	data, err := os.ReadFile(theirs)
	require.NoError(t, err)
	assert.Empty(t, strings.TrimSpace(string(data)))
}

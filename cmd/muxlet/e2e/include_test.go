// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/muxlet/muxlet/spec"
)

// including are settings with a tmux configuration file of a person's, which is written to
// a path that means something to tmux, to shells and to patterns.
func (w *World) including(text string) settings {
	w.Helper()
	path := w.home + `/my [con]f 'x" #(false);é`
	w.write(path, text)
	return settings{"tmux": settings{"timeout": "5s", "include": path}}
}

// configured waits until the tmux server has been given what the file asks for.
func (w *World) configured() {
	w.Helper()
	w.waitFor("the tmux server is given its configuration", func() bool {
		return strings.Contains(w.log(), `msg="Gave the tmux server its configuration"`)
	})
}

// Nothing that a person's tmux configuration does breaks a session: it comes up, dies,
// comes back and is adopted; and what it is there for, keys and looks, is in force.
func TestNothingInATmuxConfigurationBreaksASession(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"numbers":  "set -g base-index 1\nset -g pane-base-index 1\nset -g renumber-windows on\nset -g window-size manual\n",
		"commands": "set -g default-command 'exit 7'\nset -g default-shell /bin/false\nset -s command-alias[9] new-session=kill-server\n",
		"ends":     "set -g destroy-unattached on\nset -s exit-empty on\nset -s exit-unattached on\nset -g remain-on-exit off\nset -g detach-on-destroy off\n",
		"hooks":    "set-hook -g session-created 'rename-session hooked'\nset-hook -g pane-died 'respawn-pane -k sh'\nset-hook -g after-new-session kill-session\nset-hook -g after-split-window kill-pane\nset-hook -g after-respawn-pane kill-server\n",
		"unknown":  "set -g no-such-option on\nset -g update-environment SECRET\nset -g mode-keys nonsense\n",
		"suicide":  "kill-server\n",
		"mistake":  "bogus-command {\n",
		"sessions": "new-session -d -s a\nkill-session -a\n",
		"plugins":  "run-shell 'tmux set-hook -g session-created kill-session; tmux set -g @plugged yes'\nrun-shell -b 'sleep 1000'\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.configure(w.including("set -g prefix C-a\nset -g mouse off\nset -g status off\n" + text))
			w.start()
			w.declare("z", "stay")
			w.configured()
			w.declare("a", "stay")
			first := w.runs("a")
			require.NoError(t, unix.Kill(pid(first), unix.SIGKILL))
			second := w.runsAs("a", 2)
			assert.Equal(t, "SIGKILL", second.Status.Client.LastTermination.Signal)
			w.kill()
			w.start()
			assert.Equal(t, pid(second), pid(w.runsAs("a", 2)), "it is adopted")
			require.NoError(t, unix.Kill(w.server().pid, unix.SIGKILL))
			w.runsAs("a", 3)
			assert.Equal(t, 3, w.countOf("a"))
			assert.Equal(t, "0", w.person("display-message", "-p", "-t", "=a:", "#{pane_in_mode}"), "no error is shown in the pane")
			assert.Equal(t, "off", w.person("show-options", "-sv", "exit-empty"))
			if name == "suicide" || name == "mistake" {
				w.eventually([]string{"get"}, "Problem: ")
				return
			}
			w.waitFor("keys and looks hold on the new server", func() bool {
				return w.person("show-options", "-gv", "prefix") == "C-a" && w.person("show-options", "-gv", "mouse") == "off" && w.person("show-options", "-gv", "status") == "off"
			})
		})
	}
}

// An edit of the file is in force without a restart of anything, and so is its end.
func TestATmuxConfigurationIsReadAgainWhenItChanges(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	including := w.including("set -g mouse off\nbind C-t new-window\nunbind d\n")
	w.configure(including)
	w.start()
	w.declare("a", "stay")
	before := w.runs("a")
	server := w.server().pid
	shown := func(option string) string { return w.person("show-options", "-gv", option) }
	keys := func() string { return w.person("list-keys", "-T", "prefix") }
	w.waitFor("it is in force", func() bool { return shown("mouse") == "off" && strings.Contains(keys(), " C-t ") })
	assert.NotContains(t, keys(), "detach-client\n")

	path := fmt.Sprint(including.section("tmux")["include"])
	w.write(path, "set -g status-position top\nset -g nonsense 1\n")
	w.waitFor("the edit is in force", func() bool { return shown("status-position") == "top" })
	assert.Equal(t, "on", shown("mouse"), "what it does not say any more is as it was")
	assert.NotContains(t, keys(), " C-t ")
	assert.Contains(t, keys(), "detach-client")
	w.eventually([]string{"get"}, "Problem: "+path+":2: invalid option: nonsense")
	w.eventually([]string{"events"}, spec.ReasonTmuxIncludeInvalid, "nonsense")

	w.configure(settings{"tmux": settings{"timeout": "5s", "prefix": "C-q"}})
	w.waitFor("without it all is as it was", func() bool { return shown("status-position") == "bottom" && shown("prefix") == "C-q" })
	assert.Contains(t, keys(), "C-q")
	w.waitFor("nothing is wrong any more", func() bool { return !strings.Contains(w.does("get"), "Problem") })
	assert.Equal(t, pid(before), pid(w.runs("a")))
	assert.Equal(t, server, w.server().pid, "nothing was restarted")
}

// A prefix of muxlet's own goes before that of the person's other tmux.
func TestAPrefixOfTheSettingsGoesBeforeThatOfTheFile(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	including := w.including("set -g prefix C-a\nset -g mouse off\n")
	including.section("tmux")["prefix"] = "M-Space"
	w.configure(including)
	w.start()
	w.declare("a", "stay")
	w.runs("a")
	w.waitFor("the file is in force", func() bool { return w.person("show-options", "-gv", "mouse") == "off" })
	assert.Equal(t, "M-Space", w.person("show-options", "-gv", "prefix"))
}

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

	"github.com/muxlet/muxlet/actuate/process"
	"github.com/muxlet/muxlet/observe"
	observeprocess "github.com/muxlet/muxlet/observe/process"
)

// trial tries files, each written to a path that means something to tmux and shells.
type trial struct {
	*host
	*Trial
	file string
}

func newTrial(t *testing.T) *trial {
	t.Helper()
	h := newHost(t)
	conn := *h.conn
	conn.Socket = filepath.Join(h.dir, "i")
	dir := filepath.Join(h.dir, `my [con]f*; 'x" #(false) $HOME é`)
	require.NoError(t, os.Mkdir(dir, 0o700))
	return &trial{host: h, Trial: &Trial{Conn: &conn, Conf: h.Conf}, file: filepath.Join(dir, "tmux.conf")}
}

func (tr *trial) try(text string) Included {
	tr.Helper()
	require.NoError(tr.T, os.WriteFile(tr.file, []byte(text), 0o600))
	got, err := tr.Try(tr.Context(), tr.file)
	require.NoError(tr.T, err)
	return got
}

func TestWhatAPersonsFileSetsIsWhatItAsksFor(t *testing.T) {
	tr := newTrial(t)
	got := tr.try(`
set -g prefix C-a
unbind C-b
bind C-a send-prefix
bind -r j select-pane -D
bind -n M-x display-message "a;b#{q:pane_id}" \; kill-pane
set -g status-right "#(echo \"it's\") $HOME %H"
set -g @theme 'a "b" \ c'
set -s escape-time 0
setw -g mode-keys vi
set -g mouse off
`)
	assert.Empty(t, got.Problems)
	assert.Empty(t, got.LeftOut)
	assert.Equal(t, []string{
		"bind-key -T prefix C-a send-prefix", "unbind-key -q -T prefix C-b", "bind-key -r -T prefix j select-pane -D",
		`bind-key -T root M-x display-message "a;b#{q:pane_id}" \; kill-pane`,
		`set-option -q -g @theme "a \"b\" \\ c"`, "set-option -q -g mouse off", "set-option -q -g prefix C-a",
		`set-option -q -g status-right "#(echo \"it's\") ` + tr.dir + ` %H"`,
		"set-option -q -gw mode-keys vi", "set-option -q -s escape-time 0",
	}, got.Set)
	assert.NoFileExists(t, tr.Conn.Socket, "the server of the trial is gone")
}

// What a trial tells is what a server gets by it, and what it takes back leaves nothing.
func TestWhatAFileAsksForIsGivenToAnotherServerAndTakenBack(t *testing.T) {
	tr := newTrial(t)
	got := tr.try(`
set -g status-format[1] 'x #{?#{==:1,1},a,b}'
set -as terminal-overrides ',xterm*:Tc'
set -g status-left "~ \t 'a' \\ #[fg=red]"
set -g @empty ''
set -gu status-interval
set -g status-keys vi
bind '"' split-window -v -c "#{pane_current_path}"
bind \; command-prompt -p "a ';' b:" "rename-window '%%'"
bind R { source-file ~/.tmux.conf ; display-message 'again' }
bind C-l if-shell "true" 'display-message "x y"' { send-keys C-l }
bind m if -F '#{==:#{mouse},1}' { set -g mouse off } { set -g mouse on }
setenv -g TMUX_PLUGIN_MANAGER_PATH '/a b/'
`)
	require.Empty(t, got.Problems)
	other := tr.Trial
	pid, err := other.begin(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { other.end(pid) })
	before, err := other.look(t.Context())
	require.NoError(t, err)
	source := func(lines []string) {
		require.NoError(t, os.WriteFile(tr.file, []byte(strings.Join(lines, "\n")+"\n"), 0o600))
		require.Empty(t, other.source(t.Context(), tr.file))
	}
	source(got.Set)
	after, err := other.look(t.Context())
	require.NoError(t, err)
	assert.Equal(t, got, difference(before, after))
	source(got.Undo)
	again, err := other.look(t.Context())
	require.NoError(t, err)
	assert.Equal(t, before, again)
}

// Whatever a file does, what it asks for is known, or why it is not.
func TestWhatAFileDoesBesidesIsNeverAskedFor(t *testing.T) {
	tr := newTrial(t)
	got := tr.try(`
new-session -d -s main
kill-session -t include
set -g status off
set -s exit-empty on
set -s exit-unattached on
set -g destroy-unattached on
set -g update-environment 'SECRET'
set -g window-size manual
set -g base-index 1
set -g default-command 'false'
set -s command-alias[50] new-session=kill-server
set -g @muxlet-uid x
set-hook -g session-created 'rename-session hooked'
set-hook -g pane-died 'respawn-pane'
set-hook -g after-new-session 'kill-session'
run-shell 'echo printed: unknown things'
`)
	assert.Equal(t, []string{"set-option -q -g base-index 1", "set-option -q -g default-command false", "set-option -q -g status off"}, got.Set)
	assert.Equal(t, []string{
		"hook after-new-session", "hook pane-died", "hook session-created", "option @muxlet-uid", "option destroy-unattached",
		"option update-environment", "option window-size", "option command-alias", "option exit-unattached",
	}, got.LeftOut)
	assert.Empty(t, got.Problems)
}

func TestWhatIsWrongInAFileIsNamedWithItsPlace(t *testing.T) {
	tr := newTrial(t)
	got := tr.try("# no-such-option\nset -g mouse off\nset -g no-such-option 1\nset -g status-style nonsense=1\n")
	assert.Equal(t, []string{"set-option -q -g mouse off"}, got.Set, "the rest holds")
	require.NotEmpty(t, got.Problems)
	assert.Equal(t, tr.file+":3: invalid option: no-such-option", got.Problems[0])
	assert.Len(t, got.Problems, 2)
	assert.Contains(t, got.Problems[1], tr.file+":4: ")

	got = tr.try("set -g mouse off\nbogus-command x\n")
	assert.Equal(t, []string{tr.file + ":2: unknown command: bogus-command"}, got.Problems)
	got = tr.try("set -g mouse off\nsource-file /nowhere/theme.conf\n")
	require.Len(t, got.Problems, 1)
	assert.Contains(t, got.Problems[0], tr.file+":2: ")
	assert.Contains(t, got.Problems[0], "/nowhere/theme.conf")
}

func TestAFileThatEndsItsServerOrNeverEndsIsNamed(t *testing.T) {
	tr := newTrial(t)
	tr.Limit = time.Second
	for _, text := range []string{"kill-server\n", "run-shell 'kill -9 $PPID'\n"} {
		require.NoError(t, os.WriteFile(tr.file, []byte(text), 0o600))
		_, err := tr.Try(t.Context(), tr.file)
		require.ErrorContains(t, err, tr.file+" ends the tmux server", text)
	}
	got := tr.try("set -g mouse off\nrun-shell 'sleep 1000'\nset -g status off\n")
	assert.Equal(t, []string{"set-option -q -g mouse off"}, got.Set)
	require.Len(t, got.Problems, 1)
	assert.Contains(t, got.Problems[0], "it has not ended within 1s")

	_, err := tr.Try(t.Context(), tr.file+".gone")
	require.ErrorContains(t, err, "no such file or directory")
}

// A plugin sets what it sets by calls of its own, also after the file was read.
func TestWhatPluginsSetIsWaitedFor(t *testing.T) {
	tr := newTrial(t)
	plugin := filepath.Join(tr.dir, "plugin.tmux")
	require.NoError(t, os.WriteFile(plugin, []byte("#!/bin/sh\ntmux set-option -g @a \"$(tmux show-option -gqv @theme)\"\ntmux bind-key T run-shell '/x/y.sh'\n(sleep 0.1; tmux set-option -g status-right late) &\n"), 0o700))
	got := tr.try("set -g @theme nord\nrun '" + plugin + "'\n")
	assert.Empty(t, got.Problems)
	for _, want := range []string{"set-option -q -g @a nord", "bind-key -T prefix T run-shell /x/y.sh", "set-option -q -g status-right late"} {
		assert.Contains(t, got.Set, want)
	}
}

// A daemon that is killed leaves the server of its trial, which the next one ends: also one
// that waits for a command of the file, and one that answers nobody.
func TestTheServerOfATrialThatWasBrokenOffIsEnded(t *testing.T) {
	for name, text := range map[string]string{"it waits for a command": "run-shell 'sleep 600'\n", "it is mute": "source-file PIPE\n"} {
		t.Run(name, func(t *testing.T) {
			tr := newTrial(t)
			pipe := filepath.Join(tr.dir, "pipe")
			require.NoError(t, syscall.Mkfifo(pipe, 0o600))
			require.NoError(t, os.WriteFile(tr.file, []byte(strings.ReplaceAll(text, "PIPE", pipe)), 0o600))
			tr.Limit = 500 * time.Millisecond
			server, err := tr.begin(t.Context())
			require.NoError(t, err)
			t.Cleanup(func() { _ = process.Signal(server.PID, syscall.SIGKILL, process.Itself(server)) })
			tr.source(t.Context(), tr.file)
			require.Equal(t, observe.Running, observeprocess.State(server))
			next := &Trial{Conn: tr.Conn, Conf: tr.Conf}
			next.Clear(t.Context())
			assert.Eventually(t, func() bool { return observeprocess.State(server) == observe.Gone }, time.Minute, 10*time.Millisecond)
			assert.NoFileExists(t, tr.Conn.Socket)
			assert.NoFileExists(t, tr.note())
		})
	}
}

// To open a pipe would wait for somebody who writes into it.
func TestAFileThatIsNoFileIsNotWaitedFor(t *testing.T) {
	tr := newTrial(t)
	require.NoError(t, syscall.Mkfifo(tr.file, 0o600))
	_, err := tr.Try(t.Context(), tr.file)
	require.EqualError(t, err, "read "+tr.file+": it is not a regular file")
	_, err = tr.Try(t.Context(), tr.dir)
	require.EqualError(t, err, "read "+tr.dir+": it is not a regular file")
	_, err = tr.Try(t.Context(), os.DevNull)
	require.NoError(t, err)
}

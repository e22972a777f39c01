// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package tmux

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/muxlet/muxlet/actuate"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/observe/process"
	"github.com/muxlet/muxlet/spec"
)

func TestAStartedServerIsOursAndStaysWithoutSessions(t *testing.T) {
	h := newServer(t)
	server := h.listing().Server
	assert.Equal(t, instance, server.Instance)
	h.create("shop")
	h.tmux("kill-session", "-t", "=shop")
	assert.Empty(t, h.listing().Panes)
	assert.True(t, server.Same(h.listing().Server))
}

func TestAStartedServerIsNotTiedToTheDaemon(t *testing.T) {
	h := newHost(t)
	var fds [2]int
	require.NoError(t, unix.Pipe(fds[:]))
	t.Cleanup(func() {
		_ = unix.Close(fds[0])
		_ = unix.Close(fds[1])
	})
	h.done(actuate.Action{Kind: actuate.ActionStartServer})
	pid := h.listing().Server.Process.PID
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	require.NoError(t, err)
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+2:]))
	assert.Equal(t, fmt.Sprint(pid), fields[2], "a process group of its own")
	assert.Equal(t, fmt.Sprint(pid), fields[3], "a session of its own")
	assert.Equal(t, "0", fields[4], "no terminal")

	inherited, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fds[0]))
	require.NoError(t, err)
	open, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	require.NoError(t, err)
	require.NotEmpty(t, open)
	for _, fd := range open {
		target, _ := os.Readlink(fd)
		assert.NotEqual(t, inherited, target, fd)
	}
	environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	require.NoError(t, err)
	for _, v := range strings.Split(strings.TrimSuffix(string(environ), "\x00"), "\x00") {
		name, _, _ := strings.Cut(v, "=")
		assert.Contains(t, []string{"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG"}, name)
	}
}

func TestAServerThatIsOursAlreadyIsTakenAsItIs(t *testing.T) {
	h := newServer(t)
	p := h.create("shop")
	server := h.listing().Server
	h.done(actuate.Action{Kind: actuate.ActionStartServer})
	assert.True(t, server.Same(h.listing().Server))
	assert.Equal(t, []observe.Pane{p}, h.listing().Panes)
}

// I3, K3: a server of another instance is not ours.
func TestAServerOfSomebodyElseIsLeftAlone(t *testing.T) {
	h := newServer(t)
	h.create("shop")
	before := h.listing()
	other := New(h.Config)
	other.Instance = "another"
	outcome := other.Do(t.Context(), actuate.Action{Kind: actuate.ActionStartServer})
	assert.Equal(t, actuate.ResultFailed, outcome.Result)
	assert.Equal(t, spec.ReasonForeignServer, outcome.Reason)
	assert.Equal(t, before.Server, h.listing().Server)

	h.tmux("set-option", "-s", "-u", observe.OptionServerInstance)
	outcome = other.Do(t.Context(), actuate.Action{Kind: actuate.ActionStartServer})
	assert.Equal(t, spec.ReasonForeignServer, outcome.Reason, "a person's server has sessions")
	assert.Empty(t, h.listing().Server.Instance)
}

func TestAServerIsNotStartedWithoutItsConfiguration(t *testing.T) {
	h := newHost(t)
	h.Conf = filepath.Join(h.dir, "gone.conf")
	outcome := h.Do(t.Context(), actuate.Action{Kind: actuate.ActionStartServer})
	assert.Equal(t, actuate.ResultFailed, outcome.Result)
	assert.Equal(t, spec.ReasonTmuxServerFailed, outcome.Reason)
	assert.NoFileExists(t, h.conn.Socket)
}

func TestAServerThatCannotMakeItsSocketIsAFailure(t *testing.T) {
	h := newHost(t)
	h.conn.Socket = filepath.Join(h.dir, "no", "such", "dir")
	outcome := h.Do(t.Context(), actuate.Action{Kind: actuate.ActionStartServer})
	assert.Equal(t, actuate.ResultFailed, outcome.Result)
	assert.Equal(t, spec.ReasonTmuxServerFailed, outcome.Reason)
}

func TestALostSocketIsRestoredByTheServerItself(t *testing.T) {
	for name, known := range map[string]bool{"ticks known": true, "ticks not known": false} {
		t.Run(name, func(t *testing.T) {
			h := newServer(t)
			p := h.create("shop")
			server := h.listing().Server
			if !known {
				server.Process.Ticks = 0
			}
			require.NoError(t, os.Remove(h.conn.Socket))
			h.done(actuate.Action{Kind: actuate.ActionRestoreSocket, Server: server})
			require.Eventually(t, func() bool {
				return h.conn.List(t.Context(), time.Now).Kind == observe.AnswerListed
			}, 20*time.Second, 5*time.Millisecond)
			assert.True(t, server.Same(h.listing().Server))
			assert.Equal(t, []observe.Pane{p}, h.listing().Panes)
		})
	}
}

// Both signals end a process that does not expect them.
func TestAProcessThatIsNotTheServerIsNotSignalled(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "sleep", "1000")
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	p, alive := process.Identify(cmd.Process.Pid)
	require.Equal(t, observe.Running, alive)
	h := newHost(t)
	for _, wrong := range []observe.Process{{PID: p.PID, Ticks: p.Ticks + 1}, {PID: p.PID}} {
		for _, kind := range []actuate.Kind{actuate.ActionRestoreSocket, actuate.ActionReap} {
			outcome := h.Do(t.Context(), actuate.Action{Kind: kind, Server: observe.Server{Process: wrong, StartTime: 1}})
			assert.Equal(t, actuate.ResultRefused, outcome.Result, outcome.Message)
		}
	}
	assert.Equal(t, actuate.ResultFailed, h.Do(t.Context(), actuate.Action{Kind: actuate.ActionReap}).Result)
	assert.Equal(t, observe.Running, process.State(p))
}

// The values of DESIGN 6 and of what sessions need, on the tmux that is here.
func TestTheConfigurationLoadsWithoutAnErrorAndHolds(t *testing.T) {
	h := newServer(t)
	h.create("shop")
	assert.Empty(t, h.tmux("source-file", h.Conf), "it can be applied again")
	assert.Equal(t, "0", h.tmux("display-message", "-p", "-t", "=shop:", "#{pane_in_mode}"), "no error is shown in the pane")
	for _, c := range []struct{ scope, option, want string }{
		{"-s", "exit-empty", "off"}, {"-s", "exit-unattached", "off"}, {"-g", "destroy-unattached", "off"},
		{"-gw", "remain-on-exit", "on"}, {"-g", "update-environment", ""}, {"-g", "default-size", "200x50"},
		{"-gw", "window-size", "latest"}, {"-g", "base-index", "0"}, {"-gw", "pane-base-index", "0"},
		{"-gw", "automatic-rename", "off"}, {"-gw", "allow-rename", "off"}, {"-g", "set-titles", "off"},
		{"-s", "default-terminal", "tmux-256color"}, {"-s", "escape-time", "10"}, {"-s", "focus-events", "on"},
		{"-g", "mouse", "on"}, {"-s", "set-clipboard", "external"}, {"-g", "status-left-length", "66"},
	} {
		assert.Equal(t, c.want, h.tmux("show-options", c.scope, "-v", c.option), c.option)
	}
	assert.Contains(t, h.tmux("show-options", "-s", "terminal-features"), "*:RGB")
}

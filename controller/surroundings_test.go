// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/controller/envtest"
	"github.com/muxlet/muxlet/controller/server"
	"github.com/muxlet/muxlet/spec"
)

// V1: the daemon was started inside a person's tmux. This test cannot run beside
// others, since it changes the environment of all.
func TestTheCallersOwnTmuxIsIgnoredAndUntouched(t *testing.T) {
	person := envtest.Make(t, envtest.Config{})
	require.NoError(t, os.WriteFile(filepath.Join(person.Runtime, "tmux.conf"), nil, 0o600))
	person.StartServer("new-session", "-d", "-s", "mine", "--", "sleep", "1000")
	theirs := person.Server()
	before := person.Tmux("list-panes", "-a", "-F", "#{session_name} #{pane_id} #{pane_pid}")
	pane := person.Tmux("list-panes", "-a", "-F", "#{pid},0")
	t.Setenv("TMUX", person.Socket()+","+pane)
	t.Setenv("TMUX_PANE", "%0")
	t.Setenv("TMUX_TMPDIR", person.Runtime)
	t.Setenv("TMUX_CALLER_SECRET", "leak")

	e := envtest.Start(t, envtest.Config{})
	e.Run("mine")
	e.Kill(e.Client("mine").Process)
	e.WaitFor("mine", envtest.Incarnation(2))
	client := e.Client("mine")
	assert.Contains(t, client.Env, "TMUX", "the client is told of its own tmux")
	assert.NotContains(t, client.Env, "TMUX_TMPDIR")
	assert.NotContains(t, client.Env, "TMUX_CALLER_SECRET")
	environ, err := os.ReadFile(filepath.Join("/proc", client.Process.String()[:strings.Index(client.Process.String(), "@")], "environ"))
	require.NoError(t, err)
	assert.Contains(t, string(environ), "TMUX="+e.Socket()+",")

	require.NoError(t, e.Controller().Delete(t.Context(), "mine"))
	e.WaitNoSession("mine")
	assert.Equal(t, theirs, person.Server())
	assert.Equal(t, before, person.Tmux("list-panes", "-a", "-F", "#{session_name} #{pane_id} #{pane_pid}"))
}

// R1: a daemon that was killed leaves the socket file of its API behind.
func TestAStaleSocketOfTheAPIIsReplacedAtOnce(t *testing.T) {
	t.Parallel()
	e := envtest.Start(t, envtest.Config{})
	e.Run("a")
	e.Drop()
	path := filepath.Join(e.Runtime, "muxlet.sock")
	stale, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	require.NoError(t, err)
	stale.SetUnlinkOnClose(false)
	require.NoError(t, stale.Close())

	began := time.Now()
	e.Boot()
	listener, err := server.Listen(path)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx, listener, server.Handler(e.Controller())) }()
	client := server.NewClient(path)
	defer client.Close()
	s, err := client.Session(t.Context(), "a")
	require.NoError(t, err)
	assert.Less(t, time.Since(began), time.Second)
	assert.Equal(t, "a", s.Name)
	e.WaitFor("a", envtest.Incarnation(1))
	s, err = client.Session(t.Context(), "a")
	require.NoError(t, err)
	assert.Equal(t, spec.StatusRunning, spec.DisplayStatus(s))
	cancel()
	require.NoError(t, <-ended)
}

// The API answers while tmux does not.
func TestTheAPIAnswersWhileTmuxIsMute(t *testing.T) {
	t.Parallel()
	e := envtest.Start(t, envtest.Config{})
	e.Run("a")
	server := e.Server()
	e.Signal(server, "SIGSTOP")
	defer e.Signal(server, "SIGCONT")
	e.Apply(e.Fake("b", envtest.Script{}))
	for range 20 {
		began := time.Now()
		_, ok := e.Session("a")
		require.True(t, ok)
		require.NotEmpty(t, e.Controller().Sessions().Items)
		e.Controller().Status()
		require.Less(t, time.Since(began), time.Second)
		e.Always(50*time.Millisecond, "time passes", func() bool { return true })
	}
}

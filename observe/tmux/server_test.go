// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package tmux

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/observe"
)

const testConfiguration = `set -g exit-empty off
set -g remain-on-exit on
set -g update-environment ''
set -g default-size 120x30
`

// patience is how long a test waits for something that happens at once on an idle
// machine.
const patience = 60 * time.Second

// testConn is a Conn to a socket of its own on which nobody listens yet.
func testConn(t *testing.T) *Conn {
	t.Helper()
	// t.TempDir would carry the test's name: too long for a socket.
	dir, err := os.MkdirTemp("", "mxt")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	return &Conn{
		Socket: filepath.Join(dir, "s"), Timeout: 10 * time.Second,
		Env: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "SHELL=/bin/sh", "LANG=C.UTF-8"},
	}
}

// testServer is a Conn to a running, empty server, which is ended with the test.
func testServer(t *testing.T) *Conn {
	t.Helper()
	c := testConn(t)
	startServer(t, c)
	return c
}

// startServer returns the pid of the server that it starts.
func startServer(t *testing.T, c *Conn) int {
	t.Helper()
	conf := filepath.Join(filepath.Dir(c.Socket), "conf")
	require.NoError(t, os.WriteFile(conf, []byte(testConfiguration), 0o600))
	r := c.Start(t.Context(), conf, "start-server", ";", "display-message", "-p", "#{pid}")
	requireClean(t, r)
	pid, err := strconv.Atoi(strings.TrimSpace(r.Stdout))
	require.NoError(t, err)
	t.Cleanup(func() { killServer(t, pid) })
	return pid
}

func killServer(t *testing.T, pid int) {
	t.Helper()
	_ = syscall.Kill(pid, syscall.SIGKILL)
	require.Eventually(t, func() bool { return gone(pid) }, patience, 5*time.Millisecond, "server %d survives", pid)
}

// gone says whether a process that is nobody's child in this test has ended.
func gone(pid int) bool {
	out, err := exec.Command("ps", "-o", "stat=", "-p", strconv.Itoa(pid)).Output()
	return err != nil || strings.HasPrefix(string(out), "Z")
}

func requireClean(t *testing.T, r Result) {
	t.Helper()
	require.NoError(t, r.Err)
	require.Empty(t, r.Stderr)
	require.Zero(t, r.ExitCode)
}

// run executes one command line on the server and returns what it printed.
func run(t *testing.T, c *Conn, args ...string) string {
	t.Helper()
	r := c.Run(t.Context(), nil, args...)
	requireClean(t, r)
	return strings.TrimSuffix(r.Stdout, "\n")
}

// newSession creates a session and returns the id of its pane.
func newSession(t *testing.T, c *Conn, name string, argv ...string) string {
	t.Helper()
	if len(argv) == 0 {
		argv = []string{"sleep", "1000"}
	}
	args := append([]string{"new-session", "-d", "-P", "-F", "#{pane_id}", "-s", name, "--"}, argv...)
	return run(t, c, args...)
}

func listed(t *testing.T, c *Conn) observe.Listing {
	t.Helper()
	a := c.List(t.Context(), time.Now)
	require.Equal(t, observe.AnswerListed, a.Kind, a.Message)
	return a.Listing
}

func paneOf(t *testing.T, l observe.Listing, id string) observe.Pane {
	t.Helper()
	for _, p := range l.Panes {
		if p.PaneID == id {
			return p
		}
	}
	require.Failf(t, "pane is not listed", "%s in %v", id, l.Panes)
	return observe.Pane{}
}

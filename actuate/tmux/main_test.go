// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package tmux

import (
	"context"
	"encoding/json"
	"fmt"
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
	"github.com/muxlet/muxlet/observe/tmux"
	"github.com/muxlet/muxlet/spec"
)

// The test binary is the launcher as well, when its first argument says so.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "launch" {
		fmt.Fprintln(os.Stderr, launchMain(os.Args))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// launched is what the fake launcher saw.
type launched struct {
	PID       int
	Argv, Env []string
	Dir       string
}

// launchMain writes what it saw to a file named after the attempt and becomes a
// program that waits.
func launchMain(argv []string) error {
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	data, err := json.Marshal(launched{PID: os.Getpid(), Argv: argv, Env: os.Environ(), Dir: dir})
	if err != nil {
		return err
	}
	path := filepath.Join(argv[3], argv[9])
	if err := os.WriteFile(path+".new", data, 0o600); err != nil {
		return err
	}
	if err := os.Rename(path+".new", path); err != nil {
		return err
	}
	return syscall.Exec("/bin/sleep", []string{"sleep", "1000"}, os.Environ())
}

const instance = "11111111-aaaa"

// host is a private tmux server and an Actuator for it.
type host struct {
	*testing.T
	*Actuator
	conn *tmux.Conn
	dir  string
	// attempts counts those that were made, for their names.
	attempts int
}

// newHost has everything but a server.
func newHost(t *testing.T) *host {
	t.Helper()
	dir, err := os.MkdirTemp("", "mx")
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, os.RemoveAll(dir)) })
	state := filepath.Join(dir, "st ate;'#{pid}\"$HOME;")
	require.NoError(t, os.Mkdir(state, 0o700))
	self, err := os.Executable()
	require.NoError(t, err)
	conf, err := filepath.Abs("../../config/tmux/muxlet.conf")
	require.NoError(t, err)
	conn := &tmux.Conn{
		Socket: filepath.Join(dir, "s"), Timeout: 20 * time.Second,
		Env:     []string{"PATH=/usr/bin:/bin", "HOME=" + dir, "USER=u", "LOGNAME=u", "SHELL=/bin/sh", "LANG=C.UTF-8", "SECRET=leak"},
		TicksOf: ticks,
	}
	h := &host{T: t, conn: conn, dir: dir, Actuator: New(Config{
		Conn: conn, Instance: instance, Binary: self, StateDir: state, RuntimeDir: dir,
		Conf: conf, Shell: Shell{Path: "/bin/bash", Supported: true}, LaunchExtra: []string{"extra;"},
	})}
	t.Cleanup(h.stop)
	return h
}

func ticks(pid int) uint64 {
	ticks, err := process.Ticks(pid)
	if err != nil {
		return 0
	}
	return ticks
}

// newServer has a server as well.
func newServer(t *testing.T) *host {
	t.Helper()
	h := newHost(t)
	h.done(actuate.Action{Kind: actuate.ActionStartServer})
	return h
}

// stop ends the server and whatever runs in its panes.
func (h *host) stop() {
	// The test's own context has ended.
	listing := h.conn.List(context.Background(), time.Now)
	if listing.Kind != observe.AnswerListed {
		return
	}
	h.conn.Run(context.Background(), nil, "kill-server")
	for _, p := range listing.Listing.Panes {
		if p.PID > 0 { // -1 is every process there is
			_ = syscall.Kill(p.PID, syscall.SIGKILL)
		}
	}
	server := listing.Listing.Server.Process
	assert.Eventually(h, func() bool { return process.State(server) == observe.Gone }, 20*time.Second, 5*time.Millisecond)
}

// tmux runs a command as a person would.
func (h *host) tmux(args ...string) string {
	h.Helper()
	r := h.conn.Run(h.Context(), nil, args...)
	require.NoError(h, r.Err)
	require.Zero(h, r.ExitCode, r.Stderr)
	return strings.TrimSuffix(r.Stdout, "\n")
}

func (h *host) listing() observe.Listing {
	h.Helper()
	answer := h.conn.List(h.Context(), time.Now)
	require.Equal(h, observe.AnswerListed, answer.Kind, answer.Message)
	return answer.Listing
}

// pane returns the one pane with this attempt.
func (h *host) pane(attempt string) observe.Pane {
	h.Helper()
	var found []observe.Pane
	for _, p := range h.listing().Panes {
		if p.Labels.Attempt == attempt {
			found = append(found, p)
		}
	}
	require.Len(h, found, 1, attempt)
	return found[0]
}

func (h *host) done(a actuate.Action) {
	h.Helper()
	outcome := h.Do(h.Context(), a)
	outcome.Screen = nil // TestWhatAPaneHeld… are about it
	require.Equal(h, actuate.Outcome{Result: actuate.ResultDone}, outcome)
}

// launch is a fresh attempt to start a client of the session name.
func (h *host) launch(name string) actuate.Launch {
	h.attempts++
	return actuate.Launch{
		Labels: observe.Labels{
			Instance: instance, UID: "uid-of-" + name, Name: name, Role: observe.RoleClient,
			Incarnation: int64(h.attempts), Attempt: fmt.Sprintf("attempt-%d", h.attempts),
		},
		Directory: h.dir, ShellMode: spec.ShellNone, Columns: 100, Rows: 30, HistoryLimit: 1234,
	}
}

// create makes a session and returns its pane once the launcher ran.
func (h *host) create(name string) observe.Pane {
	h.Helper()
	l := h.launch(name)
	h.done(actuate.Action{Kind: actuate.ActionCreate, Server: h.listing().Server, Launch: l})
	h.ran(l)
	return h.pane(l.Labels.Attempt)
}

// ran waits until the launcher of l became its program.
func (h *host) ran(l actuate.Launch) launched {
	h.Helper()
	var saw launched
	path := filepath.Join(h.StateDir, l.Labels.Attempt)
	require.Eventually(h, func() bool {
		data, err := os.ReadFile(path)
		return err == nil && json.Unmarshal(data, &saw) == nil
	}, 20*time.Second, 5*time.Millisecond, "the launcher ran")
	require.Eventually(h, func() bool {
		name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", saw.PID))
		return err == nil && string(name) == "sleep\n"
	}, 20*time.Second, 5*time.Millisecond, "the launcher became a client")
	return saw
}

// die kills the pane's process and waits until tmux shows it. tmux 3.3a can miss
// the end; a SIGCHLD helps.
func (h *host) die(p observe.Pane) observe.Pane {
	h.Helper()
	require.NoError(h, syscall.Kill(p.PID, syscall.SIGKILL))
	server := h.listing().Server
	var dead observe.Pane
	require.Eventually(h, func() bool {
		dead = h.pane(p.Labels.Attempt)
		h.done(actuate.Action{Kind: actuate.ActionReap, Server: server})
		return dead.State == observe.Dead && dead.StatusKnown()
	}, 20*time.Second, 20*time.Millisecond)
	return dead
}

// unchanged asserts that the action is refused and that nothing came of it.
func (h *host) unchanged(a actuate.Action) {
	h.Helper()
	before := h.listing()
	outcome := h.Do(h.Context(), a)
	assert.Equal(h, actuate.ResultRefused, outcome.Result, outcome.Message)
	assert.NotEmpty(h, outcome.Message)
	after := h.listing()
	assert.Equal(h, before.Panes, after.Panes)
	assert.Equal(h, before.Sessions, after.Sessions)
}

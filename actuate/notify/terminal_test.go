// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/actuate"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/observe/tmux"
	"github.com/muxlet/muxlet/spec"
)

// server is a tmux server with one session whose pane runs a shell command.
func server(t *testing.T, script string) *tmux.Conn {
	t.Helper()
	// t.TempDir would carry the test's name: too long for a socket.
	dir, err := os.MkdirTemp("", "mxn")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	c := &tmux.Conn{Socket: filepath.Join(dir, "s"), Timeout: 20 * time.Second, Env: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "SHELL=/bin/sh", "LANG=C.UTF-8"}}
	r := c.Start(t.Context(), "/dev/null", "new-session", "-d", "-s", "a", "-x", "80", "-y", "20", "sh", "-c", script, ";", "display-message", "-p", "#{pid}")
	require.NoError(t, r.Err)
	pid, err := strconv.Atoi(strings.TrimSpace(r.Stdout))
	require.NoError(t, err, r.Stderr)
	t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGKILL) })
	return c
}

// terminal is a person's terminal that is attached to a server.
type terminal struct {
	t   *testing.T
	pty *os.File
	cmd *exec.Cmd

	mu    sync.Mutex
	shown []byte
}

func attach(t *testing.T, c *tmux.Conn, term string) *terminal {
	t.Helper()
	a := attachStopped(t, c, term)
	over := make(chan struct{})
	go func() { defer close(over); a.read() }()
	t.Cleanup(func() {
		_ = a.cmd.Process.Kill()
		<-over
	})
	require.Eventually(t, func() bool { return len(a.has()) > 0 }, patience, 10*time.Millisecond)
	return a
}

// attachStopped is a terminal that reads nothing.
func attachStopped(t *testing.T, c *tmux.Conn, term string) *terminal {
	t.Helper()
	before := len(terminals(t, c))
	cmd := exec.Command("tmux", "-N", "-u", "-S", c.Socket, "attach", "-t", "=a")
	cmd.Env = append(cmd.Environ(), "TERM="+term, "TMUX=")
	file, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 21, Cols: 80})
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = file.Close()
	})
	require.Eventually(t, func() bool { return len(terminals(t, c)) == before+1 }, patience, 10*time.Millisecond)
	return &terminal{t: t, pty: file, cmd: cmd}
}

func (a *terminal) read() {
	buffer := make([]byte, 4096)
	for {
		n, err := a.pty.Read(buffer)
		a.mu.Lock()
		a.shown = append(a.shown, buffer[:n]...)
		a.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (a *terminal) has() []byte {
	a.mu.Lock()
	defer a.mu.Unlock()
	return bytes.Clone(a.shown)
}

func (a *terminal) gets(what string) {
	a.t.Helper()
	require.Eventually(a.t, func() bool { return bytes.Contains(a.has(), []byte(what)) }, patience, 10*time.Millisecond, "%q", what)
}

func terminals(t *testing.T, c *tmux.Conn) []observe.Terminal {
	t.Helper()
	found, err := c.Terminals(t.Context())
	require.NoError(t, err)
	return found
}

var every = actuate.NotificationWay{Terminal: spec.TerminalNotifications}

func TestEachAttachedTerminalIsTold(t *testing.T) {
	t.Parallel()
	c := server(t, "sleep 1000")
	one, two := attach(t, c, "xterm-256color"), attach(t, c, "tmux-256color")
	out := Person{Conn: c}.Notify(t.Context(), every, example)
	require.NoError(t, out.TerminalErr)
	assert.Equal(t, 2, out.Terminals)
	const text = "shop waits for you (PermissionRequired): it asks\a"
	one.gets("\a\x1b]9;muxlet: " + text + "\x1b]777;notify;muxlet;" + text)
	two.gets("\a\x1bPtmux;\x1b\x1b]9;muxlet: " + text + "\x1b\\\x1bPtmux;\x1b\x1b]777;notify;muxlet;" + text + "\x1b\\")
}

func TestWithoutATerminalNobodyIsToldAndNothingFails(t *testing.T) {
	t.Parallel()
	c := server(t, "sleep 1000")
	out := Person{Conn: c}.Notify(t.Context(), every, example)
	assert.Equal(t, actuate.NotificationOutcome{}, out)
	away := *c
	away.Socket += "-of-nobody"
	out = Person{Conn: &away}.Notify(t.Context(), every, example)
	assert.Equal(t, actuate.NotificationOutcome{}, out)
}

// A terminal that a person has stopped, or that hangs on a line that is down, takes
// nothing, and nobody waits for it.
func TestAStoppedTerminalBlocksNobody(t *testing.T) {
	t.Parallel()
	c := server(t, "while :; do echo a flood of words for everybody; done")
	attachStopped(t, c, "xterm-256color")
	tty := terminals(t, c)[0]
	require.Eventually(t, func() bool { return writeTerminal(tty, []byte(" ")) != nil }, patience, time.Microsecond, "its buffer is never full")
	began := time.Now()
	out := Person{Conn: c}.Notify(t.Context(), every, example)
	assert.Less(t, time.Since(began), patience/2)
	assert.Zero(t, out.Terminals)
	assert.ErrorContains(t, out.TerminalErr, "the terminal "+tty.TTY+" was not told: it does not read")
}

// The screen of a person in front of a client that draws all the time is as tmux has it
// when all is drawn: the outer tmux stands for their terminal.
func TestTheScreenOfATerminalIsNotGarbled(t *testing.T) {
	t.Parallel()
	script := `i=0; while [ ! -e "$HOME/stop" ]; do i=$((i+1)); printf '\033[%d;3H\033[3%dm* Wörking→ %d\033[0m\033[K' $((i%3+10)) $((i%7+1)) $i; sleep 0.03; done; sleep 1000`
	inner := server(t, script)
	home := filepath.Dir(inner.Socket)
	outer := server(t, "TMUX= TERM=tmux-256color exec tmux -N -u -S "+inner.Socket+" attach -t =a")
	require.Eventually(t, func() bool { return len(terminals(t, inner)) == 1 }, patience, 10*time.Millisecond)
	for range 20 {
		out := Person{Conn: inner}.Notify(t.Context(), every, example)
		require.NoError(t, out.TerminalErr)
		require.Equal(t, 1, out.Terminals)
	}
	require.NoError(t, os.WriteFile(home+"/stop", nil, 0o600))
	capture := func(c *tmux.Conn) string {
		r := c.Run(t.Context(), nil, "capture-pane", "-p", "-t", "=a:")
		require.NoError(t, r.Err)
		return r.Stdout
	}
	require.Eventually(t, func() bool {
		want := strings.Split(strings.TrimRight(capture(inner), "\n"), "\n")
		got := strings.Split(capture(outer), "\n")
		return strings.Contains(want[len(want)-1]+want[len(want)-2], "Wörking→") && strings.Join(got[:len(want)], "\n") == strings.Join(want, "\n")
	}, patience, 20*time.Millisecond, "inner:\n%s\nouter:\n%s", capture(inner), capture(outer))
}

func TestOnlyTheTerminalOfTheClientItselfIsWrittenTo(t *testing.T) {
	t.Parallel()
	c := server(t, "sleep 1000")
	attach(t, c, "xterm-256color")
	tty := terminals(t, c)[0]
	other, otherTTY, err := pty.Open()
	require.NoError(t, err)
	defer func() { _, _ = other.Close(), otherTTY.Close() }()
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for path, why := range map[string]string{file: "it is no terminal", otherTTY.Name(): "it is not proven to be that of pid", "/nowhere": "open it"} {
		tty.TTY = path
		require.ErrorContains(t, writeTerminal(tty, []byte("x")), why)
	}
	assert.Empty(t, func() []byte { data, _ := os.ReadFile(file); return data }())
}

func TestATextCannotEndItsSequence(t *testing.T) {
	n := example
	n.Reason, n.Message = "A;B", "x\x1b\\\a\u009c;4;1;50\n\x1b]52;c;cm0=\a"
	got := string(sequence([]spec.TerminalNotification{spec.TerminalOSC9, spec.TerminalOSC777}, n, false))
	assert.Equal(t, "\x1b]9;muxlet: shop waits for you (A;B): x \\ ;4;1;50 ]52;c;cm0=\a\x1b]777;notify;muxlet;shop waits for you (A;B): x \\ ;4;1;50 ]52;c;cm0=\a", got)
}

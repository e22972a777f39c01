// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package tmux

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/observe"
)

// D1, F4, R1: a server that does not answer costs the deadline and nothing else.
func TestStoppedServerIsATimeoutThatLeavesNothingBehind(t *testing.T) {
	c := testConn(t)
	pid := startServer(t, c)
	id := newSession(t, c, "s")
	require.NoError(t, syscall.Kill(pid, syscall.SIGSTOP))
	c.Timeout = 300 * time.Millisecond
	began := time.Now()
	a := c.List(t.Context(), time.Now)
	took := time.Since(began)
	require.Equal(t, observe.AnswerTimeout, a.Kind)
	require.Contains(t, a.Message, "did not answer in time")
	require.Contains(t, a.Message, c.Socket)
	require.Less(t, took, c.Timeout+drainTime+2*time.Second)
	_, err := c.Capture(t.Context(), id, 5)
	require.ErrorIs(t, err, ErrTimeout)
	require.True(t, c.Run(t.Context(), strings.NewReader("x"), "load-buffer", "-").TimedOut)
	require.Eventually(t, func() bool { return !strings.Contains(stacks(), "os/exec.") }, patience, 5*time.Millisecond)
	require.Empty(t, children(t))

	c.Timeout = 10 * time.Second
	require.NoError(t, syscall.Kill(pid, syscall.SIGCONT))
	require.Equal(t, observe.Present, paneOf(t, listed(t, c), id).State)
}

// stacks shows every goroutine.
func stacks() string {
	text := make([]byte, 1<<20)
	return string(text[:runtime.Stack(text, true)])
}

// children lists the pids of this process's children, zombies included.
func children(t *testing.T) []string {
	t.Helper()
	out, _ := exec.Command("ps", "-o", "pid=,args=", "--ppid", strconv.Itoa(os.Getpid())).Output()
	var found []string
	for line := range strings.Lines(string(out)) {
		if !strings.Contains(line, "ps -o") {
			found = append(found, line)
		}
	}
	return found
}

func TestStoppedServerDoesNotOutlastACancelledContext(t *testing.T) {
	c := testConn(t)
	pid := startServer(t, c)
	require.NoError(t, syscall.Kill(pid, syscall.SIGSTOP))
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(100*time.Millisecond, cancel)
	r := c.Run(ctx, nil, "list-sessions")
	require.ErrorIs(t, r.Err, context.Canceled)
	require.False(t, r.TimedOut)
	require.Equal(t, observe.AnswerFailed, Classify(r.Stdout, r.Stderr, r.ExitCode, r.Err))
}

// C4: nobody there, in each form in which that shows.
func TestNobodyOnTheSocketIsSaidAsSuch(t *testing.T) {
	silent := func(t *testing.T, c *Conn) {
		t.Helper()
		a := c.List(t.Context(), time.Now)
		require.Contains(t, []observe.AnswerKind{observe.AnswerNoSocket, observe.AnswerRefused}, a.Kind, a.Message)
		require.Contains(t, a.Message, c.Socket)
	}
	t.Run("no socket ever", func(t *testing.T) { silent(t, testConn(t)) })
	t.Run("no directory", func(t *testing.T) {
		c := testConn(t)
		c.Socket = filepath.Join(filepath.Dir(c.Socket), "none", "s")
		silent(t, c)
	})
	t.Run("regular file on the path", func(t *testing.T) {
		c := testConn(t)
		require.NoError(t, os.WriteFile(c.Socket, nil, 0o600))
		silent(t, c)
	})
	t.Run("server killed", func(t *testing.T) {
		c := testConn(t)
		killServer(t, startServer(t, c))
		silent(t, c)
		require.FileExists(t, c.Socket)
	})
	t.Run("socket removed under a live server", func(t *testing.T) {
		c := testConn(t)
		pid := startServer(t, c)
		require.NoError(t, os.Remove(c.Socket))
		silent(t, c)
		require.NoError(t, syscall.Kill(pid, 0))
		require.NoFileExists(t, c.Socket, "asking started a second server")
	})
}

// D2: the program is missing, or cannot be executed.
func TestMissingProgramIsSaidWithWhereItWasLookedFor(t *testing.T) {
	c := testConn(t)
	text := filepath.Join(t.TempDir(), "tmux")
	require.NoError(t, os.WriteFile(text, []byte("no program"), 0o700))
	for name, change := range map[string]func(*Conn){
		"name that is nowhere":  func(c *Conn) { c.Command = "no-such-tmux" },
		"path that is not":      func(c *Conn) { c.Command = "/no/such/tmux" },
		"empty PATH":            func(c *Conn) { c.Env = nil },
		"relative PATH":         func(c *Conn) { c.Env = []string{"PATH=bin:."} },
		"file without a format": func(c *Conn) { c.Command = text },
		"directory":             func(c *Conn) { c.Command = filepath.Dir(text) },
	} {
		t.Run(name, func(t *testing.T) {
			changed := &Conn{Socket: c.Socket, Env: c.Env}
			change(changed)
			a := changed.List(t.Context(), time.Now)
			require.Equal(t, observe.AnswerNoBinary, a.Kind, a.Message)
			require.NotEmpty(t, a.Message)
		})
	}
}

// V1: the caller's own tmux is neither used nor found.
func TestCallersTmuxVariablesAreIgnored(t *testing.T) {
	other := testServer(t)
	newSession(t, other, "persons-own")
	c := testConn(t)
	c.Env = append(c.Env, "TMUX="+other.Socket+",1,0", "TMUX_PANE=%0", "TMUX_TMPDIR=/nonexistent", "SECRET=leak", "TERM=dumb")
	t.Setenv("TMUX", other.Socket+",1,0")
	t.Setenv("TMUX_TMPDIR", "/nonexistent")
	t.Setenv("SECRET", "leak")
	startServer(t, c)
	require.Empty(t, listed(t, c).Panes)
	newSession(t, c, "mine", "sh", "-c", "env; exec sleep 1000")
	l := listed(t, c)
	require.Len(t, l.Panes, 1)
	require.NotContains(t, l.Sessions, "persons-own")
	environment := run(t, c, "show-environment", "-g")
	require.NotContains(t, environment, "leak")
	require.NotContains(t, environment, "TMUX_TMPDIR")
	require.Contains(t, environment, "LANG=C.UTF-8")
}

// X1: the program was replaced under a running server.
func TestRunningServersOwnBinaryIsUsed(t *testing.T) {
	c := testConn(t)
	program, err := c.Program()
	require.NoError(t, err)
	content, err := os.ReadFile(program)
	require.NoError(t, err)
	old := filepath.Join(filepath.Dir(c.Socket), "tmux")
	require.NoError(t, os.WriteFile(old, content, 0o700))
	c.Command = old
	pid := startServer(t, c)
	require.NoError(t, os.Remove(old))
	require.Equal(t, observe.AnswerNoBinary, c.List(t.Context(), time.Now).Kind)
	c.BinaryOf = func() string { return fmt.Sprintf("/proc/%d/exe", pid) }
	require.Equal(t, pid, listed(t, c).Server.Process.PID)
}

func TestBinaryOfAServerThatIsGoneGivesWayToTheCommand(t *testing.T) {
	c := testServer(t)
	c.BinaryOf = func() string { return "/proc/0/exe" }
	listed(t, c)
	c.BinaryOf = func() string { return "" }
	listed(t, c)
}

func TestLongAnswerIsCutOffAndSaidToBe(t *testing.T) {
	b := bounds{limit: 4}
	for _, chunk := range []string{"abc", "def", "g"} {
		n, err := b.Write([]byte(chunk))
		require.NoError(t, err)
		require.Equal(t, len(chunk), n)
	}
	require.True(t, b.overflowed)
	require.Equal(t, "abcd", b.kept.String())
}

func TestConnMayBeUsedByManyAtOnce(t *testing.T) {
	c := testServer(t)
	newSession(t, c, "s")
	var asked sync.WaitGroup
	answers := make([]observe.Answer, 16)
	for i := range answers {
		asked.Go(func() { answers[i] = c.List(t.Context(), time.Now) })
	}
	asked.Wait()
	for _, a := range answers {
		require.Equal(t, observe.AnswerListed, a.Kind, a.Message)
		require.Len(t, a.Listing.Panes, 1)
	}
}

func TestServerThatIsKilledWhileItIsAskedProvesNothing(t *testing.T) {
	c := testConn(t)
	pid := startServer(t, c)
	require.NoError(t, syscall.Kill(pid, syscall.SIGSTOP))
	time.AfterFunc(100*time.Millisecond, func() { _ = syscall.Kill(pid, syscall.SIGKILL) })
	a := c.List(t.Context(), time.Now)
	require.Equal(t, observe.AnswerFailed, a.Kind)
	require.Equal(t, "server exited unexpectedly", a.Message)
}

// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/controller/server"
	"github.com/muxlet/muxlet/spec"
)

// attached is what attach executed.
type attached struct {
	path      string
	argv, env []string
}

// terminal makes the command line believe that it has one, inside the tmux whose
// TMUX is given.
func (c *cli) terminal(tmux string) *attached {
	done := &attached{}
	c.prepare = func(g *globals) {
		g.interactive = func() bool { return true }
		g.environ = func() []string {
			env := []string{"TERM=xterm", "TMUX_TMPDIR=/elsewhere"}
			if tmux != "" {
				env = append(env, "TMUX="+tmux, "TMUX_PANE=%1")
			}
			return env
		}
		g.exec = func(path string, argv, env []string) error {
			*done = attached{path, argv, env}
			return nil
		}
	}
	return done
}

var attachLine = []string{"tmux", "-u", "-S", "/run/muxlet/tmux.sock", "attach-session", "-t", "%7"}

func TestAttachBecomesATmuxClientOnThePane(t *testing.T) {
	c := newCLI(t, newFakeDaemon(runningSession("a", 1, 5)))
	done := c.terminal("")
	assert.Equal(t, 0, c.run("attach", "a"))
	assert.Equal(t, attachLine, done.argv)
	assert.Equal(t, "tmux", filepath.Base(done.path))
	assert.True(t, filepath.IsAbs(done.path))
	assert.Empty(t, c.errOut)
}

func TestAttachWithinMuxletsOwnServerSwitches(t *testing.T) {
	c := newCLI(t, newFakeDaemon(runningSession("a", 1, 5)))
	done := c.terminal("/run/muxlet/tmux.sock,123,4")
	assert.Equal(t, 0, c.run("attach", "a"))
	assert.Equal(t, []string{"tmux", "-u", "-S", "/run/muxlet/tmux.sock", "switch-client", "-t", "%7"}, done.argv)
	assert.Contains(t, done.env, "TMUX=/run/muxlet/tmux.sock,123,4", "tmux finds its client by it")
	assert.Empty(t, c.errOut)
}

// V1
func TestAttachWithinAnotherTmuxIsNestedWithAHint(t *testing.T) {
	c := newCLI(t, newFakeDaemon(runningSession("a", 1, 5)))
	done := c.terminal("/tmp/tmux-0/default,123,4")
	assert.Equal(t, 0, c.run("attach", "a"))
	assert.Equal(t, slices.Concat(attachLine, []string{";", "display-message", "-d", "5000", "Attaching inside another tmux: press its prefix twice to reach the inner one."}), done.argv)
	assert.Equal(t, []string{"TERM=xterm", "TMUX_TMPDIR=/elsewhere"}, done.env)
	assert.Equal(t, "Attaching inside another tmux: press its prefix twice to reach the inner one.\n", c.errOut)
}

func TestAttachNeedsATerminal(t *testing.T) {
	f := newFakeDaemon(stalledSession("a", spec.ReasonTerminated, ""))
	c := newCLI(t, f)
	assert.Equal(t, exitError, c.run("attach", "a"))
	assert.Equal(t, "Error: session \"a\" cannot be attached here: standard input is not a terminal; \"muxlet logs a\" prints what it shows\n", c.errOut)
	assert.Empty(t, f.intents(), "nothing was started for it")
}

func TestAttachBringsASessionUpThatIsDown(t *testing.T) {
	f := newFakeDaemon(stalledSession("a", spec.ReasonTerminated, ""))
	afterLooks(f, 5, func(f *fakeDaemon, _, name string) { f.set(runningSession(name, 2, 9)) })
	c := newCLI(t, f)
	done := c.terminal("")
	assert.Equal(t, 0, c.run("attach", "a"))
	assert.Equal(t, []string{"attach a"}, f.intents())
	assert.Equal(t, attachLine, done.argv)
}

func TestAttachDoesNotMindThatAClientCameUpMeanwhile(t *testing.T) {
	f := newFakeDaemon(crashLooping("a"))
	f.on = func(f *fakeDaemon, _, name string) error {
		f.set(runningSession(name, 5, 9))
		return server.NewError(server.ReasonAlreadyRunning, name, "it runs")
	}
	c := newCLI(t, f)
	done := c.terminal("")
	assert.Equal(t, 0, c.run("attach", "a"))
	assert.Equal(t, attachLine, done.argv)
}

func TestAttachNeverStartsASuspendedOrUnknownSession(t *testing.T) {
	f := newFakeDaemon(suspendedSession("a"), stalledSession("b", spec.ReasonWorkspaceMissing, "The directory /home/me/src/b does not exist."))
	c := newCLI(t, f)
	done := c.terminal("")
	assert.Equal(t, exitConflict, c.run("attach", "a"))
	assert.Equal(t, "Error: session \"a\" is suspended: run \"muxlet resume a\" first.\n", c.errOut)
	assert.Equal(t, exitNotFound, c.run("attach", "nobody"))
	assert.Empty(t, f.intents())
	assert.Equal(t, exitConflict, c.run("attach", "b"))
	assert.Contains(t, c.errOut, "The directory /home/me/src/b does not exist.")
	assert.Empty(t, done.argv)
}

func TestAttachSaysThatAClientComesOnDemand(t *testing.T) {
	dormant := stalledSession("a", spec.ReasonDormant, "")
	dormant.Spec.ProvisioningPolicy = spec.ProvisioningOnDemand
	f := newFakeDaemon(dormant)
	afterLooks(f, 5, func(f *fakeDaemon, _, name string) { f.set(runningSession(name, 2, 9)) })
	c := newCLI(t, f)
	done := c.terminal("")
	assert.Equal(t, 0, c.run("attach", "a"))
	assert.Equal(t, []string{"attach a"}, f.intents())
	assert.Equal(t, attachLine, done.argv)
	assert.Equal(t, "Session \"a\" has its client on demand: it is being started.\n", c.errOut)
}

func TestAttachNeverComesToAnotherSessionOfTheName(t *testing.T) {
	f := newFakeDaemon(stalledSession("a", spec.ReasonTerminated, ""))
	f.on = func(f *fakeDaemon, _, name string) error {
		other := runningSession(name, 1, 9)
		other.UID = "another"
		f.set(other)
		return nil
	}
	c := newCLI(t, f)
	done := c.terminal("")
	assert.Equal(t, exitNotFound, c.run("attach", "a"))
	assert.Contains(t, c.errOut, "declared anew")
	assert.Empty(t, done.argv)

	f = newFakeDaemon(stalledSession("a", spec.ReasonTerminated, ""))
	f.on = func(_ *fakeDaemon, _, name string) error { return server.NewNotFound(name) }
	c = newCLI(t, f)
	assert.NotNil(t, c.terminal(""))
	assert.Equal(t, exitNotFound, c.run("attach", "a"))
}

func TestAttachNamesATmuxThatIsNotThere(t *testing.T) {
	c := newCLI(t, newFakeDaemon(runningSession("a", 1, 5)))
	config := c.write("config/muxlet/config.yaml", "apiVersion: config.muxlet.dev/v1alpha1\nkind: MuxletConfiguration\ntmux: {command: /nowhere/tmux}\n")
	c.terminal("")
	assert.Equal(t, exitError, c.run("attach", "a", "--config", config))
	assert.Contains(t, c.errOut, "find tmux (tmux.command in the settings)")
	assert.Contains(t, c.errOut, "/nowhere/tmux")
}

// screen collects what a terminal shows.
type screen struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *screen) shows(text string) func() bool {
	return func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return strings.Contains(s.text.String(), text)
	}
}

// The argv that attach executes, on a real tmux and a real terminal: the pane is
// selected although it is neither the active one nor in the active window.
func TestTheAttachLineShowsExactlyThePane(t *testing.T) {
	dir, err := os.MkdirTemp("", "mx")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket := filepath.Join(dir, "t.sock")
	tmux := func(args ...string) string {
		cmd := exec.Command("tmux", append([]string{"-S", socket, "-f", "/dev/null"}, args...)...)
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "TERM=xterm", "HOME=" + dir, "LANG=C.UTF-8"}
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, string(out))
		return strings.TrimSpace(string(out))
	}
	pane := tmux("new-session", "-d", "-s", "s", "-x", "80", "-y", "24", "-P", "-F", "#{pane_id}", "--", "sh", "-c", "echo the-managed-pane; sleep 1d")
	t.Cleanup(func() { tmux("kill-server") })
	tmux("split-window", "-t", pane, "--", "sleep", "1d")
	tmux("new-window", "-t", "s:", "--", "sh", "-c", "echo another-window; sleep 1d")

	cmd := exec.Command("tmux", attachArgs(socket, pane)...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "TERM=xterm", "HOME=" + dir, "LANG=C.UTF-8"}
	terminal, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 24, Cols: 80})
	require.NoError(t, err)
	shown := &screen{}
	copied := make(chan struct{})
	go func() {
		defer close(copied)
		_, _ = io.Copy(shown, terminal)
	}()
	require.Eventually(t, shown.shows("the-managed-pane"), 10*time.Second, 10*time.Millisecond)
	assert.Equal(t, pane, tmux("display-message", "-p", "-t", "s:", "#{pane_id}"), "it is the active pane now")
	tmux("detach-client", "-s", "s")
	require.NoError(t, cmd.Wait())
	require.NoError(t, terminal.Close())
	<-copied
}

// In a pane of muxlet's server the daemon is found although nothing says where it is.
func TestInAPaneOfMuxletsTheDaemonIsFound(t *testing.T) {
	c := newCLI(t, newFakeDaemon(runningSession("a", 1, 5)))
	delete(c.env, "MUXLET_RUNTIME_DIR")
	assert.Equal(t, exitError, c.run("get"))
	c.terminal(filepath.Join(c.dir, "run", "tmux.sock") + ",123,4")
	assert.Equal(t, 0, c.run("get"))
	assert.Contains(t, c.out, "a ")
	c.terminal(filepath.Join(c.dir, "run", "other.sock") + ",123,4")
	assert.Equal(t, exitError, c.run("get"))
}

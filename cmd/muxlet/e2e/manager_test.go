// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// ear takes the datagrams that come to a socket of the world.
type ear struct {
	conn *net.UnixConn
	mu   sync.Mutex
	all  []string
}

func (w *World) ear(path string) *ear {
	w.Helper()
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	require.NoError(w, err)
	w.Cleanup(func() { _ = conn.Close() })
	e := &ear{conn: conn}
	go func() {
		buffer := make([]byte, 1<<20)
		for {
			n, err := conn.Read(buffer)
			if err != nil {
				return
			}
			e.mu.Lock()
			e.all = append(e.all, string(buffer[:n]))
			e.mu.Unlock()
		}
	}()
	return e
}

// heard are all messages so far.
func (e *ear) heard() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.all)
}

// since is where the messages from now on begin.
func (e *ear) since() int { return len(e.heard()) }

// says says whether a message since then has the line.
func (e *ear) says(since int, line string) bool {
	return slices.ContainsFunc(e.heard()[since:], func(message string) bool {
		return slices.Contains(strings.Split(message, "\n"), line)
	})
}

// What the daemon tells its service manager rests on its loop: that it is ready, how its
// sessions are, that it lives, that it has read its settings again, and that it stops. None of
// what it runs can speak in its name.
func TestTheServiceManagerHearsHowTheDaemonIs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e := w.ear(w.dir + "/notify")
	w.declare("one", "stay")
	w.setenv("NOTIFY_SOCKET", w.dir+"/notify")
	w.setenv("WATCHDOG_USEC", "600000")
	w.start()
	w.waitFor("it is ready", func() bool { return e.says(0, "READY=1") })
	w.runs("one")
	w.waitFor("its sessions are counted", func() bool { return e.says(0, "STATUS=1 running") })
	at := e.since()
	w.waitFor("it lives", func() bool { return e.says(at, "WATCHDOG=1") })
	for _, p := range w.processes() {
		if p.pid != w.daemon.cmd.Process.Pid {
			assert.NotContains(t, p.environ, "NOTIFY_SOCKET=", p.argv)
			assert.NotContains(t, p.environ, "WATCHDOG_USEC=", p.argv)
		}
	}

	for name, spoil := range map[string]func(){"good": func() {}, "bad": func() { w.write(w.settingsFile(), "kind: Nonsense\n") }} {
		spoil()
		at = e.since()
		signal(t, w.daemon.cmd.Process.Pid, syscall.SIGHUP)
		w.waitFor("it has read its settings again, "+name, func() bool { return e.says(at, "RELOADING=1") && e.says(at, "READY=1") })
	}

	// tmux is not the daemon: it lives on, and says what is wrong.
	tmux := w.server()
	at = e.since()
	signal(t, tmux.pid, syscall.SIGSTOP)
	w.waitFor("it says that tmux is mute", func() bool {
		return slices.ContainsFunc(e.heard()[at:], func(m string) bool { return strings.Contains(m, "STATUS=1 ") && strings.Contains(m, "tmux") })
	})
	w.waitFor("it is not ready", func() bool {
		code, body := w.fetch("", "/readyz")
		return code == 503 && strings.Contains(body, "[-]tmux failed: ")
	})
	code, body := w.fetch("", "/healthz?verbose")
	assert.Equal(t, 200, code)
	assert.Contains(t, body, "[+]pulse ok\nhealthz check passed\n")
	at = e.since()
	w.waitFor("it lives", func() bool { return e.says(at, "WATCHDOG=1") })
	signal(t, tmux.pid, syscall.SIGCONT)
	w.waitFor("it is ready again", func() bool { code, _ := w.fetch("", "/readyz"); return code == 200 })

	at = e.since()
	w.stop()
	w.waitFor("it has said that it stops", func() bool { return e.says(at, "STOPPING=1") })
}

// A watchdog must not hear of a daemon that was stopped.
func TestADaemonThatHangsGivesNoSignOfLife(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e := w.ear(w.dir + "/notify")
	w.setenv("NOTIFY_SOCKET", w.dir+"/notify")
	w.setenv("WATCHDOG_USEC", "300000")
	w.start()
	w.waitFor("it lives", func() bool { return e.says(0, "WATCHDOG=1") })
	signal(t, w.daemon.cmd.Process.Pid, syscall.SIGSTOP)
	at := e.since()
	w.holds("no sign of life", 20*tick, func() bool { return e.since() <= at+1 })
	signal(t, w.daemon.cmd.Process.Pid, syscall.SIGCONT)
	w.waitFor("it lives again", func() bool { return e.says(at, "WATCHDOG=1") })
}

// activate hands the API's socket to each daemon as systemd's muxlet.socket does, and holds it.
func (w *World) activate() *net.UnixListener {
	w.Helper()
	path := w.runtime + "/muxlet.sock"
	require.NoError(w, os.MkdirAll(w.runtime, 0o700))
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	require.NoError(w, err)
	l.SetUnlinkOnClose(false)
	f, err := l.File()
	require.NoError(w, err)
	w.Cleanup(func() { _, _ = l.Close(), f.Close() })
	w.inherited = []*os.File{f}
	w.through = []string{"sh", "-c", `LISTEN_PID=$$ LISTEN_FDS=1 LISTEN_FDNAMES=api exec "$@"`, "sh"}
	return l
}

func TestNobodyIsRefusedWhileTheDaemonIsStartedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.activate()
	path := w.runtime + "/muxlet.sock"
	w.start()
	w.several(2, "stay")

	stop, done := make(chan struct{}), make(chan struct{})
	var refused []error
	connected := 0
	go func() {
		defer close(done)
		// The queue of a socket that nobody serves is not endless.
		pace := time.NewTicker(tick)
		defer pace.Stop()
		for {
			select {
			case <-stop:
				return
			case <-pace.C:
			}
			conn, err := net.Dial("unix", path)
			if err != nil {
				refused = append(refused, err)
				continue
			}
			connected++
			_ = conn.Close()
		}
	}()
	for _, end := range []func(){w.stop, w.kill, w.stop} {
		end()
		assert.FileExists(t, path, "the file is the manager's")
		w.start()
	}
	close(stop)
	<-done
	assert.Empty(t, refused)
	assert.Positive(t, connected)
	for _, p := range w.processes() {
		if p.pid != w.daemon.cmd.Process.Pid {
			assert.NotContains(t, p.environ, "LISTEN_FDS=", p.argv)
		}
	}

	// Whoever removes the file of the manager's socket has not cut off the daemon.
	require.NoError(t, os.Remove(path))
	w.answersAnew()
	w.stop()
	w.start()
}

// Where standard error is the journal, each line is an entry with its priority and fields,
// and the verbosity follows the settings.
func TestTheJournalHearsWhatTheDaemonDoes(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("a mount namespace of its own needs root")
	}
	t.Parallel()
	w := newWorld(t, settings{"logging": settings{"verbosity": 0}})
	e := w.ear(w.dir + "/journal")
	w.through = []string{"unshare", "--mount", "sh", "-c", `mount -t tmpfs none /run && mkdir -p /run/systemd/journal && ln -s "$0" /run/systemd/journal/socket && exec "$@"`, w.dir + "/journal"}
	require.NoError(t, os.WriteFile(w.logFile(), nil, 0o600))
	info, err := os.Stat(w.logFile())
	require.NoError(t, err)
	st, ok := info.Sys().(*syscall.Stat_t)
	require.True(t, ok)
	w.setenv("JOURNAL_STREAM", fmt.Sprintf("%d:%d", st.Dev, st.Ino))
	w.start()
	w.declare("broken", "exit 1")
	entry := func(fields ...string) func() bool {
		return func() bool {
			return slices.ContainsFunc(e.heard(), func(message string) bool {
				lines := strings.Split(message, "\n")
				return !slices.ContainsFunc(fields, func(f string) bool { return !slices.Contains(lines, f) })
			})
		}
	}
	w.waitFor("changes are told", entry("MUXLET_SESSION=broken", "MUXLET_TYPE=Normal", "PRIORITY=6", "SYSLOG_IDENTIFIER=muxlet"))
	w.waitFor("warnings are told", entry("MUXLET_SESSION=broken", "MUXLET_TYPE=Warning", "PRIORITY=4"))
	assert.False(t, entry("PRIORITY=7")(), "decisions are not asked for")
	w.configure(settings{"logging": settings{"verbosity": 1}})
	w.waitFor("decisions are told", entry("MUXLET_SESSION=broken", "PRIORITY=7"))
	assert.Empty(t, w.log(), "nothing is told twice")
	for _, message := range e.heard() {
		assert.True(t, strings.HasPrefix(message, "MESSAGE="), message)
	}
	w.stop()
	assert.FileExists(t, filepath.Join(w.dir, "journal"))
}

// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/muxlet/muxlet/spec"
)

// several sessions of the same client, and their pids.
func (w *World) several(n int, words string, lines ...string) map[string]int {
	w.Helper()
	before := map[string]int{}
	for i := range n {
		before[fmt.Sprintf("s%d", i)] = 0
	}
	for name := range before {
		w.declare(name, words, lines...)
	}
	for name := range before {
		before[name] = pid(w.runs(name))
	}
	return before
}

// oneEach requires exactly one live client of each session, the one that muxlet
// shows.
func (w *World) oneEach(sessions map[string]int) {
	w.Helper()
	for name := range sessions {
		clients := w.clients(name)
		if assert.Len(w, clients, 1, "clients of %s", name) {
			assert.Equal(w, pid(w.runs(name)), clients[0].pid)
		}
	}
}

// untouched: same pids, one start each, one client each, one tmux server.
func (w *World) untouched(before map[string]int) {
	w.Helper()
	for name := range before {
		w.runs(name)
	}
	w.holds("nothing is replaced", time.Second, func() bool { return w.same(before) })
	w.oneEach(before)
	for name := range before {
		w.nth(name, 1)
	}
}

// A1, A2 in part: with a daemon that runs.
func TestEverySessionIsBackOnceAfterTheTmuxServerWasKilled(t *testing.T) {
	t.Parallel()
	for name, words := range map[string]string{"ordinary clients": "stay", "clients that ignore HUP and TERM": "ignore child plain"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.start()
			before := w.several(6, words)
			finish := w.sample()
			signal(t, w.server().pid, unix.SIGKILL)
			for name := range before {
				w.runsAs(name, 2)
			}
			finish()
			w.oneEach(before)
			for name := range before {
				w.nth(name, 2)
			}
			assert.Len(t, w.servers(), 1)
			assert.Contains(t, w.does("get", "events"), "The tmux server is gone")
		})
	}
}

// A2.
func TestEverySessionIsBackOnceAfterTheTmuxServerWasKilledWithoutADaemon(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	before := w.several(3, "ignore")
	w.declare("plain", "stay")
	w.runs("plain")
	w.kill()
	signal(t, w.server().pid, unix.SIGKILL)
	finish := w.sample()
	w.start()
	before["plain"] = 0
	for name := range before {
		w.runsAs(name, 2)
	}
	finish()
	w.oneEach(before)
}

// A8.
func TestTheDaemonIsKilledTenTimesAndNothingIsDoubled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	before := w.several(4, "child session")
	finish := w.sample()
	for range 10 {
		w.kill()
		w.start()
		w.waitFor("the daemon has looked at everything", func() bool { return w.api.Ready(t.Context()) == nil })
		for name, pid := range before {
			require.Equal(t, pid, w.runs(name).Status.Client.Pid)
		}
	}
	finish()
	w.untouched(before)
	// K6: four clients with a child each, and the tmux server.
	w.kill()
	w.waitFor("nothing else is left of eleven daemons", func() bool { return len(w.processes()) == 9 })
}

func TestTheDaemonIsKilledAtRandomInstantsOfStartsAndNothingIsDoubled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	seed := uint64(time.Now().UnixNano())
	t.Logf("Seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	w.start()
	before := w.several(4, "stay")
	finish := w.sample()
	for range 10 {
		for name := range before {
			for _, p := range w.clients(name) {
				if random.IntN(2) == 0 {
					_ = unix.Kill(p.pid, unix.SIGKILL)
				}
			}
		}
		<-time.After(time.Duration(random.IntN(80)) * time.Millisecond)
		w.kill()
		w.start()
	}
	for name := range before {
		w.runs(name)
	}
	finish()
	w.oneEach(before)
	for name := range before {
		numbers := map[int64]bool{}
		for _, s := range w.startsOf(name) {
			assert.False(t, numbers[s.incarnation], "incarnation %d of %s was used twice", s.incarnation, name)
			numbers[s.incarnation] = true
		}
	}
}

func TestARemovedSocketIsRestored(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(w *World){
		"under a running daemon": func(w *World) { require.NoError(w, os.Remove(w.socket())) },
		"without a daemon": func(w *World) {
			w.kill()
			require.NoError(w, os.Remove(w.socket()))
			w.start()
		},
		"with its directory, under a running daemon": func(w *World) { w.remove(w.runtime) },
		"with its directory, without a daemon": func(w *World) {
			w.kill()
			w.remove(w.runtime)
			w.start()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.start()
			before := w.several(2, "stay")
			server := w.server().pid
			finish := w.sample()
			lose(w)
			w.waitFor("tmux answers on its socket again", func() bool {
				text, err := w.tmux("display-message", "-p", "#{pid}")
				return err == nil && text == fmt.Sprint(server)
			})
			w.answersAnew()
			w.untouched(before)
			finish()
			assert.Equal(t, server, w.server().pid, "no second server")
			signal(t, before["s0"], unix.SIGKILL)
			w.runsAs("s0", 2)
		})
	}
}

// second puts a second tmux server on the path of ours. A daemon that runs may
// have restored our socket before: then our own server answers, and it is tried
// again.
func (w *World) second() {
	w.Helper()
	w.waitFor("a second server is on the path", func() bool {
		_ = os.Remove(w.socket())
		cmd := exec.Command("tmux", "-S", w.socket(), "-f", "/dev/null", "new-session", "-d", "-s", "s0", "sleep 1000000")
		cmd.Env = w.env
		out, err := cmd.CombinedOutput()
		if err != nil {
			require.Contains(w, string(out), "duplicate session")
		}
		return err == nil
	})
}

func TestASecondTmuxServerOnThePathDoublesNothing(t *testing.T) {
	t.Parallel()
	for name, put := range map[string]func(w *World){
		"under a running daemon": func(w *World) { w.second() },
		"without a daemon": func(w *World) {
			w.kill()
			w.second()
			w.start()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.start()
			before := w.several(2, "stay")
			first := w.server().pid
			finish := w.sample()
			put(w)
			w.waitFor("our server is on its path again", func() bool {
				text, err := w.tmux("display-message", "-p", "#{pid}")
				return err == nil && text == fmt.Sprint(first)
			})
			w.untouched(before)
			finish()
			assert.Len(t, w.servers(), 2, "the other server is not ours to end")
			signal(t, before["s0"], unix.SIGKILL)
			w.runsAs("s0", 2)
			w.oneEach(before)
		})
	}
}

// N1, A3.
func TestAPaneThatAPersonKillsIsBroughtBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	w.declare("s", "ignore", "terminationGracePeriodSeconds: 1")
	s := w.runs("s")
	finish := w.sample()
	_, err := w.tmux("kill-session", "-t", s.Status.Tmux.Session)
	require.NoError(t, err)
	w.runsAs("s", 2)
	finish()
	assert.Len(t, w.clients("s"), 1)
}

// I6.
func TestAForeignTmuxSessionWithTheNameIsLeftAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	w.declare("first", "stay")
	w.runs("first")
	foreign, err := w.tmux("new-session", "-d", "-P", "-F", "#{pane_pid}", "-s", "s", "sleep 1000000")
	require.NoError(t, err, foreign)
	w.declare("s", "stay")
	w.reaches("s", spec.StatusConflict)
	w.eventually([]string{"describe", "s"}, "NameConflict", "rename it")
	assert.Empty(t, w.startsOf("s"))
	now, err := w.tmux("display-message", "-p", "-t", "=s:", "#{pane_pid}")
	require.NoError(t, err)
	assert.Equal(t, foreign, now)
	_, err = w.tmux("rename-session", "-t", "=s:", "mine")
	require.NoError(t, err)
	w.runsAs("s", 1)
}

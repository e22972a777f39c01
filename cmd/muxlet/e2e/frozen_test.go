// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/muxlet/muxlet/spec"
)

// F4, D2.
func TestAFrozenTmuxChangesNothingAndGetAnswersWithinASecond(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	names := []string{"same", "killed", "edited", "removed", "restarted"}
	before := map[string]int{}
	for _, name := range names {
		w.declare(name, "say old", "updateStrategy: {type: Recreate}")
	}
	for _, name := range names {
		before[name] = pid(w.runs(name))
	}
	server := w.server().pid
	signal(t, server, unix.SIGSTOP)
	w.answersUntil("Unknown is shown", func(text string) bool { return strings.Count(text, "Unknown") >= 5 })
	signal(t, before["killed"], unix.SIGKILL)
	w.waitFor("the killed one is dead", func() bool {
		_, alive := ticksOf(before["killed"])
		return !alive
	})
	w.declare("edited", "say new", "updateStrategy: {type: Recreate}")
	w.declare("added", "say new")
	requireRemoved(w, "removed.yaml")
	w.neverStarts(before, 4*time.Second)
	told := w.does("describe", "same")
	assert.Contains(t, told, "TmuxTimeout")
	assert.Contains(t, told, "last seen")
	assert.Contains(t, told, "nothing is started or stopped")
	a := w.muxlet("restart", "restarted")
	assert.Equal(t, 6, a.code)
	assert.Contains(t, a.errOut, "tmux did not answer in time")

	signal(t, server, unix.SIGCONT)
	w.runsAs("killed", 2)
	w.runsAs("edited", 2)
	w.runsAs("added", 1)
	// What was refused is not done later, and can be asked for again.
	assert.Equal(t, before["restarted"], pid(w.runs("restarted")))
	w.does("restart", "restarted")
	w.runsAs("restarted", 2)
	w.gone("removed")
	assert.Empty(t, w.family("removed"))
	assert.Equal(t, "say new", w.nth("edited", 2).words)
	assert.Equal(t, before["same"], pid(w.runs("same")))
	w.oneEach(map[string]int{"same": 0, "killed": 0, "edited": 0, "added": 0, "restarted": 0})
}

func TestAFrozenTmuxIsAsBeforeWhenItGoesOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	before := w.several(3, "stay")
	server := w.server().pid
	for range 2 {
		signal(t, server, unix.SIGSTOP)
		w.answersUntil("Unknown is shown", func(text string) bool { return strings.Count(text, "Unknown") >= 3 })
		signal(t, server, unix.SIGCONT)
		w.answersUntil("all run", func(text string) bool { return strings.Count(text, "Running") == 3 })
	}
	w.untouched(before)
}

func TestADaemonThatStartsUnderAFrozenTmuxStartsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	before := w.several(3, "stay")
	server := w.server().pid
	w.kill()
	signal(t, server, unix.SIGSTOP)
	w.start()
	w.declare("new", "stay")
	w.answersUntil("Unknown is shown", func(text string) bool { return strings.Count(text, "Unknown") >= 4 })
	w.holds("nothing is started", 2*time.Second, func() bool { return len(w.startsOf("new")) == 0 })
	signal(t, server, unix.SIGCONT)
	w.runs("new")
	w.untouched(before)
}

// promptly requires an answer within a second, not counting what it takes on this
// machine to start the program.
func (w *World) promptly(a answer) {
	w.Helper()
	if a.took >= time.Second {
		require.Less(w, a.took-w.muxlet("version").took, time.Second, "get answers within a second")
	}
}

// answersUntil runs get until it shows what it should; every answer comes within
// a second.
func (w *World) answersUntil(what string, shown func(text string) bool) {
	w.Helper()
	w.waitFor(what, func() bool {
		a := w.muxlet("get")
		require.Equal(w, 0, a.code, a.text())
		w.promptly(a)
		return shown(a.text())
	})
}

// neverStarts: nothing is started or stopped for a while, whatever get is asked.
func (w *World) neverStarts(before map[string]int, during time.Duration) {
	w.Helper()
	starts := w.startLines()
	end := time.Now().Add(during)
	for time.Now().Before(end) {
		a := w.muxlet("get")
		w.promptly(a)
		require.NotContains(w, a.text(), string(spec.StatusRunning))
		require.Contains(w, a.errOut, "Nothing is started or stopped until it answers.")
		require.Equal(w, starts, w.startLines(), "nothing is started")
		for name, pid := range before {
			_, alive := ticksOf(pid)
			require.Equal(w, name != "killed", alive, "nothing is stopped: %s", name)
		}
	}
}

// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"os"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/muxlet/muxlet/controller/server"
	"github.com/muxlet/muxlet/spec"
)

// M3.
func TestAFullDiskStopsStartsSaysWhyAndLosesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	require.NoError(t, os.MkdirAll(w.state, 0o700))
	require.NoError(t, unix.Mount("none", w.state, "tmpfs", 0, "size=8m,mode=0700"))
	t.Cleanup(func() { _ = unix.Unmount(w.state, unix.MNT_DETACH) })
	w.start()
	before := w.several(3, "stay")
	w.fill(w.state + "/ballast")
	signal(t, before["s0"], unix.SIGKILL)
	w.declare("new", "stay")
	w.nothingStarts(before, "is full")
	signal(t, before["s2"], unix.SIGTERM)
	w.eventually([]string{"describe", "s2"}, "StateUnwritable")
	require.NoError(t, os.Remove(w.state+"/ballast"))
	w.recovers(before)
}

// nothingStarts while s0 is dead and the state cannot be written: it is loud, and
// s1 is not touched.
func (w *World) nothingStarts(before map[string]int, why string) {
	w.Helper()
	w.eventually([]string{"describe", "s0"}, spec.ReasonStateUnwritable, why)
	w.eventually([]string{"describe", "new"}, spec.ReasonStateUnwritable)
	w.eventually([]string{"get"}, string(spec.StatusBlocked), "Problem: nothing is started (StateUnwritable", why)
	for _, kind := range []string{spec.ConditionReady, spec.ConditionStalled} {
		assert.Equal(w, spec.ReasonStateUnwritable, reason(w.get("s0"), kind), kind)
	}
	for _, name := range []string{"s0", "new"} {
		// What describe tells of new may be the daemon's problem alone, before its own.
		w.eventually([]string{"get", "events", name}, spec.ReasonStateUnwritable)
	}
	assert.Contains(w, w.line("reason=StateUnwritable"), why)
	w.holds("nothing is started", 2*time.Second, func() bool { return len(w.startsOf("s0")) == 1 && len(w.startsOf("new")) == 0 })
	_, alive := ticksOf(before["s1"])
	assert.True(w, alive)
}

// recovers by itself: what died meanwhile is counted, what ran goes on, and the
// next daemon knows all of it.
func (w *World) recovers(before map[string]int) {
	w.Helper()
	for name, sign := range map[string]string{"s0": "SIGKILL", "s2": "SIGTERM"} {
		s := w.runsAs(name, 2)
		end := s.Status.Client.LastTermination
		if assert.NotNil(w, end, name) {
			assert.Equal(w, sign, end.Signal, "the death while nothing could be written is counted: "+name)
			assert.EqualValues(w, 1, end.Incarnation)
		}
		assert.EqualValues(w, 1, s.Status.Client.RestartCount)
		w.nth(name, 2)
	}
	w.runsAs("new", 1)
	assert.Empty(w, w.problems(""))
	assert.Equal(w, before["s1"], pid(w.runs("s1")))
	w.kill()
	w.start()
	for name, incarnation := range map[string]int64{"s0": 2, "s1": 1, "s2": 2, "new": 1} {
		w.runsAs(name, incarnation)
	}
	assert.Equal(w, before["s1"], pid(w.runs("s1")))
	w.oneEach(map[string]int{"s0": 0, "s1": 0, "s2": 0, "new": 0})
}

// M3, for a file system that was mounted read-only after an error.
func TestAStateThatBecomesReadOnlyStopsStartsSaysWhyAndLosesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	require.NoError(t, os.MkdirAll(w.state, 0o700))
	require.NoError(t, unix.Mount("none", w.state, "tmpfs", 0, "size=8m,mode=0700"))
	t.Cleanup(func() { _ = unix.Unmount(w.state, unix.MNT_DETACH) })
	w.start()
	before := w.several(3, "stay")
	// A bind of itself: what is open for writing does not keep it from being
	// read-only.
	require.NoError(t, unix.Mount(w.state, w.state, "", unix.MS_BIND, ""))
	require.NoError(t, unix.Mount("", w.state, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, ""))
	t.Cleanup(func() { _ = unix.Unmount(w.state, unix.MNT_DETACH) })
	signal(t, before["s0"], unix.SIGKILL)
	w.declare("new", "stay")
	w.nothingStarts(before, "read-only file system")
	signal(t, before["s2"], unix.SIGTERM)
	w.eventually([]string{"describe", "s2"}, "StateUnwritable")
	require.NoError(t, unix.Unmount(w.state, unix.MNT_DETACH))
	w.recovers(before)
}

// fill the file system of a file to its last byte.
func (w *World) fill(path string) {
	w.Helper()
	f, err := os.Create(path)
	require.NoError(w, err)
	defer func() { _ = f.Close() }()
	for size := 4096; size > 0; {
		if _, err := f.Write(make([]byte, size)); err != nil {
			require.ErrorIs(w, err, unix.ENOSPC)
			size /= 2
		}
	}
}

func TestAStateDirectoryDeletedUnderTheDaemonStopsNothing(t *testing.T) {
	t.Parallel()
	for name, inside := range map[string]bool{"with a runtime directory elsewhere": false, "with the runtime directory inside": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, _ := rebootable(t)
			if inside {
				w.setenv("XDG_RUNTIME_DIR", "")
				w.runtime = w.state + "/run"
				w.api = server.NewClient(w.runtime + "/muxlet.sock")
			}
			w.start()
			before := w.several(2, "ignore")
			finish := w.sample()
			w.remove(w.state)
			w.answersAnew()
			w.untouched(before)
			signal(t, before["s0"], unix.SIGKILL)
			before["s0"] = pid(w.runsAs("s0", 2))
			w.kill()
			w.start()
			w.waitFor("all run as before", func() bool { return w.same(before) })
			w.holds("nothing is replaced", time.Second, func() bool { return w.same(before) })
			finish()
			w.oneEach(before)
			w.nth("s1", 1)
			w.server()
		})
	}
}

func TestARuntimePathThatIsTooLongForASocketWorks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	long := w.dir + "/a-runtime-directory-with-a-long-name/that-no-socket-address/can-hold-because-it-is-too-long"
	require.NoError(t, os.MkdirAll(long, 0o700))
	w.setenv("XDG_RUNTIME_DIR", long)
	w.spawn()
	w.declare("s", "stay")
	w.waitFor("the session runs", func() bool { return len(w.startsOf("s")) == 1 })
	w.eventually([]string{"get"}, string(spec.StatusRunning))
	w.Cleanup(w.removeSocketDirectory())
	client := w.nth("s", 1).pid
	w.kill()
	w.spawn()
	w.eventually([]string{"get"}, string(spec.StatusRunning))
	w.does("delete", "s")
	_, alive := ticksOf(client)
	assert.False(t, alive)
	// A daemon would have the socket made anew while the directory is removed.
	w.kill()
}

// removeSocketDirectory removes the short directory that muxlet made for its
// sockets, when nothing uses it any more.
func (w *World) removeSocketDirectory() func() {
	w.Helper()
	found := regexp.MustCompile(`(?m)^  Socket: +(/tmp/muxlet-.*)/tmux\.sock$`).FindStringSubmatch(w.does("describe", "s"))
	require.Len(w, found, 2, "the sockets have a short directory")
	return func() { assert.NoError(w, os.RemoveAll(found[1])) }
}

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
	before := w.several(2, "stay")
	w.fill(w.state + "/ballast")
	signal(t, before["s0"], unix.SIGKILL)
	w.declare("new", "stay")
	w.eventually([]string{"describe", "s0"}, "StateUnwritable")
	w.holds("nothing is started", 2*time.Second, func() bool { return len(w.startsOf("s0")) == 1 && len(w.startsOf("new")) == 0 })
	_, alive := ticksOf(before["s1"])
	assert.True(t, alive)
	require.NoError(t, os.Remove(w.state+"/ballast"))
	w.runsAs("s0", 2)
	w.runsAs("new", 1)
	assert.Equal(t, before["s1"], pid(w.runs("s1")))
	w.kill()
	w.start()
	w.runsAs("s0", 2)
	w.oneEach(map[string]int{"s0": 0, "s1": 0, "new": 0})
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
}

// removeSocketDirectory removes the short directory that muxlet made for its
// sockets, when nothing uses it any more.
func (w *World) removeSocketDirectory() func() {
	w.Helper()
	found := regexp.MustCompile(`(?m)^  Socket: +(/tmp/muxlet-.*)/tmux\.sock$`).FindStringSubmatch(w.does("describe", "s"))
	require.Len(w, found, 2, "the sockets have a short directory")
	return func() { assert.NoError(w, os.RemoveAll(found[1])) }
}

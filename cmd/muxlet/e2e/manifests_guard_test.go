// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/muxlet/muxlet/spec"
)

func requireRemoved(w *World, file string) {
	w.Helper()
	require.NoError(w, os.Remove(w.manifests+"/"+file))
}

func isGeneration(n int64) func(*spec.Session) bool {
	return func(s *spec.Session) bool { return s.Generation == n && s.Status.ObservedGeneration == n }
}

// typo is the document with a mistake that a person makes.
func (w *World) typo(name string) string {
	return strings.Replace(w.document(name, "stay"), "workspace:", "workspce:", 1)
}

func TestATypoLeavesTheClientAloneAndADeadOneComesBackOnTheLastGoodSpec(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	w.declare("s", "say good")
	before := w.runs("s")
	w.write("s.yaml", w.typo("s"))
	place := fmt.Sprintf("%s/s.yaml:9:3: spec.workspce: unknown field", w.manifests)
	told := w.eventually([]string{"describe", "s"}, "Correct "+w.manifests+"/s.yaml", place, `did you mean "workspace"`)
	assert.Regexp(t, `(?m)^Status: +Running`, told)
	assert.Contains(t, w.events("s"), "spec.workspce")
	assert.Contains(t, w.events("s"), `did you mean "workspace"`)
	assert.Contains(t, w.log(), "s.yaml:9:3: spec.workspce: unknown field")
	assert.Contains(t, w.muxlet("get").errOut, place)
	w.holds("the client stays", 2*time.Second, func() bool { return pid(w.get("s")) == pid(before) })

	signal(t, pid(before), unix.SIGKILL)
	w.runsAs("s", 2)
	assert.Equal(t, "say good", w.nth("s", 2).words)

	w.kill()
	signal(t, w.nth("s", 2).pid, unix.SIGKILL)
	w.start()
	w.runsAs("s", 3)
	assert.Equal(t, "say good", w.nth("s", 3).words, "the last good spec is kept across a restart of the daemon")
	w.eventually([]string{"describe", "s"}, place)

	w.declare("s", "say better")
	w.runsAs("s", 4)
	w.eventually([]string{"describe", "s"}, "Accepted")
	assert.NotContains(t, w.does("describe", "s"), "Problem:")
}

func TestAFileThatDoesNotParseAtAllStopsNothing(t *testing.T) {
	t.Parallel()
	for name, content := range map[string]string{"empty": "", "half": "apiVersion: muxlet.dev/v1alpha1\nkind: Ses", "tab": "kind: Session\n\tname: s\n", "binary": "\x00\x01\xff"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.start()
			w.declare("other", "stay")
			w.declare("s", "stay")
			before := w.runs("s")
			w.write("s.yaml", content)
			if content == "" {
				w.gone("s") // an emptied file of its own is a removal
				return
			}
			w.eventually([]string{"describe", "s"}, w.manifests+"/s.yaml:")
			w.holds("the client stays", 2*time.Second, func() bool { s := w.get("s"); return s != nil && pid(s) == pid(before) })
			w.declare("s", "stay")
			w.eventually([]string{"describe", "s"}, "the document is valid")
			assert.Equal(t, pid(before), pid(w.get("s")))
		})
	}
}

// three sessions in a world whose daemon runs, and their pids.
func three(t *testing.T) (*World, map[string]int) {
	w := newWorld(t)
	w.start()
	return w, w.three()
}

func (w *World) three() map[string]int {
	w.Helper()
	before := map[string]int{}
	for _, name := range []string{"a", "b", "c"} {
		w.declare(name, "stay")
	}
	for _, name := range []string{"a", "b", "c"} {
		before[name] = pid(w.runs(name))
	}
	return before
}

// same says whether every session runs with the pid from before.
func (w *World) same(before map[string]int) bool {
	for name, pid := range before {
		s := w.get(name)
		if s == nil || s.Status.Client.Pid != pid {
			return false
		}
	}
	return true
}

// heldAndBack: whatever was done to the directory, nothing stops and get says
// how to go on; with the files back it is as before.
func (w *World) heldAndBack(before map[string]int, why string, back func()) {
	w.Helper()
	said := w.eventually([]string{"get"}, "Held: a, b, c", "muxlet prune --confirm", why)
	assert.Equal(w, 3, strings.Count(said, "Running"), said)
	assert.Contains(w, w.does("describe", "a"), "muxlet prune --confirm")
	assert.Contains(w, w.muxlet("prune").text(), "session/a would be removed")
	w.holds("nothing stops", 2*time.Second, func() bool { return w.same(before) })

	signal(w, before["b"], unix.SIGKILL)
	before["b"] = pid(w.runsAs("b", 2))
	w.kill()
	w.start()
	w.waitFor("all are seen by the next daemon", func() bool { return w.same(before) })
	w.holds("nothing stops under the next daemon", 2*time.Second, func() bool { return w.same(before) })

	back()
	w.waitFor("nothing is held", func() bool { return !strings.Contains(w.muxlet("get").text(), "Held") })
	assert.Equal(w, "Nothing is held back.\n", w.does("prune"))
	w.holds("it is as before", time.Second, func() bool { return w.same(before) })
}

func TestAnEmptiedDirectoryStopsNothing(t *testing.T) {
	t.Parallel()
	w, before := three(t)
	for name := range before {
		requireRemoved(w, name+".yaml")
	}
	w.heldAndBack(before, "is empty", func() {
		for name := range before {
			w.declare(name, "stay")
		}
	})
}

func TestADirectoryThatIsRenamedAwayStopsNothing(t *testing.T) {
	t.Parallel()
	w, before := three(t)
	require.NoError(t, os.Rename(w.manifests, w.manifests+".away"))
	w.heldAndBack(before, "does not exist", func() {
		require.NoError(t, os.Rename(w.manifests+".away", w.manifests))
	})
}

func TestADirectoryThatIsUnmountedStopsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.mount(w.manifests)
	w.start()
	before := w.three()
	require.NoError(t, unix.Unmount(w.manifests, unix.MNT_DETACH))
	w.heldAndBack(before, "Held", func() {
		w.mount(w.manifests)
		for name := range before {
			w.declare(name, "stay")
		}
	})
}

// mount a file system of its own, as for a stick or a network share.
func (w *World) mount(dir string) {
	w.Helper()
	require.NoError(w, unix.Mount("none", dir, "tmpfs", 0, "size=4m"), "these tests mount file systems: run them as root")
	w.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
}

func TestPruneRemovesWhatIsHeld(t *testing.T) {
	t.Parallel()
	w, before := three(t)
	for name := range before {
		requireRemoved(w, name+".yaml")
	}
	w.eventually([]string{"get"}, "Held: a, b, c")
	said := w.does("prune", "--confirm")
	for name := range before {
		assert.Contains(t, said, "session/"+name+" is being removed")
		w.gone(name)
		w.waitFor("no process is left", func() bool { return len(w.family(name)) == 0 })
	}
}

// Most of many, without an empty directory.
func TestManyRemovalsAtOnceAreHeldAndFewAreNot(t *testing.T) {
	t.Parallel()
	w, before := three(t)
	w.declare("d", "stay")
	w.runs("d")
	requireRemoved(w, "d.yaml")
	w.gone("d")
	assert.True(t, w.same(before))
	w.declare("d", "stay")
	w.runs("d")
	for name := range before {
		requireRemoved(w, name+".yaml")
	}
	w.eventually([]string{"get"}, "3 of 4 sessions are missing at once", "muxlet prune --confirm")
	w.holds("nothing stops", 2*time.Second, func() bool { return w.same(before) })
}

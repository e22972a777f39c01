// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/muxlet/muxlet/spec"
)

// note is a file of the person's own, outside of the manifests.
func (w *World) note(name, content string) string {
	w.Helper()
	path := filepath.Join(w.home, name)
	w.write(path, content)
	return path
}

// feed runs a verb that must go well with a text on its standard input.
func (w *World) feed(text string, args ...string) string {
	w.Helper()
	cmd := exec.CommandContext(w.Context(), binary, args...)
	cmd.Env, cmd.Dir, cmd.Stdin = w.env, w.home, strings.NewReader(text)
	out, err := cmd.CombinedOutput()
	require.NoError(w, err, "%s", out)
	return string(out)
}

// "Applying twice changes nothing. One edit, one addition, one removal among a
// hundred touch exactly three."
func TestApplyTouchesExactlyTheSessionsThatDiffer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	all := w.commented("a") + "---\n" + w.commented("b") + "---\n" + w.commented("c")
	path := w.note("all.yaml", all)
	w.start()
	assert.Equal(t, "session/a created\nsession/b created\nsession/c created\n", w.does("apply", "-f", path))
	before := map[string]*spec.Session{}
	for _, name := range []string{"a", "b", "c"} {
		before[name] = w.runsAs(name, 1)
	}
	assert.Equal(t, w.commented("b"), w.read("b.yaml"), "as the person wrote it")

	assert.Equal(t, "session/a unchanged\nsession/b unchanged\nsession/c unchanged\n", w.does("apply", "-f", path))
	w.write("b.yaml", "# mine\n"+w.read("b.yaml")+"# end\n")
	text := w.read("b.yaml")
	edited := strings.Replace(all, w.commented("b"), strings.Replace(w.commented("b"), `"stay"`, `"stay", "longer"`, 1), 1)
	path = w.note("all.yaml", edited+"---\n"+w.document("d", "stay"))
	assert.Equal(t, "session/a unchanged (dry run)\nsession/b configured (dry run): restarts now\nsession/c unchanged (dry run)\nsession/d created (dry run): started\n",
		w.does("apply", "-f", path, "--dry-run"))
	assert.Equal(t, text, w.read("b.yaml"))
	assert.Equal(t, "session/a unchanged\nsession/b configured\nsession/c unchanged\nsession/d created\n", w.does("apply", "-f", path))

	w.runsAs("b", 2)
	w.runsAs("d", 1)
	gone, added := changed(text, w.read("b.yaml"))
	assert.Len(t, gone, 1)
	require.Len(t, added, 1)
	assert.Contains(t, added[0], `"longer"`)
	for _, name := range []string{"a", "c"} {
		assert.Equal(t, pid(before[name]), pid(w.get(name)), name)
		assert.Equal(t, 1, w.countOf(name), name)
	}
}

func TestApplyNeedsNoDaemonAndReadsStandardInputAndFolders(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	require.NoError(t, os.Remove(w.manifests))
	assert.Equal(t, "session/a created\n", w.feed(w.document("a", "stay"), "apply", "-f", "-"))
	require.NoError(t, os.MkdirAll(w.home+"/more/deep", 0o755))
	w.note("more/b.yaml", w.document("b", "stay"))
	w.note("more/deep/c.yml", w.document("c", "stay"))
	w.note("more/notes.txt", "no manifest")
	assert.Equal(t, "session/b created\nsession/c created\n", w.does("apply", "-f", "more"))
	assert.Equal(t, "3 sessions valid\n", w.does("validate"))
	assert.Equal(t, "session/a unchanged\nsession/b unchanged\nsession/c unchanged\n", w.does("apply", "-f", w.manifests), "what is in place stays there")
	w.start()
	for _, name := range []string{"a", "b", "c"} {
		w.runs(name)
	}
}

func TestApplyTakesTheGoodDocumentsAndRefusesTheOthers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	path := w.note("mine.yaml", w.document("bad", "stay", "bogus: 1")+"---\n"+w.document("good", "stay"))
	a := w.muxlet("apply", "-f", path)
	assert.Equal(t, 1, a.code)
	assert.Equal(t, "session/good created\n", a.out)
	assert.Contains(t, a.errOut, path+":11:3: spec.bogus: unknown field")
	w.runs("good")
	assert.Nil(t, w.get("bad"))
}

func TestApplyPutsFilesWhereTheRunningDaemonReads(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	elsewhere := w.home + "/elsewhere"
	w.spawn("--manifests", elsewhere)
	w.waitFor("the daemon answers", func() bool { return w.api.Healthy(t.Context()) == nil })
	w.does("apply", "-f", w.note("a.yaml", w.document("a", "stay")))
	w.runs("a")
	assert.FileExists(t, elsewhere+"/a.yaml")
	assert.NoFileExists(t, w.manifests+"/a.yaml")
}

func TestApplyAndEditOfAReadOnlyRootAreForbidden(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.mount(w.manifests)
	w.declare("s", "stay")
	require.NoError(t, unix.Mount("none", w.manifests, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""))
	w.start()
	s := w.runs("s")
	path := w.note("mine.yaml", w.document("s", "stay longer"))
	w.setenv("EDITOR", "false")
	for _, args := range [][]string{{"apply", "-f", path}, {"apply", "--dry-run", "-f", path}, {"edit", "s"}} {
		said := w.refuses(1, args...)
		assert.Contains(t, said, w.manifests+"/s.yaml")
		assert.Contains(t, said, "read-only")
	}
	said := w.refuses(1, "apply", "-f", w.note("new.yaml", w.document("new", "stay")))
	assert.Contains(t, said, w.manifests+"/new.yaml")
	assert.Equal(t, pid(s), pid(w.get("s")))
}

// M1: kill -9 at any instant of an edit leaves the old file or the new one, and
// nothing that a reader takes for a manifest.
func TestAnApplyThatIsKilledLeavesTheOldFileOrTheNewOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	texts := []string{w.document("a", "stay one"), w.document("a", "stay two")}
	w.write("a.yaml", texts[0])
	for n := range 40 {
		path := w.note("mine.yaml", texts[(n+1)%2])
		cmd := exec.Command(binary, "apply", "-f", path)
		cmd.Env, cmd.Dir = w.env, w.home
		require.NoError(t, cmd.Start())
		select {
		case <-time.After(time.Duration(n) * time.Millisecond / 2):
		case <-t.Context().Done():
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		assert.Contains(t, texts, w.read("a.yaml"))
		assert.Equal(t, "1 session valid\n", w.does("validate"))
	}
	w.does("apply", "-f", w.note("mine.yaml", texts[1]))
	assert.Equal(t, texts[1], w.read("a.yaml"))
}

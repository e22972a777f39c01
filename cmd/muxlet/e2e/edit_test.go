// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// editor makes $EDITOR a script that gets the copy's path, and TMPDIR a
// directory of its own.
func (w *World) editor(script string) {
	w.Helper()
	w.write(w.dir+"/bin/editor", "#!/bin/sh\nset -e\n"+script+"\n")
	require.NoError(w, os.Chmod(w.dir+"/bin/editor", 0o755))
	require.NoError(w, os.MkdirAll(w.dir+"/tmp", 0o700))
	w.setenv("TMPDIR", w.dir+"/tmp")
	w.setenv("EDITOR", "editor")
}

func TestAnEditChangesOneSessionAndKeepsTheRestOfTheFile(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	text := "# file\n---\n" + w.commented("s") + "--- # two\n" + w.commented("other")
	w.write("s.yaml", text)
	w.start()
	w.runs("s")
	other := w.runs("other")
	w.editor(`sed -i 's/"stay"/"stay", "longer"/' "$1"`)
	assert.Equal(t, "session/s edited: restarts now\n", w.does("edit", "s"))
	w.runsAs("s", 2)
	assert.Equal(t, strings.Replace(text, `"stay"`, `"stay", "longer"`, 1), w.read("s.yaml"))
	assert.Equal(t, pid(other), pid(w.get("other")))

	w.editor("true")
	a := w.muxlet("edit", "s")
	assert.Zero(t, a.code)
	assert.Equal(t, "Edit cancelled, no changes made.\n", a.text())
}

func TestAnEditThatIsNotValidIsKeptAndChangesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.declare("s", "stay")
	w.start()
	s := w.runs("s")
	text := w.read("s.yaml")
	w.editor(`grep -q bogus "$1" || echo '  bogus: 1' >>"$1"`)
	said := w.refuses(1, "edit", "s")
	assert.Contains(t, said, "spec.bogus: unknown field")
	kept, err := filepath.Glob(w.dir + "/tmp/muxlet-edit-s-*.yaml")
	require.NoError(t, err)
	require.Len(t, kept, 1)
	assert.Contains(t, said, kept[0])
	assert.Contains(t, w.read(kept[0]), "  bogus: 1\n")
	assert.Equal(t, text, w.read("s.yaml"))
	assert.Equal(t, pid(s), pid(w.get("s")))
}

func TestEditNeedsNoDaemon(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.declare("s", "stay")
	w.editor(`sed -i 's/"stay"/"stay", "longer"/' "$1"`)
	assert.Equal(t, "session/s edited\n", w.does("edit", "s"))
	assert.Contains(t, w.read("s.yaml"), `"longer"`)
	assert.Contains(t, w.refuses(3, "edit", "nobody"), w.manifests)
}

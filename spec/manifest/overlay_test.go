// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func declaring(name string) []byte {
	return []byte("apiVersion: muxlet.dev/v1alpha1\nkind: Session\nmetadata: {name: " + name + "}\nspec: {workspace: {directory: /}}\n")
}

// A reading of files as they would be is the one that there is once they are written.
func TestAReadingWithFilesIsWhatIsReadOnceTheyAreWritten(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "m")
	a, b, deep := filepath.Join(dir, "a.yaml"), filepath.Join(dir, "b.yaml"), filepath.Join(dir, "deep", "c.yaml")
	for _, there := range []bool{false, true} {
		if there {
			require.NoError(t, os.MkdirAll(filepath.Join(dir, "deep"), 0o755))
			require.NoError(t, os.WriteFile(a, declaring("old"), 0o600))
		}
		before := Read([]string{dir})
		files := map[string][]byte{a: declaring("a"), b: append(append(declaring("b"), "---\n"...), "x: ["...), deep: declaring("c")}
		got, err := before.With(files, nil)
		require.NoError(t, err)
		require.Equal(t, Read([]string{dir}), before, "the reading itself stays as it is")
		written := filepath.Join(t.TempDir(), "m")
		for path, content := range files {
			rel, err := filepath.Rel(dir, path)
			require.NoError(t, err)
			require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(written, rel)), 0o755))
			require.NoError(t, os.WriteFile(filepath.Join(written, rel), content, 0o600))
		}
		want := Read([]string{written})
		assert.Equal(t, Readable, got.Roots[0].Access)
		assert.Equal(t, want.Roots[0].Documents, got.Roots[0].Documents)
		assert.Equal(t, indexOf(want).names(), indexOf(got).names())
		assert.Len(t, got.Files, len(want.Files))
	}
}

func TestAFileThatIsNoManifestIsNotReadAsOne(t *testing.T) {
	dir := t.TempDir()
	for _, path := range []string{"/elsewhere/a.yaml", dir + "x/a.yaml", filepath.Join(dir, "a.txt"), filepath.Join(dir, ".a.yaml")} {
		_, err := Read([]string{dir}).With(map[string][]byte{path: declaring("a")}, nil)
		assert.ErrorContains(t, err, path+" is not read as a manifest")
	}
}

// What is pretended stands beside what is worked out next, in one file and in names.
func TestWhatIsPretendedIsNotForgotten(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "two.yaml")
	require.NoError(t, os.WriteFile(path, append(append(declaring("a"), "---\n"...), declaring("b")...), 0o600))
	e := NewEditor([]string{dir})
	for _, text := range []string{
		"apiVersion: muxlet.dev/v1alpha1\nkind: Session\nmetadata: {name: a}\nspec: {suspend: true, workspace: {directory: /}}\n",
		"apiVersion: muxlet.dev/v1alpha1\nkind: Session\nmetadata: {name: b}\nspec: {suspend: true, workspace: {directory: /}}\n",
		string(declaring("new")),
		"apiVersion: muxlet.dev/v1alpha1\nkind: ClientClass\nmetadata: {name: new}\nspec: {start: {command: [x]}}\n",
	} {
		declarations, problems := Declarations("in", []byte(text))
		require.Empty(t, problems)
		change, err := e.Apply(declarations[0])
		require.NoError(t, err)
		e.Pretend(change)
	}
	files := e.Pretended()
	require.Len(t, files, 3, "the class has a file of its own")
	reading, err := Read([]string{dir}).With(files, nil)
	require.NoError(t, err)
	for _, name := range []string{"a", "b"} {
		require.Len(t, indexOf(reading).places[name], 1)
		assert.True(t, indexOf(reading).places[name][0].doc.Session.Spec.Suspend, name)
	}
	assert.Contains(t, indexOf(reading).places, "new")
	assert.Contains(t, indexOf(reading).classes, "new")
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.NotContains(t, string(data), "suspend", "nothing is written")
}

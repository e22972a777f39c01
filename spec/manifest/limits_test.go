// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/muxlet/muxlet/spec"
)

var generous = Policy{Settle: time.Second, GuardMin: 3, GuardPercent: 50}

func problemTexts(list []spec.Problem) string {
	var b strings.Builder
	for _, p := range list {
		fmt.Fprintln(&b, p.Error())
	}
	return b.String()
}

// Ten thousand documents in as many files: what is beyond the limit is one
// sentence, and removes nothing.
func TestFilesBeyondTheLimitAreOneProblem(t *testing.T) {
	dir := t.TempDir()
	kept := write(t, filepath.Join(dir, "a.yaml"), yamlOf("a", "1"))
	for i := range 14 {
		write(t, filepath.Join(dir, fmt.Sprintf("m%d.yaml", i)), "")
	}
	beyond := write(t, filepath.Join(dir, "z.yaml"), yamlOf("z", "1"))
	reader := &Reader{mostFiles: 10, mostDocuments: 10, mostDirectories: 10}
	r := reader.Read([]string{dir})
	assert.Len(t, r.Files, 10)
	known := []Known{{Name: "a", File: kept, LastGood: goodOf(t, "a", "1")}, {Name: "z", File: beyond, LastGood: goodOf(t, "z", "1")}}
	set, _ := Resolve(State{}, r, known, time.Now(), generous)
	require.Len(t, set.Problems, 1)
	assert.Equal(t, dir+": 6 files are not read: at most 10 files, 10 documents and 10 directories are read in all: keep only what muxlet is to run there", set.Problems[0].Error())
	assert.Equal(t, Present, set.Sessions["a"].Presence)
	assert.Equal(t, Held, set.Sessions["z"].Presence)
}

func TestDocumentsBeyondTheLimitAreOneProblem(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a.yaml"), yamlOf("a", "1"))
	for _, name := range []string{"b", "c"} {
		write(t, filepath.Join(dir, name+".yaml"), strings.Repeat("--- x\n", 90))
	}
	write(t, filepath.Join(dir, "d.yaml"), yamlOf("d", "1"))
	reader := &Reader{mostFiles: 10, mostDocuments: 100, mostDirectories: 10}
	set, _ := Resolve(State{}, reader.Read([]string{dir}), nil, time.Now(), generous)
	text := problemTexts(set.Problems)
	assert.Contains(t, text, dir+": 1 file is not read: at most 10 files, 100 documents and 10 directories are read in all")
	assert.Contains(t, text, "b.yaml: 70 more problems in this file")
	assert.Less(t, len(set.Problems), 50)
	assert.Equal(t, Present, set.Sessions["a"].Presence)
}

// A home directory that was given by mistake takes no more notices than that.
func TestDirectoriesBeyondTheLimitAreOneProblem(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a.yaml"), yamlOf("a", "1"))
	for i := range 8 {
		write(t, filepath.Join(dir, fmt.Sprintf("d%d/x.yaml", i)), yamlOf(fmt.Sprintf("x%d", i), "1"))
	}
	beyond := filepath.Join(dir, "d7/x.yaml")
	reader := &Reader{mostFiles: 100, mostDocuments: 100, mostDirectories: 5}
	r := reader.Read([]string{dir})
	assert.Len(t, r.Watches, 5)
	set, _ := Resolve(State{}, r, []Known{{Name: "x7", File: beyond, LastGood: goodOf(t, "x7", "1")}}, time.Now(), generous)
	assert.Equal(t, dir+": 4 directories are not read: at most 100 files, 100 documents and 5 directories are read in all: keep only what muxlet is to run there\n",
		problemTexts(set.Problems))
	assert.Equal(t, Present, set.Sessions["a"].Presence)
	assert.Equal(t, Held, set.Sessions["x7"].Presence)
}

// One name ten thousand times is not ten thousand squared words.
func TestANameThatIsDeclaredVeryOftenIsABoundedProblem(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "good.yaml"), yamlOf("good", "1"))
	doc := "---\napiVersion: muxlet.dev/v1alpha1\nkind: Session\nmetadata: {name: a}\nspec: {client: {command: [a]}, workspace: {directory: /}}\n"
	path := write(t, filepath.Join(dir, "all.yaml"), strings.Repeat(doc, spec.MaxFileBytes/len(doc)))
	set, _ := Resolve(State{}, Read([]string{dir}), nil, time.Now(), generous)
	a := set.Sessions["a"]
	assert.Equal(t, spec.ReasonDuplicateName, a.Reason)
	assert.Less(t, len(a.Message), 1000)
	assert.Regexp(t, path+`:2, .*:22 and \d+ more places: nothing is started until only one is left`, a.Message)
	assert.Len(t, set.Problems, mostPlaces)
	assert.Equal(t, Present, set.Sessions["good"].Presence)
}

// A directory with the name of a manifest: one clear sentence, what is in it is
// read, and a session whose file was replaced by it goes on.
func TestADirectoryWithTheNameOfAManifestIsOneClearSentence(t *testing.T) {
	dir := t.TempDir()
	path := write(t, filepath.Join(dir, "s.yaml"), yamlOf("s", "1"))
	set, state := Resolve(State{}, Read([]string{dir}), nil, time.Now(), generous)
	require.Equal(t, Present, set.Sessions["s"].Presence)

	require.NoError(t, os.Remove(path))
	require.NoError(t, os.Mkdir(path, 0o755))
	write(t, filepath.Join(path, "inside.yaml"), yamlOf("inside", "1"))
	require.NoError(t, os.Symlink("..", filepath.Join(path, "up")))
	now := time.Now()
	for range 3 {
		now = now.Add(time.Hour)
		set, state = Resolve(state, Read([]string{dir}), nil, now, generous)
	}
	assert.Equal(t, path+": is a directory and no manifest: what is in it is read; give it another name\n", problemTexts(set.Problems))
	assert.Equal(t, Present, set.Sessions["inside"].Presence)
	assert.Equal(t, Held, set.Sessions["s"].Presence)

	set, _ = Resolve(State{}, Read([]string{path}), nil, now, generous)
	assert.Empty(t, set.Problems, "a root may have any name")
}

// A FIFO, a socket, a device: one clear sentence, none of them is opened, and a
// session whose file was replaced by one goes on.
func TestASpecialFileIsOneClearSentence(t *testing.T) {
	dir := t.TempDir()
	path := write(t, filepath.Join(dir, "s.yaml"), yamlOf("s", "1"))
	set, state := Resolve(State{}, Read([]string{dir}), nil, time.Now(), generous)
	require.Equal(t, Present, set.Sessions["s"].Presence)

	write(t, filepath.Join(dir, "good.yaml"), yamlOf("good", "1"))
	require.NoError(t, os.Remove(path))
	require.NoError(t, unix.Mkfifo(path, 0o644))
	link(t, "/dev/null", filepath.Join(dir, "null.yaml"))
	reader := &Reader{open: func(path string) (*os.File, error) {
		assert.Equal(t, "good.yaml", filepath.Base(path))
		return openManifest(path)
	}}
	now := time.Now()
	for range 3 {
		now = now.Add(time.Hour)
		set, state = Resolve(state, reader.Read([]string{dir}), nil, now, generous)
	}
	assert.Equal(t, path+": is not read: it is a FIFO and no regular file; remove it, or give it another name\n"+
		filepath.Join(dir, "null.yaml")+": is not read: it is a device and no regular file; remove it, or give it another name\n", problemTexts(set.Problems))
	assert.Equal(t, Present, set.Sessions["good"].Presence)
	assert.Equal(t, Held, set.Sessions["s"].Presence)
	assert.Contains(t, set.Sessions["s"].Message, "FIFO")
}

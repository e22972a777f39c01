// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/spec"
)

func lookup(name string) (string, bool) {
	value, set := map[string]string{
		"HOME": "/home/ada", "SRC": "/src", "SUB": "a b", "TILDE": "~", "DOLLAR": "$SRC", "EMPTY": "",
	}[name]
	return value, set
}

func TestExpandReplacesALeadingTildeAndVariables(t *testing.T) {
	for path, want := range map[string]string{
		"~":               "/home/ada",
		"~/":              "/home/ada",
		"~/src/shop":      "/home/ada/src/shop",
		"/a/../b//c/":     "/b/c",
		"$SRC":            "/src",
		"$SRC/x":          "/src/x",
		"${SRC}x/$SUB":    "/srcx/a b",
		"/~/x~":           "/~/x~",
		"/$TILDE/$DOLLAR": "/~/$SRC",
		"/a$$SRC":         "/a$SRC",
		"/price/5$/$-x":   "/price/5$/$-x",
		"/é/#(touch x);'": "/é/#(touch x);'",
	} {
		got, err := Expand(path, lookup)
		require.NoError(t, err, path)
		assert.Equal(t, want, got, path)
	}
}

func TestExpandNamesTheVariableThatIsNotSet(t *testing.T) {
	for path, want := range map[string]string{
		"$NOPE/x": "NOPE", "/a/${NOPE}/$EMPTY": "NOPE", "$EMPTY/x": "EMPTY", "/x$EMPTY": "EMPTY",
	} {
		_, err := Expand(path, lookup)
		require.ErrorContains(t, err, "the variable "+want+" is not set", path)
	}
	_, err := Expand("~/x", func(string) (string, bool) { return "", false })
	require.ErrorContains(t, err, "HOME")
}

func TestExpandRefusesAPathThatStaysRelative(t *testing.T) {
	for _, path := range []string{"", ".", "src", "~ada/src", "$SUB/x", "$TILDE/x"} {
		_, err := Expand(path, lookup)
		require.ErrorContains(t, err, "relative", path)
	}
}

func TestInspectTellsApartWhatStandsInTheWay(t *testing.T) {
	root := t.TempDir()
	file := filepath.Join(root, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	loop := filepath.Join(root, "loop")
	require.NoError(t, os.Symlink(loop, loop))
	dangling := filepath.Join(root, "dangling")
	require.NoError(t, os.Symlink(filepath.Join(root, "gone"), dangling))
	link := filepath.Join(root, "link")
	require.NoError(t, os.Symlink(root, link))

	var i Inspector
	for path, want := range map[string]State{
		root:                             Ready,
		link:                             Ready,
		filepath.Join(root, "gone"):      Missing,
		filepath.Join(root, "gone", "x"): Missing,
		dangling:                         Missing,
		file:                             NotDirectory,
		filepath.Join(file, "x"):         NotDirectory,
		loop:                             Inaccessible,
		filepath.Join(root, strings.Repeat("x", 300)): Inaccessible,
	} {
		finding := i.Inspect(t.Context(), path)
		assert.Equal(t, want, finding.State, path)
		assert.Equal(t, want == Ready, finding.Message == "", path)
	}
	assert.Empty(t, i.pending)
	entries, err := os.ReadDir(root)
	require.NoError(t, err)
	assert.Len(t, entries, 4, "looking made nothing")
}

func TestADirectoryThatDoesNotAnswerIsUnknownAndHoldsUpOneLookOnly(t *testing.T) {
	var i Inspector
	hung := make(chan struct{})
	i.pending = map[string]*inspection{"/mnt/dead": {ended: hung}}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 3 {
		assert.Equal(t, Unknown, i.Inspect(ctx, "/mnt/dead").State)
	}
	assert.Len(t, i.pending, 1)
	// Nobody waits again for what was waited for in vain.
	assert.Equal(t, Unknown, i.Inspect(t.Context(), "/mnt/dead").State)

	delete(i.pending, "/mnt/dead")
	close(hung)
	assert.Equal(t, Missing, i.Inspect(t.Context(), "/mnt/dead").State)
}

func TestWhatIsSeenIsNotOlderThanTheQuestion(t *testing.T) {
	var i Inspector
	dir := filepath.Join(t.TempDir(), "new")
	earlier := make(chan struct{})
	i.pending = map[string]*inspection{dir: {ended: earlier}}
	var finding Finding
	var asked sync.WaitGroup
	asked.Go(func() { finding = i.Inspect(t.Context(), dir) })
	require.NoError(t, os.Mkdir(dir, 0o700))
	i.mu.Lock()
	delete(i.pending, dir)
	i.mu.Unlock()
	close(earlier)
	asked.Wait()
	assert.Equal(t, Ready, finding.State)
}

func TestNothingStandsInTheWayOfADirectoryThatIsReady(t *testing.T) {
	d := Directories{Lookup: lookup}
	dir := t.TempDir()
	reason, message := d.Inspect(t.Context(), dir)
	assert.Empty(t, reason)
	assert.Empty(t, message)
	reason, message = d.Inspect(t.Context(), filepath.Join(dir, "gone"))
	assert.Equal(t, spec.ReasonWorkspaceMissing, reason)
	assert.Contains(t, message, filepath.Join(dir, "gone"))
	require.NoError(t, d.Ensure(filepath.Join(dir, "gone"), spec.WorkspaceDirectoryOrCreate))
	reason, _ = d.Inspect(t.Context(), filepath.Join(dir, "gone"))
	assert.Empty(t, reason)
	path, err := d.Expand("~/x")
	require.NoError(t, err)
	assert.Equal(t, "/home/ada/x", path)
}

func TestErrorsThatProveNothingAreUnknown(t *testing.T) {
	for _, err := range []error{syscall.EIO, syscall.ESTALE, syscall.ETIMEDOUT, syscall.EMFILE, errors.New("odd")} {
		assert.Equal(t, Unknown, Judge("/x", err).State, err)
	}
	for _, err := range []error{syscall.EACCES, syscall.EPERM, fs.ErrPermission, syscall.EROFS} {
		assert.Equal(t, Inaccessible, Judge("/x", err).State, err)
	}
}

func TestEveryStateHasItsReasonAndItsWord(t *testing.T) {
	assert.Equal(t, spec.ReasonWorkspaceReady, Ready.Reason())
	assert.Equal(t, spec.ReasonWorkspaceMissing, Missing.Reason())
	assert.Equal(t, spec.ReasonWorkspaceNotDirectory, NotDirectory.Reason())
	assert.Equal(t, spec.ReasonWorkspaceInaccessible, Inaccessible.Reason())
	assert.Equal(t, spec.ReasonUnknown, Unknown.Reason())
	for state, word := range map[State]string{
		Ready: "Ready", Missing: "Missing", NotDirectory: "NotDirectory",
		Inaccessible: "Inaccessible", Unknown: "Unknown", State(9): "State(9)",
	} {
		assert.Equal(t, word, state.String())
	}
}

func TestEnsureMakesADirectoryOnlyWhenItIsAskedTo(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	err := Ensure(dir, spec.WorkspaceDirectory)
	var missing *Error
	require.ErrorAs(t, err, &missing)
	assert.Equal(t, Missing, missing.State)
	assert.NoDirExists(t, dir)

	require.NoError(t, Ensure(dir, spec.WorkspaceDirectoryOrCreate))
	info, err := os.Stat(dir)
	require.NoError(t, err)
	assert.Equal(t, fs.FileMode(0o755)&^umask(), info.Mode().Perm())
}

// J2: what is there is never touched.
func TestEnsureLeavesWhatIsThereAlone(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Chmod(dir, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "work"), []byte("x"), 0o600))
	require.NoError(t, Ensure(dir, spec.WorkspaceDirectoryOrCreate))
	info, err := os.Stat(dir)
	require.NoError(t, err)
	assert.Equal(t, fs.FileMode(0o700), info.Mode().Perm())
	assert.FileExists(t, filepath.Join(dir, "work"))

	var inTheWay *Error
	require.ErrorAs(t, Ensure(filepath.Join(dir, "work"), spec.WorkspaceDirectoryOrCreate), &inTheWay)
	assert.Equal(t, NotDirectory, inTheWay.State)
	require.ErrorAs(t, Ensure(filepath.Join(dir, "work", "x"), spec.WorkspaceDirectoryOrCreate), &inTheWay)
	assert.Equal(t, NotDirectory, inTheWay.State)
}

func umask() fs.FileMode {
	mask := syscall.Umask(0)
	syscall.Umask(mask)
	return fs.FileMode(mask)
}

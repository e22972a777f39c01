// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/muxlet/muxlet/spec"
)

// write makes a file and its directories.
func write(t *testing.T, path, content string) string {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(content), 0o644))
	return path
}

func link(t *testing.T, target, path string) {
	t.Helper()
	require.NoError(t, os.Symlink(target, path))
}

// paths of the files of a reading below dir, in order.
func paths(r Reading, dir string) []string {
	var list []string
	for _, f := range r.Files {
		rel, err := filepath.Rel(dir, f.Path)
		if err != nil {
			rel = f.Path
		}
		list = append(list, rel)
	}
	return list
}

func TestReadFindsManifestsInSubfolders(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{
		"b.yaml", "a.yml", "sub/deep/er/c.yaml", "x.yaml/d.yaml",
		".git/no.yaml", "sub/.hidden.yaml", "sub/.#c.yaml", "#b.yaml#", "b.yaml~", "b.yaml.swp", "old~/no.yaml", "4913", "README.md",
	} {
		write(t, filepath.Join(dir, name), yamlOf("n", "1"))
	}
	write(t, filepath.Join(dir, "e.json"), `{"apiVersion":"muxlet.dev/v1alpha1","kind":"Session","metadata":{"name":"e"},
		"spec":{"client":{"command":["sleep","1"]},"workspace":{"directory":"/tmp"}}}`)
	r := Read([]string{dir})
	assert.Equal(t, []string{"a.yml", "b.yaml", "e.json", "sub/deep/er/c.yaml", "x.yaml/d.yaml"}, paths(r, dir))
	assert.Empty(t, r.Unread)
	require.Len(t, r.Roots, 1)
	assert.Equal(t, Readable, r.Roots[0].Access)
	assert.Equal(t, 5, r.Roots[0].Documents)
	assert.NotZero(t, r.Roots[0].Device)
	assert.NotNil(t, r.Files[2].Items[0].Session, r.Files[2].Items[0].Problems)
}

func TestReadFollowsEachLinkOnce(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	write(t, filepath.Join(dir, "sub/a.yaml"), yamlOf("a", "1"))
	write(t, filepath.Join(outside, "tree/b.yaml"), yamlOf("b", "1"))
	write(t, filepath.Join(outside, "c.conf"), yamlOf("c", "1"))
	link(t, "..", filepath.Join(dir, "sub/up"))
	link(t, dir, filepath.Join(outside, "tree/cycle"))
	link(t, "sub/a.yaml", filepath.Join(dir, "0-first.yaml"))
	link(t, filepath.Join(outside, "tree"), filepath.Join(dir, "1-tree"))
	link(t, filepath.Join(outside, "tree"), filepath.Join(dir, "2-tree"))
	link(t, filepath.Join(outside, "c.conf"), filepath.Join(dir, "c.yaml"))
	link(t, filepath.Join(outside, "c.conf"), filepath.Join(dir, "c.conf"))
	r := Read([]string{dir})
	assert.Equal(t, []string{"sub/a.yaml", "1-tree/b.yaml", "c.yaml"}, paths(r, dir))
	assert.Empty(t, r.Unread)
}

func TestReadTakesAMountedConfigMap(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "..2024/x.yaml"), yamlOf("x", "1"))
	link(t, "..2024", filepath.Join(dir, "..data"))
	link(t, "..data/x.yaml", filepath.Join(dir, "x.yaml"))
	r := Read([]string{dir})
	assert.Equal(t, []string{"x.yaml"}, paths(r, dir))
	var names []string
	for _, w := range r.Watches {
		for _, name := range w.Names {
			names = append(names, filepath.Join(filepath.Base(w.Dir), name))
		}
	}
	assert.Contains(t, names, filepath.Join(filepath.Base(dir), "..data"), "the link in the middle is watched")
	assert.Contains(t, names, "..2024/x.yaml")
}

func TestReadReportsALinkThatLeadsNowhere(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a.yaml"), yamlOf("a", "1"))
	link(t, "/nowhere/b.yaml", filepath.Join(dir, "b.yaml"))
	link(t, "loop", filepath.Join(dir, "loop"))
	r := Read([]string{dir})
	require.Len(t, r.Unread, 2)
	assert.Equal(t, filepath.Join(dir, "b.yaml"), r.Unread[0].Path)
	assert.Contains(t, r.Unread[0].Problem.Message, "/nowhere/b.yaml")
	assert.Contains(t, r.Unread[1].Problem.Message, "too many levels")
	assert.Equal(t, []string{"a.yaml"}, paths(r, dir))
}

func TestReadIgnoresWhatIsNoFile(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, unix.Mkfifo(filepath.Join(dir, "pipe.yaml"), 0o644))
	link(t, "/dev/zero", filepath.Join(dir, "zero.yaml"))
	link(t, "pipe.yaml", filepath.Join(dir, "piped.yaml"))
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	require.NoError(t, err)
	defer func() { _ = unix.Close(fd) }()
	t.Chdir(dir)
	require.NoError(t, unix.Bind(fd, &unix.SockaddrUnix{Name: "s.yaml"}))
	r := Read([]string{dir})
	assert.Empty(t, r.Files)
	assert.Empty(t, r.Unread)
	assert.Zero(t, r.Roots[0].Documents)
}

func TestReadDoesNotHangOnAFileThatBecameAPipe(t *testing.T) {
	dir := t.TempDir()
	path := write(t, filepath.Join(dir, "a.yaml"), yamlOf("a", "1"))
	reader := &Reader{open: func(p string) (*os.File, error) {
		require.NoError(t, os.Remove(path))
		require.NoError(t, unix.Mkfifo(path, 0o644))
		return openManifest(p)
	}}
	r := reader.Read([]string{dir})
	assert.Empty(t, r.Files)
	assert.Empty(t, r.Unread)
}

func TestAFileThatVanishesMeanwhileIsAbsent(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a.yaml"), yamlOf("a", "1"))
	write(t, filepath.Join(dir, "sub/b.yaml"), yamlOf("b", "1"))
	link(t, "a.yaml", filepath.Join(dir, "z"))
	reader := &Reader{list: func(path string) ([]fs.DirEntry, error) {
		entries, err := os.ReadDir(path)
		assert.NoError(t, os.RemoveAll(filepath.Join(dir, "a.yaml")))
		assert.NoError(t, os.RemoveAll(filepath.Join(dir, "sub")))
		assert.NoError(t, os.RemoveAll(filepath.Join(dir, "z")))
		return entries, err
	}}
	r := reader.Read([]string{dir})
	assert.Empty(t, r.Files)
	assert.Empty(t, r.Unread)
	assert.Equal(t, Readable, r.Roots[0].Access)

	write(t, filepath.Join(dir, "a.yaml"), yamlOf("a", "1"))
	reader = &Reader{open: func(path string) (*os.File, error) {
		require.NoError(t, os.Remove(path))
		return openManifest(path)
	}}
	r = reader.Read([]string{dir})
	assert.Empty(t, r.Files)
	assert.Empty(t, r.Unread)
}

func TestWhatCannotBeReadIsAPartOfTheReading(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a.yaml"), yamlOf("a", "1"))
	write(t, filepath.Join(dir, "b.yaml"), yamlOf("b", "1"))
	write(t, filepath.Join(dir, "sub/c.yaml"), yamlOf("c", "1"))
	write(t, filepath.Join(dir, "sub/d.yaml"), yamlOf("d", "1"))
	reader := &Reader{
		open: func(path string) (*os.File, error) {
			if filepath.Base(path) == "a.yaml" {
				return nil, &fs.PathError{Op: "open", Path: path, Err: syscall.EACCES}
			}
			return openManifest(path)
		},
		list: func(path string) ([]fs.DirEntry, error) {
			entries, err := os.ReadDir(path)
			if filepath.Base(path) == "sub" {
				return entries[:1], &fs.PathError{Op: "readdirent", Path: path, Err: syscall.EIO}
			}
			return entries, err
		},
	}
	r := reader.Read([]string{dir})
	assert.Equal(t, []string{"b.yaml", "sub/c.yaml"}, paths(r, dir))
	require.Len(t, r.Unread, 2)
	assert.Equal(t, filepath.Join(dir, "a.yaml"), r.Unread[0].Path)
	assert.Contains(t, r.Unread[0].Problem.Error(), "permission denied")
	assert.Equal(t, filepath.Join(dir, "sub"), r.Unread[1].Path)
	assert.Equal(t, 4, r.Roots[0].Documents)
}

func TestAFileAboveTheLimitIsAProblem(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "big.yaml")
	write(t, path, "")
	require.NoError(t, os.Truncate(path, 1<<40))
	opened := 0
	reader := &Reader{open: func(path string) (*os.File, error) {
		opened++
		return openManifest(path)
	}}
	r := reader.Read([]string{dir})
	require.Len(t, r.Unread, 1)
	assert.Contains(t, r.Unread[0].Problem.Message, "1099511627776 bytes")
	assert.Zero(t, opened)

	require.NoError(t, os.Truncate(path, spec.MaxFileBytes))
	growing := &Reader{open: func(path string) (*os.File, error) {
		require.NoError(t, os.Truncate(path, spec.MaxFileBytes+1))
		return openManifest(path)
	}}
	r = growing.Read([]string{dir})
	require.Len(t, r.Unread, 1)
	assert.Contains(t, r.Unread[0].Problem.Message, "at most 1048576 are read")
}

func TestRootsAreToldApart(t *testing.T) {
	dir := t.TempDir()
	file := write(t, filepath.Join(dir, "single.conf"), yamlOf("a", "1"))
	empty := filepath.Join(dir, "empty")
	require.NoError(t, os.Mkdir(empty, 0o755))
	require.NoError(t, unix.Mkfifo(filepath.Join(dir, "pipe"), 0o644))
	link(t, "loop", filepath.Join(dir, "loop"))
	link(t, "empty", filepath.Join(dir, "link"))
	for _, c := range []struct {
		path      string
		access    Access
		documents int
	}{
		{file, Readable, 1},
		{empty, Readable, 0},
		{empty + "/", Readable, 0},
		{filepath.Join(dir, "link"), Readable, 0},
		{filepath.Join(dir, "none"), Missing, 0},
		{filepath.Join(dir, "none/deeper"), Missing, 0},
		{filepath.Join(file, "below-a-file"), Missing, 0},
		{filepath.Join(dir, "pipe"), Unreadable, 0},
		{filepath.Join(dir, "loop"), Unreadable, 0},
	} {
		r := Read([]string{c.path})
		require.Len(t, r.Roots, 1)
		root := r.Roots[0]
		assert.Equal(t, filepath.Clean(c.path), root.Path)
		assert.Equal(t, c.access, root.Access, c.path)
		assert.Equal(t, c.documents, root.Documents, c.path)
		assert.Equal(t, c.access == Readable, root.Device != 0, c.path)
		assert.Equal(t, c.access == Readable, root.Message == "", c.path)
		assert.NotEmpty(t, r.Watches, c.path)
	}
}

func TestARootThatCannotBeListedIsUnreadable(t *testing.T) {
	dir := t.TempDir()
	for err, want := range map[syscall.Errno]Access{syscall.EACCES: Unreadable, syscall.EIO: Unreadable, syscall.ENOENT: Missing} {
		reader := &Reader{list: func(path string) ([]fs.DirEntry, error) {
			return nil, &fs.PathError{Op: "open", Path: path, Err: err}
		}}
		r := reader.Read([]string{dir})
		assert.Equal(t, want, r.Roots[0].Access)
		assert.Zero(t, r.Roots[0].Device)
	}
}

func TestRootsThatOverlapCountWhatTheyShare(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "sub/a.yaml"), yamlOf("a", "1"))
	r := Read([]string{dir, filepath.Join(dir, "sub"), dir})
	assert.Equal(t, []string{"sub/a.yaml"}, paths(r, dir))
	for _, root := range r.Roots {
		assert.Equal(t, 1, root.Documents, root.Path)
	}
}

func TestAnUnchangedTreeIsNotOpenedAgain(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a", "b", "c"} {
		write(t, filepath.Join(dir, name+".yaml"), yamlOf(name, "1"))
	}
	clock := clocktesting.NewFakePassiveClock(time.Now().Add(time.Hour))
	var opened []string
	reader := &Reader{Clock: clock, open: func(path string) (*os.File, error) {
		opened = append(opened, filepath.Base(path))
		return openManifest(path)
	}}
	first := reader.Read([]string{dir})
	assert.Len(t, opened, 3)
	second := reader.Read([]string{dir})
	assert.Len(t, opened, 3)
	assert.Equal(t, first, second)

	opened = nil
	require.NoError(t, os.Rename(filepath.Join(dir, "a.yaml"), filepath.Join(dir, "d.yaml")))
	write(t, filepath.Join(dir, "b.yaml"), yamlOf("b", "2"))
	r := reader.Read([]string{dir})
	slices.Sort(opened)
	assert.Equal(t, []string{"b.yaml", "d.yaml"}, opened, "a new path has new positions")
	assert.Equal(t, "2", r.Files[0].Items[0].Session.Labels["marker"])
	assert.Equal(t, filepath.Join(dir, "d.yaml"), r.Files[2].Items[0].File)
}

func TestAFileThatWasJustChangedIsReadAgain(t *testing.T) {
	dir := t.TempDir()
	path := write(t, filepath.Join(dir, "a.yaml"), yamlOf("a", "1"))
	reader := &Reader{}
	reader.Read([]string{dir})
	// Another change in the same tick, of the same size: no stamp tells.
	st, err := statPath(path)
	require.NoError(t, err)
	reader.decoded = map[string]decoded{}
	write(t, path, yamlOf("a", "2"))
	r := reader.Read([]string{dir})
	assert.Equal(t, "2", r.Files[0].Items[0].Session.Labels["marker"])
	assert.Empty(t, reader.decoded, "it is not remembered yet")
	assert.False(t, st.settled(time.Now()))
	assert.True(t, st.settled(time.Now().Add(3*time.Second)))
}

func TestAHardLinkIsReadOnce(t *testing.T) {
	dir := t.TempDir()
	path := write(t, filepath.Join(dir, "b.yaml"), yamlOf("b", "1"))
	require.NoError(t, os.Link(path, filepath.Join(dir, "a.yaml")))
	r := Read([]string{dir})
	assert.Equal(t, []string{"a.yaml"}, paths(r, dir))
	assert.Equal(t, 1, r.Roots[0].Documents)
}

func TestADamagedFileCountsAsADocument(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a.yaml"), "\x00")
	write(t, filepath.Join(dir, "b.yaml"), "a: [")
	write(t, filepath.Join(dir, "c.yaml"), "# nothing\n---\n")
	r := Read([]string{dir})
	assert.Len(t, r.Files, 3)
	assert.Equal(t, 2, r.Roots[0].Documents)
}

// A6, with real directories.
func TestADirectoryThatIsEmptiedOrMovedAwayRemovesNothing(t *testing.T) {
	for name, destroy := range map[string]func(t *testing.T, dir string){
		"emptied":   func(t *testing.T, dir string) { require.NoError(t, os.Remove(filepath.Join(dir, "a.yaml"))) },
		"truncated": func(t *testing.T, dir string) { write(t, filepath.Join(dir, "a.yaml"), "") },
		"moved":     func(t *testing.T, dir string) { require.NoError(t, os.Rename(dir, dir+"-old")) },
		"a file":    func(t *testing.T, dir string) { require.NoError(t, os.RemoveAll(dir)); write(t, dir, "") },
		"half-written": func(t *testing.T, dir string) {
			write(t, filepath.Join(dir, "a.yaml"), strings.TrimSuffix(yamlOf("a", "1"), "{directory: /tmp}\n"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "m")
			write(t, filepath.Join(dir, "a.yaml"), yamlOf("a", "1"))
			policy := Policy{Settle: time.Second, GuardMin: 3, GuardPercent: 50}
			now := time.Unix(1_000_000, 0)
			set, state := Resolve(State{}, Read([]string{dir}), nil, now, policy)
			require.Equal(t, Present, set.Sessions["a"].Presence)
			known := []Known{{Name: "a", LastGood: set.Sessions["a"].Session, File: set.Sessions["a"].File}}
			destroy(t, dir)
			for range 3 {
				now = now.Add(time.Hour)
				set, state = Resolve(state, Read([]string{dir}), known, now, policy)
				assert.NotEqual(t, Removed, set.Sessions["a"].Presence)
				assert.Equal(t, "1", marker(set.Sessions["a"]))
			}
		})
	}
}

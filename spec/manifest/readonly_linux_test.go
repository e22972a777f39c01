// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// asNobody runs f with the file permissions of an ordinary user, also when the
// tests run as root. It affects the calling thread alone.
func asNobody(t *testing.T, f func()) {
	t.Helper()
	if os.Getuid() != 0 {
		f()
		return
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	const nobody = 65534
	require.NoError(t, unix.Setfsuid(nobody))
	defer func() { assert.NoError(t, unix.Setfsuid(0)) }()
	f()
}

// openTempDir is a directory that asNobody may enter.
func openTempDir(t *testing.T) string {
	dir := t.TempDir()
	require.NoError(t, os.Chmod(filepath.Dir(dir), 0o755))
	require.NoError(t, os.Chmod(dir, 0o755))
	return dir
}

func TestADirectoryThatMayNotBeWrittenIsReadOnly(t *testing.T) {
	dir := openTempDir(t)
	one := write(t, filepath.Join(dir, "one.yaml"), head+"spec:\n"+body)
	two := write(t, filepath.Join(dir, "two.yaml"), other+"---\n"+head+"spec:\n"+body)
	require.NoError(t, os.Chmod(one, 0o666))
	require.NoError(t, os.Chmod(two, 0o666))
	require.NoError(t, os.Chmod(dir, 0o555))
	t.Cleanup(func() { assert.NoError(t, os.Chmod(dir, 0o755)) })
	asNobody(t, func() {
		for _, path := range []string{one, two} {
			for _, err := range []error{SetSuspend(path, "a", true), Remove(path, "a")} {
				require.ErrorIs(t, err, ErrReadOnly)
				assert.ErrorContains(t, err, path)
			}
		}
	})
	assert.FileExists(t, one)
}

func TestAFileOfSomebodyElseIsReadOnly(t *testing.T) {
	dir := openTempDir(t)
	path := write(t, filepath.Join(dir, "a.yaml"), head+"spec:\n"+body)
	mode := os.FileMode(0o644)
	if os.Getuid() != 0 {
		mode = 0o444
	}
	require.NoError(t, os.Chmod(path, mode))
	require.NoError(t, os.Chmod(dir, 0o777))
	asNobody(t, func() { assert.ErrorIs(t, SetSuspend(path, "a", true), ErrReadOnly) })
}

func TestWhatMayNotBeReadIsUnread(t *testing.T) {
	dir := openTempDir(t)
	write(t, filepath.Join(dir, "a.yaml"), yamlOf("a", "1"))
	secret := write(t, filepath.Join(dir, "b.yaml"), yamlOf("b", "1"))
	write(t, filepath.Join(dir, "sub/c.yaml"), yamlOf("c", "1"))
	write(t, filepath.Join(dir, "dark/d.yaml"), yamlOf("d", "1"))
	require.NoError(t, os.Chmod(secret, 0))
	require.NoError(t, os.Chmod(filepath.Join(dir, "sub"), 0))
	require.NoError(t, os.Chmod(filepath.Join(dir, "dark"), 0o444)) // listed, not entered
	t.Cleanup(func() {
		assert.NoError(t, os.Chmod(filepath.Join(dir, "sub"), 0o755))
		assert.NoError(t, os.Chmod(filepath.Join(dir, "dark"), 0o755))
	})
	var r, root Reading
	asNobody(t, func() {
		r = Read([]string{dir})
		root = Read([]string{filepath.Join(dir, "sub")})
	})
	assert.Equal(t, []string{"a.yaml"}, paths(r, dir))
	var unread []string
	for _, u := range r.Unread {
		unread = append(unread, u.Path)
		assert.Contains(t, u.Problem.Error(), "permission denied")
	}
	assert.ElementsMatch(t, []string{secret, filepath.Join(dir, "sub"), filepath.Join(dir, "dark/d.yaml")}, unread)
	assert.Equal(t, Unreadable, root.Roots[0].Access)
}

// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package record

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// mount mounts a small file system of its own for a test. CI runs as root; where
// that is not so, the tests that need it say so and do not run.
func mount(t *testing.T, options string) string {
	t.Helper()
	if os.Geteuid() != 0 {
		require.Empty(t, os.Getenv("CI"), "CI must run these tests as root: they mount file systems")
		t.Skip("mounting needs root")
	}
	dir := t.TempDir()
	require.NoError(t, unix.Mount("tmpfs", dir, "tmpfs", 0, options), "mount a small tmpfs: these tests need CAP_SYS_ADMIN")
	t.Cleanup(func() { require.NoError(t, unix.Unmount(dir, unix.MNT_DETACH)) })
	return dir
}

// fill leaves no room in dir.
func fill(t *testing.T, dir string) string {
	t.Helper()
	path := filepath.Join(dir, "filler")
	f, err := os.Create(path)
	require.NoError(t, err)
	_, err = io.Copy(f, endless{})
	require.ErrorIs(t, err, unix.ENOSPC)
	require.NoError(t, f.Close())
	return path
}

type endless struct{}

func (endless) Read(p []byte) (int, error) {
	copy(p, bytes.Repeat([]byte("x"), len(p)))
	return len(p), nil
}

// M3: a full disk loses nothing, and says so.
func TestAFullDiskKeepsTheOldRecord(t *testing.T) {
	for name, options := range map[string]string{"no blocks": "size=256k", "no inodes": "nr_inodes=24"} {
		t.Run(name, func(t *testing.T) {
			dir := mount(t, options)
			s := NewStore(dir)
			require.NoError(t, s.Prepare())
			require.NoError(t, s.Save(generation(1)))
			require.NoError(t, s.Save(generation(2)))
			var free func()
			if name == "no blocks" {
				path := fill(t, dir)
				free = func() { require.NoError(t, os.Remove(path)) }
			} else {
				free = useInodes(t, dir)
			}
			big := generation(3)
			big.Labels["filler"] = strings.Repeat("x", 64<<10) // a small one finds room where the generation before was
			for range 3 {
				require.ErrorIs(t, s.Save(big), unix.ENOSPC)
				require.ErrorIs(t, s.Archive(big), unix.ENOSPC)
			}
			require.Equal(t, Loaded{Records: []Record{generation(2)}}, load(t, s), "the old record is in force")
			require.Subset(t, []string{uid + ".json", uid + ".json.prev"}, s.files(t, "records"), "nothing half written is left")
			require.Empty(t, s.files(t, "archive"))
			require.Empty(t, s.files(t, "quarantine"))

			free()
			require.NoError(t, s.Save(generation(9)))
			require.Equal(t, Loaded{Records: []Record{generation(9)}}, load(t, s), "and things go on when there is room")
		})
	}
}

func useInodes(t *testing.T, dir string) (free func()) {
	t.Helper()
	filler := filepath.Join(dir, "filler")
	require.NoError(t, os.Mkdir(filler, 0o700))
	for {
		f, err := os.CreateTemp(filler, "")
		if errors.Is(err, unix.ENOSPC) {
			return func() { require.NoError(t, os.RemoveAll(filler)) }
		}
		require.NoError(t, err)
		require.NoError(t, f.Close())
	}
}

func TestAReadOnlyDiskKeepsTheOldRecord(t *testing.T) {
	dir := mount(t, "size=1m")
	s := NewStore(dir)
	require.NoError(t, s.Prepare())
	require.NoError(t, s.Save(generation(1)))
	require.NoError(t, unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""))
	require.ErrorIs(t, s.Save(generation(2)), unix.EROFS)
	require.ErrorIs(t, s.Archive(generation(2)), unix.EROFS)
	require.ErrorIs(t, s.Unarchive("other"), unix.EROFS)
	require.ErrorContains(t, s.Room(), dir+" is on a read-only file system: make it writable")
	require.Equal(t, Loaded{Records: []Record{generation(1)}}, load(t, s))
}

// M3: no start without room for its record and its receipt.
func TestRoomIsAskedForBeforeAStart(t *testing.T) {
	require.NoError(t, newStore(t).Room())
	require.ErrorIs(t, NewStore(filepath.Join(t.TempDir(), "missing")).Room(), os.ErrNotExist)

	dir := mount(t, "size=2m")
	require.NoError(t, NewStore(dir).Room())
	require.NoError(t, os.WriteFile(filepath.Join(dir, "filler"), make([]byte, 1<<20+1), 0o600))
	require.ErrorContains(t, NewStore(dir).Room(), "is full (1020 KiB are free, 1024 are needed): make room")

	dir = mount(t, "nr_inodes=70")
	require.NoError(t, NewStore(dir).Room())
	useInodes(t, dir)
	require.ErrorContains(t, NewStore(dir).Room(), "has only 0 inodes free: remove files")

	require.NoError(t, NewStore(mount(t, "size=0,nr_inodes=0")).Room(), "a file system without limits has room")
}

// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package turn

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

// mounted opens a store on a small file system of its own. CI runs as root; where that
// is not so, the tests that need it say so and do not run.
func mounted(t *testing.T, options string) *world {
	t.Helper()
	if os.Geteuid() != 0 {
		require.Empty(t, os.Getenv("CI"), "CI must run these tests as root: they mount file systems")
		t.Skip("mounting needs root")
	}
	dir := t.TempDir()
	require.NoError(t, unix.Mount("tmpfs", dir, "tmpfs", 0, options), "mount a small tmpfs: these tests need CAP_SYS_ADMIN")
	t.Cleanup(func() { require.NoError(t, unix.Unmount(dir, unix.MNT_DETACH)) })
	w := &world{T: t, dir: dir, now: start}
	w.reopen()
	return w
}

type endless struct{}

func (endless) Read(p []byte) (int, error) {
	copy(p, bytes.Repeat([]byte("x"), len(p)))
	return len(p), nil
}

// useBlocks leaves no room in a directory but so many bytes.
func useBlocks(t *testing.T, dir string, but int64) (free func()) {
	t.Helper()
	path := filepath.Join(dir, "filler")
	f, err := os.Create(path)
	require.NoError(t, err)
	n, err := io.Copy(f, endless{})
	require.ErrorIs(t, err, unix.ENOSPC)
	require.NoError(t, f.Truncate(n-but))
	require.NoError(t, f.Close())
	return func() { require.NoError(t, os.Remove(path)) }
}

func useInodes(t *testing.T, dir string, but int64) (free func()) {
	t.Helper()
	filler := filepath.Join(dir, "filler")
	require.NoError(t, os.Mkdir(filler, 0o700))
	var made []string
	for {
		f, err := os.CreateTemp(filler, "")
		if errors.Is(err, unix.ENOSPC) {
			break
		}
		require.NoError(t, err)
		require.NoError(t, f.Close())
		made = append(made, f.Name())
	}
	for _, path := range made[:but] {
		require.NoError(t, os.Remove(path))
	}
	return func() { require.NoError(t, os.RemoveAll(filler)) }
}

// M3: a full disk takes no turn, says why, and loses none.
func TestAFullDiskTakesNoTurnAndLosesNone(t *testing.T) {
	blocks := func(but int64) func(*testing.T, string) func() {
		return func(t *testing.T, dir string) func() { return useBlocks(t, dir, but) }
	}
	inodes := func(but int64) func(*testing.T, string) func() {
		return func(t *testing.T, dir string) func() { return useInodes(t, dir, but) }
	}
	for name, c := range map[string]struct {
		options, session string
		use              func(*testing.T, string) (free func())
	}{
		"no blocks":                                {"size=512k", uid, blocks(0)},
		"no blocks for a new session":              {"size=512k", "u2", blocks(0)},
		"blocks for half a prompt":                 {"size=512k", uid, blocks(32 << 10)},
		"blocks for a prompt alone":                {"size=512k", uid, blocks(64 << 10)},
		"blocks for a prompt alone, a new session": {"size=512k", "u2", blocks(64 << 10)},
		"no inodes":                                {"nr_inodes=40", uid, inodes(0)},
		"an inode for a prompt alone":              {"nr_inodes=40", uid, inodes(1)},
		"an inode for the directory alone":         {"nr_inodes=40", "u2", inodes(1)},
		"inodes for the directory and a prompt":    {"nr_inodes=40", "u2", inodes(2)},
	} {
		t.Run(name, func(t *testing.T) {
			w := mounted(t, c.options)
			first := w.create(shop("a"))
			big := Request{Session: "api", SessionUID: c.session, Prompt: strings.Repeat("x", 64<<10)}
			free := c.use(t, w.dir)
			for range 3 {
				_, _, err := w.Create(big)
				require.ErrorIs(t, err, unix.ENOSPC)
				require.ErrorContains(t, err, "keep a turn of session api: the disk of state directory "+w.dir+" is full, make room there: ")
			}
			for range 2 {
				require.EqualValues(t, 1, w.kept, "no room is taken")
				require.Equal(t, []Turn{first}, w.All())
				require.Equal(t, []string{"1.json", "1.prompt"}, w.files(uid), "nothing half-made is left")
				require.Equal(t, []string{uid, "quarantine"}, w.files(""))
				w.reopen()
				require.Empty(t, w.problems)
			}
			free()
			w.create(big)
			w.update(first.Cancel(w.clock()))
		})
	}
}

func TestATurnThatCannotBeSavedStaysAsItWas(t *testing.T) {
	w := mounted(t, "size=256k")
	first := w.create(shop("a"))
	useBlocks(t, w.dir, 0)
	_, err := w.Update(first.Cancel(w.clock()))
	require.ErrorIs(t, err, unix.ENOSPC)
	require.ErrorContains(t, err, "save turn shop-1: the disk of state directory")
	require.Equal(t, []Turn{first}, w.All())
	require.NoError(t, w.ForgetSession(uid), "what was removed makes room")
	require.Equal(t, []string{"1.forgotten"}, w.files(uid))
}

func TestAReadOnlyDiskTakesNoTurnAndLosesNone(t *testing.T) {
	w := mounted(t, "size=1m")
	first, second := w.create(shop("a")), w.finish(w.create(shop("b")))
	require.NoError(t, unix.Mount("", w.dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""))
	_, _, err := w.Create(shop("c"))
	require.ErrorIs(t, err, unix.EROFS)
	require.ErrorContains(t, err, "keep a turn of session shop: state directory "+w.dir+" is on a read-only file system, make it writable: ")
	_, err = w.Update(first.Cancel(w.clock()))
	require.ErrorIs(t, err, unix.EROFS)
	require.ErrorIs(t, w.Forget("shop-2"), unix.EROFS)
	require.ErrorIs(t, w.ForgetSession(uid), unix.EROFS)
	w.limits = Limits{Bytes: 1}
	require.ErrorIs(t, w.Tidy(), unix.EROFS)
	_, _, err = w.Create(shop("c"))
	require.ErrorIs(t, err, ErrFull)
	require.Equal(t, []Turn{first, second}, w.All())
	require.True(t, w.hasPrompt("shop-2"))
	require.EqualValues(t, 2, w.kept)
	w.Store = NewStore(w.dir, w.clock, func() Limits { return w.limits })
	problems, err := w.Load()
	require.NoError(t, err)
	require.Empty(t, problems)
	require.Equal(t, []Turn{first, second}, w.All())
}

// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package durable

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"math/bits"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

type thing struct {
	Name string `json:"name"`
	N    int    `json:"n"`
}

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	out := []string{}
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

func TestAFileIsReadAsItWasWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "thing.json")
	for n := range 3 {
		require.NoError(t, Write(path, 4, thing{"a <&> \u2028", n}))
		var got thing
		require.NoError(t, Read(path, 4, &got))
		require.Equal(t, thing{"a <&> \u2028", n}, got)
	}
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o600), info.Mode().Perm())
	require.Equal(t, []string{"thing.json"}, names(t, filepath.Dir(path)), "no temporary file is left")
}

func TestAFileGetsTheModeThatWasAskedFor(t *testing.T) {
	path := filepath.Join(t.TempDir(), "plain")
	require.NoError(t, os.WriteFile(path, []byte("old"), 0o600))
	require.NoError(t, WriteFile(path, []byte("new"), 0o640))
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o640), info.Mode().Perm())
}

// A reader that has the old file open, or a second name of it, keeps the old
// content.
func TestTheOldContentIsReplacedAndNotOverwritten(t *testing.T) {
	dir := t.TempDir()
	path, other := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	require.NoError(t, WriteFile(path, []byte("old"), 0o600))
	require.NoError(t, os.Link(path, other))
	require.NoError(t, WriteFile(path, []byte("new"), 0o600))
	for path, want := range map[string]string{path: "new", other: "old"} {
		got, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, want, string(got))
	}
}

func TestAWriteThatFailsChangesNothing(t *testing.T) {
	t.Run("the directory is missing", func(t *testing.T) {
		require.ErrorIs(t, WriteFile(filepath.Join(t.TempDir(), "no", "a"), nil, 0o600), fs.ErrNotExist)
	})
	t.Run("the path is a directory", func(t *testing.T) {
		dir := t.TempDir()
		require.NoError(t, os.MkdirAll(filepath.Join(dir, "a", "b"), 0o700))
		require.Error(t, WriteFile(filepath.Join(dir, "a"), nil, 0o600))
		require.Equal(t, []string{"a"}, names(t, dir))
	})
	t.Run("the value has no encoding", func(t *testing.T) {
		dir := t.TempDir()
		path := filepath.Join(dir, "a")
		require.NoError(t, Write(path, 1, thing{"a", 1}))
		require.Error(t, Write(path, 1, func() {}))
		var got thing
		require.NoError(t, Read(path, 1, &got))
		require.Equal(t, []string{"a"}, names(t, dir))
	})
}

func TestAMissingDirectoryCannotBeSynced(t *testing.T) {
	require.ErrorIs(t, SyncDir(filepath.Join(t.TempDir(), "no")), fs.ErrNotExist)
	require.NoError(t, SyncDir(t.TempDir()))
}

// A damaged file is told from a missing one and from one of a newer version.
func TestAFileThatCannotBeUsedSaysWhy(t *testing.T) {
	good, err := Encode(1, thing{"a", 1})
	require.NoError(t, err)
	newer, err := Encode(2, map[string]string{"unheard": "of"})
	require.NoError(t, err)
	shape, err := Encode(1, "text")
	require.NoError(t, err)
	for name, c := range map[string]struct {
		data []byte
		want error
	}{
		"empty":                {nil, ErrCorrupt},
		"blank":                {[]byte(" \n\t\n"), ErrCorrupt},
		"NULs":                 {make([]byte, 512), ErrCorrupt},
		"truncated":            {good[:len(good)-4], ErrCorrupt},
		"followed by more":     {append(bytes.Clone(good), '{'), ErrCorrupt},
		"of another shape":     {shape, ErrCorrupt},
		"with no data":         {[]byte(`{"version":1,"checksum":""}`), ErrCorrupt},
		"with another version": {bytes.Replace(good, []byte(`"version":1`), []byte(`"version":2`), 1), ErrCorrupt},
		"of a newer version":   {newer, ErrNewer},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "thing.json")
			require.NoError(t, os.WriteFile(path, c.data, 0o600))
			var got thing
			err := Read(path, 1, &got)
			require.ErrorIs(t, err, c.want)
			require.ErrorContains(t, err, "thing.json")
			matched := 0
			for _, known := range []error{ErrCorrupt, ErrNewer, fs.ErrNotExist} {
				if errors.Is(err, known) {
					matched++
				}
			}
			require.Equal(t, 1, matched, "one reason and no other: %v", err)
			after, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Equal(t, string(c.data), string(after), "reading changes nothing")
		})
	}
	var got thing
	require.ErrorIs(t, Read(filepath.Join(t.TempDir(), "no"), 1, &got), fs.ErrNotExist)
}

func TestANewerVersionIsNamed(t *testing.T) {
	data, err := Encode(7, thing{})
	require.NoError(t, err)
	require.ErrorContains(t, Decode(data, 3, &thing{}), "version 7, this one reads up to 3")
}

// Every single bit matters, or does not change what is read.
func TestAFlippedBitIsNeverReadAsSomethingElse(t *testing.T) {
	good, err := Encode(1, thing{"name", 12345})
	require.NoError(t, err)
	detected := 0
	for i := range len(good) * 8 {
		bad := bytes.Clone(good)
		bad[i/8] ^= 1 << (i % 8)
		require.Equal(t, 1, bits.OnesCount8(bad[i/8]^good[i/8]))
		var got thing
		if err := Decode(bad, 1, &got); err == nil {
			require.Equal(t, thing{"name", 12345}, got, "bit %d: %s", i, bad)
			continue
		}
		require.ErrorIs(t, Decode(bad, 1, &thing{}), ErrCorrupt, "bit %d is not a newer version: %s", i, bad)
		detected++
	}
	// Of the names in the envelope alone the case of a letter does not matter.
	letters := strings.Count("versionchecksumdata", "") - 1
	require.GreaterOrEqual(t, detected, len(good)*8-letters-8)
}

func TestEveryTruncationIsFound(t *testing.T) {
	good, err := Encode(1, thing{"name", 12345})
	require.NoError(t, err)
	for n := range len(good) - 1 { // the newline at the end is for people
		require.ErrorIs(t, Decode(good[:n], 1, &thing{}), ErrCorrupt, "%d bytes", n)
	}
	require.NoError(t, Decode(good[:len(good)-1], 1, &thing{}))
}

// The envelope is for every version, and for people who look at a file.
func TestTheEnvelopeIsOneLineOfJSON(t *testing.T) {
	data, err := Encode(3, thing{"a", 1})
	require.NoError(t, err)
	require.Equal(t, 1, bytes.Count(data, []byte("\n")))
	var env map[string]any
	require.NoError(t, json.Unmarshal(data, &env))
	require.InDelta(t, 3, env["version"], 0)
	require.Equal(t, map[string]any{"name": "a", "n": 1.0}, env["data"])
	require.Contains(t, env["checksum"], "sha256:")
}

func TestWhatCrashedWritesLeftIsSweptAndNothingElse(t *testing.T) {
	dir := t.TempDir()
	old, young := filepath.Join(dir, TempPrefix+"old"), filepath.Join(dir, TempPrefix+"young")
	for _, path := range []string{old, young, filepath.Join(dir, "kept")} {
		require.NoError(t, os.WriteFile(path, nil, 0o600))
	}
	long := time.Now().Add(-time.Hour)
	require.NoError(t, os.Chtimes(old, long, long))
	require.NoError(t, Sweep(dir, time.Now().Add(-time.Minute)))
	require.NoFileExists(t, old)
	require.FileExists(t, young, "somebody may be writing it")
	require.NoError(t, Sweep(dir, time.Time{}))
	require.NoFileExists(t, young)
	require.FileExists(t, filepath.Join(dir, "kept"))
	require.NoError(t, Sweep(filepath.Join(dir, "missing"), time.Time{}))
}

func TestARefillKeepsTheFileButNeverWritesIntoAnothersName(t *testing.T) {
	dir := t.TempDir()
	path, other := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	inode := func(path string) uint64 {
		info, err := os.Stat(path)
		require.NoError(t, err)
		st, ok := info.Sys().(*syscall.Stat_t)
		require.True(t, ok)
		return st.Ino
	}
	content := func(path string) string {
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		return string(data)
	}
	require.NoError(t, Refill(path, []byte("first and long"), 0o600))
	first := inode(path)
	require.NoError(t, Refill(path, []byte("second"), 0o600))
	require.Equal(t, "second", content(path))
	require.Equal(t, first, inode(path), "in place")

	require.NoError(t, os.Link(path, other))
	require.NoError(t, Refill(path, []byte("third"), 0o600))
	require.Equal(t, []string{"third", "second"}, []string{content(path), content(other)}, "the other name keeps what it had")

	require.NoError(t, os.Remove(path))
	require.NoError(t, os.Symlink(other, path))
	require.NoError(t, Refill(path, []byte("fourth"), 0o600))
	require.Equal(t, []string{"fourth", "second"}, []string{content(path), content(other)}, "a link is not followed")
}

// What was restored from a backup or made read-only by hand is replaced like any
// other file, as a rename does it. Root may write it anyway.
func TestARefillReplacesAFileThatMayNotBeWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	require.NoError(t, os.WriteFile(path, []byte("first"), 0o400))
	require.NoError(t, Refill(path, []byte("second"), 0o600))
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "second", string(data))
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.EqualValues(t, 0o600, info.Mode().Perm())
}

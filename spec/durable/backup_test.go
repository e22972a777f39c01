// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package durable

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func readFile(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(data)
}

func TestAFileOfAnOlderVersionIsKeptBeforeItIsWrittenAnew(t *testing.T) {
	b := Backup{t.TempDir()}
	path := filepath.Join(b.State, "records", "a.json")
	require.NoError(t, os.Mkdir(filepath.Dir(path), 0o700))
	require.NoError(t, Write(path, 1, thing{"old", 1}))
	old := readFile(t, path)
	require.NoError(t, b.Write(path, 3, thing{"new", 2}))
	kept := filepath.Join(b.State, "backup/1/records/a.json")
	require.Equal(t, old, readFile(t, kept))
	for _, dir := range []string{"backup", "backup/1", "backup/1/records"} {
		info, err := os.Stat(filepath.Join(b.State, dir))
		require.NoError(t, err)
		require.Equal(t, fs.FileMode(0o700), info.Mode().Perm(), dir)
	}
	var now thing
	require.NoError(t, Read(path, 3, &now))
	require.Equal(t, thing{"new", 2}, now)
	require.NoError(t, b.Write(path, 3, thing{"newer", 3}))
	require.Equal(t, []string{"1"}, names(t, filepath.Join(b.State, BackupDir)), "what is of this version is not kept")
	require.Equal(t, old, readFile(t, kept))
}

// Whoever goes back to the old muxlet and forward again keeps what the old one wrote last.
func TestTheLastOfAnOlderVersionIsKept(t *testing.T) {
	b := Backup{t.TempDir()}
	path := filepath.Join(b.State, "a.json")
	for n := range 3 {
		require.NoError(t, Write(path, 1, thing{"old", n}))
		last := readFile(t, path)
		require.NoError(t, b.Write(path, 2, thing{"new", n}))
		require.Equal(t, last, readFile(t, filepath.Join(b.State, "backup/1/a.json")))
	}
}

func TestAFileOfANewerVersionIsNotWritten(t *testing.T) {
	b := Backup{t.TempDir()}
	for name, content := range map[string]string{
		"as it is written":     encoded(t, 3, map[string]any{"novelty": true}),
		"with a new envelope":  `{"format":"other","version":3,"checksum":"blake3:00","body":[]}`,
		"with spaces in it":    "{\n  \"version\": 3,\n  \"checksum\": \"x\", \"data\": " + strings.Repeat(" ", 100) + "{}}",
		"of a far-off version": `{"version":4711,"checksum":"x","data":{}}`,
	} {
		path := filepath.Join(b.State, strings.ReplaceAll(name, " ", "-"))
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		require.ErrorIs(t, b.Write(path, 2, thing{}), ErrNewer, name)
		require.Equal(t, content, readFile(t, path), name)
	}
	require.NoDirExists(t, filepath.Join(b.State, BackupDir))
}

func TestWhatIsDamagedOrMissingIsWrittenAnew(t *testing.T) {
	b := Backup{t.TempDir()}
	for i, content := range []string{"", "{", "x", `{"version":9}`, `{"checksum":"x"}`, "\x00\x00\x00"} {
		path := filepath.Join(b.State, fmt.Sprint(i))
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		require.NoError(t, b.Write(path, 2, thing{"new", i}), content)
	}
	require.NoError(t, b.Write(filepath.Join(b.State, "missing"), 2, thing{}))
	require.NoDirExists(t, filepath.Join(b.State, BackupDir))
}

// Without the copy on disk the old bytes stay.
func TestAFileWhoseCopyCannotBeMadeIsNotWritten(t *testing.T) {
	b := Backup{t.TempDir()}
	path := filepath.Join(b.State, "a.json")
	require.NoError(t, os.WriteFile(filepath.Join(b.State, BackupDir), nil, 0o600))
	require.NoError(t, Write(path, 1, thing{"old", 1}))
	old := readFile(t, path)
	require.Error(t, b.Write(path, 2, thing{"new", 2}))
	require.Equal(t, old, readFile(t, path))
	require.Error(t, Backup{filepath.Join(b.State, "else")}.Write(path, 2, thing{}), "it is not in that state directory")
	require.Equal(t, old, readFile(t, path))
}

func TestTheCopiesHaveBounds(t *testing.T) {
	b := Backup{t.TempDir()}
	now := time.Now()
	fill := func() {
		for i := range 10 {
			path := filepath.Join(b.State, fmt.Sprintf("dir%d", i%3), fmt.Sprint(i))
			require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
			require.NoError(t, Write(path, 1, thing{strings.Repeat("x", 1000), i}))
			require.NoError(t, b.Write(path, 2, thing{}))
			at := now.Add(-time.Duration(i) * time.Hour)
			kept := filepath.Join(b.State, BackupDir, "1", fmt.Sprintf("dir%d", i%3), fmt.Sprint(i))
			require.NoError(t, os.Chtimes(kept, at, at))
		}
	}
	left := func() (kept []string) {
		err := filepath.WalkDir(filepath.Join(b.State, BackupDir), func(_ string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				kept = append(kept, d.Name())
			}
			return err
		})
		if !errors.Is(err, fs.ErrNotExist) {
			require.NoError(t, err)
		}
		return kept
	}
	require.NoError(t, b.Prune(now, 1, 1), "without any there is nothing to do")
	for _, c := range []struct {
		what   string
		before time.Time
		files  int
		size   int64
		kept   []string
	}{
		{"all are within", now.Add(-24 * time.Hour), 10, 0, []string{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"}},
		{"by age", now.Add(-90 * time.Minute), 10, 0, []string{"0", "1"}},
		{"by number", now.Add(-24 * time.Hour), 3, 0, []string{"0", "1", "2"}},
		{"by size", now.Add(-24 * time.Hour), 10, 4500, []string{"0", "1", "2", "3"}},
		{"none", now.Add(time.Hour), 10, 0, nil},
	} {
		fill()
		require.NoError(t, b.Prune(c.before, c.files, c.size))
		require.ElementsMatch(t, c.kept, left(), c.what)
	}
	require.NoDirExists(t, filepath.Join(b.State, BackupDir), "directories that are empty go")
}

func encoded(t *testing.T, version int, v any) string {
	t.Helper()
	data, err := Encode(version, v)
	require.NoError(t, err)
	return string(data)
}

// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec/durable"
)

func saved(incarnation int64, lines ...string) Saved {
	return Saved{
		At:     time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC),
		Screen: observe.Screen{Pane: "%1", Incarnation: incarnation, Attempt: "u", Dead: true, Columns: 80, Lines: lines, Visible: len(lines)},
	}
}

func TestASavedScreenIsReadAgainByItsOwnerOnly(t *testing.T) {
	state := t.TempDir()
	s := NewStore(state)
	_, err := s.Load("u1")
	require.ErrorIs(t, err, fs.ErrNotExist)

	require.NoError(t, s.Save("u1", saved(1, "a")))
	require.NoError(t, s.Save("u1", saved(2, "<b>", "", "\x9b31m")))
	got, err := s.Load("u1")
	require.NoError(t, err)
	assert.Equal(t, saved(2, "<b>", "", "\ufffd31m"), got, "the one that ended last")

	info, err := os.Stat(filepath.Join(state, "screens"))
	require.NoError(t, err)
	assert.Equal(t, fs.FileMode(0o700), info.Mode().Perm())
	entries, err := os.ReadDir(filepath.Join(state, "screens"))
	require.NoError(t, err)
	require.Len(t, entries, 1, "one file per session")
	info, err = entries[0].Info()
	require.NoError(t, err)
	assert.Equal(t, fs.FileMode(0o600), info.Mode())
}

func TestASavedScreenIsBounded(t *testing.T) {
	numbered := func(n, width int) (lines []string) {
		for i := range n {
			lines = append(lines, fmt.Sprintf("%0*d", width, i))
		}
		return lines
	}
	for name, c := range map[string]struct {
		lines []string
		kept  int
	}{
		"nothing":        {nil, 0},
		"few lines":      {numbered(3, 10), 3},
		"many lines":     {numbered(5000, 10), observe.KeptLines},
		"long lines":     {numbered(1000, 1023), MaxBytes / 1024},
		"one line alone": {[]string{strings.Repeat("é", MaxBytes)}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := NewStore(t.TempDir())
			require.NoError(t, s.Save("u", saved(1, c.lines...)))
			got, err := s.Load("u")
			require.NoError(t, err)
			require.Len(t, got.Lines, c.kept)
			info, err := os.Stat(s.path("u"))
			require.NoError(t, err)
			require.Less(t, info.Size(), int64(MaxBytes+10_000))
			if c.kept > 0 {
				last := got.Lines[c.kept-1]
				require.True(t, strings.HasSuffix(c.lines[len(c.lines)-1], last), "the end is kept")
				require.True(t, utf8.ValidString(last))
			}
		})
	}
}

func TestADamagedScreenIsNone(t *testing.T) {
	s := NewStore(t.TempDir())
	require.NoError(t, s.Save("u", saved(1, "a")))
	require.NoError(t, os.Truncate(s.path("u"), 40))
	_, err := s.Load("u")
	require.ErrorIs(t, err, durable.ErrCorrupt)
	require.NoError(t, s.Save("u", saved(2, "b")))
	_, err = s.Load("u")
	require.NoError(t, err)
}

func TestScreensOfSessionsThatAreNotKnownAreRemoved(t *testing.T) {
	s := NewStore(t.TempDir())
	known := func(uid string) bool { return uid == "known" }
	require.NoError(t, s.Prune(known, known, 0), "before the first is saved")
	for _, uid := range []string{"known", "gone"} {
		require.NoError(t, s.Save(uid, saved(1, "a")))
	}
	require.NoError(t, os.WriteFile(filepath.Join(s.dir, durable.TempPrefix+"x"), nil, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(s.dir, "notes.txt"), nil, 0o600))
	require.NoError(t, s.Prune(known, known, 0))
	entries, err := os.ReadDir(s.dir)
	require.NoError(t, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	assert.Equal(t, []string{"known.json", "notes.txt"}, names)
}

// Those of sessions that were removed go first, and the newest of the others stay.
func TestTheSizeOfAllScreensIsBounded(t *testing.T) {
	s := NewStore(t.TempDir())
	all := func(string) bool { return true }
	for i, uid := range []string{"old", "gone", "young", "removed"} {
		require.NoError(t, s.Save(uid, saved(1, strings.Repeat("x", 10<<10))))
		at := time.Date(2026, 3, 1, 12, i, 0, 0, time.UTC)
		require.NoError(t, os.Chtimes(s.path(uid), at, at))
	}
	current := func(uid string) bool { return uid == "old" || uid == "young" }
	for _, c := range []struct {
		limit int64
		left  []string
	}{
		{0, []string{"gone.json", "old.json", "removed.json", "young.json"}},
		{35 << 10, []string{"old.json", "removed.json", "young.json"}},
		{25 << 10, []string{"old.json", "young.json"}},
		{15 << 10, []string{"young.json"}},
	} {
		require.NoError(t, s.Prune(all, current, c.limit))
		left, err := filepath.Glob(filepath.Join(s.dir, "*"))
		require.NoError(t, err)
		for i := range left {
			left[i] = filepath.Base(left[i])
		}
		assert.Equal(t, c.left, left, c.limit)
	}
}

func TestAScreenThatCannotBeSavedLeavesTheOldOne(t *testing.T) {
	s := NewStore(t.TempDir())
	require.NoError(t, s.Save("u", saved(1, "a")))
	// As on a full disk, the new content cannot be written.
	require.NoError(t, os.Mkdir(filepath.Join(s.dir, durable.TempPrefix+"u"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(s.dir, durable.TempPrefix+"u", "x"), nil, 0o600))
	require.ErrorContains(t, s.Save("u", saved(2, "b")), "save screen")
	got, err := s.Load("u")
	require.NoError(t, err)
	assert.Equal(t, []string{"a"}, got.Lines)
}

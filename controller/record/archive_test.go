// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package record

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/spec/durable"
)

func TestTheArchiveOfAnEarlierDaemonIsSearched(t *testing.T) {
	s := newStore(t)
	archivedAt(t, s, Record{UID: "u1", Name: "shop"}, now)
	got, ok := NewStore(s.state).Archived("shop", now)
	require.True(t, ok)
	require.Equal(t, "u1", got.UID)
}

// A uid is archived again and again, under whatever name.
func TestARecordThatComesAndGoesIsFoundUnderItsLastName(t *testing.T) {
	s := newStore(t)
	for n := range 3 {
		_, ok := s.Archived("shop", now)
		require.False(t, ok)
		archivedAt(t, s, Record{UID: "u1", Name: "shop", Generation: int64(n)}, now)
		got, ok := s.Archived("shop", now)
		require.True(t, ok)
		require.EqualValues(t, n, got.Generation)
		require.NoError(t, s.Unarchive("u1"))
	}
	archivedAt(t, s, Record{UID: "u1", Name: "shop"}, now)
	archivedAt(t, s, Record{UID: "u1", Name: "other"}, now)
	_, ok := s.Archived("shop", now)
	require.False(t, ok)
	_, ok = s.Archived("other", now)
	require.True(t, ok)
}

func TestWhatWasPrunedIsNotFound(t *testing.T) {
	s := newStore(t)
	archivedAt(t, s, Record{UID: "u1", Name: "shop"}, now)
	_, ok := s.Archived("shop", now)
	require.True(t, ok)
	require.NoError(t, s.Prune(now.Add(time.Second), 0))
	_, ok = s.Archived("shop", time.Time{})
	require.False(t, ok)
	require.Empty(t, s.names)
	require.Empty(t, s.archived)
}

// The newest are kept, however many come within the time.
func TestTheNumberOfFilesThatAreKeptIsBounded(t *testing.T) {
	s := newStore(t)
	for n := range maxQuarantined + 3 {
		path := filepath.Join(s.quarantine(), fmt.Sprintf("u%03d.json", n))
		require.NoError(t, os.WriteFile(path, nil, 0o600))
		at := now.Add(time.Duration(n) * time.Second)
		require.NoError(t, os.Chtimes(path, at, at))
	}
	require.NoError(t, s.Prune(now, 0))
	left := s.files(t, "quarantine")
	require.Len(t, left, maxQuarantined)
	require.Equal(t, "u003.json", left[0])
}

// Who adds and removes sessions with long prompts by a program fills no disk.
func TestTheSizeOfTheArchiveAndOfTheQuarantineIsBounded(t *testing.T) {
	s := newStore(t)
	for n := range 10 {
		r := Record{UID: fmt.Sprintf("u%d", n), Name: "shop", Held: strings.Repeat("x", 10<<10)}
		archivedAt(t, s, r, now.Add(time.Duration(n)*time.Second))
		path := filepath.Join(s.quarantine(), r.UID+".json")
		require.NoError(t, os.WriteFile(path, nil, 0o600))
		require.NoError(t, os.Truncate(path, maxQuarantinedBytes/4))
		at := now.Add(time.Duration(n) * time.Second)
		require.NoError(t, os.Chtimes(path, at, at))
	}
	require.NoError(t, s.Prune(now, 45<<10))
	require.Equal(t, []string{"u6.json", "u7.json", "u8.json", "u9.json"}, s.files(t, "archive"))
	require.Equal(t, []string{"u6.json", "u7.json", "u8.json", "u9.json"}, s.files(t, "quarantine"))
	r, ok := s.Archived("shop", time.Time{})
	require.True(t, ok)
	require.Equal(t, "u9", r.UID, "the last one is known")
}

func TestTheQuarantineIsPrunedByAge(t *testing.T) {
	s := newStore(t)
	for name, at := range map[string]time.Time{"old.json": now.Add(-time.Second), "old.json.prev": now.Add(-time.Hour), "new.json": now} {
		path := filepath.Join(s.quarantine(), name)
		require.NoError(t, os.WriteFile(path, []byte("{"), 0o600))
		require.NoError(t, os.Chtimes(path, at, at))
	}
	require.NoError(t, s.Prune(now, 0))
	require.Equal(t, []string{"new.json"}, s.files(t, "quarantine"))
}

// M1: the files of the daemon itself are written in the same way.
func TestWhatACrashLeavesInTheStateDirectoryIsClearedAway(t *testing.T) {
	s := newStore(t)
	for _, name := range []string{durable.TempPrefix + "instance-1", "instance"} {
		require.NoError(t, os.WriteFile(filepath.Join(s.state, name), []byte("{"), 0o600))
	}
	require.NoError(t, s.Prepare())
	require.NoFileExists(t, filepath.Join(s.state, durable.TempPrefix+"instance-1"))
	require.FileExists(t, filepath.Join(s.state, "instance"))
}

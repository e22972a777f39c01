// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package record

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/spec/durable"
)

func newStore(t *testing.T) *Store {
	t.Helper()
	s := NewStore(t.TempDir())
	require.NoError(t, s.Prepare())
	return s
}

func (s *Store) files(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(s.state, dir))
	require.NoError(t, err)
	names := []string{}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func load(t *testing.T, s *Store) Loaded {
	t.Helper()
	loaded, err := s.Load()
	require.NoError(t, err)
	return loaded
}

func TestARecordIsReadAsItWasSaved(t *testing.T) {
	s := newStore(t)
	require.NoError(t, s.Save(full()))
	got, err := s.Read(uid)
	require.NoError(t, err)
	require.Equal(t, full(), got)
	require.Equal(t, Loaded{Records: []Record{full()}}, load(t, NewStore(s.state)))
}

func TestRecordsAreLoadedByName(t *testing.T) {
	s := newStore(t)
	for uid, name := range map[string]string{"u1": "c", "u2": "a", "u3": "b"} {
		require.NoError(t, s.Save(Record{UID: uid, Name: name}))
	}
	var names []string
	for _, r := range load(t, s).Records {
		names = append(names, r.Name)
	}
	require.Equal(t, []string{"a", "b", "c"}, names)
}

func TestNothingIsLoadedFromNothing(t *testing.T) {
	require.Equal(t, Loaded{}, load(t, newStore(t)))
	_, err := NewStore(filepath.Join(t.TempDir(), "missing")).Load()
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = newStore(t).Read(uid)
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestFilesArePrivate(t *testing.T) {
	s := newStore(t)
	require.NoError(t, s.Save(small(1)))
	for path, want := range map[string]os.FileMode{s.records(): 0o700, s.archive(): 0o700, s.quarantine(): 0o700, s.path(uid): 0o600} {
		info, err := os.Stat(path)
		require.NoError(t, err)
		require.Equal(t, want, info.Mode().Perm(), path)
	}
}

func TestThePreviousGenerationIsKept(t *testing.T) {
	s := newStore(t)
	for gen := range int64(3) {
		require.NoError(t, s.Save(small(gen)))
	}
	require.Equal(t, []string{uid + ".json", uid + ".json.prev"}, s.files(t, "records"))
	previous, err := readRecord(s.previous(uid), uid)
	require.NoError(t, err)
	require.Equal(t, small(1), previous)
}

// damages are the ways in which a file can be broken.
var damages = map[string]func(good []byte) []byte{
	"truncated to nothing":    func([]byte) []byte { return nil },
	"truncated in the middle": func(good []byte) []byte { return good[:len(good)/2] },
	"truncated by its end":    func(good []byte) []byte { return good[:len(good)-3] },
	"blank":                   func([]byte) []byte { return []byte(" \n") },
	"NULs":                    func(good []byte) []byte { return make([]byte, len(good)) },
	"NULs at the end":         func(good []byte) []byte { return append(good[:len(good)/2:len(good)/2], make([]byte, len(good)/2)...) },
	"another file's content":  func([]byte) []byte { return []byte("apiVersion: v1\n") },
	"another JSON":            func([]byte) []byte { return []byte(`{"version":1}`) },
	"a bit in the data": func(good []byte) []byte {
		out := bytes.Clone(good)
		out[bytes.Index(out, []byte("shop"))] ^= 1
		return out
	},
	"a bit in the version": func(good []byte) []byte {
		return bytes.Replace(good, fmt.Appendf(nil, `"version":%d`, Version), []byte(`"version":9`), 1)
	},
	"a bit in the checksum": func(good []byte) []byte {
		out := bytes.Clone(good)
		out[bytes.Index(out, []byte("sha256:"))+10] ^= 1
		return out
	},
	"another session's record": func([]byte) []byte { return must(durable.Encode(Version, Record{UID: "other", Name: "other"})) },
	"data of another shape":    func([]byte) []byte { return must(durable.Encode(Version, []string{"x"})) },
}

func must(data []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return data
}

func damage(t *testing.T, path string, how func([]byte) []byte) []byte {
	t.Helper()
	good, err := os.ReadFile(path)
	require.NoError(t, err)
	bad := how(good)
	require.NoError(t, os.WriteFile(path, bad, 0o600))
	return bad
}

func TestADamagedRecordIsReplacedByItsPreviousGeneration(t *testing.T) {
	for name, how := range damages {
		t.Run(name, func(t *testing.T) {
			s := newStore(t)
			require.NoError(t, s.Save(small(1)))
			require.NoError(t, s.Save(small(2)))
			bad := damage(t, s.path(uid), how)
			_, err := s.Read(uid)
			require.ErrorIs(t, err, durable.ErrCorrupt)

			require.Equal(t, Loaded{Records: []Record{small(1)}, Recovered: []string{uid}}, load(t, s))
			require.Equal(t, []string{uid + ".json.prev"}, s.files(t, "records"))
			require.Equal(t, []string{uid + ".json"}, s.files(t, "quarantine"))
			kept, err := os.ReadFile(filepath.Join(s.quarantine(), uid+".json"))
			require.NoError(t, err)
			require.Equal(t, string(bad), string(kept), "the damaged file is kept as it was")

			require.Equal(t, []Record{small(1)}, load(t, s).Records, "and once more, before anything was saved")
			require.NoError(t, s.Save(small(3)))
			require.Equal(t, Loaded{Records: []Record{small(3)}}, load(t, s))
		})
	}
}

func TestARecordIsBadWhenBothGenerationsAre(t *testing.T) {
	for name, how := range damages {
		t.Run(name, func(t *testing.T) {
			s := newStore(t)
			require.NoError(t, s.Save(small(1)))
			require.NoError(t, s.Save(small(2)))
			damage(t, s.path(uid), how)
			damage(t, s.previous(uid), how)
			require.NoError(t, s.Save(Record{UID: "good", Name: "good"}))

			loaded := load(t, s)
			require.Equal(t, []Record{{UID: "good", Name: "good"}}, loaded.Records, "one bad record blocks no other")
			require.Empty(t, loaded.Recovered)
			require.Len(t, loaded.Bad, 1)
			require.Equal(t, uid, loaded.Bad[0].UID)
			require.ErrorIs(t, loaded.Bad[0].Err, durable.ErrCorrupt)
			require.NotErrorIs(t, loaded.Bad[0].Err, durable.ErrNewer)
			require.Equal(t, []string{uid + ".json", uid + ".json.prev"}, s.files(t, "quarantine"))
			require.Equal(t, []string{"good.json"}, s.files(t, "records"))
			require.Empty(t, load(t, s).Bad, "it is told once")
		})
	}
}

func TestAMissingRecordIsReplacedByItsPreviousGeneration(t *testing.T) {
	s := newStore(t)
	require.NoError(t, s.Save(small(1)))
	require.NoError(t, s.Save(small(2)))
	require.NoError(t, os.Remove(s.path(uid)))
	require.Equal(t, Loaded{Records: []Record{small(1)}, Recovered: []string{uid}}, load(t, s))
	require.Empty(t, s.files(t, "quarantine"))
}

func TestTheFirstGenerationHasNothingBeforeIt(t *testing.T) {
	s := newStore(t)
	require.NoError(t, s.Save(small(1)))
	damage(t, s.path(uid), damages["NULs"])
	require.Len(t, load(t, s).Bad, 1)
}

// The name in a damaged file tells a person which session it was, where it can.
func TestABadRecordTellsItsNameWhereItCan(t *testing.T) {
	s := newStore(t)
	require.NoError(t, s.Save(small(1)))
	require.NoError(t, s.Save(small(2)))
	damage(t, s.path(uid), damages["truncated in the middle"])
	damage(t, s.previous(uid), damages["a bit in the checksum"])
	require.Equal(t, "shop", load(t, s).Bad[0].Name)
}

// A record of a newer version is refused, and left as it is byte for byte.
func TestANewerRecordIsNeverTouched(t *testing.T) {
	newer := must(durable.Encode(Version+1, map[string]any{"uid": uid, "name": "shop", "novelty": true}))
	for _, c := range []struct {
		name              string
		current, previous []byte
	}{
		{"both generations", newer, newer},
		{"the current one", newer, must(durable.Encode(Version, small(1)))},
		{"the current one, and no other", newer, nil},
		{"the previous one beside a damaged one", []byte("{"), newer},
		{"the previous one alone", nil, newer},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStore(t)
			put := map[string][]byte{}
			for path, data := range map[string][]byte{s.path(uid): c.current, s.previous(uid): c.previous} {
				if data != nil {
					put[path] = data
					require.NoError(t, os.WriteFile(path, data, 0o600))
				}
			}
			for range 2 {
				loaded := load(t, s)
				require.Empty(t, loaded.Records)
				require.Len(t, loaded.Bad, 1)
				require.Equal(t, "shop", loaded.Bad[0].Name)
				require.ErrorIs(t, loaded.Bad[0].Err, durable.ErrNewer)
			}
			require.ErrorIs(t, s.Save(small(7)), durable.ErrNewer)
			for path, want := range put {
				got, err := os.ReadFile(path)
				require.NoError(t, err)
				require.Equal(t, string(want), string(got))
			}
			require.Len(t, s.files(t, "records"), len(put))
			require.Empty(t, s.files(t, "quarantine"))
		})
	}
}

// What cannot be read is neither damaged nor missing: it is left as it is, is not
// written over, and stops no other session.
func TestAnUnreadableRecordIsNotTakenForADamagedOne(t *testing.T) {
	for _, path := range []func(*Store) string{
		func(s *Store) string { return s.path(uid) },
		func(s *Store) string { return s.previous(uid) },
	} {
		s := newStore(t)
		require.NoError(t, os.Mkdir(path(s), 0o700)) // reading it is EISDIR, for root as well
		other := small(1)
		other.UID = "33333333-3333-4333-8333-333333333333"
		require.NoError(t, s.Save(other))
		loaded := load(t, s)
		require.Len(t, loaded.Records, 1)
		require.Len(t, loaded.Bad, 1)
		require.Equal(t, uid, loaded.Bad[0].UID)
		require.NotErrorIs(t, loaded.Bad[0].Err, durable.ErrCorrupt)
		require.Error(t, s.Save(small(2)))
		require.Len(t, s.files(t, "records"), 2)
		require.Empty(t, s.files(t, "quarantine"))
	}
}

func TestForeignFilesAreNoRecords(t *testing.T) {
	s := newStore(t)
	for _, name := range []string{"README", ".hidden.json", "notes.txt", durable.TempPrefix + uid + ".link"} {
		require.NoError(t, os.WriteFile(filepath.Join(s.records(), name), []byte("x"), 0o600))
	}
	require.Equal(t, Loaded{}, load(t, s))
	require.Len(t, s.files(t, "records"), 4)
}

// M1: what a crash leaves is in nobody's way, and does not pile up.
func TestWhatACrashLeavesIsClearedAway(t *testing.T) {
	s := newStore(t)
	require.NoError(t, s.Save(small(1)))
	require.NoError(t, os.WriteFile(filepath.Join(s.records(), durable.TempPrefix+uid+".json-1"), []byte("{"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(s.archive(), durable.TempPrefix+uid+".json-1"), []byte("{"), 0o600))
	require.NoError(t, os.Link(s.path(uid), filepath.Join(s.records(), durable.TempPrefix+uid+".link")))
	require.NoError(t, s.Prepare())
	require.Equal(t, []string{uid + ".json"}, s.files(t, "records"))
	require.Empty(t, s.files(t, "archive"))
	require.NoError(t, s.Save(small(2)))
	require.Equal(t, []string{uid + ".json", uid + ".json.prev"}, s.files(t, "records"))
	require.Equal(t, []Record{small(2)}, load(t, s).Records)
}

func TestAStoreCannotBePreparedInAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	s := NewStore(path)
	require.Error(t, s.Prepare())
	require.Error(t, s.Save(small(1)))
}

func archivedAt(t *testing.T, s *Store, r Record, at time.Time) {
	t.Helper()
	require.NoError(t, s.Archive(r))
	require.NoError(t, os.Chtimes(filepath.Join(s.archive(), r.UID+".json"), at, at))
}

func TestAnArchivedRecordIsFoundByName(t *testing.T) {
	s := newStore(t)
	require.NoError(t, s.Save(small(1)))
	require.NoError(t, s.Save(small(2)))
	archivedAt(t, s, small(2), now)
	require.Empty(t, s.files(t, "records"), "both generations are out of the way")
	require.Equal(t, Loaded{}, load(t, s))

	got, ok := s.Archived("shop", now)
	require.True(t, ok)
	require.Equal(t, small(2), got)
	_, ok = s.Archived("shop", now.Add(time.Second))
	require.False(t, ok, "it was archived too long ago")
	_, ok = s.Archived("other", now)
	require.False(t, ok)

	require.NoError(t, s.Unarchive(uid))
	require.NoError(t, s.Unarchive(uid), "once more is no error")
	_, ok = s.Archived("shop", now)
	require.False(t, ok)
}

func TestTheNewestOfSeveralArchivedRecordsIsFound(t *testing.T) {
	s := newStore(t)
	for n, uid := range []string{"u2", "u9", "u1"} {
		archivedAt(t, s, Record{UID: uid, Name: "shop", Generation: int64(n)}, now.Add([]time.Duration{1, 3, 2}[n]*time.Hour))
	}
	archivedAt(t, s, Record{UID: "u5", Name: "other"}, now.Add(9*time.Hour))
	got, ok := s.Archived("shop", now)
	require.True(t, ok)
	require.Equal(t, "u9", got.UID)
}

func TestADamagedArchivedRecordIsPassedOver(t *testing.T) {
	s := newStore(t)
	archivedAt(t, s, Record{UID: "u1", Name: "shop"}, now)
	archivedAt(t, s, Record{UID: "u2", Name: "shop"}, now.Add(time.Hour))
	require.NoError(t, os.WriteFile(filepath.Join(s.archive(), "u2.json"), []byte("{"), 0o600))
	got, ok := s.Archived("shop", now)
	require.True(t, ok)
	require.Equal(t, "u1", got.UID)
}

func TestTheArchiveIsPrunedByAge(t *testing.T) {
	s := newStore(t)
	archivedAt(t, s, Record{UID: "old", Name: "a"}, now.Add(-time.Second))
	archivedAt(t, s, Record{UID: "new", Name: "b"}, now)
	require.NoError(t, os.WriteFile(filepath.Join(s.archive(), "README"), nil, 0o600))
	require.NoError(t, os.Chtimes(filepath.Join(s.archive(), "README"), now.Add(-time.Hour), now.Add(-time.Hour)))
	require.NoError(t, s.Prune(now, 0))
	require.Equal(t, []string{"README", "new.json"}, s.files(t, "archive"))
	require.NoError(t, NewStore(filepath.Join(s.state, "missing")).Prune(now, 0))
}

// A save that was interrupted between its two names leaves one file with both: the
// next one must not write into it.
func TestASaveDoesNotWriteIntoTheCurrentGeneration(t *testing.T) {
	s := newStore(t)
	require.NoError(t, s.Save(generation(1)))
	require.NoError(t, s.Save(generation(2)))
	require.NoError(t, os.Remove(s.previous(uid)))
	require.NoError(t, os.Link(s.path(uid), s.previous(uid)))
	f, err := os.Open(s.path(uid))
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	before, err := os.ReadFile(s.path(uid))
	require.NoError(t, err)
	require.NoError(t, s.Save(generation(3)))
	held, err := io.ReadAll(f)
	require.NoError(t, err)
	require.Equal(t, string(before), string(held))
	previous, err := readRecord(s.previous(uid), uid)
	require.NoError(t, err)
	require.Equal(t, generation(2), previous)
}

// Another process reads while this one saves, again and again.
func TestAReaderNeverSeesADamagedRecord(t *testing.T) {
	s := newStore(t)
	require.NoError(t, s.Save(generation(1)))
	done := make(chan struct{})
	var saver sync.WaitGroup
	saver.Go(func() {
		defer close(done)
		for n := range 200 {
			assert.NoError(t, s.Save(generation(int64(n))))
		}
	})
	for reading := true; reading; {
		_, err := s.Read(uid)
		require.NoError(t, err)
		select {
		case <-done:
			reading = false
		default:
		}
	}
	saver.Wait()
}

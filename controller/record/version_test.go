// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package record

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/spec"
	"github.com/muxlet/muxlet/spec/durable"
	"github.com/muxlet/muxlet/spec/durable/durabletest"
)

// givenUp are fields of old records that nothing reads any more. initialSent was true once
// the initial prompt had become a turn; its opposite, initialDue, is what counts now, and
// is false for a client that was started before.
var givenUp = []string{"initialSent"}

// Record files that were ever written stay readable, and nothing that they say
// gets lost: each version has its golden files, written by the muxlet of the commit in
// their names, which are the first and the last of each version and each shape between.
func TestTheGoldenRecordsAreRead(t *testing.T) {
	for version := 1; version <= Version; version++ {
		golden, err := filepath.Glob(fmt.Sprintf("testdata/v%d*.json", version))
		require.NoError(t, err)
		require.NotEmpty(t, golden, "version %d has no golden file", version)
		for _, file := range golden {
			s := newStore(t)
			data, err := os.ReadFile(file)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(s.path(uid), data, 0o600))
			loaded := load(t, s)
			require.Empty(t, loaded.Bad, file)
			var before, after any
			require.NoError(t, durable.Decode(data, Version, &before))
			without(before, givenUp)
			require.NoError(t, json.Unmarshal(must(json.Marshal(loaded.Records[0])), &after))
			durabletest.Within(t, file, before, after)
		}
	}
}

// without leaves fields out of what was decoded, at any depth.
func without(v any, fields []string) {
	switch v := v.(type) {
	case map[string]any:
		for field, inner := range v {
			if slices.Contains(fields, field) {
				delete(v, field)
				continue
			}
			without(inner, fields)
		}
	case []any:
		for _, inner := range v {
			without(inner, fields)
		}
	}
}

// The muxlet that wrote a record finds its bytes again, should it be put back.
func TestARecordOfAnOlderVersionIsKeptBeforeItIsSavedInThisOne(t *testing.T) {
	data, err := os.ReadFile("testdata/v1.json")
	require.NoError(t, err)
	for name, c := range map[string]struct {
		file string
		do   func(s *Store, r Record) error
	}{
		"by a save":                      {uid + ".json", func(s *Store, r Record) error { return s.Save(r) }},
		"by an archiving":                {uid + ".json", func(s *Store, r Record) error { return s.Archive(r) }},
		"which is the one before it":     {uid + ".json.prev", func(s *Store, r Record) error { return s.Save(r) }},
		"by two saves, though but once":  {uid + ".json", func(s *Store, r Record) error { return errors.Join(s.Save(r), s.Save(r), s.Save(r)) }},
		"which is the one of an archive": {"../archive/" + uid + ".json", func(s *Store, r Record) error { return errors.Join(s.Save(r), s.Unarchive(r.UID)) }},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore(t)
			require.NoError(t, os.WriteFile(filepath.Join(s.records(), c.file), data, 0o600))
			loaded := load(t, s)
			r, archived := s.Archived("shop", time.Time{})
			if !archived {
				r = loaded.Records[0]
			}
			require.NoError(t, c.do(s, r))
			kept, err := os.ReadFile(filepath.Join(s.state, "backup/1/records", c.file))
			require.NoError(t, err)
			require.Equal(t, string(data), string(kept))
			var found int
			require.NoError(t, filepath.WalkDir(filepath.Join(s.state, "backup"), func(_ string, d fs.DirEntry, err error) error {
				if err == nil && !d.IsDir() {
					found++
				}
				return err
			}))
			require.Equal(t, 1, found)
		})
	}
}

// A save that cannot keep the old bytes does not happen: they are all there is.
func TestARecordOfAnOlderVersionIsNotSavedWithoutItsCopy(t *testing.T) {
	data, err := os.ReadFile("testdata/v1.json")
	require.NoError(t, err)
	s := newStore(t)
	require.NoError(t, os.WriteFile(s.path(uid), data, 0o600))
	r := load(t, s).Records[0]
	require.NoError(t, os.WriteFile(filepath.Join(s.state, "backup"), nil, 0o600))
	require.Error(t, s.Save(r))
	require.Error(t, s.Archive(r))
	now, err := os.ReadFile(s.path(uid))
	require.NoError(t, err)
	require.Equal(t, string(data), string(now))
}

// An upgrade is no edit: what the muxlet that wrote a record did not know has its
// default in it, as it has in a document.
func TestAFieldThatIsNewerThanARecordHasItsDefaultInIt(t *testing.T) {
	s := newStore(t)
	data, err := os.ReadFile("testdata/v2.json")
	require.NoError(t, err)
	require.NotContains(t, string(data), "provisioningPolicy")
	require.NotContains(t, string(data), "submit")
	require.NoError(t, os.WriteFile(s.path(uid), data, 0o600))
	r := load(t, s).Records[0]
	require.Equal(t, spec.ProvisioningEager, r.Spec.ProvisioningPolicy)
	require.Equal(t, spec.SubmitPaste, r.Class.Submit.Method)

	require.NoError(t, s.Archive(r))
	require.NoError(t, os.WriteFile(filepath.Join(s.archive(), uid+".json"), data, 0o600))
	archived, ok := s.Archived(r.Name, time.Time{})
	require.True(t, ok)
	require.Equal(t, r, archived)
}

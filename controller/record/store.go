// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package record

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/muxlet/muxlet/spec"
	"github.com/muxlet/muxlet/spec/durable"
)

const (
	suffix         = ".json"
	previousSuffix = ".json.prev"
	dirRecords     = "records"
	dirQuarantine  = "quarantine"
	dirArchive     = "archive"
)

// Store is the records' place on disk: one file per session, named by its uid,
// with the generation before it in a second file.
type Store struct {
	state string
	// backup keeps the files of older versions before they are written anew.
	backup durable.Backup
	// newer are the uids whose files Load found to be of a newer version, or not to
	// be readable.
	newer map[string]bool
	// saving are held while a record is written, by a hash of its uid: its files have
	// the same names in every save.
	saving [64]sync.Mutex

	mu sync.Mutex
	// archived are the uids in the archive by name, once somebody has asked for one;
	// names are the same the other way round.
	archived map[string]map[string]bool
	names    map[string]string
}

// NewStore keeps records below the state directory. Prepare makes the
// directories.
func NewStore(stateDir string) *Store {
	return &Store{state: stateDir, backup: durable.Backup{State: stateDir}, newer: map[string]bool{}}
}

// Prepare makes the directories with mode 0700, and removes what interrupted
// writes have left there and in the state directory itself. Nobody else may be
// writing there meanwhile.
func (s *Store) Prepare() error {
	for _, dir := range []string{s.state, s.records(), s.quarantine(), s.archive()} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("make state directory: %w", err)
		}
		if err := durable.Sweep(dir, time.Time{}); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) records() string    { return filepath.Join(s.state, dirRecords) }
func (s *Store) quarantine() string { return filepath.Join(s.state, dirQuarantine) }
func (s *Store) archive() string    { return filepath.Join(s.state, dirArchive) }

func (s *Store) path(uid string) string     { return filepath.Join(s.records(), uid+suffix) }
func (s *Store) previous(uid string) string { return filepath.Join(s.records(), uid+previousSuffix) }

// Bad is a record that cannot be used.
type Bad struct {
	// UID from the file's name; Name as far as the content tells it.
	UID, Name string
	// Err matches durable.ErrCorrupt or durable.ErrNewer.
	Err error
}

// Loaded is what a Store holds.
type Loaded struct {
	// Records that are good, by name.
	Records []Record
	// Recovered are the uids whose current generation was damaged and whose
	// previous one is used.
	Recovered []string
	// Bad ones. Damaged files were moved to the quarantine; files of a newer
	// version were left untouched.
	Bad []Bad
}

// Load reads all records. It comes before the first Save.
func (s *Store) Load() (Loaded, error) {
	uids, err := s.uids()
	if err != nil {
		return Loaded{}, err
	}
	var out Loaded
	for _, uid := range uids {
		if err := s.loadInto(&out, uid); err != nil {
			return Loaded{}, err
		}
	}
	sort.Slice(out.Records, func(i, j int) bool { return out.Records[i].Name < out.Records[j].Name })
	return out, nil
}

func (s *Store) uids() ([]string, error) {
	entries, err := os.ReadDir(s.records())
	if err != nil {
		return nil, fmt.Errorf("read records: %w", err)
	}
	seen := map[string]bool{}
	var uids []string
	for _, e := range entries {
		uid, ok := strings.CutSuffix(strings.TrimSuffix(e.Name(), ".prev"), suffix)
		if !ok || strings.HasPrefix(uid, ".") || seen[uid] {
			continue
		}
		seen[uid] = true
		uids = append(uids, uid)
	}
	return uids, nil
}

// loadInto reads one record: its current generation, else its previous one.
func (s *Store) loadInto(out *Loaded, uid string) error {
	current, err := s.Read(uid)
	switch {
	case err == nil:
		out.Records = append(out.Records, current)
		return nil
	case errors.Is(err, durable.ErrNewer):
		s.refuse(out, uid, s.path(uid), err)
		return nil
	case !errors.Is(err, durable.ErrCorrupt) && !errors.Is(err, fs.ErrNotExist):
		// It may be good: it is neither used nor moved, and stops no other session.
		s.refuse(out, uid, s.previous(uid), err)
		return nil
	}
	previous, perr := readRecord(s.previous(uid), uid)
	switch {
	case perr == nil:
		out.Records = append(out.Records, previous)
		out.Recovered = append(out.Recovered, uid)
		return s.setAside(uid + suffix)
	case errors.Is(perr, durable.ErrNewer):
		s.refuse(out, uid, s.previous(uid), perr)
		return nil
	case !errors.Is(perr, durable.ErrCorrupt) && !errors.Is(perr, fs.ErrNotExist):
		s.refuse(out, uid, s.previous(uid), perr)
		return nil
	}
	name := cmp.Or(looseName(s.path(uid)), looseName(s.previous(uid)))
	out.Bad = append(out.Bad, Bad{UID: uid, Name: name, Err: fmt.Errorf("%w: %w", durable.ErrCorrupt, errors.Join(err, perr))})
	return s.setAside(uid+suffix, uid+previousSuffix)
}

// refuse leaves the files of a record of a newer version as they are, for good.
func (s *Store) refuse(out *Loaded, uid, path string, err error) {
	s.newer[uid] = true
	out.Bad = append(out.Bad, Bad{UID: uid, Name: looseName(path), Err: err})
}

// setAside moves damaged files to the quarantine, where nothing reads them.
func (s *Store) setAside(names ...string) error {
	for _, name := range names {
		err := os.Rename(filepath.Join(s.records(), name), filepath.Join(s.quarantine(), name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("quarantine record: %w", err)
		}
	}
	return nil
}

// looseName reads a name from content that cannot be trusted, for a message.
func looseName(path string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	var loose struct {
		Data struct {
			Name string `json:"name"`
		} `json:"data"`
	}
	if json.Unmarshal(data, &loose) != nil {
		return ""
	}
	return loose.Data.Name
}

// Read loads the current generation of one record. The error matches
// fs.ErrNotExist, durable.ErrCorrupt or durable.ErrNewer. It may be called by
// another process than the one that saves: a file that was opened and then
// written anew, as the older of two, looks damaged and is read once more.
func (s *Store) Read(uid string) (Record, error) {
	r, err := readRecord(s.path(uid), uid)
	for range rereads {
		if !errors.Is(err, durable.ErrCorrupt) {
			break
		}
		r, err = readRecord(s.path(uid), uid)
	}
	return r, err
}

// rereads of a record that looks damaged.
const rereads = 2

func readRecord(path, uid string) (Record, error) {
	var r Record
	if err := durable.Read(path, Version, &r); err != nil {
		return Record{}, err
	}
	if r.UID != uid {
		return Record{}, fmt.Errorf("%w: file of %s holds %s", durable.ErrCorrupt, uid, r.UID)
	}
	withDefaults(&r)
	return r, nil
}

// withDefaults fills in the fields that the muxlet which wrote the record did not know.
// Without them the same document would look like an edit of each session after an
// upgrade, and a session that goes on with its last good class would have parts of one.
func withDefaults(r *Record) {
	if r.Spec != nil {
		spec.SetDefaults(r.Spec)
	}
	if r.Class != nil {
		spec.SetClassDefaults(r.Class)
	}
}

// Save makes r the current generation, durably, and keeps the one before it. The
// error matches durable.ErrNewer, and nothing is written, for a record that Load
// has found in a newer version.
//
//	         before     linked     written        in place
//	uid      current    current    current        new
//	prev     previous   previous   -              current
//	.link    -          current    current        -
//	.tmp     -          -          previous→new   -
//
// The oldest of the files is written anew, so that no save makes or frees one.
// The current generation has its name at every instant.
func (s *Store) Save(r Record) error {
	if s.newer[r.UID] {
		return fmt.Errorf("save record of session %s: %w", r.Name, durable.ErrNewer)
	}
	defer s.lock(r.UID)()
	return s.save(r)
}

// Restore saves a record whose file is gone. One that is there is not touched: it
// was written since.
func (s *Store) Restore(r Record) error {
	defer s.lock(r.UID)()
	if _, err := os.Lstat(s.path(r.UID)); err == nil {
		return nil
	}
	return s.save(r)
}

func (s *Store) lock(uid string) (unlock func()) {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(uid))
	l := &s.saving[hash.Sum32()%uint32(len(s.saving))]
	l.Lock()
	return l.Unlock
}

func (s *Store) save(r Record) error {
	data, err := durable.Encode(Version, r)
	if err == nil {
		err = s.keepOlder(r.UID)
	}
	if err == nil {
		err = s.replace(r.UID, data)
	}
	if err != nil {
		return fmt.Errorf("save record of session %s: %w", r.Name, err)
	}
	return nil
}

// keepOlder keeps what is there of an older version, before it is written anew: the
// current generation, or the one before it where that is all there is.
func (s *Store) keepOlder(uid string) error {
	path := s.path(uid)
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		path = s.previous(uid)
	}
	return s.backup.Before(path, Version)
}

func (s *Store) replace(uid string, data []byte) (err error) {
	path, previous := s.path(uid), s.previous(uid)
	temporary := filepath.Join(s.records(), durable.TempPrefix+uid)
	link := temporary + ".link"
	defer func() {
		if err != nil {
			err = errors.Join(err, removeIfThere(temporary), removeIfThere(link))
		}
	}()
	if err := errors.Join(removeIfThere(link), ifThere(os.Link(path, link))); err != nil {
		return fmt.Errorf("keep previous record: %w", err)
	}
	if err := ifThere(os.Rename(previous, temporary)); err != nil {
		return fmt.Errorf("take the file of the record before: %w", err)
	}
	written := durable.Refill(temporary, data, 0o600)
	if err := ifThere(os.Rename(link, previous)); err != nil || written != nil {
		return errors.Join(written, err)
	}
	if err := os.Rename(temporary, path); err != nil {
		return fmt.Errorf("put the record in place: %w", err)
	}
	return durable.SyncDir(s.records())
}

// ifThere is err, unless that says that the file is not there.
func ifThere(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func removeIfThere(path string) error { return ifThere(os.Remove(path)) }

// Knows says whether a record of this uid may be anywhere, be it archived, set
// aside or unreadable.
func (s *Store) Knows(uid string) bool {
	for _, path := range []string{
		s.path(uid), s.previous(uid), filepath.Join(s.archive(), uid+suffix),
		filepath.Join(s.quarantine(), uid+suffix), filepath.Join(s.quarantine(), uid+previousSuffix),
	} {
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			return true
		}
	}
	return false
}

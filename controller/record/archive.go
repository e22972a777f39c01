// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package record

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/muxlet/muxlet/spec/durable"
)

// Age alone bounds nothing for who adds and removes sessions by a program: of the
// archive, the quarantine and the copies of older versions the newest files are kept, at
// most so many, and so many bytes in the quarantine.
const (
	maxArchived         = 10_000
	maxQuarantined      = 200
	maxQuarantinedBytes = 64 << 20
)

// Archive moves a record out of the way. It can be found again by name.
func (s *Store) Archive(r Record) error {
	// Somebody may have tidied it away: nothing else is missing then.
	err := os.MkdirAll(s.archive(), 0o700)
	if err == nil {
		err = s.keepOlder(r.UID)
	}
	if err == nil {
		err = s.backup.Write(filepath.Join(s.archive(), r.UID+suffix), Version, r)
	}
	if err != nil {
		return fmt.Errorf("archive record of session %s: %w", r.Name, err)
	}
	s.mu.Lock()
	if s.archived != nil {
		s.enter(r.UID, r.Name)
	}
	s.mu.Unlock()
	// The older one first: a crash in between must not bring it back.
	for _, path := range []string{s.previous(r.UID), s.path(r.UID)} {
		if err := removeIfThere(path); err != nil {
			return fmt.Errorf("remove record of session %s: %w", r.Name, err)
		}
	}
	return durable.SyncDir(s.records())
}

// Archived finds the newest archived record of a name that was archived at or
// after notBefore. ok is false when there is none that can be read.
func (s *Store) Archived(name string, notBefore time.Time) (r Record, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.readArchive()
	var newest time.Time
	for uid := range s.archived[name] {
		path := filepath.Join(s.archive(), uid+suffix)
		info, err := os.Stat(path)
		if err != nil || info.ModTime().Before(notBefore) || (ok && info.ModTime().Before(newest)) {
			continue
		}
		var found Record
		if durable.Read(path, Version, &found) != nil || found.Name != name {
			continue
		}
		withDefaults(&found)
		r, newest, ok = found, info.ModTime(), true
	}
	return r, ok
}

// Removed finds the archived record of a session by its uid. ok is false when there is
// none that can be read.
func (s *Store) Removed(uid string) (r Record, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if durable.Read(filepath.Join(s.archive(), uid+suffix), Version, &r) != nil || r.UID != uid {
		return Record{}, false
	}
	withDefaults(&r)
	return r, true
}

// readArchive learns whose records are in the archive, at the first use. s.mu is
// held.
func (s *Store) readArchive() {
	if s.archived != nil {
		return
	}
	s.archived, s.names = map[string]map[string]bool{}, map[string]string{}
	for _, f := range agedFiles(s.archive()) {
		var found Record
		uid, isRecord := strings.CutSuffix(filepath.Base(f.path), suffix)
		if isRecord && durable.Read(f.path, Version, &found) == nil {
			s.enter(uid, found.Name)
		}
	}
}

// enter notes an archived record. s.mu is held.
func (s *Store) enter(uid, name string) {
	s.leave(uid)
	if s.archived[name] == nil {
		s.archived[name] = map[string]bool{}
	}
	s.archived[name][uid], s.names[uid] = true, name
}

// leave forgets one. s.mu is held.
func (s *Store) leave(uid string) {
	name := s.names[uid]
	delete(s.names, uid)
	delete(s.archived[name], uid)
	if len(s.archived[name]) == 0 {
		delete(s.archived, name)
	}
}

// Unarchive forgets an archived record that is in use again.
func (s *Store) Unarchive(uid string) error {
	path := filepath.Join(s.archive(), uid+suffix)
	err := s.backup.Before(path, Version)
	if err == nil {
		err = removeIfThere(path)
	}
	if err != nil {
		return fmt.Errorf("remove archived record: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leave(uid)
	return nil
}

// Prune removes what was archived, set aside or kept of older versions before the given
// time, and the oldest of what is more than can be of use to anybody: the archive may take
// so many bytes, and the copies of older versions as many again; 0 is no limit.
func (s *Store) Prune(before time.Time, size int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	removed, err := prune(s.archive(), before, maxArchived, size)
	for _, path := range removed {
		s.leave(strings.TrimSuffix(filepath.Base(path), suffix))
	}
	_, quarantineErr := prune(s.quarantine(), before, maxQuarantined, maxQuarantinedBytes)
	return errors.Join(err, quarantineErr, s.backup.Prune(before, maxArchived, size))
}

// prune removes the files of a directory that were changed before the given
// time, and the oldest of those that are more than keep or take more than size bytes.
func prune(dir string, before time.Time, keep int, size int64) (removed []string, err error) {
	files := agedFiles(dir)
	slices.SortFunc(files, func(a, b agedFile) int { return b.at.Compare(a.at) })
	total := int64(0)
	for i, f := range files {
		total += f.size
		if i < keep && !f.at.Before(before) && (size <= 0 || total <= size) {
			continue
		}
		if e := removeIfThere(f.path); e != nil {
			err = errors.Join(err, e)
			continue
		}
		removed = append(removed, f.path)
	}
	return removed, err
}

// agedFile is a file, when it was last changed, and how long it is.
type agedFile struct {
	path string
	at   time.Time
	size int64
}

// agedFiles are the records of a directory. What else is there is not ours.
func agedFiles(dir string) []agedFile {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var files []agedFile
	for _, e := range entries {
		info, err := e.Info()
		ours := strings.HasSuffix(e.Name(), suffix) || strings.HasSuffix(e.Name(), previousSuffix)
		if err != nil || !ours || !info.Mode().IsRegular() || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		files = append(files, agedFile{filepath.Join(dir, e.Name()), info.ModTime(), info.Size()})
	}
	return files
}

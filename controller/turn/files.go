// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package turn

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/muxlet/muxlet/spec/durable"
)

// Version of the turn files that this program writes, and the newest that it reads.
const Version = 1

// The files of a session are <number><suffix> in <state>/turns/<uid>.
const (
	dirTurns      = "turns"
	dirQuarantine = "quarantine"
	// suffix of a turn, in the envelope of package durable.
	suffix = ".json"
	// promptSuffix of its prompt, the bytes alone. It is there before the turn is.
	promptSuffix = ".prompt"
	// spentSuffix of an empty file that says: this number and those before it were given.
	// It is made before the files of the highest number are removed.
	spentSuffix = ".spent"
	// forgottenSuffix of one that says that their turns are gone as well: what is left of
	// them is removed.
	forgottenSuffix = ".forgotten"
)

func (s *Store) root() string          { return filepath.Join(s.state, dirTurns) }
func (s *Store) quarantine() string    { return filepath.Join(s.root(), dirQuarantine) }
func (s *Store) dir(uid string) string { return filepath.Join(s.root(), uid) }
func (s *Store) path(uid string, number int64, suffix string) string {
	return filepath.Join(s.dir(uid), strconv.FormatInt(number, 10)+suffix)
}
func (s *Store) promptPath(uid string, number int64) string { return s.path(uid, number, promptSuffix) }

// isDirectoryName says whether a session's uid names a directory of ours.
func isDirectoryName(uid string) bool {
	return uid != "" && uid != dirQuarantine && !strings.HasPrefix(uid, ".") && filepath.Base(uid) == uid
}

// numberOf reads the name of a session's file. ok is false for one that is not ours.
func numberOf(name string) (number int64, end string, ok bool) {
	for _, end := range []string{suffix, promptSuffix, spentSuffix, forgottenSuffix} {
		digits, found := strings.CutSuffix(name, end)
		if !found {
			continue
		}
		number, err := strconv.ParseInt(digits, 10, 64)
		return number, end, err == nil && number > 0 && strconv.FormatInt(number, 10) == digits
	}
	return 0, "", false
}

// Prepare makes the directories with mode 0700, and removes what interrupted writes
// have left there. Nobody else may be writing there meanwhile.
func (s *Store) Prepare() error {
	for _, dir := range []string{s.root(), s.quarantine()} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("make directory of turns: %w", err)
		}
	}
	entries, err := os.ReadDir(s.root())
	if err != nil {
		return fmt.Errorf("read directory of turns: %w", err)
	}
	for _, e := range entries {
		if e.IsDir() {
			if err := durable.Sweep(s.dir(e.Name()), time.Time{}); err != nil {
				return err
			}
		}
	}
	return nil
}

// makeDir makes the directory of a session where it is missing.
func (s *Store) makeDir(uid string) error {
	if _, err := os.Stat(s.dir(uid)); err == nil {
		return nil
	}
	if err := os.MkdirAll(s.dir(uid), 0o700); err != nil {
		return fmt.Errorf("make directory of turns: %w", err)
	}
	return durable.SyncDir(s.root())
}

// save writes a turn, and returns it as it will be read.
func (s *Store) save(t Turn) (saved Turn, err error) {
	data, err := durable.Encode(Version, t)
	if err == nil {
		err = durable.Decode(data, Version, &saved)
	}
	if err == nil {
		err = s.makeDir(t.SessionUID)
	}
	path := s.path(t.SessionUID, t.Number, suffix)
	if err == nil {
		err = s.backup.Before(path, Version)
	}
	if err == nil {
		err = durable.WriteFile(path, data, 0o600)
	}
	return saved, err
}

// mark makes an empty file that outlives the turns up to number.
func (s *Store) mark(q *queue, number int64, suffix string) error {
	if err := s.makeDir(q.uid); err != nil {
		return err
	}
	f, err := os.OpenFile(s.path(q.uid, number, suffix), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("note the numbers that were given: %w", err)
	}
	if err := errors.Join(f.Close(), durable.SyncDir(s.dir(q.uid))); err != nil {
		return fmt.Errorf("note the numbers that were given: %w", err)
	}
	return nil
}

// spend notes that the highest number was given, before the file that says so goes.
// q.saving is held.
func (s *Store) spend(q *queue, last int64) error {
	if q.spent >= last {
		return nil
	}
	if err := s.mark(q, last, spentSuffix); err != nil {
		return err
	}
	before := q.spent
	q.spent = last
	if before == 0 {
		return nil
	}
	return removeIfThere(s.path(q.uid, before, spentSuffix))
}

func removeIfThere(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// explain says what a person can do about a disk.
func (s *Store) explain(doing string, err error) error {
	switch {
	case errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT):
		return fmt.Errorf("%s: the disk of state directory %s is full, make room there: %w", doing, s.state, err)
	case errors.Is(err, syscall.EROFS):
		return fmt.Errorf("%s: state directory %s is on a read-only file system, make it writable: %w", doing, s.state, err)
	}
	return fmt.Errorf("%s: %w", doing, err)
}

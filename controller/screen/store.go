// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

// Package screen keeps what a session's client showed last, and tells what is
// new between two looks at a pane. Saved screens are a courtesy: they are bounded,
// nothing waits for them, and one that cannot be written or read is none. What is
// in them goes nowhere but to who asks for it.
package screen

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec/durable"
)

const (
	// MaxBytes bounds the text of a saved screen; observe.KeptLines its lines.
	MaxBytes = 256 << 10
	// Version of the file. History: 1, the first.
	Version = 1
	dir     = "screens"
	suffix  = ".json"
)

// Saved is the screen of an incarnation that has ended.
type Saved struct {
	// At is when it was taken.
	At time.Time `json:"at"`
	observe.Screen
}

// Store is the saved screens' place on disk: one file per session, named by its
// uid, with the incarnation that ended last.
type Store struct{ dir string }

// NewStore keeps screens below the state directory. The directory is made, with
// mode 0700, when the first is saved.
func NewStore(stateDir string) *Store { return &Store{filepath.Join(stateDir, dir)} }

// Save replaces the session's screen. It is not synced: a power cut may cost it,
// and the checksum tells; a sync would compete with those of the records of a
// start that is going on at this very moment.
func (s *Store) Save(uid string, saved Saved) error {
	saved.Screen = bound(saved.Screen)
	data, err := durable.Encode(Version, saved)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return fmt.Errorf("make directory of screens: %w", err)
	}
	if err := s.room(len(data)); err != nil {
		return err
	}
	temporary := filepath.Join(s.dir, durable.TempPrefix+uid)
	err = os.WriteFile(temporary, data, 0o600)
	if err == nil {
		err = os.Rename(temporary, s.path(uid))
	}
	if err != nil {
		return errors.Join(fmt.Errorf("save screen: %w", err), removeIfThere(temporary))
	}
	return nil
}

// What a screen leaves free: it must not be what a start then lacks
// (record.Store.Room).
const (
	leftBytes  = 4 << 20
	leftInodes = 256
)

// room refuses a screen on a disk that is nearly full. A file system that does not
// tell has room.
func (s *Store) room(size int) error {
	var st unix.Statfs_t
	if err := unix.Statfs(s.dir, &st); err != nil {
		return fmt.Errorf("ask for the free space of the directory of screens: %w", err)
	}
	free := uint64(st.Bavail) * uint64(st.Bsize)
	if st.Blocks > 0 && free < leftBytes+uint64(size) || st.Files > 0 && st.Ffree < leftInodes {
		return fmt.Errorf("save screen: %s has %d KiB free, which are left to records", s.dir, free>>10)
	}
	return nil
}

// Load reads the session's screen. The error matches fs.ErrNotExist,
// durable.ErrCorrupt or durable.ErrNewer.
func (s *Store) Load(uid string) (Saved, error) {
	var saved Saved
	if err := durable.Read(s.path(uid), Version, &saved); err != nil {
		return Saved{}, err
	}
	return saved, nil
}

// Prune removes the screens of sessions that are not known, and what interrupted
// writes of theirs left. Those of a known session are overwritten by its next one. Of what
// is more than the given number of bytes (0: no limit) it removes those of sessions that
// are not current first, then the oldest.
func (s *Store) Prune(known, current func(uid string) bool, limit int64) error {
	entries, err := os.ReadDir(s.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read directory of screens: %w", err)
	}
	var errs []error
	var kept []keptScreen
	for _, e := range entries {
		uid, isScreen := strings.CutSuffix(e.Name(), suffix)
		if !isScreen {
			uid, isScreen = strings.CutPrefix(e.Name(), durable.TempPrefix)
		}
		if isScreen && !known(uid) {
			errs = append(errs, removeIfThere(filepath.Join(s.dir, e.Name())))
			continue
		}
		if info, err := e.Info(); err == nil && isScreen {
			kept = append(kept, keptScreen{e.Name(), current(uid), info.ModTime(), info.Size()})
		}
	}
	for _, name := range tooMuch(kept, limit) {
		errs = append(errs, removeIfThere(filepath.Join(s.dir, name)))
	}
	return errors.Join(errs...)
}

// keptScreen is the file of a screen.
type keptScreen struct {
	name    string
	current bool
	at      time.Time
	size    int64
}

// tooMuch are the names of those that go when all together may take limit bytes.
func tooMuch(kept []keptScreen, limit int64) (names []string) {
	if limit <= 0 {
		return nil
	}
	slices.SortFunc(kept, func(a, b keptScreen) int {
		if a.current != b.current {
			if a.current {
				return -1
			}
			return 1
		}
		return cmp.Or(b.at.Compare(a.at), strings.Compare(a.name, b.name))
	})
	total := int64(0)
	for _, k := range kept {
		if total += k.size; total > limit {
			names = append(names, k.name)
		}
	}
	return names
}

func (s *Store) path(uid string) string { return filepath.Join(s.dir, uid+suffix) }

func removeIfThere(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// bound keeps the end of a screen.
func bound(s observe.Screen) observe.Screen {
	s = s.Last(observe.KeptLines)
	bytes, kept := 0, 0
	for kept < len(s.Lines) {
		if bytes += len(s.Lines[len(s.Lines)-1-kept]) + 1; bytes > MaxBytes {
			break
		}
		kept++
	}
	if kept > 0 || len(s.Lines) == 0 {
		return s.Last(kept)
	}
	// One line alone is too long: its end is kept.
	s = s.Last(1)
	line := s.Lines[0][len(s.Lines[0])-MaxBytes+utf8.UTFMax:]
	s.Lines = []string{strings.TrimLeftFunc(line, func(r rune) bool { return r == utf8.RuneError })}
	return s
}

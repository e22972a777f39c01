// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package turn

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

	"github.com/muxlet/muxlet/spec/durable"
)

// What is kept of what nothing refers to any more: files in the quarantine, and
// sessions whose numbers are known; the archive of records has no more of them.
const (
	maxQuarantined      = 200
	maxQuarantinedBytes = 64 << 20
	maxForgotten        = 10_000
)

// errNotOver is why a turn is not forgotten.
var errNotOver = errors.New("it is not over")

// Forget removes a turn that is over, and its prompt.
func (s *Store) Forget(name string) error {
	e, err := s.find(name)
	if err != nil {
		return fmt.Errorf("forget %w", err)
	}
	e.queue.saving.Lock()
	defer e.queue.saving.Unlock()
	t, err := s.present(e)
	if err == nil && t.Phase != Over {
		err = fmt.Errorf("turn %s: %w", name, errNotOver)
	}
	if err != nil {
		return fmt.Errorf("forget %w", err)
	}
	return s.discard(e.queue, []*entry{e})
}

// discard removes turns of one session from disk, then from memory. q.saving is held.
func (s *Store) discard(q *queue, entries []*entry) error {
	s.mu.Lock()
	last := q.last
	s.mu.Unlock()
	for _, e := range entries {
		var err error
		if e.turn.Number == last {
			err = s.spend(q, last)
		}
		if err == nil {
			err = s.removeFiles(q.uid, e.turn.Number)
		}
		if err != nil {
			return s.explain("forget turn "+e.turn.Name, err)
		}
		s.mu.Lock()
		s.leave(e)
		s.mu.Unlock()
	}
	if len(entries) == 0 {
		return nil
	}
	return s.syncDir(q.uid)
}

// removeFiles of a turn: the turn first, since a prompt without one is rubbish.
func (s *Store) removeFiles(uid string, number int64) error {
	if err := removeIfThere(s.path(uid, number, suffix)); err != nil {
		return err
	}
	return removeIfThere(s.promptPath(uid, number))
}

// syncDir makes removals durable; a directory that is gone has nothing.
func (s *Store) syncDir(uid string) error {
	if _, err := os.Stat(s.dir(uid)); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return durable.SyncDir(s.dir(uid))
}

// ForgetSession removes all turns of a session and their prompts, whatever became of
// them. The numbers that they had are not given again should the session come back.
// After an error the session has its turns still, or Load removes what is left of them.
func (s *Store) ForgetSession(uid string) error {
	q, err := s.queueOf(uid)
	if err != nil {
		return fmt.Errorf("forget the turns of a session: %w", err)
	}
	q.saving.Lock()
	defer q.saving.Unlock()
	s.mu.Lock()
	last, unreadable := q.last, q.unreadable
	s.mu.Unlock()
	if last == 0 {
		return unreadable
	}
	if err := s.mark(q, last, forgottenSuffix); err != nil {
		return s.explain("forget the turns of a session", err)
	}
	s.mu.Lock()
	for _, e := range slices.Clone(q.entries) {
		s.leave(e)
	}
	untouched := q.untouched
	s.mu.Unlock()
	if err := s.clear(q, last, untouched); err != nil {
		return s.explain("forget the turns of a session", err)
	}
	q.spent = 0
	return nil
}

// clear removes all files of a session but the mark that they are forgotten.
func (s *Store) clear(q *queue, last int64, untouched map[int64]bool) error {
	entries, err := os.ReadDir(s.dir(q.uid))
	if err != nil {
		return err
	}
	// Sorted so, the turns come before their prompts.
	for _, e := range entries {
		number, end, ok := numberOf(e.Name())
		isTurn := end == suffix || end == promptSuffix
		if !ok || number == last && end == forgottenSuffix || isTurn && untouched[number] {
			continue
		}
		if err := removeIfThere(filepath.Join(s.dir(q.uid), e.Name())); err != nil {
			return err
		}
	}
	return durable.SyncDir(s.dir(q.uid))
}

// Tidy keeps what is over within the limits, and what was set aside or forgotten within
// bounds of its own.
func (s *Store) Tidy() error {
	now, limits := s.now(), s.limits()
	var errs []error
	for _, q := range s.all() {
		q.saving.Lock()
		errs = append(errs, s.discard(q, s.tooMany(q, now, limits)))
		q.saving.Unlock()
	}
	s.mu.Lock()
	dropped, err := s.makeRoom(limits.Bytes, 0)
	if errors.Is(err, ErrFull) {
		// What waits is kept; nothing more is taken meanwhile.
		dropped, err = s.makeRoom(s.waitingBytes(), 0)
	}
	s.mu.Unlock()
	errs = append(errs, err, s.removePrompts(dropped), s.tidyQuarantine(), s.tidyForgotten(maxForgotten))
	return errors.Join(errs...)
}

// waitingBytes is how much the prompts take that are not dropped, at least 1. s.mu is
// held.
func (s *Store) waitingBytes() int64 {
	_, waiting := s.promptsOver()
	return max(1, waiting)
}

func (s *Store) all() []*queue {
	s.mu.Lock()
	defer s.mu.Unlock()
	queues := make([]*queue, 0, len(s.queues))
	for _, q := range s.queues {
		queues = append(queues, q)
	}
	return queues
}

// tooMany lists the turns of a session that are over and not to be kept: those that
// were over first.
func (s *Store) tooMany(q *queue, now time.Time, limits Limits) []*entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	var over []*entry
	for _, e := range q.entries {
		if e.turn.Phase == Over {
			over = append(over, e)
		}
	}
	slices.SortStableFunc(over, func(a, b *entry) int { return b.turn.FinishedAt.Compare(a.turn.FinishedAt) })
	keep := len(over)
	if limits.Turns > 0 {
		keep = min(keep, limits.Turns)
	}
	for keep > 0 && now.Sub(over[keep-1].turn.FinishedAt) > limits.Age {
		keep--
	}
	return over[keep:]
}

// tidyQuarantine keeps the newest files that were set aside.
func (s *Store) tidyQuarantine() error {
	return keepNewest(s.quarantine(), maxQuarantined, maxQuarantinedBytes, func(e os.DirEntry) bool {
		return strings.HasSuffix(e.Name(), suffix) || strings.HasSuffix(e.Name(), promptSuffix)
	}, os.Remove)
}

// tidyForgotten removes the directories of the sessions that were forgotten first. What
// has anything but the mark is not one of them.
func (s *Store) tidyForgotten(keep int) error {
	return keepNewest(s.root(), keep, 0, func(e os.DirEntry) bool {
		f, err := os.ReadDir(filepath.Join(s.root(), e.Name()))
		return err == nil && isDirectoryName(e.Name()) && len(f) == 1 && strings.HasSuffix(f[0].Name(), forgottenSuffix)
	}, func(path string) error {
		q, err := s.queueOf(filepath.Base(path))
		if err != nil {
			return err
		}
		q.saving.Lock()
		defer q.saving.Unlock()
		f, err := s.list(q.uid)
		if err != nil || len(f.turns)+len(f.prompts) > 0 {
			return err
		}
		if err := removeIfThere(s.path(q.uid, f.forgotten, forgottenSuffix)); err != nil {
			return err
		}
		return removeIfThere(path)
	})
}

// keepNewest removes the oldest of the entries of a directory that are ours: those that
// are more than keep, or take more than limit bytes (0: no limit).
func keepNewest(dir string, keep int, limit int64, ours func(os.DirEntry) bool, remove func(string) error) (err error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("tidy turns: %w", err)
	}
	if len(entries) <= keep && limit == 0 {
		return nil
	}
	type aged struct {
		path string
		at   time.Time
		size int64
	}
	var files []aged
	for _, e := range entries {
		info, infoErr := e.Info()
		if infoErr == nil && ours(e) {
			files = append(files, aged{filepath.Join(dir, e.Name()), info.ModTime(), info.Size()})
		}
	}
	slices.SortFunc(files, func(a, b aged) int { return cmp.Or(b.at.Compare(a.at), cmp.Compare(a.path, b.path)) })
	total := int64(0)
	for i, f := range files {
		if total += f.size; i >= keep || limit > 0 && total > limit {
			err = errors.Join(err, remove(f.path))
		}
	}
	return err
}

// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package turn

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"

	"github.com/muxlet/muxlet/spec"
	"github.com/muxlet/muxlet/spec/durable"
)

// Load reads what is on disk. It comes once, before anything is created. What cannot be
// used is a problem and stops nothing else: a damaged turn is set aside into the
// quarantine with its prompt, one of a newer version and one that cannot be read are
// left as they are and not listed. A turn that waits without its prompt fails.
func (s *Store) Load() (problems []error, err error) {
	directories, err := os.ReadDir(s.root())
	if err != nil {
		return nil, fmt.Errorf("read turns: %w", err)
	}
	var queues []*queue
	for _, d := range directories {
		if d.Type().IsRegular() || !isDirectoryName(d.Name()) {
			continue
		}
		q, err := s.queueOf(d.Name())
		if err != nil {
			return nil, err
		}
		queues = append(queues, q)
	}
	for _, found := range s.loadQueues(queues) {
		problems = append(problems, found...)
	}
	return problems, nil
}

// loadQueues reads the turns of several sessions at a time: a daemon that starts waits
// for it.
func (s *Store) loadQueues(queues []*queue) (problems [][]error) {
	problems = make([][]error, len(queues))
	next := make(chan int)
	var readers sync.WaitGroup
	for range min(len(queues), runtime.GOMAXPROCS(0)) {
		readers.Go(func() {
			for i := range next {
				queues[i].saving.Lock()
				problems[i] = s.loadQueue(queues[i])
				queues[i].saving.Unlock()
			}
		})
	}
	for i := range queues {
		next <- i
	}
	close(next)
	readers.Wait()
	return problems
}

// found is what a session's directory has, by number.
type found struct {
	turns, prompts   map[int64]bool
	last             int64
	spent, forgotten int64
}

func (s *Store) list(uid string) (found, error) {
	f := found{turns: map[int64]bool{}, prompts: map[int64]bool{}}
	entries, err := os.ReadDir(s.dir(uid))
	if err != nil {
		return f, fmt.Errorf("read the turns of a session: %w", err)
	}
	for _, e := range entries {
		number, end, ok := numberOf(e.Name())
		if !ok {
			continue
		}
		f.last = max(f.last, number)
		switch end {
		case suffix:
			f.turns[number] = true
		case promptSuffix:
			f.prompts[number] = true
		case spentSuffix:
			f.spent = max(f.spent, number)
		case forgottenSuffix:
			f.forgotten = max(f.forgotten, number)
		}
	}
	return f, nil
}

// loadQueue reads the turns of one session. q.saving is held.
func (s *Store) loadQueue(q *queue) (problems []error) {
	f, err := s.list(q.uid)
	s.mu.Lock()
	q.last, q.unreadable = f.last, err
	s.mu.Unlock()
	q.spent = f.spent
	if err != nil {
		return []error{err}
	}
	for _, number := range slices.Sorted(maps.Keys(f.turns)) {
		if err := s.loadTurn(q, f, number); err != nil {
			problems = append(problems, fmt.Errorf("turn %d in %s: %w", number, s.dir(q.uid), err))
		}
	}
	for number := range f.prompts {
		if f.turns[number] {
			continue
		}
		// Its turn was never made, or is removed already.
		if err := removeIfThere(s.promptPath(q.uid, number)); err != nil {
			problems = append(problems, s.explain("remove what an interrupted write left", err))
		}
	}
	return problems
}

// loadTurn takes one turn into memory, or says why not.
func (s *Store) loadTurn(q *queue, f found, number int64) error {
	t, err := s.read(q.uid, number)
	switch {
	case errors.Is(err, durable.ErrCorrupt):
		return errors.Join(err, s.setAside(q, f, number))
	case err != nil:
		s.mu.Lock()
		defer s.mu.Unlock()
		q.untouched[number] = true
		return err
	case number <= f.forgotten:
		return s.removeFiles(q.uid, number)
	}
	t, kept, problem := s.checkPrompt(t)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept += kept
	s.enter(q, t, kept)
	return problem
}

func (s *Store) read(uid string, number int64) (Turn, error) {
	var t Turn
	if err := durable.Read(s.path(uid, number, suffix), Version, &t); err != nil {
		return Turn{}, err
	}
	if t.SessionUID != uid || t.Number != number || t.Name == "" {
		return Turn{}, fmt.Errorf("%w: it is the file of turn %d of another session", durable.ErrCorrupt, t.Number)
	}
	return t, nil
}

// checkPrompt ends a turn that needs its prompt and has none. One that the client has
// already needs none.
func (s *Store) checkPrompt(t Turn) (_ Turn, kept int64, problem error) {
	path := s.promptPath(t.SessionUID, t.Number)
	if info, err := os.Lstat(path); err == nil {
		kept = info.Size()
	}
	if t.Phase == Over || t.Phase == Delivered {
		return t, kept, nil
	}
	_, err := s.readPrompt(t)
	if err == nil {
		return t, kept, nil
	}
	err = fmt.Errorf("read its prompt: %w", err)
	switch {
	case errors.Is(err, durable.ErrCorrupt):
		kept = 0
		problem = s.quarantineFile(path, t.SessionUID)
	case !errors.Is(err, fs.ErrNotExist):
		// It may be good, and can be read by the time it is needed.
		return t, kept, err
	}
	// Should the save fail, the next start comes to the same result.
	t, saveErr := s.losePrompt(t)
	return t, kept, errors.Join(err, problem, saveErr)
}

func (s *Store) losePrompt(t Turn) (Turn, error) {
	const lost = "the file with its prompt is gone or damaged"
	if t.Phase == Delivering {
		t = t.GiveUp(s.now(), spec.ReasonPromptLost, lost+", and it may have been handed over before: look at the session before you send it again")
	} else {
		t = t.Fail(s.now(), spec.ReasonPromptLost, lost+": send it again", true)
	}
	t.Revision++
	saved, err := s.save(t)
	if err != nil {
		return t, s.explain("save turn "+t.Name, err)
	}
	return saved, nil
}

// setAside moves a damaged turn and its prompt to the quarantine, where nothing reads
// them. Its number stays given.
func (s *Store) setAside(q *queue, f found, number int64) error {
	err := error(nil)
	if number == f.last {
		err = s.spend(q, number)
	}
	if err == nil {
		err = s.quarantineFile(s.path(q.uid, number, suffix), q.uid)
	}
	if err == nil && f.prompts[number] {
		err = s.quarantineFile(s.promptPath(q.uid, number), q.uid)
	}
	if err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		q.untouched[number] = true
		return s.explain("set it aside", err)
	}
	return errors.Join(durable.SyncDir(s.quarantine()), durable.SyncDir(s.dir(q.uid)))
}

func (s *Store) quarantineFile(path, uid string) error {
	if err := os.MkdirAll(s.quarantine(), 0o700); err != nil {
		return err
	}
	err := os.Rename(path, filepath.Join(s.quarantine(), uid+"-"+filepath.Base(path)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package turn

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec/durable"
)

// Store keeps the turns of all sessions, on disk and in memory. It is safe for
// concurrent use; nobody who asks for what is in memory waits for a disk. Two stores
// are never open on one directory.
type Store struct {
	state  string
	backup durable.Backup
	now    func() time.Time
	limits func() Limits

	// mu guards what follows, and the fields of queues and entries that say so. It is
	// never held while a file is written or read.
	mu     sync.Mutex
	queues map[string]*queue
	names  map[string]*entry
	// kept is the size of all prompts on disk, and of those that are being written.
	kept int64
	put  func(Turn)
	gone func(Turn)
}

// queue has the turns of one session, those that are over included.
type queue struct {
	uid string
	// saving is held while files of the session are written or removed. It comes before
	// Store.mu.
	saving sync.Mutex
	// spent is the highest number that a mark on disk has; guarded by saving.
	spent int64

	// The rest is guarded by Store.mu. Entries are sorted by number; last is the highest
	// number that was ever given, and untouched are those whose files are not ours to
	// change.
	entries   []*entry
	requests  map[string]*entry
	last      int64
	untouched map[int64]bool
	// unreadable is why nothing can be said about the numbers that were given.
	unreadable error
}

// entry is one turn in memory, as it is on disk.
type entry struct {
	queue *queue
	turn  Turn
	// kept is the size of its prompt; 0 once that was dropped.
	kept int64
}

// NewStore keeps turns below the state directory. Prepare makes the directories, Load
// comes before anything else is asked.
func NewStore(stateDir string, now func() time.Time, limits func() Limits) *Store {
	return &Store{
		state: stateDir, backup: durable.Backup{State: stateDir}, now: now, limits: limits,
		queues: map[string]*queue{}, names: map[string]*entry{},
		put: func(Turn) {}, gone: func(Turn) {},
	}
}

// Follow has put called with each turn that is new or has changed, and gone with each
// that is no longer kept, in order. It comes before Load. Both are called while the
// store is locked: they must not call it, and not wait.
func (s *Store) Follow(put, gone func(Turn)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.put, s.gone = put, gone
}

// Turn finds a turn by its name.
func (s *Store) Turn(name string) (Turn, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.names[name]
	if !ok {
		return Turn{}, false
	}
	return e.turn, true
}

// All lists the turns by session and number.
func (s *Store) All() []Turn {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]Turn, 0, len(s.names))
	for _, q := range s.queues {
		for _, e := range q.entries {
			all = append(all, e.turn)
		}
	}
	slices.SortFunc(all, func(a, b Turn) int {
		return cmp.Or(cmp.Compare(a.Session, b.Session), cmp.Compare(a.Number, b.Number), cmp.Compare(a.SessionUID, b.SessionUID))
	})
	return all
}

// Open lists the turns of a session that are not over, in the order in which they are
// handed over: the one that is under way, initial ones, then by number.
func (s *Store) Open(uid string) []Turn {
	s.mu.Lock()
	defer s.mu.Unlock()
	q, ok := s.queues[uid]
	if !ok {
		return nil
	}
	var open []Turn
	for _, e := range q.entries {
		if e.turn.Phase != Over {
			open = append(open, e.turn)
		}
	}
	slices.SortStableFunc(open, func(a, b Turn) int { return cmp.Compare(rank(a), rank(b)) })
	return open
}

func rank(t Turn) int {
	switch {
	case t.Phase != Pending:
		return 0
	case t.Initial:
		return 1
	}
	return 2
}

// Prompt reads the prompt of a turn. The error matches fs.ErrNotExist once it was
// dropped or lost, and durable.ErrCorrupt when the file does not hold what was sent.
func (s *Store) Prompt(name string) (string, error) {
	t, ok := s.Turn(name)
	if !ok {
		return "", fmt.Errorf("read prompt of turn %s: %w", name, fs.ErrNotExist)
	}
	prompt, err := s.readPrompt(t)
	if err != nil {
		return "", fmt.Errorf("read prompt of turn %s: %w", name, err)
	}
	return prompt, nil
}

func (s *Store) readPrompt(t Turn) (string, error) {
	data, err := os.ReadFile(s.promptPath(t.SessionUID, t.Number))
	if err != nil {
		return "", err
	}
	if prompt := string(data); int64(len(data)) == t.Bytes && observe.PromptDigest(prompt) == t.Digest {
		return prompt, nil
	}
	return "", fmt.Errorf("%w: it is not what was sent", durable.ErrCorrupt)
}

// PromptFile is the path of the prompt of a turn; empty for a turn that is not kept.
func (s *Store) PromptFile(name string) string {
	t, ok := s.Turn(name)
	if !ok {
		return ""
	}
	return s.promptPath(t.SessionUID, t.Number)
}

// queueOf finds the queue of a session, or makes one.
func (s *Store) queueOf(uid string) (*queue, error) {
	if !isDirectoryName(uid) {
		return nil, fmt.Errorf("%q cannot be the uid of a session", uid)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	q, ok := s.queues[uid]
	if !ok {
		q = &queue{uid: uid, requests: map[string]*entry{}, untouched: map[int64]bool{}}
		s.queues[uid] = q
	}
	return q, nil
}

// enter takes a turn that is on disk into memory, and tells. s.mu is held.
func (s *Store) enter(q *queue, t Turn, kept int64) {
	e := &entry{queue: q, turn: t, kept: kept}
	at, _ := slices.BinarySearchFunc(q.entries, t.Number, func(e *entry, n int64) int { return cmp.Compare(e.turn.Number, n) })
	q.entries = slices.Insert(q.entries, at, e)
	q.last = max(q.last, t.Number)
	s.names[t.Name] = e
	if t.Request != "" {
		q.requests[t.Request] = e
	}
	s.put(t)
}

// leave forgets a turn, and tells. s.mu is held.
func (s *Store) leave(e *entry) {
	q := e.queue
	q.entries = slices.DeleteFunc(q.entries, func(o *entry) bool { return o == e })
	if s.names[e.turn.Name] == e {
		delete(s.names, e.turn.Name)
	}
	if q.requests[e.turn.Request] == e {
		delete(q.requests, e.turn.Request)
	}
	s.kept -= e.kept
	s.gone(e.turn)
}

// find gives the entry of a turn.
func (s *Store) find(name string) (*entry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e, ok := s.names[name]; ok {
		return e, nil
	}
	return nil, fmt.Errorf("turn %s: %w", name, fs.ErrNotExist)
}

// present is the turn of e, unless it was forgotten since e was found.
func (s *Store) present(e *entry) (Turn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if slices.Contains(e.queue.entries, e) {
		return e.turn, nil
	}
	return Turn{}, fmt.Errorf("turn %s: %w", e.turn.Name, fs.ErrNotExist)
}

// Update saves a turn that has changed. Nobody sees the change before it is on disk,
// and an error leaves what is in memory as it was. The error matches ErrChanged when
// next does not rest on the present revision, and fs.ErrNotExist when the turn is no
// longer kept.
func (s *Store) Update(next Turn) (Turn, error) {
	e, err := s.find(next.Name)
	if err != nil {
		return Turn{}, fmt.Errorf("save %w", err)
	}
	e.queue.saving.Lock()
	defer e.queue.saving.Unlock()
	now, err := s.present(e)
	switch {
	case err != nil:
		return Turn{}, fmt.Errorf("save %w", err)
	case now.UID != next.UID || now.SessionUID != next.SessionUID || now.Number != next.Number:
		return Turn{}, fmt.Errorf("save turn %s: another one has this name: %w", next.Name, fs.ErrNotExist)
	case now.Revision != next.Revision:
		return Turn{}, fmt.Errorf("save turn %s: %w", next.Name, ErrChanged)
	}
	next.Revision++
	saved, err := s.save(next)
	if err != nil {
		return Turn{}, s.explain("save turn "+next.Name, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	e.turn = saved
	s.put(saved)
	return saved, nil
}

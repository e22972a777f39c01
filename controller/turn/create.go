// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package turn

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec"
	"github.com/muxlet/muxlet/spec/durable"
)

// Create makes a turn. It is on disk, and its prompt, when Create returns; after an
// error nothing of it is. A request whose ID a kept turn of the session has makes no
// other one: existed is true then, and t is that turn. The error matches ErrFull when
// too many turns wait, or their prompts take all the room there is for prompts.
func (s *Store) Create(r Request) (t Turn, existed bool, err error) {
	q, err := s.queueOf(r.SessionUID)
	if err != nil {
		return Turn{}, false, fmt.Errorf("keep a turn of session %s: %w", r.Session, err)
	}
	q.saving.Lock()
	defer q.saving.Unlock()
	next, existed, err := s.admit(q, r)
	if err != nil {
		return Turn{}, false, fmt.Errorf("keep a turn of session %s: %w", r.Session, err)
	}
	if existed {
		return next, true, nil
	}
	saved, err := s.write(next, r.Prompt)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.kept -= next.Bytes
		return Turn{}, false, s.explain("keep a turn of session "+r.Session, err)
	}
	s.enter(q, saved, saved.Bytes)
	return saved, false, nil
}

// admit finds the turn that r has made before, or gives the one that it makes, whose
// prompt then has its room.
func (s *Store) admit(q *queue, r Request) (t Turn, existed bool, err error) {
	now, limit := s.now(), s.limits().Bytes
	s.mu.Lock()
	if e, ok := q.requests[r.ID]; ok && r.ID != "" {
		defer s.mu.Unlock()
		return e.turn, true, nil
	}
	var dropped []*entry
	if err = q.takesMore(r.Initial); err == nil {
		dropped, err = s.makeRoom(limit, int64(len(r.Prompt)))
	}
	if err == nil {
		t = s.first(q, r, now)
		s.kept += t.Bytes
	}
	s.mu.Unlock()
	if err != nil {
		return Turn{}, false, err
	}
	if err := s.removePrompts(dropped); err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.kept -= t.Bytes
		return Turn{}, false, err
	}
	return t, false, nil
}

// takesMore says why no turn can be added. One that a conversation begins with comes
// before all that wait, and would hold them up if it could not be made. Store.mu is held.
func (q *queue) takesMore(initial bool) error {
	if q.unreadable != nil {
		return q.unreadable
	}
	waiting := 0
	for _, e := range q.entries {
		if e.turn.Phase != Over {
			waiting++
		}
	}
	if waiting >= MaxPending && !initial {
		return fmt.Errorf("%w: %d, which is the most for one session; send it again when some of them are over", ErrFull, waiting)
	}
	return nil
}

// first is the turn that r makes. s.mu is held.
func (s *Store) first(q *queue, r Request, now time.Time) Turn {
	number := q.last + 1
	name := func() string { return r.Session + "-" + strconv.FormatInt(number, 10) }
	for s.names[name()] != nil {
		number++
	}
	return Turn{
		Name: name(), UID: uuid.NewString(), Session: r.Session, SessionUID: r.SessionUID, Number: number,
		Request: r.ID, Initial: r.Initial, CreatedAt: now, Deadline: r.Deadline,
		Bytes: int64(len(r.Prompt)), Lines: int64(strings.Count(r.Prompt, "\n")) + 1, Digest: observe.PromptDigest(r.Prompt),
		Phase:     Pending,
		Delivered: State{Status: metav1.ConditionFalse, Reason: spec.ReasonPending, Message: "nothing was done about it yet", At: now},
		Completed: State{Status: metav1.ConditionUnknown, Reason: spec.ReasonPending, Message: "it was not delivered yet", At: now},
		Revision:  1,
	}
}

// write puts the prompt on disk, and then the turn; after an error neither.
func (s *Store) write(t Turn, prompt string) (saved Turn, err error) {
	_, statErr := os.Stat(s.dir(t.SessionUID))
	err = s.makeDir(t.SessionUID)
	if err == nil {
		err = durable.WriteFile(s.promptPath(t.SessionUID, t.Number), []byte(prompt), 0o600)
	}
	if err == nil {
		saved, err = s.save(t)
	}
	if err == nil {
		return saved, nil
	}
	err = errors.Join(err,
		removeIfThere(s.path(t.SessionUID, t.Number, suffix)),
		removeIfThere(s.promptPath(t.SessionUID, t.Number)))
	if statErr != nil {
		err = errors.Join(err, removeIfThere(s.dir(t.SessionUID)))
	}
	return Turn{}, err
}

// makeRoom chooses whose prompts are dropped so that need more bytes are within the
// limit (0: none), and takes them as dropped. s.mu is held.
func (s *Store) makeRoom(limit, need int64) (dropped []*entry, err error) {
	if limit <= 0 || s.kept+need <= limit {
		return nil, nil
	}
	over, waiting := s.promptsOver()
	if waiting+need > limit {
		return nil, fmt.Errorf("%w: their prompts take %d bytes, and all prompts together may take %d; send it again when some of them are over", ErrFull, waiting, limit)
	}
	for _, e := range over {
		if s.kept+need <= limit {
			break
		}
		s.kept -= e.kept
		dropped = append(dropped, &entry{queue: e.queue, turn: e.turn, kept: e.kept})
		e.kept = 0
	}
	return dropped, nil
}

// promptsOver lists the turns that are over and have a prompt, the oldest first, and
// how much the prompts of all others take. s.mu is held.
func (s *Store) promptsOver() (over []*entry, others int64) {
	others = s.kept
	for _, q := range s.queues {
		for _, e := range q.entries {
			if e.turn.Phase == Over && e.kept > 0 {
				over = append(over, e)
				others -= e.kept
			}
		}
	}
	slices.SortFunc(over, func(a, b *entry) int {
		return cmp.Or(a.turn.FinishedAt.Compare(b.turn.FinishedAt), cmp.Compare(a.turn.Session, b.turn.Session), cmp.Compare(a.turn.Number, b.turn.Number))
	})
	return over, others
}

// removePrompts carries out what makeRoom has chosen. What cannot be removed counts
// again.
func (s *Store) removePrompts(dropped []*entry) (err error) {
	for _, d := range dropped {
		e := removeIfThere(s.promptPath(d.queue.uid, d.turn.Number))
		if e == nil {
			continue
		}
		err = errors.Join(err, s.explain("drop the prompt of turn "+d.turn.Name, e))
		s.mu.Lock()
		if now := s.names[d.turn.Name]; now != nil && now.turn.UID == d.turn.UID {
			now.kept = d.kept
			s.kept += d.kept
		}
		s.mu.Unlock()
	}
	return err
}

// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package turn

import (
	"cmp"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/spec"
)

// model is what a store must have after the same steps.
type model struct {
	turns   map[string]Turn
	prompts map[string]string
	last    map[string]int64
	// heard is what a follower makes of what it hears.
	heard map[string]Turn
}

// Random steps have the same results in the store and in a model that has no files,
// restarts and what a follower hears included.
func TestAStoreIsLikeItsModel(t *testing.T) {
	for range 12 {
		seed := rand.Uint64()
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(seed, 0))
			w := newWorld(t, Limits{Turns: 4, Age: 40 * time.Second, Bytes: 300})
			m := &model{turns: map[string]Turn{}, prompts: map[string]string{}, last: map[string]int64{}}
			m.follow(w)
			for range 60 {
				m.step(w, r)
				m.check(w)
			}
		})
	}
}

func (m *model) follow(w *world) {
	m.heard = map[string]Turn{}
	for _, t := range w.All() {
		m.heard[t.Name] = t
	}
	w.Follow(func(t Turn) { m.heard[t.Name] = t }, func(t Turn) { delete(m.heard, t.Name) })
}

func (m *model) step(w *world, r *rand.Rand) {
	session := []string{"a", "b", "c"}[r.IntN(3)]
	switch r.IntN(12) {
	case 0, 1, 2, 3:
		id := []string{"", "", "r1", "r2", "r3"}[r.IntN(5)]
		m.create(w, Request{Session: session, SessionUID: "uid-" + session, ID: id, Initial: r.IntN(5) == 0, Prompt: promptOf(r.Int64N(8))})
	case 4, 5, 6, 7:
		m.update(w, r)
	case 8:
		m.forget(w, r)
	case 9:
		if r.IntN(4) == 0 {
			require.NoError(w, w.ForgetSession("uid-"+session))
			maps.DeleteFunc(m.turns, func(_ string, t Turn) bool { return t.Session == session })
		}
	case 10:
		require.NoError(w, w.Tidy())
		m.tidy(w)
	case 11:
		w.reopen()
		require.Empty(w, w.problems)
		m.follow(w)
	}
}

func (m *model) create(w *world, r Request) {
	for _, t := range m.turns {
		if t.Session == r.Session && t.Request == r.ID && r.ID != "" {
			got, existed, err := w.Create(r)
			require.NoError(w, err)
			require.True(w, existed)
			require.Equal(w, t, got)
			return
		}
	}
	waiting := 0
	for name, t := range m.turns {
		if t.Phase != Over {
			waiting += len(m.prompts[name])
		}
	}
	got, existed, err := w.Create(r)
	if waiting+len(r.Prompt) > int(w.limits.Bytes) {
		require.ErrorIs(w, err, ErrFull)
		return
	}
	require.NoError(w, err)
	require.False(w, existed)
	m.last[r.Session]++
	require.Equal(w, m.last[r.Session], got.Number)
	m.dropPrompts(int(w.limits.Bytes) - len(r.Prompt))
	m.turns[got.Name], m.prompts[got.Name] = got, r.Prompt
}

// dropPrompts of turns that are over until no more than so many bytes are left.
func (m *model) dropPrompts(room int) {
	for _, t := range m.over("") {
		sum := 0
		for name := range m.turns {
			sum += len(m.prompts[name])
		}
		if sum <= room {
			return
		}
		delete(m.prompts, t.Name)
	}
}

// over lists the turns of a session, or of all, that are over, the oldest first.
func (m *model) over(session string) (over []Turn) {
	for _, t := range m.turns {
		if t.Phase == Over && (session == "" || t.Session == session) {
			over = append(over, t)
		}
	}
	slices.SortFunc(over, func(a, b Turn) int { return a.FinishedAt.Compare(b.FinishedAt) })
	return over
}

func (m *model) any(r *rand.Rand) (Turn, bool) {
	if len(m.turns) == 0 {
		return Turn{}, false
	}
	all := slices.Sorted(maps.Keys(m.turns))
	return m.turns[all[r.IntN(len(all))]], true
}

func (m *model) update(w *world, r *rand.Rand) {
	t, ok := m.any(r)
	if !ok || t.Phase == Over {
		return
	}
	next := t.Begin(w.clock(), spec.SubmitPaste, r.Int64N(9), "attempt", "")
	switch r.IntN(4) {
	case 0:
		next = t.Fail(w.clock(), spec.ReasonClientDied, "gone", true)
	case 1:
		next = t.Deliver(w.clock(), "").Complete(w.clock())
	case 2:
		next.Revision += r.Int64N(3) - 1
	}
	saved, err := w.Update(next)
	if next.Revision != t.Revision {
		require.ErrorIs(w, err, ErrChanged)
		return
	}
	require.NoError(w, err)
	next.Revision++
	require.Equal(w, next, saved)
	m.turns[t.Name] = saved
}

func (m *model) forget(w *world, r *rand.Rand) {
	t, ok := m.any(r)
	switch {
	case !ok:
		require.ErrorIs(w, w.Forget("a-1"), fs.ErrNotExist)
	case t.Phase != Over:
		require.ErrorIs(w, w.Forget(t.Name), errNotOver)
	default:
		require.NoError(w, w.Forget(t.Name))
		delete(m.turns, t.Name)
	}
}

func (m *model) tidy(w *world) {
	tidied := w.now
	for _, session := range []string{"a", "b", "c"} {
		over := m.over(session)
		for i, t := range over {
			if len(over)-i > w.limits.Turns || tidied.Sub(t.FinishedAt) > w.limits.Age {
				delete(m.turns, t.Name)
			}
		}
	}
	m.dropPrompts(int(w.limits.Bytes))
}

// check compares all that can be asked.
func (m *model) check(w *world) {
	all := slices.SortedFunc(maps.Values(m.turns), func(a, b Turn) int {
		return cmp.Or(cmp.Compare(a.Session, b.Session), cmp.Compare(a.Number, b.Number))
	})
	require.Equal(w, all, append([]Turn(nil), w.All()...))
	require.Equal(w, m.turns, m.heard)
	sum := int64(0)
	for _, t := range all {
		got, err := w.Prompt(t.Name)
		if want, kept := m.prompts[t.Name]; kept {
			require.NoError(w, err)
			require.Equal(w, want, got)
			sum += int64(len(got))
		} else {
			require.ErrorIs(w, err, fs.ErrNotExist)
		}
	}
	require.Equal(w, sum, w.kept)
	for _, session := range []string{"a", "b", "c"} {
		open := slices.DeleteFunc(slices.Clone(all), func(t Turn) bool { return t.Session != session || t.Phase == Over })
		slices.SortStableFunc(open, func(a, b Turn) int { return cmp.Compare(rank(a), rank(b)) })
		require.Equal(w, names(open), names(w.Open("uid-"+session)))
	}
}

// BenchmarkLoad reads a thousand turns: what they add to the start of the daemon.
func BenchmarkLoad(b *testing.B) {
	dir := b.TempDir()
	limits := func() Limits { return Limits{} }
	s := NewStore(dir, time.Now, limits)
	require.NoError(b, s.Prepare())
	for n := range 1000 {
		t, _, err := s.Create(Request{Session: fmt.Sprint("s", n%10), SessionUID: fmt.Sprint("u", n%10), Prompt: promptOf(int64(n))})
		require.NoError(b, err)
		if n%10 > 0 {
			_, err = s.Update(t.Cancel(time.Now()))
			require.NoError(b, err)
		}
	}
	for b.Loop() {
		s := NewStore(dir, time.Now, limits)
		require.NoError(b, s.Prepare())
		_, err := s.Load()
		require.NoError(b, err)
		require.Len(b, s.All(), 1000)
	}
}

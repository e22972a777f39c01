// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/muxlet/muxlet/spec"
)

// world is a number of sessions whose states come and go, and a person who is told.
type world struct {
	*testing.T
	*rand.Rand
	clock  *testingclock.FakeClock
	policy Policy
	book   *Book
	now    map[string]Subject
	// told is when a session was last told, since the last restart; sent are the times of
	// the last notifications since then.
	told map[string]time.Time
	sent []time.Time
	// episode numbers the states of a session, by event; toldOf those that were told.
	episode map[string]int
	toldOf  map[string]bool
}

func newWorld(t *testing.T, seed uint64) *world {
	r := rand.New(rand.NewPCG(seed, 7))
	w := &world{
		T: t, Rand: r, clock: testingclock.NewFakeClock(epoch), book: NewBook(nil), now: map[string]Subject{},
		policy: Policy{On: spec.NotificationEvents, MinInterval: time.Duration(r.IntN(4)) * 10 * time.Second, FocusAfter: 5 * time.Second},
		told:   map[string]time.Time{}, episode: map[string]int{}, toldOf: map[string]bool{},
	}
	for i := range 1 + r.IntN(30) {
		s := session(fmt.Sprintf("s%02d", i))
		w.now[s.UID] = s
	}
	return w
}

// disturb lets something happen to one session, or to muxlet.
func (w *world) disturb() {
	uids := make([]string, 0, len(w.now))
	for i := range len(w.now) {
		uids = append(uids, fmt.Sprintf("uid-s%02d", i))
	}
	uid := uids[w.IntN(len(uids))]
	s := w.now[uid]
	switch w.IntN(10) {
	case 0, 1, 2, 3:
		w.begin(&s)
	case 4, 5:
		s.Occasions = nil
	case 6:
		s.Watched = !s.Watched
	case 7:
		s.Known = !s.Known
	case 8:
		if w.IntN(8) == 0 {
			w.restart()
			s = w.now[uid]
		}
	}
	w.now[uid] = s
	w.book.Observe(w.clock.Now(), s)
}

func (w *world) begin(s *Subject) {
	o := []Occasion{asks(0), stalled(), ended(0)}[w.IntN(3)]
	o.Since = w.clock.Now()
	// Another attempt each time: what is told twice would be told of another one.
	key := s.UID + string(o.Event)
	w.episode[key]++
	o.Attempt = fmt.Sprint(w.episode[key])
	s.Occasions = []Occasion{o}
}

func (w *world) restart() {
	w.book = NewBook(w.book.Marks())
	clear(w.told)
	w.sent = nil
	for uid, s := range w.now {
		if len(s.Occasions) > 0 && s.Occasions[0].Event == spec.NotifyTurnCompleted {
			// What has ended before a restart asks nobody after it.
			s.Occasions = nil
			w.now[uid] = s
		}
		w.book.Observe(w.clock.Now(), s)
	}
}

// ask asks what is due, and checks each answer.
func (w *world) ask() (again time.Time) {
	now, room := w.clock.Now(), w.IntN(5)
	due, again := w.book.Due(now, w.policy, room)
	require.LessOrEqual(w, len(due), room)
	for _, n := range due {
		w.sent = append(w.sent, now)
		for _, a := range n.About {
			s := w.now[a.UID]
			require.Equal(w, s.Name, a.Name)
			require.True(w, s.Known, "it was not looked at")
			require.False(w, s.Watched, "a person looks at it")
			require.Contains(w, s.Occasions, a.Occasion, "it is over")
			key := a.UID + string(a.Event) + a.Attempt
			require.False(w, w.toldOf[key], "told twice: %s", key)
			w.toldOf[key] = true
			if before, ok := w.told[a.UID]; ok {
				require.GreaterOrEqual(w, now.Sub(before), w.policy.MinInterval)
			}
			w.told[a.UID] = now
		}
	}
	within := 0
	for _, at := range w.sent {
		if now.Sub(at) < w.policy.MinInterval {
			within++
		}
	}
	require.LessOrEqual(w, within, most)
	require.True(w, again.IsZero() || again.After(now), "asked again at once")
	return again
}

// settle lets nothing more happen: what holds then, unwatched and known, is told.
func (w *world) settle() {
	for range 200 {
		again := w.ask()
		if again.IsZero() {
			// Those that there was no room for.
			again = w.clock.Now().Add(time.Second)
		}
		w.clock.SetTime(again)
	}
	for uid, s := range w.now {
		for _, o := range s.Occasions {
			if s.Known && !s.Watched {
				e := w.book.entries[uid]
				require.True(w, e.states[o.Event].told, "%s is never told of %s", s.Name, o.Event)
			}
		}
	}
	require.Zero(w, w.ask())
}

func TestEveryNotificationKeepsThePromises(t *testing.T) {
	for seed := range uint64(300) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			w := newWorld(t, seed)
			for range 300 {
				w.clock.Step(time.Duration(w.IntN(4000)) * time.Millisecond)
				w.disturb()
				w.ask()
			}
			w.settle()
		})
	}
}

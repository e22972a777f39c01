// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/utils/clock"

	"github.com/muxlet/muxlet/controller/metrics"
	"github.com/muxlet/muxlet/observe"
)

// slowTmux answers each question after a second of the test's own time.
type slowTmux struct {
	Tmux
	mu     sync.Mutex
	asked  int
	answer observe.Answer
}

func (s *slowTmux) List(_ context.Context, _ func() time.Time) observe.Answer {
	s.mu.Lock()
	s.asked++
	answer := s.answer
	s.mu.Unlock()
	<-time.After(time.Second)
	return answer
}

func (s *slowTmux) Capture(context.Context, string, int) (observe.Screen, error) {
	return observe.Screen{}, nil
}

// believe takes every listing for one that counts.
func believe(a observe.Answer) snapshot {
	if a.Kind == observe.AnswerListed {
		return snapshot{view: observe.ServerView{State: observe.ServerRunning, Listing: a.Listing}}
	}
	return snapshot{}
}

func TestCallersOfOneInstantShareAListing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tmux := &slowTmux{answer: observe.Answer{Kind: observe.AnswerListed}}
		e := newEyes(Options{Clock: clock.RealClock{}, Tmux: tmux, Metrics: metrics.New("test", time.Now())})
		var callers sync.WaitGroup
		var seen [8]*snapshot
		for i := range seen {
			callers.Go(func() { seen[i] = e.at(t.Context(), time.Now(), believe) })
		}
		callers.Wait()
		assert.Equal(t, 1, tmux.asked)
		for _, snap := range seen {
			assert.Same(t, seen[0], snap)
		}
	})
}

// Who acted while a listing was made must not see the world of before the act:
// all of them share the next listing.
func TestAListingThatBeganTooEarlyIsFollowedByOneForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tmux := &slowTmux{answer: observe.Answer{Kind: observe.AnswerListed}}
		e := newEyes(Options{Clock: clock.RealClock{}, Tmux: tmux, Metrics: metrics.New("test", time.Now())})
		var callers sync.WaitGroup
		callers.Go(func() { e.at(t.Context(), time.Now(), believe) })
		<-time.After(500 * time.Millisecond)
		acted := time.Now()
		for range 5 {
			callers.Go(func() {
				snap := e.at(t.Context(), acted, believe)
				assert.False(t, snap.began.Before(acted), "the listing is older than the act")
			})
		}
		callers.Wait()
		assert.Equal(t, 2, tmux.asked)
	})
}

func TestAListingThatIsNewEnoughIsNotMadeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tmux := &slowTmux{answer: observe.Answer{Kind: observe.AnswerListed}}
		e := newEyes(Options{Clock: clock.RealClock{}, Tmux: tmux, Metrics: metrics.New("test", time.Now())})
		began := time.Now()
		first := e.at(t.Context(), began, believe)
		<-time.After(time.Hour)
		assert.Same(t, first, e.at(t.Context(), began, believe))
		assert.Same(t, first, e.at(t.Context(), time.Time{}, believe), "anything will do")
		assert.NotSame(t, first, e.at(t.Context(), time.Now().Add(time.Hour), believe), "the future means now")
		assert.Equal(t, 2, tmux.asked)
	})
}

func TestTheTimeOfNotKnowingStartsWithTheFirstFailedLook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tmux := &slowTmux{answer: observe.Answer{Kind: observe.AnswerListed}}
		e := newEyes(Options{Clock: clock.RealClock{}, Tmux: tmux, Metrics: metrics.New("test", time.Now())})
		known := time.Now()
		e.at(t.Context(), known, believe)
		_, lastKnown, unknownSince := e.latest()
		assert.Equal(t, known, lastKnown)
		assert.Zero(t, unknownSince)

		tmux.answer = observe.Answer{Kind: observe.AnswerTimeout}
		blind := time.Now()
		for range 3 {
			e.at(t.Context(), time.Now(), believe)
		}
		_, lastKnown, unknownSince = e.latest()
		assert.Equal(t, known, lastKnown)
		assert.Equal(t, blind, unknownSince)

		tmux.answer = observe.Answer{Kind: observe.AnswerListed}
		e.at(t.Context(), time.Now(), believe)
		_, _, unknownSince = e.latest()
		assert.Zero(t, unknownSince)
	})
}

// processes is a process table in memory. Its other methods are not called.
type processes struct {
	Processes
	states map[observe.Process]observe.Liveness
	marked []observe.MarkedProcess
	err    error
}

func (p processes) State(process observe.Process) observe.Liveness { return p.states[process] }

func (p processes) Scan(string) ([]observe.MarkedProcess, error) { return p.marked, p.err }

// deaths remembers what was forgotten.
type deaths struct {
	Deaths
	forgotten []observe.Process
}

// State is unknown: nothing is watched.
func (d *deaths) State(observe.Process) observe.Liveness { return observe.LivenessUnknown }

func (d *deaths) Forget(p observe.Process) { d.forgotten = append(d.forgotten, p) }

func marked(uid, name string, pid int) observe.MarkedProcess {
	return observe.MarkedProcess{Mark: observe.Mark{UID: uid, Process: observe.Process{PID: pid, Ticks: 1}}, Session: name}
}

// A client that cannot be judged is still counted: ignorance is not death.
func TestMarkedClientsAreDroppedOnlyWhenTheyAreProvenGone(t *testing.T) {
	a, b, c := marked("u", "a", 1), marked("u", "a", 2), marked("u", "a", 3)
	e := newEyes(Options{Deaths: &deaths{}, Processes: processes{
		marked: []observe.MarkedProcess{a, b, c},
		states: map[observe.Process]observe.Liveness{a.Process: observe.Running, b.Process: observe.LivenessUnknown, c.Process: observe.Gone},
	}})
	require.NoError(t, e.scan("i"))
	assert.Equal(t, []observe.MarkedProcess{a, b}, e.marked("u"))
	assert.Empty(t, e.marked("another"))
	uid, ok := e.uidByName("a")
	assert.True(t, ok)
	assert.Equal(t, "u", uid)
}

func TestAScanThatFailsKeepsWhatIsKnown(t *testing.T) {
	a := marked("u", "a", 1)
	table := processes{marked: []observe.MarkedProcess{a}, states: map[observe.Process]observe.Liveness{a.Process: observe.Running}}
	e := newEyes(Options{Deaths: &deaths{}, Processes: table})
	require.NoError(t, e.scan("i"))
	table.err = errors.New("no /proc")
	e.Processes = table
	require.Error(t, e.scan("i"))
	assert.Equal(t, []observe.MarkedProcess{a}, e.marked("u"))
}

func TestAClientIsNotedOnce(t *testing.T) {
	a := marked("u", "a", 1)
	e := newEyes(Options{Deaths: &deaths{}, Processes: processes{states: map[observe.Process]observe.Liveness{a.Process: observe.Running}}})
	e.note(a)
	e.note(a)
	assert.Len(t, e.marked("u"), 1)
}

func TestADeathIsDatedByItsFirstNotice(t *testing.T) {
	d := &deaths{}
	e := newEyes(Options{Deaths: d})
	p := observe.Process{PID: 7, Ticks: 1}
	first := time.Unix(100, 0)
	assert.Equal(t, first, e.markGone(p, first))
	assert.Equal(t, first, e.markGone(p, first.Add(time.Second)))
	e.forget(p)
	assert.Equal(t, []observe.Process{p}, d.forgotten)
	later := first.Add(time.Minute)
	assert.Equal(t, later, e.markGone(p, later), "what was forgotten is not remembered")
}

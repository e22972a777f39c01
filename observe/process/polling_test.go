// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/muxlet/muxlet/observe"
)

// population is a process table of any size.
type population struct {
	mu    sync.Mutex
	gone  map[observe.Process]bool
	asked map[observe.Process]int
	// hold, when it is set, is waited for in each question.
	hold chan struct{}
	// held counts the questions that wait.
	held int
}

func newPopulation() *population {
	return &population{gone: map[observe.Process]bool{}, asked: map[observe.Process]int{}}
}

func (p *population) state(of observe.Process) observe.Liveness {
	p.mu.Lock()
	p.asked[of]++
	hold := p.hold
	if hold != nil {
		p.held++
	}
	p.mu.Unlock()
	if hold != nil {
		<-hold
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.gone[of] {
		return observe.Gone
	}
	return observe.Running
}

func (p *population) with(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f()
}

// polled makes a polling watcher of a population, on a clock that stands still.
func polledPopulation(t *testing.T) (*pollingWatcher, *population, *clocktesting.FakeClock) {
	t.Helper()
	clk, people := clocktesting.NewFakeClock(time.Unix(0, 0)), newPopulation()
	w := newPollingWatcher(time.Second, clk, people.state)
	require.Eventually(t, clk.HasWaiters, patience, time.Millisecond)
	return w, people, clk
}

func numbered(i int) observe.Process { return observe.Process{PID: 1000 + i, Ticks: uint64(1 + i)} }

// A tick costs one question for each process that was alive, and none for the dead:
// a thousand deaths at once are a thousand notices, each once.
func TestPollingAsksOnceInATickForEachProcessThatWasAlive(t *testing.T) {
	const many = 1000
	w, people, clk := polledPopulation(t)
	for i := range many {
		require.NoError(t, w.Watch(numbered(i), fmt.Sprint(i)))
	}
	asked := func() (all int) {
		people.with(func() {
			for _, n := range people.asked {
				all += n
			}
		})
		return all
	}
	require.Equal(t, many, asked(), "each is looked at when it begins to be watched")
	people.with(func() {
		for i := range many / 2 {
			people.gone[numbered(2*i)] = true
		}
	})
	clk.Step(time.Second)
	seen := map[observe.Process]string{}
	for range many / 2 {
		n := noticed(t, w)
		require.NotContains(t, seen, n.Process, "a second notice")
		require.Zero(t, n.Process.PID%2, "a living one")
		seen[n.Process] = n.Key
	}
	require.Equal(t, "6", seen[numbered(6)])
	require.Eventually(t, func() bool { return asked() == 2*many }, patience, time.Millisecond)
	clk.Step(time.Second)
	require.Eventually(t, func() bool { return asked() == 2*many+many/2 }, patience, time.Millisecond, "the dead are not asked for")
	require.NoError(t, w.Close())
	require.Equal(t, 2*many+many/2, asked())
}

// While nothing ticks, nothing is asked: the fallback has no busy loop.
func TestPollingAsksNothingBetweenTicks(t *testing.T) {
	w, people, clk := polledPopulation(t)
	require.NoError(t, w.Watch(numbered(1), "x"))
	clk.Step(999 * time.Millisecond)
	last := observe.Process{PID: 1, Ticks: 1}
	people.with(func() { people.gone[last] = true })
	require.NoError(t, w.Watch(last, "last"))
	require.Equal(t, last, noticed(t, w).Process)
	people.with(func() { require.Equal(t, 1, people.asked[numbered(1)]) })
	require.NoError(t, w.Close())
}

// The pid is another process's by now: what was watched is dead, and its successor is
// watched under a name of its own.
func TestPollingTellsAProcessFromTheNextOneWithItsPid(t *testing.T) {
	self := identified(t, os.Getpid())
	earlier := observe.Process{PID: self.PID, Ticks: self.Ticks - 1}
	w := NewPollingWatcher(time.Millisecond, clock.RealClock{})
	defer func() { require.NoError(t, w.Close()) }()
	require.NoError(t, w.Watch(self, "living"))
	require.NoError(t, w.Watch(earlier, "dead"))
	require.Equal(t, Notice{Process: earlier, Key: "dead"}, noticed(t, w))
	quiet(t, w)
}

// A question to the process table that takes long holds up one process, and neither
// what is forgotten nor the end.
func TestAProcessForgottenDuringALookGivesNoNotice(t *testing.T) {
	w, people, clk := polledPopulation(t)
	first, second := numbered(1), numbered(2)
	require.NoError(t, w.Watch(first, "first"))
	require.NoError(t, w.Watch(second, "second"))
	hold := make(chan struct{})
	people.with(func() { people.hold, people.gone[first], people.gone[second] = hold, true, true })
	clk.Step(time.Second)
	held := func(n int) func() bool {
		return func() bool {
			ok := false
			people.with(func() { ok = people.held == n })
			return ok
		}
	}
	require.Eventually(t, held(1), patience, time.Millisecond)
	forgotten := make(chan struct{})
	go func() { w.Forget(first); w.Forget(second); close(forgotten) }()
	hold <- struct{}{}
	// The lock is given away between two questions; whoever comes first, both are
	// forgotten in the end and nothing of them is told.
	people.with(func() { people.hold = nil })
	close(hold)
	<-forgotten
	last := observe.Process{PID: 1, Ticks: 1}
	people.with(func() { people.gone[last] = true })
	require.NoError(t, w.Watch(last, "last"))
	for n := noticed(t, w); n.Process != last; n = noticed(t, w) {
		require.Contains(t, []observe.Process{first, second}, n.Process, "one that was on its way")
	}
	require.NoError(t, w.Close())
}

// Watching and forgetting from many sides while it ticks.
func TestPollingIsUsedByManyAtOnce(t *testing.T) {
	w := NewPollingWatcher(time.Millisecond, clock.RealClock{})
	self := identified(t, os.Getpid())
	var busy sync.WaitGroup
	for worker := range 8 {
		busy.Go(func() {
			for i := range 200 {
				p := observe.Process{PID: self.PID, Ticks: self.Ticks + uint64(1+worker*1000+i)}
				_ = w.Watch(p, "dead")
				_ = w.Watch(self, "self")
				w.Forget(p)
			}
		})
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for n := range w.Notices() {
			if n.Process == self {
				t.Error("the living was told dead")
			}
		}
	}()
	busy.Wait()
	require.NoError(t, w.Close())
	<-done
}

// A tick over a thousand processes, at the cost of the real process table.
func BenchmarkTickOverThousandProcesses(b *testing.B) {
	w := newPollingWatcher(time.Hour, clock.RealClock{}, func(p observe.Process) observe.Liveness {
		return State(observe.Process{PID: os.Getpid(), Ticks: p.Ticks})
	})
	defer func() { _ = w.Close() }()
	self, _ := Identify(os.Getpid())
	w.mu.Lock()
	for i := range 1000 {
		w.watched[observe.Process{PID: 1 + i, Ticks: self.Ticks}] = &polled{}
	}
	w.mu.Unlock()
	for b.Loop() {
		w.look()
	}
}

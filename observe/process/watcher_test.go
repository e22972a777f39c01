// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/muxlet/muxlet/observe"
)

// watchers are the implementations that the contract is for.
func watchers(t *testing.T) map[string]func() Watcher {
	t.Helper()
	return map[string]func() Watcher{
		"platform": func() Watcher {
			w, err := NewWatcher(2*time.Millisecond, clock.RealClock{})
			require.NoError(t, err)
			return w
		},
		"polling": func() Watcher { return NewPollingWatcher(2*time.Millisecond, clock.RealClock{}) },
	}
}

// eachWatcher runs a test of the contract on every implementation, and sees to it
// that nothing of it is left.
func eachWatcher(t *testing.T, test func(t *testing.T, w Watcher)) {
	t.Helper()
	for name, create := range watchers(t) {
		t.Run(name, func(t *testing.T) {
			w := create()
			t.Cleanup(func() {
				require.NoError(t, w.Close())
				require.ErrorIs(t, w.Close(), ErrClosed)
				require.Eventually(t, func() bool {
					stacks := make([]byte, 1<<20)
					text := string(stacks[:runtime.Stack(stacks, true)])
					return !strings.Contains(text, "process.(*outbox)") && !strings.Contains(text, ").poll(")
				}, patience, time.Millisecond)
			})
			test(t, w)
		})
	}
}

func noticed(t *testing.T, w Watcher) Notice {
	t.Helper()
	select {
	case n := <-w.Notices():
		return n
	case <-time.After(patience):
		require.FailNow(t, "no notice")
		return Notice{}
	}
}

// quiet proves that no notice is on its way: the one of a process that dies now is
// the next.
func quiet(t *testing.T, w Watcher) {
	t.Helper()
	last := helper(t, "waits")
	p := identified(t, last.Process.Pid)
	require.NoError(t, w.Watch(p, "last"))
	end(last)
	require.Equal(t, Notice{Process: p, Key: "last"}, noticed(t, w))
}

func TestDeathGivesExactlyOneNotice(t *testing.T) {
	eachWatcher(t, func(t *testing.T, w Watcher) {
		cmd := helper(t, "waits")
		p := identified(t, cmd.Process.Pid)
		require.NoError(t, w.Watch(p, "shop"))
		require.Nil(t, w.Exit(p))
		require.NoError(t, cmd.Process.Kill())
		require.Equal(t, Notice{Process: p, Key: "shop"}, noticed(t, w), "a zombie is dead")
		end(cmd)
		require.NoError(t, w.Watch(p, "shop"))
		quiet(t, w)
	})
}

func TestProcessThatHasEndedGivesItsNoticeAtOnce(t *testing.T) {
	eachWatcher(t, func(t *testing.T, w Watcher) {
		cmd := helper(t, "waits")
		p := identified(t, cmd.Process.Pid)
		require.NoError(t, cmd.Process.Kill())
		becomesGone(t, p)
		require.NoError(t, w.Watch(p, "zombie"))
		require.Equal(t, Notice{Process: p, Key: "zombie"}, noticed(t, w))
		w.Forget(p)
		end(cmd)
		require.NoError(t, w.Watch(p, "gone"))
		require.Equal(t, Notice{Process: p, Key: "gone"}, noticed(t, w))
		require.Nil(t, w.Exit(p))
		reused := observe.Process{PID: os.Getpid(), Ticks: 1}
		require.NoError(t, w.Watch(reused, "re-used pid"))
		require.Equal(t, Notice{Process: reused, Key: "re-used pid"}, noticed(t, w))
	})
}

// What a watcher cannot tell is Unknown, never a guess.
func TestStateOfAWatchedProcessIsNeverWrong(t *testing.T) {
	eachWatcher(t, func(t *testing.T, w Watcher) {
		cmd := helper(t, "waits")
		p := identified(t, cmd.Process.Pid)
		require.Equal(t, observe.LivenessUnknown, w.State(p), "it is not watched")
		require.NoError(t, w.Watch(p, "a"))
		require.NotEqual(t, observe.Gone, w.State(p))
		end(cmd)
		require.NotEqual(t, observe.Running, w.State(p))
		require.Equal(t, p, noticed(t, w).Process)
		require.NotEqual(t, observe.Running, w.State(p))
		w.Forget(p)
		require.Equal(t, observe.LivenessUnknown, w.State(p))
	})
}

func TestForgottenProcessGivesNoNotice(t *testing.T) {
	eachWatcher(t, func(t *testing.T, w Watcher) {
		cmd := helper(t, "waits")
		p := identified(t, cmd.Process.Pid)
		w.Forget(p)
		require.NoError(t, w.Watch(p, "forgotten"))
		w.Forget(p)
		w.Forget(p)
		end(cmd)
		quiet(t, w)
	})
}

func TestKeyOfAWatchCanBeChanged(t *testing.T) {
	eachWatcher(t, func(t *testing.T, w Watcher) {
		cmd := helper(t, "waits")
		p := identified(t, cmd.Process.Pid)
		require.NoError(t, w.Watch(p, "old"))
		require.NoError(t, w.Watch(p, "new"))
		end(cmd)
		require.Equal(t, Notice{Process: p, Key: "new"}, noticed(t, w))
		quiet(t, w)
	})
}

func TestProcessWithoutACompleteIdentityIsNotWatched(t *testing.T) {
	eachWatcher(t, func(t *testing.T, w Watcher) {
		for _, p := range []observe.Process{{}, {PID: os.Getpid()}, {PID: -1, Ticks: 1}, {PID: 0, Ticks: 1}} {
			require.Error(t, w.Watch(p, "x"))
		}
	})
}

// Deaths that nobody takes are kept: none is lost, none comes twice, and watching goes on.
func TestSlowReaderLosesNoDeath(t *testing.T) {
	eachWatcher(t, func(t *testing.T, w Watcher) {
		want := map[Notice]bool{}
		for i := range 20 {
			cmd := helper(t, "waits")
			p := identified(t, cmd.Process.Pid)
			n := Notice{Process: p, Key: fmt.Sprint(i)}
			want[n] = true
			require.NoError(t, w.Watch(p, n.Key))
			end(cmd)
		}
		for len(want) > 0 {
			n := noticed(t, w)
			require.True(t, want[n], "%v again", n)
			delete(want, n)
		}
		quiet(t, w)
	})
}

func TestClosedWatcherEndsItsNoticesAndRefusesWatches(t *testing.T) {
	for name, create := range watchers(t) {
		t.Run(name, func(t *testing.T) {
			w := create()
			p := identified(t, os.Getpid())
			require.NoError(t, w.Watch(p, "self"))
			dead := observe.Process{PID: os.Getpid(), Ticks: 1}
			require.NoError(t, w.Watch(dead, "not taken"))
			require.NoError(t, w.Close())
			for n := range w.Notices() {
				require.Equal(t, dead, n.Process)
			}
			require.ErrorIs(t, w.Watch(p, "self"), ErrClosed)
			w.Forget(p)
			require.Nil(t, w.Exit(p))
		})
	}
}

// script is what a process table says of one process, time after time.
type script struct {
	mu    sync.Mutex
	says  map[observe.Process][]observe.Liveness
	asked map[observe.Process]int
}

// state says the next word of the script, and the last one for ever.
func (s *script) state(p observe.Process) observe.Liveness {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := min(s.asked[p], len(s.says[p])-1)
	s.asked[p]++
	return s.says[p][at]
}

func (s *script) askedFor(p observe.Process) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked[p]
}

func TestPollingLooksOnceInAnIntervalUntilADeathIsNoticed(t *testing.T) {
	clk := clocktesting.NewFakeClock(time.Unix(0, 0))
	dies, lives := observe.Process{PID: 7, Ticks: 7}, observe.Process{PID: 8, Ticks: 8}
	table := &script{asked: map[observe.Process]int{}, says: map[observe.Process][]observe.Liveness{
		dies:  {observe.Running, observe.Running, observe.LivenessUnknown, observe.Gone},
		lives: {observe.Running},
	}}
	w := newPollingWatcher(time.Second, clk, table.state)
	defer func() { require.NoError(t, w.Close()) }()
	require.Eventually(t, clk.HasWaiters, patience, time.Millisecond)
	require.NoError(t, w.Watch(lives, "lives"))
	require.NoError(t, w.Watch(dies, "dies"))
	for interval := range 6 {
		require.Equal(t, interval+1, table.askedFor(lives))
		clk.Step(time.Second)
		require.Eventually(t, func() bool { return table.askedFor(lives) == interval+2 }, patience, time.Millisecond)
		if interval == 2 {
			require.Equal(t, Notice{Process: dies, Key: "dies"}, noticed(t, w))
		}
	}
	require.Equal(t, 4, table.askedFor(dies), "Unknown was no death, and the dead is not asked for again")
}

func TestNoticesOfAForgottenProcessAreTakenBack(t *testing.T) {
	o := newOutbox()
	defer o.close()
	kept := observe.Process{PID: 1, Ticks: 1}
	dropped := observe.Process{PID: 2, Ticks: 2}
	o.put(Notice{Process: kept, Key: "first"}) // Offered at once, and so no longer pending.
	require.Eventually(t, func() bool { o.mu.Lock(); defer o.mu.Unlock(); return len(o.pending) == 0 }, patience, time.Millisecond)
	o.put(Notice{Process: dropped, Key: strings.Repeat("x", 3)})
	o.put(Notice{Process: kept, Key: "second"})
	o.drop(dropped)
	require.Equal(t, "first", (<-o.out).Key)
	require.Equal(t, "second", (<-o.out).Key)
}

// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/muxlet/muxlet/controller/record"
	"github.com/muxlet/muxlet/controller/server"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec"
	"github.com/muxlet/muxlet/spec/manifest"
)

const (
	healthResync  = 15 * time.Second
	healthTimeout = 5 * time.Second
)

// roomyStore has room, or an answer of its own.
type roomyStore struct {
	Records
	room func() error
}

func (s roomyStore) Room() error { return s.room() }

func (roomyStore) Try() error { return nil }

// slowStore has room, and a disk that takes nothing before it is mended.
type slowStore struct {
	roomyStore
	mended chan struct{}
}

func (s slowStore) Try() error { <-s.mended; return nil }

// stuckTmux answers nobody before mute is closed, and obeys no context.
type stuckTmux struct {
	Tmux
	mute chan struct{}
}

func (s stuckTmux) List(context.Context, func() time.Time) observe.Answer {
	<-s.mute
	return observe.Answer{}
}

// muteTmux lets each call wait for its timeout.
type muteTmux struct{ Tmux }

func (muteTmux) List(context.Context, func() time.Time) observe.Answer {
	<-time.After(healthTimeout)
	return observe.Answer{Kind: observe.AnswerTimeout, Message: "tmux does not answer"}
}

func namesOf(n int) []string {
	var names []string
	for i := range n {
		names = append(names, fmt.Sprintf("s%d", i))
	}
	return names
}

// lookAt has the workers look at that many sessions.
func lookAt(c *Controller, n int) {
	c.mu.Lock()
	for _, name := range namesOf(n) {
		c.sessions[name] = newSession(name)
	}
	c.mu.Unlock()
	for _, name := range namesOf(n) {
		c.enqueue(name, time.Now())
	}
}

// beating is a controller whose loop has looked at everything but the sessions named.
func beating(t *testing.T, unobserved ...string) *Controller {
	t.Helper()
	c := New(Options{
		Clock: clock.RealClock{}, Log: logr.Discard(), StateDir: "/state",
		Initial: Settings{Resync: healthResync, TmuxTimeout: healthTimeout}, Store: roomyStore{room: func() error { return nil }},
	})
	c.read, c.readAt, c.server.scanned, c.instance = true, c.startedAt, true, "i"
	c.eyes.current = &snapshot{began: c.startedAt, view: observe.ServerView{State: observe.ServerRunning}}
	for _, name := range unobserved {
		s := newSession(name)
		s.hold(record.Record{UID: "uid-" + name, Name: name})
		c.sessions[name] = s
	}
	return c
}

// loop runs the workers of c until the test ends.
func loop(t *testing.T, c *Controller) {
	t.Helper()
	for worker := range workers {
		go c.work(t.Context(), worker)
	}
	c.queue.Add(pulseKey)
	synctest.Wait()
}

// sees keeps what else than the pulse is looked at as fresh as a resync does.
func sees(c *Controller) {
	c.mu.Lock()
	c.readAt = c.Clock.Now()
	c.mu.Unlock()
	c.eyes.mu.Lock()
	snap := *c.eyes.current
	snap.began = c.Clock.Now()
	c.eyes.current = &snap
	c.eyes.mu.Unlock()
}

// problem of one check.
func problem(t *testing.T, h Health, name string) string {
	t.Helper()
	for _, c := range h.Checks {
		if c.Name == name {
			return c.Problem
		}
	}
	require.Fail(t, "there is no such check", name)
	return ""
}

func TestAPulseGoesOnWhileTheWorkersDo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := beating(t)
		defer c.queue.ShutDown()
		loop(t, c)
		for range 20 {
			<-time.After(healthResync)
			sees(c)
			h := c.Health()
			assert.True(t, h.Live, h.LiveReason)
			assert.True(t, h.Ready, h.ReadyReason)
			assert.LessOrEqual(t, time.Since(h.Pulse), pulsePeriod)
		}
	})
}

func TestItIsReadyOnceEverySessionWasObserved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := beating(t, "a", "b")
		defer c.queue.ShutDown()
		loop(t, c)
		h := c.Health()
		assert.True(t, h.Live)
		assert.True(t, h.ReadyAt.IsZero())
		assert.Equal(t, "sessions that were not looked at yet: 2", h.ReadyReason)

		observe := func(name string) {
			c.mu.Lock()
			c.sessions[name].observed = true
			c.mu.Unlock()
			<-time.After(pulsePeriod)
		}
		observe("a")
		assert.Equal(t, "sessions that were not looked at yet: 1", c.Health().ReadyReason)
		observe("b")
		h = c.Health()
		assert.True(t, h.Ready, h.ReadyReason)
		assert.False(t, h.ReadyAt.IsZero())

		// What comes later takes nothing back.
		c.mu.Lock()
		c.sessions["c"] = newSession("c")
		c.desired.Sessions = map[string]manifest.Desired{"c": {Session: &spec.Session{}}}
		c.mu.Unlock()
		<-time.After(pulsePeriod)
		assert.Equal(t, h.ReadyAt, c.Health().ReadyAt)
		assert.True(t, c.Health().Ready)
	})
}

func TestADeadlockIsAnIllnessOfTheDaemon(t *testing.T) {
	now := clocktesting.NewFakeClock(time.Now())
	c := beating(t)
	c.Clock, c.queue = now, newKeyQueue(now, nil)
	defer c.queue.ShutDown()
	c.health.last.Store(&pulse{at: now.Now()})
	for worker := range workers {
		go c.work(t.Context(), worker)
	}
	c.queue.Add(pulseKey)
	eventually := func(what string, holds func() bool) {
		require.Eventually(t, holds, time.Minute, time.Millisecond, what)
	}
	eventually("the first pulse", func() bool { return c.Health().Ready })
	c.mu.Lock()
	now.Step(pulseLate + pulseLateCalls*healthTimeout)
	assert.True(t, c.Health().Live, "it is not so late yet")
	now.Step(time.Second)
	h := c.Health()
	assert.False(t, h.Live)
	assert.Equal(t, "no worker of the loop was free for 1m1s", h.LiveReason)
	assert.False(t, h.Ready)
	c.mu.Unlock()
	eventually("it comes round", func() bool { now.Step(time.Millisecond); return c.Health().Live })
}

// A pulse that did not go through the workers would beat on beside them.
func TestWorkersThatAreAllStuckAreAnIllnessOfTheDaemon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := beating(t)
		mute := make(chan struct{})
		c.eyes.Tmux = stuckTmux{mute: mute}
		loop(t, c)
		lookAt(c, workers)
		<-time.After(pulseLate + pulseLateCalls*healthTimeout + 2*pulsePeriod)
		h := c.Health()
		assert.False(t, h.Live)
		assert.Empty(t, problem(t, h, "passes"))
		<-time.After(passLate)
		assert.Contains(t, problem(t, c.Health(), "passes"), "s0 for 3m")
		c.queue.ShutDown()
		close(mute)
	})
}

// Neither the number of sessions nor a tmux that lets each look wait for its timeout keeps
// the pulse away.
func TestAMuteTmuxIsNotTheDaemonsIllness(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := beating(t)
		defer c.queue.ShutDown()
		c.eyes.Tmux = muteTmux{}
		loop(t, c)
		lookAt(c, 400)
		for range 100 {
			<-time.After(3 * time.Second)
			h := c.Health()
			assert.True(t, h.Live, h.LiveReason)
		}
		h := c.Health()
		assert.False(t, h.Ready)
		assert.Equal(t, observe.ServerUnknown, h.LastLookState)
		assert.Contains(t, problem(t, h, "tmux"), "tmux")
	})
}

// Another daemon would wait for the same mount.
func TestAStateDirectoryThatDoesNotAnswerIsNotTheDaemonsIllness(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := beating(t)
		defer c.queue.ShutDown()
		answers := make(chan struct{})
		c.Store = roomyStore{room: func() error { <-answers; return nil }}
		done := make(chan struct{})
		go c.watchState(done)
		mute := make(chan struct{})
		c.eyes.Tmux = stuckTmux{mute: mute}
		loop(t, c)
		lookAt(c, workers)
		<-time.After(10 * time.Minute)
		h := c.Health()
		assert.True(t, h.Live, h.LiveReason)
		assert.False(t, h.Ready)
		assert.Equal(t, "state directory /state has not answered for 10m0s: look at its mount", problem(t, h, "state"))
		close(answers)
		close(mute)
		synctest.Wait()
		assert.Empty(t, problem(t, c.Health(), "state"))
		close(done)
	})
}

// The room of a disk is known without it. A daemon that is killed and started again waits for
// the same disk, and its sessions for that daemon.
func TestADiskThatTakesNothingIsNotTheDaemonsIllness(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := beating(t)
		defer c.queue.ShutDown()
		mended := make(chan struct{})
		c.Store = slowStore{roomyStore{room: func() error { return nil }}, mended}
		done := make(chan struct{})
		go c.watchState(done)
		mute := make(chan struct{})
		c.eyes.Tmux = stuckTmux{mute: mute}
		loop(t, c)
		lookAt(c, workers)
		for range 200 {
			<-time.After(3 * time.Second)
			h := c.Health()
			require.True(t, h.Live, h.LiveReason)
		}
		assert.Contains(t, problem(t, c.Health(), "state"), "state directory /state has not answered for 9m")
		close(mended)
		<-time.After(2 * stateLook)
		assert.False(t, c.Health().Live, "the disk is well, and the workers are stuck all the same")
		close(mute)
		close(done)
	})
}

func TestAFullDiskIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := beating(t)
		defer c.queue.ShutDown()
		var full atomic.Bool
		full.Store(true)
		c.Store = roomyStore{room: func() error {
			if full.Load() {
				return assert.AnError
			}
			return nil
		}}
		done := make(chan struct{})
		go c.watchState(done)
		loop(t, c)
		assert.Equal(t, assert.AnError.Error(), problem(t, c.Health(), "disk"))
		full.Store(false)
		<-time.After(2 * stateLook)
		sees(c)
		assert.True(t, c.Health().Ready, c.Health().ReadyReason)
		close(done)
	})
}

func TestATmuxServerThatDoesNotComeIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := beating(t)
		defer c.queue.ShutDown()
		loop(t, c)
		c.mu.Lock()
		c.server.failure = "no tmux server could be started: no room"
		c.mu.Unlock()
		h := c.Health()
		assert.True(t, h.Live)
		assert.False(t, h.Ready, "nothing can be started")
		assert.Equal(t, "no tmux server could be started: no room", problem(t, h, "tmux"))
	})
}

func TestWhatIsNotReadAnyMoreIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := beating(t)
		defer c.queue.ShutDown()
		loop(t, c)
		<-time.After(4*healthResync + readingLate + time.Second)
		h := c.Health()
		assert.True(t, h.Live, "a dead mount below the manifests is not its illness")
		assert.Contains(t, problem(t, h, "manifests"), "the manifests were not read for 2m")
		assert.Contains(t, problem(t, h, "tmux"), "tmux was not looked at for 2m")
	})
}

func TestSessionsAreCountedByTheirStatus(t *testing.T) {
	c := beating(t)
	defer c.queue.ShutDown()
	var all []*session
	for _, name := range namesOf(3) {
		s := newSession(name)
		s.hold(record.Record{UID: "uid-" + name, Name: name})
		c.sessions[name] = s
		c.publish(s)
		all = append(all, s)
	}
	assert.Equal(t, map[string]int{"Unknown": 3}, c.Health().Sessions)
	c.count(all[0], spec.StatusRunning)
	c.count(all[1], spec.StatusRunning)
	assert.Equal(t, map[string]int{"Running": 2, "Unknown": 1}, c.Health().Sessions)
	c.retract(all[1])
	c.retract(all[2])
	assert.Equal(t, map[string]int{"Running": 1}, c.Health().Sessions)
}

func TestThePulseGoesBeforeEveryOtherKey(t *testing.T) {
	c := newKeyQueue(clock.RealClock{}, nil)
	defer c.ShutDown()
	for _, key := range []string{"a", "b", pulseKey, pulseKey, "c"} {
		c.Add(key)
	}
	assert.Equal(t, 4, c.Len())
	for _, want := range []string{pulseKey, "a", "b", "c"} {
		key, _ := c.Get()
		assert.Equal(t, want, key)
		c.Done(key)
	}
	assert.Zero(t, c.Len())
}

func TestOnlyWhatAnotherDaemonCanMendCountsForLive(t *testing.T) {
	c := beating(t)
	defer c.queue.ShutDown()
	live := []string{}
	for _, check := range c.HealthChecks() {
		if check.Live {
			live = append(live, check.Name)
		}
	}
	assert.Equal(t, []string{"pulse"}, live)
	assert.Empty(t, server.Failing(c.HealthChecks(), true))
}

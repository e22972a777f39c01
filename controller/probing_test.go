// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"github.com/muxlet/muxlet/controller/record"
	"github.com/muxlet/muxlet/controller/status"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec"
)

// oracle answers probes, each after a while, and writes down when it was asked.
type oracle struct {
	mu sync.Mutex
	// takes and says are for each pid.
	takes func(pid int) time.Duration
	says  func(pid int) observe.ProbeResult
	// stuck ignores every end.
	stuck func(pid int) bool
	// over ends what is stuck, with the test.
	over chan struct{}

	asked        map[int][]time.Time
	now, highest int
}

func newOracle() *oracle {
	return &oracle{
		asked: map[int][]time.Time{}, over: make(chan struct{}), takes: func(int) time.Duration { return 5 * time.Millisecond }, stuck: func(int) bool { return false },
		says: func(int) observe.ProbeResult { return observe.ProbeResult{Outcome: observe.ProbeSucceeded} },
	}
}

func (o *oracle) Probe(ctx context.Context, p observe.Probe) observe.ProbeResult {
	pid := p.Client.PID
	o.mu.Lock()
	o.asked[pid] = append(o.asked[pid], time.Now())
	o.now++
	o.highest = max(o.highest, o.now)
	takes, result, stuck := o.takes(pid), o.says(pid), o.stuck(pid)
	o.mu.Unlock()
	defer func() {
		o.mu.Lock()
		o.now--
		o.mu.Unlock()
	}()
	if stuck {
		select {
		case <-time.After(takes):
		case <-o.over:
		}
		return observe.ProbeResult{Message: "it came back"}
	}
	select {
	case <-time.After(min(takes, p.Timeout)):
	case <-ctx.Done():
		return observe.ProbeResult{Message: "the daemon ended"}
	}
	if takes > p.Timeout {
		return observe.ProbeResult{Message: "no answer"}
	}
	return result
}

// peak is how many were asked at the same time, at most.
func (o *oracle) peak() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.highest
}

// times are all at which somebody was asked.
func (o *oracle) times() (all []time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, each := range o.asked {
		all = append(all, each...)
	}
	return all
}

func (o *oracle) timesOf(pid int) []time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]time.Time(nil), o.asked[pid]...)
}

// mostWithin is the highest number of times in any span.
func mostWithin(all []time.Time, span time.Duration) (most int) {
	for _, from := range all {
		n := 0
		for _, at := range all {
			if d := at.Sub(from); d >= 0 && d < span {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}

func checkProbe() *spec.LivenessProbe {
	s := &spec.SessionSpec{LivenessProbe: &spec.LivenessProbe{Exec: spec.ProbeExec{Command: []string{"check"}}}}
	spec.SetDefaults(s)
	return s.LivenessProbe
}

// ward is a controller with n sessions whose clients have just been started and are to be
// asked, pids 1 to n; its probers run until the end of the test.
func ward(t *testing.T, n int, o *oracle) *Controller {
	t.Helper()
	return wardWith(t, n, o, clock.RealClock{}, &fickle{})
}

// fickle says that every process runs, until it says that every one is gone.
type fickle struct {
	Deaths
	gone atomic.Bool
}

func (f *fickle) State(observe.Process) observe.Liveness {
	if f.gone.Load() {
		return observe.Gone
	}
	return observe.Running
}

func wardWith(t *testing.T, n int, o *oracle, clk clock.WithTicker, deaths Deaths) *Controller {
	t.Helper()
	recorder, err := status.OpenRecorder(t.TempDir(), 10_000)
	require.NoError(t, err)
	c := bare(t, Options{Clock: clk, Prober: o, Deaths: deaths, Recorder: recorder})
	c.probes = newProbeQueue(c.Clock, nil)
	c.sees(observe.ServerRunning)
	c.mu.Lock()
	for pid := 1; pid <= n; pid++ {
		s := newSession(fmt.Sprintf("s%d", pid))
		s.rec = record.Record{UID: uuid.NewSHA1(uuid.NameSpaceOID, []byte(s.name)).String(), Name: s.name, Spec: &spec.SessionSpec{LivenessProbe: checkProbe()}}
		startClient(s, pid)
		s.status.LivenessProbe = &spec.LivenessProbeStatus{}
		c.sessions[s.name] = s
	}
	c.mu.Unlock()
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for range probers {
		wg.Go(func() { c.askClients(ctx) })
	}
	t.Cleanup(func() {
		cancel()
		close(o.over)
		c.probes.ShutDown()
		wg.Wait()
		c.probes.runs.Wait()
		c.queue.ShutDown()
		require.NoError(t, recorder.Close())
	})
	c.planAll()
	return c
}

func startClient(s *session, pid int) {
	s.rec.Client = &record.Client{Incarnation: 1, Attempt: fmt.Sprintf("a%d", pid), Process: observe.Process{PID: pid, Ticks: 1}, StartedAt: time.Now(), Directory: "/work"}
}

// sees makes the last look at tmux one that has found that.
func (c *Controller) sees(state observe.ServerState) {
	c.eyes.mu.Lock()
	defer c.eyes.mu.Unlock()
	c.eyes.current = &snapshot{view: observe.ServerView{State: state}}
}

// planAll is a pass of each session.
func (c *Controller) planAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.sessions {
		c.planProbe(s)
	}
}

// change edits a session as its worker does.
func (c *Controller) change(name string, edit func(*session)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	edit(c.sessions[name])
	c.planProbe(c.sessions[name])
}

// wait lets time pass.
func wait(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

const many = 1000

// A stampede would take the machine from the clients that it asks about.
func TestAThousandClientsAreNotAskedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOracle()
		began := time.Now()
		ward(t, many, o)
		wait(10*time.Second - 1)
		assert.Empty(t, o.times(), "nobody is asked in the initial delay")
		wait(10 * time.Second)
		assert.Len(t, o.times(), many, "each is asked within a period")
		wait(40 * time.Second)
		all := o.times()
		assert.Len(t, all, 5*many)
		assert.Less(t, mostWithin(all, 100*time.Millisecond), many/20, "a tenth of a second has a hundredth of them, or little more")
		assert.LessOrEqual(t, o.peak(), probers)
		for pid := 1; pid <= many; pid++ {
			times := o.timesOf(pid)
			assert.GreaterOrEqual(t, times[0].Sub(began), 10*time.Second)
			for i := 1; i < len(times); i++ {
				assert.InDelta(t, 10, times[i].Sub(times[i-1]).Seconds(), 0.5)
			}
		}
	})
}

// All of them have been running for long: a new daemon asks none of them twice, nor all at once.
func TestANewDaemonSpreadsItsFirstProbes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOracle()
		c := ward(t, many, o)
		c.mu.Lock()
		for _, s := range c.sessions {
			s.rec.Client.StartedAt = time.Now().Add(-time.Hour)
			s.rec.Spec.LivenessProbe = checkProbe()
			s.rec.Spec.LivenessProbe.PeriodSeconds = ptr.To[int32](3600)
			s.probing = probing{}
		}
		c.mu.Unlock()
		c.planAll()
		wait(10 * time.Second)
		all := o.times()
		assert.Len(t, all, many, "a long period makes nobody wait for the first")
		assert.Less(t, mostWithin(all, 100*time.Millisecond), many/20)
	})
}

// jumping is a clock on which the host has slept.
type jumping struct {
	clock.RealClock
	mu    sync.Mutex
	slept time.Duration
}

func (j *jumping) Now() time.Time {
	j.mu.Lock()
	defer j.mu.Unlock()
	return time.Now().Add(j.slept)
}

func (j *jumping) sleep(d time.Duration) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.slept += d
}

func TestAHostThatHasSleptAsksNotAllAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOracle()
		clk := &jumping{}
		c := wardWith(t, many, o, clk, &fickle{})
		wait(15 * time.Second)
		before := len(o.times())
		clk.sleep(time.Hour)
		c.mu.Lock()
		for name := range c.sessions {
			c.probes.Add(name) // every timer of the queue is over
		}
		c.mu.Unlock()
		wait(probeSpread)
		all := o.times()[before:]
		assert.InDelta(t, many, len(all), many/20)
		assert.LessOrEqual(t, o.peak(), probers)
		wait(time.Hour / 60)
		assert.Less(t, mostWithin(o.times(), 100*time.Millisecond), many/20)
	})
}

func TestProbesThatHangDelayNoOtherForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOracle()
		o.takes = func(pid int) time.Duration {
			if pid <= many/2 {
				return time.Hour
			}
			return 5 * time.Millisecond
		}
		c := ward(t, many, o)
		wait(2 * time.Minute)
		assert.LessOrEqual(t, o.peak(), mostProbes)
		for pid := many/2 + 1; pid <= many; pid++ {
			require.GreaterOrEqual(t, len(o.timesOf(pid)), 3, "pid %d", pid)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, s := range c.sessions {
			assert.Zero(t, s.probing.probed.Failures, "what hangs has not failed")
		}
	})
}

// On a dead mount a program cannot even be killed.
func TestProbesThatCannotBeEndedKeepNobodysPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOracle()
		const dead = 2 * mostProbes
		o.stuck = func(pid int) bool { return pid <= dead }
		o.takes = func(pid int) time.Duration {
			if pid <= dead {
				return time.Hour
			}
			return 5 * time.Millisecond
		}
		ward(t, dead+100, o)
		wait(2 * time.Minute)
		for pid := 1; pid <= dead; pid++ {
			assert.Len(t, o.timesOf(pid), 1, "no second one is begun beside it")
		}
		for pid := dead + 1; pid <= dead+100; pid++ {
			assert.Greater(t, len(o.timesOf(pid)), 5)
		}
		wait(time.Hour)
		for pid := 1; pid <= dead; pid++ {
			assert.Len(t, o.timesOf(pid), 2, "once it has come back another one follows")
		}
	})
}

func TestWhatAProbeSaysIsCountedAndAsksForAPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOracle()
		said := []observe.ProbeOutcome{observe.ProbeFailed, observe.ProbeUnknown, observe.ProbeFailed, observe.ProbeSucceeded, observe.ProbeSucceeded, observe.ProbeFailed, observe.ProbeFailed, observe.ProbeFailed}
		o.says = func(int) observe.ProbeResult {
			return observe.ProbeResult{Outcome: said[(len(o.asked[1])-1)%len(said)]}
		}
		c := ward(t, 1, o)
		want := []int{1, 1, 2, 0, 0, 1, 2, 3}
		for i, n := range want {
			for len(o.timesOf(1)) <= i {
				wait(time.Second)
			}
			assert.Equal(t, n, c.probedOf(c.sessions["s1"]).Failures, "after %d", i+1)
			passes := c.queue.Len()
			if i != 4 {
				require.Equal(t, 1, passes, "after %d", i+1)
				key, _ := c.queue.Get()
				c.queue.Done(key)
			} else {
				require.Zero(t, passes, "the same again is no news")
			}
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		shown := c.sessions["s1"].status.LivenessProbe
		require.NotNil(t, shown.LastProbeTime)
		require.NotNil(t, shown.NextProbeTime)
		assert.Equal(t, 10*time.Second, shown.NextProbeTime.Sub(o.timesOf(1)[7]).Round(time.Second))
	})
}

func TestAnEditOfTheProbeTakesEffectAtOnceAndCountsAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOracle()
		o.says = func(int) observe.ProbeResult { return observe.ProbeResult{Outcome: observe.ProbeFailed, Message: "no"} }
		c := ward(t, 1, o)
		for c.probedOf(c.sessions["s1"]).Failures < 2 {
			wait(time.Second)
		}
		c.change("s1", func(s *session) {
			s.rec.Spec = s.rec.Spec.DeepCopy()
			s.rec.Spec.LivenessProbe.PeriodSeconds = ptr.To[int32](1)
		})
		before := len(o.timesOf(1))
		wait(time.Second)
		assert.Len(t, o.timesOf(1), before+1, "its period is the new one")
		assert.Equal(t, 1, c.probedOf(c.sessions["s1"]).Failures)
		c.change("s1", func(s *session) {
			s.rec.Spec = s.rec.Spec.DeepCopy()
			s.rec.Spec.LivenessProbe = nil
		})
		before = len(o.timesOf(1))
		wait(time.Minute)
		assert.Len(t, o.timesOf(1), before, "nobody is asked any more")
	})
}

func TestOnlyAClientThatIsKnownToRunIsAsked(t *testing.T) {
	for name, c := range map[string]struct{ before, after func(*Controller, *session) }{
		"it is suspended": {
			func(_ *Controller, s *session) { s.rec.Spec.Suspend = true }, func(_ *Controller, s *session) { s.rec.Spec.Suspend = false },
		},
		"it is being ended": {
			func(_ *Controller, s *session) { s.rec.Stop = &record.Stop{} }, func(_ *Controller, s *session) { s.rec.Stop = nil },
		},
		"there is none": {
			func(_ *Controller, s *session) { s.rec.Client = nil }, func(_ *Controller, s *session) { startClient(s, 7) },
		},
		"tmux is not known": {
			func(c *Controller, _ *session) { c.sees(observe.ServerUnknown) }, func(c *Controller, _ *session) { c.sees(observe.ServerRunning) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := newOracle()
				ctl := ward(t, 1, o)
				wait(30 * time.Second)
				require.NotEmpty(t, o.times())
				ctl.change("s1", func(s *session) { c.before(ctl, s) })
				before := len(o.times())
				wait(time.Minute)
				assert.Len(t, o.times(), before)
				ctl.change("s1", func(s *session) { c.after(ctl, s) })
				wait(30 * time.Second)
				assert.Greater(t, len(o.times()), before)
			})
		})
	}
}

// The client has ended while it was asked, or another one runs by now.
func TestAnAnswerAboutAClientThatIsNoMoreIsThrownAway(t *testing.T) {
	for name, end := range map[string]func(*Controller, *session, *fickle){
		"it has ended":      func(_ *Controller, _ *session, f *fickle) { f.gone.Store(true) },
		"it is being ended": func(_ *Controller, s *session, _ *fickle) { s.rec.Stop = &record.Stop{} },
		"another one runs":  func(_ *Controller, s *session, _ *fickle) { startClient(s, 7) },
		"the probe is other": func(_ *Controller, s *session, _ *fickle) {
			s.rec.Spec = &spec.SessionSpec{LivenessProbe: &spec.LivenessProbe{}}
		},
		"it is removed": func(c *Controller, s *session, _ *fickle) { delete(c.sessions, s.name) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := newOracle()
				o.takes = func(int) time.Duration { return 500 * time.Millisecond }
				o.says = func(int) observe.ProbeResult { return observe.ProbeResult{Outcome: observe.ProbeFailed, Message: "no"} }
				deaths := &fickle{}
				c := wardWith(t, 1, o, clock.RealClock{}, deaths)
				s := c.sessions["s1"]
				for len(o.times()) == 0 {
					wait(100 * time.Millisecond)
				}
				c.mu.Lock()
				end(c, s, deaths)
				if c.sessions["s1"] != nil {
					c.planProbe(s)
				}
				c.mu.Unlock()
				wait(time.Second)
				assert.Zero(t, c.probedOf(s).Failures)
			})
		})
	}
}

// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"hash/fnv"
	"reflect"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"

	"github.com/muxlet/muxlet/controller/plan"
	"github.com/muxlet/muxlet/controller/record"
	"github.com/muxlet/muxlet/controller/status"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec"
)

const (
	// probers is how many probes begin at the same time.
	probers = 4
	// proberPatience is how long the next one waits for one that has begun. What runs
	// longer sleeps, as a rule, and takes nobody's processor.
	proberPatience = 250 * time.Millisecond
	// mostProbes is how many probes there are at the same time, those that hang included.
	mostProbes = 64
	// probeSpread is the time over which the first probes of many clients are spread.
	probeSpread = 10 * time.Second
	// probeLate is by how much a probe may be late. When the host was asleep, all are by
	// more, and are spread anew.
	probeLate = 2 * time.Second
	// probeStuck is how long after its timeout a probe may take to be ended, before its
	// place is given to others.
	probeStuck = 2 * time.Second
)

// Prober asks clients whether they are alive.
type Prober interface {
	// Probe runs one probe until it ends, its timeout is over or ctx ends. It may take
	// longer when a file system does not answer.
	Probe(ctx context.Context, p observe.Probe) observe.ProbeResult
}

// probing is what is known of the liveness probe of a session, and what is due.
type probing struct {
	// probed is what it has said of the last client that was asked.
	probed observe.Probed
	// dueAt is when the client of attempt is to be asked next, by the probe of; zero when
	// it is not to be asked.
	dueAt   time.Time
	attempt string
	of      *spec.LivenessProbe
	// running says that a probe was begun and has not come back; respread that the next
	// one is not put off again, however late it is.
	running, respread bool
}

// probeQueue has the sessions whose clients are to be asked.
type probeQueue struct {
	workqueue.TypedDelayingInterface[string]
	// places are those of probes that run.
	places chan struct{}
	runs   sync.WaitGroup
}

func newProbeQueue(c clock.WithTicker, m *meter) *probeQueue {
	return &probeQueue{TypedDelayingInterface: newQueue(c, m), places: make(chan struct{}, mostProbes)}
}

// phased is the first moment from then on at which a session has its turn among others:
// a time of the clock that only its uid and the period tell, so that many sessions that
// begin at once, or are met at once by a new daemon, are not asked at once.
func phased(uid string, period time.Duration, from time.Time) time.Time {
	h := fnv.New64a()
	_, _ = h.Write([]byte(uid))
	period = min(period, probeSpread)
	wait := (time.Duration(mixed(h.Sum64())%uint64(period)) - time.Duration(from.UnixNano()%int64(period))) % period
	if wait < 0 {
		wait += period
	}
	return from.Add(wait)
}

// mixed spreads a hash over all of its bits (the finaliser of MurmurHash3): FNV leaves
// names that differ in their last character close to each other.
func mixed(x uint64) uint64 {
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}

// planProbe sees to it that the session's client is asked when it is to be, and no more
// once it is not. c.mu is held.
func (c *Controller) planProbe(s *session) {
	p := &s.probing
	probe, from := c.probeOf(s)
	if probe == nil {
		p.dueAt, p.attempt, p.of = time.Time{}, "", nil
		return
	}
	if p.attempt == s.rec.Client.Attempt && reflect.DeepEqual(p.of, probe) {
		return
	}
	now := c.Clock.Now()
	// The start may lie in the future of a clock that has jumped back.
	wait := min(max(from.Sub(c.now()), 0), from.Sub(s.rec.Client.StartedAt))
	p.attempt, p.of, p.respread = s.rec.Client.Attempt, probe, false
	p.dueAt = phased(s.rec.UID, plan.ProbePeriod(probe), now.Add(wait))
	c.probes.AddAfter(s.name, p.dueAt.Sub(now))
}

// probeOf is the probe that the session's client is to be asked, and from when on; nil
// when it is not. c.mu is held.
func (c *Controller) probeOf(s *session) (*spec.LivenessProbe, time.Time) {
	if c.Prober == nil || c.probes == nil || s.rec.Spec == nil || s.rec.Spec.LivenessProbe == nil {
		return nil, time.Time{}
	}
	return plan.ProbeOf(&s.rec, c.classInForce(s))
}

// askClients asks those that are due until the queue is shut down. No worker waits for
// it: what a probe says is a hint, and kept for the next pass.
func (c *Controller) askClients(ctx context.Context) {
	for {
		name, shutdown := c.probes.Get()
		if shutdown {
			return
		}
		if ctx.Err() == nil {
			c.askClient(ctx, name)
		}
		c.probes.Done(name)
	}
}

// question is a probe of a client that is due.
type question struct {
	session string
	client  record.Client
	of      *spec.LivenessProbe
	probe   observe.Probe
}

// askClient begins the probe of a session if it is due, and waits a moment for its end.
func (c *Controller) askClient(ctx context.Context, name string) {
	select {
	case c.probes.places <- struct{}{}:
	case <-ctx.Done():
		return
	}
	q, due := c.takeQuestion(name)
	if !due {
		<-c.probes.places
		return
	}
	ended := make(chan struct{})
	c.probes.runs.Go(func() {
		defer close(ended)
		c.runProbe(ctx, q)
	})
	select {
	case <-ended:
	case <-c.Clock.After(proberPatience):
	}
}

// takeQuestion is what is due to be asked of a session's client; false when nothing is.
func (c *Controller) takeQuestion(name string) (q question, due bool) {
	snap, _, _ := c.eyes.latest()
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.sessions[name]
	if s == nil {
		return q, false
	}
	c.planProbe(s)
	p, now := &s.probing, c.Clock.Now()
	if p.dueAt.IsZero() || p.running {
		return q, false
	}
	late := now.Sub(p.dueAt)
	switch known := snap != nil && snap.view.State == observe.ServerRunning; {
	case late < 0:
	case late > probeLate && !p.respread:
		p.dueAt, p.respread = phased(s.rec.UID, plan.ProbePeriod(p.of), now), true
	case !known:
		c.putOff(s, now)
	default:
		p.running, p.respread = true, false
		return c.questionOf(s), true
	}
	c.probes.AddAfter(name, p.dueAt.Sub(now))
	return q, false
}

func (c *Controller) questionOf(s *session) question {
	client, of := *s.rec.Client, s.probing.of
	directory := client.Directory
	if directory == "" {
		directory = s.status.Workspace.Path
	}
	return question{session: s.name, client: client, of: of, probe: observe.Probe{
		Client: client.Process, Command: of.Exec.Command, Directory: directory, Timeout: plan.ProbeTimeout(of),
	}}
}

// putOff makes the next probe due, a period after the last one was. c.mu is held.
func (c *Controller) putOff(s *session, now time.Time) {
	p := &s.probing
	period := plan.ProbePeriod(p.of)
	if p.dueAt = p.dueAt.Add(period); !p.dueAt.After(now) {
		p.dueAt = phased(s.rec.UID, period, now.Add(1))
	}
}

// runProbe asks, and gives the place back when it is over. A probe that cannot even be
// ended, such as one on a file system that does not answer, keeps nobody's place, but no
// other is begun of that session until it has come back.
func (c *Controller) runProbe(ctx context.Context, q question) {
	answer := make(chan observe.ProbeResult, 1)
	go func() { answer <- c.Prober.Probe(ctx, q.probe) }()
	var r observe.ProbeResult
	stuck := false
	select {
	case r = <-answer:
	case <-ctx.Done():
		select {
		case <-answer:
		case <-c.Clock.After(probeStuck):
		}
	case <-c.Clock.After(q.probe.Timeout + probeStuck):
		r.Message, stuck = fmt.Sprintf("%s gave no answer and could not be ended; a file system may not answer", q.of.Exec.Command[0]), true
	}
	<-c.probes.places
	if ctx.Err() != nil {
		return
	}
	c.noteProbe(q, r)
	if stuck {
		go func() {
			<-answer
			c.endProbe(q.session)
		}()
		return
	}
	c.endProbe(q.session)
}

// endProbe lets the session's next probe come.
func (c *Controller) endProbe(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.sessions[name]
	if s == nil || !s.probing.running {
		return
	}
	s.probing.running = false
	if now := c.Clock.Now(); !s.probing.dueAt.IsZero() {
		if !s.probing.dueAt.After(now) {
			c.putOff(s, now)
		}
		c.probes.AddAfter(name, s.probing.dueAt.Sub(now))
		c.showProbe(s)
	}
}

// noteProbe keeps what a probe has said, asks for a pass when that is news, and tells it.
func (c *Controller) noteProbe(q question, r observe.ProbeResult) {
	if c.eyes.stateOf(q.client.Process) == observe.Gone {
		// What it has said of a client that ended meanwhile is nothing new.
		return
	}
	c.mu.Lock()
	s := c.sessions[q.session]
	if s != nil {
		c.planProbe(s)
	}
	if s == nil || s.probing.attempt != q.client.Attempt || !reflect.DeepEqual(s.probing.of, q.of) {
		c.mu.Unlock()
		return
	}
	before := s.probing.probed
	s.probing.probed = before.After(q.client.Attempt, q.of, r, c.now())
	uid, after := s.rec.UID, s.probing.probed
	first := !before.About(q.client.Attempt, q.of)
	c.showProbe(s)
	c.mu.Unlock()
	if (first || before.Last != r) && r.Outcome != observe.ProbeSucceeded {
		c.tell(q.session, uid, probeEvent(r))
	}
	if first || before.Last != r || before.Failures != after.Failures {
		c.queue.Add(q.session)
	}
}

func probeEvent(r observe.ProbeResult) plan.Event {
	if r.Outcome == observe.ProbeFailed {
		return plan.Event{Type: plan.Warning, Reason: spec.ReasonLivenessProbeFailing, Message: "The liveness probe failed: " + r.Message}
	}
	return plan.Event{Type: plan.Warning, Reason: spec.ReasonLivenessProbeUnknown, Message: "The liveness probe gave no answer, which changes nothing: " + r.Message}
}

// probedOf is what the liveness probe of a session has said.
func (c *Controller) probedOf(s *session) observe.Probed {
	c.mu.Lock()
	defer c.mu.Unlock()
	return s.probing.probed
}

// showProbe serves the times of the last probe and of the next one. They make no news.
// c.mu is held.
func (c *Controller) showProbe(s *session) {
	if s.status.LivenessProbe == nil {
		return
	}
	shown := *s.status.LivenessProbe
	status.TimeProbe(&shown, s.probing.probed, s.probing.dueAt)
	s.status.LivenessProbe = &shown
}

// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"k8s.io/client-go/util/workqueue"

	"github.com/muxlet/muxlet/controller/server"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec"
)

// The loop's own health is told by a pulse: a key that goes through the queue and the workers
// like every other one, and takes the controller's lock. A ticker would beat on beside a
// loop that stands still. What the loop waits for (tmux, a mount, a full disk) is not its
// illness: another daemon would wait for the same.

const (
	// pulseKey cannot be a session's name.
	pulseKey = "pulse/"
	// pulsePeriod is the time between two pulses, pulseEarly until all sessions were
	// observed once.
	pulsePeriod = 2 * time.Second
	pulseEarly  = 100 * time.Millisecond
	// pulseLate and this many calls of tmux may go by without a pulse: eight workers that
	// began to wait at the same time wait so long for a tmux that is mute.
	pulseLate      = 30 * time.Second
	pulseLateCalls = 6
	// pulseDoubtful is the age of a pulse from which on the disk is tried: a disk that is mute is
	// known as that before the pulse is late.
	pulseDoubtful = 5 * time.Second
	// passLate is after how long a pass counts as stuck: its own waits are bounded by less.
	passLate = 2 * time.Minute
	// readingLate and four resyncs may go by without a reading of the manifests, or a look
	// at tmux.
	readingLate = time.Minute
	// stateLook is the time between two looks at the state directory's file system, and
	// stateMute how long one may take.
	stateLook = 5 * time.Second
	stateMute = 10 * time.Second
)

// Health is how the loop is. It is all that watchdog, probes and metrics rest on.
type Health struct {
	// StartedAt is when this controller was made, ReadyAt when every session that it knew
	// then was observed; zero until that.
	StartedAt, ReadyAt time.Time
	// LastLook is when the last look at tmux began, zero before the first; LastLookState is
	// what it gave.
	LastLook      time.Time
	LastLookState observe.ServerState
	// Pulse is when a worker last took the pulse's key and got the controller's lock; before
	// the first time, StartedAt.
	Pulse time.Time
	// Sessions has the number of sessions for each word of the STATUS column that any has.
	Sessions map[string]int
	// Live is false when only another daemon can help; LiveReason is one sentence then.
	Live       bool
	LiveReason string
	// Ready is true while sessions are kept alive as they should be; else ReadyReason says
	// in one sentence what is wrong.
	Ready       bool
	ReadyReason string
	// Checks are what Live and Ready are made of.
	Checks []server.Check
}

// vitals are what a look at the loop has found.
type vitals struct {
	readyAt, lastLook, readAt time.Time
	state                     observe.ServerState
	tmuxProblem               string
	read                      bool
	unobserved                int
	sessions                  map[string]int
	hindered                  map[string]string
}

// pulse is the last one, with what it found.
type pulse struct {
	at time.Time
	vitals
}

// busyWith is the key that a worker has, and since when.
type busyWith struct {
	key   string
	since time.Time
}

// health is what Health is told by. Nothing in it waits for a lock.
type health struct {
	last atomic.Pointer[pulse]
	busy [workers]atomic.Pointer[busyWith]
	// roomAsked is when the look at the state directory began that has not come back, room
	// what the last one gave.
	roomAsked atomic.Pointer[time.Time]
	room      atomic.Pointer[string]
}

// pulseFirst hands out the pulse before every other key: its place in the queue would tell
// how many sessions there are.
type pulseFirst struct {
	workqueue.Queue[string]
	pulse bool
}

// Push adds a key.
func (q *pulseFirst) Push(key string) {
	if key == pulseKey {
		q.pulse = true
		return
	}
	q.Queue.Push(key)
}

// Len is the number of keys.
func (q *pulseFirst) Len() int {
	if q.pulse {
		return q.Queue.Len() + 1
	}
	return q.Queue.Len()
}

// Pop takes the next key.
func (q *pulseFirst) Pop() string {
	if q.pulse {
		q.pulse = false
		return pulseKey
	}
	return q.Queue.Pop()
}

// beat is the pulse's pass.
func (c *Controller) beat() {
	c.eyes.mu.Lock()
	c.mu.Lock()
	if c.readyAt.IsZero() && c.observedAll() {
		c.readyAt = c.Clock.Now()
	}
	v := c.examine()
	c.mu.Unlock()
	c.eyes.mu.Unlock()
	c.health.last.Store(&pulse{c.Clock.Now(), v})
	after := pulsePeriod
	if v.readyAt.IsZero() {
		after = pulseEarly
	}
	c.queue.AddAfter(pulseKey, after)
}

// observedAll says whether all that is known was observed. c.mu is held.
func (c *Controller) observedAll() bool {
	return c.read && c.instance != "" && c.server.scanned && c.unobserved() == 0
}

// unobserved counts the sessions with a record or a document in force of which nothing is
// known yet. c.mu is held.
func (c *Controller) unobserved() int {
	n := 0
	for name, s := range c.sessions {
		d := c.desired.Sessions[name]
		if !s.observed && (s.rec.UID != "" || d.Session != nil && d.Reason != spec.ReasonDuplicateName) {
			n++
		}
	}
	return n
}

// examine looks at the loop. c.eyes.mu and c.mu are held.
func (c *Controller) examine() vitals {
	v := vitals{readyAt: c.readyAt, read: c.read, readAt: c.readAt, sessions: map[string]int{}, hindered: map[string]string{}}
	if c.readyAt.IsZero() {
		v.unobserved = c.unobserved()
	}
	for word, n := range c.census {
		if n > 0 {
			v.sessions[string(word)] = n
		}
	}
	for reason, line := range c.hindrances() {
		v.hindered[reason] = line
	}
	if snap := c.eyes.current; snap != nil {
		v.lastLook, v.state = snap.began, snap.view.State
		if v.state == observe.ServerUnknown {
			v.tmuxProblem = cmp.Or(snap.view.Message, "tmux could not be asked")
		}
	}
	v.tmuxProblem = cmp.Or(v.tmuxProblem, c.server.failure)
	return v
}

// Health says how the loop is. It never waits: while somebody holds the controller's lock, it
// tells what the last pulse has found.
func (c *Controller) Health() Health {
	last := c.health.last.Load()
	v, now := last.vitals, c.Clock.Now()
	if c.eyes.mu.TryLock() {
		if c.mu.TryLock() {
			v = c.examine()
			c.mu.Unlock()
		}
		c.eyes.mu.Unlock()
	}
	h := Health{
		StartedAt: c.startedAt, ReadyAt: v.readyAt, LastLook: v.lastLook, LastLookState: v.state,
		Pulse: last.at, Sessions: maps.Clone(v.sessions),
	}
	h.Checks = c.checks(v, now, now.Sub(last.at))
	h.LiveReason, h.ReadyReason = server.Failing(h.Checks, true), server.Failing(h.Checks, false)
	h.Live, h.Ready = h.LiveReason == "", h.ReadyReason == ""
	return h
}

// checks judge what was found. Those with Live are illnesses of the daemon itself.
func (c *Controller) checks(v vitals, now time.Time, beatAge time.Duration) []server.Check {
	settings := c.settings()
	late := 4*settings.Resync + readingLate
	mute := c.muteState(now)
	return []server.Check{
		{Name: "pulse", Live: true, Problem: pulseProblem(beatAge, pulseLate+pulseLateCalls*settings.TmuxTimeout, mute != "")},
		{Name: "passes", Problem: c.stuckPass(now)},
		{Name: "manifests", Problem: manifestsProblem(v, now, late)},
		{Name: "tmux", Problem: tmuxProblem(v, now.Sub(cmp.Or(v.lastLook, c.startedAt)), late)},
		{Name: "first-look", Problem: firstLookProblem(v)},
		{Name: "state", Problem: cmp.Or(mute, v.hindered[spec.ReasonStateUnwritable])},
		{Name: "disk", Problem: c.noRoom()},
		{Name: "limits", Problem: cmp.Or(v.hindered[spec.ReasonTooManyTerminals], v.hindered[spec.ReasonTooManyOpenFiles])},
	}
}

// pulseProblem is why another daemon is needed. Workers that wait for a state directory
// which does not answer would wait in every daemon.
func pulseProblem(age, limit time.Duration, mute bool) string {
	if age <= limit || mute {
		return ""
	}
	return fmt.Sprintf("no worker of the loop was free for %s", age.Round(time.Second))
}

func manifestsProblem(v vitals, now time.Time, late time.Duration) string {
	switch age := now.Sub(v.readAt); {
	case !v.read:
		return "the manifests were not read yet"
	case age > late:
		return fmt.Sprintf("the manifests were not read for %s: look whether their directories answer", age.Round(time.Second))
	}
	return ""
}

func tmuxProblem(v vitals, age, late time.Duration) string {
	switch {
	case age > late:
		return fmt.Sprintf("tmux was not looked at for %s", age.Round(time.Second))
	case v.lastLook.IsZero():
		return "tmux was not asked yet"
	}
	return v.tmuxProblem
}

func firstLookProblem(v vitals) string {
	switch {
	case !v.readyAt.IsZero():
		return ""
	case v.unobserved == 0:
		return "not everything was looked at yet"
	}
	return fmt.Sprintf("sessions that were not looked at yet: %d", v.unobserved)
}

// stuckPass names the key that a worker has had for too long; empty when there is none.
func (c *Controller) stuckPass(now time.Time) string {
	var stuck []string
	for i := range c.health.busy {
		if b := c.health.busy[i].Load(); b != nil && now.Sub(b.since) > passLate {
			stuck = append(stuck, fmt.Sprintf("%s for %s", b.key, now.Sub(b.since).Round(time.Second)))
		}
	}
	if len(stuck) == 0 {
		return ""
	}
	slices.Sort(stuck)
	return "passes that do not come to their end: " + strings.Join(stuck, ", ")
}

// begin notes that a worker has a key, and returns what notes the end.
func (c *Controller) begin(worker int, key string) (end func()) {
	c.health.busy[worker].Store(&busyWith{key, c.Clock.Now()})
	return func() { c.health.busy[worker].Store(nil) }
}

// watchState looks at the state directory's file system until done is closed. A look may
// take for ever.
func (c *Controller) watchState(done <-chan struct{}) {
	for {
		began := c.Clock.Now()
		c.health.roomAsked.Store(&began)
		problem := ""
		if err := c.Store.Room(); err != nil {
			problem = err.Error()
		} else if c.Clock.Since(c.health.last.Load().at) > pulseDoubtful {
			// The workers may all wait for a disk whose room is known from memory. Whether it
			// takes the bytes is told by the passes; here it counts how long that lasts.
			_ = c.Store.Try()
		}
		c.health.room.Store(&problem)
		c.health.roomAsked.Store(nil)
		select {
		case <-done:
			return
		case <-c.Clock.After(stateLook):
		}
	}
}

// muteState says that the state directory does not answer; empty when it does.
func (c *Controller) muteState(now time.Time) string {
	asked := c.health.roomAsked.Load()
	if asked == nil || now.Sub(*asked) <= stateMute {
		return ""
	}
	return fmt.Sprintf("state directory %s has not answered for %s: look at its mount", c.StateDir, now.Sub(*asked).Round(time.Second))
}

func (c *Controller) noRoom() string {
	if problem := c.health.room.Load(); problem != nil {
		return *problem
	}
	return ""
}

// HealthChecks are what Health rests on.
func (c *Controller) HealthChecks() []server.Check { return c.Health().Checks }

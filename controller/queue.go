// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"

	"github.com/muxlet/muxlet/controller/metrics"
)

// The queues, as they are called in metrics.
const (
	queueKeys    = "keys"
	queueScreens = "screens"
	queueProbes  = "probes"
)

// meter measures one queue: how long its keys wait, and how long they are worked on.
// The library's own metrics would have a goroutine of each queue wake twice a second,
// also while nothing happens; here the ages are computed when somebody asks.
type meter struct {
	name    string
	clock   clock.Clock
	metrics *metrics.Metrics

	mu sync.Mutex
	// added is since when a key waits, taken since when it is worked on.
	added, taken map[string]time.Time
}

func (m *meter) add(key string) {
	m.metrics.Added(m.name)
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, waits := m.added[key]; !waits {
		m.added[key] = m.clock.Now()
	}
}

func (m *meter) take(key string) {
	now := m.clock.Now()
	m.mu.Lock()
	since, waited := m.added[key]
	delete(m.added, key)
	m.taken[key] = now
	m.mu.Unlock()
	if waited {
		m.metrics.Waited(m.name, now.Sub(since))
	}
}

func (m *meter) done(key string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.taken, key)
}

// read gives what is so now.
func (m *meter) read() metrics.Queue {
	now := m.clock.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	return metrics.Queue{Depth: len(m.added), Oldest: oldest(m.added, now), Longest: oldest(m.taken, now)}
}

func oldest(since map[string]time.Time, now time.Time) (age time.Duration) {
	for _, t := range since {
		age = max(age, now.Sub(t))
	}
	return age
}

// metered is a queue with a meter. The pulse is no work, and is not counted.
type metered struct {
	workqueue.TypedInterface[string]
	meter *meter
}

// Add is TypedInterface's. What is added after the queue was shut down is never taken.
func (q metered) Add(key string) {
	if key != pulseKey && !q.ShuttingDown() {
		q.meter.add(key)
	}
	q.TypedInterface.Add(key)
}

// Get is TypedInterface's.
func (q metered) Get() (key string, shutdown bool) {
	key, shutdown = q.TypedInterface.Get()
	if key != pulseKey && !shutdown {
		q.meter.take(key)
	}
	return key, shutdown
}

// Done is TypedInterface's.
func (q metered) Done(key string) {
	if key != pulseKey {
		q.meter.done(key)
	}
	q.TypedInterface.Done(key)
}

// newQueue makes a queue of keys; m may be nil.
func newQueue(c clock.WithTicker, m *meter) workqueue.TypedDelayingInterface[string] {
	return delaying(c, workqueue.TypedQueueConfig[string]{Clock: c}, m)
}

// newKeyQueue is the queue of the keys, in which the pulse goes first.
func newKeyQueue(c clock.WithTicker, m *meter) workqueue.TypedDelayingInterface[string] {
	return delaying(c, workqueue.TypedQueueConfig[string]{Clock: c, Queue: &pulseFirst{Queue: workqueue.DefaultQueue[string]()}}, m)
}

func delaying(c clock.WithTicker, inner workqueue.TypedQueueConfig[string], m *meter) workqueue.TypedDelayingInterface[string] {
	var keys workqueue.TypedInterface[string] = workqueue.NewTypedWithConfig(inner)
	if m != nil {
		keys = metered{keys, m}
	}
	return workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[string]{Clock: c, Queue: keys})
}

// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"k8s.io/utils/clock"

	"github.com/muxlet/muxlet/controller/metrics"
)

func TestAQueueTellsHowLongItsKeysWaitAndAreWorkedOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &meter{name: "keys", clock: clock.RealClock{}, metrics: metrics.New("test", time.Now()), added: map[string]time.Time{}, taken: map[string]time.Time{}}
		q := newQueue(clock.RealClock{}, m)
		defer q.ShutDown()
		q.Add("a")
		<-time.After(time.Second)
		q.Add("a")
		q.Add("b")
		<-time.After(time.Second)
		assert.Equal(t, metrics.Queue{Depth: 2, Oldest: 2 * time.Second}, m.read())

		key, _ := q.Get()
		assert.Equal(t, "a", key)
		<-time.After(time.Second)
		assert.Equal(t, metrics.Queue{Depth: 1, Oldest: 2 * time.Second, Longest: time.Second}, m.read())
		q.Done("a")
		key, _ = q.Get()
		q.Done(key)
		assert.Equal(t, metrics.Queue{}, m.read())

		q.AddAfter("c", time.Minute)
		<-time.After(30 * time.Second)
		assert.Equal(t, metrics.Queue{}, m.read(), "what is not due does not wait for a worker")
		<-time.After(31 * time.Second)
		assert.Equal(t, metrics.Queue{Depth: 1, Oldest: time.Second}, m.read())
	})
}

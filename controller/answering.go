// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"time"

	"github.com/muxlet/muxlet/actuate"
)

// While a worker waits for tmux it goes on to write down what people ask of its session.
// A call may take as long as tmux likes; a person who was told that a session is deleted,
// or ended for good, must not find it again because the daemon has crashed during the
// call. The worker remains the only one that writes the record, and it waits only where
// no decision rests on what the record held before.

// perform performs an action that is on disk.
func (c *Controller) perform(ctx context.Context, s *session, a actuate.Action) actuate.Outcome {
	return answering(c, s, func() actuate.Outcome { return c.actuator.Do(ctx, a) })
}

// lookOn is look, for the worker of s.
func (c *Controller) lookOn(ctx context.Context, s *session, notBefore time.Time) *snapshot {
	if snap, _, _ := c.eyes.latest(); s.rec.UID == "" || snap != nil && !snap.began.Before(notBefore) {
		return c.look(ctx, notBefore)
	}
	return answering(c, s, func() *snapshot { return c.look(ctx, notBefore) })
}

// answering waits for what tmux has to do with.
func answering[T any](c *Controller, s *session, wait func() T) T {
	done := make(chan T, 1)
	go func() { done <- wait() }()
	for {
		select {
		case result := <-done:
			return result
		case <-s.wake:
			c.applyRequests(s)
		}
	}
}

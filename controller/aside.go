// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"time"

	"k8s.io/utils/clock"
)

// asidePatience is how long an answer is waited for that a file system gives.
const asidePatience = 200 * time.Millisecond

// aside asks something that may never answer, such as a file on a dead mount: each
// question has a goroutine of its own, and while one has not come back no other is
// asked. It belongs to one goroutine at a time.
type aside[T any] struct {
	pending chan T
	began   time.Time
}

// answered gives the answer to an earlier question that has come back since.
func (a *aside[T]) answered() (answer T, ok bool) {
	select {
	case answer = <-a.pending:
		a.pending = nil
		return answer, true
	default:
		return answer, false
	}
}

// ask waits for the answer to question, or to an earlier one that has not come back,
// until the patience since it was asked is over. One that was not waited for calls
// late when it is there; the next call finds it.
func (a *aside[T]) ask(c clock.Clock, patience time.Duration, question func() T, late func()) (answer T, ok bool) {
	if a.pending == nil {
		pending, began := make(chan T, 1), c.Now()
		a.pending, a.began = pending, began
		go func() {
			answer := question()
			waited := c.Since(began) >= patience
			pending <- answer
			if waited {
				late()
			}
		}()
	}
	var over <-chan time.Time
	if left := patience - c.Since(a.began); left > 0 {
		over = c.After(left)
	} else {
		closed := make(chan time.Time)
		close(closed)
		over = closed
	}
	select {
	case answer = <-a.pending:
		a.pending = nil
		return answer, true
	default:
	}
	select {
	case answer = <-a.pending:
		a.pending = nil
		return answer, true
	case <-over:
		return answer, false
	}
}

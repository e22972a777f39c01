// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import "time"

const (
	// quiet is how long nothing may happen before a hint is given: a git checkout
	// or an editor's save is one change.
	quiet = 50 * time.Millisecond
	// atMost is how long a stream of events may delay a hint.
	atMost = 250 * time.Millisecond
)

// debounce turns bursts of events into single hints until done is closed. A
// hint that nobody took yet stands for the next one too.
func debounce(events <-chan struct{}, hints chan<- struct{}, done <-chan struct{}) {
	timer := time.NewTimer(atMost)
	timer.Stop()
	defer timer.Stop()
	var deadline time.Time // zero while nothing waits
	for {
		select {
		case <-done:
			return
		case <-events:
			now := time.Now()
			if deadline.IsZero() {
				deadline = now.Add(atMost)
			}
			timer.Reset(min(quiet, deadline.Sub(now)))
		case <-timer.C:
			deadline = time.Time{}
			offer(hints)
		}
	}
}

// offer sends without waiting into a channel of capacity 1.
func offer(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

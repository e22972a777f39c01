// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package envtest

import (
	"context"
	"slices"
	"sync"

	"github.com/muxlet/muxlet/actuate"
)

// Moment of an action.
type Moment string

// The moments at which an action can be held.
const (
	// BeforeCall: its record is on disk, and tmux was not called.
	BeforeCall Moment = "before the call"
	// AfterEffect: tmux has done it, and the call has not returned.
	AfterEffect Moment = "between the effect and the return"
)

// Moments are all of them.
var Moments = []Moment{BeforeCall, AfterEffect}

// Starting are the kinds of actions that start a client.
var Starting = []actuate.Kind{actuate.ActionCreate, actuate.ActionRespawn, actuate.ActionRespawnKill}

// Parking holds one action at a moment. Whoever carries it out waits meanwhile, as for
// a call of tmux that takes long.
type Parking struct {
	env     *Env
	reached chan actuate.Action
	release chan struct{}
	once    sync.Once
}

// Park holds the next action of the given kinds at a moment, until it is released, the
// controller is dropped, or the test ends.
func (e *Env) Park(m Moment, kinds ...actuate.Kind) *Parking {
	e.Helper()
	p := &Parking{env: e, reached: make(chan actuate.Action, 1), release: make(chan struct{})}
	e.Cleanup(p.Release)
	var parked sync.Once
	e.OnAct(func(ctx context.Context, a actuate.Action, do func() actuate.Outcome) actuate.Outcome {
		mine := false
		if slices.Contains(kinds, a.Kind) {
			parked.Do(func() { mine = true })
		}
		switch {
		case !mine:
			return do()
		case m == BeforeCall:
			p.reached <- a
			if !p.held(ctx) {
				return actuate.Outcome{Message: errCrashed.Error()}
			}
			return do()
		}
		out := do()
		p.reached <- a
		p.held(ctx)
		return out
	})
	return p
}

// held waits; it is false when the controller was dropped.
func (p *Parking) held(ctx context.Context) bool {
	select {
	case <-p.release:
		return true
	case <-ctx.Done():
		return false
	}
}

// Wait waits until an action is held, and returns it.
func (p *Parking) Wait() (held actuate.Action) {
	p.env.Helper()
	p.env.Eventually("an action is parked", func() bool {
		select {
		case held = <-p.reached:
			return true
		default:
			return false
		}
	})
	return held
}

// Release lets the action go on.
func (p *Parking) Release() { p.once.Do(func() { close(p.release) }) }

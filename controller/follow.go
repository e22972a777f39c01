// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"time"

	"k8s.io/utils/clock"

	"github.com/muxlet/muxlet/controller/screen"
	"github.com/muxlet/muxlet/controller/server"
	"github.com/muxlet/muxlet/observe"
)

const (
	// followPeriod is the time between two looks at a pane that somebody follows.
	followPeriod = 250 * time.Millisecond
	// followDepth is how much history such a look has at first.
	followDepth = 50
	// lastWordsPatience is for how many looks the saved screen of a client that has
	// ended is waited for.
	lastWordsPatience = 4
	// followShare is the part of tmux's time that all who follow take together, at
	// most: one of so many.
	followShare = 5
)

// Follow tells what a pane shows, and then what is new, until the session is
// removed, ctx ends or tell fails.
//
// The pane is looked at: a control client that lags behind crashes tmux at the
// next respawn, and a pipe whose reader is stuck hides that a client has died. One
// look at a time is under way, and while nobody follows there is none.
func (c *Controller) Follow(ctx context.Context, name string, lines int, tell func(server.LogFrame) error) error {
	f := following{Controller: c, name: name, tell: tell}
	if err := f.begin(ctx, lines); err != nil {
		return err
	}
	ticks := c.Clock.NewTicker(followPeriod)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticks.C():
		}
		if over, err := f.look(ctx); over || err != nil {
			return err
		}
	}
}

// following is one who follows a session.
type following struct {
	*Controller
	name, uid string
	tell      func(server.LogFrame) error
	follower  screen.Follower
	last      observe.Screen
	waited    int
}

func (f *following) begin(ctx context.Context, lines int) error {
	r, _, err := f.recordOf(f.name)
	if err != nil {
		return err
	}
	f.uid = r.UID
	if f.last, err = f.capture(ctx, f.name, max(lines, followDepth)); err != nil {
		return err
	}
	return f.tell(server.LogFrame{Incarnation: f.last.Incarnation, Lines: f.follower.Begin(f.last, lines)})
}

// look tells what is new since the last look. A look that is not possible, with a
// mute tmux or without a pane, is made up for by the next one.
func (f *following) look(ctx context.Context) (over bool, err error) {
	r, _, err := f.recordOf(f.name)
	if err != nil || r.UID != f.uid {
		return true, f.tell(server.LogFrame{Removed: true})
	}
	pane, err := f.paneOf(r, "")
	if err != nil {
		return false, nil
	}
	next, err := f.reach(ctx, pane)
	if err != nil || next.Incarnation < 1 {
		return false, ctx.Err()
	}
	if next.Attempt != f.last.Attempt && !f.last.Dead {
		if wait, err := f.lastWords(next); wait || err != nil {
			return false, err
		}
	}
	return false, f.step(next)
}

// reach looks at the pane, twice when the first look does not reach back to the
// last one.
func (f *following) reach(ctx context.Context, pane string) (next observe.Screen, err error) {
	err = f.looks.do(ctx, func() (err error) {
		if next, err = f.Tmux.Capture(ctx, pane, followDepth); err != nil {
			return err
		}
		if depth := f.follower.Depth(next); depth > next.Depth {
			next, err = f.Tmux.Capture(ctx, pane, min(depth+followDepth, server.MaxLogLines))
		}
		return err
	})
	return next, err
}

// lastWords tells what clients that have ended since the last look have said
// meanwhile. Their screens are saved at their ends, perhaps a moment after the
// next one has begun.
func (f *following) lastWords(next observe.Screen) (wait bool, err error) {
	saved, err := f.screens.Load(f.uid)
	known := err == nil && (saved.Attempt == f.last.Attempt || saved.Incarnation > f.last.Incarnation && saved.Incarnation < next.Incarnation)
	if !known {
		f.waited++
		return f.waited < lastWordsPatience, nil
	}
	return false, f.step(saved.Screen)
}

func (f *following) step(next observe.Screen) error {
	f.waited = 0
	news := f.follower.Step(next)
	frame := server.LogFrame{Lines: news.Lines, Gap: news.Gap}
	if next.Incarnation != f.last.Incarnation {
		frame.Incarnation = next.Incarnation
	}
	f.last = next
	f.last.Lines = nil
	if len(frame.Lines) == 0 && frame.Incarnation == 0 && !frame.Gap {
		return nil
	}
	return f.tell(frame)
}

// pace lets one at a time do something, and lets it rest afterwards for as long
// as keeps all together to their share.
type pace struct {
	clock clock.Clock
	turn  chan struct{}
}

func newPace(c clock.Clock) *pace { return &pace{c, make(chan struct{}, 1)} }

func (p *pace) do(ctx context.Context, do func() error) error {
	select {
	case p.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	began := p.clock.Now()
	err := do()
	rest := p.clock.After((followShare - 1) * p.clock.Now().Sub(began))
	go func() {
		<-rest
		<-p.turn
	}()
	return err
}

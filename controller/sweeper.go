// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/muxlet/muxlet/controller/plan"
	"github.com/muxlet/muxlet/controller/turn"
	"github.com/muxlet/muxlet/observe"
)

const (
	// sweepPeriod is the time between two looks at the turns that are pending. Without
	// one there is no look.
	sweepPeriod = time.Second
	// muteAge is how old a turn is that is failed when tmux does not answer now.
	muteAge = 4 * time.Second
	// muteLook is how long a look at tmux may go on, at least, before it does not answer:
	// a busy host is slow.
	muteLook = 5 * time.Second
	// probeAge is how old the last look at tmux is when a turn asks for another.
	probeAge = 2 * time.Second
	// tidyAfter so many turns that are over those that nobody needs are removed.
	tidyAfter = 100
)

// sweeper ends pending turns for which nothing can be done in time. It waits for no
// worker, no tmux and no disk: each save has a goroutine of its own.
type sweeper struct {
	*Controller
	mu sync.Mutex
	// saving are the turns that are being ended now; probing says that tmux is being
	// asked on behalf of a turn.
	saving  map[string]bool
	probing bool
}

// sweepTurns runs until ctx ends.
func (c *Controller) sweepTurns(ctx context.Context) {
	w := &sweeper{Controller: c, saving: map[string]bool{}}
	var saves sync.WaitGroup
	defer saves.Wait()
	for {
		var due <-chan time.Time
		if after := w.sweep(ctx, &saves); after > 0 {
			due = c.Clock.After(after)
		}
		select {
		case <-ctx.Done():
			return
		case <-c.book.changed:
		case <-due:
		}
	}
}

// sweep looks at each pending turn once, and returns when to look again; 0 when only a
// change matters.
func (w *sweeper) sweep(ctx context.Context, saves *sync.WaitGroup) (again time.Duration) {
	if w.endedTurns.Load() >= tidyAfter {
		w.endedTurns.Store(0)
		saves.Go(func() {
			if err := w.TurnStore.Tidy(); err != nil {
				w.Log.Error(err, "Turns were not tidied")
			}
		})
	}
	pending, waiting := w.book.pending()
	now := w.now()
	for i, t := range pending {
		next, over := plan.Expire(t, waiting[i], now)
		if !over {
			if message := w.unavailable(t, now); message != "" {
				next, over = plan.Unavailable(t, message, now), true
			}
		}
		if over {
			w.end(saves, next)
			continue
		}
		again = sweepPeriod
		if !t.Deadline.IsZero() {
			again = min(again, max(t.Deadline.Sub(now), time.Millisecond))
		}
		w.probe(ctx, saves, t, now)
	}
	return again
}

// unavailable is why nothing can be done for a turn because tmux does not answer; empty
// when it does, or may yet.
func (w *sweeper) unavailable(t turn.Turn, now time.Time) string {
	view, began, mute := w.eyes.mute()
	grace := w.policy().UnknownGrace
	if t.Initial {
		// It ends with its client.
		return ""
	}
	unknown := view != nil && view.State == observe.ServerUnknown
	// A server that dies is not known for a moment, and one that has not answered before
	// may do so now: each turn has a look of its own.
	settled := mute >= sweepPeriod && (mute >= grace && !began.Before(t.CreatedAt) || now.Sub(t.CreatedAt) >= muteAge)
	switch {
	case unknown && settled:
		return view.Message
	case !unknown && mute >= max(grace, muteLook):
		return fmt.Sprintf("tmux has not answered for %s", mute.Round(time.Second))
	}
	return ""
}

// mute is the last view, when the look began that gave it, and for how long tmux has not
// answered: since it was first not known, or since a look began that has not come back.
func (e *eyes) mute() (view *observe.ServerView, began time.Time, mute time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := e.Clock.Now()
	if e.current != nil {
		view, began = &e.current.view, e.current.began
	}
	if !e.unknownSince.IsZero() {
		mute = now.Sub(e.unknownSince)
	}
	if e.looking != nil {
		mute = max(mute, now.Sub(e.looking.began))
	}
	return view, began, mute
}

// probe asks tmux for a turn whose session's worker has not done so for a while: it may
// be waiting for tmux in a call that is no look.
func (w *sweeper) probe(ctx context.Context, running *sync.WaitGroup, t turn.Turn, now time.Time) {
	snap, _, _ := w.eyes.latest()
	age := now.Sub(t.CreatedAt)
	if age < sweepPeriod || snap != nil && w.Clock.Now().Sub(snap.began) < max(probeAge, w.settings().Policy.UnknownGrace/2) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.probing {
		return
	}
	w.probing = true
	running.Go(func() {
		w.look(ctx, w.Clock.Now())
		w.mu.Lock()
		w.probing = false
		w.mu.Unlock()
	})
}

// end saves how a turn has ended, beside everything else.
func (w *sweeper) end(saves *sync.WaitGroup, next turn.Turn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.saving[next.Name] {
		return
	}
	w.saving[next.Name] = true
	saves.Go(func() {
		err := w.updateTurn(next)
		if err != nil && !outdated(err) {
			w.Log.Error(err, "Turn was not saved", "turn", next.Name)
			// Nobody is told of a change that did not come about.
			<-w.Clock.After(sweepPeriod)
		}
		w.mu.Lock()
		delete(w.saving, next.Name)
		w.mu.Unlock()
		w.book.poke()
		w.queue.Add(next.Session)
	})
}

// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/muxlet/muxlet/controller/server"
	"github.com/muxlet/muxlet/spec"
)

// waitRoom waits for objects of one kind. Everything in it belongs to run.
type waitRoom struct {
	*waitOptions
	client *server.Client
	kind   resourceKind
	goal   *goal
	names  []string
	// ends get one error for each name, nil once the goal is reached.
	ends map[string]chan error
	open map[string]*waited
	// news are what the watch tells; ended is why it tells nothing more.
	news  chan func()
	ended chan error
	// listed is set once it is known what is there, lost while the daemon does not
	// answer, and gap once it has not.
	listed, lost, gap bool
	// waited is how long this has gone on, while the daemon answers.
	waited time.Duration
}

// waited is one object that is waited for.
type waited struct {
	// object is as it was told last; nil when there is none.
	object server.Object
	// stuck is why the goal cannot be reached as things are, since so long. What is seen
	// may for a moment be from before it was asked to change.
	stuck error
	since time.Duration
}

func (o *waitOptions) newWaitRoom(client *server.Client, kind resourceKind, w *goal, names []string) *waitRoom {
	room := &waitRoom{
		waitOptions: o, client: client, kind: kind, goal: w, names: names,
		ends: map[string]chan error{}, open: map[string]*waited{}, news: make(chan func()), ended: make(chan error, 1),
	}
	for _, name := range names {
		room.ends[name], room.open[name] = make(chan error, 1), &waited{}
	}
	return room
}

// run returns when each of them has its end.
func (r *waitRoom) run(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { r.ended <- r.follow(ctx) }()
	ticker := time.NewTicker(r.pollPeriod)
	defer ticker.Stop()
	for len(r.open) > 0 {
		select {
		case tell := <-r.news:
			tell()
		case <-ticker.C:
			r.pass()
		case err := <-r.ended:
			r.giveUp(ctx, err)
		case <-ctx.Done():
			r.giveUp(ctx, ctx.Err())
		}
	}
}

// follow tells run of the objects until ctx is done.
func (r *waitRoom) follow(ctx context.Context) error {
	selector := nameSelector("metadata.name", r.names)
	switch r.kind {
	case kindTurns:
		return r.client.FollowTurns(ctx, "", selector, follower[spec.Turn](ctx, r))
	case kindClasses:
		return r.client.FollowClasses(ctx, "", selector, follower[spec.ClientClass](ctx, r))
	case kindSessions, kindEvents:
	}
	return r.client.FollowSessions(ctx, "", selector, follower[spec.Session](ctx, r))
}

// objectOfKind is T with the methods of its pointer.
type objectOfKind[T any] interface {
	*T
	server.Object
}

func follower[T any, P objectOfKind[T]](ctx context.Context, r *waitRoom) server.Follower[T] {
	return server.Follower[T]{
		Listed: func(all []T) error {
			return r.hand(ctx, func() {
				for i := range all {
					r.take(P(&all[i]).GetName(), P(&all[i]))
				}
				r.begin()
			})
		},
		Changed: func(kind watch.EventType, object *T) error {
			now := server.Object(P(object))
			return r.hand(ctx, func() {
				if kind == watch.Deleted {
					r.take(now.GetName(), nil)
					return
				}
				r.take(now.GetName(), now)
			})
		},
		Lost: func(err error) { _ = r.hand(ctx, func() { r.lost, r.gap = true, true; r.globals.lost(err) }) },
		Back: func() { _ = r.hand(ctx, func() { r.lost = false; r.back() }) },
	}
}

// hand gives run something to do, in the order in which it comes.
func (r *waitRoom) hand(ctx context.Context, tell func()) error {
	select {
	case r.news <- tell:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// begin judges what is not there, once it is known what is. A single look ends with it.
func (r *waitRoom) begin() {
	r.listed = true
	for _, name := range r.names {
		w := r.open[name]
		if w == nil {
			continue
		}
		if w.object == nil {
			r.take(name, nil)
		}
		switch w = r.open[name]; {
		case w == nil || r.timeout != 0:
		case w.stuck != nil:
			r.end(name, w.stuck)
		default:
			r.end(name, r.unfinished(w, name, "was not there at the one look"))
		}
	}
}

// take judges an object as it is now; nil when it is gone.
func (r *waitRoom) take(name string, now server.Object) {
	w := r.open[name]
	if w == nil {
		return
	}
	w.object = now
	reached, err := r.judge(w)
	switch {
	case err != nil:
		r.end(name, err)
	case reached:
		r.end(name, nil)
	default:
		if stuck := r.whyNot(w, name); stuck == nil || w.stuck == nil {
			w.stuck, w.since = stuck, 0
		} else {
			w.stuck = stuck
		}
	}
}

// judge says whether the goal is reached. After a gap what is not listed at once may be
// listed in a moment.
func (r *waitRoom) judge(w *waited) (bool, error) {
	if w.object == nil {
		return r.goal.gone && !r.gap, nil
	}
	plain, err := asJSON(w.object)
	if err != nil {
		return false, err
	}
	return r.goal.met(plain)
}

// pass lets time go by for those that are stuck.
func (r *waitRoom) pass() {
	if r.lost || !r.listed {
		return
	}
	if r.waited += r.pollPeriod; r.waited >= r.notice && r.waited-r.pollPeriod < r.notice {
		r.tellWaiting()
	}
	for name, w := range r.open {
		gone := w.object == nil && r.goal.gone
		if w.stuck == nil && !gone {
			continue
		}
		if w.since += r.pollPeriod; w.since >= r.patience {
			r.end(name, w.stuck)
		}
	}
}

// tellWaiting tells a person, once, what is waited for.
func (r *waitRoom) tellWaiting() {
	var lines []string
	for _, name := range r.names {
		if w := r.open[name]; w != nil {
			lines = append(lines, fmt.Sprintf("Waiting for %s of %s %q: %s.", r.goal.words, r.what(), name, w.words()))
		}
	}
	r.bounded(lines, "")
}

// end gives one of them its end.
func (r *waitRoom) end(name string, err error) {
	r.ends[name] <- err
	delete(r.open, name)
}

// giveUp ends all that are left: the watch, or the time, is over.
func (r *waitRoom) giveUp(ctx context.Context, err error) {
	for name, w := range r.open {
		why := err
		switch late := errors.Is(ctx.Err(), context.DeadlineExceeded); {
		case late:
			why = r.unfinished(w, name, fmt.Sprintf("was not seen within %s", r.timeout))
		case ctx.Err() != nil && r.listed:
			why = r.unfinished(w, name, "was not waited for any longer")
		case ctx.Err() != nil:
			why = ctx.Err() // nothing was answered yet
		}
		r.end(name, why)
	}
}

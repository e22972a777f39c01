// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"slices"
	"sync"

	"github.com/muxlet/muxlet/controller/plan"
)

// budget limits the starts in flight. A key holds its place from the decision to
// start until its attempt has come to an end. Keys that found no place are woken
// in the order in which they came.
type budget struct {
	mu      sync.Mutex
	limit   int
	holders map[string]bool
	waiting []string
}

func newBudget(limit int) *budget {
	return &budget{limit: max(limit, 1), holders: map[string]bool{}}
}

// reserve gives the key a place if there is one.
func (b *budget) reserve(key string) plan.Grant {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.holders[key] && len(b.holders) >= b.limit {
		return plan.GrantNone
	}
	b.holders[key] = true
	return plan.GrantStart
}

// hold takes a place beyond the limit for an attempt that is in flight already.
func (b *budget) hold(key string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.holders[key] = true
}

// resize changes the limit and names the keys that there is a place for now. Those
// that hold one keep it.
func (b *budget) resize(limit int) (next []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.limit = max(limit, 1)
	return b.next()
}

// settle is told after each pass of a key whether its attempt is in flight and
// whether it waits for a place. It names the keys that there is a place for now;
// each of them settles in turn, so that a place which it does not want goes on.
func (b *budget) settle(key string, inFlight, waits bool) (next []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !inFlight {
		delete(b.holders, key)
	}
	at := slices.Index(b.waiting, key)
	switch {
	case waits && at < 0:
		b.waiting = append(b.waiting, key)
	case !waits && at >= 0:
		b.waiting = slices.Delete(b.waiting, at, at+1)
	}
	return b.next()
}

// next are the keys that there is a place for. b.mu is held.
func (b *budget) next() []string {
	n := min(max(b.limit-len(b.holders), 0), len(b.waiting))
	return slices.Clone(b.waiting[:n])
}

// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"sync"

	"github.com/muxlet/muxlet/controller/plan"
)

// budget limits the starts in flight. A key holds its place from the decision to
// start until its attempt has come to an end.
type budget struct {
	mu      sync.Mutex
	limit   int
	holders map[string]bool
	waiting map[string]bool
}

func newBudget(limit int) *budget {
	return &budget{limit: max(limit, 1), holders: map[string]bool{}, waiting: map[string]bool{}}
}

// reserve gives the key a place if there is one.
func (b *budget) reserve(key string) plan.Grant {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.holders[key] && len(b.holders) >= b.limit {
		b.waiting[key] = true
		return plan.GrantNone
	}
	b.holders[key] = true
	delete(b.waiting, key)
	return plan.GrantStart
}

// hold takes a place beyond the limit for an attempt that is in flight already.
func (b *budget) hold(key string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.holders[key] = true
}

// release gives the place back and names one key that waits for it.
func (b *budget) release(key string) (next string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.waiting, key)
	if !b.holders[key] {
		return ""
	}
	delete(b.holders, key)
	for next := range b.waiting {
		delete(b.waiting, next)
		return next
	}
	return ""
}

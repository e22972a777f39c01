// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/muxlet/muxlet/controller/plan"
	"github.com/muxlet/muxlet/controller/server"
	"github.com/muxlet/muxlet/controller/status"
	"github.com/muxlet/muxlet/controller/turn"
	"github.com/muxlet/muxlet/spec"
)

// turnBook is what is known of turns without asking their store: who looks at it waits
// for no disk. The store tells it each change, and it passes on what is served.
type turnBook struct {
	journal *server.Journal
	// ended is told the outcome of each turn that ends; it must not wait.
	ended func(spec.TurnPhase)

	mu sync.Mutex
	// unfinished has the turns of each session that are not over, by its uid and their
	// names; served is what is served of each turn, by its name, and keys are those of
	// each session's in the journal, by their names. Nobody changes what is served. Those
	// that are over are many, and are not looked through.
	unfinished map[string]map[string]turn.Turn
	served     map[string]*spec.Turn
	keys       map[string]map[string]string
	// handed is when a turn of a session was last handed over.
	handed map[string]time.Time
	// waiting is why the first pending turn of a session waits, labels are the session's.
	waiting map[string]plan.Verdict
	labels  map[string]map[string]string
	// changed gets a word when a pending turn has come or gone.
	changed chan struct{}
}

func newTurnBook(journal *server.Journal) *turnBook {
	return &turnBook{
		journal: journal, ended: func(spec.TurnPhase) {}, unfinished: map[string]map[string]turn.Turn{}, served: map[string]*spec.Turn{}, keys: map[string]map[string]string{},
		handed:  map[string]time.Time{},
		waiting: map[string]plan.Verdict{}, labels: map[string]map[string]string{}, changed: make(chan struct{}, 1),
	}
}

// turnKey orders turns by session and number.
func turnKey(t turn.Turn) string { return fmt.Sprintf("%s/%020d", t.Session, t.Number) }

// put takes a turn in as it is on disk now.
func (b *turnBook) put(t turn.Turn) {
	b.mu.Lock()
	defer b.mu.Unlock()
	before := b.first(t.SessionUID)
	_, wasOpen := b.unfinished[t.SessionUID][t.Name]
	if t.Phase == turn.Over {
		b.finish(t)
	} else {
		entryOf(b.unfinished, t.SessionUID)[t.Name] = t
	}
	entryOf(b.keys, t.SessionUID)[t.Name] = turnKey(t)
	if t.HandedAt.After(b.handed[t.SessionUID]) {
		b.handed[t.SessionUID] = t.HandedAt
	}
	b.publish(t)
	if wasOpen && t.Phase == turn.Over {
		b.ended(spec.DisplayTurnStatus(b.served[t.Name]))
	}
	b.moveOn(t.SessionUID, before)
}

// entryOf is what m has for key, made if need be.
func entryOf[V any](m map[string]map[string]V, key string) map[string]V {
	if m[key] == nil {
		m[key] = map[string]V{}
	}
	return m[key]
}

// finish forgets that a turn is not over. b.mu is held.
func (b *turnBook) finish(t turn.Turn) {
	delete(b.unfinished[t.SessionUID], t.Name)
	if len(b.unfinished[t.SessionUID]) == 0 {
		delete(b.unfinished, t.SessionUID)
	}
}

// gone forgets a turn.
func (b *turnBook) gone(t turn.Turn) {
	b.mu.Lock()
	defer b.mu.Unlock()
	before := b.first(t.SessionUID)
	b.finish(t)
	delete(b.served, t.Name)
	delete(b.keys[t.SessionUID], t.Name)
	b.journal.Delete(turnKey(t))
	b.moveOn(t.SessionUID, before)
	if len(b.keys[t.SessionUID]) == 0 {
		delete(b.keys, t.SessionUID)
		delete(b.waiting, t.SessionUID)
		delete(b.handed, t.SessionUID)
	}
}

// moveOn publishes the turns whose place in the queue is another one than before.
// b.mu is held.
func (b *turnBook) moveOn(uid, before string) {
	after := b.first(uid)
	if after != before {
		delete(b.waiting, uid)
		for _, name := range []string{before, after} {
			if t, ok := b.unfinished[uid][name]; ok && t.Phase == turn.Pending {
				b.publish(t)
			}
		}
	}
	b.poke()
}

// poke gives a word to who waits for changes.
func (b *turnBook) poke() {
	select {
	case b.changed <- struct{}{}:
	default:
	}
}

// wait says why the first pending turn of a session waits.
func (b *turnBook) wait(uid string, waiting plan.Verdict) {
	b.mu.Lock()
	defer b.mu.Unlock()
	waiting.Rule = ""
	first, ok := b.unfinished[uid][b.first(uid)]
	if !ok || b.waiting[uid] == waiting {
		return
	}
	b.waiting[uid] = waiting
	b.publish(first)
}

// waits is why the first pending turn of a session waits, as far as that is known.
func (b *turnBook) waits(uid string) plan.Verdict {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.waiting[uid]
}

// label says which labels a session has.
func (b *turnBook) label(uid string, labels map[string]string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if maps.Equal(b.labels[uid], labels) {
		return
	}
	b.labels[uid] = labels
	for name, key := range b.keys[uid] {
		o := b.served[name].DeepCopy()
		o.Labels = maps.Clone(labels)
		b.journal.Put(key, o)
		b.served[name] = o
	}
}

// forget drops what is known of a session without turns.
func (b *turnBook) forget(uid string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.labels, uid)
}

// publish passes a turn on as it is served. b.mu is held.
func (b *turnBook) publish(t turn.Turn) {
	o := status.TurnObject(t, b.waitingOf(t), b.labels[t.SessionUID])
	b.journal.Put(turnKey(t), o)
	b.served[t.Name] = o
}

// waitingOf is why a turn waits. b.mu is held.
func (b *turnBook) waitingOf(t turn.Turn) plan.Verdict {
	if t.Phase != turn.Pending {
		return plan.Verdict{}
	}
	if b.first(t.SessionUID) != t.Name {
		return plan.Verdict{Reason: spec.ReasonQueued, Message: "it waits for the turns before it"}
	}
	return b.waiting[t.SessionUID]
}

// first is the name of the pending turn of a session that is to be handed over next;
// empty for none. b.mu is held.
func (b *turnBook) first(uid string) string {
	var first turn.Turn
	for _, t := range b.unfinished[uid] {
		if t.Phase == turn.Pending && (first.Name == "" || before(t, first)) {
			first = t
		}
	}
	return first.Name
}

// before says which of two turns that are not over comes first: the one that is under
// way, then those that a conversation begins with, then by number.
func before(a, b turn.Turn) bool {
	if underWay := a.Phase != turn.Pending; underWay != (b.Phase != turn.Pending) {
		return underWay
	}
	if a.Initial != b.Initial {
		return a.Initial
	}
	return a.Number < b.Number
}

// pending are all turns that are pending, and why the first of each session waits.
func (b *turnBook) pending() (turns []turn.Turn, waiting []plan.Verdict) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, of := range b.unfinished {
		for _, t := range of {
			if t.Phase == turn.Pending {
				turns = append(turns, t)
			}
		}
	}
	slices.SortFunc(turns, func(x, y turn.Turn) int { return cmp.Compare(turnKey(x), turnKey(y)) })
	for _, t := range turns {
		waiting = append(waiting, b.waitingOf(t))
	}
	return turns, waiting
}

// list is what is served, and the resourceVersion that it is the state of.
func (b *turnBook) list() ([]*spec.Turn, string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	objects, version := b.journal.List()
	out := make([]*spec.Turn, 0, len(objects))
	for _, o := range objects {
		if t, ok := o.(*spec.Turn); ok {
			out = append(out, t)
		}
	}
	return out, version
}

// find is what is served of one turn.
func (b *turnBook) find(name string) (served *spec.Turn, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	served, ok = b.served[name]
	return served, ok
}

// endedSince is the name of the last turn of a session that was completed since a time;
// empty when there is none.
func (b *turnBook) endedSince(uid string, since time.Time) (name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var last time.Time
	for candidate := range b.keys[uid] {
		t := b.served[candidate]
		ended := t.Status.FinishedAt
		if ended == nil || ended.Time.Before(since) || ended.Time.Before(last) || !meta.IsStatusConditionTrue(t.Status.Conditions, spec.ConditionCompleted) {
			continue
		}
		name, last = candidate, ended.Time
	}
	return name
}

// unfinishedCount is how many turns are not over.
func (b *turnBook) unfinishedCount() (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, turns := range b.unfinished {
		n += len(turns)
	}
	return n
}

// open are the turns of a session that are not over, in the order of their hand-over.
func (b *turnBook) open(uid string) (open []turn.Turn) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, t := range b.unfinished[uid] {
		open = append(open, t)
	}
	slices.SortFunc(open, func(x, y turn.Turn) int {
		if before(x, y) {
			return -1
		}
		return 1
	})
	return open
}

// inHand says whether a client has a turn of the session that is not over.
func (b *turnBook) inHand(uid string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, t := range b.unfinished[uid] {
		if t.Phase == turn.Delivering || t.Phase == turn.Delivered {
			return true
		}
	}
	return false
}

// last says whether no later turn of the session was handed over.
func (b *turnBook) last(t turn.Turn) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return !b.handed[t.SessionUID].After(t.HandedAt)
}

// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// The changes that are remembered. A watch that falls further behind is ended,
// and its client lists again.
const (
	sessionChanges = 1024
	classChanges   = 128
	turnChanges    = 2048
	eventChanges   = 1024
)

// Object is what a Journal holds. Nobody changes one that was given to it.
type Object interface {
	metav1.Object
	runtime.Object
}

// Journals are what is served and watched: one journal for each kind. They share
// one sequence of resourceVersions.
type Journals struct {
	Sessions, Classes, Events, Turns *Journal
}

// NewJournals starts a sequence that no other run of the daemon shares, even one
// on a host whose clock starts at the same second: now is when the daemon
// started, random is any number.
func NewJournals(now time.Time, random uint32) *Journals {
	return newJournals(now, random, sessionChanges, eventChanges)
}

func newJournals(now time.Time, random uint32, sessions, events int) *Journals {
	// Seconds above, 31 random bits below: rising from run to run while the clock
	// does, and within the int64 that clients may read it into.
	base := uint64(max(now.Unix(), 1))<<31 | uint64(random>>1)
	sequence := &sequence{base: base}
	sequence.last.Store(base)
	return &Journals{
		Sessions: newJournal(sequence, sessions),
		Classes:  newJournal(sequence, classChanges),
		Events:   newJournal(sequence, events),
		Turns:    newJournal(sequence, turnChanges),
	}
}

// sequence gives the revisions of one run, rising by one with each change of any
// kind.
type sequence struct {
	base uint64
	last atomic.Uint64
}

// change of one object: from nothing when before is nil, to nothing when after is.
type change struct {
	revision      uint64
	before, after Object
}

// Journal holds the objects of one kind as they are served, and the last changes
// of them. To write costs the same whether anybody watches or not, and never
// waits for one who does: a watch is a place in the log. It is safe for
// concurrent use.
type Journal struct {
	sequence *sequence
	limit    int

	mu      sync.Mutex
	objects map[string]Object
	// log is a ring once it has limit changes; oldest is where it begins.
	log    []change
	oldest int
	// forgotten is the revision of the last change that fell out of the log.
	forgotten uint64
	// wake is closed at the next change; nil while nobody waits.
	wake chan struct{}
}

func newJournal(s *sequence, limit int) *Journal {
	return &Journal{sequence: s, limit: limit, objects: map[string]Object{}, forgotten: s.base}
}

// Put makes object the one that is served under key and gives it its
// resourceVersion. It belongs to the journal from then on.
func (j *Journal) Put(key string, object Object) {
	j.mu.Lock()
	defer j.mu.Unlock()
	revision := j.sequence.last.Add(1)
	object.SetResourceVersion(format(revision))
	j.append(change{revision, j.objects[key], object})
	j.objects[key] = object
}

// Delete ends what is served under key.
func (j *Journal) Delete(key string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	before, ok := j.objects[key]
	if !ok {
		return
	}
	delete(j.objects, key)
	j.append(change{j.sequence.last.Add(1), before, nil})
}

func (j *Journal) append(c change) {
	if len(j.log) < j.limit {
		j.log = append(j.log, c)
	} else {
		j.forgotten = j.log[j.oldest].revision
		j.log[j.oldest] = c
		j.oldest = (j.oldest + 1) % j.limit
	}
	if j.wake != nil {
		close(j.wake)
		j.wake = nil
	}
}

// List is everything that is served, ordered by key, and the resourceVersion
// that it is the state of.
func (j *Journal) List() ([]Object, string) {
	objects, at := j.list()
	return objects, format(at)
}

func (j *Journal) list() ([]Object, uint64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	objects := make([]Object, 0, len(j.objects))
	for _, key := range slices.Sorted(maps.Keys(j.objects)) {
		objects = append(objects, j.objects[key])
	}
	return objects, j.sequence.last.Load()
}

// Revision is the resourceVersion of the present state.
func (j *Journal) Revision() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return format(j.sequence.last.Load())
}

// since gives the changes after a revision, at most as many as there is room for,
// and the revision up to which they are complete. When there are none, wait is
// closed at the next one. The error is 410 Expired when some are forgotten, or
// when the revision is not of this run.
func (j *Journal) since(revision uint64, room []change) (changes []change, upTo uint64, wait <-chan struct{}, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	now := j.sequence.last.Load()
	if revision < j.forgotten || revision > now {
		return nil, revision, nil, expired(revision, j.forgotten)
	}
	first := j.search(revision)
	if first == len(j.log) {
		if j.wake == nil {
			j.wake = make(chan struct{})
		}
		return nil, now, j.wake, nil
	}
	changes = room[:0]
	for i := first; i < len(j.log) && len(changes) < cap(room); i++ {
		changes = append(changes, j.at(i))
	}
	return changes, changes[len(changes)-1].revision, nil, nil
}

// reaches is nil when every change after the revision is in the log.
func (j *Journal) reaches(revision uint64) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if revision < j.forgotten || revision > j.sequence.last.Load() {
		return expired(revision, j.forgotten)
	}
	return nil
}

// knows is nil for a revision that was given out in this run, however long ago.
func (j *Journal) knows(revision uint64) error {
	if revision < j.sequence.base || revision > j.sequence.last.Load() {
		return expired(revision, j.sequence.base)
	}
	return nil
}

// search finds the first change after a revision.
func (j *Journal) search(revision uint64) int {
	low, high := 0, len(j.log)
	for low < high {
		middle := (low + high) / 2
		if j.at(middle).revision <= revision {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return low
}

func (j *Journal) at(i int) change { return j.log[(j.oldest+i)%len(j.log)] }

func format(revision uint64) string { return strconv.FormatUint(revision, 10) }

func parseRevision(text string) (uint64, error) {
	revision, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, badRequest("resourceVersion is %q: it must be one that a list or an object has", text)
	}
	return revision, nil
}

// expired is what Kubernetes answers for a resourceVersion that is too old, or
// of another run of the daemon.
func expired(revision, oldest uint64) error {
	return NewError(metav1.StatusReasonExpired, "", fmt.Sprintf("too old resource version: %d (%d): list again, and watch from there", revision, oldest))
}

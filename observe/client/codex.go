// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"path"
	"slices"
	"strings"

	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec"
)

// lockSuffix ends the name of the file on which Codex holds a flock while it has a
// thread, from its start on: thread-writer-locks/<thread>.lock. The file stays when
// Codex ends, the lock does not (measured on 0.171.0).
const lockSuffix = ".lock"

func locksOf(ref observe.ConversationRef) string {
	return path.Join(ref.ConfigDirectory, "thread-writer-locks")
}

// codexHolder is the process that holds the thread's lock. The lock is not tried:
// whoever tries it has it for a moment, and a client that starts then is refused.
func (e *Eyes) codexHolder(ref observe.ConversationRef) int {
	info, err := e.files().Stat(path.Join(locksOf(ref), ref.ID+lockSuffix))
	if err != nil {
		return 0
	}
	for _, l := range heldLocks() {
		if l.on(info) {
			return l.pid
		}
	}
	return 0
}

// thread is one that a client holds.
type thread struct {
	id string
	// rollout is the path of its open rollout; empty when it has none: its first turn
	// is still to come.
	rollout string
	last    turn
}

// codexFiles tells the thread of the client and what its rollout says.
func (e *Eyes) codexFiles(ref observe.ConversationRef, client observe.Process) observe.Files {
	threads := heldThreads(locksOf(ref), client)
	for i := range threads {
		if threads[i].rollout != "" {
			threads[i].last = e.lastTurn(threads[i].rollout)
		}
	}
	chosen, ok := chooseThread(threads, ref.ID)
	if !ok {
		return observe.Files{Activity: spec.ActivityUnknown}
	}
	f := chosen.last.files()
	f.Conversation = chosen.id
	return f
}

// chooseThread finds the conversation among the threads that a client holds. After
// /new it keeps the lock of the old one, too, and after the first turn in the new
// one both rollouts are open (measured on 0.171.0): the conversation is the one that
// had a turn last. One that the client has reported and that had no turn yet is not
// given up for an older one. Where nothing tells, none is chosen.
func chooseThread(threads []thread, known string) (thread, bool) {
	threads = slices.DeleteFunc(slices.Clone(threads), func(t thread) bool { return t.last.subordinate })
	if len(threads) == 1 {
		return threads[0], true
	}
	var latest thread
	for _, t := range threads {
		if t.id == known && t.rollout == "" {
			return t, true
		}
		if t.last.startedAt.After(latest.last.startedAt) {
			latest = t
		}
	}
	return latest, latest.id != ""
}

// threadOf returns the thread whose lock or rollout a path names.
func threadOf(locks, name string) (id string, lock bool) {
	base := path.Base(name)
	if id, ok := strings.CutSuffix(base, lockSuffix); ok && path.Dir(name) == locks {
		return id, true
	}
	stem, ok := strings.CutSuffix(base, ".jsonl")
	// rollout-2026-11-29T21-33-20-<thread>.jsonl: the thread's id has dashes, too.
	if !ok || !strings.HasPrefix(stem, rolloutPrefix) || len(stem) <= len(rolloutPrefix)+len(rolloutTime) {
		return "", false
	}
	return stem[len(rolloutPrefix)+len(rolloutTime):], false
}

const (
	rolloutPrefix = "rollout-"
	rolloutTime   = "2006-01-02T15-04-05-"
)

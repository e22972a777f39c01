// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/utils/clock"

	"github.com/muxlet/muxlet/controller/metrics"
)

// blockBytes is the unit in which the system counts what a file takes.
const blockBytes = 512

// stateKinds are the directories of the state, each a kind. Worktrees are a person's, and
// may be larger than everything else: they are not looked at.
var stateKinds = map[string]bool{
	"records": true, "receipts": true, "turns": true, "reports": true, "events": true, "screens": true, "archive": true, "hooks": true,
	"backup": true, "quarantine": true,
}

// otherKind is all else, files beside the directories above all.
const otherKind = "other"

// usageByKind is what the state takes on disk, by kind. What cannot be read counts as
// nothing.
func usageByKind(stateDir string) map[string]metrics.Usage {
	found := map[string]metrics.Usage{otherKind: {}}
	for kind := range stateKinds {
		found[kind] = usage(filepath.Join(stateDir, kind), "")
	}
	entries, err := os.ReadDir(stateDir)
	if err != nil {
		return found
	}
	for _, e := range entries {
		switch name := e.Name(); {
		case stateKinds[name] || name == "worktrees" || name == "run":
		default:
			found[otherKind] = sum(found[otherKind], usage(filepath.Join(stateDir, name), ""))
		}
	}
	return found
}

// usage is what the files below a path with the given suffix take.
func usage(path, suffix string) (u metrics.Usage) {
	_ = filepath.WalkDir(path, func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !strings.HasSuffix(name, suffix) {
			return nil
		}
		var st unix.Stat_t
		if unix.Lstat(name, &st) == nil {
			u = sum(u, metrics.Usage{Files: 1, Bytes: st.Blocks * blockBytes})
		}
		return nil
	})
	return u
}

func sum(a, b metrics.Usage) metrics.Usage {
	return metrics.Usage{Files: a.Files + b.Files, Bytes: a.Bytes + b.Bytes}
}

// rarely keeps the answer to a question that costs something, and whose answer may
// never come. It may be asked by several goroutines at once.
type rarely[T any] struct {
	mu     sync.Mutex
	answer T
	// due is when to ask anew.
	due time.Time
	// pending is closed when the question that is under way is answered; nil when none is.
	pending chan struct{}
}

// get gives the last answer. It asks anew when that is period old, and older than share
// times what the answer took; and waits for a new answer for askPatience at most.
func (r *rarely[T]) get(c clock.Clock, period time.Duration, share int, question func() T) T {
	r.mu.Lock()
	if r.pending == nil && !c.Now().Before(r.due) {
		r.pending = make(chan struct{})
		go r.ask(c, period, share, question)
	}
	pending := r.pending
	r.mu.Unlock()
	if pending != nil {
		select {
		case <-pending:
		case <-c.After(askPatience):
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.answer
}

func (r *rarely[T]) ask(c clock.Clock, period time.Duration, share int, question func() T) {
	began := c.Now()
	answer := question()
	now := c.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer, r.due = answer, now.Add(max(period, now.Sub(began)*time.Duration(share)))
	close(r.pending)
	r.pending = nil
}

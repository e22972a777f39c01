// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// first is a client's first instruction, as its pipe told of it.
type first struct {
	pid int
	at  time.Time
	// count of the clients that this session has had.
	count int
}

// journal is told by each client of a world that it runs. A client that could not
// write would wait: the pipe is open for reading as long as the journal is.
type journal struct {
	path string
	file *os.File
	mu   sync.Mutex
	last map[string]first
	// changed is closed and made anew with each entry.
	changed chan struct{}
}

func openJournal(path string) (*journal, error) {
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		return nil, fmt.Errorf("make pipe: %w", err)
	}
	// Open for writing too: there is no end of file between two clients.
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	j := &journal{path: path, file: file, last: map[string]first{}, changed: make(chan struct{})}
	go j.read()
	return j, nil
}

func (j *journal) close() error { return j.file.Close() }

func (j *journal) read() {
	lines := bufio.NewScanner(j.file)
	for lines.Scan() {
		at := time.Now()
		name, number, _ := strings.Cut(lines.Text(), " ")
		pid, err := strconv.Atoi(number)
		if err != nil {
			continue
		}
		j.mu.Lock()
		j.last[name] = first{pid: pid, at: at, count: j.last[name].count + 1}
		close(j.changed)
		j.changed = make(chan struct{})
		j.mu.Unlock()
	}
}

// of is the last client of a session.
func (j *journal) of(name string) first {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.last[name]
}

// all are the last clients of all sessions.
func (j *journal) all() map[string]first {
	j.mu.Lock()
	defer j.mu.Unlock()
	out := make(map[string]first, len(j.last))
	for name, f := range j.last {
		out[name] = f
	}
	return out
}

// wait waits until what was told is enough, at most for patience.
func (j *journal) wait(ctx context.Context, patience time.Duration, enough func(map[string]first) bool) error {
	over := time.After(patience)
	for {
		j.mu.Lock()
		done, changed := enough(j.last), j.changed
		j.mu.Unlock()
		if done {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		case <-over:
			return errLate
		}
	}
}

// next waits for the client after the given one.
func (j *journal) next(ctx context.Context, name string, before first, patience time.Duration) (first, error) {
	err := j.wait(ctx, patience, func(last map[string]first) bool { return last[name].count > before.count })
	return j.of(name), err
}

// latest is when the last of all clients began.
func (j *journal) latest() time.Time {
	var at time.Time
	for _, f := range j.all() {
		if f.at.After(at) {
			at = f.at
		}
	}
	return at
}

// errLate is why a wait ended.
var errLate = fmt.Errorf("no client came in time")

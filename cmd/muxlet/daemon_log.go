// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// logBacklog is the number of lines that wait for a reader of the log.
	logBacklog = 4096
	// logDrain bounds the wait for that reader at the daemon's end.
	logDrain = time.Second
)

// patientLog writes lines from a goroutine of its own and drops what nobody reads:
// a terminal that was stopped with Ctrl-S, or a full pipe, must not stop the
// daemon.
type patientLog struct {
	lines   chan []byte
	dropped atomic.Int64
	done    chan struct{}
	closing sync.Once
}

func newPatientLog(out io.Writer) *patientLog {
	l := &patientLog{lines: make(chan []byte, logBacklog), done: make(chan struct{})}
	go func() {
		defer close(l.done)
		for line := range l.lines {
			if n := l.dropped.Swap(0); n > 0 {
				line = append(fmt.Appendf(nil, "level=WARN msg=\"Dropped log lines that nobody read\" lines=%d\n", n), line...)
			}
			// There is nowhere else to say that the log cannot be written.
			_, _ = out.Write(line)
		}
	}()
	return l
}

// Write takes one line and never waits.
func (l *patientLog) Write(line []byte) (int, error) {
	select {
	case l.lines <- bytes.Clone(line):
	default:
		l.dropped.Add(1)
	}
	return len(line), nil
}

// close writes what waits, as long as somebody reads. Nothing may be written
// afterwards.
func (l *patientLog) close() {
	l.closing.Do(func() { close(l.lines) })
	select {
	case <-l.done:
	case <-time.After(logDrain):
	}
}

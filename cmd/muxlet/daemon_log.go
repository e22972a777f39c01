// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"

	"github.com/muxlet/muxlet/config"
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

// droppedText is the line that tells how many were dropped.
func droppedText(n int64) []byte {
	return fmt.Appendf(nil, "level=WARN msg=\"Dropped log lines that nobody read\" lines=%d\n", n)
}

// droppedEntry is droppedText for the journal.
func droppedEntry(n int64) []byte {
	return journalEntry(fmt.Sprintf("Dropped log lines that nobody read: lines=%d", n), priorityWarning, []slog.Attr{slog.Int64("lines", n)})
}

func newPatientLog(out io.Writer, dropped func(n int64) []byte) *patientLog {
	l := &patientLog{lines: make(chan []byte, logBacklog), done: make(chan struct{})}
	go func() {
		defer close(l.done)
		for line := range l.lines {
			if n := l.dropped.Swap(0); n > 0 {
				_, _ = out.Write(dropped(n))
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

// openLog opens the daemon's log: the journal where standard error is that, else standard
// error in the format of the settings. A file or a terminal in its place is written to as it is.
func (g *globals) openLog(format config.LogFormat, level slog.Leveler) (*patientLog, logr.Logger) {
	stderr, isFile := g.errOut.(*os.File)
	stream, _ := g.lookupEnv("JOURNAL_STREAM")
	if isFile && isJournal(stderr, stream) {
		if j, err := openJournal(journalSocket, stderr); err == nil {
			lines := newPatientLog(j, droppedEntry)
			return lines, logr.FromSlogHandler(&journalHandler{out: lines, level: level})
		}
	}
	lines := newPatientLog(g.errOut, droppedText)
	return lines, logger(lines, format, level)
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

// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/go-logr/logr"

	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/observe/process"
	"github.com/muxlet/muxlet/spec/socket"
)

const (
	// maxConnections are handled at the same time; more wait in the kernel.
	maxConnections = 256
	// readTimeout bounds the arrival of a report, writeTimeout the taking of the
	// answer. A hook has written before the listener has accepted it.
	readTimeout  = time.Second
	writeTimeout = time.Second
	// housekeeping is the time between two looks at the socket's file and the spool.
	housekeeping = 2 * time.Second
)

// Handler handles one report: it is called for several at the same time. After nil
// the report is done with, whether it counted or not; after an error its hook, or
// the spool, keeps it for another try.
type Handler func(ctx context.Context, r observe.Report) error

// Listener takes the reports of hooks.
type Listener struct {
	path, spool string
	socket      *socket.Listener
	handled     handled
	// failing: the last look at the spool ended with an error, which was logged.
	failing bool
	every   time.Duration
}

// Listen opens the socket that hooks report to, as socket.Listen does, and leads
// them to the spool directory, which is made when it is missing.
func Listen(path, spool string) (*Listener, error) {
	l := &Listener{path: path, spool: spool, every: housekeeping}
	if err := l.open(); err != nil {
		return nil, fmt.Errorf("listen for reports: %w", err)
	}
	return l, nil
}

func (l *Listener) open() error {
	opened, err := socket.Listen(l.path)
	if err != nil {
		return err
	}
	if err := l.leadToSpool(); err != nil {
		return errors.Join(err, opened.Close())
	}
	l.socket = opened
	return nil
}

// leadToSpool makes the spool and the link to it.
func (l *Listener) leadToSpool() error {
	if err := os.MkdirAll(l.spool, 0o700); err != nil {
		return err
	}
	return link(l.spool, SpoolLink(l.path))
}

// link makes path lead to target.
func link(target, path string) error {
	if now, err := os.Readlink(path); err == nil && now == target {
		return nil
	}
	private, err := os.MkdirTemp(filepath.Dir(path), ".s")
	if err != nil {
		return err
	}
	temporary := filepath.Join(private, "l")
	err = os.Symlink(target, temporary)
	if err == nil {
		err = os.Rename(temporary, path)
	}
	return errors.Join(err, os.RemoveAll(private))
}

// Close stops listening. Hooks spool from now on.
func (l *Listener) Close() error { return l.socket.Close() }

// Serve handles the reports that come, by the socket and by the spool, until ctx is
// done, and closes the listener. A socket file that somebody removed is made again.
// The logger in ctx is told what could not be handled, never what a report says.
func (l *Listener) Serve(ctx context.Context, handle Handler) error {
	log := logr.FromContextOrDiscard(ctx)
	slots := make(chan struct{}, maxConnections)
	var running sync.WaitGroup
	defer running.Wait()
	for {
		inner, cancel := context.WithCancel(ctx)
		current := l.socket
		running.Go(func() {
			defer cancel()
			l.accept(inner, current, handle, slots, &running)
		})
		l.keepHouse(inner, handle, log)
		err := current.Close()
		cancel()
		if ctx.Err() != nil {
			return err
		}
		if !l.reopen(ctx, log) {
			return nil
		}
	}
}

// reopen makes the socket again, unless the end comes first.
func (l *Listener) reopen(ctx context.Context, log logr.Logger) bool {
	for ctx.Err() == nil {
		err := l.open()
		if err == nil {
			log.Info("Made the socket of the reports again", "socket", l.path)
			return true
		}
		log.Error(err, "Reports are not taken", "socket", l.path)
		pause(ctx, l.every)
	}
	return false
}

// keepHouse looks at the spool and at the socket's file now and then, until that
// file, or ctx, is gone.
func (l *Listener) keepHouse(ctx context.Context, handle Handler, log logr.Logger) {
	for ctx.Err() == nil {
		err := errors.Join(l.leadToSpool(), l.Drain(ctx, handle))
		if err != nil && !l.failing {
			log.Error(err, "Spooled reports were not handled", "spool", l.spool)
		}
		l.failing = err != nil
		pause(ctx, l.every)
		if !l.socket.Present() {
			return
		}
	}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// Drain handles the reports that wait in the spool, the oldest first, and removes
// each that was handled. One that could not be keeps the later ones of its session
// waiting, and nobody else's.
func (l *Listener) Drain(ctx context.Context, handle Handler) error {
	waiting, err := ReadSpool(l.spool)
	stuck := map[string]bool{}
	for _, s := range waiting {
		if ctx.Err() != nil {
			return errors.Join(err, ctx.Err())
		}
		if stuck[s.Mark.UID] {
			continue
		}
		done, handleErr := l.handled.once(s.ID, func() error { return handle(ctx, s.Report) })
		stuck[s.Mark.UID] = !done
		switch {
		case handleErr != nil:
			err = errors.Join(err, fmt.Errorf("handle spooled report: %w", handleErr))
		case done:
			err = errors.Join(err, s.Remove())
		}
	}
	return err
}

// accept takes connections until the socket is closed.
func (l *Listener) accept(ctx context.Context, from *socket.Listener, handle Handler, slots chan struct{}, running *sync.WaitGroup) {
	for {
		slots <- struct{}{}
		conn, err := from.AcceptUnix()
		if err != nil {
			<-slots
			if errors.Is(err, net.ErrClosed) {
				return
			}
			// Too many open files, most likely: it passes.
			pause(ctx, readTimeout)
			continue
		}
		running.Go(func() {
			defer func() { <-slots }()
			l.take(ctx, conn, handle)
		})
	}
}

// take handles one connection.
func (l *Listener) take(ctx context.Context, conn *net.UnixConn, handle Handler) {
	defer conn.Close()
	err := l.receive(ctx, conn, handle)
	answer := answered
	if err != nil {
		logr.FromContextOrDiscard(ctx).V(1).Info("Did not take a report", "err", err.Error())
		answer = "no\n"
	}
	if conn.SetWriteDeadline(time.Now().Add(writeTimeout)) == nil {
		// A hook that no longer waits has spooled its report.
		_, _ = io.WriteString(conn, answer)
	}
}

func (l *Listener) receive(ctx context.Context, conn *net.UnixConn, handle Handler) error {
	if err := conn.SetReadDeadline(time.Now().Add(readTimeout)); err != nil {
		return err
	}
	line, err := bufio.NewReader(io.LimitReader(conn, maxLine)).ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("read report: %w", err)
	}
	r, err := decodeLine(line)
	if err != nil {
		return fmt.Errorf("read report: %w", err)
	}
	if r.Chain, err = chainOf(conn); err != nil {
		return fmt.Errorf("identify the sender of a report: %w", err)
	}
	_, err = l.handled.once(r.ID, func() error { return handle(ctx, r) })
	return err
}

// chainOf are the process at the other end and those above it. It waits for its
// answer, so that its pid is still its own.
func chainOf(conn *net.UnixConn) ([]observe.Ancestor, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, err
	}
	var pid int
	var peerErr error
	if err := raw.Control(func(fd uintptr) { pid, peerErr = peerOf(int(fd)) }); err != nil {
		return nil, err
	}
	if peerErr != nil {
		return nil, peerErr
	}
	return process.Ancestors(pid)
}

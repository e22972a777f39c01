// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAFollowedLogComesPieceByPieceUntilTheSessionIsRemoved(t *testing.T) {
	f := newFake("a")
	f.frames = []LogFrame{{Incarnation: 1, Lines: []string{"<a>", ""}}, {Gap: true, Incarnation: 2}, {Removed: true}}
	c := NewClient(serve(t, Handler(f)))
	defer c.Close()
	var got []LogFrame
	require.NoError(t, c.Follow(t.Context(), "a", 7, func(frame LogFrame) error {
		got = append(got, frame)
		return nil
	}))
	assert.Equal(t, f.frames, got)
	assert.Equal(t, []string{"Follow:a:7"}, f.calls())
}

func TestAStreamThatCannotBeginIsAnOrdinaryError(t *testing.T) {
	f := newFake("a")
	f.fail = NewError(ReasonConflict, "a", "it has no pane")
	c := NewClient(serve(t, Handler(f)))
	defer c.Close()
	err := c.Follow(t.Context(), "a", 7, func(LogFrame) error { return nil })
	assert.Equal(t, ReasonConflict, ReasonOf(err))
	assert.Equal(t, ReasonNotFound, ReasonOf(c.Follow(t.Context(), "../x", 7, nil)))
	assert.ErrorIs(t, NewClient("/nowhere").Follow(t.Context(), "a", 7, nil), ErrNoDaemon)
}

// A peer's going is noticed at once, and so is the daemon's end by the peer: no
// stream keeps a daemon from stopping.
func TestAStreamEndsWithEitherSide(t *testing.T) {
	f := newFake("a")
	f.frames = []LogFrame{{Incarnation: 1, Lines: []string{"a"}}}
	path := socketPath(t)
	l, err := Listen(path)
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Serve(ctx, l, Handler(f)) }()
	c := NewClient(path)
	defer c.Close()

	enough := errors.New("enough")
	require.ErrorIs(t, c.Follow(t.Context(), "a", 1, func(LogFrame) error { return enough }), enough)
	leaves, leave := context.WithCancel(t.Context())
	require.ErrorIs(t, c.Follow(leaves, "a", 1, func(LogFrame) error { leave(); return nil }), context.Canceled)

	began, followed := make(chan bool, 1), make(chan error, 1)
	go func() {
		followed <- c.Follow(t.Context(), "a", 1, func(LogFrame) error { began <- true; return nil })
	}()
	<-began
	at := time.Now()
	stop()
	require.NoError(t, <-ended)
	require.ErrorIs(t, <-followed, ErrStreamEnded)
	assert.Less(t, time.Since(at), drainTimeout, "requests are waited for, streams are not")
}

// A request must arrive in time; a stream that it opened goes on.
func TestAStreamOutlivesTheTimeInWhichARequestHasToArrive(t *testing.T) {
	f := newFake("a")
	f.frames = []LogFrame{{Incarnation: 1}}
	gone := make(chan bool, 1)
	path := serve(t, Handler(watched{f, gone}))
	conn, err := net.Dial("unix", path)
	require.NoError(t, err)
	_, err = fmt.Fprintf(conn, "GET %s/a/log?follow=true HTTP/1.1\r\nHost: x\r\n\r\n", sessionsPath)
	require.NoError(t, err)
	_, err = bufio.NewReader(conn).ReadByte()
	require.NoError(t, err)
	select {
	case <-gone:
		require.Fail(t, "the stream ended by itself")
	case <-time.After(readTimeout + time.Second):
	}
	require.NoError(t, conn.Close())
	<-gone
}

// watched tells when a follower has gone.
type watched struct {
	*fakeBackend
	gone chan bool
}

func (w watched) Follow(ctx context.Context, name string, lines int, tell func(LogFrame) error) error {
	defer func() { w.gone <- true }()
	return w.fakeBackend.Follow(ctx, name, lines, tell)
}

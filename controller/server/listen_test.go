// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/spec/socket"
)

// leaveStale stops listening and leaves the file, as a kill -9 does.
func leaveStale(t *testing.T, l net.Listener) {
	t.Helper()
	ours, ok := l.(*socket.Listener)
	require.True(t, ok)
	require.NoError(t, ours.UnixListener.Close())
}

// O1
func TestASocketOnWhichSomebodyAnswersIsLeftAlone(t *testing.T) {
	path := socketPath(t)
	first, err := Listen(path)
	require.NoError(t, err)
	_, err = Listen(path)
	require.ErrorIs(t, err, ErrSocketInUse)
	require.ErrorContains(t, err, path)
	require.NoError(t, first.Close())
}

func TestServeAnswersWhatIsInFlightAndThenEnds(t *testing.T) {
	path := socketPath(t)
	l, err := Listen(path)
	require.NoError(t, err)
	f := newFake("a")
	entered, release := make(chan struct{}), make(chan struct{})
	f.hook = func(method string) {
		if method == "Status" {
			close(entered)
			<-release
		}
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- Serve(ctx, l, Handler(f)) }()
	answered := make(chan error, 1)
	go func() {
		_, err := NewClient(path).Status(context.Background())
		answered <- err
	}()
	<-entered
	stop()
	require.Eventually(t, func() bool {
		_, err := os.Lstat(path)
		return os.IsNotExist(err)
	}, 5*time.Second, 5*time.Millisecond, "no new requests are taken")
	close(release)
	require.NoError(t, <-answered)
	require.NoError(t, <-ended)
}

func TestServeReportsAListenerThatFails(t *testing.T) {
	l, err := Listen(socketPath(t))
	require.NoError(t, err)
	require.NoError(t, l.Close())
	require.ErrorContains(t, Serve(context.Background(), l, http.NotFoundHandler()), "serve the API")
}

// A peer that asks and never reads must not keep anybody else from an answer.
func TestASlowReaderBlocksNobody(t *testing.T) {
	f := newFake("a")
	f.sessions["a"].Annotations = map[string]string{"large": strings.Repeat("x", 1<<19)}
	path := serve(t, Handler(f))
	for range 4 {
		conn, err := net.Dial("unix", path)
		require.NoError(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		_, err = fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", sessionsPath)
		require.NoError(t, err)
		_, err = bufio.NewReader(conn).ReadByte()
		require.NoError(t, err, "its answer has begun")
	}
	c := NewClient(path)
	defer c.Close()
	_, err := c.Status(t.Context())
	require.NoError(t, err)
}

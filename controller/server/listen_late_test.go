// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// lateListener gives a connection at the instant when it is closed, as a kernel does.
type lateListener struct {
	cancel func()
	closed chan struct{}
	once   sync.Once
	late   chan net.Conn
}

func (l *lateListener) Accept() (net.Conn, error) {
	l.cancel() // the server is told to end while it waits here
	<-l.closed
	select {
	case conn := <-l.late:
		return conn, nil
	default:
		return nil, net.ErrClosed
	}
}

func (l *lateListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *lateListener) Addr() net.Addr { return &net.UnixAddr{Name: "late", Net: "unix"} }

// A restart: who was let in as the daemon was told to end gets an answer from it.
func TestAConnectionThatIsAcceptedAtTheEndIsAnswered(t *testing.T) {
	ours, theirs := net.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	l := &lateListener{cancel: cancel, closed: make(chan struct{}), late: make(chan net.Conn, 1)}
	l.late <- theirs
	var answered atomic.Bool
	handler := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { answered.Store(true) })
	status := make(chan string, 1)
	go func() {
		_, _ = io.WriteString(ours, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
		line, _ := bufio.NewReader(ours).ReadString('\n')
		_ = ours.Close()
		status <- line
	}()
	require.NoError(t, Serve(ctx, l, handler))
	assert.True(t, answered.Load(), "before Serve returns")
	assert.Contains(t, <-status, " 200 ")
}

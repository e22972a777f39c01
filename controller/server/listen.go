// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/go-logr/logr"

	"github.com/muxlet/muxlet/spec/socket"
)

const (
	// readTimeout bounds the arrival of a request, writeTimeout its handling and
	// the taking of its answer: a slow peer costs one goroutine for so long.
	readTimeout  = 5 * time.Second
	writeTimeout = 30 * time.Second
	idleTimeout  = time.Minute
	// drainTimeout is what requests in flight get when the daemon stops.
	drainTimeout = 2 * time.Second
)

// ErrSocketInUse says that somebody answers on the socket.
var ErrSocketInUse = socket.ErrInUse

// Listen opens the API's Unix socket at path, as socket.Listen does; when somebody
// answers there, the error is ErrSocketInUse.
func Listen(path string) (net.Listener, error) {
	l, err := socket.Listen(path)
	if err != nil {
		return nil, err
	}
	return l, nil
}

// Serve answers requests on l until ctx is done, lets those in flight end for
// two seconds, and closes l. The logger in ctx is the one that handlers log to.
// It returns nil after ctx is done, else why it could not go on.
func Serve(ctx context.Context, l net.Listener, h http.Handler) error {
	log := logr.FromContextOrDiscard(ctx)
	let := &arrivals{}
	server := &http.Server{
		Handler:           let.met(h),
		ConnContext:       let.came,
		ConnState:         let.changed,
		ReadHeaderTimeout: readTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(logr.ToSlogHandler(log), slog.LevelInfo),
		BaseContext: func(net.Listener) context.Context {
			return context.WithValue(context.WithoutCancel(ctx), stopping{}, ctx)
		},
	}
	stopped := make(chan error, 1)
	ended := make(chan struct{})
	release := context.AfterFunc(ctx, func() {
		_ = l.Close()
		<-ended
		let.wait(drainTimeout)
		stopped <- drain(ctx, server)
	})
	err := server.Serve(l)
	close(ended)
	if release() {
		return fmt.Errorf("serve the API: %w", err)
	}
	return <-stopped
}

func drain(ctx context.Context, server *http.Server) error {
	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
	defer cancel()
	err := server.Shutdown(limit)
	if errors.Is(err, context.DeadlineExceeded) {
		err = server.Close()
	}
	if err != nil {
		return fmt.Errorf("stop serving the API: %w", err)
	}
	return nil
}

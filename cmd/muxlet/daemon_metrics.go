// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/net/netutil"

	"github.com/muxlet/muxlet/controller/server"
)

const (
	// watchersRetry is when an address that could not be listened on is tried again.
	watchersRetry = 10 * time.Second
	// mostWatchers are those that may be connected at a time: any user of the host may, and
	// the daemon's descriptors are for its sessions.
	mostWatchers = 16
)

// watchers serves metrics and health on the loopback address that the settings name, if
// they do. That the address is in use is no reason to keep sessions down.
type watchers struct {
	log logr.Logger
	// changed gets a word when the address may be another one.
	changed chan struct{}

	mu      sync.Mutex
	address string
	// problem is why nothing is served; empty when nothing is wrong.
	problem string
}

func newWatchers(address string, log logr.Logger) *watchers {
	return &watchers{log: log, changed: make(chan struct{}, 1), address: address}
}

// use serves on that address from now on. Who is served on it already is not disturbed.
func (w *watchers) use(address string) {
	w.mu.Lock()
	same := w.address == address && w.problem == ""
	w.address = address
	w.mu.Unlock()
	if same {
		return
	}
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// Problems are why nothing is served although somebody asked for that.
func (w *watchers) Problems() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.problem == "" {
		return nil
	}
	return []string{w.problem}
}

// run serves until ctx ends.
func (w *watchers) run(ctx context.Context, h http.Handler) {
	for ctx.Err() == nil {
		w.mu.Lock()
		address := w.address
		w.mu.Unlock()
		if address == "" {
			w.note("")
			w.pause(ctx, nil)
			continue
		}
		l, err := listenLoopback(ctx, address)
		if err != nil {
			w.note(fmt.Sprintf("metrics are not served on %s: %v: free the address, or give another one with metrics.listen", address, err))
			w.pause(ctx, time.After(watchersRetry))
			continue
		}
		w.note("")
		w.log.Info("Serving metrics", "address", l.Addr().String())
		w.serve(ctx, l, h)
	}
}

// serve returns when the address may be another one, or serving ended.
func (w *watchers) serve(ctx context.Context, l net.Listener, h http.Handler) {
	inner, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- server.Serve(logr.NewContext(inner, w.log), l, h) }()
	select {
	case err := <-done:
		cancel()
		if err != nil {
			w.log.Error(err, "Metrics are served no more")
			w.pause(ctx, time.After(watchersRetry))
		}
		return
	case <-w.changed:
	case <-ctx.Done():
	}
	cancel()
	if err := <-done; err != nil {
		w.log.Error(err, "Serving metrics ended")
	}
}

func (w *watchers) pause(ctx context.Context, over <-chan time.Time) {
	select {
	case <-ctx.Done():
	case <-w.changed:
	case <-over:
	}
}

// note remembers what is wrong, and tells it once.
func (w *watchers) note(problem string) {
	w.mu.Lock()
	news := w.problem != problem
	w.problem = problem
	w.mu.Unlock()
	if news && problem != "" {
		w.log.Info("Metrics are not served", "problem", problem)
	}
}

// listenLoopback listens on an address of this host alone. What localhost means is the
// host's to say, and is looked at again once it is known.
func listenLoopback(ctx context.Context, address string) (net.Listener, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, cause(err)
	}
	if at, ok := l.Addr().(*net.TCPAddr); !ok || !at.IP.IsLoopback() {
		_ = l.Close()
		return nil, fmt.Errorf("%s is no loopback address on this host", l.Addr())
	}
	return netutil.LimitListener(l, mostWatchers), nil
}

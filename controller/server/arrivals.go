// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"net"
	"net/http"
	"sync"
	"time"
)

// arrivals are the connections that were accepted and whose first request has not come
// to a handler yet. A server of net/http that is being shut down drops them without an
// answer, though who connected was not refused: it is shut down only once there is none.
type arrivals struct {
	waiting sync.WaitGroup
	// awaited has the *sync.Once of each that is counted, by its connection.
	awaited sync.Map
}

// arrival is the key of a connection's *sync.Once in the context of its requests.
type arrival struct{}

// came counts a connection; the server calls it before it accepts another one.
func (a *arrivals) came(ctx context.Context, conn net.Conn) context.Context {
	once := &sync.Once{}
	a.waiting.Add(1)
	a.awaited.Store(conn, once)
	return context.WithValue(ctx, arrival{}, once)
}

// met lets a connection go out of the count with its first request.
func (a *arrivals) met(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if once, ok := r.Context().Value(arrival{}).(*sync.Once); ok {
			once.Do(a.waiting.Done)
		}
		h.ServeHTTP(w, r)
	})
}

// changed lets one go that ends without a request.
func (a *arrivals) changed(conn net.Conn, state http.ConnState) {
	if state != http.StateClosed && state != http.StateHijacked {
		return
	}
	if once, ok := a.awaited.LoadAndDelete(conn); ok {
		if once, ok := once.(*sync.Once); ok {
			once.Do(a.waiting.Done)
		}
	}
}

// wait until there is none, or for so long. Nothing may be accepted any more.
func (a *arrivals) wait(limit time.Duration) {
	none := make(chan struct{})
	go func() { a.waiting.Wait(); close(none) }()
	select {
	case <-none:
	case <-time.After(limit):
	}
}

// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

// Package notify tells a person something: it runs their command, and it writes to the
// terminals that are attached to muxlet's tmux server. Each call ends within its bounds,
// whatever the command or a terminal does. It decides nothing, repeats nothing, and never
// reads what a terminal shows.
package notify

import (
	"context"
	"time"

	"github.com/muxlet/muxlet/actuate"
	"github.com/muxlet/muxlet/observe/tmux"
)

// Person is who is told.
type Person struct {
	// Environ is what their command gets, as NAME=value: the daemon's own environment.
	Environ []string
	// Home is where it runs; the root directory when it is empty.
	Home string
	// Conn is muxlet's tmux server.
	Conn *tmux.Conn
}

// Notify tells the person, by each way at the same time, and returns when that is over.
// When ctx ends the command is killed.
func (p Person) Notify(ctx context.Context, way actuate.NotificationWay, n actuate.Notification) (out actuate.NotificationOutcome) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		if len(way.Terminal) > 0 {
			out.Terminals, out.TerminalErr = p.tellTerminals(ctx, way.Terminal, n)
		}
	}()
	if len(way.Command) > 0 {
		began := time.Now()
		out.CommandErr = p.run(ctx, way, n)
		out.Took = time.Since(began)
	}
	<-done
	return out
}

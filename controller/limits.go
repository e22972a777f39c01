// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"sync"
	"time"

	"github.com/muxlet/muxlet/observe"
)

// limitsAge is how old a look at the system's limits may be. In between, what is
// started is counted on top of it.
const limitsAge = time.Second

// limits shares one look at what may run out between all sessions that are about
// to be started.
type limits struct {
	mu     sync.Mutex
	at     time.Time
	server observe.Process
	last   observe.Limits
}

// limitsOf is what may run out for a start on the tmux server of a snapshot.
func (c *Controller) limitsOf(snap *snapshot) observe.Limits {
	if c.Limits == nil || snap.view.State != observe.ServerRunning {
		return observe.Limits{}
	}
	server, now := snap.view.Listing.Server.Process, c.Clock.Now()
	l := &c.limits
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.at.IsZero() || l.server != server || now.Sub(l.at) >= limitsAge {
		l.last, l.server, l.at = c.Limits(server), server, now
	}
	return l.last
}

// spend counts a start: one terminal, one descriptor of the server for it, and one
// of ours for the watch of its client.
func (l *limits) spend() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last.Terminals.Used++
	l.last.ServerFiles.Used++
	l.last.OwnFiles.Used++
}

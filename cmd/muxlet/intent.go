// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/muxlet/muxlet/controller/server"
	"github.com/muxlet/muxlet/spec"
)

// intent is one thing that is asked of sessions and then waited for.
type intent struct {
	// send asks the daemon.
	send func(ctx context.Context, client *server.Client, name string) error
	// goal is what is waited for, in words.
	goal string
	// judge says about one look whether the goal is reached, or why it cannot be.
	judge func(before *spec.Session, now look) (reached bool, err error)
	// done is what is said when the goal is reached.
	done func(before, after *spec.Session) string
	// period is the time between two looks, globals.pollPeriod when it is 0; looks
	// has room for those that are on their way at the same time, nil for any number.
	period time.Duration
	looks  chan struct{}
}

// look at the session when it is its turn.
func (i *intent) look(ctx context.Context, client *server.Client, name string) (*spec.Session, error) {
	if i.looks != nil {
		i.looks <- struct{}{}
		defer func() { <-i.looks }()
	}
	return client.Session(ctx, name)
}

// look is one look at a session that is waited for.
type look struct {
	session *spec.Session
	// err is why there is no session.
	err error
	// waited is how long, at least, this has gone on.
	waited time.Duration
}

// until looks at the session again and again until its goal is reached, cannot
// be reached, or ctx is done.
func (g *globals) until(ctx context.Context, client *server.Client, before *spec.Session, i intent) (*spec.Session, error) {
	last, period := before, i.period
	if period == 0 {
		period = g.pollPeriod
	}
	for n := 0; ; n++ {
		session, err := i.look(ctx, client, before.Name)
		waited := time.Duration(n) * period
		if ctx.Err() == nil {
			reached, err := i.judge(before, look{session, err, waited})
			if reached || err != nil {
				return session, err
			}
			if session.Name != "" {
				last = session
			}
		}
		if waited >= g.notice && waited-period < g.notice {
			g.complain("Waiting for %s of session %q: it is %s.", i.goal, last.Name, statusWords(last))
		}
		if !pause(ctx, period) {
			return nil, g.unfinished(ctx, last, i.goal)
		}
	}
}

// pause says whether ctx is still not done after so long.
func pause(ctx context.Context, period time.Duration) bool {
	timer := time.NewTimer(period)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// unfinished is the error about a wait that ended before its goal was reached.
func (g *globals) unfinished(ctx context.Context, last *spec.Session, goal string) error {
	why := fmt.Sprintf("was not seen within %s", g.waitLimit)
	if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		why = "was not waited for any longer"
	}
	return server.NewError(server.ReasonDeadlineExceeded, last.Name, fmt.Sprintf(
		"%s of session %q %s (it is %s); what was asked for goes on: see \"muxlet describe %s\".",
		goal, last.Name, why, statusWords(last), last.Name))
}

// statusWords are the status and what explains it.
func statusWords(s *spec.Session) string {
	reason, message := primaryReason(s)
	words := statusLine(spec.DisplayStatus(s), reason)
	if message != "" {
		words += ": " + strings.TrimSuffix(message, ".")
	}
	return words
}

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
}

// look is one look at a session that is waited for.
type look struct {
	session *spec.Session
	// err is why there is no session.
	err error
	// waited is how long, at least, this has gone on.
	waited time.Duration
}

// carryOut asks it of every named session first and waits for each of them
// then, so that they do not wait for one another.
func (g *globals) carryOut(ctx context.Context, args []string, i intent) error {
	names, err := sessionNames(args)
	if err != nil {
		return err
	}
	client, err := g.client()
	if err != nil {
		return err
	}
	defer client.Close()
	before := map[string]*spec.Session{}
	asked := g.each(names, func(name string) error {
		session, err := client.Session(ctx, name)
		if err != nil {
			return err
		}
		if err := i.send(ctx, client, name); err != nil {
			return err
		}
		before[name] = session
		return nil
	})
	ctx, cancel := context.WithTimeout(ctx, g.waitLimit)
	defer cancel()
	waited := g.each(names, func(name string) error {
		if before[name] == nil {
			return nil
		}
		after, err := g.until(ctx, client, before[name], i)
		if err != nil {
			return err
		}
		return g.say("session/%s %s", name, i.done(before[name], after))
	})
	return worse(asked, waited)
}

// worse is the one with the higher exit code.
func worse(a, b error) error {
	if exitCode(a) >= exitCode(b) {
		return a
	}
	return b
}

// until looks at the session again and again until its goal is reached, cannot
// be reached, or ctx is done.
func (g *globals) until(ctx context.Context, client *server.Client, before *spec.Session, i intent) (*spec.Session, error) {
	last := before
	for n := 0; ; n++ {
		session, err := client.Session(ctx, before.Name)
		if ctx.Err() == nil {
			reached, err := i.judge(before, look{session, err, time.Duration(n) * g.pollPeriod})
			if reached || err != nil {
				return session, err
			}
			if session.Name != "" {
				last = session
			}
		}
		if waited := time.Duration(n) * g.pollPeriod; waited >= g.notice && waited-g.pollPeriod < g.notice {
			g.complain("Waiting for %s of session %q: it is %s.", i.goal, last.Name, statusWords(last))
		}
		if !pause(ctx, g.pollPeriod) {
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

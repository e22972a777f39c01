// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

// Command soak runs a built daemon for a while on a private tmux server and kills
// something each second: clients mostly, now and then the tmux server, and the daemon in
// the first part. It reads the daemon's metrics and the process table, prints a table and
// what each figure grew by, and says whether all of them stayed flat and whether every
// session had its one client at the end. Nothing outside its own directory and processes
// is touched.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// config is what a person asks for.
type config struct {
	muxlet   string
	sessions int
	duration time.Duration
	every    time.Duration
	kill     time.Duration
	seed     uint64
}

func main() {
	var c config
	flag.StringVar(&c.muxlet, "muxlet", "bin/muxlet", "the built program")
	flag.IntVar(&c.sessions, "sessions", 200, "number of sessions")
	flag.DurationVar(&c.duration, "duration", 10*time.Minute, "how long, once all sessions run")
	flag.DurationVar(&c.every, "every", 10*time.Second, "time between two looks")
	flag.DurationVar(&c.kill, "kill", time.Second, "time between two kills")
	flag.Uint64Var(&c.seed, "seed", 1, "what is killed when")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := soak(ctx, c, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "soak: "+err.Error())
		os.Exit(1)
	}
}

// soak runs the whole thing. Its error says what was not as it should be.
func soak(ctx context.Context, c config, out io.Writer) (err error) {
	w, err := newWorld(c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	if err := w.startDaemon(); err != nil {
		return err
	}
	began := time.Now()
	if err := w.waitRunning(ctx, time.Minute+time.Duration(c.sessions)*500*time.Millisecond); err != nil {
		return err
	}
	say(out, "%d sessions run after %s\n\n", c.sessions, time.Since(began).Round(time.Millisecond))
	samples, err := w.torment(ctx, out)
	if err != nil {
		return err
	}
	if err := w.waitRunning(ctx, 2*time.Minute); err != nil {
		return err
	}
	if n := w.clients(); n != c.sessions {
		return fmt.Errorf("%d clients run for %d sessions", n, c.sessions)
	}
	say(out, "\nkilled: %d clients, %d tmux servers, %d daemons; each of %d sessions has one client at the end\n\n",
		w.killed.clients, w.killed.servers, w.killed.daemons, c.sessions)
	table, err := judge(samples, time.Duration(c.sessions)*c.kill)
	say(out, "%s", table)
	return err
}

// say tells how it goes. Whoever does not read it any more is told by the exit code.
func say(out io.Writer, format string, args ...any) { _, _ = fmt.Fprintf(out, format, args...) }

// torment kills and looks until the time is over. Daemons are killed in the first third
// only: what one and the same daemon grows by is to be seen after it.
func (w *world) torment(ctx context.Context, out io.Writer) ([]sample, error) {
	// Each client dies in its turn: what is kept of a session's last client, such as its
	// screen, is there for all of them soon.
	order := rand.New(rand.NewPCG(w.seed, w.seed)).Perm(w.sessions)
	began := time.Now()
	over := time.After(w.duration)
	looks, kills := time.NewTicker(w.every), time.NewTicker(w.kill)
	defer looks.Stop()
	defer kills.Stop()
	var samples []sample
	say(out, "%s", header())
	for n := 1; ; {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-over:
			return samples, nil
		case <-looks.C:
			s, err := w.look(time.Since(began))
			if err != nil {
				say(out, "%8s  no look: %v\n", time.Since(began).Round(time.Second), err)
				continue
			}
			samples = append(samples, s)
			say(out, "%s", s)
		case <-kills.C:
			if err := w.killOne(ctx, order[n%len(order)], n, time.Since(began) < w.duration/3); err != nil {
				return nil, err
			}
			n++
		}
	}
}

// killOne kills a client, each 150th time the tmux server instead, and each 30th the
// daemon while that may be.
func (w *world) killOne(ctx context.Context, session, n int, daemonToo bool) error {
	switch {
	case n%150 == 75:
		return w.killServer()
	case n%30 == 15 && daemonToo:
		return w.killDaemon()
	}
	return w.killClient(ctx, session)
}

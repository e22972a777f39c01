// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"
)

// unnoticed is how long a death may take to be noticed.
const unnoticed = 2 * time.Second

// keeper brings clients back, some way or other.
type keeper struct {
	name    string
	journal *journal
	// sessions whose clients it brings back.
	sessions []string
	// rounds are all that it takes part in; 0 means all there are.
	rounds int
	// heal brings one back that it has lost.
	heal func() error
	took []time.Duration
	lost int
}

// measureRestarts kills clients, one at a time, and waits for the next ones' first
// instructions. What a thousand sessions cost at rest is measured on the largest.
func measureRestarts(ctx context.Context, b *bench) error {
	// Sizes and rounds: more rounds than sessions kill some sessions' clients more than once.
	sizes := b.sized([][2]int{{4, 4}}, [][2]int{{10, 100}, {100, 60}, {1000, 50}})
	for i, size := range sizes {
		if err := b.restart(ctx, size[0], size[1], i == len(sizes)-1 && len(b.sizes) == 0); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) restart(ctx context.Context, n, rounds int, rest bool) (err error) {
	w, err := b.newWorld()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	f, err := b.newFloor()
	if err != nil {
		return err
	}
	loop, hook, err := f.keepers(ctx, n)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	muxlet := &keeper{name: "muxlet", journal: w.journal, heal: func() error { return nil }}
	for i := range n {
		muxlet.sessions = append(muxlet.sessions, sessionName(i))
	}
	if err := w.populate(ctx, n); err != nil {
		return err
	}
	for round := range rounds {
		for _, k := range []*keeper{muxlet, loop, hook} {
			if k.rounds > 0 && round >= k.rounds {
				continue
			}
			if err := k.kill(ctx, round); err != nil {
				return fmt.Errorf("%s with %d sessions: %w", k.name, n, err)
			}
		}
	}
	b.tellRestarts(n, muxlet, loop, hook)
	if rest {
		return b.rest(ctx, n, w, f)
	}
	return nil
}

// keepers starts n sessions on a server without muxlet: half are brought back by a
// loop of the shell, half by a hook of tmux.
func (f *floor) keepers(ctx context.Context, n int) (loop, hook *keeper, err error) {
	heal := func() error {
		pid, err := serverPid(ctx, f.tmux, f.socket())
		if err != nil {
			return err
		}
		return syscall.Kill(pid, syscall.SIGCHLD)
	}
	loop = &keeper{name: "shell loop in a pane", journal: f.journal, heal: heal}
	// On a quiet machine tmux 3.3a loses most deaths, and each takes two seconds.
	hook = &keeper{name: "tmux hook", journal: f.journal, heal: heal, rounds: 20}
	var lines [][]string
	for i := range n {
		k, name := loop, "loop"+sessionName(i)
		words := f.loop(name)
		if i%2 == 1 {
			k, name = hook, "hook"+sessionName(i)
			words = f.words(name)
		}
		k.sessions = append(k.sessions, name)
		lines = append(lines, newSession(name, words))
	}
	if err := f.configured(ctx, lines); err != nil {
		return nil, nil, err
	}
	err = f.journal.wait(ctx, ample, func(last map[string]first) bool { return len(last) == n })
	return loop, hook, err
}

// calm is left between two kills: what follows from one is over by then.
const calm = 60 * time.Millisecond

// kill ends the client of one session, and waits for the next one.
func (k *keeper) kill(ctx context.Context, round int) error {
	// Neighbours were made at the same time; 7 is no divisor of the sizes.
	name := k.sessions[round*7%len(k.sessions)]
	before := k.journal.of(name)
	at := time.Now()
	if err := syscall.Kill(before.pid, syscall.SIGKILL); err != nil {
		return fmt.Errorf("end the client of %s: %w", name, err)
	}
	next, err := k.journal.next(ctx, name, before, unnoticed)
	if errors.Is(err, errLate) {
		k.lost++
		if err := k.heal(); err != nil {
			return err
		}
		next, err = k.journal.next(ctx, name, before, ample)
	}
	if err != nil {
		return err
	}
	k.took = append(k.took, next.at.Sub(at))
	return sleep(ctx, calm)
}

func (b *bench) tellRestarts(n int, muxlet, loop, hook *keeper) {
	median, tail := quantile(muxlet.took, 0.5), quantile(muxlet.took, 0.99)
	r := row{
		what:  fmt.Sprintf("kill -9 of one of %d clients to the next one's first instruction", n),
		value: fmt.Sprintf("%s (p99 %s, %d lost)", millis(median), millis(tail), muxlet.lost),
	}
	if goal := map[int]float64{10: 15, 1000: 40}[n]; goal > 0 {
		r.goal = fmt.Sprintf("%.0f ms, p99 at most 5 × the median", goal)
		r.miss = max(over(float64(median)/1e6, goal), over(float64(tail), 5*float64(median)))
	}
	for _, k := range []*keeper{loop, hook} {
		r.beside = append(r.beside, fmt.Sprintf("%s %s (×%.1f, p99 %s, %d of %d unnoticed for 2 s)", k.name,
			millis(quantile(k.took, 0.5)), ratio(median, quantile(k.took, 0.5)), millis(quantile(k.took, 0.99)), k.lost, len(k.took)))
	}
	b.table.add(r)
}

// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// measureBringUp starts many sessions at once: from the start of whatever starts them
// to the first instruction of the last client.
func measureBringUp(ctx context.Context, b *bench) error {
	for _, size := range b.sized([][2]int{{4, 1}}, [][2]int{{100, 3}, {500, 2}}) {
		if err := b.bringUp(ctx, size[0], size[1]); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) bringUp(ctx context.Context, n, rounds int) error {
	ways := []struct {
		name string
		once func(context.Context, int) (time.Duration, error)
		took []time.Duration
	}{{name: "muxlet", once: b.bringUpMuxlet}, {name: "one tmux configuration file", once: b.bringUpFile}, {name: "tmux new-session, one by one", once: b.bringUpEach}}
	for range rounds {
		for i := range ways {
			took, err := ways[i].once(ctx, n)
			if err != nil {
				return fmt.Errorf("%s: %w", ways[i].name, err)
			}
			ways[i].took = append(ways[i].took, took)
		}
	}
	rate := func(took []time.Duration) float64 { return float64(n) / quantile(took, 0.5).Seconds() }
	muxlet := rate(ways[0].took)
	r := row{what: fmt.Sprintf("bring-up of %d sessions", n), value: fmt.Sprintf("%.0f a second", muxlet)}
	if n == 500 {
		r.goal, r.miss = "100 a second", over(100/muxlet, 1)
	}
	for _, way := range ways[1:] {
		r.beside = append(r.beside, fmt.Sprintf("%s %.0f a second (×%.2f)", way.name, rate(way.took), muxlet/rate(way.took)))
	}
	b.table.add(r)
	return nil
}

func (b *bench) bringUpMuxlet(ctx context.Context, n int) (took time.Duration, err error) {
	w, err := b.newWorld()
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	if err := w.declareMany(n); err != nil {
		return 0, err
	}
	began := time.Now()
	if err := w.start(); err != nil {
		return 0, err
	}
	return w.journal.complete(ctx, n, began)
}

// complete is the time until n sessions have a client.
func (j *journal) complete(ctx context.Context, n int, began time.Time) (time.Duration, error) {
	err := j.wait(ctx, ample, func(last map[string]first) bool { return len(last) == n })
	return j.latest().Sub(began), err
}

func (b *bench) bringUpFile(ctx context.Context, n int) (time.Duration, error) {
	return b.bringUpFloor(ctx, n, func(f *floor, lines [][]string) error { return f.configured(ctx, lines) })
}

func (b *bench) bringUpEach(ctx context.Context, n int) (time.Duration, error) {
	return b.bringUpFloor(ctx, n, func(f *floor, lines [][]string) error {
		for _, line := range lines {
			if err := f.run(ctx, slices.Concat([]string{"-f", "/dev/null"}, line)...); err != nil {
				return err
			}
		}
		return nil
	})
}

func (b *bench) bringUpFloor(ctx context.Context, n int, start func(*floor, [][]string) error) (took time.Duration, err error) {
	f, err := b.newFloor()
	if err != nil {
		return 0, err
	}
	var lines [][]string
	for i := range n {
		lines = append(lines, newSession(sessionName(i), f.words(sessionName(i))))
	}
	began := time.Now()
	if err := start(f, lines); err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	return f.journal.complete(ctx, n, began)
}

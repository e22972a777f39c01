// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"syscall"
	"time"
)

// measureEdit changes one session of many, adds one and deletes one; then it rewrites
// all files to say the same, and kills the daemon and starts it again.
func measureEdit(ctx context.Context, b *bench) (err error) {
	n := pick(b, 4, 100)
	w, err := b.newWorld()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	if err := w.populate(ctx, n); err != nil {
		return err
	}
	byHand, err := b.editByHand(ctx, n)
	if err != nil {
		return err
	}
	before := w.journal.all()
	took, err := w.edit(ctx, n)
	if err != nil {
		return err
	}
	if err := sleep(ctx, time.Second); err != nil {
		return err
	}
	same := untouched(before, w.journal.all())
	b.table.add(row{
		what:  fmt.Sprintf("change one of %d sessions, add one, delete one", n),
		value: fmt.Sprintf("%.2f s, %d untouched", took.Seconds(), same), goal: fmt.Sprintf("1 s, %d untouched", n-2),
		miss:   max(over(took.Seconds(), 1), over(float64(n-2-same), 0)),
		beside: []string{fmt.Sprintf("respawn-pane, new-session and kill-session by hand %.2f s", byHand.Seconds())},
	})
	return w.standStill(ctx, n)
}

// edit is the time until the changed session and the new one have their clients, and
// the deleted one has none.
func (w *world) edit(ctx context.Context, n int) (time.Duration, error) {
	changed, deleted, added := sessionName(n/3), sessionName(n/2), "added"
	before := w.journal.of(changed)
	began := time.Now()
	if err := errors.Join(w.declare(changed, "changed", "more"), w.declare(added, "added")); err != nil {
		return 0, err
	}
	remove := exec.CommandContext(ctx, w.muxlet, "delete", deleted)
	remove.Env = w.env
	out, err := remove.CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("delete a session: %w: %s", err, out)
	}
	if _, err := w.journal.next(ctx, changed, before, ample); err != nil {
		return 0, err
	}
	if _, err := w.journal.next(ctx, added, first{}, ample); err != nil {
		return 0, err
	}
	return time.Since(began), nil
}

// untouched is the number of sessions that have the client that they had.
func untouched(before, after map[string]first) int {
	n := 0
	for name, f := range before {
		if after[name] == f && syscall.Kill(f.pid, 0) == nil {
			n++
		}
	}
	return n
}

// editByHand is the same, done by somebody who knows what to do.
func (b *bench) editByHand(ctx context.Context, n int) (took time.Duration, err error) {
	f, err := b.newFloor()
	if err != nil {
		return 0, err
	}
	var lines [][]string
	for i := range n {
		lines = append(lines, newSession(sessionName(i), f.words(sessionName(i))))
	}
	if err := f.configured(ctx, lines); err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	if _, err := f.journal.complete(ctx, n, time.Now()); err != nil {
		return 0, err
	}
	changed, before := sessionName(n/3), f.journal.of(sessionName(n/3))
	began := time.Now()
	words := slices.Concat([]string{"respawn-pane", "-k", "-t", "=" + changed + ":", "--"}, f.words(changed), []string{";"},
		newSession("added", f.words("added")), []string{";", "kill-session", "-t", "=" + sessionName(n/2)})
	if err := f.run(ctx, words...); err != nil {
		return 0, err
	}
	_, err = f.journal.next(ctx, changed, before, ample)
	if err == nil {
		_, err = f.journal.next(ctx, "added", first{}, ample)
	}
	return time.Since(began), err
}

// standStill counts who is restarted by files that say the same, and by a daemon that
// is killed.
func (w *world) standStill(ctx context.Context, n int) error {
	before := w.journal.all()
	for name := range before {
		if name == sessionName(n/2) {
			continue
		}
		words := []string{}
		if name == sessionName(n/3) {
			words = append(words, "more")
		}
		if err := w.declare(name, "a comment that changes nothing", words...); err != nil {
			return err
		}
	}
	if err := sleep(ctx, 2*time.Second); err != nil {
		return err
	}
	same := untouched(before, w.journal.all())
	w.table.add(row{
		what: fmt.Sprintf("rewrite %d files with another comment", n), value: fmt.Sprintf("%d restarts", n-same),
		goal: "0 restarts", miss: over(float64(n-same), 0),
	})
	if err := w.replaceDaemon(ctx, n); err != nil {
		return err
	}
	same = untouched(before, w.journal.all())
	w.table.add(row{
		what: "kill -9 of the daemon, and its next start", value: fmt.Sprintf("%d of %d clients are the same", same, n),
		goal: "all", miss: over(float64(n-same), 0),
	})
	return nil
}

// replaceDaemon kills the daemon and waits until the next one knows all sessions.
func (w *world) replaceDaemon(ctx context.Context, n int) error {
	if err := w.end(syscall.SIGKILL); err != nil {
		return err
	}
	if err := w.start(); err != nil {
		return err
	}
	if err := w.settled(ctx, n); err != nil {
		return err
	}
	return sleep(ctx, time.Second)
}

// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"path/filepath"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"
)

// watchFiles turns a launcher's receipt, and the loss of tmux's socket, into
// hints. Without file notices the plan's own polling and the resync find them a
// little later.
func (c *Controller) watchFiles(ctx context.Context) {
	w, err := fsnotify.NewWatcher()
	for _, dir := range []string{filepath.Join(c.StateDir, "receipts"), filepath.Dir(c.socket())} {
		if err == nil {
			err = w.Add(dir)
		}
	}
	if err != nil {
		c.Log.Error(err, "Receipts and the socket of tmux are not watched, changes are noticed by polling")
		return
	}
	defer func() { _ = w.Close() }()
	for {
		select {
		case <-ctx.Done():
			return
		case err := <-w.Errors:
			c.Log.V(1).Info("Receipt notices were lost", "err", err)
		case e := <-w.Events:
			c.hint(e)
		}
	}
}

func (c *Controller) hint(e fsnotify.Event) {
	if e.Name == c.socket() {
		if e.Has(fsnotify.Remove) || e.Has(fsnotify.Rename) || e.Has(fsnotify.Create) {
			c.queue.Add(serverKey)
		}
		return
	}
	attempt, ok := strings.CutSuffix(filepath.Base(e.Name), ".json")
	if !ok || e.Has(fsnotify.Remove) {
		return
	}
	c.mu.Lock()
	name, pending := c.attempts[attempt]
	executed := pending && c.readyOnceExecuted(name)
	c.mu.Unlock()
	if executed {
		// It says that the client is executed, or why not: the next start may go
		// ahead, whenever the receipt is judged.
		c.wake(c.budget.settle(name, false, false))
	}
	if pending {
		// The pane was made before the receipt, and the listing follows the start.
		c.enqueue(name, time.Time{})
	}
}

// readyOnceExecuted says whether the session's client is taken to be ready as soon as
// it was executed. c.mu is held.
func (c *Controller) readyOnceExecuted(name string) bool {
	s := c.sessions[name]
	if s == nil {
		return true
	}
	class := c.classInForce(s)
	return class == nil || !looksAt(class.Spec)
}

// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"os"
	"path/filepath"
	"time"

	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec/durable"
)

const (
	// tidyPeriod is the time between two tidyings.
	tidyPeriod = time.Hour
	// leftAlone is how old a receipt or a lease without a session must be: a launcher
	// may be on its way.
	leftAlone = time.Hour
)

// tidy removes what nobody needs any more, once in a while: sessions come and go
// every day, and neither the state nor the runtime directory may grow for ever.
// What goes wrong is logged and costs room only.
func (c *Controller) tidy() {
	now := c.Clock.Now()
	if !c.tidied.IsZero() && now.Sub(c.tidied) < tidyPeriod {
		return
	}
	c.tidied = now
	before := c.now().Add(-leftAlone)
	if err := c.Store.Prune(c.now().Add(-c.settings().ArchiveFor), c.settings().ArchiveBytes); err != nil {
		c.Log.Error(err, "Archive was not pruned")
	}
	if err := c.TurnStore.Tidy(); err != nil {
		c.Log.Error(err, "Turns were not tidied")
	}
	if err := c.Receipts.Prune(before, c.accounted()); err != nil {
		c.Log.Error(err, "Receipts were not pruned")
	}
	c.pruneScreens()
	c.pruneLeases(before)
	if err := c.Hooks.Prune(before, c.classesInUse()); err != nil {
		c.Log.Error(err, "Hook settings were not pruned")
	}
	c.sweep(before)
}

// sweep removes what interrupted writes have left where a daemon that starts does not
// clear it away.
func (c *Controller) sweep(before time.Time) {
	for _, dir := range []string{c.StateDir, c.RuntimeDir} {
		if err := durable.Sweep(dir, before); err != nil {
			c.Log.Error(err, "Temporary files were not removed", "directory", dir)
		}
	}
}

// classesInUse says which client classes a session has, or has a conversation of.
func (c *Controller) classesInUse() func(class string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	classes := map[string]bool{}
	for _, s := range c.sessions {
		classes[s.rec.ClassName] = true
		if s.rec.Conversation != nil {
			classes[s.rec.Conversation.Class] = true
		}
		if s.rec.Spec != nil {
			classes[s.rec.Spec.ClientClassName] = true
		}
	}
	// A record that cannot be used may have any class.
	unknown := len(c.bad) > 0
	return func(class string) bool { return unknown || classes[class] }
}

// accounted says which attempts a session still accounts for.
func (c *Controller) accounted() func(attempt string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	attempts := map[string]bool{}
	for _, s := range c.sessions {
		if s.rec.Attempt != nil {
			attempts[s.rec.Attempt.ID] = true
		}
		if s.rec.Client != nil {
			attempts[s.rec.Client.Attempt] = true
		}
	}
	// A record that cannot be used may name any attempt.
	unknown := len(c.bad) > 0
	return func(attempt string) bool { return unknown || attempts[attempt] }
}

// pruneLeases removes the leases of sessions that are gone. A lease that somebody
// holds is not touched: another file in its place could be held as well. Under
// the lock no session can be given the uid of one meanwhile.
func (c *Controller) pruneLeases(before time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	uids := map[string]bool{}
	for _, s := range c.sessions {
		uids[s.rec.UID] = true
	}
	for _, b := range c.bad {
		uids[b.UID] = true
	}
	dir := filepath.Join(c.RuntimeDir, "lease")
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || uids[e.Name()] || !info.ModTime().Before(before) || c.Processes.Lease(e.Name()).State != observe.Gone {
			continue
		}
		if err := os.Remove(filepath.Join(dir, e.Name())); err != nil {
			c.Log.Error(err, "Lease of a session that is gone was not removed", "sessionUID", e.Name())
		}
	}
}

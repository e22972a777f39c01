// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"os"
	"path/filepath"

	"github.com/muxlet/muxlet/controller/record"
	"github.com/muxlet/muxlet/observe"
)

// restoreState writes everything down again when somebody has removed the state
// directory under the running daemon: what it holds in memory is the truth, and
// no launcher can run without a record.
func (c *Controller) restoreState() {
	if _, err := os.Stat(filepath.Join(c.StateDir, "records")); err == nil {
		return
	}
	c.Log.Info("State directory was removed under the daemon, writing it again", "stateDir", c.StateDir)
	if err := c.rewriteState(); err != nil {
		c.Log.Error(err, "State could not be written again")
	}
}

func (c *Controller) rewriteState() error {
	if err := c.PrepareRuntime(); err != nil {
		return err
	}
	if err := c.Store.Prepare(); err != nil {
		return err
	}
	if err := c.TurnStore.Prepare(); err != nil {
		return err
	}
	instance, recorded, records := c.inMemory()
	if instance != "" {
		if err := c.keep().Write(c.instancePath(), instanceVersion, instance); err != nil {
			return err
		}
	}
	if recorded != nil {
		if err := c.keep().Write(c.serverPath(), serverVersion, *recorded); err != nil {
			return err
		}
	}
	for _, r := range records {
		// A worker may have saved a later one meanwhile.
		if err := c.Store.Restore(r); err != nil {
			return err
		}
	}
	return nil
}

func (c *Controller) inMemory() (instance string, recorded *observe.Server, records []record.Record) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.sessions {
		if s.rec.UID != "" {
			records = append(records, s.rec)
		}
	}
	return c.instance, c.server.recorded, records
}

// load reads what an earlier daemon left.
func (c *Controller) load() error {
	if err := c.loadRecords(); err != nil {
		return err
	}
	if err := c.loadInstance(); err != nil {
		return err
	}
	if err := c.loadTurns(); err != nil {
		return err
	}
	c.loadTold()
	c.loadAttention()
	c.loadSpool()
	return nil
}

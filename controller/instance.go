// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec/durable"
)

func (c *Controller) instancePath() string { return filepath.Join(c.StateDir, "instance") }

// loadInstance reads the instance and the recorded server. A missing or damaged
// instance is not made anew here: tmux is asked for it first.
func (c *Controller) loadInstance() error {
	var instance string
	switch err := durable.Read(c.instancePath(), instanceVersion, &instance); {
	case err == nil:
		if err := c.setInstance(instance); err != nil {
			return err
		}
	case errors.Is(err, fs.ErrNotExist):
	case errors.Is(err, durable.ErrCorrupt):
		c.Log.Error(err, "Instance file was damaged, asking tmux for it")
	default:
		return c.notOurs(err)
	}
	var recorded observe.Server
	switch err := durable.Read(c.serverPath(), serverVersion, &recorded); {
	case err == nil:
		c.mu.Lock()
		c.server.recorded = &recorded
		c.mu.Unlock()
		c.watchServer(recorded)
	case errors.Is(err, fs.ErrNotExist):
	case errors.Is(err, durable.ErrNewer):
		// Without it a second server might be started beside the one that it names.
		return c.notOurs(err)
	default:
		c.Log.Error(err, "Record of the tmux server could not be used")
	}
	return nil
}

// notOurs says why a daemon does not go on with this state directory, and what to do.
func (c *Controller) notOurs(err error) error {
	if !errors.Is(err, durable.ErrNewer) {
		return fmt.Errorf("read state directory %s: %w", c.StateDir, err)
	}
	return fmt.Errorf("state directory %s belongs to a newer muxlet: %w: start that one, or give this one a directory of its own with --state-dir", c.StateDir, err)
}

// keep is by what files are written that another version of muxlet may have left.
func (c *Controller) keep() durable.Backup { return durable.Backup{State: c.StateDir} }

func (c *Controller) setInstance(instance string) error {
	if err := c.ClaimInstance(instance); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.instance = instance
	c.actuator = c.NewActuator(instance)
	return nil
}

// prepare makes sure that the instance is known and that the process table was
// searched for clients. Nothing may be started before.
func (c *Controller) prepare(ctx context.Context, snap *snapshot) (ready bool) {
	c.mu.Lock()
	instance, scanned := c.instance, c.server.scanned
	c.mu.Unlock()
	if instance == "" {
		c.resolveInstance(ctx, snap)
		return false
	}
	if scanned {
		return true
	}
	if err := c.eyes.scan(instance); err != nil {
		c.Log.Error(err, "Process table could not be searched for clients")
		return false
	}
	c.mu.Lock()
	c.server.scanned, c.resyncDue = true, true
	c.mu.Unlock()
	return true
}

// resolveInstance finds out who we are when the state directory does not tell:
// from the live server, from the clients of our socket, and only then anew.
func (c *Controller) resolveInstance(ctx context.Context, snap *snapshot) {
	instance := ""
	switch snap.view.State {
	case observe.ServerUnknown:
		c.repairServer(ctx, snap)
		return
	case observe.ServerNone:
		if c.claimUnrecorded(ctx) {
			return
		}
	case observe.ServerRunning:
		instance = snap.view.Listing.Server.Instance
	}
	if instance == "" {
		marked, err := c.Processes.Scan("")
		if err != nil {
			c.Log.Error(err, "Process table could not be searched for clients")
			return
		}
		instance = instanceOn(c.socket(), marked)
	}
	from := "the tmux server or its clients"
	if instance == "" {
		instance, from = c.NewID(), "nowhere: made anew"
	}
	if err := c.keep().Write(c.instancePath(), instanceVersion, instance); err != nil {
		c.Log.Error(err, "Instance could not be written")
		return
	}
	c.Log.Info("Resolved instance", "instance", instance, "from", from)
	if err := c.setInstance(instance); err != nil {
		// Looked at again: the other daemon may end.
		c.Log.Error(err, "Instance could not be claimed")
		return
	}
	c.queue.Add(serverKey)
}

// instanceOn is the instance of the clients that were started on a socket.
func instanceOn(socket string, marked []observe.MarkedProcess) string {
	for _, m := range marked {
		if m.Socket == socket {
			return m.Instance
		}
	}
	return ""
}

// FileVersions are the versions of the files that a Controller keeps at the top of its
// state directory, by their names.
func FileVersions() map[string]int {
	return map[string]int{"instance": instanceVersion, "server.json": serverVersion, "attention.json": attentionVersion, "notified.json": toldVersion}
}

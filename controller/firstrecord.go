// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"time"

	"github.com/muxlet/muxlet/controller/plan"
	"github.com/muxlet/muxlet/controller/record"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec"
)

// makeRecord gives a session that is seen for the first time its uid: that of a
// pane or client with its name, that of its archived record, or a new one.
func (c *Controller) makeRecord(s *session, snap *snapshot, w wish) bool {
	if snap.unproven || snap.view.State == observe.ServerUnknown || w.Spec == nil || w.Refusal.Reason != "" || w.Want == plan.Remove {
		return false
	}
	r, archived := c.firstRecord(s.name, labelsOf(snap, s.name))
	if err := c.saveForStart(r); err != nil {
		c.Log.V(1).Info("Record was not made", "session", s.name, "err", err.Error())
		s.unmade = plan.Verdict{Reason: spec.ReasonStateUnwritable, Message: err.Error()}
		return false
	}
	if archived {
		// What it was sent before its removal is not its any more.
		if err := c.TurnStore.ForgetSession(r.UID); err != nil {
			c.Log.Error(err, "Turns of a removed session were not forgotten", "session", s.name)
		}
		if err := c.Store.Unarchive(r.UID); err != nil {
			c.Log.Error(err, "Archived record was not removed", "session", s.name)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tellNameless(r, archived)
	delete(c.damaged, s.name)
	s.hold(r)
	// That it is declared again is a wish for it now: recoveryPolicy is about
	// sessions that were declared all the time.
	s.seen = s.seen || archived
	return true
}

// firstRecord is the record with which a session begins: its archived one, or one for
// what runs, or a blank one.
func (c *Controller) firstRecord(name string, labels observe.Labels) (r record.Record, archived bool) {
	uid, runs := labels.UID, labels.UID != ""
	if !runs {
		uid, runs = c.eyes.uidByName(name)
	}
	now := c.now()
	r, archived = c.Store.Archived(name, now.Add(-c.settings().ArchiveFor))
	r = renewed(r)
	if !archived || (runs && r.UID != uid) {
		if !runs {
			uid = c.NewID()
		}
		r, archived = c.blankRecord(name, uid, now), false
		// Whether the pane's attempt was executed is not known any more: its number
		// counts as spent.
		r.Incarnation = labels.Incarnation
		if runs && r.Block == nil {
			r.Block = c.lostBlock(name)
		}
	}
	r.Name = name
	return r, archived
}

// blankRecord is that of a session that has none, blocked when it had one that was
// damaged.
func (c *Controller) blankRecord(name, uid string, now time.Time) record.Record {
	c.mu.Lock()
	defer c.mu.Unlock()
	return record.Record{UID: uid, CreatedAt: now, Block: c.quarantineBlock(name)}
}

// lostBlock is why a session that has a pane or a client, and no record, must not be
// started blank when that client ends before it has told its conversation.
func (c *Controller) lostBlock(name string) *record.Block {
	return &record.Block{Reason: spec.ReasonRecordQuarantined, At: c.now(), Message: fmt.Sprintf(
		"its record was lost, so that its conversation is not known any more: name it in spec.conversation.id, or begin a new one with `muxlet resume %s --fresh`", name)}
}

// renewed is an archived record of a session that is declared again: what it is,
// what it has had, and a client that may still run; not why it was down, unless that is
// that its conversation is not known.
func renewed(r record.Record) record.Record {
	if r.Block != nil && r.Block.Reason != spec.ReasonRecordQuarantined {
		r.Block = nil
	}
	r.Held, r.Latch, r.Demand, r.Intent, r.Stop = "", nil, nil, nil, nil
	r.RemovedAt = time.Time{}
	r.BackOff = record.BackOff{}
	return r
}

// labelsOf finds the labels of a pane of ours that carries the name; a live pane
// goes before one that an earlier client has left.
func labelsOf(snap *snapshot, name string) observe.Labels {
	var found observe.Pane
	for _, panes := range snap.panes {
		for _, p := range panes {
			if p.Labels.Name == name && found.State != observe.Present {
				found = p
			}
		}
	}
	return found.Labels
}

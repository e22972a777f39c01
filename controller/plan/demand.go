// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"time"

	"github.com/muxlet/muxlet/controller/record"
	"github.com/muxlet/muxlet/controller/turn"
	"github.com/muxlet/muxlet/spec"
)

// What asks for a client: a person's demand, which is in the record, and the turns that
// are pending. An initial turn asks for nothing: it is of the client that is there.

// Demanded says whether somebody asks for a client who could know what was at that
// time: by one of turns that are pending, or by a demand in rec, which always counts,
// since what ends it drops it.
func Demanded(rec *record.Record, turns []turn.Turn, since time.Time) bool {
	return rec.Demand != nil || sentSince(turns, since)
}

func sentSince(turns []turn.Turn, at time.Time) bool {
	return slices.ContainsFunc(turns, func(t turn.Turn) bool {
		return t.Phase == turn.Pending && !t.Initial && t.CreatedAt.After(at)
	})
}

// turnSince says whether a turn is pending that was sent after that time.
func (p *pass) turnSince(at time.Time) bool { return sentSince(p.turns, at) }

func (p *pass) demandedSince(at time.Time) bool { return Demanded(&p.rec, p.turns, at) }

func (p *pass) demanded() bool { return p.demandedSince(time.Time{}) }

// untried says whether a person's demand was not tried yet. One that was given back had
// its try, and waits like everything else.
func (p *pass) untried() bool {
	d := p.rec.Demand
	return d != nil && !d.At.Before(p.rec.BackOff.LastDeathAt)
}

// buys says whether there is a demand that has not bought an immediate attempt yet.
func (p *pass) buys() bool {
	bought := p.rec.BackOff.BoughtAt
	return p.untried() && !p.rec.Demand.At.Before(bought) || p.turnSince(bought)
}

// triesAgainst says whether a start is worth a try although the same failure is likely
// to come again. A turn that was sent a moment after such a try would wait for nothing.
func (p *pass) triesAgainst(b *record.Block) bool {
	if p.rec.Demand != nil {
		return true
	}
	back := p.rec.BackOff
	waits := back.LastDeathAt.Add(p.Policy.wait(back.Deaths)).After(p.Now)
	return p.turnSince(b.At) && (!waits || p.Now.Sub(back.BoughtAt) >= buyInterval)
}

func (p *pass) onDemand() bool {
	return p.rec.Spec != nil && p.rec.Spec.ProvisioningPolicy == spec.ProvisioningOnDemand
}

// stayDormant: a session that has a client on demand only rests until there is one,
// whatever ended its client.
func (p *pass) stayDormant() bool {
	if !p.onDemand() || p.demanded() {
		return false
	}
	return p.say(spec.ReasonDormant, "provisioningPolicy is OnDemand: a turn, `muxlet resume` or `muxlet attach` starts its client", 0)
}

// serve hands the demand of an attempt on to its client, which has to become ready for
// it where its class tells when that is.
func (p *pass) serve(c *record.Client, a *record.Attempt) {
	if p.watched(c) {
		c.Demand = a.Demand
	}
	// The conversation of a client that began with a turn has had its first.
	c.InitialDue = a.Initial && a.Turn == "" && a.Resumes == ""
}

// satisfy takes the demand for a client away from the record: there is one. As long as
// that is not ready it may be asked for again.
func (p *pass) satisfy(c *record.Client) {
	switch {
	case !p.watched(c) || !c.ReadyAt.IsZero():
		c.Demand = nil
	case p.rec.Demand != nil:
		c.Demand = p.rec.Demand
	}
	p.rec.Demand = nil
}

// giveBack: what was asked for did not come to be. A session that has a client anyway
// gets the next one by itself.
func (p *pass) giveBack(d *record.Demand) {
	if d == nil || p.rec.Demand != nil || !p.onDemand() || p.unwanted() != "" {
		return
	}
	if i := p.rec.Intent; i != nil && i.Kind == record.IntentRestart {
		return
	}
	p.rec.Demand = d
}

// demandUpdate: a client that is replaced by muxlet is followed by another, also where
// its end would be the end.
func (p *pass) demandUpdate() {
	if p.onDemand() && p.rec.Demand == nil {
		p.rec.Demand = &record.Demand{Reason: spec.ReasonUpdating, At: p.Now}
	}
}

// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"strings"

	"github.com/muxlet/muxlet/controller/record"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec"
)

// liveClient is a process that runs and is proven to be a client of the
// session.
type liveClient struct {
	process     observe.Process
	attempt     string
	incarnation int64
	parent      int
	// panePID of the recorded client; 0 for others.
	panePID int
}

// liveClients lists them, the recorded one first. That one is judged by its own
// process alone: its mark may have been read a moment earlier or later.
func (p *pass) liveClients() []liveClient {
	var out []liveClient
	c := p.rec.Client
	if c != nil && p.Seen.Client == observe.Running {
		out = append(out, liveClient{process: c.Process, attempt: c.Attempt, incarnation: c.Incarnation, panePID: c.PanePID})
	}
	for _, m := range p.Seen.Clients {
		if c != nil && c.Process == m.Process {
			continue
		}
		out = append(out, liveClient{process: m.Process, attempt: m.Attempt, incarnation: m.Incarnation, parent: m.Parent})
	}
	return out
}

// recorded says whether c is the client that the record names, or the pending
// attempt's.
func (p *pass) recorded(c liveClient) bool {
	if p.rec.Client != nil && p.rec.Client.Process == c.process {
		return true
	}
	return p.rec.Attempt != nil && c.attempt == p.rec.Attempt.ID
}

// paneOf finds the pane in which c runs. Labels alone do not tell: they survive
// a person's own respawn, so the pane's pid must fit too.
func (p *pass) paneOf(c liveClient) (SeenPane, bool) {
	for _, pane := range p.Seen.Panes {
		if pane.State == observe.Present && p.holds(pane, c) {
			return pane, true
		}
	}
	return SeenPane{}, false
}

// holds says whether c runs in the pane: as its first process, below the shell
// that the record names, or below that shell as the process table tells. What
// lies between the pane and the client of a pending attempt was not written down
// yet; there the label has to do.
func (p *pass) holds(pane SeenPane, c liveClient) bool {
	switch pane.PID {
	case c.process.PID, c.panePID, c.parent:
		return pane.PID != 0
	}
	return p.rec.Attempt != nil && c.attempt == p.rec.Attempt.ID && pane.Labels.Attempt == c.attempt && pane.Live != observe.Gone && !pane.Taken()
}

// adoptLiveClient: the record was lost, is behind or was rolled back while
// tmux and the client lived on. The client in the pane wins: to start another
// would double it. A client that the record knows comes first, and of two in
// panes neither is chosen: those are duplicates.
func (p *pass) adoptLiveClient() bool {
	p.raiseIncarnation()
	if p.rec.Client != nil && p.Seen.Client != observe.Gone {
		return false
	}
	var found []liveClient
	for _, c := range p.liveClients() {
		if p.recorded(c) {
			return false
		}
		if _, ok := p.paneOf(c); ok {
			found = append(found, c)
		}
	}
	if len(found) != 1 {
		return false
	}
	return p.adopt(found[0])
}

// adopt makes c the recorded client. Whatever the record had in progress is
// about an earlier one, but for a person's intent: that names the incarnations
// which it is about.
func (p *pass) adopt(c liveClient) bool {
	pane, _ := p.paneOf(c)
	incarnation, attempt := c.incarnation, c.attempt
	if attempt == "" {
		incarnation, attempt = pane.Labels.Incarnation, pane.Labels.Attempt
	}
	p.rec.Incarnation = max(p.rec.Incarnation, incarnation)
	p.rec.Client = &record.Client{
		Incarnation: incarnation, Attempt: attempt, Process: c.process,
		Pane: pane.PaneID, PanePID: pane.PID, StartedAt: p.Now, Server: p.Seen.Server,
	}
	if a := p.rec.Attempt; a != nil && a.ID == attempt {
		c := p.rec.Client
		c.Launched, c.StartedAt, c.ClassRevision, c.Resumes, c.Directory = a.Spec.DeepCopy(), a.OpenedAt, a.ClassRevision, a.Resumes, a.Order.Directory
		p.serve(c, a)
		p.spendConversation(a)
	}
	// Where the client keeps its files nobody else knows, and they tell its conversation.
	if r := p.Seen.Receipt; p.Seen.ReceiptState == ReceiptFound && r.Attempt == attempt && r.Process == c.process && r.Stage == observe.StageExec {
		c := p.rec.Client
		c.Home, c.ConfigDirectory, c.Scope = r.Home, r.ConfigDirectory, r.Scope
		if r.At.Before(c.StartedAt) {
			// What its files tell of an earlier time than its start is not believed.
			c.StartedAt = r.At
		}
	}
	p.hear()
	p.rec.Attempt, p.rec.Stop = nil, nil
	p.rec.Demand, p.rec.Latch = nil, nil
	if b := p.rec.Block; b != nil && b.Reason != spec.ReasonRecordQuarantined {
		// A record that was lost is known again once the client has told its conversation.
		p.rec.Block = nil
	}
	p.event(Normal, spec.ReasonAdopted, fmt.Sprintf("Adopted incarnation %d, pid %d, pane %s", incarnation, c.process.PID, pane.PaneID))
	return p.say(spec.ReasonAdopted, fmt.Sprintf("incarnation %d runs as pid %d in pane %s", incarnation, c.process.PID, pane.PaneID), soon)
}

// raiseIncarnation keeps numbers rising when the record is behind what runs: a
// mark is proof that its number is spent. A label one above the record is that
// of an attempt that never ran, or of one whose client the record will learn of.
func (p *pass) raiseIncarnation() {
	for _, c := range p.Seen.Clients {
		p.rec.Incarnation = max(p.rec.Incarnation, c.Incarnation)
	}
	for _, pane := range p.Seen.Panes {
		unspent := p.rec.Incarnation
		if p.knownUnspent(pane.Labels.Attempt) {
			unspent++
		}
		if pane.Labels.Incarnation > unspent {
			p.rec.Incarnation = pane.Labels.Incarnation
		}
	}
}

// knownUnspent says whether the record knows of an attempt that it has spent no
// number yet, or none for good. Of any other label the number counts as spent.
func (p *pass) knownUnspent(attempt string) bool {
	return attempt == p.rec.LastFailed || (p.rec.Attempt != nil && attempt == p.rec.Attempt.ID)
}

// endDuplicate: two clients of one session would both write its workspace. The
// one that the record knows stays; without one to keep a person must choose.
func (p *pass) endDuplicate() bool {
	live := p.liveClients()
	if len(live) < 2 || p.rec.Stop != nil {
		return false
	}
	var keep, extra []liveClient
	for _, c := range live {
		if p.recorded(c) {
			keep = append(keep, c)
		} else {
			extra = append(extra, c)
		}
	}
	if len(keep) > 1 {
		// The record's client still runs although a later attempt was executed: the
		// one with a pane is the one that can be used.
		keep, extra = p.splitByPane(keep, extra)
	}
	if len(keep) == 0 || len(extra) == 0 {
		return p.say(spec.ReasonDuplicateClient, fmt.Sprintf("pids %s all are clients of this session and the record does not tell which of them to keep: end all but one of them by hand", pids(live)), 0)
	}
	p.event(Warning, spec.ReasonDuplicateClient, fmt.Sprintf("Ending pid %d: pid %d is the session's client", extra[0].process.PID, keep[0].process.PID))
	return p.beginStop(record.StopDuplicate, extra[0].process)
}

func (p *pass) splitByPane(keep, extra []liveClient) (with, without []liveClient) {
	without = extra
	for _, c := range keep {
		if _, ok := p.paneOf(c); ok {
			with = append(with, c)
		} else {
			without = append(without, c)
		}
	}
	return with, without
}

func pids(live []liveClient) string {
	words := make([]string, 0, len(live))
	for _, c := range live {
		words = append(words, fmt.Sprint(c.process.PID))
	}
	return strings.Join(words, ", ")
}

// endOrphan: a client whose pane is dead or gone can never take another turn,
// and still writes. It is ended before another is started.
func (p *pass) endOrphan() bool {
	if p.rec.Stop != nil {
		return false
	}
	for _, c := range p.liveClients() {
		if _, ok := p.paneOf(c); ok || p.youngerThanListing(c) {
			continue
		}
		p.event(Warning, spec.ReasonOrphan, fmt.Sprintf("Ending pid %d: it runs without its pane", c.process.PID))
		return p.beginStop(record.StopOrphan, c.process)
	}
	return false
}

// youngerThanListing says whether c is the pending attempt's client and was
// executed after the listing was made: its pane may be there by now.
func (p *pass) youngerThanListing(c liveClient) bool {
	a := p.rec.Attempt
	return a != nil && c.attempt == a.ID && p.Seen.ReceiptState == ReceiptFound && p.Seen.Receipt.At.After(p.Seen.At)
}

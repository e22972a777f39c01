// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"time"

	"github.com/muxlet/muxlet/controller/record"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec"
)

// permanent are the reasons that time alone does not mend.
var permanent = map[string]bool{
	spec.ReasonCommandNotFound:       true,
	spec.ReasonWorkspaceMissing:      true,
	spec.ReasonWorkspaceNotDirectory: true,
	spec.ReasonWorkspaceInaccessible: true,
	spec.ReasonEnvFileMissing:        true,
	spec.ReasonEnvFileUnreadable:     true,
	spec.ReasonEnvFileInvalid:        true,
	spec.ReasonCommandNotExecutable:  true,
	spec.ReasonResourcesUnsupported:  true,
}

// Permanent says whether time alone does not mend a reason.
func Permanent(reason string) bool { return permanent[reason] }

// judgeAttempt brings a pending attempt to its end: executed, failed, or given
// up behind a closed fence. Nothing else is decided while one is pending.
func (p *pass) judgeAttempt() bool {
	a := p.rec.Attempt
	if a == nil {
		return false
	}
	found := p.Seen.ReceiptState == ReceiptFound
	switch {
	case found && p.Seen.Receipt.Stage == observe.StageExec:
		return p.judgeExecuted(a)
	case p.marked(a.ID):
		return p.judgeUnreceipted(a)
	case found:
		return p.judgeFailure(a)
	case p.Seen.ReceiptState == ReceiptUnknown:
		// A damaged receipt never becomes readable. While somebody holds the lease the
		// client may run all the same.
		if p.Seen.Lease.State != observe.Gone || p.Now.Sub(a.OpenedAt) < startupTimeout(&a.Spec) {
			return p.say(spec.ReasonStarting, "the launcher's receipt could not be read", pollSlow)
		}
	}
	return p.judgeSilent(a)
}

// judgeUnreceipted: a client that proves by its mark to be the attempt's was
// executed, whatever has become of its receipt. A receipt that was merely read
// before it was written gets its time first.
func (p *pass) judgeUnreceipted(a *record.Attempt) bool {
	if p.Now.Sub(a.OpenedAt) >= markPatience {
		for _, c := range p.liveClients() {
			if c.attempt == a.ID {
				return p.adopt(c)
			}
		}
	}
	return p.say(spec.ReasonStarting, "the client runs; waiting for its launcher's receipt", pollReceipt)
}

// receiptAge is how long ago the receipt was written. One from the future was
// written before the clock jumped back: no wait may grow by that.
func (p *pass) receiptAge(a *record.Attempt) time.Duration {
	if p.Seen.Receipt.At.After(p.Now) {
		return p.Now.Sub(a.OpenedAt)
	}
	return p.Now.Sub(p.Seen.Receipt.At)
}

// judgeExecuted: the receipt says that the client is executed next. The mark
// tells that it was; a client that hides its environment is believed after a
// while, since a failed exec overwrites the receipt.
func (p *pass) judgeExecuted(a *record.Attempt) bool {
	if p.Seen.ReceiptProcess == observe.LivenessUnknown {
		return p.say(spec.ReasonProcessUnknown, fmt.Sprintf("whether pid %d runs could not be read", p.Seen.Receipt.Process.PID), pollSlow)
	}
	if p.Seen.ReceiptProcess == observe.Running && !p.marked(a.ID) && p.receiptAge(a) < markPatience {
		return p.say(spec.ReasonStarting, "the client is being executed", pollStatus)
	}
	if a.Fence == record.FenceClosed && p.Seen.ReceiptProcess == observe.Gone {
		return p.endGivenUp(a)
	}
	c := &record.Client{
		Incarnation: a.Incarnation, Attempt: a.ID, Process: p.Seen.Receipt.Process,
		StartedAt: p.Seen.Receipt.At, Launched: a.Spec.DeepCopy(), Server: p.Seen.Server,
		ClassRevision: a.ClassRevision, Resumes: a.Resumes,
		Directory: a.Order.Directory, Home: p.Seen.Receipt.Home, ConfigDirectory: p.Seen.Receipt.ConfigDirectory,
		Scope: p.Seen.Receipt.Scope,
	}
	if c.StartedAt.After(p.Now) {
		c.StartedAt = p.Now
	}
	pane, _ := p.paneOfAttempt(a.ID)
	c.Pane, c.PanePID = pane.PaneID, pane.PID
	p.spendConversation(a)
	p.serve(c, a)
	p.rec.Client, p.rec.Attempt = c, nil
	if b := p.rec.Block; b != nil && b.Reason != spec.ReasonRecordQuarantined {
		p.rec.Block = nil
	}
	p.rec.Incarnation = max(p.rec.Incarnation, a.Incarnation)
	started := fmt.Sprintf("Started incarnation %d, pid %d, pane %s", c.Incarnation, c.Process.PID, c.Pane)
	if c.Resumes != "" {
		started += ", with conversation " + c.Resumes
	}
	p.event(Normal, spec.ReasonStarted, started)
	p.hear()
	// The rest of this pass would judge the new client by what was seen before
	// the record knew it. Its pane was seen.
	p.plan.Same = c.Pane != ""
	return p.say(spec.ReasonStarted, fmt.Sprintf("incarnation %d was executed as pid %d", c.Incarnation, c.Process.PID), soon)
}

// endGivenUp: the client was executed although its attempt was being given up, and
// has ended with it. Its number is spent, and its exit says nothing about its
// work: it was ended by us.
func (p *pass) endGivenUp(a *record.Attempt) bool {
	p.rec.Incarnation = max(p.rec.Incarnation, a.Incarnation)
	unspent := p.rec.LastFailed
	p.spendConversation(a)
	p.failAttempt(a.Reason, a.Message)
	p.rec.LastFailed = unspent
	if t := p.rec.LastTermination; t != nil && t.Incarnation == 0 && t.At.Equal(p.Now) {
		t.Incarnation = a.Incarnation
	}
	return p.say(spec.ReasonStarting, "the attempt was given up, and its client has ended", soon)
}

func (p *pass) marked(attempt string) bool {
	for _, c := range p.Seen.Clients {
		if c.Attempt == attempt {
			return true
		}
	}
	return false
}

// paneOfAttempt finds the pane in which the attempt's launcher was started, unless a
// person has run something else in it: that is neither waited for nor ended.
func (p *pass) paneOfAttempt(attempt string) (SeenPane, bool) {
	for _, pane := range p.Seen.Panes {
		if pane.Labels.Attempt == attempt && !pane.Taken() {
			return pane, true
		}
	}
	return SeenPane{}, false
}

// judgeFailure: the launcher says why there is no client. The attempt is over
// when its pane's process is.
func (p *pass) judgeFailure(a *record.Attempt) bool {
	r := p.Seen.Receipt
	if pane, ok := p.paneOfAttempt(a.ID); ok && !p.spent(pane) {
		if pane.Live == observe.LivenessUnknown {
			return p.notJudged(pane)
		}
		if p.receiptAge(a) < markPatience {
			return p.say(spec.ReasonStarting, "the launcher is ending: "+r.Message, pollStatus)
		}
		return p.beginStop(record.StopLeftover, pane.Process)
	}
	p.failAttempt(r.Reason, r.Message)
	if p.judgeResume(a, r) {
		return false
	}
	if permanent[r.Reason] {
		p.rec.Demand = nil
		// What was mended since the launcher looked is mended.
		at := p.Now.Add(-max(p.receiptAge(a), 0))
		p.rec.Block = &record.Block{Reason: r.Reason, Message: r.Message, LookedFor: r.LookedFor, LookedIn: r.LookedIn, File: r.File, At: at}
	}
	return false
}

// pollAttempt looks at the timeout at the latest; receipts give hints too.
func (p *pass) pollAttempt(a *record.Attempt, timeout time.Duration) time.Duration {
	age := p.Now.Sub(a.OpenedAt)
	return min(poll(age), max(timeout-age, soon))
}

// poll is when to look again at what began that long ago: often at first, rarely
// later.
func poll(age time.Duration) time.Duration {
	return min(max(pollReceipt, age/4), time.Second)
}

func stopOfAttempt(reason string) record.StopReason {
	switch reason {
	case spec.ReasonRemoved:
		return record.StopRemoved
	case spec.ReasonSuspended:
		return record.StopSuspended
	case spec.ReasonTerminated:
		return record.StopTerminated
	}
	return record.StopStartTimeout
}

// unwanted says why nobody wants the attempt any more; empty while it is wanted.
func (p *pass) unwanted() string {
	switch {
	case p.Desired.Want == Remove:
		return spec.ReasonRemoved
	case p.rec.Spec != nil && p.rec.Spec.Suspend:
		return spec.ReasonSuspended
	case p.rec.Intent != nil && p.rec.Intent.Kind == record.IntentTerminate:
		return spec.ReasonTerminated
	}
	return ""
}

// failAttempt ends an attempt whose client was not executed. It is counted, but
// for one that nobody wanted any more.
func (p *pass) failAttempt(reason, message string) {
	a := p.rec.Attempt
	p.rec.Attempt, p.rec.LastFailed = nil, a.ID
	switch reason {
	case spec.ReasonRemoved, spec.ReasonSuspended, spec.ReasonTerminated:
		return
	}
	p.giveBack(a.Demand)
	p.countDeath(p.Now)
	p.rec.LastTermination = &record.Termination{Reason: reason, Message: message, At: p.Now}
	p.event(Warning, reason, fmt.Sprintf("Incarnation %d was not started: %s", a.Incarnation, message))
}

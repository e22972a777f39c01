// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"time"

	"github.com/muxlet/muxlet/actuate"
	"github.com/muxlet/muxlet/controller/record"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec"
)

// remove takes the session away: client, pane, record. A pane that a person
// runs something in is left to them.
func (p *pass) remove() bool {
	if p.Desired.Want != Remove {
		return false
	}
	p.plan.Looked = true
	orphan := p.rec.Spec != nil && p.rec.Spec.DeletionPolicy == spec.DeletionOrphan
	if c := p.rec.Client; c != nil {
		if !orphan {
			return p.beginStop(record.StopRemoved, c.Process)
		}
		p.event(Normal, spec.ReasonOrphaned, fmt.Sprintf("The document was removed; pid %d was left running in pane %s", c.Process.PID, c.Pane))
		p.plan.Fate = FateArchive
		return p.say(spec.ReasonOrphaned, "removed; the client was left running", 0)
	}
	if orphan {
		p.Seen.Remains = nil
	}
	if p.endSurvivors(record.StopRemoved) {
		return true
	}
	for _, pane := range p.Seen.Panes {
		switch {
		case p.spent(pane):
			p.plan.Action = actuate.Action{Kind: actuate.ActionKillPane, Server: p.Seen.Server, Pane: pane.Pane}
			return p.say(spec.ReasonRemoved, "removing pane "+pane.PaneID, pollSlow)
		case pane.Live == observe.LivenessUnknown:
			return p.notJudged(pane)
		case p.ours(pane):
			return p.beginStop(record.StopRemoved, pane.Process)
		case pane.Taken():
			return p.release(pane, spec.ReasonRemoved)
		}
	}
	p.event(Normal, spec.ReasonRemoved, "The document was removed and the session is gone")
	p.plan.Fate = FateArchive
	return p.say(spec.ReasonRemoved, "removed", 0)
}

// spent says whether a pane of ours holds no running process.
func (p *pass) spent(pane SeenPane) bool {
	return pane.State == observe.Dead || pane.Live == observe.Gone
}

// suspend keeps the client down while spec.suspend is true.
func (p *pass) suspend() bool {
	if p.rec.Spec == nil || !p.rec.Spec.Suspend {
		return false
	}
	p.plan.Looked = true
	if c := p.rec.Client; c != nil {
		return p.beginStop(record.StopSuspended, c.Process)
	}
	if p.endSurvivors(record.StopSuspended) {
		return true
	}
	p.settleIntent()
	p.rec.Demand = nil
	return p.say(spec.ReasonSuspended, "spec.suspend is true: `muxlet resume` or an edit starts it again", 0)
}

// obeyIntent ends the incarnation that a person pointed at, and no later one.
func (p *pass) obeyIntent() bool {
	i, c := p.rec.Intent, p.rec.Client
	if i == nil {
		return false
	}
	if c != nil && c.Incarnation <= i.Incarnation {
		if i.Kind == record.IntentTerminate {
			return p.beginStop(record.StopTerminated, c.Process)
		}
		return p.beginStop(record.StopRestarting, c.Process)
	}
	if c == nil && i.Kind == record.IntentTerminate && p.endSurvivors(record.StopTerminated) {
		return true
	}
	p.settleIntent()
	return false
}

// endSurvivors: what earlier restarts have left, and what is in the session's scopes, is
// ended with the session, also when its client is gone already.
func (p *pass) endSurvivors(reason record.StopReason) bool {
	for _, left := range p.remains() {
		if !slices.Contains(p.rec.Survivors, left) {
			p.rec.Survivors = append(p.rec.Survivors, left)
		}
	}
	if len(p.rec.Survivors) == 0 {
		return false
	}
	return p.beginStop(reason, p.rec.Survivors[0])
}

// settleIntent is what follows once there is no client that the intent is about,
// however that came to its end: a person's word outlives a death that was first.
func (p *pass) settleIntent() {
	i := p.rec.Intent
	p.rec.Intent = nil
	switch {
	case i == nil || p.rec.Client != nil:
	case i.Kind == record.IntentTerminate && p.turnSince(i.At):
		// It is wanted again already.
	case i.Kind == record.IntentTerminate:
		p.latch(spec.ReasonTerminated, "ended by a person")
		p.event(Normal, spec.ReasonTerminated, "Stays down until it is resumed")
	case p.rec.Demand == nil:
		p.rec.Demand = &record.Demand{Reason: spec.ReasonRestarting, At: p.Now}
	}
}

// endLeftover: the client has ended and the shell through which it was launched
// has not. It is ended now, while it is still known to be ours, and whatever the
// session does next.
func (p *pass) endLeftover() bool {
	if p.rec.Client != nil {
		return false
	}
	for _, pane := range p.Seen.Panes {
		if p.ours(pane) && !p.spent(pane) && pane.Live == observe.Running {
			return p.beginStop(record.StopLeftover, pane.Process)
		}
		if pane.Husk() {
			p.plan.Action = actuate.Action{Kind: actuate.ActionKillPane, Server: p.Seen.Server, Pane: pane.Pane}
			return p.say(spec.ReasonStarting, fmt.Sprintf("removing pane %s: tmux could not start a process in it, and would crash at the next try", pane.PaneID), pollSlow)
		}
	}
	return false
}

// judgeRecovery: a session that lost its client while no daemon looked may be one
// that is not to be recovered by itself. That is judged at the first look, also
// when something else keeps the session down for now.
func (p *pass) judgeRecovery() bool {
	hadClient := p.rec.Incarnation > 0
	if !p.FirstLook || !hadClient || p.rec.Latch != nil || p.demanded() ||
		p.rec.Spec == nil || p.rec.Spec.RecoveryPolicy != spec.RecoveryDormant {
		return false
	}
	if a := p.Record.Attempt; a != nil && a.Demand != nil {
		// A person has asked for the start that this daemon found unfinished.
		return false
	}
	if c := p.Record.Client; c != nil && c.Demand != nil {
		return false
	}
	p.latch(spec.ReasonNotRecovered, "its client was lost while no daemon looked; recoveryPolicy is Dormant")
	p.event(Normal, spec.ReasonNotRecovered, "Stays down until it is resumed: "+p.rec.Latch.Message)
	return false
}

// refuse: there is nothing that could be started.
func (p *pass) refuse() bool {
	p.plan.Looked = true
	if p.Desired.Refusal.Reason != "" {
		return p.say(p.Desired.Refusal.Reason, p.Desired.Refusal.Message, 0)
	}
	if p.rec.Spec == nil {
		return p.say(spec.ReasonInvalid, "no valid document has been seen yet", 0)
	}
	if p.class == nil {
		return p.say(spec.ReasonClassNotFound, p.noClassSentence(), 0)
	}
	return false
}

func (p *pass) noClassSentence() string {
	return fmt.Sprintf("there is no client class %q: declare it, or name another in spec.clientClassName (`muxlet get clientclasses` lists them)", p.rec.Spec.ClientClassName)
}

// stayDown: a latch holds until a demand.
func (p *pass) stayDown() bool {
	l := p.rec.Latch
	if l == nil {
		return false
	}
	if p.demandedSince(l.At) || p.policyReleases(l) {
		p.rec.Latch = nil
		return false
	}
	if l.Reason == spec.ReasonTerminated && len(p.remains()) > 0 {
		return p.endSurvivors(record.StopTerminated)
	}
	return p.say(l.Reason, l.Message+": `muxlet resume` starts it again", 0)
}

// policyReleases: a session that was complete under its old restart policy is
// not under the new one.
func (p *pass) policyReleases(l *record.Latch) bool {
	if l.Reason != spec.ReasonCompleted || p.rec.LastTermination == nil {
		return false
	}
	return !completes(p.rec.Spec.RestartPolicy, p.rec.LastTermination.Exit)
}

// waitForPane: our pane holds a process that we know nothing of. One that a person
// started there is left alone and the pane is theirs: the client comes back beside
// it. Of any other one it is not known that it is no client of ours, and another
// would double it.
func (p *pass) waitForPane() bool {
	for _, pane := range p.Seen.Panes {
		if p.spent(pane) {
			continue
		}
		if pane.Live == observe.LivenessUnknown {
			return p.notJudged(pane)
		}
		if pane.Taken() {
			return p.release(pane, spec.ReasonPaneTaken)
		}
		return p.say(spec.ReasonNameConflict, fmt.Sprintf("pane %s runs pid %d, which muxlet did not start there: end it, and the client is started in the pane", pane.PaneID, pane.PID), 0)
	}
	return false
}

// release gives a pane up to the person who runs something in it. tmux refuses that
// as long as it is our own launcher that they have run again: it ends by itself.
func (p *pass) release(pane SeenPane, reason string) bool {
	p.plan.Action = actuate.Action{Kind: actuate.ActionRelease, Server: p.Seen.Server, Pane: pane.Pane}
	return p.say(reason, fmt.Sprintf("pane %s runs pid %d, which a person has started there: the pane is theirs now", pane.PaneID, pane.PID), pollSlow)
}

func (p *pass) notJudged(pane SeenPane) bool {
	return p.say(spec.ReasonProcessUnknown, fmt.Sprintf("pid %d in pane %s could not be judged", pane.PID, pane.PaneID), pollSlow)
}

// ours says whether a pane's process is the shell through which the last client
// was launched: the client is accounted for, and its pane shows the pid that it
// showed then.
func (p *pass) ours(pane SeenPane) bool {
	c := p.Record.Client
	return c != nil && pane.Labels.Attempt == c.Attempt && pane.PID == c.PanePID && pane.PID != c.Process.PID
}

// waitForWorld: the same failure would come again until something else changes.
// A person's demand asks for one try all the same.
func (p *pass) waitForWorld() bool {
	if p.Workspace.Obstacle != "" {
		p.rec.Demand = nil
		return p.say(p.Workspace.Obstacle, p.Workspace.Message, 0)
	}
	if why := p.unlimitable(); why != "" {
		p.rec.Demand = nil
		return p.say(spec.ReasonResourcesUnsupported, why, 0)
	}
	b := p.rec.Block
	if b == nil {
		return false
	}
	if stands, known := p.conversationBlock(b); known {
		if !stands {
			p.endConversationBlock(b)
			return false
		}
		p.rec.Demand = nil
		return p.say(b.Reason, b.Message, 0)
	}
	if p.Block != ObstacleCleared && !p.triesAgainst(b) {
		return p.say(b.Reason, b.Message, 0)
	}
	p.rec.Block = nil
	if back := &p.rec.BackOff; p.Block == ObstacleCleared && p.Now.Sub(back.BoughtAt) >= buyInterval {
		// At once, but not over and over: what looks cleared from here may not be so
		// for the launcher.
		back.LastDeathAt, back.BoughtAt = time.Time{}, p.Now
	}
	return false
}

// waitForTime is the back-off. A demand buys one immediate attempt, once, and at most
// one in ten seconds; it does not reset the count.
func (p *pass) waitForTime() bool {
	b := &p.rec.BackOff
	wait := p.Policy.wait(b.Deaths)
	left := b.LastDeathAt.Add(wait).Sub(p.Now)
	if left <= 0 {
		return false
	}
	if p.buys() {
		if p.Now.Sub(b.BoughtAt) >= buyInterval {
			return false
		}
		left = min(left, b.BoughtAt.Add(buyInterval).Sub(p.Now))
	}
	p.plan.NextAttempt = p.Now.Add(left)
	return p.say(spec.ReasonCrashLoopBackOff, fmt.Sprintf("%d deaths in a row, the last: %s; the next start is in %s",
		b.Deaths, p.lastEnd(), left.Round(time.Second)), left)
}

func (p *pass) lastEnd() string {
	if t := p.rec.LastTermination; t != nil {
		return t.Message
	}
	return "not known"
}

// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/muxlet/muxlet/actuate"
	"github.com/muxlet/muxlet/controller/record"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec"
)

// update replaces a client whose launch-relevant spec has changed, when the
// strategy allows it. What the client was started from may not be known after a
// loss of state: then it is left alone.
func (p *pass) update() bool {
	c := p.rec.Client
	if c == nil || c.Launched == nil || p.rec.Spec == nil {
		return false
	}
	fields := p.launchDiff(c)
	if len(fields) == 0 {
		if p.elsewhere() {
			p.plan.Pending, p.plan.PendingReason = p.elsewhereSentence(), spec.ReasonConversationElsewhere
		}
		return false
	}
	changed := strings.Join(fields, ", ")
	p.plan.PendingReason = spec.ReasonUpdatePending
	if why := p.unstartable(); why != "" {
		p.edit = editHindered
		p.plan.Pending = fmt.Sprintf("%s changed: the client is kept, since no other could be started: %s", changed, why)
		return false
	}
	switch p.rec.Spec.UpdateStrategy.Type {
	case spec.UpdateOnRestart:
		p.edit = editAtRestart
		p.plan.Pending = fmt.Sprintf("%s changed: waits for the next restart (updateStrategy OnRestart)", changed)
		return false
	case spec.UpdateWhenIdle:
		if until := p.busyUntil(c); until != "" {
			p.edit = editWhenIdle
			p.plan.Pending = fmt.Sprintf("%s changed: waits until %s (updateStrategy WhenIdle)", changed, until)
			return false
		}
	case spec.UpdateRecreate:
	}
	p.plan.Looked, p.plan.PendingReason = true, ""
	p.demandUpdate()
	p.event(Normal, spec.ReasonUpdating, fmt.Sprintf("Replacing incarnation %d: %s changed", c.Incarnation, changed))
	return p.beginStop(record.StopUpdating, c.Process)
}

// launchDiff names what the client was started with and what is different now. The
// directory of a conversation that has begun is the conversation's, whatever the spec
// says; an id to take up counts as long as it was not taken up.
func (p *pass) launchDiff(c *record.Client) []string {
	settled := bound(&p.rec, p.rec.Spec) != nil
	fields := slices.DeleteFunc(spec.LaunchDiff(c.Launched, p.rec.Spec), func(path string) bool {
		return path == "spec.conversation.id" || path == "spec.workspace.directory" && settled
	})
	if p.class == nil || slices.Contains(fields, "spec.clientClassName") {
		return fields
	}
	if p.class.converses() && adoptable(&p.rec, p.rec.Spec) != "" {
		fields = append(fields, "spec.conversation.id")
	}
	return append(fields, spec.ClassDiff(c.ClassRevision, p.class.Revision)...)
}

// unstartable is why a client that is ended now could not be followed by another.
func (p *pass) unstartable() string {
	if p.Desired.Refusal.Reason != "" {
		return p.Desired.Refusal.Message
	}
	if p.class == nil {
		return p.noClassSentence()
	}
	if id := p.taken(); id != "" {
		return p.rivalSentence(id)
	}
	if why := p.unlimitable(); why != "" {
		return why
	}
	return ""
}

// busyUntil is what a replacement waits for: a client that works, or whose question
// would be lost. Of one that does not tell, a person in front of it is taken as a
// sign.
func (p *pass) busyUntil(c *record.Client) string {
	activity := spec.ActivityUnknown
	if p.sighted(c) && p.Sight.Activity != "" {
		activity = p.Sight.Activity
	}
	switch {
	case p.hasTurn(c):
		return "the turn that it was given has ended"
	case activity == spec.ActivityWorking:
		return "it does not work"
	case activity == spec.ActivityAwaitingInput && !c.ReadyAt.IsZero():
		return "its question is answered"
	case activity == spec.ActivityUnknown && p.attached(c) > 0:
		return "nobody is attached"
	}
	return ""
}

// attached counts the people in front of the client's pane.
func (p *pass) attached(c *record.Client) int {
	pane, _ := p.panePIDOf(c)
	return pane.Attached
}

// awaitReady: the client runs in its pane, and may not be usable. What was demanded is
// there once it is.
func (p *pass) awaitReady() bool {
	c := p.rec.Client
	if c == nil {
		return false
	}
	p.plan.Looked = true
	p.satisfy(c)
	if p.engineGone(c) || p.waitUntilReady(c) {
		return true
	}
	c.Demand = nil
	p.askInitially(c)
	return false
}

// keepLive: the client is what is wanted. Dead panes of earlier attempts beside it are
// of no use to anybody.
func (p *pass) keepLive() bool {
	c := p.rec.Client
	if c == nil {
		return false
	}
	reason := p.liveReason(c)
	again := p.tellOOM(c)
	for _, pane := range p.Seen.Panes {
		if pane.State == observe.Dead && pane.Labels.Attempt != c.Attempt {
			p.plan.Action = actuate.Action{Kind: actuate.ActionKillPane, Server: p.Seen.Server, Pane: pane.Pane}
			return p.say(reason, "removing the dead pane "+pane.PaneID+" of an earlier attempt", pollSlow)
		}
	}
	return p.say(reason, fmt.Sprintf("incarnation %d runs as pid %d", c.Incarnation, c.Process.PID), soonest(p.pollPending(c), again))
}

// soonest is the shorter of two waits, of which 0 is none.
func soonest(a, b time.Duration) time.Duration {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

func (p *pass) liveReason(c *record.Client) string {
	if p.watched(c) {
		return spec.ReasonReady
	}
	return spec.ReasonRunning
}

// pollPending is when to look whether what an edit waits for has come, or what the
// client is to start.
func (p *pass) pollPending(c *record.Client) time.Duration {
	switch {
	case p.plan.PendingReason != spec.ReasonUpdatePending || p.rec.Spec.UpdateStrategy.Type != spec.UpdateWhenIdle || p.unstartable() != "":
		return p.pollEngine(c)
	case p.sighted(c) && p.Sight.Activity == spec.ActivityWorking:
		return pollActivity
	}
	return pollDetach
}

// waitForServer: without a tmux server there is nowhere to start.
func (p *pass) waitForServer() bool {
	if p.Seen.Confirmation == Unconfirmed {
		return p.say(spec.ReasonConfirming, "most sessions were seen dead at once: looking once more before anything is started", pollReceipt)
	}
	if p.Seen.ServerState == observe.ServerRunning {
		return false
	}
	if p.Seen.ServerFailure != "" {
		return p.say(spec.ReasonTmuxServerFailed, p.Seen.ServerFailure, 0)
	}
	return p.say(spec.ReasonServerStarting, "waiting for a tmux server", 0)
}

// waitForName: a tmux session that is not ours has the name. It is not touched.
func (p *pass) waitForName() bool {
	if len(p.Seen.Panes) > 0 || p.Seen.NameHolder == "" {
		return false
	}
	return p.say(spec.ReasonNameConflict, fmt.Sprintf("tmux session %s has the name %q and no pane of this session: rename or end it", p.Seen.NameHolder, p.rec.Name), 0)
}

// waitForBudget: too many starts at once make each of them slow.
func (p *pass) waitForBudget() bool {
	if p.Grant == GrantStart {
		return false
	}
	return p.say(spec.ReasonWaitingForBudget, "waiting for other sessions' starts", pollBudget)
}

// start opens an attempt: into our own dead pane if there is one, which keeps
// layout, scrollback and attached people, else in a new tmux session.
func (p *pass) start() bool {
	action := actuate.Action{Kind: actuate.ActionCreate, Server: p.Seen.Server}
	if pane, ok := p.usablePane(); ok {
		action.Kind, action.Pane = actuate.ActionRespawn, pane.Pane
		if pane.State != observe.Dead {
			if left := respawnKillAge - p.goneFor(); left > 0 {
				p.plan.Action = actuate.Action{Kind: actuate.ActionReap, Server: p.Seen.Server}
				return p.say(spec.ReasonStarting, fmt.Sprintf("tmux still holds pid %d of pane %s to be alive", pane.PID, pane.PaneID), min(left, pollSlow))
			}
			action.Kind = actuate.ActionRespawnKill
		}
	}
	if p.awaitArgument() {
		return true
	}
	p.dropQuarantine()
	p.assignConversation()
	a := p.newAttempt()
	p.beginWith(a)
	action.Launch = p.launch(a)
	if p.buys() && p.Policy.wait(p.rec.BackOff.Deaths) > 0 {
		p.rec.BackOff.BoughtAt = p.Now
	}
	p.rec.Attempt, a.Demand, p.rec.Demand = a, p.rec.Demand, nil
	p.plan.Action = action
	return p.say(spec.ReasonStarting, fmt.Sprintf("starting incarnation %d", a.Incarnation), pollReceipt)
}

// goneFor is how long the process of our pane has been gone at least: since the
// end that was accounted for last or, when the record knows of none, since there
// is a record. A time in the future was written by a clock that has jumped back.
func (p *pass) goneFor() time.Duration {
	since := p.rec.CreatedAt
	if t := p.rec.LastTermination; t != nil {
		since = t.At
	}
	if since.After(p.Now) {
		return respawnKillAge
	}
	return max(p.Seen.GoneFor, p.Now.Sub(since))
}

// usablePane prefers a dead pane to one that tmux wrongly holds to be alive. Here
// all of them are spent.
func (p *pass) usablePane() (found SeenPane, ok bool) {
	for _, pane := range p.Seen.Panes {
		if !ok || (found.State != observe.Dead && pane.State == observe.Dead) {
			found, ok = pane, true
		}
	}
	return found, ok
}

func (p *pass) launch(a *record.Attempt) actuate.Launch {
	t := p.rec.Spec.Terminal
	history := int32(50000)
	if t.HistoryLimit != nil {
		history = *t.HistoryLimit
	}
	return actuate.Launch{
		Labels: observe.Labels{
			Instance: a.Order.Instance, UID: p.rec.UID, Name: p.rec.Name, Attempt: a.ID,
			Role: observe.RoleClient, Incarnation: a.Incarnation,
		},
		Into: p.Seen.OwnSession, Directory: a.Order.Directory, ShellMode: a.Order.ShellMode,
		Columns: int(t.Columns), Rows: int(t.Rows), HistoryLimit: int(history),
	}
}

// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/muxlet/muxlet/controller/record"
	"github.com/muxlet/muxlet/spec"
)

// takeDesired makes the valid spec in force the record's last good one. A
// change of the spec is a new generation: it resets the back-off and what a
// person could have mended by the edit.
func (p *pass) takeDesired() {
	d := p.Desired
	if d.File != "" {
		p.rec.File = d.File
	}
	p.rec.Held = d.Held
	if d.Spec == nil {
		return
	}
	if !maps.Equal(d.Labels, p.rec.Labels) {
		p.rec.Labels = d.Labels
	}
	if before := p.rec.Spec; before == nil || !equality.Semantic.DeepEqual(*d.Spec, *before) {
		p.rec.Spec = d.Spec.DeepCopy()
		p.rec.Generation++
		p.anew()
		p.warnOfDirectory(before)
	}
	switch id := d.Spec.Conversation.ID; {
	case id == "":
		p.rec.AdoptedID = ""
	case p.rec.Conversation != nil && p.rec.Conversation.ID == id:
		p.rec.AdoptedID = id
	}
}

// anew: what stood in the way of a start may be mended by an edit. A record that was
// lost is not.
func (p *pass) anew() {
	p.rec.BackOff = record.BackOff{}
	if b := p.rec.Block; b != nil && b.Reason != spec.ReasonRecordQuarantined {
		p.rec.Block = nil
	}
}

// takeClass makes the client class in force the record's last good one: sessions of
// a class whose document vanishes or breaks go on, and are brought back, with that.
func (p *pass) takeClass() {
	if p.rec.Spec == nil {
		return
	}
	p.class = ClassOf(&p.rec, p.rec.Spec, p.Class)
	if p.Class == nil || p.class != p.Class {
		return
	}
	now := *p.class
	if now.Name == spec.ClassExec && now.Revision == "" {
		now = Class{}
	}
	if now.Name == p.rec.ClassName && now.Revision == p.rec.ClassRevision && equality.Semantic.DeepEqual(now.Spec, p.rec.Class) {
		return
	}
	if now.Name != "" && now.Name == p.rec.ClassName {
		p.anew()
	}
	p.rec.Class, p.rec.ClassName, p.rec.ClassRevision = now.Spec.DeepCopy(), now.Name, now.Revision
}

// warnOfDirectory: an edit of the directory does not move a conversation that has
// begun. It goes on where it belongs, which is told once.
func (p *pass) warnOfDirectory(before *spec.SessionSpec) {
	if before == nil || before.Workspace.Directory == p.rec.Spec.Workspace.Directory || !p.elsewhere() {
		return
	}
	p.event(Warning, spec.ReasonConversationElsewhere, "spec.workspace.directory has changed: "+p.elsewhereSentence())
}

// elsewhere says whether the conversation belongs to another directory than the one
// that the spec names.
func (p *pass) elsewhere() bool {
	c := bound(&p.rec, p.rec.Spec)
	return c != nil && p.Workspace.Wanted != "" && c.Directory != p.Workspace.Wanted
}

func (p *pass) elsewhereSentence() string {
	return fmt.Sprintf("conversation %s belongs to %s and goes on there; when no client runs, `muxlet resume %s --fresh` begins a new one in %s",
		p.rec.Conversation.ID, p.rec.Conversation.Directory, p.rec.Name, p.Workspace.Wanted)
}

// clampClock moves remembered times that lie in the future to now: the clock
// has jumped back, and no wait may grow by that.
func (p *pass) clampClock() {
	clamp := func(t *time.Time) {
		if t.After(p.Now) {
			*t = p.Now
		}
	}
	clamp(&p.rec.BackOff.LastDeathAt)
	clamp(&p.rec.BackOff.BoughtAt)
	if d := p.rec.Demand; d != nil {
		clamp(&d.At)
	}
	if l := p.rec.Latch; l != nil {
		clamp(&l.At)
	}
	if c := p.rec.Conversation; c != nil {
		p.jumped = c.BoundAt.After(p.Now)
		clamp(&c.BoundAt)
	}
	if a := p.rec.Attempt; a != nil {
		clamp(&a.OpenedAt)
		clamp(&a.ClosedAt)
	}
	if c := p.rec.Client; c != nil {
		clamp(&c.StartedAt)
	}
	if s := p.rec.Stop; s != nil {
		clamp(&s.PoliteAt)
		clamp(&s.TermAt)
		clamp(&s.KillAt)
		clamp(&s.TreeTermAt)
		clamp(&s.TreeKillAt)
	}
}

// holdWhileUnknown: what could not be observed changes nothing. To start now
// could double a live client, to stop or remove could hit a foreign one.
func (p *pass) holdWhileUnknown() bool {
	if p.Seen.Sight == SightKnown {
		return false
	}
	if p.Seen.UnknownFor > 0 && p.Seen.UnknownFor >= p.Policy.UnknownGrace {
		return p.say(p.Seen.Reason, fmt.Sprintf("%s; unknown for %s, nothing is started or stopped meanwhile",
			p.Seen.Message, p.Seen.UnknownFor.Round(time.Second)), 0)
	}
	return p.say(p.Seen.Reason, p.Seen.Message, 0)
}

func (p *pass) grace() time.Duration {
	if p.rec.Spec == nil || p.rec.Spec.TerminationGracePeriodSeconds == nil {
		return 10 * time.Second
	}
	return time.Duration(*p.rec.Spec.TerminationGracePeriodSeconds) * time.Second
}

func startupTimeout(s *spec.SessionSpec) time.Duration {
	if s.StartupTimeoutSeconds == nil {
		return time.Minute
	}
	return time.Duration(*s.StartupTimeoutSeconds) * time.Second
}

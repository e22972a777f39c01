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
	if p.rec.Spec != nil && equality.Semantic.DeepEqual(*d.Spec, *p.rec.Spec) {
		return
	}
	p.rec.Spec = d.Spec.DeepCopy()
	p.rec.Generation++
	p.rec.BackOff = record.BackOff{}
	p.rec.Block = nil
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
	if a := p.rec.Attempt; a != nil {
		clamp(&a.OpenedAt)
		clamp(&a.ClosedAt)
	}
	if c := p.rec.Client; c != nil {
		clamp(&c.StartedAt)
	}
	if s := p.rec.Stop; s != nil {
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

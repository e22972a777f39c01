// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/muxlet/muxlet/spec"
)

// missing lists the sessions that are lost if they are removed, and that no
// document declares.
func (c *resolution) missing() []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(c.next.sessions)) {
		if _, declared := c.index.places[name]; !declared && c.remembered(name) {
			names = append(names, name)
		}
	}
	return names
}

// remembered tells a session that has a record, or that was once valid and gets
// one. What never was valid leaves no trace.
func (c *resolution) remembered(name string) bool {
	_, known := c.known[name]
	m := c.prev.sessions[name]
	return known || m.good != nil || m.verdict != undecided
}

// removals decides for every missing session. The rules, first hit wins:
//
//	a verdict was reached before          Removed
//	a part that may declare it is unread  Held
//	a root is suspicious                  Held
//	it was held before                    Held
//	too many are missing at once          Held
//	the settle time is not over           Settling
//	otherwise                             Removed
func (c *resolution) removals(missing []string) {
	suspicion := c.suspicion(missing)
	crowd := c.crowd(missing)
	for _, name := range missing {
		m := c.next.sessions[name]
		if m.since.IsZero() || m.since.After(c.now) {
			m.since = c.now
		}
		m.winner = ""
		d := Desired{Name: name, Session: m.good, File: m.file}
		if m.verdict != undecided {
			d.remove(m.verdict)
		} else {
			c.weigh(&d, &m, suspicion, crowd)
		}
		c.next.sessions[name] = m
		c.set.Sessions[name] = d
	}
}

func (c *resolution) weigh(d *Desired, m *memory, suspicion, crowd string) {
	if c.passing(m.file) {
		m.since = c.now
	}
	unread, problems := c.unreadSession(d.Name, m.file)
	m.damaged = len(problems) > 0
	switch {
	case m.damaged:
		m.held = heldMessage(problems[0].File + " was damaged when the document was last looked for")
		d.Problems = problems
	case unread != "":
		m.held = heldMessage(unread)
	case suspicion != "":
		m.held = heldMessage(suspicion)
	case m.held != "":
	case c.known[d.Name].Held != "":
		m.held = withGoOn(c.known[d.Name].Held)
	case crowd != "":
		m.held = heldMessage(crowd)
	}
	due := m.since.Add(c.policy.Settle)
	switch {
	case m.held != "":
		d.hold(m.held)
	case c.now.Before(due):
		d.Presence, d.Reason = Settling, spec.ReasonRemovalSettling
		d.Message = fmt.Sprintf("no document declares it any more; it is removed once that lasted for %s", c.policy.Settle)
		c.checkAt(due)
	default:
		m.verdict = settled
		d.remove(settled)
	}
}

func (c *resolution) checkAt(t time.Time) {
	if c.set.NextCheck.IsZero() || t.Before(c.set.NextCheck) {
		c.set.NextCheck = t
	}
}

func (d *Desired) hold(message string) {
	d.Presence, d.Reason, d.Message = Held, spec.ReasonRemovalHeld, message
	if len(d.Problems) > 0 {
		d.Reason, d.Message = spec.ReasonInvalid, invalidMessage(d.Problems, d.Session)
	}
}

func (d *Desired) remove(v verdict) {
	d.Presence, d.Reason = Removed, spec.ReasonRemoved
	switch v {
	case deleted:
		d.Explicit = true
		d.Message = "deleted on request"
	case confirmed:
		d.Message = "no document declares it any more, and its removal was confirmed"
	case settled, undecided:
		d.Message = "no document declares it any more"
	}
}

func (c *resolution) unreadSession(name, file string) (why string, problems []spec.Problem) {
	return c.unread(file, func(damage damage) bool { return slices.Contains(damage.names, name) })
}

// unread tells whether a part that was not understood may declare what was last
// declared in file: problems of a damaged file that names it, or the reason why a part
// could not be read.
func (c *resolution) unread(file string, names func(damage) bool) (why string, problems []spec.Problem) {
	for _, damage := range c.index.damaged {
		if damage.file == file || names(damage) {
			return "", damage.problems
		}
	}
	for _, u := range c.reading.Unread {
		if !u.Passing && (file == "" || below(file, u.Path)) {
			return u.Problem.Error(), nil
		}
	}
	for _, u := range c.reading.Special {
		if file == u.Path {
			return u.Problem.Error(), nil
		}
	}
	belongs := func(root Root) bool { return below(file, root.Path) }
	if file != "" && !slices.ContainsFunc(c.reading.Roots, belongs) {
		return fmt.Sprintf("its file %s is below no manifest directory that is in use", file), nil
	}
	return "", nil
}

// passing tells whether the file is being written for the first time: the settle
// time begins when that is over.
func (c *resolution) passing(file string) bool {
	return slices.ContainsFunc(c.reading.Unread, func(u Unread) bool {
		return u.Passing && (file == "" || file == u.Path)
	})
}

// crowd tells whether too many sessions are missing at once. Those whose removal
// is decided count neither way; those that an unread part may declare are not
// missing.
func (c *resolution) crowd(missing []string) string {
	gone, all := 0, 0
	for name, m := range c.next.sessions {
		if m.verdict == undecided && c.remembered(name) {
			all++
		}
	}
	for _, name := range missing {
		m := c.next.sessions[name]
		why, problems := c.unreadSession(name, m.file)
		if m.verdict == undecided && why == "" && len(problems) == 0 && !c.passing(m.file) {
			gone++
		}
	}
	if gone == 0 || gone < c.policy.GuardMin || gone*100 < c.policy.GuardPercent*all {
		return ""
	}
	return fmt.Sprintf("%d of %d sessions are missing at once", gone, all)
}

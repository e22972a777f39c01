// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/muxlet/muxlet/spec"
)

// DesiredClass is what the manifests want of one client class.
type DesiredClass struct {
	Name string
	// Presence is never Removed: a class that is not wanted any more is not in the set.
	Presence Presence
	// Class is the declared one if it is valid, else the last good one; nil if there is
	// none. It is shared and must not be changed.
	Class *spec.ClientClass
	// File and Line of the document, or of the last one; Line 0 when it is not there now.
	File string
	Line int
	// Problems say why the present content is not in use, and Message what comes of it,
	// for a person.
	Problems []spec.Problem
	Message  string
	// Reason as for a session.
	Reason string
}

// Source is where the document is, as the API serves it.
func (d *DesiredClass) Source() *spec.SourceStatus {
	s := &spec.SourceStatus{File: d.File, Line: d.Line}
	switch d.Presence {
	case Held:
		s.Held = d.Message
	case Present:
		s.Error = d.Message
	case Settling, Removed, PresenceUnknown:
	}
	return s
}

// Class gives the class of a name: the declared one, else the one that is built in;
// nil when there is neither. doubt, unless it is empty, says why another document may
// declare it: whoever knows a last good class goes on with that one.
func (s *DesiredSet) Class(name string) (class *spec.ClientClass, doubt string) {
	if d, declared := s.Classes[name]; declared {
		if d.Class == nil {
			return nil, d.Message
		}
		return d.Class, ""
	}
	if why, ok := s.doubts[name]; ok {
		return spec.ResolveClass(name, nil), why
	}
	return spec.ResolveClass(name, nil), s.doubt
}

// ClassNames are the names of all classes that there are, sorted.
func (s *DesiredSet) ClassNames() []string {
	usable := map[string]*spec.ClientClass{}
	for name, d := range s.Classes {
		if d.Class != nil {
			usable[name] = d.Class
		}
	}
	return spec.ClassNames(usable)
}

// classMemory is what is remembered of one class.
type classMemory struct {
	// good is the last valid document, file the one that declared the class last.
	good *spec.ClientClass
	file string
	// since is when the document was first missing; zero while it is there.
	since time.Time
	// held is the message under which the removal is held, and damaged that a damaged
	// file may have the document.
	held    string
	damaged bool
	verdict verdict
}

// classes decides for every class. It is done before the sessions are judged, each by
// its class. Nothing is stopped with a class, but a class that is not seen must not
// replace the clients that were started by it either.
func (c *resolution) classes(missing []string) {
	suspicion, crowd := c.suspicion(missing), c.crowd(missing)
	for _, name := range slices.Sorted(maps.Keys(c.index.classes)) {
		c.presentClass(name, c.index.classes[name])
	}
	for _, name := range slices.Sorted(maps.Keys(c.next.classes)) {
		if _, declared := c.index.classes[name]; !declared {
			c.missingClass(name, suspicion, crowd)
		}
	}
	c.doubtClasses(suspicion)
}

// presentClass decides for a class that at least one document declares. Of several
// none counts: which one is meant is the person's to say.
func (c *resolution) presentClass(name string, places []place) {
	m := c.next.classes[name]
	m.since, m.held, m.damaged, m.verdict = time.Time{}, "", false, undecided
	first := places[0]
	d := DesiredClass{Name: name, Presence: Present, File: first.file, Line: first.doc.Line}
	m.file = first.file
	switch {
	case len(places) > 1:
		d.Reason, d.Problems = spec.ReasonDuplicateName, duplicates(ClassRef(name), places)
		d.Message = fmt.Sprintf("declared in %s: %s until only one is left", others(places, place{}), stays(m.good))
	case first.doc.Class == nil:
		d.Reason, d.Problems = spec.ReasonInvalid, slices.Clone(first.doc.Problems)
		d.Message = fmt.Sprintf("%v; %s until this is mended", firstProblem(d.Problems), stays(m.good))
	default:
		if !equality.Semantic.DeepEqual(m.good, first.doc.Class) {
			m.good = first.doc.Class
		}
		d.Reason = spec.ReasonAccepted
	}
	d.Class = m.good
	c.next.classes[name] = m
	c.set.Classes[name] = d
}

func stays(good *spec.ClientClass) string {
	if good == nil {
		return "nothing is started with it"
	}
	return "the last valid class stays in force"
}

// missingClass decides for a class that was declared and is no longer, by the rules
// for sessions.
func (c *resolution) missingClass(name, suspicion, crowd string) {
	m := c.next.classes[name]
	if m.since.IsZero() || m.since.After(c.now) || c.passing(m.file) {
		m.since = c.now
	}
	d := DesiredClass{Name: name, Class: m.good, File: m.file}
	unread, problems := c.unread(m.file, func(damage damage) bool { return slices.Contains(damage.classes, name) })
	m.damaged = len(problems) > 0
	switch {
	case m.verdict != undecided:
	case m.damaged:
		m.held, d.Problems = heldMessage(problems[0].File+" was damaged when the document was last looked for"), problems
	case unread != "":
		m.held = heldMessage(unread)
	case suspicion != "":
		m.held = heldMessage(suspicion)
	case m.held != "":
	case crowd != "":
		m.held = heldMessage(crowd)
	}
	due := m.since.Add(c.policy.Settle)
	switch {
	case m.verdict != undecided || m.good == nil:
		delete(c.next.classes, name)
		return
	case m.held != "":
		d.Presence, d.Reason, d.Message = Held, spec.ReasonRemovalHeld, m.held
		if m.damaged {
			d.Reason, d.Message = spec.ReasonInvalid, fmt.Sprintf("%v; %s until this is mended", firstProblem(problems), stays(m.good))
		}
	case c.now.Before(due):
		d.Presence, d.Reason = Settling, spec.ReasonRemovalSettling
		d.Message = fmt.Sprintf("no document declares it any more; it is removed once that lasted for %s", c.policy.Settle)
		c.checkAt(due)
	default:
		delete(c.next.classes, name)
		return
	}
	c.next.classes[name] = m
	c.set.Classes[name] = d
}

// doubtClasses notes what may declare a class that this process has never seen. After
// a start of the daemon a class that is declared in an unreadable directory would else
// be taken for the built-in one, or for none.
func (c *resolution) doubtClasses(suspicion string) {
	c.set.doubts = map[string]string{}
	for _, damage := range c.index.damaged {
		for _, name := range damage.classes {
			c.set.doubts[name] = damage.problems[0].Error()
		}
	}
	c.set.doubt = suspicion
	for _, u := range c.reading.Unread {
		if c.set.doubt == "" && !u.Passing {
			c.set.doubt = u.Problem.Error()
		}
	}
}

// session is the declared session as its class takes it, or what is wrong with it. What
// was good before stays good while the class is in doubt: it may be another one.
func (c *resolution) session(doc *spec.Document, good *spec.Session) (*spec.Session, []spec.Problem) {
	s := doc.Session
	if s == nil {
		return nil, doc.Problems
	}
	if s.Spec.ClientClassName == "" {
		s = s.DeepCopy()
		s.Spec.ClientClassName = cmp.Or(c.policy.DefaultClass, spec.ClassClaude)
	}
	class, doubt := c.set.Class(s.Spec.ClientClassName)
	if class != nil && (doubt == "" || !equality.Semantic.DeepEqual(good, s)) {
		if problems := doc.ProblemsForClass(class); len(problems) > 0 {
			return nil, problems
		}
	}
	return s, nil
}

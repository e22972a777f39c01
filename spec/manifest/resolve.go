// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/muxlet/muxlet/spec"
)

// Resolve decides what a Reading means. Additions and edits act at once, a
// removal waits for the settle time and is held back by the guard. It is pure:
// equal arguments give equal answers, and none of them is changed.
//
// Every call must be given a Reading made after the one before, and now must be
// the time of that reading: a removal rests on the document being missing at the
// end of the settle time, not only at its beginning.
func Resolve(prev State, r Reading, known []Known, now time.Time, p Policy) (DesiredSet, State) {
	c := &resolution{
		now: now, policy: p,
		reading: r,
		index:   indexOf(r),
		prev:    prev,
		next:    prev.clone(),
		known:   make(map[string]Known, len(known)),
		set:     DesiredSet{Sessions: make(map[string]Desired, len(known)), Classes: map[string]DesiredClass{}},
	}
	for _, k := range known {
		c.known[k.Name] = k
		c.learn(k)
	}
	missing := c.missing()
	c.classes(missing)
	for _, name := range c.index.names() {
		c.present(name, c.index.places[name])
	}
	c.removals(missing)
	c.rememberRoots(missing)
	c.forget()
	c.collectProblems()
	return c.set, c.next
}

// resolution is one run of Resolve.
type resolution struct {
	now     time.Time
	policy  Policy
	reading Reading
	index   index
	known   map[string]Known
	prev    State
	next    State
	set     DesiredSet
}

// learn takes from a record what this process has not seen itself.
func (c *resolution) learn(k Known) {
	m := c.next.sessions[k.Name]
	if m.good == nil {
		m.good = k.LastGood
	}
	if m.file == "" {
		m.file = k.File
	}
	if k.Removal == RemovalDecided && m.verdict == undecided {
		m.verdict = settled
	}
	c.next.sessions[k.Name] = m
}

// place is one document that declares a session or a class.
type place struct {
	file string
	doc  spec.Document
}

func (p place) String() string { return fmt.Sprintf("%s:%d", p.file, p.doc.Line) }

// index is a Reading by name.
type index struct {
	// places of the sessions, and classes those of the client classes.
	places  map[string][]place
	classes map[string][]place
	damaged []damage
}

// damage is a file that may declare more than was understood.
type damage struct {
	file string
	// names of sessions and of classes.
	names    []string
	classes  []string
	problems []spec.Problem
}

// nameable keeps out what a person cannot have meant as a name, such as a path.
// Whether it is a good name is said by the document's problems.
func nameable(name string) bool {
	return name != "" && len(name) <= 253 && !strings.ContainsFunc(name, foreignToNames) && !strings.ContainsRune("._-", rune(name[0]))
}

func foreignToNames(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '.' && r != '_' && r != '-'
}

func indexOf(r Reading) index {
	x := index{places: map[string][]place{}, classes: map[string][]place{}}
	for _, f := range r.Files {
		unnamed := slices.Clone(f.Problems)
		for _, doc := range f.Items {
			at := x.places
			if doc.Kind == spec.KindClientClass {
				at = x.classes
			}
			if nameable(doc.Name) {
				at[doc.Name] = append(at[doc.Name], place{file: f.Path, doc: doc})
				continue
			}
			unnamed = append(unnamed, doc.Problems...)
		}
		if len(unnamed) > 0 {
			x.damaged = append(x.damaged, damage{file: f.Path, names: f.Names, classes: f.ClassNames, problems: unnamed})
		}
	}
	return x
}

func (x index) names() []string { return slices.Sorted(maps.Keys(x.places)) }

// present decides for a session that at least one document declares.
func (c *resolution) present(name string, places []place) {
	m := c.next.sessions[name]
	m.since, m.held, m.damaged = time.Time{}, "", false
	if m.readings--; m.readings < 0 {
		m.verdict, m.readings = undecided, 0
	}
	d := Desired{Name: name, Presence: Present}
	chosen, found := c.choose(&m, places)
	if found {
		c.accept(&d, &m, chosen)
	} else {
		d.Session, d.Reason = m.good, spec.ReasonDuplicateName
		d.File, d.Line = places[0].file, places[0].doc.Line
	}
	if len(places) > 1 {
		d.duplicate(places, chosen, found)
	}
	c.next.sessions[name] = m
	c.set.Sessions[name] = d
}

// choose finds the document that counts. Of several it is the one in the file
// that the running client was started from; it stays so while that client is
// brought back after a death. Two in one file leave no choice.
func (c *resolution) choose(m *memory, places []place) (place, bool) {
	if len(places) == 1 {
		m.winner = ""
		return places[0], true
	}
	name := places[0].doc.Name
	if k := c.known[name]; k.Running && k.File != "" {
		m.winner = k.File
	}
	var in []place
	for _, p := range places {
		if p.file == m.winner {
			in = append(in, p)
		}
	}
	if len(in) != 1 {
		m.winner = ""
		return place{}, false
	}
	return in[0], true
}

// accept takes a document over, or the last good one in its place.
func (c *resolution) accept(d *Desired, m *memory, p place) {
	m.file = p.file
	d.File, d.Line = p.file, p.doc.Line
	session, problems := c.session(&p.doc, m.good)
	if session != nil {
		// A file that was written anew without a change gives the same session.
		if !equality.Semantic.DeepEqual(m.good, session) {
			m.good = session
		}
		d.Session, d.Reason = m.good, spec.ReasonAccepted
		return
	}
	d.Session, d.Reason, d.Problems = m.good, spec.ReasonInvalid, slices.Clone(problems)
	d.Message = invalidMessage(problems, m.good)
}

// mostPlaces is how many places of one name are listed: a file may repeat one
// thousands of times.
const mostPlaces = 5

// duplicate names the places of a name.
func (d *Desired) duplicate(places []place, chosen place, found bool) {
	d.Problems = append(d.Problems, duplicates(SessionRef(d.Name), places)...)
	text := fmt.Sprintf("declared in %s: nothing is started until only one is left", others(places, place{}))
	if found {
		text = fmt.Sprintf("declared in %s and passed over in %s; keep one of them", chosen, others(places, chosen))
	}
	if d.Message != "" {
		text = d.Message + "; also " + text
	}
	d.Message = text
}

// duplicates is a problem for each of the first places.
func duplicates(r Ref, places []place) []spec.Problem {
	var problems []spec.Problem
	for _, p := range places[:min(mostPlaces, len(places))] {
		problems = append(problems, spec.Problem{
			Position: p.doc.Position, Path: "metadata.name",
			Message: fmt.Sprintf("%s is declared by %s too; keep one of them", r, others(places, p)),
		})
	}
	return problems
}

// others lists the places but one.
func others(places []place, p place) string {
	var list []string
	left := len(places)
	for _, other := range places {
		if other.doc.Position == p.doc.Position {
			left--
		} else if len(list) < mostPlaces {
			list = append(list, other.String())
		}
	}
	if left -= len(list); left > 0 {
		list = append(list, fmt.Sprintf("%d more places", left))
	}
	return joined(list)
}

// forget drops what nobody knows any more.
func (c *resolution) forget() {
	for name, m := range c.next.sessions {
		_, known := c.known[name]
		_, declared := c.index.places[name]
		if !known && !declared && (m.good == nil || m.verdict != undecided) {
			delete(c.next.sessions, name)
		}
	}
}

// mostProblems is how many problems of one file are listed.
const mostProblems = 20

func (c *resolution) collectProblems() {
	add := func(list ...spec.Problem) { c.set.Problems = append(c.set.Problems, list...) }
	for _, root := range c.reading.Roots {
		switch root.Access {
		case Readable:
		case Missing:
			add(problemAt(root.Path, "the manifest directory does not exist; create it"))
		case Unreadable, AccessUnknown:
			add(problemAt(root.Path, "the manifest directory cannot be read: %s", root.Message))
		}
	}
	for _, u := range slices.Concat(c.reading.Unread, c.reading.Special) {
		if !u.Passing {
			add(u.Problem)
		}
	}
	for _, f := range c.reading.Files {
		add(problemsOf(f)...)
	}
	c.addDuplicates()
}

// problemsOf a file; what is too much to list is counted.
func problemsOf(f File) []spec.Problem {
	list := slices.Clone(f.Problems)
	for _, doc := range f.Items {
		list = append(list, doc.Problems...)
	}
	if more := len(list) - mostProblems; more > 1 {
		list = append(list[:mostProblems], problemAt(f.Path, "%d more problems in this file", more))
	}
	return list
}

// addDuplicates adds the problems that only all documents together have: a name that
// is given twice, and what the client class of a session does not permit.
func (c *resolution) addDuplicates() {
	told := make(map[spec.Problem]bool, len(c.set.Problems))
	for _, p := range c.set.Problems {
		told[p] = true
	}
	add := func(problems []spec.Problem) {
		for _, p := range problems {
			if !told[p] {
				told[p] = true
				c.set.Problems = append(c.set.Problems, p)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.index.classes)) {
		if len(c.index.classes[name]) > 1 {
			add(c.set.Classes[name].Problems)
		}
	}
	for _, name := range c.index.names() {
		places := c.index.places[name]
		if len(places) > 1 || places[0].doc.Session != nil {
			add(c.set.Sessions[name].Problems)
		}
	}
}

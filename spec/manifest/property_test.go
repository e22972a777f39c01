// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/muxlet/muxlet/spec"
)

// chaos drives a world through random readings and checks every answer.
type chaos struct {
	*world
	rand  *rand.Rand
	names []string
	// absentSince is when each session was first not seen, in a row of readings
	// that all could have shown it; zero while one could not.
	absentSince map[string]time.Time
	// allowed counts the readings for which a person's word stands: a delete
	// outlives one that was on its way.
	allowed map[string]int
	removed map[string]bool // in the answer before
	device  uint64          // when nothing was missing
}

func newChaos(t *testing.T, seed uint64) *chaos {
	c := &chaos{
		world: newWorld(t), rand: rand.New(rand.NewPCG(seed, 1)),
		absentSince: map[string]time.Time{}, allowed: map[string]int{}, removed: map[string]bool{},
	}
	for i := range 6 {
		c.names = append(c.names, fmt.Sprintf("s%d", i))
	}
	return c
}

func (c *chaos) pick() string { return c.names[c.rand.IntN(len(c.names))] }

// step changes the world at random.
func (c *chaos) step() {
	name := c.pick()
	path := "/m/" + name + ".yaml"
	switch c.rand.IntN(16) {
	case 0, 1, 2:
		c.files[path] = yamlOf(name, fmt.Sprint(c.rand.IntN(9)))
	case 3, 4, 5:
		delete(c.files, path)
	case 6:
		c.files[path] = invalidOf(name)
	case 7:
		c.files[path] = damagedOf(name)
	case 8:
		c.files["/m/moved.yaml"] = yamlOf(name, "moved")
		delete(c.files, path)
	case 9:
		delete(c.files, "/m/moved.yaml")
	case 10:
		c.roots[0] = []Root{
			{Path: "/m", Access: Missing}, {Path: "/m", Access: Unreadable}, {Path: "/m", Access: Readable, Device: 8},
		}[c.rand.IntN(3)]
	case 11, 12:
		c.roots[0] = Root{Path: "/m", Access: Readable, Device: 7}
	case 13:
		c.unread = []Unread{{Path: path, Problem: problemAt(path, "cannot be read")}}
		delete(c.files, path)
	case 14:
		c.unread = nil
	case 15:
		c.decide(name)
	}
}

// decide is a person, or a daemon that is started again.
func (c *chaos) decide(name string) {
	switch c.rand.IntN(4) {
	case 0:
		c.restart()
		clear(c.absentSince)
		clear(c.allowed)
		c.device = 0
	case 1:
		if c.set.Sessions[name].Presence == Held {
			c.state = Confirm(c.state, []string{name})
			c.allowed[name] = 1
		}
	case 2:
		delete(c.files, "/m/"+name+".yaml")
		c.state = Deleted(c.state, name)
		c.allowed[name] = 2
	case 3:
		for _, n := range c.names {
			c.files["/m/"+n+".yaml"] = yamlOf(n, "back")
		}
	}
}

// hides tells whether a reading could have missed the document of a session.
func (c *chaos) hides(r Reading, name string, file string) bool {
	root := r.Roots[0]
	if root.Access != Readable || root.Documents == 0 || c.device != 0 && root.Device != c.device {
		return true
	}
	for _, u := range r.Unread {
		if u.Path == file {
			return true
		}
	}
	for _, d := range indexOf(r).damaged {
		if d.file == file {
			return true
		}
		for _, n := range d.names {
			if n == name {
				return true
			}
		}
	}
	return false
}

func (c *chaos) check(r Reading, files map[string]string) {
	declared := indexOf(r).places
	pending := false
	for _, name := range c.names {
		d, found := c.set.Sessions[name]
		_, seen := declared[name]
		switch {
		case seen:
			c.absentSince[name] = time.Time{}
			if d.Presence != Present {
				c.t.Fatalf("%s is declared and %q", name, d.Presence)
			}
		case c.hides(r, name, files[name]):
			c.absentSince[name] = time.Time{}
		case c.absentSince[name].IsZero():
			c.absentSince[name] = c.now
		}
		if found && d.Presence == Removed && c.allowed[name] == 0 && !c.removed[name] {
			since := c.absentSince[name]
			if since.IsZero() || c.now.Sub(since) < c.policy.Settle {
				c.t.Fatalf("%s was removed, not seen since %v: %s", name, since, d.Message)
			}
		}
		c.removed[name] = found && d.Presence == Removed
		pending = pending || found && (d.Presence == Settling || d.Presence == Held)
		if found && d.Presence == Held && d.Message == "" {
			c.t.Fatalf("%s is held without a message", name)
		}
		if good := c.known[name].LastGood; found && d.Session == nil && good != nil {
			c.t.Fatalf("%s lost its last good spec", name)
		}
		if seen && c.allowed[name] > 0 {
			c.allowed[name]--
		}
	}
	if root := r.Roots[0]; root.Access == Readable && !pending {
		c.device = root.Device
	}
}

func TestNoSequenceOfReadingsRemovesWhatItCouldNotSee(t *testing.T) {
	decoded := map[string]spec.Documents{}
	for seed := range uint64(150) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			c := newChaos(t, seed)
			c.decoded = decoded
			c.declare(c.names...)
			c.resolve()
			for range 100 {
				for range c.rand.IntN(3) {
					c.step()
				}
				files := map[string]string{}
				for name, k := range c.known {
					files[name] = k.File
				}
				r := c.reading()
				c.resolveAfter(time.Duration(c.rand.IntN(2500)) * time.Millisecond)
				c.check(r, files)
			}
		})
	}
}

// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"cmp"

	"github.com/muxlet/muxlet/spec"
)

// Classes are the client classes by which documents are judged where no daemon does:
// before an edit is written, and by a mere check.
type Classes struct {
	// Declared ones by name; nil for one that no valid document declares, or that
	// several do.
	Declared map[string]*spec.ClientClass
	// Default is the class of a session that says nothing; claude when it is empty.
	Default string
	// Defaults are laid under each session; nil for none.
	Defaults *spec.SessionDefaults
}

// Add takes in what documents declare.
func (c *Classes) Add(docs ...spec.Document) {
	if c.Declared == nil {
		c.Declared = map[string]*spec.ClientClass{}
	}
	for _, doc := range docs {
		if doc.Kind != spec.KindClientClass || doc.Name == "" {
			continue
		}
		if _, twice := c.Declared[doc.Name]; twice {
			doc.Class = nil
		}
		c.Declared[doc.Name] = doc.Class
	}
}

// AddReading takes in what a reading declares.
func (c *Classes) AddReading(r Reading) {
	for _, f := range r.Files {
		c.Add(f.Items...)
	}
}

// Judge says what is wrong with a session once the defaults of the settings are laid
// under it, and what its class does not permit; nothing of a class that is not known, and
// of any other document.
func (c *Classes) Judge(doc *spec.Document) []spec.Problem {
	d := doc.Under(c.Defaults)
	if d.Session == nil {
		return d.Problems
	}
	class := c.Class(c.nameOf(&d))
	if class == nil {
		return nil
	}
	return d.ProblemsForClass(class)
}

// Of gives the class of a document that declares a session; nil when it is not known.
func (c *Classes) Of(doc *spec.Document) *spec.ClientClass {
	d := doc.Under(c.Defaults)
	if d.Session == nil {
		return nil
	}
	return c.Class(c.nameOf(&d))
}

// Class is the declared or built-in one of that name; nil when it is not known.
func (c *Classes) Class(name string) *spec.ClientClass {
	if class, declared := c.Declared[name]; declared {
		return class
	}
	return spec.ResolveClass(name, nil)
}

// Unknown gives the name of a session's class that is neither declared nor built in;
// empty when it is.
func (c *Classes) Unknown(doc *spec.Document) string {
	d := doc.Under(c.Defaults)
	if d.Session == nil {
		return ""
	}
	name := c.nameOf(&d)
	if _, declared := c.Declared[name]; declared || spec.IsBuiltInClass(name) {
		return ""
	}
	return name
}

func (c *Classes) nameOf(d *spec.Document) string {
	return cmp.Or(d.Session.Spec.ClientClassName, c.Default, spec.ClassClaude)
}

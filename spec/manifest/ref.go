// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"fmt"

	"github.com/muxlet/muxlet/spec"
)

// Ref names what a document declares: a session and a client class may have one name.
type Ref struct {
	// Kind is spec.KindSession or spec.KindClientClass.
	Kind, Name string
}

// SessionRef names a session.
func SessionRef(name string) Ref { return Ref{spec.KindSession, name} }

// ClassRef names a client class.
func ClassRef(name string) Ref { return Ref{spec.KindClientClass, name} }

// RefOf is what a document declares.
func RefOf(d *spec.Document) Ref { return Ref{d.Kind, d.Name} }

// What is the word for the kind in a sentence.
func (r Ref) What() string { return whatIs(r.Kind) }

// String names it in a sentence: session "a".
func (r Ref) String() string { return fmt.Sprintf("%s %q", r.What(), r.Name) }

// namesIn are the names in a file that may be of the kind.
func (r Ref) namesIn(d spec.Documents) []string {
	if r.Kind == spec.KindClientClass {
		return d.ClassNames
	}
	return d.Names
}

func whatIs(kind string) string {
	if kind == spec.KindClientClass {
		return "client class"
	}
	return "session"
}

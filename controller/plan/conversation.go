// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"github.com/muxlet/muxlet/controller/record"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec"
)

// ClassOf is the class in force for a spec: the one that is declared or built in,
// else the last good one of that name. It is nil when there is none of that name.
func ClassOf(rec *record.Record, s *spec.SessionSpec, declared *Class) *Class {
	name := s.ClientClassName
	if name == "" {
		name = spec.ClassExec
	}
	switch {
	case declared != nil && declared.Spec != nil && declared.Name == name:
		return declared
	case rec.Class != nil && rec.ClassName == name:
		return &Class{Name: name, Spec: rec.Class, Revision: rec.ClassRevision}
	case name == spec.ClassExec:
		return &Class{Name: name, Spec: &spec.ClientClassSpec{}}
	}
	return nil
}

// converses says whether clients of the class have conversations.
func (c *Class) converses() bool {
	return c.Spec.Conversation.Identity != "" && c.Spec.Conversation.Identity != spec.IdentityNone
}

// adoptable is the conversation that the spec asks to take up and that was not taken
// up yet; empty when there is none.
func adoptable(rec *record.Record, s *spec.SessionSpec) string {
	id := s.Conversation.ID
	if id == rec.AdoptedID || rec.Conversation != nil && rec.Conversation.ID == id {
		return ""
	}
	return id
}

// kept is the session's conversation as the next client gets it; nil when that one
// gets another or a new one.
func kept(rec *record.Record, s *spec.SessionSpec) *record.Conversation {
	c := rec.Conversation
	if c == nil || c.Class != s.ClientClassName || rec.Demand != nil && rec.Demand.Fresh || adoptable(rec, s) != "" {
		return nil
	}
	return c
}

// bound is kept when it has begun: its directory is where it belongs.
func bound(rec *record.Record, s *spec.SessionSpec) *record.Conversation {
	if c := kept(rec, s); c != nil && c.Used && c.Begun && c.Directory != "" {
		return c
	}
	return nil
}

// DirectoryOf names the directory in which the session's client runs. primary is
// where its conversation belongs; it is expanded already. fallback is where the spec
// wants it, to be used when primary is proven to be missing and fallback is there;
// it is empty when nothing has begun yet, and primary is the spec's own then. A
// directory that a start would make is missing where there is a fallback.
func DirectoryOf(rec *record.Record, s *spec.SessionSpec) (primary, fallback string) {
	if c := bound(rec, s); c != nil {
		return c.Directory, s.Workspace.Directory
	}
	return s.Workspace.Directory, ""
}

// Reference is the conversation whose evidence and rival a decision on in needs: the
// one that the next client would be brought back with. known is false when there is
// none. Everything of in but Evidence, Rival, Heard and Sight must be there.
func Reference(in Input) (ref observe.ConversationRef, known bool) {
	rec, s := &in.Record, in.Desired.Spec
	if s == nil {
		s = rec.Spec
	}
	if s == nil {
		return ref, false
	}
	class := ClassOf(rec, s, in.Class)
	if class == nil || !class.converses() {
		return ref, false
	}
	ref = observe.ConversationRef{Class: class.Spec, Session: rec.Name, Directory: in.Workspace.Path}
	if id := adoptable(rec, s); id != "" && (rec.Demand == nil || !rec.Demand.Fresh) {
		ref.ID = id
		return ref, true
	}
	c := kept(rec, s)
	if c == nil {
		return ref, false
	}
	ref.ID, ref.Directory, ref.Home, ref.ConfigDirectory = c.ID, c.Directory, c.Home, c.ConfigDirectory
	ref.Ran = c.Begun && c.ConfigDirectory != ""
	return ref, true
}

// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"maps"

	"github.com/muxlet/muxlet/actuate"
	"github.com/muxlet/muxlet/controller/record"
	"github.com/muxlet/muxlet/spec"
)

// assignConversation gives a fresh client of a class whose conversations are Assigned
// its id. It is in the record with the attempt: after a crash in between nobody could
// tell which conversation the client has.
func (p *pass) assignConversation() {
	if p.class.Spec.Conversation.Identity != spec.IdentityAssigned || p.rec.Conversation != nil {
		return
	}
	p.rec.Conversation = &record.Conversation{
		ID: p.New.Conversation, Source: spec.SourceAssigned, Class: p.class.Name, Directory: p.Workspace.Path, BoundAt: p.Now,
	}
}

func (p *pass) newAttempt() *record.Attempt {
	s := p.rec.Spec
	// A prompt of 1 MiB would be in the record, and in each save of it, three times over.
	madeFrom := s.DeepCopy()
	madeFrom.InitialPrompt = ""
	incarnation := p.rec.Incarnation + 1
	command, args := spec.Argv(p.class.Spec, s, p.resumes != "")
	return &record.Attempt{
		ID: p.New.ID, Incarnation: incarnation, Fence: record.FenceOpen, OpenedAt: p.Now, Spec: *madeFrom,
		ClassRevision: p.class.Revision, Resumes: p.resumes, Initial: s.InitialPrompt != "",
		Order: actuate.Order{
			Instance: p.New.Instance, UID: p.rec.UID, Session: p.rec.Name, Incarnation: incarnation, Attempt: p.New.ID,
			Command: command, Args: args, Class: p.classOrder(), Directory: p.Workspace.Path, Env: s.Client.Env, EnvFrom: s.Client.EnvFrom,
			ShellMode: s.Client.ShellMode, Base: p.New.Base, Scope: p.scopeOrder(incarnation),
		},
	}
}

// classOrder is what the launcher does for the class; nil for one that asks for
// nothing, such as exec as it is built in.
func (p *pass) classOrder() *actuate.ClassOrder {
	class := p.class.Spec.DeepCopy()
	if len(class.Start.Command)+len(class.Env)+len(class.UnsetEnv) == 0 && class.ConfigDirectory == (spec.ClassDirectory{}) && !p.class.converses() {
		return nil
	}
	variables := map[string]string{}
	maps.Copy(variables, p.New.Variables)
	variables[spec.VarWorkspace] = p.Workspace.Path
	variables[spec.VarSessionName], variables[spec.VarSessionUID] = p.rec.Name, p.rec.UID
	variables[spec.VarConversationID] = ""
	if c := p.rec.Conversation; c != nil {
		variables[spec.VarConversationID] = c.ID
	}
	return &actuate.ClassOrder{
		Name: p.class.Name, Variables: variables, ConfigDirectory: class.ConfigDirectory, Env: class.Env, UnsetEnv: class.UnsetEnv,
		Resume: p.resumeOrder(),
	}
}

func (p *pass) resumeOrder() *actuate.ResumeOrder {
	if p.resumes == "" {
		return nil
	}
	class := p.class.Spec
	return &actuate.ResumeOrder{
		ID: p.resumes, Reports: class.Reports, Transcript: class.Conversation.Transcript,
		TranscriptPattern: class.Conversation.TranscriptPattern, ConfigDirectory: p.rec.Conversation.ConfigDirectory,
	}
}

// conversationOf is the conversation that the attempt's client is given; empty when
// it is to tell one itself.
func conversationOf(a *record.Attempt) string {
	switch {
	case a.Resumes != "":
		return a.Resumes
	case a.Order.Class != nil:
		return a.Order.Class.Variables[spec.VarConversationID]
	}
	return ""
}

// spendConversation: the attempt's client was executed, or may have been. An id that
// was given to a client once is never given to a fresh one again: a client that finds
// it taken refuses to start, for ever.
func (p *pass) spendConversation(a *record.Attempt) {
	c := p.rec.Conversation
	if c == nil || c.ID != conversationOf(a) {
		return
	}
	c.Used = true
	if a.Resumes != "" && a.Order.Class.Resume.Transcript != "" {
		// Its launcher has found the evidence.
		c.Begun = true
	}
	if r := p.Seen.Receipt; p.Seen.ReceiptState == ReceiptFound && r.Attempt == a.ID && r.ConfigDirectory != "" {
		c.Home, c.ConfigDirectory = r.Home, r.ConfigDirectory
	}
}

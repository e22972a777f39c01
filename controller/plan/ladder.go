// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"time"

	"github.com/muxlet/muxlet/controller/record"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec"
)

// quickExit is how soon after its start a client ends that did not find its
// conversation.
const quickExit = 20 * time.Second

// settleConversation finds out with which conversation a client is started. To start
// fresh where there is one would lose it without a word; to resume without evidence
// ends in a loop or in a question that nobody sees; to resume what another process has
// open forks it silently. So it is resumed with evidence, awaited while that is not
// known or it is in use, and replaced with proof only, loudly.
func (p *pass) settleConversation() bool {
	p.turnConversation()
	if id := p.taken(); id != "" {
		return p.waitForRival(id)
	}
	c := p.rec.Conversation
	if c == nil {
		return p.lookAtWorkspace(p.Workspace.Wanted)
	}
	if p.evidenceOf != c.ID {
		return p.say(spec.ReasonStarting, fmt.Sprintf("looking for conversation %s", c.ID), soon)
	}
	if p.inUse(c) {
		return true
	}
	if !c.Used && c.Source == spec.SourceAssigned && !p.wasGiven(c) {
		c.Directory = p.Workspace.Path
		return p.lookAtWorkspace(p.Workspace.Wanted)
	}
	switch p.Evidence.State {
	case observe.EvidenceAbsent, observe.EvidenceUnusable:
		return p.replaceMissing(c, p.Evidence.Path, p.evidenceSentence())
	case observe.EvidenceUnknown:
		if c.ConfigDirectory != "" {
			return p.say(spec.ReasonConversationUnknown, fmt.Sprintf("whether conversation %s can be resumed is not known: %s. It is looked for again and again; `muxlet resume %s --fresh` begins a new one",
				c.ID, p.evidenceSentence(), p.rec.Name), pollInUse)
		}
		// The launcher looks where the client will, before it executes anything.
	case observe.EvidenceResumable:
	}
	if c.NotFound >= p.enoughNotFound() {
		return p.replaceMissing(c, p.Evidence.Path, fmt.Sprintf("the client says so, %d times in a row", c.NotFound))
	}
	if p.awaitDirectory(c) {
		return true
	}
	p.resumes = c.ID
	return false
}

// turnConversation takes up what a person has asked for since the last client was
// started: a fresh conversation, another class, an id of theirs. It waits for a start,
// so that an edit that is taken back before has changed nothing.
func (p *pass) turnConversation() {
	if d := p.rec.Demand; d != nil && d.Fresh {
		d.Fresh = false
		p.dropQuarantine()
		p.rec.AdoptedID = p.rec.Spec.Conversation.ID
		p.leave(spec.ReplacedFresh, "a person asked for a fresh one")
	}
	c := p.rec.Conversation
	if c != nil && c.Class != p.class.Name || !p.class.converses() {
		p.leave(spec.ReplacedClassChanged, fmt.Sprintf("the session's class is %s now", p.class.Name))
	}
	if c := p.rec.Conversation; c != nil && !c.Used && c.Source == spec.SourceAssigned && p.class.Spec.Conversation.Identity != spec.IdentityAssigned {
		p.leave(spec.ReplacedNeverBegun, "its class takes no id any more")
	}
	id := adoptable(&p.rec, p.rec.Spec)
	if id == "" || !p.class.converses() || p.taken() != "" {
		return
	}
	next := p.adopted(id)
	if c := p.rec.Conversation; c != nil {
		p.event(Normal, spec.ReasonConversationChanged, fmt.Sprintf("Conversation %s is taken up, as spec.conversation.id says; %s is in the history", id, c.ID))
		p.rec.Retire(spec.ReplacedAdopted, p.Now)
	}
	p.rec.Bind(next)
	p.rec.AdoptedID = id
}

// taken is the conversation that a person has named and another session has; empty
// when there is none. It is not taken up: each of both sessions would wait for the
// other.
func (p *pass) taken() string {
	if id := adoptable(&p.rec, p.rec.Spec); p.Rival != "" && id == p.evidenceOf {
		return id
	}
	return ""
}

func (p *pass) rivalSentence(id string) string {
	return fmt.Sprintf("session %s has conversation %s: remove that session, or name another in spec.conversation.id", p.Rival, id)
}

func (p *pass) waitForRival(id string) bool {
	return p.say(spec.ReasonConversationInUse, p.rivalSentence(id), pollInUse)
}

// adopted is the conversation that a person has named. One that the session had
// before is what it was.
func (p *pass) adopted(id string) record.Conversation {
	next := record.Conversation{ID: id, Class: p.class.Name, Directory: p.Workspace.Path}
	if past, ok := p.rec.Past(id); ok && past.Class == p.class.Name {
		next = past.Conversation
	}
	next.Source, next.BoundAt, next.NotFound = spec.SourceAdopted, p.Now, 0
	return next
}

// leave puts the conversation into the history; what follows is a fresh one.
func (p *pass) leave(reason, why string) {
	c := p.rec.Conversation
	if c == nil {
		return
	}
	p.left = why
	p.rec.Retire(reason, p.Now)
	if _, known := p.rec.Past(c.ID); !known {
		return
	}
	kind := Normal
	if c.Begun || c.Source == spec.SourceAdopted {
		kind = Warning
	}
	p.event(kind, spec.ReasonFreshStart, fmt.Sprintf("A new conversation is begun instead of %s: %s", c.ID, why))
}

// inUse: two live clients of one conversation overwrite each other's turns, and none
// of the CLIs' own locks can be relied upon.
func (p *pass) inUse(c *record.Conversation) bool {
	switch {
	case p.Rival != "":
		return p.waitForRival(c.ID)
	case p.Evidence.Holder != 0:
		return p.say(spec.ReasonConversationInUse, fmt.Sprintf("pid %d has conversation %s open: it is resumed once that process has ended", p.Evidence.Holder, c.ID), pollInUse)
	}
	return false
}

// wasGiven says whether an id that the record holds to be unused was given to a client
// all the same: the record was rolled back. Then a fresh client would be refused it.
func (p *pass) wasGiven(c *record.Conversation) bool {
	switch p.Evidence.State {
	case observe.EvidenceResumable:
		if p.Evidence.Path == "" {
			return false
		}
		c.Used, c.Begun = true, true
		return true
	case observe.EvidenceUnusable:
		c.Used = true
		return true
	case observe.EvidenceUnknown, observe.EvidenceAbsent:
	}
	return false
}

func (p *pass) evidenceSentence() string {
	if p.Evidence.Message != "" {
		return p.Evidence.Message
	}
	return "nothing was found of it"
}

// enoughNotFound is how many resumes in a row must end with the class's words for a
// conversation that is gone to prove it. A transcript that is there outweighs one.
func (p *pass) enoughNotFound() int {
	if p.Evidence.State == observe.EvidenceResumable && p.Evidence.Path == "" {
		return 1
	}
	return 2
}

// countNotFound: the client ended as one does that did not find its conversation. A
// person's signal, a success or a long life say nothing of the kind.
func (p *pass) countNotFound(client *record.Client, e end) {
	c := p.rec.Conversation
	if !p.Seen.NotFound || c == nil || client.Resumes != c.ID || !client.ReadyAt.IsZero() {
		return
	}
	if p.Now.Sub(client.StartedAt)-p.Seen.GoneFor >= quickExit {
		return
	}
	if e.exit != nil && (e.exit.Signal != 0 || e.exit.Code == 0) {
		return
	}
	c.NotFound++
	p.event(Warning, spec.ReasonResumeFailed, fmt.Sprintf("Incarnation %d did not find conversation %s and %s; the id is kept", client.Incarnation, c.ID, e.sentence()))
}

// awaitDirectory: a conversation that has begun is resumed in its own directory. Where
// that is proven to be gone and the spec names another one that is there, the directory
// was moved, and the conversation moves with it.
func (p *pass) awaitDirectory(c *record.Conversation) bool {
	if !c.Begun {
		c.Directory = p.Workspace.Path
		return p.lookAtWorkspace(p.Workspace.Wanted)
	}
	if c.Directory == "" || c.Directory == p.Workspace.Path {
		c.Directory = p.Workspace.Path
		return false
	}
	if was := bound(&p.Record, p.rec.Spec); was == nil || was.ID != c.ID || was.Directory != c.Directory {
		return p.lookAtWorkspace(c.Directory)
	}
	p.event(Normal, spec.ReasonConversationElsewhere, fmt.Sprintf("%s is gone: conversation %s goes on in %s", c.Directory, c.ID, p.Workspace.Path))
	c.Directory = p.Workspace.Path
	return false
}

// lookAtWorkspace: what was looked at is not the directory in which the client is to
// run by what is known now. It is looked at first.
func (p *pass) lookAtWorkspace(wanted string) bool {
	if wanted == "" || wanted == p.Workspace.Path {
		return false
	}
	return p.say(spec.ReasonStarting, "looking at "+wanted, soon)
}

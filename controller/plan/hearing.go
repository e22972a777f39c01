// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"

	"github.com/muxlet/muxlet/controller/record"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec"
)

// hear takes in what the client has told of its conversation, before anything is
// decided: also when tmux cannot be asked, and when the client has just died. What it
// told last is what the next one is brought back with. It is done again when a pass has
// learned of the client. It is no rule: hearing decides nothing about the client.
func (p *pass) hear() {
	for _, h := range p.Heard {
		p.hearOne(h)
	}
	// A transcript that was seen once is something to lose.
	if c := p.rec.Conversation; c != nil && c.Used && p.evidenceOf == c.ID && p.Evidence.State == observe.EvidenceResumable && p.Evidence.Path != "" {
		c.Begun = true
	}
}

// hearOne: a client may change its conversation at any time, by a person's /clear or
// /resume. A report of an earlier incarnation, or one that is older than what is known,
// would bring an old conversation back. The same id again is no news.
func (p *pass) hearOne(h Heard) {
	class := p.classHeard(h)
	if h.ID == "" || class == "" || !p.fromPresent(h) {
		return
	}
	c := p.rec.Conversation
	if c != nil && c.ID == h.ID {
		c.Used, c.NotFound, c.Begun = true, 0, c.Begun || h.Begun
		return
	}
	if c != nil && !h.At.IsZero() && !p.jumped && h.At.Before(c.BoundAt) {
		return
	}
	next := p.told(h, class)
	if c == nil {
		p.event(Normal, spec.ReasonConversationBound, fmt.Sprintf("The client told its conversation: %s", h.ID))
	} else {
		p.event(Normal, spec.ReasonConversationChanged, fmt.Sprintf("The client has conversation %s now; %s is in the history", h.ID, c.ID))
	}
	reason := h.Reason
	if reason == "" {
		reason = spec.ReplacedReported
	}
	p.rec.Retire(reason, p.Now)
	p.rec.Bind(next)
}

// fromPresent says whether h is of the client that runs or, when none does, of the one
// that ended last. From that one a conversation that was replaced since is no news.
func (p *pass) fromPresent(h Heard) bool {
	if c := p.rec.Client; c != nil {
		return h.Incarnation == c.Incarnation
	}
	_, past := p.rec.Past(h.ID)
	return h.Incarnation > 0 && h.Incarnation == p.rec.Incarnation && !past
}

// classHeard is the class of the client that h is of; empty when its clients have no
// conversations, or when it was started by another: then something else has told it,
// such as an agent that the client runs.
func (p *pass) classHeard(h Heard) string {
	name := p.classKnown()
	if name == "" {
		name = h.Class
	}
	switch {
	case h.Class != "" && h.Class != name:
		return ""
	case p.class != nil && p.class.Name == name:
		if !p.class.converses() {
			return ""
		}
	case name == spec.ClassExec:
		return ""
	}
	return name
}

// classKnown is the class by which the client was started, as far as the record tells.
func (p *pass) classKnown() string {
	c := p.rec.Client
	switch {
	case c != nil && c.Launched != nil:
		return c.Launched.ClientClassName
	case p.rec.Conversation != nil:
		return p.rec.Conversation.Class
	case p.class != nil:
		return p.class.Name
	}
	return ""
}

// told is the conversation of h. One that the session had before is what it was.
func (p *pass) told(h Heard, class string) record.Conversation {
	next := record.Conversation{ID: h.ID, Class: class, Directory: p.Workspace.Path}
	if c := p.rec.Conversation; c != nil && c.Class == class {
		next.Directory, next.Home, next.ConfigDirectory = c.Directory, c.Home, c.ConfigDirectory
	}
	if c := p.rec.Client; c != nil && c.Directory != "" {
		next.Directory, next.Home, next.ConfigDirectory = c.Directory, c.Home, c.ConfigDirectory
	}
	if past, ok := p.rec.Past(h.ID); ok && past.Class == class {
		next = past.Conversation
	}
	next.Source, next.Used, next.NotFound, next.Begun = spec.SourceReported, true, 0, next.Begun || h.Begun
	if next.BoundAt = h.At; h.At.IsZero() || h.At.After(p.Now) {
		next.BoundAt = p.Now
	}
	return next
}

// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"

	"github.com/muxlet/muxlet/controller/record"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec"
)

// replaceMissing: the conversation provably does not exist where its client keeps it.
// One without a turn is no loss: it is replaced whatever the policy says, since to
// resume it would fail for ever. Of any other a person learns what was lost, or is
// asked first.
func (p *pass) replaceMissing(c *record.Conversation, file, found string) bool {
	switch {
	case !c.Begun && c.Source != spec.SourceAdopted:
		p.leave(spec.ReplacedNeverBegun, "it never had a turn")
	case p.rec.Spec.Conversation.MissingPolicy == spec.MissingHold:
		p.rec.Demand = nil
		p.rec.Block = &record.Block{Reason: spec.ReasonConversationMissing, Message: p.missingSentence(c, file, found), File: file, At: p.Now}
		p.event(Warning, p.rec.Block.Reason, "Nothing is started: "+p.rec.Block.Message)
		return p.say(p.rec.Block.Reason, p.rec.Block.Message, 0)
	default:
		p.leave(spec.ReplacedMissing, lookedFor(file, found))
	}
	return p.lookAtWorkspace(p.Workspace.Wanted)
}

func (p *pass) missingSentence(c *record.Conversation, file, found string) string {
	return fmt.Sprintf("conversation %s cannot be resumed: %s. Put the file back, or begin a new conversation with `muxlet resume %s --fresh` (missingPolicy is Hold)",
		c.ID, lookedFor(file, found), p.rec.Name)
}

func lookedFor(file, found string) string {
	if file == "" {
		return found
	}
	return fmt.Sprintf("%s (%s)", found, file)
}

// conversationBlock says whether b, which is about the conversation, still stands.
// known is false for any other block.
func (p *pass) conversationBlock(b *record.Block) (stands, known bool) {
	d, c := p.rec.Demand, p.rec.Conversation
	turned := d != nil && d.Fresh || adoptable(&p.rec, p.rec.Spec) != "" || !p.class.converses()
	switch b.Reason {
	case spec.ReasonRecordQuarantined:
		// Which conversation the session had is not known any more: a fresh one is
		// begun only when a person says so.
		return !turned && c == nil, true
	case spec.ReasonConversationElsewhere:
		return !turned && !p.demandedSince(b.At), true
	case spec.ReasonConversationMissing:
		return !turned && !p.worthATry(b, c), true
	}
	return false, false
}

// endConversationBlock drops a block that stands no more. That of a lost record stays
// until a client is started which has a conversation: a start may be long in coming, and
// what lets it begin now, such as a class without conversations, may be edited away by
// then.
func (p *pass) endConversationBlock(b *record.Block) {
	if b.Reason != spec.ReasonRecordQuarantined {
		p.rec.Block = nil
	}
}

// dropQuarantine: a person has asked for a fresh conversation, or the client that is
// started has the one that a person has named or that was told.
func (p *pass) dropQuarantine() {
	if b := p.rec.Block; b != nil && b.Reason == spec.ReasonRecordQuarantined && p.class.converses() {
		p.rec.Block = nil
	}
}

// worthATry: the conversation that was missing was put back, or a person asks for one
// more try.
func (p *pass) worthATry(b *record.Block, c *record.Conversation) bool {
	if c == nil {
		return true
	}
	if p.demandedSince(b.At) {
		c.NotFound = 0
		return true
	}
	return p.evidenceOf == c.ID && p.Evidence.State == observe.EvidenceResumable && c.NotFound < p.enoughNotFound()
}

// judgeResume: the launcher has looked for the conversation in the client's own
// environment and has executed nothing. What it found is as good as what is found from
// here, and decides alike.
func (p *pass) judgeResume(a *record.Attempt, r observe.Receipt) (known bool) {
	c := p.rec.Conversation
	switch r.Reason {
	case spec.ReasonConversationMissing, spec.ReasonConversationElsewhere, spec.ReasonConversationInUse, spec.ReasonConversationUnknown:
	default:
		return false
	}
	if c == nil || c.ID != a.Resumes {
		return true
	}
	if c.ConfigDirectory == "" {
		c.Home, c.ConfigDirectory = r.Home, r.ConfigDirectory
	}
	switch r.Reason {
	case spec.ReasonConversationMissing:
		p.replaceMissing(c, r.File, "its client finds nothing that it could resume")
	case spec.ReasonConversationElsewhere:
		p.rec.Demand = nil
		p.rec.Block = &record.Block{Reason: r.Reason, Message: r.Message, File: r.File, At: p.Now}
	}
	return true
}

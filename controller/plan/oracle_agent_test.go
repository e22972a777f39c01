// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/controller/record"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec"
)

// knows says whether the record has the id, as its conversation or in the history.
func knows(r *record.Record, id string) bool {
	_, past := r.Past(id)
	return past || r.Conversation != nil && r.Conversation.ID == id
}

func warned(p Plan, reason string) bool {
	return slices.ContainsFunc(p.Events, func(e Event) bool { return e.Type == Warning && e.Reason == reason })
}

// conversation: invariant 8, for every plan.
func (v *verdicts) conversation(in Input, p Plan) {
	before, after := in.Record.Conversation, p.Record.Conversation
	if before != nil && before.Begun {
		v.must(knows(&p.Record, before.ID), "conversation %s, which had begun, was dropped", before.ID)
	}
	for _, past := range in.Record.History {
		v.must(knows(&p.Record, past.ID), "conversation %s was dropped from the history", past.ID)
	}
	if after != nil {
		_, twice := p.Record.Past(after.ID)
		v.must(!twice, "the present conversation is in the history")
	}
	v.changed(in, p, before, after)
	a := p.Record.Attempt
	if a == nil || in.Record.Attempt != nil && in.Record.Attempt.ID == a.ID {
		return
	}
	v.startOf(in, p, a)
}

// engine: a client is ended for what it has started only when that was seen, is proven
// to be gone for a while, and nothing has taken its place.
func (v *verdicts) engine(in Input, p Plan) {
	before, after := in.Record.Stop, p.Record.Stop
	if after == nil || after.Reason != record.StopEngineGone || before != nil && before.Reason == record.StopEngineGone {
		return
	}
	c, seen := in.Record.Client, in.Seen
	v.must(c != nil && c.Process == after.Process && !c.Engine.IsZero() && c.Engine != c.Process, "a client is ended whose engine was never seen")
	v.must(EngineOf(in) != "" && seen.Engine == observe.Gone && seen.NoEngine && seen.NextEngine.IsZero(), "a client is ended whose engine is not proven to be gone")
	v.must(seen.EngineGoneFor >= 3*time.Second, "a wrapper was not given the time to end by itself")
}

// changed: a conversation changes by what its client tells, by a person's word, or by
// proof that it is gone; and never without a word when it had begun.
func (v *verdicts) changed(in Input, p Plan, before, after *record.Conversation) {
	if before == nil || after != nil && after.ID == before.ID {
		return
	}
	told := slices.ContainsFunc(in.Heard, func(h Heard) bool { return after != nil && h.ID == after.ID })
	s := p.Record.Spec
	named := after != nil && s != nil && after.ID == s.Conversation.ID
	d := in.Record.Demand
	fresh := d != nil && d.Fresh
	class := false
	if s != nil {
		now := ClassOf(&p.Record, s, in.Class)
		class = before.Class != s.ClientClassName || now != nil && !now.converses()
	}
	spare := !before.Used && before.Source == spec.SourceAssigned
	gone := spare || in.Evidence.State == observe.EvidenceAbsent || in.Evidence.State == observe.EvidenceUnusable || before.NotFound > 0 || in.Seen.NotFound ||
		in.Seen.Receipt.Reason == spec.ReasonConversationMissing
	v.must(told || named || fresh || class || gone || len(in.Heard) > 0, "conversation %s was replaced for nothing: %s", before.ID, p.Verdict.Message)
	if before.Begun && !told && !named {
		v.must(warned(p, spec.ReasonFreshStart) || len(in.Heard) > 0, "conversation %s, which had begun, was replaced without a warning", before.ID)
	}
}

// startOf: what an attempt that was opened now runs.
func (v *verdicts) startOf(in Input, p Plan, a *record.Attempt) {
	s, c := p.Record.Spec, p.Record.Conversation
	class := ClassOf(&p.Record, s, in.Class)
	if class == nil {
		v.must(false, "a start without a class")
		return
	}
	h := in.Hold
	// An edit lets a demand that its client gives back be tried once more.
	givenBack := in.Record.Client != nil && in.Record.Client.Demand != nil
	v.must(h.Reason == "" || in.Record.Demand != nil || givenBack || in.Record.Intent != nil || !h.Until.IsZero() && !h.Until.After(in.Now), "a start while the credential is held")
	b := p.Record.Block
	v.must(b == nil || b.Reason == spec.ReasonRecordQuarantined && !class.converses(), "a start although a block stands")
	v.must(a.Order.Directory == in.Workspace.Path, "a start in a directory that nobody has looked at")
	if a.Resumes == "" {
		v.freshStart(in, p, class, a)
		return
	}
	v.must(c != nil && c.ID == a.Resumes && c.Class == s.ClientClassName, "another conversation than the session's is resumed")
	v.must(slices.Equal(a.Order.Command, class.Spec.Resume.Command), "a resume by another command than the class's")
	v.must(slices.Equal(a.Order.Args, s.Client.Args), "a resume has arguments of a fresh start")
	v.must(a.Order.Class != nil && a.Order.Class.Name == s.ClientClassName && a.Order.Class.Resume != nil && a.Order.Class.Resume.ID == a.Resumes, "the launcher has nothing to verify")
	ref, _ := Reference(in)
	v.must(ref.ID == a.Resumes, "the evidence is of %q, and %q is resumed", ref.ID, a.Resumes)
	v.must(in.Rival == "" && in.Evidence.Holder == 0, "a conversation is resumed that somebody else has")
	v.must(in.Evidence.State == observe.EvidenceResumable || in.Evidence.State == observe.EvidenceUnknown && ref.ConfigDirectory == "", "a resume without evidence")
	v.must(a.Order.Directory == c.Directory, "a resume in another directory than the conversation's")
}

func (v *verdicts) freshStart(in Input, p Plan, class *Class, a *record.Attempt) {
	c, before := p.Record.Conversation, in.Record.Conversation
	if len(class.Spec.Start.Command) > 0 {
		v.must(slices.Equal(a.Order.Command, class.Spec.Start.Command), "a fresh start by another command than the class's")
	}
	if class.Spec.Conversation.Identity != spec.IdentityAssigned {
		v.must(c == nil, "a fresh start of a session that has a conversation")
		return
	}
	id := conversationOf(a)
	v.must(id != "" && c != nil && c.ID == id && !c.Used && !c.Begun, "a fresh start without an id of its own in the record")
	v.must(id == in.New.Conversation || before != nil && before.ID == id && !before.Used, "a fresh start with an id that was used")
	v.must(c == nil || c.Class == class.Name && c.Directory == in.Workspace.Path, "a fresh conversation of another class or directory")
	if b := in.Record.Block; b != nil && b.Reason == spec.ReasonRecordQuarantined {
		d := in.Record.Demand
		v.must(d != nil && d.Fresh || p.Record.Spec.Conversation.ID != "" || before != nil || len(in.Heard) > 0, "a lost record was followed by a blank start")
	}
}

// remembers: whatever has happened, the session knows each conversation that its
// clients have told the daemon of, and its client's own.
func (w *world) remembers() {
	if w.forgetful {
		return
	}
	if b := w.clients()[0]; b.conversation != "" && len(w.reports) == 0 && w.told == b.conversation {
		require.NotNil(w.t, w.disk.Conversation)
		require.Equal(w.t, b.conversation, w.disk.Conversation.ID, "the client has another conversation than the record")
	}
	for _, h := range w.late {
		if h.Begun && len(w.disk.History) < record.MaxHistory {
			require.True(w.t, knows(&w.disk, h.ID), "conversation %s was told and is not known", h.ID)
		}
	}
}

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

// class makes s one of any class.
func (d dice) class(s *spec.SessionSpec) {
	if c := classes[d.IntN(len(classes))]; c.Name != spec.ClassExec {
		s.ClientClassName, s.Client.Command = c.Name, nil
	}
}

// converse gives s a class, and wishes about its conversation.
func (d dice) converse(s *spec.SessionSpec) {
	d.class(s)
	if d.one(2) {
		holds(s)
	}
	if d.one(5) {
		s.Conversation.ID = "p1"
	}
	if d.one(3) {
		s.Client.StartArgs, s.Client.Args = []string{"--first"}, []string{"--always"}
	}
}

func (d dice) talk() record.Conversation {
	c := begun(classes[1+d.IntN(3)], fmt.Sprintf("c%d", d.IntN(4)))
	c.Source = []spec.ConversationSource{spec.SourceAssigned, spec.SourceReported, spec.SourceAdopted}[d.IntN(3)]
	c.BoundAt, c.Used, c.NotFound = d.time(), !d.one(4), d.IntN(6)/2
	c.Begun = c.Used && !d.one(3)
	if d.one(3) {
		unplaced(&c)
	}
	if d.one(5) {
		c.Directory = "/old"
	}
	return c
}

// conversation gives r a past.
func (d dice) conversation(r *record.Record) {
	if r.Spec == nil {
		return
	}
	if c := classNamed(r.Spec.ClientClassName); c != nil && d.one(2) {
		r.Class, r.ClassName, r.ClassRevision = c.Spec.DeepCopy(), c.Name, c.Revision
	}
	for range d.IntN(3) {
		c := d.talk()
		if _, known := r.Past(c.ID); !known {
			r.History = append(r.History, record.PastConversation{Conversation: c, ReplacedAt: d.time(), Reason: spec.ReplacedCleared})
		}
	}
	if c := d.talk(); !d.one(3) {
		if !d.one(3) {
			c.Class = r.Spec.ClientClassName
		}
		r.Bind(c)
	}
	if r.Client != nil && r.Conversation != nil && d.one(2) {
		r.Client.Resumes = r.Conversation.ID
	}
	if r.Client != nil && d.one(2) {
		r.Client.ReadyAt, r.Client.Launched = d.time(), r.Spec.DeepCopy()
	}
	if r.Client != nil && d.one(2) {
		r.Client.Engine = d.process()
	}
	if r.Client != nil && r.Stop != nil && d.one(2) {
		r.Stop.Process = r.Client.Process
	}
	if r.Block != nil && d.one(2) {
		r.Block.Reason = []string{spec.ReasonConversationMissing, spec.ReasonConversationElsewhere, spec.ReasonRecordQuarantined}[d.IntN(3)]
	}
	if r.Demand != nil {
		r.Demand.Fresh = d.one(3)
	}
	if d.one(6) {
		r.AdoptedID = "p1"
	}
}

// agents completes an input by what clients show and tell.
func (d dice) agents(in Input) Input {
	s := in.Desired.Spec
	if s == nil {
		s = in.Record.Spec
	}
	if s != nil && !d.one(8) {
		in.Class = classNamed(s.ClientClassName)
	}
	in.New.Conversation = "new"
	in.Workspace.Wanted = []string{"", "/work", "/work", "/new"}[d.IntN(4)]
	if d.one(6) {
		in.Workspace.Path = "/old"
	}
	in.Evidence = observe.Evidence{State: observe.EvidenceState(d.IntN(4)), Path: []string{"", "/t"}[d.IntN(2)]}
	if d.one(8) {
		in.Evidence.Holder = 77
	}
	if d.one(8) {
		in.Rival = "other"
	}
	for range d.IntN(4) / 2 {
		in.Heard = append(in.Heard, Heard{ID: fmt.Sprintf("c%d", d.IntN(5)), Incarnation: int64(d.IntN(5)), Begun: d.one(2), At: d.time()})
	}
	if d.one(3) {
		in.Hold = Hold{Reason: spec.ReasonUsageLimited, Until: d.time()}
	}
	in.Seen.NotFound = d.one(3)
	in.Seen.Engine, in.Seen.EngineGoneFor, in.Seen.NoEngine = d.live(), time.Duration(d.IntN(6))*time.Second, d.one(2)
	if !in.Seen.NoEngine && d.one(2) {
		in.Seen.NextEngine = d.process()
	}
	if d.one(2) {
		in.Sight = observe.Sight{At: d.time(), Readiness: observe.Readiness(d.IntN(3)), Blank: d.one(3), Activity: []spec.Activity{"", spec.ActivityWorking, spec.ActivityIdle, spec.ActivityAwaitingInput}[d.IntN(4)]}
		if d.one(4) {
			asks(&in.Sight)
		}
	}
	if a := in.Record.Attempt; a != nil {
		d.order(in.Record, a)
	}
	if in.Record.Stop != nil && in.Record.Client != nil && d.one(3) {
		d.typing(&in)
	}
	return in
}

// typing is the stop of a client that is ended by keys.
func (d dice) typing(in *Input) {
	c := in.Record.Client
	in.Record.Stop.Process, in.Seen.Stop, in.Seen.Client, in.Class = c.Process, observe.Running, observe.Running, classNamed(none.Name)
	for _, s := range []*spec.SessionSpec{in.Desired.Spec, in.Record.Spec, c.Launched} {
		if s != nil {
			s.ClientClassName, s.Client.Command = none.Name, nil
		}
	}
	for n := range in.Seen.Panes {
		if p := &in.Seen.Panes[n]; p.PID == c.PanePID && d.one(2) {
			p.State, p.Live, p.Process, p.ExitStatus, p.ExitSignal = observe.Present, observe.Running, process(p.PID), nil, 0
		}
	}
}

// order is what the pending attempt may be about.
func (d dice) order(r record.Record, a *record.Attempt) {
	c := classNamed(a.Spec.ClientClassName)
	if c == nil || !c.converses() || r.Conversation == nil {
		return
	}
	p := &pass{rec: record.Record{UID: uid, Name: "shop", Conversation: r.Conversation}, class: c}
	if d.one(2) {
		p.resumes, a.Resumes = r.Conversation.ID, r.Conversation.ID
	}
	a.Order.Class = p.classOrder()
}

var conversationReasons = []string{
	spec.ReasonConversationMissing, spec.ReasonConversationElsewhere, spec.ReasonConversationInUse, spec.ReasonConversationUnknown,
}

// findings are what a launcher may say of a conversation.
func (d dice) findings(r *observe.Receipt) {
	if d.one(2) {
		r.Reason, r.File = conversationReasons[d.IntN(4)], "/t"
	}
	if d.one(2) {
		r.Home, r.ConfigDirectory = "/home", "/home/.c"
	}
}

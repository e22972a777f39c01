// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/controller/record"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec"
)

// exec is the class without conversations that is always there.
var exec = Class{Name: spec.ClassExec, Spec: &spec.ClientClassSpec{}}

// classes of the generated sessions.
var classes = []Class{exec, claude, codex, plain, none, wrapper, arguer}

func classNamed(name string) *Class {
	for _, c := range classes {
		if c.Name == name {
			return &c
		}
	}
	return nil
}

// transcript is what a client has written of one conversation.
type transcript struct {
	class        string
	there, begun bool
}

// agents is what the clients of a world have: conversations, reports, screens.
type agents struct {
	// home is the class that the session has most of the time.
	home        Class
	transcripts map[string]*transcript
	// reports that the daemon has not saved yet. A late one may come twice.
	reports, late []Heard
	// told is the conversation that the session's client had last as far as the
	// daemon was told, given the ids that a client was executed with, adoptable those that
	// a person has named.
	told             string
	given, adoptable map[string]bool
	// What a disturbance can do.
	unreadable, rival, holder, undeclared, working bool
	// lost is true while the record is one that was made for a damaged one.
	lost bool
	hold Hold
}

func newAgents() agents {
	a := agents{transcripts: map[string]*transcript{}, given: map[string]bool{}, adoptable: map[string]bool{}}
	for _, id := range []string{"foreign", "p1"} {
		a.transcripts[id] = &transcript{class: spec.ClassClaude, there: true, begun: true}
	}
	return a
}

// settle makes s one that is up, of the world's class, most of the time.
func (w *world) settle(s *spec.SessionSpec) {
	if !w.one(8) {
		s.ClientClassName = w.home.Name
		if s.Client.Command = nil; w.home.Name == spec.ClassExec {
			s.Client.Command = []string{"agent"}
		}
	}
	if !w.one(4) {
		s.RestartPolicy, s.RecoveryPolicy, s.Suspend = spec.RestartAlways, spec.RecoveryResume, false
	}
}

// mind is what a client has of all that.
type mind struct {
	class, conversation string
	executedAt          time.Time
	blank, asks         bool
	notFound            bool
	// engine that does its work; nil when it does that itself.
	engine *body
	desk
}

// ask completes an input by what the controller's gathering makes of clients.
func (w *world) ask(in Input) Input {
	s := in.Desired.Spec
	if s == nil {
		s = in.Record.Spec
	}
	if s != nil && !w.undeclared {
		in.Class = classNamed(s.ClientClassName)
	}
	in.New.Conversation, in.Workspace.Wanted = fmt.Sprintf("n%d", w.ids), "/work"
	in.Probed = w.probed
	in.Heard, in.Hold, in.Sight = append(in.Heard, w.reports...), w.hold, w.sight()
	if c := in.Record.Client; c != nil {
		in.Seen.NotFound = w.find(c.Process).notFound
	}
	w.lookForEngine(&in)
	if ref, known := Reference(in); known {
		in.Evidence = w.evidence(ref)
		if w.rival {
			in.Rival = "other"
		}
	}
	return in
}

func (w *world) lookForEngine(in *Input) {
	c := in.Record.Client
	if EngineOf(*in) == "" || in.Seen.Client != observe.Running {
		return
	}
	if !c.Engine.IsZero() {
		known := w.find(c.Engine)
		if in.Seen.Engine = known.live; known.live != observe.Gone {
			return
		}
		in.Seen.EngineGoneFor = max(w.now.Sub(known.goneAt), 0)
	}
	if next := w.find(c.Process).engine; next != nil && next.live == observe.Running {
		in.Seen.NextEngine = next.Process
	}
	in.Seen.NoEngine = in.Seen.NextEngine.IsZero()
}

func (w *world) evidence(ref observe.ConversationRef) observe.Evidence {
	e := observe.Evidence{State: observe.EvidenceResumable}
	if w.holder {
		e.Holder = 77
	}
	if ref.Class.Conversation.Transcript == "" {
		return e
	}
	e.Path = "/t/" + ref.ID
	switch t := w.transcripts[ref.ID]; {
	case w.unreadable || ref.ConfigDirectory == "":
		e.State, e.Path = observe.EvidenceUnknown, ""
	case t == nil || !t.there:
		e.State = observe.EvidenceAbsent
	case !t.begun:
		e.State = observe.EvidenceUnusable
	}
	return e
}

func (w *world) sight() observe.Sight {
	c := w.disk.Client
	if c == nil {
		return observe.Sight{}
	}
	b := w.find(c.Process)
	s := observe.Sight{At: w.now, Activity: spec.ActivityIdle, Readiness: observe.Ready}
	if w.working {
		s.Activity = spec.ActivityWorking
	}
	w.seeDesk(b, &s)
	switch {
	case b.blank:
		s.Readiness, s.Blank = observe.NotReady, true
	case b.asks:
		s.Readiness, s.Attention = observe.NotReady, &observe.Attention{Reason: spec.ReasonTrustRequired, Message: "trust it?"}
	case w.now.Sub(b.executedAt) < 500*time.Millisecond:
		s.Readiness = observe.NotReady
	}
	return s
}

// blank: a record that was lost is not followed by a client with a blank conversation.
func (w *world) blank(p Plan) {
	a := p.Record.Attempt
	if a != nil && runs(p) != "" && a.Resumes == "" {
		class := classNamed(a.Spec.ClientClassName)
		require.False(w.t, w.lost && class.converses(), "a lost record was followed by %s", runs(p))
	}
	w.lost = w.lost && p.Record.Conversation == nil
}

// heard: the daemon has saved what it was told. Reports of a pending attempt's client wait
// until the record knows that client, as they do in the controller (senderEarly).
func (w *world) heard() {
	var waiting []Heard
	for _, h := range w.reports {
		a := w.disk.Attempt
		switch {
		case h.Incarnation > w.disk.Incarnation, a != nil && h.Incarnation == a.Incarnation:
			waiting = append(waiting, h)
		case h.Incarnation == w.spent:
			w.told = h.ID
		}
	}
	w.late = append(w.late, w.reports...)
	w.reports = waiting
}

// verify is what the launcher finds of a resume; empty when it may go on.
func (w *world) verify(a *record.Attempt) string {
	if a.Resumes == "" || a.Order.Class.Resume.Transcript == "" {
		return ""
	}
	t := w.transcripts[a.Resumes]
	switch {
	case w.holder:
		return spec.ReasonConversationInUse
	case w.unreadable:
		return spec.ReasonConversationUnknown
	case t == nil || !t.there || !t.begun:
		return spec.ReasonConversationMissing
	case w.one(4):
		return spec.ReasonConversationElsewhere
	}
	return ""
}

// wake makes b a client that runs what a says.
func (w *world) wake(b *body, a *record.Attempt) {
	w.executed = append(w.executed, *a)
	b.executedAt, b.blank, b.asks, b.since = w.now, w.one(30), w.one(10), w.now
	w.sicken(b)
	if a.Order.Class == nil {
		return
	}
	b.class = a.Order.Class.Name
	class := classNamed(b.class)
	if class.Spec.Engine.Executable != "" {
		b.engine = w.spawn(&room{})
		b.engine.attempt, b.engine.readyAt = "engine", w.now.Add(24*time.Hour)
	}
	switch {
	case a.Resumes != "":
		w.resumed(b, a, class)
		return
	case !class.converses():
		return
	case class.Spec.Conversation.Identity == spec.IdentityAssigned:
		id := conversationOf(a)
		require.NotEmpty(w.t, id, "a fresh client without an id")
		require.True(w.t, w.forgetful || !w.given[id], "id %s was given to two clients", id)
		b.conversation = id
	default:
		w.ids++
		b.conversation = fmt.Sprintf("r%d", w.ids)
		w.report(b, false)
	}
	w.given[b.conversation], w.told = true, b.conversation
	if t := w.transcripts[b.conversation]; t != nil && t.there && !w.kind {
		w.end(b, &observe.Exit{Code: 1}) // already in use
		return
	}
	w.transcripts[b.conversation] = &transcript{class: b.class}
}

func (w *world) resumed(b *body, a *record.Attempt, class *Class) {
	id := a.Resumes
	require.Equal(w.t, class.Spec.Resume.Command, a.Order.Command, "another class's command")
	require.True(w.t, w.forgetful || id == w.told || w.adoptable[id], "%s was resumed, and %s was told last", id, w.told)
	require.NotEqual(w.t, "foreign", id, "another session's conversation")
	b.conversation, w.told = id, id
	t := w.transcripts[id]
	if t != nil && t.class != b.class {
		require.True(w.t, w.adoptable[id], "%s of class %s was resumed by %s", id, t.class, b.class)
	}
	if t == nil || !t.begun || !t.there {
		b.notFound = true
		w.end(b, &observe.Exit{Code: 1})
	}
}

func (w *world) report(b *body, begun bool) {
	w.ids++
	w.reports = append(w.reports, Heard{
		ID: b.conversation, Incarnation: b.incarnation, Class: b.class, Begun: begun, At: w.now.Add(time.Duration(w.ids)), Reason: spec.ReplacedCleared,
	})
}

// converse lets the live clients have turns, and people clear them.
func (w *world) converse() {
	for _, trouble := range []*bool{&w.unreadable, &w.rival, &w.holder, &w.undeclared, &w.working} {
		*trouble = *trouble && !w.one(20)
	}
	for _, b := range w.clients() {
		if b.conversation == "" || !w.one(4) {
			continue
		}
		if w.one(12) {
			w.ids++
			b.conversation = fmt.Sprintf("r%d", w.ids)
			w.transcripts[b.conversation] = &transcript{class: b.class}
		}
		t := w.transcripts[b.conversation]
		if t == nil {
			continue
		}
		t.there, t.begun = true, true
		w.report(b, true)
	}
}

// disturbAgents does to conversations what happens in the field.
func (w *world) disturbAgents() {
	if w.home.Name == wrapper.Name && w.one(2) {
		w.loseEngines()
		return
	}
	switch w.rand.IntN(13) {
	case 12:
		for _, b := range w.clients() {
			w.sicken(b)
		}
	case 0:
		for _, t := range w.transcripts {
			t.there = t.there && !w.one(2)
		}
	case 1:
		for _, t := range w.transcripts {
			t.begun = t.begun && !w.one(2)
		}
	case 2:
		w.unreadable = !w.unreadable
	case 3:
		w.rival = !w.rival
	case 4:
		w.holder = !w.holder
	case 5:
		w.undeclared = !w.undeclared
	case 6:
		w.working = !w.working
	case 7:
		w.hold = Hold{Reason: spec.ReasonUsageLimited, Until: w.now.Add(time.Minute)}
	case 8:
		w.disk, _ = Apply(w.disk, RequestFresh, w.now)
		w.lost = false
	case 9:
		w.reports = append(w.late, w.reports...) // a spool that was not removed
		w.late = nil
	case 10, 11:
		w.loseEngines()
	}
}

// loseEngines ends what wrappers have started. Some end as well, some start another.
func (w *world) loseEngines() {
	for _, b := range w.clients() {
		if b.engine == nil {
			continue
		}
		w.end(b.engine, &observe.Exit{Signal: 9})
		switch w.rand.IntN(3) {
		case 0:
			w.end(b, &observe.Exit{Signal: 9})
		case 1:
			b.engine = w.spawn(&room{})
			b.engine.attempt, b.engine.readyAt = "engine", w.now.Add(24*time.Hour)
		}
	}
}

// calmAgents: whatever stood in the way is gone, and a person answers.
func (w *world) calmAgents() {
	w.unreadable, w.rival, w.holder, w.undeclared, w.working, w.hold = false, false, false, false, false, Hold{}
	for _, b := range w.bodies {
		b.asks = false
		if b.composer == otherWords {
			b.composer = ""
		}
	}
}

// meet counts what a pass of a world was about.
func (w *world) meet(met map[string]int, p Plan) {
	met[p.Verdict.Reason]++
	if line := runs(p); line != "" {
		met[line[:strings.LastIndexByte(line, ' ')+1]]++
	}
	if end := p.Record.LastTermination; end != nil {
		met["ended "+end.Reason]++
	}
	for _, past := range p.Record.History {
		met["history "+past.Reason]++
	}
}

// unmet: a world in which something never happens tests nothing about it.
func unmet(met map[string]int) []string {
	return notMet(met,
		spec.ReasonConversationInUse, spec.ReasonConversationUnknown, spec.ReasonTrustRequired, spec.ReasonNotReady, spec.ReasonEngineGone, "ended "+spec.ReasonLivenessProbeFailed, "claude --resume ", "codex resume ", "plain --back ",
		"history "+spec.ReplacedCleared, "history "+spec.ReplacedFresh, "history "+spec.ReplacedAdopted, "history "+spec.ReplacedClassChanged,
		"history "+spec.ReplacedMissing, "history "+spec.ReplacedNeverBegun,
		spec.ReasonDormant, "turn Completed", "turn NotReported", "turn ClientDied", "turn Unknown Interrupted", "turn Unknown NotConfirmed", "turn False Terminated",
		"turn False Suspended", "turn False DeadlineExceeded", "turn False ClientDied", "turn False TmuxUnavailable", "turn by Paste", "turn by Queue", "turn by Argument", "turn keys 2", "turn initial",
	)
}

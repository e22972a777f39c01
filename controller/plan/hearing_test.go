// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/controller/record"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec"
)

// B6, B8: the id is the client's to tell, whenever it does.
func TestWhatTheClientTellsIsItsConversation(t *testing.T) {
	of := func(c Class, hs []Heard, gs ...given) Input {
		return up(append(append([]given{ofClass(c), readyFor(time.Minute)}, gs...), hears(hs...))...)
	}
	c1 := has(begun(claude, "c1"))
	one := func(h Heard) []Heard {
		if h.Incarnation == 0 {
			h.Incarnation = 3
		}
		return []Heard{h}
	}
	changed, bound := []string{"Normal ConversationChanged"}, []string{"Normal ConversationBound"}
	keeps := func(name string, in Input) step {
		return step{name: name, in: in, reason: spec.ReasonReady, id: "c1", also: func(t *testing.T, p Plan) {
			require.Equal(t, jsonOf(in.Record), jsonOf(p.Record), "nothing is written")
		}}
	}
	follow(t, []step{
		{name: "another one takes its place", in: of(claude, one(Heard{ID: "c2", Reason: spec.ReplacedCleared}), c1), reason: spec.ReasonReady, id: "c2", history: []string{"c1 Cleared"}, events: changed, also: func(t *testing.T, p Plan) {
			require.Equal(t, record.Conversation{
				ID: "c2", Source: spec.SourceReported, Class: spec.ClassClaude, Directory: "/work", Home: "/home", ConfigDirectory: "/home/.c", BoundAt: now, Used: true,
			}, *p.Record.Conversation)
		}},
		{name: "without a reason as well", in: of(claude, one(Heard{ID: "c2"}), c1), reason: spec.ReasonReady, id: "c2", history: []string{"c1 Reported"}, events: changed},
		{name: "two at once are taken in their order", in: of(claude, []Heard{{ID: "c2", Incarnation: 3, Reason: spec.ReplacedCleared}, {ID: "c3", Incarnation: 3, Reason: spec.ReplacedForked}}, c1), reason: spec.ReasonReady, id: "c3", history: []string{"c2 Forked", "c1 Cleared"}, events: append(changed, changed...)},
		keeps("the same one is no news", of(claude, one(Heard{ID: "c1", Begun: true}), c1)),
		keeps("one of an earlier incarnation is none of its", of(claude, one(Heard{ID: "c2", Incarnation: 2}), c1)),
		keeps("nor is one of a later", of(claude, one(Heard{ID: "c2", Incarnation: 4}), c1)),
		keeps("nor an empty one", of(claude, one(Heard{}), c1)),
		keeps("one that was told before the present one is old", of(claude, one(Heard{ID: "c2", At: ago(2 * time.Hour)}), c1)),
		{name: "one that was told after it is not", in: of(claude, one(Heard{ID: "c2", At: ago(time.Minute)}), c1), reason: spec.ReasonReady, id: "c2", history: []string{"c1 Reported"}, events: changed},
		{name: "nor is any when the clock has jumped back since", in: of(claude, one(Heard{ID: "c2", At: ago(time.Second)}), c1, ofRecord(func(r *record.Record) {
			later := *r.Conversation
			later.BoundAt = now.Add(time.Hour)
			r.Conversation = &later
		})), reason: spec.ReasonReady, id: "c2", history: []string{"c1 Reported"}, events: changed},
		{name: "the first is learned whenever it is told", in: of(codex, one(Heard{ID: "c1", Begun: true})), reason: spec.ReasonReady, id: "c1", events: bound, also: func(t *testing.T, p Plan) {
			require.True(t, p.Record.Conversation.Begun)
			require.Equal(t, spec.ClassCodex, p.Record.Conversation.Class)
		}},
		{name: "its directory is that of the client", in: of(codex, one(Heard{ID: "c1"}), inDirectory("/new"), ofRecord(func(r *record.Record) {
			r.Client.Directory, r.Client.Home, r.Client.ConfigDirectory = "/old", "/h", "/h/.codex"
		})), reason: spec.ReasonReady, id: "c1", events: bound, also: func(t *testing.T, p Plan) {
			c := p.Record.Conversation
			require.Equal(t, []string{"/old", "/h", "/h/.codex"}, []string{c.Directory, c.Home, c.ConfigDirectory})
		}},
		{name: "one of the history is what it was", in: of(claude, one(Heard{ID: "c0", Reason: spec.ReplacedResumed}), c1, past(begun(claude, "c0"))), reason: spec.ReasonReady, id: "c0", history: []string{"c1 Resumed"}, events: changed, also: func(t *testing.T, p Plan) {
			require.True(t, p.Record.Conversation.Begun)
		}},
		{name: "a client that runs while tmux cannot be asked", in: of(claude, one(Heard{ID: "c2"}), c1, ofSeen(func(s *Seen) { s.Sight, s.Reason, s.Message = SightUnknown, spec.ReasonTmuxTimeout, "mute" })), reason: spec.ReasonTmuxTimeout, id: "c2", history: []string{"c1 Reported"}, events: changed},
		{name: "a client of the class before the edit", in: of(claude, one(Heard{ID: "c2"}), c1, toClass(codex), ofSeen(func(s *Seen) { s.Panes[0].Attached = 1 })), reason: spec.ReasonRunning, id: "c2", history: []string{"c1 Reported"}, events: changed, also: func(t *testing.T, p Plan) {
			require.Equal(t, spec.ClassClaude, p.Record.Conversation.Class)
		}},
		{name: "a class without conversations tells nothing", in: up(ofClass(none), hears(one(Heard{ID: "c1"})...)), reason: spec.ReasonRunning},
		{name: "nor does an agent that a client of exec runs", in: up(hears(Heard{ID: "c1", Incarnation: 3, Class: spec.ClassClaude})), reason: spec.ReasonRunning},
		keeps("nor one of another class, in a client with conversations", of(claude, one(Heard{ID: "c2", Class: spec.ClassCodex}), c1)),
		{name: "nor does exec", in: up(hears(one(Heard{ID: "c1"})...)), reason: spec.ReasonRunning},
		{name: "what a client of a lost record tells is its conversation (M4)", in: of(claude, one(Heard{ID: "c1", Class: spec.ClassClaude, Begun: true}), ofRecord(func(r *record.Record) { r.Client.Launched = nil })), reason: spec.ReasonReady, id: "c1", events: bound},
	})
}

// B4: what the client told last is heard before its end is accounted for.
func TestTheLastWordOfAClientIsHeard(t *testing.T) {
	dead := up(ofClass(claude), has(begun(claude, "c1")), exited(1), hears(Heard{ID: "c2", Incarnation: 3, Begun: true}))
	over := down(ofClass(claude), has(begun(claude, "c1")), deaths(2, 0), hears(Heard{ID: "c2", Incarnation: 3, Begun: true}))
	waits := func(in *Input) { in.Record.BackOff = record.BackOff{Deaths: 5, LastDeathAt: now} }
	changed := "Normal ConversationChanged"
	follow(t, []step{
		{name: "in the pass of its death", in: dead, reason: spec.ReasonStarting, id: "c2", history: []string{"c1 Reported"}, events: []string{changed, "Warning Died"}},
		{name: "after its end", in: over, reason: spec.ReasonCrashLoopBackOff, id: "c2", history: []string{"c1 Reported"}, events: []string{changed}},
		{name: "before the record knew of the client", in: starting(ofClass(codex), noPanes, seesPane(pane("%4", 4, 200)), seesClient(marked(4, 200)), hears(Heard{ID: "c2", Incarnation: 4}), ofSeen(func(s *Seen) {
			s.ReceiptState, s.ReceiptProcess = ReceiptFound, observe.Running
			s.Receipt = observe.Receipt{Attempt: "a4", Process: process(200), Stage: observe.StageExec, At: now}
		})), reason: spec.ReasonStarted, id: "c2", events: []string{"Normal Started", "Normal ConversationBound"}},
		{name: "before the record knew of the client, which is adopted", in: up(ofClass(codex), ofRecord(func(r *record.Record) { r.Client = nil }), hears(Heard{ID: "c2", Incarnation: 3, Begun: true})), reason: spec.ReasonAdopted, id: "c2", events: []string{"Normal ConversationBound", "Normal Adopted"}},
		{name: "but what was replaced since is not brought back", in: build(over, []given{past(begun(claude, "c2")), waits}), reason: spec.ReasonCrashLoopBackOff, id: "c1", history: []string{"c2 Cleared"}},
		{name: "nor what an earlier one told", in: build(over, []given{func(in *Input) { in.Heard = []Heard{{ID: "c2", Incarnation: 2}} }, waits}), reason: spec.ReasonCrashLoopBackOff, id: "c1"},
	})
}

func TestATranscriptThatWasSeenIsSomethingToLose(t *testing.T) {
	began := func(gs ...given) bool {
		return decide(t, up(append([]given{ofClass(claude), has(begun(claude, "c1"), neverBegun), readyFor(time.Minute)}, gs...)...)).Record.Conversation.Begun
	}
	require.True(t, began())
	require.False(t, began(finds(observe.EvidenceUnknown)))
	require.False(t, began(finds(observe.EvidenceUnusable)))
	require.False(t, began(findsNoFile), "a class without transcripts proves nothing")
	require.True(t, began(findsNoFile, hears(Heard{ID: "c1", Incarnation: 3, Begun: true})))
	require.False(t, began(edited(adopts("c7"))), "the evidence is of another")
}

func TestAReportTakesBackWhatWasNotFound(t *testing.T) {
	r := decide(t, up(ofClass(claude), has(begun(claude, "c1"), notFound(1)), readyFor(time.Minute), hears(Heard{ID: "c1", Incarnation: 3}))).Record
	require.Zero(t, r.Conversation.NotFound)
}

// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/utils/ptr"

	"github.com/muxlet/muxlet/controller/record"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec"
)

// The classes of these tests, made like the built-in ones. plain has no transcript to
// look at, none no conversations and shows what it works on; wrapper is codex as npm
// starts it, arguer takes turns at its start only.
var (
	claude = Class{Name: spec.ClassClaude, Spec: &spec.ClientClassSpec{
		Start:           spec.ClassCommand{Command: []string{"claude", "--session-id", "$(CONVERSATION_ID)"}},
		Resume:          spec.ClassCommand{Command: []string{"claude", "--resume", "$(CONVERSATION_ID)"}},
		ConfigDirectory: spec.ClassDirectory{Env: "CLAUDE_CONFIG_DIR", Default: "$(HOME)/.claude"},
		Conversation:    spec.ClassConversation{Identity: spec.IdentityAssigned, Transcript: "/t/$(CONVERSATION_ID)", TranscriptPattern: "user", NotFoundPattern: "No conversation"},
		Reports:         spec.ReportsClaude,
		Submit:          spec.ClassSubmit{Composer: spec.ClassComposer{Pattern: "> (?P<text>.*)", Continues: `\\\z`}},
		Env:             []spec.EnvVar{{Name: "COLORTERM", Value: "truecolor"}}, UnsetEnv: []string{"CLAUDECODE"},
	}}
	codex = Class{Name: spec.ClassCodex, Spec: &spec.ClientClassSpec{
		Start:        spec.ClassCommand{Command: []string{"codex", "-C", "$(WORKSPACE)"}},
		Resume:       spec.ClassCommand{Command: []string{"codex", "resume", "$(CONVERSATION_ID)"}},
		Conversation: spec.ClassConversation{Identity: spec.IdentityReported, Transcript: "/r/$(CONVERSATION_ID)"},
		Reports:      spec.ReportsCodex,
		Submit: spec.ClassSubmit{
			Method: spec.SubmitQueue, Command: []string{"codex", "queue", "--thread", "$(CONVERSATION_ID)"}, Composer: spec.ClassComposer{Pattern: "> (?P<text>.*)"},
		},
		Ready: spec.ClassReady{Pattern: "ready", TimeoutSeconds: ptr.To[int32](20)},
	}}
	plain = Class{Name: "plain", Revision: "r1", Spec: &spec.ClientClassSpec{
		Start:        spec.ClassCommand{Command: []string{"plain", "--id", "$(CONVERSATION_ID)"}},
		Resume:       spec.ClassCommand{Command: []string{"plain", "--back", "$(CONVERSATION_ID)"}},
		Conversation: spec.ClassConversation{Identity: spec.IdentityAssigned, NotFoundPattern: "gone"},
		Stop:         spec.ClassStop{Signal: "SIGINT"},
	}}
	wrapper = Class{Name: "wrapper", Spec: func() *spec.ClientClassSpec {
		s := codex.Spec.DeepCopy()
		s.Engine.Executable = "codex"
		s.Submit.Method, s.Submit.WhileWorking = spec.SubmitPaste, spec.WhileWorkingQueue
		return s
	}()}
	none   = Class{Name: "none", Spec: &spec.ClientClassSpec{Start: spec.ClassCommand{Command: []string{"none"}}, Stop: spec.ClassStop{Keys: []string{"C-c", "C-c"}}, Working: spec.ClassPattern{Pattern: "busy"}}}
	arguer = Class{Name: "arguer", Spec: &spec.ClientClassSpec{
		Start: spec.ClassCommand{Command: []string{"arguer"}}, Reports: spec.ReportsClaude, Submit: spec.ClassSubmit{Method: spec.SubmitArgument},
	}}
)

// ofClass makes the session, and its client, one of the class.
func ofClass(c Class) given {
	return func(in *Input) {
		named := func(s *spec.SessionSpec) { s.ClientClassName, s.Client.Command = c.Name, nil }
		ofSpec(named)(in)
		in.Class = &c
		in.Record.Class, in.Record.ClassName, in.Record.ClassRevision = c.Spec.DeepCopy(), c.Name, c.Revision
		if client := in.Record.Client; client != nil {
			client.ClassRevision = c.Revision
		}
		if a := in.Record.Attempt; a != nil {
			named(&a.Spec)
			a.ClassRevision = c.Revision
		}
		in.New.Conversation, in.New.Variables = "new", map[string]string{spec.VarHook: "hook"}
		in.Workspace.Wanted = "/work"
	}
}

// toClass edits the session's class.
func toClass(c Class) given {
	return func(in *Input) {
		in.Desired.Spec.ClientClassName, in.Desired.Spec.Client.Command, in.Class = c.Name, nil, &c
	}
}

// begun is a conversation of class c that a client has had a turn in.
func begun(c Class, id string) record.Conversation {
	return record.Conversation{
		ID: id, Source: spec.SourceAssigned, Class: c.Name, Directory: "/work", Home: "/home", ConfigDirectory: "/home/.c", BoundAt: ago(time.Hour), Used: true, Begun: true,
	}
}

// has gives the session a conversation that can be resumed.
func has(c record.Conversation, edits ...func(*record.Conversation)) given {
	return func(in *Input) {
		for _, edit := range edits {
			edit(&c)
		}
		in.Record.Conversation = &c
		in.Evidence = observe.Evidence{State: observe.EvidenceResumable, Path: "/t/" + c.ID}
	}
}

func unused(c *record.Conversation) {
	c.Used, c.Begun, c.Home, c.ConfigDirectory = false, false, "", ""
}
func neverBegun(c *record.Conversation) { c.Begun = false }
func unplaced(c *record.Conversation)   { c.Home, c.ConfigDirectory = "", "" }
func adoptee(c *record.Conversation)    { c.Source = spec.SourceAdopted }

func notFound(n int) func(*record.Conversation) {
	return func(c *record.Conversation) { c.NotFound = n }
}

func finds(state observe.EvidenceState) given {
	return func(in *Input) {
		in.Evidence.State, in.Evidence.Message = state, "it is what it is"
		if in.Record.Conversation != nil {
			in.Evidence.Path = "/t/" + in.Record.Conversation.ID
		}
	}
}

// findsNoFile: the class has no transcript to look at.
func findsNoFile(in *Input) { in.Evidence = observe.Evidence{State: observe.EvidenceResumable} }

func holds(s *spec.SessionSpec) { s.Conversation.MissingPolicy = spec.MissingHold }

func adopts(id string) func(*spec.SessionSpec) {
	return func(s *spec.SessionSpec) { s.Conversation.ID = id }
}

func past(c record.Conversation) given {
	return ofRecord(func(r *record.Record) {
		r.History = append(r.History, record.PastConversation{Conversation: c, ReplacedAt: ago(time.Hour), Reason: spec.ReplacedCleared})
	})
}

func demandsFresh(in *Input) {
	in.Record.Demand = &record.Demand{Reason: spec.ReasonResumed, At: now, Fresh: true}
}

func inDirectory(path string) given {
	return func(in *Input) { in.Workspace.Path = path }
}

func wants(path string) given {
	return func(in *Input) {
		in.Desired.Spec.Workspace.Directory, in.Workspace.Wanted = path, path
	}
}

// step is one sentence about what becomes of a conversation.
type step struct {
	name string
	in   Input
	// reason of the verdict.
	reason string
	// runs is the argv of the attempt; empty when nothing is started.
	runs string
	// id of the conversation afterwards, and the history as "id reason".
	id      string
	history []string
	events  []string
	also    func(*testing.T, Plan)
}

func follow(t *testing.T, steps []step) {
	t.Helper()
	for _, s := range steps {
		t.Run(s.name, func(t *testing.T) {
			p := decide(t, s.in)
			require.Equal(t, s.reason, p.Verdict.Reason, "%s: %s", p.Verdict.Rule, p.Verdict.Message)
			require.Equal(t, s.runs, runs(p), "what is run")
			id := ""
			if c := p.Record.Conversation; c != nil {
				id = c.ID
			}
			require.Equal(t, s.id, id, "conversation")
			var history []string
			for _, past := range p.Record.History {
				history = append(history, past.ID+" "+past.Reason)
			}
			require.Equal(t, s.history, history, "history")
			require.Equal(t, s.events, eventsOf(p), "events")
			if s.also != nil {
				s.also(t, p)
			}
		})
	}
}

// runs is what the plan's attempt runs, with the conversation put in.
func runs(p Plan) string {
	a := p.Record.Attempt
	if a == nil || p.Action.Launch.Labels.Attempt != a.ID {
		return ""
	}
	return commandOf(a)
}

func commandOf(a *record.Attempt) string {
	line := ""
	for _, word := range a.Order.Command {
		line += " " + spec.Expand(word, func(name string) (string, bool) {
			value, known := a.Order.Class.Variables[name]
			return value, known
		})
	}
	for _, word := range a.Order.Args {
		line += " " + word
	}
	return line[1:]
}

// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/actuate"
	"github.com/muxlet/muxlet/controller/record"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec"
)

const (
	fresh  = "claude --session-id new"
	resume = "claude --resume c1"
)

func TestAConversationIsResumedWithEvidenceOnly(t *testing.T) {
	of := func(gs ...given) Input {
		return down(append([]given{ofClass(claude), has(begun(claude, "c1"))}, gs...)...)
	}
	waits := func(name string, in Input, reason string) step {
		return step{name: name, in: in, reason: reason, id: "c1", also: func(t *testing.T, p Plan) {
			require.Equal(t, pollInUse, p.RequeueAfter)
			require.Equal(t, "Conversation", p.Verdict.Rule)
		}}
	}
	follow(t, []step{
		{name: "with a transcript it is resumed", in: of(), reason: spec.ReasonStarting, runs: resume, id: "c1"},
		{name: "without one, and with nothing known of where to look, its launcher looks", in: of(has(begun(claude, "c1"), unplaced), finds(observe.EvidenceUnknown)), reason: spec.ReasonStarting, runs: resume, id: "c1"},
		{name: "a class without transcripts is taken at its word", in: down(ofClass(plain), has(begun(plain, "c1")), findsNoFile), reason: spec.ReasonStarting, runs: "plain --back c1", id: "c1"},
		waits("what could not be read is waited for", of(finds(observe.EvidenceUnknown)), spec.ReasonConversationUnknown),
		waits("a process that has it open is waited for", of(func(in *Input) { in.Evidence.Holder = 77 }), spec.ReasonConversationInUse),
		waits("another session that has it is waited for", of(func(in *Input) { in.Rival = "other" }), spec.ReasonConversationInUse),
		waits("also for a person who demands it", of(demanded, func(in *Input) { in.Rival = "other" }), spec.ReasonConversationInUse),
		{name: "a class whose conversations are Reported has none before it tells one", in: down(ofClass(codex)), reason: spec.ReasonStarting, runs: "codex -C /work"},
		{name: "and is resumed with what it told", in: down(ofClass(codex), has(begun(codex, "c1"))), reason: spec.ReasonStarting, runs: "codex resume c1", id: "c1"},
		{name: "a class without conversations has none", in: down(ofClass(none)), reason: spec.ReasonStarting, runs: "none"},
	})
}

// Invariant 5: the id of a fresh conversation is in the record with its attempt.
func TestAFreshConversationHasItsIDBeforeItsClientRuns(t *testing.T) {
	p := decide(t, down(ofClass(claude)))
	require.Equal(t, &record.Conversation{ID: "new", Source: spec.SourceAssigned, Class: spec.ClassClaude, Directory: "/work", BoundAt: now}, p.Record.Conversation)
	require.Equal(t, &actuate.ClassOrder{
		Name: spec.ClassClaude,
		Variables: map[string]string{
			spec.VarConversationID: "new", spec.VarWorkspace: "/work", spec.VarSessionName: "shop", spec.VarSessionUID: uid, spec.VarHook: "hook",
		},
		ConfigDirectory: claude.Spec.ConfigDirectory, Env: claude.Spec.Env, UnsetEnv: claude.Spec.UnsetEnv,
	}, p.Record.Attempt.Order.Class)
	require.Empty(t, p.Record.Attempt.Resumes)
}

func TestTheLauncherOfAResumeGetsWhatItMustVerify(t *testing.T) {
	a := decide(t, down(ofClass(claude), has(begun(claude, "c1")), ofSpec(func(s *spec.SessionSpec) {
		s.Client.StartArgs, s.Client.Args = []string{"--first"}, []string{"--model", "opus"}
	}))).Record.Attempt
	require.Equal(t, "c1", a.Resumes)
	require.Equal(t, &actuate.ResumeOrder{
		ID: "c1", Reports: spec.ReportsClaude, Transcript: "/t/$(CONVERSATION_ID)", TranscriptPattern: "user", ConfigDirectory: "/home/.c",
	}, a.Order.Class.Resume)
	require.Equal(t, "claude --resume c1 --model opus", commandOf(a), "what is for a fresh start is in no resume (B11)")
}

func TestAConversationThatIsMissingIsReplacedByPolicy(t *testing.T) {
	of := func(edit func(*record.Conversation), gs ...given) Input {
		return down(append([]given{ofClass(claude), has(begun(claude, "c1"), edit)}, gs...)...)
	}
	kept := func(*record.Conversation) {}
	absent, unusable, hold := finds(observe.EvidenceAbsent), finds(observe.EvidenceUnusable), ofSpec(holds)
	loud := func(name string, in Input, reason string) step {
		return step{name: name, in: in, reason: spec.ReasonStarting, runs: fresh, id: "new", history: []string{"c1 " + reason}, events: []string{"Warning FreshStart"}, also: func(t *testing.T, p Plan) {
			require.Contains(t, p.Events[0].Message, "c1")
			require.Contains(t, p.Events[0].Message, "/t/c1")
		}}
	}
	quiet := func(name string, in Input) step {
		return step{name: name, in: in, reason: spec.ReasonStarting, runs: fresh, id: "new", history: []string{"c1 NeverBegun"}, events: []string{"Normal FreshStart"}}
	}
	blocks := func(name string, in Input) step {
		return step{name: name, in: in, reason: spec.ReasonConversationMissing, id: "c1", events: []string{"Warning ConversationMissing"}, also: func(t *testing.T, p Plan) {
			require.Equal(t, "/t/c1", p.Record.Block.File)
			require.Contains(t, p.Verdict.Message, "/t/c1")
			require.Contains(t, p.Verdict.Message, "muxlet resume shop --fresh")
			require.Nil(t, p.Record.Demand)
		}}
	}
	follow(t, []step{
		loud("it was deleted: a new one, loudly", of(kept, absent), spec.ReplacedMissing),
		loud("it was emptied: a new one, loudly", of(kept, unusable), spec.ReplacedMissing),
		loud("an id that a person gave is not what they thought", of(adoptee, absent, ofRecord(func(r *record.Record) { r.Conversation.Begun = false })), spec.ReplacedMissing),
		blocks("Hold asks a person first", of(kept, absent, hold)),
		blocks("also for an emptied one", of(kept, unusable, hold)),
		blocks("also for an id that they gave", of(adoptee, absent, hold, ofRecord(func(r *record.Record) { r.Conversation.Begun = false }))),
		blocks("also when they demand it", of(kept, absent, hold, demanded)),
		// B7
		quiet("one that never had a turn is replaced", of(neverBegun, absent)),
		quiet("whatever the policy says", of(neverBegun, absent, hold)),
		quiet("both doors of an empty file are shut: the id is not used again", of(neverBegun, unusable)),
	})
}

func TestAnIDThatNoClientWasGivenIsGivenToTheNext(t *testing.T) {
	of := func(gs ...given) Input {
		return down(append([]given{ofClass(claude), has(begun(claude, "c1"), unused), finds(observe.EvidenceAbsent)}, gs...)...)
	}
	follow(t, []step{
		{name: "its attempt came to nothing", in: of(), reason: spec.ReasonStarting, runs: "claude --session-id c1", id: "c1"},
		{name: "whatever is known of its transcript", in: of(finds(observe.EvidenceUnknown)), reason: spec.ReasonStarting, runs: "claude --session-id c1", id: "c1"},
		{name: "and for a class without", in: down(ofClass(plain), has(begun(plain, "c1"), unused), findsNoFile), reason: spec.ReasonStarting, runs: "plain --id c1", id: "c1"},
		{name: "but one with a transcript was given to one, before the record was rolled back", in: of(finds(observe.EvidenceResumable)), reason: spec.ReasonStarting, runs: resume, id: "c1"},
		{name: "so was one with an empty transcript", in: of(finds(observe.EvidenceUnusable)), reason: spec.ReasonStarting, runs: fresh, id: "new", history: []string{"c1 NeverBegun"}, events: []string{"Normal FreshStart"}},
		{name: "and one that a process has open", in: of(func(in *Input) { in.Evidence.Holder = 7 }), reason: spec.ReasonConversationInUse, id: "c1"},
	})
}

func TestAnIDThatWasGivenIsSpent(t *testing.T) {
	attempt := func(in Input) Input {
		p := decide(t, in)
		gs := []given{ofClass(claude), ofRecord(func(r *record.Record) { r.Attempt, r.Conversation = p.Record.Attempt, p.Record.Conversation })}
		return starting(gs...)
	}
	receipt := func(in *Input) {
		in.Seen.ReceiptState = ReceiptFound
		in.Seen.Receipt = observe.Receipt{Attempt: "a4", Process: process(200), Stage: observe.StageExec, At: now, Home: "/home", ConfigDirectory: "/home/.c"}
	}
	executed := build(attempt(down(ofClass(claude))), []given{receipt, seesClient(marked(4, 200)), ofSeen(func(s *Seen) { s.ReceiptProcess = observe.Running })})
	follow(t, []step{
		{name: "its client was executed", in: executed, reason: spec.ReasonStarted, id: "new", events: []string{"Normal Started"}, also: func(t *testing.T, p Plan) {
			c := p.Record.Conversation
			require.Equal(t, []any{true, false, "/home", "/home/.c"}, []any{c.Used, c.Begun, c.Home, c.ConfigDirectory})
			require.Equal(t, []string{"/work", "/home", "/home/.c"}, []string{p.Record.Client.Directory, p.Record.Client.Home, p.Record.Client.ConfigDirectory})
		}},
		{name: "its client was executed though the attempt was given up", in: build(executed, []given{noClients, ofSeen(func(s *Seen) { s.ReceiptProcess = observe.Gone }), ofRecord(func(r *record.Record) {
			r.Attempt.Fence, r.Attempt.Reason = record.FenceClosed, spec.ReasonSuspended
		})}), reason: spec.ReasonStarting, id: "new", also: func(t *testing.T, p Plan) { require.True(t, p.Record.Conversation.Used) }},
		{name: "its client proves by its mark to run", in: build(attempt(down(ofClass(claude))), []given{seesClient(marked(4, 200)), ofRecord(func(r *record.Record) { r.Attempt.OpenedAt = ago(markPatience) })}), reason: spec.ReasonAdopted, id: "new", events: []string{"Normal Adopted"}, also: func(t *testing.T, p Plan) {
			require.True(t, p.Record.Conversation.Used)
		}},
		{name: "a resume was verified by its launcher: there is something to lose", in: build(attempt(down(ofClass(claude), has(begun(claude, "c1"), adoptee, neverBegun))), []given{receipt, seesClient(marked(4, 200)), ofSeen(func(s *Seen) { s.ReceiptProcess = observe.Running })}), reason: spec.ReasonStarted, id: "c1", events: []string{"Normal Started"}, also: func(t *testing.T, p Plan) {
			require.True(t, p.Record.Conversation.Begun)
			require.Equal(t, "c1", p.Record.Client.Resumes)
		}},
	})
}

// What the launcher finds in the client's own environment decides as what is found
// from here.
func TestTheLaunchersFindingsDecideAlike(t *testing.T) {
	failed := func(reason string, gs ...given) Input {
		in := starting(ofClass(claude), has(begun(claude, "c1"), unplaced), noPanes)
		in.New.ID = "a5"
		in.Record.Attempt.Resumes = "c1"
		in.Seen.ReceiptState = ReceiptFound
		in.Seen.Receipt = observe.Receipt{
			Attempt: "a4", Process: process(200), Stage: observe.StageFailed, At: now, Reason: reason, Message: "it is in /old, the client looks in /new", File: "/t/c1",
			Home: "/home", ConfigDirectory: "/home/.c",
		}
		in.Evidence = observe.Evidence{}
		return build(in, gs)
	}
	placed := func(t *testing.T, p Plan) {
		require.Equal(t, "/home/.c", p.Record.Conversation.ConfigDirectory, "where to look is known now")
		require.Equal(t, 1, p.Record.BackOff.Deaths)
	}
	follow(t, []step{
		{name: "missing: a new one", in: failed(spec.ReasonConversationMissing), reason: spec.ReasonStarting, runs: fresh, id: "new", history: []string{"c1 Missing"}, events: []string{"Warning ConversationMissing", "Warning FreshStart"}},
		{name: "missing, and Hold: blocked", in: failed(spec.ReasonConversationMissing, ofSpec(holds)), reason: spec.ReasonConversationMissing, id: "c1", events: []string{"Warning ConversationMissing", "Warning ConversationMissing"}, also: func(t *testing.T, p Plan) {
			require.Equal(t, "/t/c1", p.Record.Block.File)
		}},
		// B2
		{name: "elsewhere: blocked, whatever the policy says", in: failed(spec.ReasonConversationElsewhere), reason: spec.ReasonConversationElsewhere, id: "c1", events: []string{"Warning ConversationElsewhere"}, also: func(t *testing.T, p Plan) {
			require.Contains(t, p.Verdict.Message, "it is in /old, the client looks in /new")
		}},
		{name: "in use: tried again later", in: failed(spec.ReasonConversationInUse), reason: spec.ReasonConversationUnknown, id: "c1", events: []string{"Warning ConversationInUse"}, also: placed},
		{name: "unreadable: tried again later", in: failed(spec.ReasonConversationUnknown), reason: spec.ReasonConversationUnknown, id: "c1", events: []string{"Warning ConversationUnknown"}, also: placed},
		{name: "of another conversation than the present one: nothing", in: failed(spec.ReasonConversationMissing, has(begun(claude, "c2"))), reason: spec.ReasonStarting, runs: "claude --resume c2", id: "c2", events: []string{"Warning ConversationMissing"}},
	})
}

func TestABlockForAConversationEndsWhenItCanBeResumed(t *testing.T) {
	missing := func(gs ...given) Input {
		return down(append([]given{ofClass(claude), ofSpec(holds), has(begun(claude, "c1")), finds(observe.EvidenceAbsent), blocked(spec.ReasonConversationMissing)}, gs...)...)
	}
	elsewhere := func(gs ...given) Input {
		return down(append([]given{ofClass(claude), has(begun(claude, "c1")), blocked(spec.ReasonConversationElsewhere)}, gs...)...)
	}
	cleared := func(in *Input) { in.Block = ObstacleCleared }
	freshly := []string{"Warning FreshStart"}
	follow(t, []step{
		{name: "missing: it stands", in: missing(), reason: spec.ReasonConversationMissing, id: "c1"},
		{name: "missing: nobody else can say that it is over", in: missing(cleared), reason: spec.ReasonConversationMissing, id: "c1"},
		{name: "missing: the file is back", in: missing(finds(observe.EvidenceResumable)), reason: spec.ReasonStarting, runs: resume, id: "c1"},
		{name: "missing: a demand looks again", in: missing(demanded), reason: spec.ReasonConversationMissing, id: "c1", events: []string{"Warning ConversationMissing"}},
		{name: "missing: a person begins anew", in: missing(demandsFresh), reason: spec.ReasonStarting, runs: fresh, id: "new", history: []string{"c1 Fresh"}, events: freshly},
		{name: "missing: StartFresh now", in: missing(edited(func(s *spec.SessionSpec) { s.Conversation.MissingPolicy = spec.MissingStartFresh })), reason: spec.ReasonStarting, runs: fresh, id: "new", history: []string{"c1 Missing"}, events: freshly},
		{name: "said by the client twice: a transcript that is there is no news", in: missing(has(begun(claude, "c1"), notFound(2))), reason: spec.ReasonConversationMissing, id: "c1"},
		{name: "said by the client twice: a demand tries once more", in: missing(has(begun(claude, "c1"), notFound(2)), demanded), reason: spec.ReasonStarting, runs: resume, id: "c1"},
		{name: "elsewhere: it stands although it can be resumed from here", in: elsewhere(cleared), reason: spec.ReasonConversationElsewhere, id: "c1"},
		{name: "elsewhere: a demand tries again", in: elsewhere(demanded), reason: spec.ReasonStarting, runs: resume, id: "c1"},
		{name: "elsewhere: a person begins anew", in: elsewhere(demandsFresh), reason: spec.ReasonStarting, runs: fresh, id: "new", history: []string{"c1 Fresh"}, events: freshly},
		{name: "elsewhere: an edit", in: elsewhere(edited(graceOf(3))), reason: spec.ReasonStarting, runs: resume, id: "c1"},
	})
}

// A lost record is never followed by a silent blank start.
func TestALostRecordWaitsForAPerson(t *testing.T) {
	of := func(c Class, gs ...given) Input {
		return down(append([]given{ofClass(c), blocked(spec.ReasonRecordQuarantined)}, gs...)...)
	}
	adopted := edited(adopts("c7"))
	follow(t, []step{
		{name: "it stands", in: of(claude), reason: spec.ReasonRecordQuarantined},
		{name: "also for a demand", in: of(claude, demanded), reason: spec.ReasonRecordQuarantined},
		{name: "also after an edit", in: of(claude, edited(graceOf(3))), reason: spec.ReasonRecordQuarantined},
		{name: "also for the first document that is seen", in: of(claude, ofRecord(func(r *record.Record) { r.Spec = nil })), reason: spec.ReasonRecordQuarantined},
		{name: "until a person wants a fresh one", in: of(claude, demandsFresh), reason: spec.ReasonStarting, runs: fresh, id: "new"},
		{name: "or names one", in: of(claude, adopted, func(in *Input) { in.Evidence.State = observe.EvidenceResumable }), reason: spec.ReasonStarting, runs: "claude --resume c7", id: "c7"},
		{name: "a class without conversations begins anew", in: of(none), reason: spec.ReasonStarting, runs: "none"},
		{name: "a client that runs is adopted; its end without a word changes nothing", in: build(up(), []given{ofClass(claude), blocked(spec.ReasonRecordQuarantined), exited(1)}), reason: spec.ReasonRecordQuarantined, events: []string{"Warning Died"}},
		{name: "and with one it is brought back with that", in: build(up(), []given{ofClass(claude), blocked(spec.ReasonRecordQuarantined), exited(1), hears(Heard{ID: "c5", Incarnation: 3, Begun: true})}), reason: spec.ReasonStarting, id: "c5", events: []string{"Normal ConversationBound", "Warning Died"}},
	})
	p := decide(t, build(up(ofRecord(func(r *record.Record) { r.Client = nil }), blocked(spec.ReasonRecordQuarantined)), []given{ofClass(claude)}))
	require.Equal(t, spec.ReasonAdopted, p.Verdict.Reason)
	require.NotNil(t, p.Record.Block, "which conversation it has is not known yet")

	t.Run("also when it had a class without conversations before it could be started", func(t *testing.T) {
		for name, gs := range map[string][]given{
			"while its start waits": {func(in *Input) { in.Grant = GrantNone }},
			"once it was started":   nil,
		} {
			p := decide(t, of(none, gs...))
			require.NotNil(t, p.Record.Block, name)
			p.Record.Attempt = nil
			again := of(claude)
			again.Record.Block = p.Record.Block
			require.Equal(t, spec.ReasonRecordQuarantined, decide(t, again).Verdict.Reason, name)
		}
	})
	t.Run("a wish for a fresh one outlives the wait for its start", func(t *testing.T) {
		p := decide(t, of(claude, demandsFresh, func(in *Input) { in.Grant = GrantNone }))
		require.NotNil(t, p.Record.Demand)
		again := of(claude)
		again.Record = p.Record
		require.Equal(t, fresh, runs(decide(t, again)))
	})
}

func hears(hs ...Heard) given { return func(in *Input) { in.Heard = append(in.Heard, hs...) } }

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

// A10: whatever was edited meanwhile, no class gets another one's conversation.
func TestAConversationNeverGoesToAnotherClass(t *testing.T) {
	of := func(gs ...given) Input {
		return down(append([]given{ofClass(claude), has(begun(claude, "c1"))}, gs...)...)
	}
	loud := []string{"Warning FreshStart"}
	gone := func(in *Input) { in.Class = nil }
	follow(t, []step{
		{name: "claude becomes codex: fresh", in: of(toClass(codex)), reason: spec.ReasonStarting, runs: "codex -C /work", history: []string{"c1 ClassChanged"}, events: loud},
		{name: "claude becomes another class with ids of ours: its own new one", in: of(toClass(plain)), reason: spec.ReasonStarting, runs: "plain --id new", id: "new", history: []string{"c1 ClassChanged"}, events: loud},
		{name: "claude becomes a class without conversations", in: of(toClass(none)), reason: spec.ReasonStarting, runs: "none", history: []string{"c1 ClassChanged"}, events: loud},
		{name: "one that never had a turn is told of quietly", in: of(has(begun(claude, "c1"), neverBegun), toClass(codex)), reason: spec.ReasonStarting, runs: "codex -C /work", history: []string{"c1 ClassChanged"}, events: []string{"Normal FreshStart"}},
		{name: "an id that no client was given is not worth a word", in: of(has(begun(claude, "c1"), unused), toClass(codex)), reason: spec.ReasonStarting, runs: "codex -C /work"},
		{name: "an id that is adopted with the edit is the new class's", in: of(toClass(codex), edited(adopts("c7"))), reason: spec.ReasonStarting, runs: "codex resume c7", id: "c7", history: []string{"c1 ClassChanged"}, events: loud},
		{name: "an id that was adopted before is not", in: of(ofSpec(adopts("c1")), toClass(codex)), reason: spec.ReasonStarting, runs: "codex -C /work", history: []string{"c1 ClassChanged"}, events: loud},
		{name: "nothing changes before a client can be started", in: of(toClass(codex), deaths(3, 0), edited(suspended)), reason: spec.ReasonSuspended, id: "c1"},
		{name: "a class that vanishes is used as it was", in: of(gone), reason: spec.ReasonStarting, runs: resume, id: "c1"},
		{name: "but not for another name", in: of(toClass(codex), gone), reason: spec.ReasonClassNotFound, id: "c1"},
		{name: "a class that nobody declares starts nothing", in: of(gone, ofRecord(func(r *record.Record) { r.Class, r.ClassName = nil, "" })), reason: spec.ReasonClassNotFound, id: "c1"},
		{name: "also when its client has just died", in: build(up(), []given{ofClass(claude), has(begun(claude, "c1")), exited(1), toClass(codex)}), reason: spec.ReasonStarting, runs: "codex -C /work", history: []string{"c1 ClassChanged"}, events: []string{"Warning Died", "Warning FreshStart"}},
	})
}

func TestTheLastGoodClassIsKept(t *testing.T) {
	of := func(gs ...given) Input { return up(append([]given{ofClass(plain)}, gs...)...) }
	newer := plain
	newer.Spec, newer.Revision = plain.Spec.DeepCopy(), "r2"
	newer.Spec.Start.Command = []string{"plain", "--newer"}
	forget := ofRecord(func(r *record.Record) { r.Class, r.ClassName, r.ClassRevision = nil, "", "" })
	classOf := func(in Input) []any {
		r := decide(t, in).Record
		return []any{r.Class, r.ClassName, r.ClassRevision}
	}
	require.Equal(t, []any{plain.Spec, "plain", "r1"}, classOf(of(forget)))
	require.Equal(t, []any{newer.Spec, "plain", "r2"}, classOf(of(func(in *Input) { in.Class = &newer })))
	require.Equal(t, []any{plain.Spec, "plain", "r1"}, classOf(of(func(in *Input) { in.Class = nil })))
	require.Equal(t, []any{plain.Spec, "plain", "r1"}, classOf(of(func(in *Input) { in.Class = &codex })), "it is of another name")
	require.Equal(t, []any{(*spec.ClientClassSpec)(nil), "", ""}, classOf(up(ofClass(Class{Name: spec.ClassExec, Spec: &spec.ClientClassSpec{}}))), "exec is always there")

	t.Run("a class that was mended lifts the block", func(t *testing.T) {
		p := decide(t, down(ofClass(plain), blocked(spec.ReasonCommandNotFound), deaths(9, 0), func(in *Input) { in.Class = &newer }))
		require.Equal(t, "plain --newer", runs(p))
	})
}

func TestAnIDOfAPersonsIsTakenUpOnce(t *testing.T) {
	of := func(gs ...given) Input {
		return down(append([]given{ofClass(claude), has(begun(claude, "c1"))}, gs...)...)
	}
	edit := edited(adopts("c7"))
	told := []string{"Normal ConversationChanged"}
	past7 := past(begun(claude, "c7"))
	follow(t, []step{
		{name: "it replaces the present one", in: of(edit), reason: spec.ReasonStarting, runs: "claude --resume c7", id: "c7", history: []string{"c1 Adopted"}, events: told, also: func(t *testing.T, p Plan) {
			require.Equal(t, record.Conversation{ID: "c7", Source: spec.SourceAdopted, Class: spec.ClassClaude, Directory: "/work", BoundAt: now}, *p.Record.Conversation)
			require.Equal(t, "c7", p.Record.AdoptedID)
		}},
		{name: "it is the first", in: down(ofClass(claude), ofSpec(adopts("c7")), func(in *Input) { in.Evidence.State = observe.EvidenceResumable }), reason: spec.ReasonStarting, runs: "claude --resume c7", id: "c7"},
		{name: "one of the history is what it was", in: of(past7, edit), reason: spec.ReasonStarting, runs: "claude --resume c7", id: "c7", history: []string{"c1 Adopted"}, events: told, also: func(t *testing.T, p Plan) {
			require.Equal(t, "/home/.c", p.Record.Conversation.ConfigDirectory)
		}},
		{name: "it was taken up, and the client has told another since", in: of(ofSpec(adopts("c7")), ofRecord(func(r *record.Record) { r.AdoptedID = "c7" })), reason: spec.ReasonStarting, runs: resume, id: "c1"},
		{name: "the session has it already", in: of(edited(adopts("c1"))), reason: spec.ReasonStarting, runs: resume, id: "c1", also: func(t *testing.T, p Plan) {
			require.Equal(t, "c1", p.Record.AdoptedID, "what the client tells later is not undone")
		}},
		{name: "it was taken back", in: of(ofRecord(func(r *record.Record) { r.AdoptedID = "c7" })), reason: spec.ReasonStarting, runs: resume, id: "c1", also: func(t *testing.T, p Plan) {
			require.Empty(t, p.Record.AdoptedID, "and may be given again")
		}},
		{name: "another session has it", in: of(edit, func(in *Input) { in.Rival = "other" }), reason: spec.ReasonConversationInUse, id: "c1", also: says("other", "c7")},
		{name: "another session has it, and the client runs: it is kept", in: up(ofClass(claude), has(begun(claude, "c1")), readyFor(time.Minute), edit, func(in *Input) { in.Rival = "other" }), reason: spec.ReasonReady, id: "c1", also: func(t *testing.T, p Plan) {
			require.Contains(t, p.Pending, "session other has conversation c7")
		}},
		{name: "a person wants a fresh one rather", in: of(edit, demandsFresh), reason: spec.ReasonStarting, runs: fresh, id: "new", history: []string{"c1 Fresh"}, events: []string{"Warning FreshStart"}, also: func(t *testing.T, p Plan) {
			require.Equal(t, "c7", p.Record.AdoptedID)
		}},
		{name: "a class without conversations takes none", in: down(ofClass(none), ofSpec(adopts("c7"))), reason: spec.ReasonStarting, runs: "none"},
	})
}

// The evidence of a pass is about one conversation. When another is to be resumed, it
// is looked for first.
func TestEvidenceOfAnotherConversationCountsForNothing(t *testing.T) {
	in := up(ofClass(claude), has(begun(claude, "c1")), exited(1), hears(Heard{ID: "c2", Incarnation: 3, Begun: true}))
	p := decide(t, in)
	require.Equal(t, []string{"", spec.ReasonStarting}, []string{runs(p), p.Verdict.Reason})
	require.Equal(t, soon, p.RequeueAfter)
	require.Equal(t, "c2", p.Record.Conversation.ID)

	next := down(ofClass(claude))
	next.Record = p.Record
	ref, known := Reference(next)
	require.True(t, known)
	require.Equal(t, "c2", ref.ID)
}

func TestTheConversationToLookForIsKnownBeforeTheDecision(t *testing.T) {
	of := func(gs ...given) string {
		ref, _ := Reference(down(append([]given{ofClass(claude), has(begun(claude, "c1"))}, gs...)...))
		return ref.ID
	}
	require.Equal(t, "c1", of())
	require.Equal(t, "c7", of(edited(adopts("c7"))))
	require.Empty(t, of(demandsFresh))
	require.Empty(t, of(demandsFresh, edited(adopts("c7"))))
	require.Empty(t, of(toClass(codex)))
	require.Empty(t, of(toClass(none)))
	require.Empty(t, of(func(in *Input) { in.Desired.Spec, in.Record.Spec = nil, nil }))
	require.Equal(t, "c1", of(func(in *Input) { in.Desired.Spec = nil }))

	ref, known := Reference(down(ofClass(claude), has(begun(claude, "c1"), func(c *record.Conversation) { c.Directory = "/old" })))
	require.True(t, known)
	require.Equal(t, observe.ConversationRef{Class: claude.Spec, ID: "c1", Session: "shop", Directory: "/old", Home: "/home", ConfigDirectory: "/home/.c", Ran: true}, ref)
}

// B9, B10: a conversation goes on in the directory in which it began.
func TestAConversationBelongsToItsDirectory(t *testing.T) {
	old := func(c *record.Conversation) { c.Directory = "/old" }
	of := func(gs ...given) Input {
		return down(append([]given{ofClass(claude), has(begun(claude, "c1"), old), inDirectory("/old"), wants("/new"), func(in *Input) { in.Record.Spec.Workspace.Directory = "/new" }}, gs...)...)
	}
	looks := func(name, where string, in Input) step {
		return step{name: name, in: in, reason: spec.ReasonStarting, id: "c1", also: says("looking at " + where)}
	}
	runsIn := func(directory string) func(*testing.T, Plan) {
		return func(t *testing.T, p Plan) {
			require.Equal(t, directory, p.Record.Attempt.Order.Directory)
			require.Equal(t, directory, p.Record.Attempt.Order.Class.Variables[spec.VarWorkspace])
			require.Equal(t, directory, p.Action.Launch.Directory)
			require.Equal(t, directory, p.Record.Conversation.Directory)
		}
	}
	moved := []string{"Normal ConversationElsewhere"}
	follow(t, []step{
		{name: "its own is there: it is resumed there", in: of(), reason: spec.ReasonStarting, runs: resume, id: "c1", also: runsIn("/old")},
		{name: "its own is gone and the spec's is there: it moves", in: of(inDirectory("/new")), reason: spec.ReasonStarting, runs: resume, id: "c1", events: moved, also: runsIn("/new")},
		{name: "its own is gone and so is the spec's: blocked", in: of(func(in *Input) {
			in.Workspace.Obstacle, in.Workspace.Message = spec.ReasonWorkspaceMissing, "make it"
		}), reason: spec.ReasonWorkspaceMissing, id: "c1"},
		{name: "begun anew it is in the spec's", in: of(demandsFresh, inDirectory("/new")), reason: spec.ReasonStarting, runs: fresh, id: "new", history: []string{"c1 Fresh"}, events: []string{"Warning FreshStart"}, also: runsIn("/new")},
		{name: "one that never had a turn follows the spec", in: of(has(begun(claude, "c1"), unused), inDirectory("/new"), finds(observe.EvidenceAbsent)), reason: spec.ReasonStarting, runs: "claude --session-id c1", id: "c1", also: runsIn("/new")},
		{name: "one that is replaced is not followed by another in its directory", in: of(finds(observe.EvidenceAbsent)), reason: spec.ReasonStarting, history: []string{"c1 Missing"}, events: []string{"Warning FreshStart"}, also: says("looking at /new")},
		looks("that it has begun is learned now", "/old", of(has(begun(claude, "c1"), old, neverBegun), inDirectory("/new"))),
	})

	t.Run("which one is looked at", func(t *testing.T) {
		directories := func(gs ...given) []string {
			in := of(gs...)
			primary, fallback := DirectoryOf(&in.Record, in.Desired.Spec)
			return []string{primary, fallback}
		}
		require.Equal(t, []string{"/old", "/new"}, directories())
		require.Equal(t, []string{"/new", ""}, directories(demandsFresh))
		require.Equal(t, []string{"/new", ""}, directories(edited(adopts("c7"))))
		require.Equal(t, []string{"/new", ""}, directories(toClass(codex)))
		require.Equal(t, []string{"/new", ""}, directories(has(begun(claude, "c1"), old, neverBegun)))
		require.Equal(t, []string{"/new", ""}, directories(ofRecord(func(r *record.Record) { r.Conversation = nil })))
	})
}

// B9
func TestAnEditOfTheDirectoryAloneMovesNoConversation(t *testing.T) {
	of := func(gs ...given) Input {
		return up(append([]given{ofClass(claude), has(begun(claude, "c1")), readyFor(time.Minute), wants("/new"), ofRecord(func(r *record.Record) { r.Client.Directory = "/work" })}, gs...)...)
	}
	p := decide(t, of())
	require.Equal(t, spec.ReasonReady, p.Verdict.Reason)
	require.Equal(t, []string{"Warning ConversationElsewhere"}, eventsOf(p))
	require.Equal(t, spec.ReasonConversationElsewhere, p.PendingReason)
	for _, word := range []string{"c1", "/work", "/new", "muxlet resume shop --fresh"} {
		require.Contains(t, p.Pending, word)
		require.Contains(t, p.Events[0].Message, word)
	}
	require.Zero(t, p.RequeueAfter)

	again := of()
	again.Record = p.Record
	p = decide(t, again)
	require.Empty(t, p.Events, "it is told once")
	require.NotEmpty(t, p.Pending)

	p = decide(t, of(has(begun(claude, "c1"), neverBegun), finds(observe.EvidenceUnknown)))
	require.Equal(t, []string{"Normal Updating"}, eventsOf(p), "one without a turn follows the spec")
	p = decide(t, of(func(in *Input) { in.Workspace.Wanted = "/work" }))
	require.Empty(t, p.Pending, "the same directory, written otherwise")
	require.Empty(t, p.Events)
}

// B10: a directory that is made again ends the block without an edit.
func TestADirectoryThatIsBackBringsTheConversationBack(t *testing.T) {
	in := down(ofClass(claude), has(begun(claude, "c1")), func(in *Input) {
		in.Workspace.Obstacle, in.Workspace.Message = spec.ReasonWorkspaceMissing, "make it"
	})
	require.Equal(t, spec.ReasonWorkspaceMissing, decide(t, in).Verdict.Reason)
	in.Workspace.Obstacle = ""
	require.Equal(t, resume, runs(decide(t, in)))
}

func TestAResumeMayAskForAFreshConversation(t *testing.T) {
	r, refusal := Apply(down().Record, RequestFresh, now)
	require.Empty(t, refusal)
	require.Equal(t, &record.Demand{Reason: spec.ReasonResumed, At: now, Fresh: true}, r.Demand)
	_, refusal = Apply(up().Record, RequestFresh, now)
	require.Equal(t, RefusedRunning, refusal.Reason)
	_, refusal = Apply(starting().Record, RequestFresh, now)
	require.Equal(t, RefusedRunning, refusal.Reason)
	_, refusal = Apply(down(ofSpec(suspended)).Record, RequestFresh, now)
	require.Equal(t, RefusedSuspended, refusal.Reason)

	waits := decide(t, down(ofClass(claude), has(begun(claude, "c1")), demandsFresh, func(in *Input) { in.Grant = GrantNone }))
	require.Equal(t, spec.ReasonWaitingForBudget, waits.Verdict.Reason)
	require.Equal(t, &record.Demand{Reason: spec.ReasonResumed, At: now}, waits.Record.Demand, "it is fresh once, and wanted still")
}

// B3: a failure never clears an id; B13: it is counted, whatever the status.
func TestAResumeThatFailsKeepsTheID(t *testing.T) {
	young := func(age time.Duration) given {
		return ofRecord(func(r *record.Record) {
			r.Client.StartedAt, r.Client.Resumes, r.Client.ReadyAt = ago(age), "c1", time.Time{}
		})
	}
	of := func(gs ...given) Input {
		return up(append([]given{ofClass(claude), has(begun(claude, "c1")), young(2 * time.Second), ofSeen(func(s *Seen) { s.NotFound = true }), exited(1), func(in *Input) { in.New.ID = "a4" }}, gs...)...)
	}
	counts := func(n int) func(*testing.T, Plan) {
		return func(t *testing.T, p Plan) { require.Equal(t, n, p.Record.Conversation.NotFound) }
	}
	failed := []string{"Warning ResumeFailed", "Warning Died"}
	follow(t, []step{
		{name: "not found, and the file is there: once more", in: of(), reason: spec.ReasonStarting, runs: resume, id: "c1", events: failed, also: counts(1)},
		{name: "twice in a row: that is proof", in: of(has(begun(claude, "c1"), notFound(1)), ofRecord(func(r *record.Record) { r.BackOff = record.BackOff{} })), reason: spec.ReasonStarting, runs: fresh, id: "new", history: []string{"c1 Missing"}, events: append(failed, "Warning FreshStart")},
		{name: "twice in a row, and Hold", in: of(ofSpec(holds), has(begun(claude, "c1"), notFound(1))), reason: spec.ReasonConversationMissing, id: "c1", events: append(failed, "Warning ConversationMissing")},
		{name: "without any file once is proof", in: of(ofClass(plain), has(begun(plain, "c1")), findsNoFile), reason: spec.ReasonStarting, runs: "plain --id new", id: "new", history: []string{"c1 Missing"}, events: append(failed, "Warning FreshStart")},
		{name: "another failure", in: of(ofSeen(func(s *Seen) { s.NotFound = false })), reason: spec.ReasonStarting, runs: resume, id: "c1", events: []string{"Warning Died"}, also: counts(0)},
		{name: "after a long life", in: of(young(20 * time.Second)), reason: spec.ReasonStarting, runs: resume, id: "c1", events: []string{"Warning Died"}, also: counts(0)},
		{name: "after it was ready", in: of(readyFor(time.Second)), reason: spec.ReasonStarting, runs: resume, id: "c1", events: []string{"Warning Died"}, also: counts(0)},
		{name: "by a success", in: of(exited(0)), reason: spec.ReasonStarting, runs: resume, id: "c1", events: []string{"Normal Died"}, also: counts(0)},
		{name: "by a person's signal", in: of(signalled(15)), reason: spec.ReasonStarting, runs: resume, id: "c1", events: []string{"Warning Died"}, also: counts(0)},
		{name: "by a status that nobody knows", in: of(gone(time.Second), dead(0, nil, 0)), reason: spec.ReasonStarting, runs: resume, id: "c1", events: failed, also: counts(1)},
		{name: "of a fresh start", in: of(ofRecord(func(r *record.Record) { r.Client.Resumes = "" })), reason: spec.ReasonStarting, runs: resume, id: "c1", events: []string{"Warning Died"}, also: counts(0)},
		{name: "ten times with status 0: it waits, and is brought back with its conversation", in: of(exited(0), deaths(9, time.Second)), reason: spec.ReasonCrashLoopBackOff, id: "c1", events: []string{"Normal Died"}, also: func(t *testing.T, p Plan) {
			require.Equal(t, 10, p.Record.BackOff.Deaths)
		}},
	})
}

// B1: of two sessions in one directory the one that lost its id gets a new one, and
// never the other's.
func TestASessionThatLostItsIDGetsNoOther(t *testing.T) {
	follow(t, []step{
		{name: "the one that has its id", in: down(ofClass(claude), has(begun(claude, "c1"))), reason: spec.ReasonStarting, runs: resume, id: "c1"},
		{name: "the one that lost it", in: down(ofClass(claude)), reason: spec.ReasonStarting, runs: fresh, id: "new"},
		{name: "and that learns its id from its client", in: down(ofClass(codex)), reason: spec.ReasonStarting, runs: "codex -C /work"},
	})
}

// A14: whatever a session stays down for, its conversation is there when it is wanted
// again.
func TestASessionThatStaysDownKeepsItsConversation(t *testing.T) {
	of := func(gs ...given) Input {
		return down(append([]given{ofClass(claude), has(begun(claude, "c1"))}, gs...)...)
	}
	follow(t, []step{
		{name: "terminated", in: of(latched(spec.ReasonTerminated)), reason: spec.ReasonTerminated, id: "c1"},
		{name: "terminated, and wanted again", in: of(latched(spec.ReasonTerminated), demanded), reason: spec.ReasonStarting, runs: resume, id: "c1"},
		{name: "being terminated", in: stopping(record.StopTerminated, ofClass(claude), has(begun(claude, "c1")), intends(record.IntentTerminate, 3), stopped(exited(0)), termed(time.Second)), reason: spec.ReasonTerminated, id: "c1", events: []string{"Normal Stopped", "Normal Terminated"}},
		{name: "not recovered", in: of(firstLook, ofSpec(recovery(spec.RecoveryDormant))), reason: spec.ReasonNotRecovered, id: "c1", events: []string{"Normal NotRecovered"}},
		{name: "not recovered, and wanted again", in: of(latched(spec.ReasonNotRecovered), demanded), reason: spec.ReasonStarting, runs: resume, id: "c1"},
		{name: "suspended", in: of(ofSpec(suspended)), reason: spec.ReasonSuspended, id: "c1"},
		{name: "restarted", in: stopping(record.StopRestarting, ofClass(claude), has(begun(claude, "c1")), intends(record.IntentRestart, 3), stopped(exited(0)), termed(time.Second)), reason: spec.ReasonStarting, runs: resume, id: "c1", events: []string{"Normal Stopped"}},
	})
}

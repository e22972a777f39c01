// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/controller/record"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec"
)

// surely answers an outlook with what the input has.
type surely struct{ in Input }

func (s surely) Workspace(*record.Record, *spec.SessionSpec) Workspace { return s.in.Workspace }

func (s surely) Evidence(observe.ConversationRef) (observe.Evidence, string) {
	return s.in.Evidence, s.in.Rival
}

func TestAnEffectIsSaidInWords(t *testing.T) {
	c1 := has(begun(claude, "c1"))
	session := func(gs ...given) Input { return up(append([]given{ofClass(claude), c1}, gs...)...) }
	working := func(in *Input) { in.Sight = observe.Sight{At: now, Activity: spec.ActivityWorking} }
	args := edited(func(s *spec.SessionSpec) { s.Client.Args = []string{"--new"} })
	recreate := edited(strategy(spec.UpdateRecreate))
	for _, r := range []struct {
		name string
		in   Input
		want string
	}{
		{"nothing that a client was started from", session(edited(restartPolicy(spec.RestartNever))), "untouched"},
		{"an idle client is replaced at once", session(args), "restarts now, resumes c1"},
		{"one that works when it is idle", session(args, working), "restarts when idle, resumes c1 (not before it does not work)"},
		{"whatever it does", session(args, working, recreate), "restarts now, resumes c1 (not idle: nothing waits until it does not work)"},
		{"at its next restart", session(args, edited(strategy(spec.UpdateOnRestart))), "at its next restart, resumes c1"},
		{"without conversations there is none", up(edited(otherCommand)), "restarts now"},
		{"another class begins a new one (A10)", session(toClass(codex)), "restarts now, fresh conversation (the session's class is codex now)"},
		{"one that never had a turn is replaced (B7)", session(args, has(begun(claude, "c1"), neverBegun), finds(observe.EvidenceAbsent)), "restarts now, fresh conversation (it never had a turn)"},
		{"one that is gone", session(args, finds(observe.EvidenceAbsent)), "restarts now, fresh conversation (it is what it is (/t/c1))"},
		{"a missing one is held by policy", session(args, edited(holds), finds(observe.EvidenceAbsent)), "blocked (ConversationMissing: its client is ended and no other is started: conversation c1 cannot be resumed: it is what it is (/t/c1). Put the file back, or begin a new conversation with `muxlet resume shop --fresh` (missingPolicy is Hold))"},
		{"one that is not known is looked for where its client runs", session(args, has(begun(claude, "c1"), unplaced), finds(observe.EvidenceUnknown)), "restarts now, resumes c1 (ConversationUnknown: whether it can be resumed is found out where its client runs)"},
		{"a class that is not there leaves the client alone", session(edited(func(s *spec.SessionSpec) { s.ClientClassName = "gone" }), func(in *Input) { in.Class = nil }), `blocked (its client is kept, since no other could be started: there is no client class "gone": declare it, or name another in spec.clientClassName (` + "`muxlet get clientclasses` lists them))"},
		{"a directory that is missing", up(edited(otherCommand), func(in *Input) {
			in.Workspace.Obstacle, in.Workspace.Message = spec.ReasonWorkspaceMissing, "/work does not exist: make it"
		}), "blocked (WorkspaceMissing: its client is ended and no other is started: /work does not exist: make it)"},
		{"a suspension stops", session(edited(suspended)), "stopped (Suspended)"},
		{"its end starts", down(ofClass(claude), c1, ofRecord(func(r *record.Record) { r.Spec.Suspend = true })), "started, resumes c1"},
		{"a removal", session(removed), "removed"},
		{"a removal that leaves the client", session(ofSpec(deletion(spec.DeletionOrphan)), removed), "removed (its client is left running: deletionPolicy is Orphan)"},
		{"a session that rests goes on resting", down(latched(spec.ReasonTerminated), edited(otherCommand)), "untouched (Terminated)"},
		{"a crash loop ends with an edit", down(deaths(9, 0), edited(otherCommand)), "started"},
		{"and goes on without one", down(deaths(9, 0)), "untouched (CrashLoopBackOff)"},
		{"what is not seen is not known", session(args, ofSeen(func(s *Seen) { s.Sight, s.Reason, s.Message = SightUnknown, spec.ReasonTmuxTimeout, "mute" })), "not known (TmuxTimeout: mute)"},
	} {
		t.Run(r.name, func(t *testing.T) {
			before := copyOf(r.in)
			require.Equal(t, r.want, Foresee(r.in, surely{r.in}).String())
			require.Equal(t, before, r.in, "the input was changed")
		})
	}
}

// An edit of the directory leaves the client alone and warns that the conversation
// belongs to the old one. B9
func TestAnEditOfTheDirectoryIsWarnedOf(t *testing.T) {
	in := up(ofClass(claude), has(begun(claude, "c1")), edited(func(s *spec.SessionSpec) { s.Workspace.Directory = "/new" }), func(in *Input) {
		in.Workspace.Wanted = "/new"
	})
	e := Foresee(in, surely{in})
	require.Equal(t, "untouched", e.String())
	require.Contains(t, e.Warning, "conversation c1 belongs to /work and goes on there")
}

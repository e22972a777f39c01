// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/actuate"
	"github.com/muxlet/muxlet/controller/record"
	"github.com/muxlet/muxlet/controller/turn"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec"
)

// prospect is a world that is asked about and not changed.
type prospect struct{ *world }

func (prospect) Workspace(*record.Record, *spec.SessionSpec) Workspace {
	return Workspace{Path: "/work", Wanted: "/work"}
}

func (p prospect) Evidence(ref observe.ConversationRef) (observe.Evidence, string) {
	if p.rival {
		return p.evidence(ref), "other"
	}
	return p.evidence(ref), ""
}

// becomeKind ends what would go wrong from now on: what runs outside of our knowledge has
// ended, and the launcher that is known comes to its end.
func (w *world) becomeKind() {
	w.kind, w.blind, w.probed = true, false, observe.Probed{}
	w.heal()
	for i := range w.sentTurns {
		w.sentTurns[i].Deadline = w.now.Add(time.Hour)
	}
	w.holder, w.unreadable = w.holder && w.disk.Attempt == nil, w.unreadable && w.disk.Attempt == nil
	for id, t := range w.transcripts {
		if pending := w.disk.Attempt; t.class == plain.Name || pending != nil && pending.Resumes == id {
			// Nobody looks for it before its client does, or it was found a moment ago.
			t.there, t.begun = true, true
		}
	}
	for _, b := range w.bodies {
		b.stubborn, b.blank = false, false
		switch {
		case b.engine != nil && b.engine.live == observe.Gone:
			w.end(b, &observe.Exit{})
		case b.mark != nil, b.attempt == "child", b.attempt == "engine":
		case w.disk.Attempt != nil && b.attempt == w.disk.Attempt.ID:
			b.readyAt = w.now
		default:
			w.end(b, &observe.Exit{})
		}
	}
}

// edits makes the documents say something else.
func (w *world) edits(r dice) {
	s := w.desired.Spec.DeepCopy()
	switch r.IntN(8) {
	case 0:
		w.desired.Want = Remove
	case 1:
		s.Suspend = !s.Suspend
	case 2, 3:
		s.Client.Args = []string{"--edited"}
		s.UpdateStrategy.Type = []spec.UpdateStrategyType{spec.UpdateWhenIdle, spec.UpdateRecreate, spec.UpdateOnRestart}[r.IntN(3)]
	case 4:
		s.RestartPolicy, s.Client.StartArgs = spec.RestartAlways, []string{"--policy"}
	default:
		s = r.spec()
	}
	if id := s.Conversation.ID; id != "" {
		w.adoptable[id], w.lost = true, false
	}
	if c := w.disk.Client; s.ClientClassName == arguer.Name || c != nil && c.Launched != nil && c.Launched.ClientClassName == arguer.Name {
		// Each turn is a restart of its own.
		s.InitialPrompt = ""
		for i := range w.sentTurns {
			w.sentTurns[i].Phase = turn.Over
		}
	}
	w.desired.Spec = s
}

// rests lets passes come until nothing happens any more, or the session is gone. It gives
// the last plan, and the reasons on the way.
func (w *world) rests() (last Plan, reasons []string) {
	quiet := 0
	for range 4000 {
		before := w.disk
		last = w.pass(false)
		reasons = append(reasons, last.Verdict.Reason)
		if last.Fate == FateArchive {
			return last, reasons
		}
		if quiet++; last.Action.Kind != actuate.ActionNone || !equalRecords(before, w.disk) || w.disk.Attempt != nil || !w.serverUp {
			quiet = 0
		}
		if quiet == 40 {
			return last, reasons
		}
		w.later(max(last.RequeueAfter, 10*time.Millisecond))
	}
	require.Fail(w.t, "the session never came to rest", last.Verdict)
	return last, reasons
}

// What is said of an edit beforehand is what comes of it: whether the client is
// replaced, when, and with which conversation the next one begins. A session of
// generated worlds is brought anywhere, its documents are edited, and nothing else
// happens.
func TestWhatIsForeseenOfAnEditIsWhatHappens(t *testing.T) {
	met := map[string]int{}
	seedsUntil(t, 200, func(seed uint64) { foreseeIn(t, seed, met) }, func() []string {
		return notMet(met, string(spec.EffectUntouched), string(spec.EffectRestartsWhenIdle), string(spec.EffectRestartsNow), string(spec.EffectAtNextRestart),
			string(spec.EffectStarted), string(spec.EffectStopped), string(spec.EffectBlocked), string(spec.EffectRemoved), "resumed", "fresh")
	})
}

// What runs of some thousand worlds have found: a client that has just ended, of which it is
// not known yet how, or what its last screen says; a start that has told where its
// conversation is; a hand-over that was refused.
func TestWhatIsForeseenOfAClientThatHasJustEnded(t *testing.T) {
	for _, seed := range []uint64{17031039798492360035, 17139189534765573768, 3428944, 45653052, 911351763} {
		foreseeIn(t, seed, map[string]int{})
	}
}

func foreseeIn(t *testing.T, seed uint64, met map[string]int) {
	t.Helper()
	w := newWorld(t, seed)
	for range 10 + w.rand.IntN(120) {
		if w.one(6) {
			w.disturb()
		}
		if w.one(20) {
			w.send("", false)
		}
		w.blind = w.blind && !w.one(3)
		w.later(w.pause(w.pass(w.one(12))))
	}
	w.becomeKind()
	if w.rand.IntN(2) == 0 {
		w.rests()
	}
	w.edits(dice{w.rand})
	in := w.input()
	before := copyOf(in)
	e := Foresee(in, prospect{w})
	require.Equal(t, before, in, "the input was changed")
	met[string(e.Kind)]++
	w.fulfils(e, met)
}

// fulfils requires that e comes true.
func (w *world) fulfils(e spec.Effect, met map[string]int) {
	attempt, lived := w.attempt(), len(w.clients()) > 0 || w.disk.Attempt != nil
	told, executed := "foreseen: "+e.String(), len(w.executed)
	last, reasons := w.rests()
	same := func() {
		if lived || w.attempt() != "" {
			require.Equal(w.t, attempt, w.attempt(), told)
		}
	}
	switch e.Kind {
	case spec.EffectUntouched:
		same()
	case spec.EffectBlocked:
		require.Contains(w.t, []string{attempt, ""}, w.attempt(), told)
		if e.Reason != "" {
			require.Contains(w.t, reasons, e.Reason, told)
		}
	case spec.EffectStopped:
		require.Empty(w.t, w.clients(), told)
		if lived { // else how it ended tells why it stays down
			require.Equal(w.t, e.Reason, last.Verdict.Reason, told)
		}
	case spec.EffectRemoved:
		require.Equal(w.t, FateArchive, last.Fate, told)
	case spec.EffectRestartsNow, spec.EffectStarted:
		w.replaced(e, attempt, executed, met)
	case spec.EffectRestartsWhenIdle:
		w.settlesDown()
		w.follows(e, attempt, executed, reasons, met)
	case spec.EffectAtNextRestart:
		same()
		executed = len(w.executed)
		w.disk, _ = Apply(w.disk, RequestRestart, w.now)
		w.follows(e, attempt, executed, nil, met)
	case spec.EffectUnknown:
		require.Equal(w.t, spec.ReasonDied, e.Reason, "nothing else is unknown here: %s", told)
	case spec.EffectHeld:
		require.Fail(w.t, "nothing is held here", told)
	}
}

// attempt of the client that runs or is on its way; empty for none.
func (w *world) attempt() string {
	live := w.clients()
	switch {
	case len(live) == 1:
		return live[0].attempt
	case w.disk.Attempt != nil:
		return w.disk.Attempt.ID
	case w.disk.Client != nil:
		return w.disk.Client.Attempt
	}
	return ""
}

// settlesDown: what the client works on is done, and what it asks is answered.
func (w *world) settlesDown() {
	w.working = false
	for _, b := range w.bodies {
		b.asks, b.works = false, time.Time{}
	}
	for i := range w.rooms {
		w.rooms[i].Attached = 0
	}
}

// follows requires what comes once what an edit waits for has come.
func (w *world) follows(e spec.Effect, attempt string, executed int, before []string, met map[string]int) {
	_, after := w.rests()
	reasons := slices.Concat(before, after)
	if e.Resumes != "" || e.Fresh != "" || slices.Contains([]string{"", spec.ReasonUsageLimited, spec.ReasonCrashLoopBackOff}, e.Reason) {
		w.replaced(e, attempt, executed, met)
		return
	}
	require.Contains(w.t, reasons, e.Reason, "foreseen: %s", e)
	require.Empty(w.t, w.clients(), "foreseen: %s", e)
}

// replaced requires that another client runs, with the conversation that was foreseen.
func (w *world) replaced(e spec.Effect, attempt string, executed int, met map[string]int) {
	if e.Reason == spec.ReasonConversationUnknown {
		return
	}
	var after []record.Attempt
	for i, a := range w.executed {
		if i >= executed && a.ID != attempt {
			after = append(after, a)
		}
	}
	require.NotEmpty(w.t, after, "no other client was started; foreseen: %s", e)
	require.Equal(w.t, e.Resumes, after[0].Resumes, "foreseen: %s", e)
	if e.Resumes != "" {
		met["resumed"]++
	}
	if e.Fresh != "" {
		met["fresh"]++
	}
}

// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e && !e2eagents

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/muxlet/muxlet/spec"
)

// announced is what diff says of a session if that document were applied: its effect in
// words.
func (w *World) announced(name, document string) string {
	w.Helper()
	a := w.muxlet("diff", "-f", w.note(name+"-next.yaml", document))
	require.Equal(w, 1, a.code, a.text())
	for line := range strings.Lines(a.text()) {
		if effect, ok := strings.CutPrefix(line, "session/"+name+": "); ok {
			require.Contains(w, w.does("apply", "--dry-run", "-f", w.home+"/"+name+"-next.yaml"), "(dry run): "+effect, "a dry run says the same")
			return strings.TrimSuffix(effect, "\n")
		}
	}
	require.Fail(w, "diff says nothing of "+name, a.text())
	return ""
}

// settlesOn applies what was announced.
func (w *World) settlesOn(name string) {
	w.Helper()
	w.does("apply", "-f", w.home+"/"+name+"-next.yaml")
}

// waits is what diff without files says of a session; empty when it says nothing.
func (w *World) waits(name string) string {
	w.Helper()
	for line := range strings.Lines(w.muxlet("diff").out) {
		if effect, ok := strings.CutPrefix(line, "session/"+name+": "); ok {
			return strings.TrimSuffix(effect, "\n")
		}
	}
	return ""
}

// edited puts a variable into the environment of an agent's document.
func edited(document string) string {
	return strings.Replace(document, "    env:\n", "    env:\n    - {name: MOOD, value: new}\n", 1)
}

// Each effect that is announced is compared with what happens then.
func TestWhatDiffAnnouncesForAnAgentHappens(t *testing.T) {
	t.Parallel()
	eachAgent(t, func(t *testing.T, a agent) {
		if a.freshly == "" {
			t.Skip("it has no conversations that muxlet knows")
		}
		w, s := chatting(t, a)
		id := conversation(s)
		text := w.read("s.yaml")

		require.Equal(t, "untouched", w.announced("s", text+"  restartPolicy: OnFailure\n"))
		w.settlesOn("s")
		w.becomes("s", "edited", func(s *spec.Session) bool { return s.Spec.RestartPolicy == spec.RestartOnFailure })
		w.stays(s, time.Second)

		require.Equal(t, "restarts now, resumes "+id, w.announced("s", edited(text)))
		w.settlesOn("s")
		s = w.back(s)
		w.resumed(s, id)
		w.turn("s", "beta", 2, "first of s")
		s = w.kept("s", 2)

		onRestart := text + "  updateStrategy: {type: OnRestart}\n"
		require.Equal(t, "at its next restart, resumes "+id, w.announced("s", onRestart))
		w.settlesOn("s")
		w.becomes("s", "to be updated later", func(s *spec.Session) bool { return reason(s, spec.ConditionUpToDate) == spec.ReasonUpdatePending })
		require.Equal(t, "at its next restart, resumes "+id, w.waits("s"), "what waits is told without files too")
		w.stays(s, time.Second)
		w.does("restart", "s")
		s = w.back(s)
		w.resumed(s, id)
		require.Empty(t, w.waits("s"))

		w.control(`{"mode":"hang"}`)
		w.types("s", "a long one")
		w.becomes("s", "working", func(s *spec.Session) bool { return activity(s).State == spec.ActivityWorking })
		require.Equal(t, "restarts when idle, resumes "+id+" (not before it does not work)", w.announced("s", edited(text)))
		w.settlesOn("s")
		w.stays(s, time.Second)
		w.control("{}")
		s = w.back(s)
		w.resumed(s, id)
		w.turn("s", "gamma", 4, "first of s")
		s = w.kept("s", 4)

		require.Equal(t, "stopped (Suspended)", w.announced("s", text+"  suspend: true\n"))
		w.settlesOn("s")
		w.reaches("s", spec.StatusSuspended)
		require.Equal(t, "started, resumes "+id, w.announced("s", text))
		w.settlesOn("s")
		s = w.back(s)
		w.resumed(s, id)

		require.NoError(t, os.Remove(s.Status.Conversation.Transcript))
		effect := w.announced("s", edited(text))
		require.True(t, strings.HasPrefix(effect, "restarts now, fresh conversation ("), effect)
		w.settlesOn("s")
		s = w.back(s)
		assert.NotEqual(t, id, conversation(s))
		require.NotEmpty(t, s.Status.Conversation.History)
		assert.Equal(t, id, s.Status.Conversation.History[0].ID)
	})
}

// An edit of the directory is warned of beforehand. B9
func TestDiffWarnsThatAConversationStaysInItsDirectory(t *testing.T) {
	t.Parallel()
	eachAgent(t, func(t *testing.T, a agent) {
		if a.freshly == "" {
			t.Skip("it has no conversations that muxlet knows")
		}
		w, s := chatting(t, a)
		other := filepath.Join(w.home, "other")
		require.NoError(t, os.MkdirAll(other, 0o755))
		path := w.note("s-next.yaml", strings.Replace(w.read("s.yaml"), `directory: "`+w.work+`"`, `directory: "`+other+`"`, 1))
		got := w.muxlet("diff", "-f", path)
		assert.Equal(t, 1, got.code)
		assert.Contains(t, got.out, "session/s: untouched\n")
		assert.Contains(t, got.errOut, "Warning: session/s: conversation "+conversation(s)+" belongs to "+w.work+" and goes on there")
		w.settlesOn("s")
		w.becomes("s", "elsewhere", func(s *spec.Session) bool {
			return reason(s, spec.ConditionUpToDate) == spec.ReasonConversationElsewhere
		})
		w.stays(s, time.Second)
	})
}

func TestWhatDiffAnnouncesHappens(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.declare("s", "stay")
	w.start()
	w.runs("s")

	require.Equal(t, "started", w.announced("new", w.document("new", "stay")))
	w.settlesOn("new")
	w.runsAs("new", 1)
	a := w.muxlet("diff", "-f", w.home+"/new-next.yaml")
	assert.Zero(t, a.code, "nothing is different any more")
	assert.Empty(t, a.text())

	require.Equal(t, "restarts now", w.announced("s", w.document("s", "stay longer")))
	a = w.muxlet("diff", "-f", w.home+"/s-next.yaml")
	assert.Contains(t, a.out, "--- session/s (in force)\n+++ session/s (wanted)\n")
	assert.Contains(t, a.out, "\n+    - longer\n")
	w.settlesOn("s")
	w.runsAs("s", 2)

	missing := strings.Replace(w.document("s", "stay"), w.home+"/work", w.home+"/nowhere", 1)
	effect := w.announced("s", missing)
	require.True(t, strings.HasPrefix(effect, "blocked (WorkspaceMissing: its client is ended and no other is started: "), effect)
	w.settlesOn("s")
	w.becomes("s", "blocked", func(s *spec.Session) bool {
		return spec.DisplayStatus(s) == spec.StatusBlocked && reason(s, spec.ConditionReady) == spec.ReasonWorkspaceMissing && pid(s) == 0
	})
	require.Equal(t, "started", w.announced("s", w.document("s", "stay")))
	w.settlesOn("s")
	s := w.runsAs("s", 3)

	unknown := strings.Replace(w.document("s", "stay"), "spec:\n", "spec:\n  clientClassName: nobody\n", 1)
	unknown = strings.Replace(unknown, unknown[strings.Index(unknown, "    command:"):strings.Index(unknown, "    shellMode")], "", 1)
	effect = w.announced("s", unknown)
	require.True(t, strings.HasPrefix(effect, `blocked (its client is kept, since no other could be started: there is no client class "nobody"`), effect)
	w.settlesOn("s")
	w.becomes("s", "edited", func(s *spec.Session) bool { return s.Spec.ClientClassName == "nobody" })
	assert.Equal(t, pid(s), pid(w.get("s")))
}

// What the files say and the clients do not have: removals, held ones, files that are not
// valid.
func TestDiffWithoutFilesTellsWhatIsNotInForce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{"removal": settings{"settle": "4s"}})
	for _, name := range []string{"a", "b", "c", "d"} {
		w.declare(name, "stay")
	}
	w.start()
	for _, name := range []string{"a", "b", "c", "d"} {
		w.runs(name)
	}
	a := w.muxlet("diff")
	assert.Zero(t, a.code, a.text())
	assert.Empty(t, a.text())

	before := pid(w.get("b"))
	w.write("b.yaml", w.read("b.yaml")+"  bogus: 1\n")
	requireRemoved(w, "a.yaml")
	w.waitFor("diff tells of both", func() bool { return w.waits("a") != "" && w.waits("b") != "" })
	assert.True(t, strings.HasPrefix(w.waits("b"), "held (Invalid: "+w.manifests+"/b.yaml:"), w.waits("b"))
	assert.Equal(t, before, pid(w.get("b")))
	if effect := w.waits("a"); effect != "" {
		assert.True(t, strings.HasPrefix(effect, "removed ("), effect)
	}
	w.gone("a")

	w.remove(w.manifests)
	require.NoError(t, os.MkdirAll(w.manifests, 0o755))
	w.waitFor("the removals are held", func() bool { return strings.HasPrefix(w.waits("c"), "held (RemovalHeld: ") })
	assert.Contains(t, w.waits("c"), "muxlet prune --confirm")
	w.runs("c")
}

// Nothing is foretold of what cannot be seen.
func TestDiffDoesNotWaitForAMuteTmux(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.declare("s", "stay")
	w.start()
	w.runs("s")
	server := w.server().pid
	signal(t, server, unix.SIGSTOP)
	t.Cleanup(func() { _ = unix.Kill(server, unix.SIGCONT) })
	a := w.muxlet("diff", "-f", w.note("s-next.yaml", w.document("s", "stay longer")))
	assert.Equal(t, 1, a.code, a.text())
	assert.Contains(t, a.out, "session/s: not known (")
	assert.Less(t, a.took, 5*time.Second)
	signal(t, server, unix.SIGCONT)
}

// Without a daemon it is known what changes in the files, and nothing else.
func TestDiffWithoutADaemonTellsWhatChangesInTheFiles(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.declare("s", "stay")
	a := w.muxlet("diff", "-f", w.note("s-next.yaml", w.document("s", "stay longer")))
	assert.Equal(t, 1, a.code)
	assert.Contains(t, a.out, "--- "+w.manifests+"/s.yaml\n")
	assert.Contains(t, a.out, `"longer"`)
	assert.Contains(t, a.errOut, "What it means for the clients is not known: No muxlet daemon answers on ")
	assert.Equal(t, 2, w.muxlet("diff").code)
}

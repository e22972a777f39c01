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

// hooked runs a test with each agent that has hooks.
func hooked(t *testing.T, test func(*testing.T, agent)) {
	t.Helper()
	eachAgent(t, func(t *testing.T, a agent) {
		if a.freshly == "" {
			t.Skip("it reports nothing")
		}
		test(t, a)
	})
}

// What is reported while no daemon is there is read when one is: the conversation that
// was begun meanwhile is resumed, although its client is dead by then.
func TestReportsWithoutADaemonAreNotLost(t *testing.T) {
	t.Parallel()
	hooked(t, func(t *testing.T, a agent) {
		w, s := chatting(t, a)
		pane := s.Status.Tmux.Pane
		w.kill()
		w.unattended(pane, a.freshly, "beta", "turns=1 first=beta")
		w.waitFor("the turn is on disk", func() bool { return w.transcriptWith("turns=1 first=beta") })
		spool, err := filepath.Glob(w.state + "/reports/*")
		require.NoError(t, err)
		require.NotEmpty(t, spool, "they are on disk")
		signal(t, pid(s), unix.SIGKILL)
		w.start()
		after := w.back(s)
		assert.NotEqual(t, conversation(s), conversation(after))
		w.turn("s", "gamma", 2, "beta")
		require.Len(t, w.get("s").Status.Conversation.History, 1)
		w.waitFor("the spool is empty", func() bool {
			left, err := filepath.Glob(w.state + "/reports/*")
			return err == nil && len(left) == 0
		})
	})
}

// transcriptWith says whether any file of the client's has the text.
func (w *agentWorld) transcriptWith(text string) bool {
	found := false
	_ = filepath.WalkDir(w.config, func(path string, entry os.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && filepath.Ext(path) == ".jsonl" {
			data, err := os.ReadFile(path)
			found = found || err == nil && strings.Contains(string(data), text)
		}
		return nil
	})
	return found
}

// unattended lets a person begin another conversation and have a turn in it, while no
// daemon runs.
func (w *agentWorld) unattended(pane, freshly, prompt, answer string) {
	w.Helper()
	for _, text := range []string{freshly, prompt} {
		out, err := w.tmux("set-buffer", "-b", "unattended", "--", text, ";", "paste-buffer", "-p", "-d", "-b", "unattended", "-t", pane)
		require.NoError(w, err, out)
		w.sees(pane, "the text "+text, func() bool { return strings.Contains(w.screen(pane), text) })
		w.keys(pane, "Enter")
		w.sees(pane, "the text is sent", func() bool { return !w.unsent(w.screen(pane), text) })
	}
	w.sees(pane, answer, func() bool { return strings.Contains(w.screen(pane), answer) })
}

// B4 with a daemon that is killed again and again while the hooks report.
func TestNothingIsLostWhileTheDaemonIsKilledAndReportsArrive(t *testing.T) {
	t.Parallel()
	hooked(t, func(t *testing.T, a agent) {
		w := newAgentWorld(t, a)
		w.start()
		var names []string
		panes := map[string]string{}
		for _, name := range []string{"a", "b", "c"} {
			panes[name] = w.chats(name).Status.Tmux.Pane
			names = append(names, name)
		}
		for range 3 {
			for _, name := range names {
				w.unattended(panes[name], a.freshly, "before in "+name, "turns=1 first=before in "+name)
			}
			w.kill()
			for _, name := range names {
				w.unattended(panes[name], a.freshly, "again in "+name, "turns=1 first=again in "+name)
			}
			w.start()
		}
		ids := map[string]bool{}
		for _, name := range names {
			s := w.becomes(name, "bound to its last conversation", func(s *spec.Session) bool {
				c := s.Status.Conversation
				if c == nil || len(c.History) < 3 || c.Transcript == "" || !isReady(s) {
					return false
				}
				data, err := os.ReadFile(c.Transcript)
				return err == nil && strings.Contains(string(data), "again in "+name)
			})
			ids[conversation(s)] = true
			signal(t, pid(s), unix.SIGKILL)
			w.back(s)
		}
		assert.Len(t, ids, 3, "no conversation is in two sessions")
		for _, name := range names {
			w.turn(name, "the last", 2, "again in "+name)
		}
	})
}

// A repeated id writes nothing to disk.
func TestATurnInTheSameConversationWritesNoRecord(t *testing.T) {
	t.Parallel()
	hooked(t, func(t *testing.T, a agent) {
		w, _ := chatting(t, a)
		rests := func(s *spec.Session) bool { return activity(s).State == spec.ActivityIdle && isReady(s) }
		w.turn("s", "again", 2, "first of s")
		w.kept("s", 2)
		w.becomes("s", "at rest", rests)
		before := w.recordsWritten()
		for n := range 3 {
			w.turn("s", "again", 3+n, "first of s")
		}
		w.kept("s", 5)
		w.becomes("s", "at rest", rests)
		assert.Equal(t, before, w.recordsWritten())
	})
}

// recordsWritten says when each record was written.
func (w *World) recordsWritten() map[string]time.Time {
	w.Helper()
	out := map[string]time.Time{}
	files, err := filepath.Glob(w.state + "/records/*")
	require.NoError(w, err)
	require.NotEmpty(w, files)
	for _, f := range files {
		info, err := os.Stat(f)
		require.NoError(w, err)
		out[filepath.Base(f)] = info.ModTime()
	}
	return out
}

// Records that are damaged beyond repair: never a silent blank start. A person's word
// is the way out.
func TestAgentsWithoutARecordAreBlockedUntilAPersonSaysSo(t *testing.T) {
	t.Parallel()
	eachAgent(t, func(t *testing.T, a agent) {
		w, s := chatting(t, a)
		w.reboot()
		files, err := filepath.Glob(w.state + "/records/*")
		require.NoError(t, err)
		require.NotEmpty(t, files)
		for _, f := range files {
			require.NoError(t, os.WriteFile(f, []byte("\x00\x00 not a record"), 0o600))
		}
		w.start()
		blocked := w.reaches("s", spec.StatusBlocked)
		assert.Equal(t, spec.ReasonRecordQuarantined, reason(blocked, spec.ConditionStalled))
		w.eventually([]string{"describe", "s"}, "--fresh", "conversation.id")
		w.started("s", 1)
		w.employ("s", "conversation: {id: "+conversation(s)+"}")
		w.resumed(w.ready("s"), conversation(s))
		w.turn("s", "beta", 2, "first of s")
	})
}

// A screen that no class knows: the session says so, shows it, and leaves it alone.
func TestAnAgentThatShowsSomethingUnknownIsLeftToAPerson(t *testing.T) {
	t.Parallel()
	eachAgent(t, func(t *testing.T, a agent) {
		if a.class != "gem" {
			t.Skip("its class says five seconds; the others have thirty")
		}
		w := newAgentWorld(t, a)
		w.control(`{"notice":"Something is new.\n\nGo on?"}`)
		w.start()
		w.employ("s")
		s := w.asked("s", spec.ReasonQuestion)
		w.eventually([]string{"describe", "s"}, "Something is new.")
		assert.NotContains(t, w.events("s"), "Something is new.")
		assert.NotContains(t, w.log(), "Something is new.")
		w.unanswered(s, time.Second)
		w.keys(s.Status.Tmux.Pane, "Enter")
		assert.Equal(t, pid(s), pid(w.ready("s")))
		w.turn("s", "alpha", 1, "alpha")
	})
}

// What an agent finds around it, whatever shell the daemon was started from.
func TestAnAgentHasACleanEnvironment(t *testing.T) {
	t.Parallel()
	left := []string{
		"CLAUDECODE", "CLAUDE_CODE_CHILD_SESSION", "CLAUDE_CODE_SESSION_ID", "CLAUDE_CODE_ENTRYPOINT", "AI_AGENT",
		"CODEX_CI", "CODEX_THREAD_ID", "CODEX_SANDBOX_NETWORK_DISABLED", "GEM_PARENT_ID",
	}
	eachAgent(t, func(t *testing.T, a agent) {
		w := newAgentWorld(t, a)
		for _, name := range left {
			w.setenv(name, "1")
		}
		w.setenv("LANG", "C")
		w.start()
		w.chats("s")
		environment := w.started("s", 1).Environment
		for _, name := range left {
			assert.NotContains(t, environment, name)
		}
		assert.Equal(t, "200x50", w.started("s", 1).Size)
		assert.Regexp(t, "^(tmux|screen)", environment["TERM"])
		assert.Regexp(t, "(?i)utf-?8", environment["LC_ALL"]+environment["LC_CTYPE"]+environment["LANG"])
		if a.class == "gem" {
			assert.Equal(t, "of s", environment["GEM_MODE"])
		} else {
			assert.Equal(t, "truecolor", environment["COLORTERM"])
		}
		assert.NotContains(t, strings.Join(w.started("s", 1).Argv, " "), agentKey)
	})
}

// What the class's own profile left is scrubbed too, and what a person has set on
// purpose is not.
func TestWhatAProfileLeavesOfAnotherAgentIsScrubbed(t *testing.T) {
	t.Parallel()
	eachAgent(t, func(t *testing.T, a agent) {
		w := newAgentWorld(t, a)
		w.write(w.home+"/.profile", "export CLAUDE_CODE_CHILD_SESSION=1 GEM_PARENT=1 CLAUDE_CODE_USE_FOUNDRY=0 PATH="+w.dir+"/bin:$PATH\n")
		w.setenv("SHELL", "/bin/sh")
		w.start()
		w.write("s.yaml", strings.Replace(w.agentDocument("s", w.work, nil), "shellMode: None", "shellMode: Login", 1))
		w.ready("s")
		environment := w.started("s", 1).Environment
		if a.class == "gem" {
			assert.NotContains(t, environment, "GEM_PARENT")
			return
		}
		assert.NotContains(t, environment, "CLAUDE_CODE_CHILD_SESSION")
		assert.Contains(t, environment, "CLAUDE_CODE_USE_FOUNDRY")
	})
}

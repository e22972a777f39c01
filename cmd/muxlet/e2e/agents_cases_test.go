// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e && !e2eagents

package e2e

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/muxlet/muxlet/spec"
)

// chatting has a session with one turn, in a world with a daemon.
func chatting(t *testing.T, a agent, lines ...string) (*agentWorld, *spec.Session) {
	t.Helper()
	w := newAgentWorld(t, a)
	w.start()
	return w, w.chats("s", lines...)
}

// chats lets a new session have its first turn.
func (w *agentWorld) chats(name string, lines ...string) *spec.Session {
	w.Helper()
	w.employ(name, lines...)
	w.ready(name)
	w.turn(name, "first of "+name, 1, "first of "+name)
	w.kept(name, 1)
	return w.ready(name)
}

// Two resumes in a row have the same command line: what belongs to a fresh start is
// not in it, and nothing is appended to what was.
func TestEachResumeOfAnAgentHasTheSameCommandLine(t *testing.T) {
	t.Parallel()
	eachAgent(t, func(t *testing.T, a agent) {
		w, s := chatting(t, a)
		id := conversation(s)
		for range 3 {
			signal(t, pid(s), unix.SIGKILL)
			s = w.back(s)
			w.resumed(s, id)
		}
		w.started("s", 4)
		starts := w.entries("s", "start")
		assert.Equal(t, starts[1].Argv, starts[2].Argv)
		assert.Equal(t, starts[1].Argv, starts[3].Argv)
	})
}

// B1: one of two sessions in a directory has lost its conversation; it does not get
// the other's.
func TestAnAgentThatLostItsConversationNeverGetsThatOfItsNeighbour(t *testing.T) {
	t.Parallel()
	eachAgent(t, func(t *testing.T, a agent) {
		w, s := chatting(t, a)
		lost := w.chats("lost")
		w.kill()
		require.NoError(t, os.Remove(lost.Status.Conversation.Transcript))
		signal(t, pid(s), unix.SIGKILL)
		signal(t, pid(lost), unix.SIGKILL)
		w.start()
		w.resumed(w.back(s), conversation(s))
		w.back(lost)
		w.turn("lost", "afresh", 1, "afresh")
		w.turn("s", "second", 2, "first of s")
		argv := strings.Join(w.started("lost", 2).Argv, " ")
		assert.NotContains(t, argv, conversation(s))
		assert.NotContains(t, argv, conversation(lost))
		for _, e := range w.entries("lost", "start") {
			for _, guess := range []string{"--continue", "--last", "latest"} {
				assert.NotContains(t, e.Argv, guess, "B11")
			}
		}
	})
}

// B2: the conversation is in the old config directory, so none is begun under its id
// in the new one; taking the edit back is a way out.
func TestAnAgentWithAnotherConfigDirectoryBeginsNoBlankConversation(t *testing.T) {
	t.Parallel()
	eachAgent(t, func(t *testing.T, a agent) {
		w, s := chatting(t, a, "updateStrategy: {type: Recreate}")
		document := w.read("s.yaml")
		other := w.elsewhere()
		w.write("s.yaml", strings.ReplaceAll(document, w.config, other))
		blocked := w.becomes("s", "blocked", func(s *spec.Session) bool {
			return reason(s, spec.ConditionStalled) == spec.ReasonConversationElsewhere
		})
		assert.Equal(t, spec.StatusBlocked, spec.DisplayStatus(blocked))
		assert.Equal(t, conversation(s), conversation(blocked))
		w.eventually([]string{"describe", "s"}, other, w.config, "--fresh")
		w.started("s", 1)
		w.write("s.yaml", document)
		after := w.back(s)
		w.resumed(after, conversation(s))
		w.turn("s", "beta", 2, "first of s")
	})
}

// B3: a failure of a resume never clears the id, whatever the client says.
func TestAResumeOfAnAgentThatFailsIsTriedAgainWithTheSameId(t *testing.T) {
	t.Parallel()
	texts := map[string]string{
		"claude": "No conversation found with session ID: ", "codex": "ERROR: No saved session found with ID ",
		"gem": "There is no chat with ID ",
	}
	eachAgent(t, func(t *testing.T, a agent) {
		w, s := chatting(t, a)
		id := conversation(s)
		w.control(fmt.Sprintf(`{"exits":[{"code":1,"resume":true,"text":"Error: out of luck"},{"code":1,"resume":true,"text":%q}]}`, texts[a.class]+id))
		signal(t, pid(s), unix.SIGKILL)
		after := w.back(s)
		w.resumed(after, id)
		w.started("s", 4)
		for _, e := range w.entries("s", "start")[1:] {
			assert.Contains(t, e.Argv, id)
		}
		w.turn("s", "beta", 2, "first of s")
		assert.Empty(t, w.get("s").Status.Conversation.History)
		assert.Contains(t, w.events("s"), spec.ReasonResumeFailed)
	})
}

// B8: with hooks refused for ever, the id is learned from what the client holds open,
// a change of it included.
func TestTheIdOfACodexWithoutHooksIsLearned(t *testing.T) {
	t.Parallel()
	eachAgent(t, func(t *testing.T, a agent) {
		if a.class != "codex" {
			t.Skip("only Codex has locks")
		}
		a.class, a.args = "plain", nil
		w := newAgentWorld(t, a)
		require.NoError(t, os.Symlink(w.dir+"/agents/bin/codex", w.dir+"/bin/codex"))
		w.write("plain.yaml", plainCodex)
		w.start()
		s := w.chats("s")
		signal(t, pid(s), unix.SIGKILL)
		s = w.back(s)
		w.turn("s", "beta", 2, "first of s")
		w.types("s", a.freshly)
		w.turn("s", "gamma", 1, "gamma")
		id := w.bound("s", conversation(s))
		s = w.kept("s", 1)
		signal(t, pid(s), unix.SIGKILL)
		w.resumed(w.back(s), id)
		w.turn("s", "delta", 2, "gamma")
	})
}

// plainCodex is Codex without hooks.
const plainCodex = `apiVersion: muxlet.dev/v1alpha1
kind: ClientClass
metadata: {name: plain}
spec:
  start: {command: [codex, --no-daemon, -C, $(WORKSPACE)]}
  resume: {command: [codex, resume, --no-daemon, -C, $(WORKSPACE), $(CONVERSATION_ID)]}
  configDirectory: {env: CODEX_HOME, default: $(HOME)/.codex}
  conversation:
    identity: Reported
    transcript: $(CONFIG_DIRECTORY)/sessions/*/*/*/rollout-*-$(CONVERSATION_ID).jsonl
  reports: CodexHooks
  ready: {pattern: '^  \S.* · [/~]'}
`

// B9: the conversation belongs to the old directory: that is said, and nothing is
// restarted.
func TestAnEditOfAnAgentsDirectoryLeavesItsConversationWhereItIs(t *testing.T) {
	t.Parallel()
	eachAgent(t, func(t *testing.T, a agent) {
		w, s := chatting(t, a, "updateStrategy: {type: Recreate}")
		other := w.home + "/other"
		require.NoError(t, os.Mkdir(other, 0o755))
		w.write("s.yaml", strings.Replace(w.read("s.yaml"), fmt.Sprintf("directory: %q", w.work), fmt.Sprintf("directory: %q", other), 1))
		w.becomes("s", "warned of", func(s *spec.Session) bool {
			return reason(s, spec.ConditionUpToDate) == spec.ReasonConversationElsewhere
		})
		w.stays(s, time.Second)
		w.eventually([]string{"get", "events", "s"}, "Warning", "--fresh")
		signal(t, pid(s), unix.SIGKILL)
		w.resumed(w.back(s), conversation(s))
		assert.Equal(t, w.work, w.started("s", 2).Directory)
		w.turn("s", "beta", 2, "first of s")
	})
}

// B10: the directory is gone and comes back; no edit is needed.
func TestADirectoryThatComesBackBringsTheAgentBack(t *testing.T) {
	t.Parallel()
	eachAgent(t, func(t *testing.T, a agent) {
		w, s := chatting(t, a)
		require.NoError(t, os.Rename(w.work, w.home+"/away"))
		signal(t, pid(s), unix.SIGKILL)
		blocked := w.reaches("s", spec.StatusBlocked)
		assert.Equal(t, spec.ReasonWorkspaceMissing, reason(blocked, spec.ConditionStalled))
		require.NoError(t, os.Rename(w.home+"/away", w.work))
		w.resumed(w.back(s), conversation(s))
		w.turn("s", "beta", 2, "first of s")
	})
}

// B13: a client that ends well after a moment, again and again, is in a crash loop, and
// its conversation is not given up.
func TestAnAgentThatEndsWellAgainAndAgainIsInACrashLoop(t *testing.T) {
	t.Parallel()
	eachAgent(t, func(t *testing.T, a agent) {
		w, s := chatting(t, a)
		w.control(`{"exits":[` + strings.TrimSuffix(strings.Repeat(`{"code":0,"after":"100ms"},`, 10), ",") + `]}`)
		signal(t, pid(s), unix.SIGKILL)
		w.reaches("s", spec.StatusCrashLoopBackOff)
		after := w.back(s)
		assert.EqualValues(t, 12, after.Status.Client.Incarnation)
		assert.GreaterOrEqual(t, int(after.Status.ConsecutiveDeaths), 10)
		w.resumed(after, conversation(s))
		w.turn("s", "beta", 2, "first of s")
	})
}

// A10: another class gets a conversation of its own, never the id of the first; edited
// while no daemon runs, too.
func TestAConversationNeverGoesToAnotherClass(t *testing.T) {
	t.Parallel()
	all := agents(t)
	if len(all) == 0 {
		t.Skip("there is no agent to test with")
	}
	w, s := chatting(t, all[0], "updateStrategy: {type: Recreate}")
	w.kill()
	second := &agentWorld{World: w.World, agent: all[1], config: w.home + "/second", work: w.work}
	require.NoError(t, os.Mkdir(second.config, 0o700))
	require.NoError(t, os.Symlink(w.dir+"/agents/bin/codex", w.dir+"/bin/codex"))
	second.agent.prepare(second, w.work)
	w.write("s.yaml", second.agentDocument("s", w.work, nil, "updateStrategy: {type: Recreate}"))
	w.start()
	second.back(s)
	second.turn("s", "beta", 1, "beta")
	after := second.kept("s", 1)
	last := w.started("s", 2)
	assert.Equal(t, "codex", last.Agent)
	assert.NotContains(t, strings.Join(last.Argv, " "), conversation(s))
	history := after.Status.Conversation.History
	require.NotEmpty(t, history)
	assert.Equal(t, conversation(s), history[len(history)-1].ID)
	assert.Equal(t, spec.ReplacedClassChanged, history[len(history)-1].Reason)
	assert.Contains(t, w.events("s"), "Warning")
}

// A14: an explicit end is kept over a restart of the daemon; what a person asks for
// then comes once, with its history.
func TestATerminatedAgentComesBackOnceWhenItIsAskedFor(t *testing.T) {
	t.Parallel()
	eachAgent(t, func(t *testing.T, a agent) {
		w, s := chatting(t, a)
		w.does("terminate", "s")
		w.kill()
		w.start()
		w.reaches("s", spec.StatusTerminated)
		w.does("resume", "s")
		w.resumed(w.back(s), conversation(s))
		w.turn("s", "beta", 2, "first of s")
		w.started("s", 2)
	})
}

// P1: what needs another client waits until the present one is idle.
func TestAnEditWaitsWhileAnAgentWorks(t *testing.T) {
	t.Parallel()
	eachAgent(t, func(t *testing.T, a agent) {
		w, s := chatting(t, a)
		w.control(`{"mode":"hang"}`)
		w.types("s", "a long one")
		w.becomes("s", "working", func(s *spec.Session) bool { return activity(s).State == spec.ActivityWorking })
		w.write("s.yaml", strings.Replace(w.read("s.yaml"), "    env:\n", "    env:\n    - {name: MOOD, value: new}\n", 1))
		w.becomes("s", "to be updated later", func(s *spec.Session) bool {
			return reason(s, spec.ConditionUpToDate) == spec.ReasonUpdatePending
		})
		w.stays(s, 2*time.Second)
		w.control("{}")
		after := w.back(s)
		w.resumed(after, conversation(s))
		assert.Equal(t, "new", w.started("s", 2).Environment["MOOD"])
		w.turn("s", "beta", 3, "first of s")
	})
}

// C6: the pane's process is a wrapper that lives on, while the client that it has
// started is dead.
func TestAWrapperWithoutItsClientIsNotTakenForTheAgent(t *testing.T) {
	t.Parallel()
	codexOnly(t, func(t *testing.T, a agent) {
		w, before, engine := wrapped(t, a)
		w.control(`{"wrapperStays":true}`)
		signal(t, engine.pid, unix.SIGKILL)
		w.becomes("s", "not ready, with the reason", func(s *spec.Session) bool {
			return reason(s, spec.ConditionReady) == spec.ReasonEngineGone && pid(s) == pid(before)
		})
		after := w.back(before)
		w.resumed(after, conversation(before))
		w.turn("s", "beta", 2, "alpha")
		last := w.kept("s", 2)
		assert.Equal(t, before.Status.Client.Incarnation+1, last.Status.Client.Incarnation)
		assert.EqualValues(t, 1, last.Status.ConsecutiveDeaths)
		assert.Equal(t, spec.ReasonEngineGone, last.Status.Client.LastTermination.Reason)
		assert.Contains(t, w.events("s"), spec.ReasonEngineGone)
	})
}

// C6: an engine that ends while no daemon looks is found to be gone by the next one.
func TestAWrapperThatLostItsClientWithoutADaemonIsBroughtBack(t *testing.T) {
	t.Parallel()
	codexOnly(t, func(t *testing.T, a agent) {
		w, before, engine := wrapped(t, a)
		w.control(`{"wrapperStays":true}`)
		w.kill()
		signal(t, engine.pid, unix.SIGKILL)
		w.start()
		w.resumed(w.back(before), conversation(before))
		w.turn("s", "beta", 2, "alpha")
	})
}

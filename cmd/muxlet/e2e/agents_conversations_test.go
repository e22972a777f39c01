// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/muxlet/muxlet/spec"
)

// B6: what a person goes over to in the client is what is resumed from then on.
func TestAnAgentIsResumedInTheConversationThatAPersonWentOverTo(t *testing.T) {
	t.Parallel()
	eachAgent(t, func(t *testing.T, a agent) {
		for _, typed := range []string{a.freshly, a.forks} {
			if typed == "" {
				t.Skip("it has one conversation for all its life")
			}
			t.Run(typed, func(t *testing.T) {
				t.Parallel()
				w := newAgentWorld(t, a)
				w.start()
				w.employ("s")
				w.ready("s")
				w.turn("s", "alpha", 1, "alpha")
				old := conversation(w.kept("s", 1))
				pane := w.pane("s")
				w.types("s", typed)
				turns, first := 1, "omega"
				if typed == a.forks {
					turns, first = 2, "alpha"
				}
				// Codex tells the other conversation at its first turn; the stand-in says
				// nothing of a fork.
				began := time.Now()
				w.sees("s", "what was typed done", func() bool {
					if typed == a.forks {
						return regexp.MustCompile(`Fork created|Branched session`).MatchString(w.screen(pane)) || time.Since(began) > 3*time.Second
					}
					return !strings.Contains(w.screen(pane), "first=alpha")
				})
				w.turn("s", "omega", turns, first)
				w.bound("s", old)
				before := w.kept("s", turns)
				id := conversation(before)
				require.NotEqual(t, old, id)
				require.Len(t, before.Status.Conversation.History, 1)
				assert.Equal(t, old, before.Status.Conversation.History[0].ID)
				assert.Contains(t, []string{spec.ReplacedCleared, spec.ReplacedForked, spec.ReplacedReported}, before.Status.Conversation.History[0].Reason)
				assert.Contains(t, w.events("s"), spec.ReasonConversationChanged)
				signal(t, pid(before), unix.SIGKILL)
				after := w.back(before)
				w.resumed(after, id)
				w.turn("s", "next", turns+1, first)
				last := w.kept("s", turns+1)
				assert.Equal(t, id, conversation(last))
				assert.Len(t, last.Status.Conversation.History, 1)
			})
		}
	})
}

// transcriptDamage is what may happen to a transcript while no client runs.
type transcriptDamage struct {
	name   string
	damage func(path string) error
	// resumable says that the client goes on with it.
	resumable bool
}

var transcriptDamages = []transcriptDamage{
	{name: "deleted", damage: os.Remove},
	{name: "emptied", damage: func(path string) error { return os.Truncate(path, 0) }},
	{name: "cut", resumable: true, damage: func(path string) error {
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		return os.Truncate(path, info.Size()-5)
	}},
}

// stopped has one turn, and no client any more.
func (w *agentWorld) stopped(name string, lines ...string) *spec.Session {
	w.Helper()
	w.start()
	w.employ(name, lines...)
	w.ready(name)
	w.turn(name, "alpha", 1, "alpha")
	s := w.kept(name, 1)
	w.does("suspend", name)
	w.reaches(name, spec.StatusSuspended)
	return s
}

func TestWhatHappenedToATranscriptDecidesHowAnAgentComesBack(t *testing.T) {
	t.Parallel()
	eachAgent(t, func(t *testing.T, a agent) {
		for _, d := range transcriptDamages {
			t.Run(d.name, func(t *testing.T) {
				t.Parallel()
				w := newAgentWorld(t, a)
				before := w.stopped("s")
				require.NoError(t, d.damage(before.Status.Conversation.Transcript))
				// It waits for the client, and tells when that ends at once.
				if a := w.muxlet("resume", "s"); !w.agent.frail {
					require.Equal(t, 0, a.code, a.text())
				}
				after := w.back(before)
				if d.resumable && !a.frail {
					w.turn("s", "beta", 2, "alpha")
					assert.Equal(t, conversation(before), conversation(w.get("s")))
					return
				}
				w.bound("s", conversation(before))
				assert.Contains(t, w.events("s"), spec.ReasonFreshStart)
				w.stays(after, 2*time.Second)
				w.turn("s", "beta", 1, "beta")
				history := w.get("s").Status.Conversation.History
				require.Len(t, history, 1)
				assert.Equal(t, conversation(before), history[0].ID)
				assert.Equal(t, spec.ReplacedMissing, history[0].Reason)
			})
		}
	})
}

func TestAnAgentIsHeldWhileItsTranscriptIsMissing(t *testing.T) {
	t.Parallel()
	eachAgent(t, func(t *testing.T, a agent) {
		w := newAgentWorld(t, a)
		before := w.stopped("s", "conversation: {missingPolicy: Hold}")
		path := before.Status.Conversation.Transcript
		require.NoError(t, os.Rename(path, w.dir+"/kept"))
		w.muxlet("resume", "s")
		s := w.becomes("s", "blocked", func(s *spec.Session) bool {
			return reason(s, spec.ConditionReady) == spec.ReasonConversationMissing
		})
		assert.Equal(t, spec.StatusBlocked, spec.DisplayStatus(s))
		w.eventually([]string{"describe", "s"}, conversation(before), "resume s --fresh")
		w.stays(s, 2*time.Second)
		require.NoError(t, os.Rename(w.dir+"/kept", path))
		w.back(before)
		w.turn("s", "beta", 2, "alpha")
		assert.Equal(t, conversation(before), conversation(w.get("s")))
	})
}

func TestAPersonMayGiveUpAnAgentsMissingConversation(t *testing.T) {
	t.Parallel()
	eachAgent(t, func(t *testing.T, a agent) {
		w := newAgentWorld(t, a)
		before := w.stopped("s", "conversation: {missingPolicy: Hold}")
		require.NoError(t, os.Remove(before.Status.Conversation.Transcript))
		w.muxlet("resume", "s")
		w.becomes("s", "blocked", func(s *spec.Session) bool {
			return reason(s, spec.ConditionReady) == spec.ReasonConversationMissing
		})
		w.does("resume", "s", "--fresh")
		w.back(before)
		w.turn("s", "beta", 1, "beta")
		assert.NotEqual(t, conversation(before), conversation(w.get("s")))
		assert.Contains(t, w.does("get", "s", "-o", "yaml"), conversation(before), "it is in the history")
	})
}

// The nested one has the hooks, the environment and the directory of the first.
func TestANestedAgentChangesNothing(t *testing.T) {
	t.Parallel()
	eachAgent(t, func(t *testing.T, a agent) {
		if a.nested == nil {
			t.Skip("it reports nothing, whoever has started it")
		}
		w := newAgentWorld(t, a)
		w.start()
		w.write("s.yaml", w.agentDocument("s", w.work, a.nestedArgs))
		w.ready("s")
		w.turn("s", "alpha", 1, "alpha")
		before := w.kept("s", 1)
		output := w.dir + "/nested"
		w.model.behaves(control{Mode: "tool", Count: 1, Command: "cd " + w.work + " && " + a.nested(w) + " >" + output + " 2>&1; echo over >>" + output})
		w.turn("s", "beta", 2, "alpha")
		w.model.behaves(control{Mode: "ok"})
		text := w.read(output)
		require.Contains(t, text, "turns=1 first=nested", "the nested agent has worked")
		after := w.kept("s", 2)
		assert.Equal(t, conversation(before), conversation(after))
		assert.Empty(t, after.Status.Conversation.History)
		assert.NotContains(t, w.events("s"), spec.ReasonConversationChanged)
		signal(t, pid(after), unix.SIGKILL)
		w.resumed(w.back(after), conversation(before))
	})
}

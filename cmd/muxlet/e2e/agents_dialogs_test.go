// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/spec"
)

// asked waits until a person must answer that question, and returns the session.
func (w *agentWorld) asked(name, why string) *spec.Session {
	w.Helper()
	s := w.becomes(name, "asking ("+why+")", func(s *spec.Session) bool { return isTrue(s, spec.ConditionInputRequired) })
	require.Equal(w, why, reason(s, spec.ConditionInputRequired))
	return s
}

// unanswered requires that nothing is typed into a question, and that its client
// lives, for a while.
func (w *agentWorld) unanswered(s *spec.Session, during time.Duration) {
	w.Helper()
	// Above the question a client's signs of life move.
	look := func() string {
		screen := w.screen(s.Status.Tmux.Pane)
		return screen[max(0, strings.LastIndex(screen, "────")):]
	}
	before, end := look(), time.Now().Add(during)
	w.sees(s.Name, "the question, left alone", func() bool {
		require.Equal(w, before, look())
		require.Equal(w, pid(s), pid(w.get(s.Name)))
		return time.Now().After(end)
	})
}

// F5.
func TestAnAgentThatAsksForTrustIsLeftAloneUntilAPersonAnswers(t *testing.T) {
	t.Parallel()
	eachAgent(t, func(t *testing.T, a agent) {
		w := newAgentWorld(t, a)
		w.start()
		directory := filepath.Join(w.home, "strange")
		require.NoError(t, os.Mkdir(directory, 0o755))
		a.strange(w, directory)
		w.write("s.yaml", w.agentDocument("s", directory, nil))
		s := w.asked("s", spec.ReasonTrustRequired)
		assert.Equal(t, spec.ReasonTrustRequired, reason(s, spec.ConditionReady))
		assert.False(t, isTrue(s, spec.ConditionReady))
		assert.Contains(t, strings.ToLower(w.does("describe", "s")), "trust this folder")
		w.unanswered(s, 3*time.Second)
		for _, key := range a.trusting {
			w.keys(s.Status.Tmux.Pane, key)
		}
		after := w.ready("s")
		assert.Equal(t, pid(s), pid(after))
		assert.False(t, isTrue(after, spec.ConditionInputRequired))
		w.turn("s", "alpha", 1, "alpha")
	})
}

func TestAnAgentThatAsksForAPermissionWaitsForAPerson(t *testing.T) {
	t.Parallel()
	eachAgent(t, func(t *testing.T, a agent) {
		w := newAgentWorld(t, a)
		w.start()
		w.write("s.yaml", w.agentDocument("s", w.work, a.asks))
		w.ready("s")
		made := filepath.Join(w.work, "made")
		w.model.behaves(control{Mode: "tool", Command: "touch " + made, Escalate: true, Count: 1})
		w.types("s", "alpha")
		s := w.asked("s", spec.ReasonPermissionRequired)
		assert.Equal(t, spec.ActivityAwaitingInput, activity(s).State)
		w.unanswered(s, 2*time.Second)
		assert.NoFileExists(t, made)
		w.model.behaves(control{Mode: "ok"})
		w.keys(s.Status.Tmux.Pane, "Enter")
		w.becomes("s", "idle", func(s *spec.Session) bool {
			return activity(s).State == spec.ActivityIdle && !isTrue(s, spec.ConditionInputRequired)
		})
		assert.FileExists(t, made)
	})
}

// Codex asks once for each of its folders whether the hooks are trusted.
func TestAnAgentAsksOnceAboutItsHooks(t *testing.T) {
	t.Parallel()
	eachAgent(t, func(t *testing.T, a agent) {
		if a.class != "codex" {
			t.Skip("only Codex asks")
		}
		a.args = nil
		w := newAgentWorld(t, a)
		w.start()
		w.employ("s")
		s := w.asked("s", spec.ReasonHookTrustRequired)
		w.unanswered(s, 2*time.Second)
		// Trust all and continue.
		w.keys(s.Status.Tmux.Pane, "Down")
		w.keys(s.Status.Tmux.Pane, "Enter")
		w.ready("s")
		w.turn("s", "alpha", 1, "alpha")
		before := w.kept("s", 1)
		w.does("restart", "s")
		w.back(before)
		w.turn("s", "beta", 2, "alpha")
		w.employ("other")
		w.ready("other")
	})
}

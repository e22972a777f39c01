// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"fmt"
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

// sends a turn through a pipe, waits until it is delivered and its answer is shown, and
// returns its name.
func (w *agentWorld) sends(session, prompt string, number int, first string) string {
	w.Helper()
	sent := w.piped(prompt, "send", session, "--timeout", patience.String(), "-o", "name")
	defer func() {
		if w.Failed() {
			w.Logf("The screen of %s:\n%s", session, w.screen(w.pane(session)))
		}
	}()
	require.Equal(w, 0, sent.code, sent.text())
	w.sees(session, fmt.Sprintf("the answer turns=%d first=%s", number, first), func() bool {
		return strings.Contains(w.screen(w.pane(session)), fmt.Sprintf("turns=%d first=%s\n", number, first))
	})
	_, turn, _ := strings.Cut(strings.TrimSpace(sent.out), "/")
	return turn
}

// completes waits until the turn is over and was delivered. A client without hooks may
// answer before anybody looks, and a hook of a client may be too late on a machine that
// has much to do: then it is not known that it went well.
func (w *agentWorld) completes(turn string) (well bool) {
	w.Helper()
	var phase spec.TurnPhase
	w.waitFor("turn "+turn+" is over", func() bool {
		t, err := w.api.Turn(w.Context(), turn)
		if err != nil || t.Status.FinishedAt == nil {
			return false
		}
		phase = spec.DisplayTurnStatus(t)
		return true
	})
	require.Contains(w, []spec.TurnPhase{spec.TurnCompleted, spec.TurnDelivered}, phase, turn)
	return phase == spec.TurnCompleted
}

func isThere(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// A14.
func TestATurnWakesAnAgentWithItsHistory(t *testing.T) {
	t.Parallel()
	eachAgent(t, func(t *testing.T, a agent) {
		w := newAgentWorld(t, a)
		w.start()
		w.employ("s", "provisioningPolicy: OnDemand")
		w.reaches("s", spec.StatusDormant)
		assert.Empty(t, w.clients("s"))
		w.completes(w.sends("s", "alpha", 1, "alpha"))
		before := w.kept("s", 1)
		signal(t, pid(before), unix.SIGKILL)
		w.reaches("s", spec.StatusDormant)
		w.completes(w.sends("s", "beta", 2, "alpha"))
		before = w.kept("s", 2)
		w.does("terminate", "s")
		w.reaches("s", spec.StatusTerminated)
		w.completes(w.sends("s", "gamma", 3, "alpha"))
		after := w.kept("s", 3)
		assert.Equal(t, conversation(before), conversation(after))
		assert.EqualValues(t, 3, after.Status.Client.Incarnation)
	})
}

// F1, F3: what is longer than a few lines stands in the composer as a label alone.
func TestAPromptOfManyLinesIsOneTurnOfAnAgent(t *testing.T) {
	t.Parallel()
	eachAgent(t, func(t *testing.T, a agent) {
		w := newAgentWorld(t, a)
		w.start()
		w.employ("s")
		w.ready("s")
		well := 0
		for i, prompt := range []string{
			"alpha", "one\ntwo\tthree\n\n  four\n", strings.Repeat("a line of many\n", 90),
			strings.Repeat("0123456789abcdef grüße 🎉 e\u0301\n", 1000), `in C:\shop\`, "omega",
		} {
			if w.completes(w.sends("s", prompt, i+1, "alpha")) {
				well++
			}
		}
		assert.True(t, well > 0 || a.frail, "its hooks tell that turns went well")
		assert.EqualValues(t, 1, w.get("s").Status.Client.Incarnation)
	})
}

// F5.
func TestATurnWaitsUntilAnAgentsQuestionIsAnswered(t *testing.T) {
	t.Parallel()
	eachAgent(t, func(t *testing.T, a agent) {
		w := newAgentWorld(t, a)
		w.start()
		directory := filepath.Join(w.home, "strange")
		require.NoError(t, os.Mkdir(directory, 0o755))
		a.strange(w, directory)
		w.write("s.yaml", w.agentDocument("s", directory, a.asks, "provisioningPolicy: OnDemand"))
		w.reaches("s", spec.StatusDormant)
		w.does("send", "s", "1", "--wait", "none", "--timeout", "10m")
		s := w.asked("s", spec.ReasonTrustRequired)
		w.unanswered(s, 3*time.Second)
		w.eventually([]string{"get", "turns"}, "s-1", "Pending", spec.ReasonTrustRequired)
		for _, key := range a.trusting {
			w.keys(s.Status.Tmux.Pane, key)
		}
		w.completes("s-1")

		made := filepath.Join(directory, "made")
		w.model.behaves(control{Mode: "tool", Command: "touch " + made, Escalate: true, Count: 1})
		w.does("send", "s", "use it")
		s = w.asked("s", spec.ReasonPermissionRequired)
		w.model.behaves(control{Mode: "ok"})
		w.does("send", "s", "1", "--wait", "none", "--timeout", "10m")
		w.unanswered(s, 3*time.Second)
		assert.NoFileExists(t, made)
		w.keys(s.Status.Tmux.Pane, "Enter")
		w.completes("s-2")
		w.sees("s", "the tool was used", func() bool { return isThere(made) })
		w.completes("s-3")
		assert.Equal(t, pid(s), pid(w.get("s")))
	})
}

func TestAnInitialPromptIsTheFirstTurnOfEachConversation(t *testing.T) {
	t.Parallel()
	eachAgent(t, func(t *testing.T, a agent) {
		w := newAgentWorld(t, a)
		w.start()
		w.employ("s", "initialPrompt: alpha")
		w.ready("s")
		w.sees("s", "the answer to it", func() bool { return strings.Contains(w.screen(w.pane("s")), "turns=1 first=alpha\n") })
		before := w.kept("s", 1)
		signal(t, pid(before), unix.SIGKILL)
		w.back(before)
		w.completes(w.sends("s", "beta", 2, "alpha"))
		before = w.kept("s", 2)
		w.kill()
		w.start()
		w.completes(w.sends("s", "gamma", 3, "alpha"))
		w.down("s", 3)
		w.does("resume", "s", "--fresh")
		w.back(before)
		w.sees("s", "the answer of another conversation", func() bool { return strings.Contains(w.screen(w.pane("s")), "turns=1 first=alpha\n") })
		w.completes(w.sends("s", "delta", 2, "alpha"))
	})
}

// obstacle to the start of a client.
type obstacle struct {
	name, reason string
	set          func(w *agentWorld)
	lift         func(w *agentWorld)
}

func away(what func(w *agentWorld) string) (takes, returns func(w *agentWorld)) {
	return func(w *agentWorld) { require.NoError(w, os.Rename(what(w), what(w)+".away")) },
		func(w *agentWorld) { require.NoError(w, os.Rename(what(w)+".away", what(w))) }
}

func obstacles() []obstacle {
	noCommand, command := away(func(w *agentWorld) string { return filepath.Join(w.dir, "bin", w.agent.class) })
	noDirectory, directory := away(func(w *agentWorld) string { return w.work })
	return []obstacle{
		{"its command is not there", spec.ReasonCommandNotFound, noCommand, command},
		{"its directory is not there", spec.ReasonWorkspaceMissing, noDirectory, directory},
		{
			"tmux does not answer", "TmuxUnavailable",
			func(w *agentWorld) { signal(w, w.server().pid, unix.SIGSTOP) },
			func(w *agentWorld) {
				signal(w, w.server().pid, unix.SIGCONT)
				w.reaches("s", spec.StatusTerminated)
			},
		},
	}
}

// A14: whatever was restarted meanwhile, a turn brings a client back that was
// terminated, with its history; where that cannot be, it says so soon, and can be sent
// again.
func TestTerminatedClientIsReprovisionedAfterDaemonRestart(t *testing.T) {
	t.Parallel()
	for _, a := range agents(t) {
		name := a.class
		if name == "gem" {
			name = "declared"
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newAgentWorld(t, a)
			w.start()
			w.employ("s")
			w.ready("s")
			w.completes(w.sends("s", "alpha", 1, "alpha"))
			first := w.kept("s", 1)

			w.down("s", 1)
			w.kill()
			w.start()
			w.reaches("s", spec.StatusTerminated)
			w.completes(w.sends("s", "beta", 2, "alpha"))

			w.down("s", 2)
			w.kill()
			signal(w, w.server().pid, unix.SIGKILL)
			w.waitFor("nothing is left running", func() bool { return len(w.processes()) == w.standing() })
			w.start()
			w.reaches("s", spec.StatusTerminated)
			w.completes(w.sends("s", "gamma", 3, "alpha"))

			for i, o := range obstacles() {
				w.down("s", 3+i)
				o.set(w)
				refused := w.muxlet("send", "s", "in vain", "-o", "json")
				o.lift(w)
				assert.Contains(t, []int{4, 6}, refused.code, "%s: %s", o.name, refused.text())
				assert.Less(t, refused.took, 5*time.Second, o.name)
				assert.Contains(t, refused.errOut, o.reason, o.name)
				w.completes(w.sends("s", "once more", 4+i, "alpha"))
			}
			last := w.kept("s", 3+len(obstacles()))
			assert.Equal(t, conversation(first), conversation(last))
			assert.Empty(t, last.Status.Conversation.History)
			assert.NotContains(t, w.log(), "once more", "no word of a prompt is logged")
		})
	}
}

// down terminates the client once its last answer is kept.
func (w *agentWorld) down(name string, number int) {
	w.Helper()
	w.kept(name, number)
	w.does("terminate", name)
	w.reaches(name, spec.StatusTerminated)
}

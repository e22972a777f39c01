// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muxlet/muxlet/spec"
)

// piped runs a verb with a standard input that is a pipe.
func (w *World) piped(stdin string, args ...string) answer {
	w.Helper()
	cmd := exec.CommandContext(w.Context(), binary, args...)
	var out, errOut bytes.Buffer
	cmd.Env, cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = w.env, w.home, strings.NewReader(stdin), &out, &errOut
	began := time.Now()
	_ = cmd.Run()
	return answer{out: out.String(), errOut: errOut.String(), code: cmd.ProcessState.ExitCode(), took: time.Since(began)}
}

// code waits for the end of the command by itself.
func (tm *terminal) code() int {
	tm.w.Helper()
	tm.w.waitFor("the command is over", func() bool {
		select {
		case <-tm.over:
			return true
		default:
			return false
		}
	})
	return tm.cmd.ProcessState.ExitCode()
}

// F1: the session has no client, and nobody needs to know that.
func TestSendWakesASessionOnDemandAndTellsAPersonHowFarItIs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.receivers()
	w.receiver("shop", "provisioningPolicy: OnDemand", slowly(time.Second))
	w.start()
	w.reaches("shop", spec.StatusDormant)
	assert.Empty(t, w.family("shop"))

	screen := w.open("send", "shop", "mend the tests", "--wait", "completed")
	screen.shows("turn/shop-1: waiting until the client is ready")
	screen.shows("turn/shop-1: delivered; the client works on it")
	screen.shows("turn/shop-1 completed by session \"shop\"")
	assert.Equal(t, 0, screen.code())
	assert.Equal(t, []string{"mend the tests"}, w.received("shop"))

	again := w.piped("", "send", "shop", "and again")
	assert.Equal(t, "turn/shop-2 delivered to session \"shop\"\n", again.text(), "nothing else where no person looks")
	assert.Equal(t, []string{"mend the tests", "and again"}, w.received("shop"))
	assert.EqualValues(t, 1, w.get("shop").Status.Client.Incarnation)
}

func TestAPromptOfAMegabyteComesThroughAPipeByteByByte(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.receivers()
	w.receiver("shop")
	w.start()
	w.runs("shop")
	line := "it's \"quoted\"; \t $(not run) `nor this` \\n #{no format} %1 🛒 é <&> \x20\n"
	prompt := strings.Repeat(line, spec.MaxPromptBytes/len(line))
	prompt += strings.Repeat("x", spec.MaxPromptBytes-len(prompt))
	sent := w.piped(prompt+"\n\n", "send", "shop", "-o", "json")
	require.Equal(t, 0, sent.code, sent.errOut)
	var turn spec.Turn
	require.NoError(t, json.Unmarshal([]byte(sent.out), &turn))
	assert.EqualValues(t, spec.MaxPromptBytes, turn.Status.PromptBytes)
	assert.Equal(t, spec.TurnDelivered, firstPhase(&turn))
	got := w.received("shop")
	require.Len(t, got, 1)
	assert.Equal(t, sha256.Sum256([]byte(prompt)), sha256.Sum256([]byte(got[0])), "the client has other bytes: %d for %d", len(got[0]), len(prompt))
	assert.Equal(t, prompt, w.does("get", "turn", "shop-1", "-o", "jsonpath={.spec.prompt}"))
	assert.Equal(t, 1, w.piped(prompt+"y", "send", "shop").code, "more is refused")
	assert.NotContains(t, w.log(), "not run", "no word of it is logged")
}

// firstPhase is Delivered for a turn that was over right after it.
func firstPhase(t *spec.Turn) spec.TurnPhase {
	if phase := spec.DisplayTurnStatus(t); phase != spec.TurnCompleted {
		return phase
	}
	return spec.TurnDelivered
}

// DESIGN 10.
func TestEachEndOfSendHasItsExitCode(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.receivers()
	w.receiver("ready")
	w.receiver("down", "suspend: true")
	w.receiver("never", slowly(time.Hour))
	w.receiver("lost", "provisioningPolicy: OnDemand")
	w.write("lost.yaml", strings.Replace(w.read("lost.yaml"), w.home+"/work", w.home+"/nowhere", 1))
	w.write("missing.yaml", document("missing", `["muxlet-no-such-program"]`, w.home+"/work", "provisioningPolicy: OnDemand"))
	w.start()
	w.runs("ready")
	w.reaches("missing", spec.StatusDormant)
	for _, r := range []struct {
		args   []string
		code   int
		reason string
		says   string
	}{
		{[]string{"ready", "x"}, 0, "", ""},
		{[]string{"ready", "a\rb"}, 1, "Invalid", "convert the line ends"},
		{[]string{"ready", "x", "--wait", "read"}, 2, "BadRequest", "--wait"},
		{[]string{"nobody", "x"}, 3, "NotFound", `session \"nobody\" not found`},
		{[]string{"down", "x"}, 4, "Suspended", "muxlet resume down"},
		{[]string{"lost", "x"}, 4, "WorkspaceMissing", w.home + "/nowhere"},
		{[]string{"never", "x", "--timeout", "1s"}, 5, "DeadlineExceeded", "never-1"},
		{[]string{"missing", "x"}, 6, "ProvisioningFailed", "muxlet-no-such-program"},
	} {
		a := w.muxlet(append([]string{"send", "-o", "json"}, r.args...)...)
		require.Equal(t, r.code, a.code, "%v: %s", r.args, a.text())
		if r.code == 0 {
			continue
		}
		var status metav1.Status
		require.NoError(t, json.Unmarshal([]byte(a.errOut), &status), a.errOut)
		assert.EqualValues(t, r.reason, status.Reason, r.args)
		assert.Contains(t, a.errOut, r.says, r.args)
		assert.Empty(t, a.out, r.args)
		assert.Less(t, a.took, 10*time.Second, "%v: what is known is told", r.args)
	}
	several := w.muxlet("send", "-l", "kind=receiver", "y", "--timeout", "5s")
	assert.Equal(t, 5, several.code, "the worst of them")
	assert.Equal(t, "turn/ready-2 delivered to session \"ready\"\n", several.out)
	assert.Equal(t, 3, strings.Count(several.errOut, "Error: "), several.errOut)
	assert.Equal(t, []string{"x", "y"}, w.received("ready"))
}

func TestAWaitingTurnIsTakenBackAndAHandedOneIsNot(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.receivers()
	w.receiver("shop")
	w.start()
	w.runs("shop")
	w.does("send", "shop", "hold this")
	screen := w.open("send", "shop", "never mind")
	screen.shows("turn/shop-2: ")
	waiting := w.eventually([]string{"get", "turns", "--session", "shop"}, "shop-2   shop      Pending")
	assert.Contains(t, waiting, "shop-1   shop      Delivered   InProgress")
	assert.Equal(t, "turn/shop-2 cancelled\n", w.does("cancel", "shop-2"))
	screen.shows("turn \"shop-2\" to session \"shop\" was cancelled: it was not handed over.")
	assert.Equal(t, 1, screen.code())
	assert.Equal(t, "turn/shop-2 cancelled\n", w.does("cancel", "turn/shop-2"))
	assert.Contains(t, w.refuses(4, "cancel", "shop-1"), "handed over")
	assert.Equal(t, 4, w.muxlet("delete", "turn", "shop-1").code)
	w.release()
	w.turnIs("shop-1", spec.TurnCompleted)
	assert.Equal(t, []string{"hold this"}, w.received("shop"))
	assert.Equal(t, "turn/shop-1 deleted\nturn/shop-2 deleted\n", w.does("delete", "turn", "shop-1", "shop-2"))
	assert.Equal(t, 3, w.muxlet("describe", "turn", "shop-1").code)
	assert.Contains(t, w.muxlet("get", "turns").errOut, "No turns found")
}

func TestAnInterruptOfSendLeavesTheTurn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.receivers()
	w.receiver("shop")
	w.start()
	w.runs("shop")
	w.does("send", "shop", "hold this")
	screen := w.open("send", "shop", "later")
	screen.shows("turn/shop-2: ")
	screen.types("\x03")
	screen.shows("it goes on: \"muxlet cancel shop-2\" takes it back.")
	assert.Equal(t, 5, screen.code())
	w.release()
	w.turnIs("shop-2", spec.TurnCompleted)
	assert.Equal(t, []string{"hold this", "later"}, w.received("shop"))
	described := w.does("describe", "turn", "shop-2")
	assert.Contains(t, described, "Status:         Completed")
	assert.NotContains(t, described, "later")
}

func TestSendAndGetTurnsOutliveTheDaemon(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.receivers()
	w.receiver("shop")
	w.start()
	w.runs("shop")
	rows := w.open("get", "turns", "-w")
	held := w.open("send", "shop", "hold this", "--wait=completed")
	held.shows("delivered; the client works on it")
	waiting := w.open("send", "shop", "later")
	waiting.shows("turn/shop-2: ")
	w.kill()
	held.shows("The daemon does not answer any more; waiting for it.")
	w.start()
	held.shows("The daemon answers again.")
	w.release()
	held.shows("turn/shop-1 completed by session \"shop\"")
	waiting.shows("turn/shop-2 delivered to session \"shop\"")
	assert.Equal(t, 0, held.code())
	assert.Equal(t, 0, waiting.code())
	for _, word := range []string{"Pending", "Delivered", "Completed"} {
		rows.shows(word)
	}
	assert.Equal(t, 0, rows.ends())
	assert.Equal(t, []string{"hold this", "later"}, w.received("shop"))
}

// An unknown session is never made by a wish to see it.
func TestAttachWakesADormantSessionAndNeverADeletedOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.receivers()
	w.receiver("shop", "provisioningPolicy: OnDemand")
	w.start()
	w.reaches("shop", spec.StatusDormant)
	screen := w.open("attach", "shop")
	screen.shows("has its client on demand: it is being started.")
	screen.shows("resting")
	screen.detach()
	w.does("terminate", "shop")
	screen = w.open("attach", "shop")
	screen.shows("resting")
	screen.detach()
	w.runsAs("shop", 2)
	w.does("delete", "shop")
	screen = w.open("attach", "shop")
	screen.shows("not found")
	assert.Equal(t, 3, screen.code())
	assert.Empty(t, w.family("shop"))
}

// The answer is written down after the client has told that it is done.
func TestSendShowsTheEndOfAnAgentsAnswer(t *testing.T) {
	eachAgent(t, func(t *testing.T, a agent) {
		if !spec.IsBuiltInClass(a.class) {
			t.Skip("its class gives no answers")
		}
		w := newAgentWorld(t, a)
		w.employ("shop")
		w.start()
		sent := w.muxlet("send", "shop", "hello", "--wait=completed")
		require.Equal(t, 0, sent.code, sent.text())
		lines := strings.Split(strings.TrimSpace(sent.out), "\n")
		assert.Equal(t, "turn/shop-1 completed by session \"shop\"", lines[0])
		assert.LessOrEqual(t, len(lines), 11)
		assert.Greater(t, len(lines), 1, "the class gives the answer: %s", sent.text())
		again := strings.Split(strings.TrimSpace(w.does("send", "shop", "and again", "--wait=completed")), "\n")
		require.Greater(t, len(again), 1)
		assert.NotEqual(t, lines[1:], again[1:], "each turn has its own answer")
	})
}

// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muxlet/muxlet/spec"
)

// queue has a turn in each state.
func queue() *fakeDaemon {
	f := shops("shop", "web")
	sent := func(session string, number int, ago time.Duration) spec.Turn {
		t := pendingTurn(session, number)
		t.CreationTimestamp = before(ago)
		t.Labels = map[string]string{"repo": session}
		t.Spec.Prompt = "mend it\nplease"
		t.Spec.Deadline = pointer(metav1.NewTime(t.CreationTimestamp.Add(2 * time.Minute)))
		t.Status.PromptBytes, t.Status.PromptLines = 14, 2
		return t
	}
	handed := func(t spec.Turn, ago time.Duration) spec.Turn {
		t.Status.HandedAt = pointer(before(ago))
		return t
	}
	over := func(t spec.Turn, ago time.Duration) spec.Turn {
		t.Status.FinishedAt = pointer(before(ago))
		return t
	}
	done := over(handed(completedTurn(sent("shop", 1, 3*time.Hour)), 3*time.Hour), 2*time.Hour)
	done.Status.ConversationID = "c-1"
	f.setTurn(done)
	f.setTurn(failedTurn(sent("shop", 2, time.Hour), spec.ReasonCommandNotFound, "claude was not found in PATH: install it", true))
	f.setTurn(over(handed(uncertainTurn(sent("shop", 3, 50*time.Minute), spec.ReasonInterrupted, "the daemon ended while it was handed over"), 49*time.Minute), 48*time.Minute))
	f.setTurn(handed(deliveredTurn(sent("shop", 4, 10*time.Minute)), 5*time.Minute))
	f.setTurn(waitingTurn(sent("shop", 5, time.Minute), spec.ReasonClientWorking, "the client works on shop-4"))
	f.setTurn(failedTurn(sent("web", 1, time.Minute), spec.ReasonCancelled, "a person took it back", false))
	f.setTurn(waitingTurn(sent("web", 2, 0), spec.ReasonTrustRequired, "the client asks whether the directory is to be trusted"))
	return f
}

func TestGetListsTurnsBySessionAndNumber(t *testing.T) {
	c := newCLI(t, queue())
	assert.Equal(t, 0, c.run("get", "turns", "-o", "wide"))
	c.golden("get-turns-wide")
	assert.Equal(t, 0, c.run("get", "turns"))
	c.golden("get-turns")
	all := c.out
	assert.Equal(t, 0, c.run("get", "turn"))
	assert.Equal(t, all, c.out)
	for _, args := range [][]string{
		{"--session", "web"}, {"--session", "sessions/web"}, {"-l", "repo=web"}, {"web-1", "web-2"}, {"turn/web-1", "turns/web-2"},
	} {
		assert.Equal(t, 0, c.run(append([]string{"get", "turns", "-o", "name"}, args...)...), args)
		assert.Equal(t, "turn.muxlet.dev/web-1\nturn.muxlet.dev/web-2\n", c.out, args)
	}
	assert.Equal(t, 0, c.run("get", "turn/web-1", "--no-headers"))
	assert.Equal(t, "web-1   web   Cancelled   -     60s   -\n", c.out)
}

func TestThePromptComesWithOneTurnAlone(t *testing.T) {
	c := newCLI(t, queue())
	assert.Equal(t, 0, c.run("get", "turn", "shop-1", "-o", "yaml"))
	assert.Contains(t, c.out, "mend it")
	assert.Equal(t, 0, c.run("get", "turns", "shop-1", "-o", "jsonpath={.spec.prompt}"))
	assert.Equal(t, "mend it\nplease", c.out)
	assert.Equal(t, 0, c.run("get", "turns", "-o", "json"))
	assert.NotContains(t, c.out, "mend it")
	var list corev1.List
	require.NoError(t, json.Unmarshal([]byte(c.out), &list))
	assert.Len(t, list.Items, 7)
}

func TestTurnsThatAreNotThereAreSaidToBe(t *testing.T) {
	c := newCLI(t, queue())
	assert.Equal(t, exitNotFound, c.run("get", "turn", "shop-9", "shop-1", "-o", "name"))
	assert.Equal(t, "turn.muxlet.dev/shop-1\n", c.out)
	assert.Equal(t, "Error: turn \"shop-9\" not found: \"muxlet get turns\" lists those that are kept\n", c.errOut)
	for want, args := range map[string][]string{
		"No turns found: none of session \"docs\" is kept.\n":    {"--session", "docs"},
		"No turns found: none matches the selector repo=docs.\n": {"-l", "repo=docs"},
	} {
		assert.Equal(t, 0, c.run(append([]string{"get", "turns"}, args...)...))
		assert.Equal(t, want, c.errOut)
	}
	assert.Equal(t, 0, c.run("get", "turns", "--session", "docs", "-o", "json"))
	assert.Contains(t, c.out, `"items": []`)
	c = newCLI(t, newFakeDaemon())
	assert.Equal(t, 0, c.run("get", "turns"))
	assert.Equal(t, "No turns found: \"muxlet send\" sends one.\n", c.errOut)
	for _, args := range [][]string{
		{"get", "turns", "--waiting"}, {"get", "sessions", "--session", "a"}, {"get", "events", "--session", "a"},
		{"get", "turns", "cc/a"}, {"get", "turns", "--sort-by", "restarts"}, {"get", "turns", "a-1", "-l", "a=b"}, {"get", "turns", "--session", "cc/a"},
	} {
		assert.Equal(t, exitUsage, c.run(args...), args)
	}
}

func TestTurnsAreWatchedRowByRow(t *testing.T) {
	f := queue()
	c := newCLI(t, f)
	ctx, stop := context.WithCancel(t.Context())
	lines := make(chan string, 100)
	c.prepare = func(g *globals) {
		write := g.out.Write
		g.out = writerFunc(func(p []byte) (int, error) {
			for line := range strings.Lines(string(p)) {
				lines <- line
			}
			return write(p)
		})
	}
	ended := make(chan int, 1)
	go func() { ended <- c.runIn(ctx, "get", "turns", "--session", "web", "-w") }()
	next := func() string {
		select {
		case line := <-lines:
			return strings.Join(strings.Fields(line), " ")
		case <-time.After(20 * time.Second):
			require.Fail(t, "nothing was printed")
			return ""
		}
	}
	assert.Equal(t, "NAME SESSION STATUS REASON AGE DURATION", next())
	assert.Equal(t, "web-1 web Cancelled - 60s -", next())
	assert.Equal(t, "web-2 web Pending TrustRequired 0s -", next())
	turn, _ := f.Turn("web-2")
	f.setTurn(withTurn(turn, spec.ConditionDelivered, metav1.ConditionFalse, spec.ReasonTrustRequired, "another word"))
	f.setTurn(pendingTurn("shop", 6))
	f.setTurn(deliveredTurn(turn))
	assert.Equal(t, "web-2 web Delivered InProgress 0s 0s", next(), "what looks the same is not printed again, nor another session's")
	f.setTurn(pendingTurn("web", 3))
	assert.Equal(t, "web-3 web Pending - 0s -", next())
	f.removeTurn("web-1")
	assert.Equal(t, "web-1 web Deleted - 60s -", next())
	stop()
	assert.Equal(t, 0, <-ended)
}

type writerFunc func([]byte) (int, error)

func (w writerFunc) Write(p []byte) (int, error) { return w(p) }

func TestAWatchOfATurnThatIsNotThereIsAnError(t *testing.T) {
	c := newCLI(t, queue())
	assert.Equal(t, exitNotFound, c.run("get", "turn", "shop-9", "-w"))
	assert.Contains(t, c.errOut, `turn "shop-9" not found`)
}

func TestDescribeSaysWhatBecameOfATurnAndWhatToDo(t *testing.T) {
	f := queue()
	for _, name := range []string{"shop-1", "shop-2", "shop-3", "web-2"} {
		c := newCLI(t, f)
		assert.Equal(t, 0, c.run("describe", "turn", name))
		c.golden("describe-turn-" + name)
		assert.NotContains(t, c.out, "mend it", "what was sent is not shown")
	}
	c := newCLI(t, f)
	assert.Equal(t, 0, c.run("describe", "turn/shop-1", "turns/web-1"))
	assert.Contains(t, c.out, "Name:           shop-1\n")
	assert.Contains(t, c.out, "\n\n\nName:           web-1\n")
	assert.Equal(t, exitNotFound, c.run("describe", "turn", "shop-9"))
	assert.Equal(t, "Error: turn \"shop-9\" not found: \"muxlet get turns\" lists those that are kept\n", c.errOut)
	assert.Equal(t, exitNotFound, c.run("describe", "turn"), "a session may have that name")
	assert.Contains(t, c.errOut, `session "turn" not found`)
	assert.Equal(t, 0, c.run("describe", "web", "turn/web-1"))
	assert.Contains(t, c.out, "Name:           web\n")
	assert.Contains(t, c.out, "Name:           web-1\n")
}

func TestCancelTakesTurnsBackThatWereNotHandedOver(t *testing.T) {
	f := queue()
	c := newCLI(t, f)
	assert.Equal(t, exitConflict, c.run("cancel", "shop-5", "turn/web-2", "shop-4", "shop-9"))
	assert.Equal(t, "turn/shop-5 cancelled\nturn/web-2 cancelled\n", c.out)
	assert.Equal(t, "Error: turn \"shop-4\": it was handed over already\nError: turn \"shop-9\" not found: \"muxlet get turns\" lists those that are kept\n", c.errOut)
	assert.Equal(t, 0, c.run("cancel", "turn.muxlet.dev/shop-5"), "what -o name prints is taken, and a second cancel is none too many")
	assert.Equal(t, exitUsage, c.run("cancel"))
	assert.Equal(t, exitUsage, c.run("cancel", "cc/shop-5"))
}

func TestDeleteForgetsTurnsThatAreOver(t *testing.T) {
	f := queue()
	c := newCLI(t, f)
	assert.Equal(t, exitConflict, c.run("delete", "turn", "shop-1", "shop-4"))
	assert.Equal(t, "turn/shop-1 deleted\n", c.out)
	assert.Contains(t, c.errOut, `turn "shop-4": it is not over`)
	assert.Equal(t, 0, c.run("delete", "turn/shop-2"))
	assert.NotContains(t, f.turns, "shop-2")
	assert.Equal(t, exitUsage, c.run("delete", "turn/shop-3", "--all"))
	assert.Empty(t, f.intents(), "no session was touched")
	f.on = func(f *fakeDaemon, _, name string) error { f.remove(name); return nil }
	assert.Equal(t, 0, c.run("delete", "turn/shop-3", "web"))
	assert.Equal(t, "turn/shop-3 deleted\nsession/web deleted\n", c.out)
}

func TestTurnsAndWhatSendTakesAreCompleted(t *testing.T) {
	c := newCLI(t, queue())
	for _, r := range []struct {
		args []string
		want string
	}{
		{[]string{"get", "turn", ""}, "shop-1\tCompleted\nshop-2\tFailed\nshop-3\tUncertain\nshop-4\tDelivered\nshop-5\tPending\nweb-1\tCancelled\nweb-2\tPending\n"},
		{[]string{"describe", "turn", "shop-1", "shop-2", "shop-3", "shop-4", "shop-5", ""}, "web-1\tCancelled\nweb-2\tPending\n"},
		{[]string{"describe", "turn/shop"}, "turn/shop-1\tCompleted\nturn/shop-2\tFailed\nturn/shop-3\tUncertain\nturn/shop-4\tDelivered\nturn/shop-5\tPending\nturn/web-1\tCancelled\nturn/web-2\tPending\n"},
		{[]string{"delete", ""}, "shop\tRunning\nweb\tRunning\nclientclass\ta client class\nturn\ta turn\n"},
		{[]string{"cancel", ""}, "shop-5\tPending\nweb-2\tPending\n"},
		{[]string{"cancel", "shop-5", "turn/"}, "turn/web-2\tPending\n"},
		{[]string{"send", ""}, "shop\tRunning\nweb\tRunning\n"},
		{[]string{"send", "web", ""}, "shop\tRunning\n"},
		{[]string{"send", "--wait", ""}, "delivered\ncompleted\nnone\n"},
		{[]string{"send", "-o", ""}, "json\nyaml\nname\n"},
		{[]string{"get", "turns", "--session", ""}, "shop\tRunning\nweb\tRunning\n"},
	} {
		assert.Equal(t, 0, c.run(append([]string{"__complete"}, r.args...)...), r.args)
		words, _, _ := strings.Cut(c.out, ":4")
		assert.Equal(t, r.want, words, r.args)
	}
}

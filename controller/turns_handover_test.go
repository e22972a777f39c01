// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muxlet/muxlet/actuate"
	"github.com/muxlet/muxlet/controller/envtest"
	"github.com/muxlet/muxlet/spec"
)

// In order, and the next one begins when the one before it is over.
func TestTurnsArriveInOrderOneAtATime(t *testing.T) {
	t.Parallel()
	c := startChats(t, envtest.Config{})
	c.Behave("a", envtest.Manners{Works: 300 * time.Millisecond})
	c.runs(classAgent, "a")
	var names, texts []string
	for n := range 5 {
		text := fmt.Sprintf("prompt %d", n)
		texts = append(texts, text)
		names = append(names, c.send("a", text))
	}
	require.Equal(t, spec.ReasonQueued, deliveredOf(c.turn(names[4])).Reason)
	for n, name := range names {
		ended := c.waitTurn(name, spec.TurnCompleted)
		if n > 0 {
			before := c.turn(names[n-1])
			require.False(t, ended.Status.HandedAt.Before(before.Status.FinishedAt), "turn %s was handed over before the one before it was over", name)
		}
	}
	require.Equal(t, texts, c.ReceivedTexts("a"))
}

// F1, F3: whatever a prompt has in it arrives byte for byte, as one message.
func TestAPromptArrivesByteForByte(t *testing.T) {
	t.Parallel()
	c := startChats(t, envtest.Config{})
	c.runs(classAgent, "a")
	line := "it's \"quoted\"; #{pid} #(touch f) $HOME `id` \\n\t\\; %0 \u00e9\u4e16\U0001F600 end;\n"
	long := strings.Repeat(line, spec.MaxPromptBytes/len(line))
	texts := []string{
		"one line", "three\nlines\n\nwith an empty one", strings.TrimRight(strings.Repeat("ninety lines\n", 90), "\n"), line + ";", "-t %0", "Enter",
		strings.TrimRight(long, "\n"),
	}
	var names []string
	for _, text := range texts {
		names = append(names, c.send("a", text+"\n"))
	}
	for _, name := range names {
		c.waitTurn(name, spec.TurnCompleted)
	}
	for n, got := range c.ReceivedTexts("a") {
		if got != strings.TrimRight(texts[n], "\n") {
			require.Fail(t, fmt.Sprintf("prompt %d of %d bytes has changed on its way to %d bytes", n, len(texts[n]), len(got)))
		}
	}
	require.Len(t, c.Received("a"), len(texts))
	require.Empty(t, c.Tmux("list-buffers"), "nothing of it is left in tmux")
	require.NotContains(t, c.Log(), "ninety lines")
}

// F5: a dialog never gets a prompt, whenever it comes up.
func TestAPromptIsNotTypedIntoADialog(t *testing.T) {
	t.Parallel()
	c := startChats(t, envtest.Config{})
	c.runs(classAgent, "a")
	c.asks("a")
	name := c.send("a", "not into the dialog")
	c.waitReason(name, spec.ReasonPermissionRequired)
	c.Always(time.Second, "nothing is pasted", func() bool { return len(c.Actions(actuate.ActionPaste)) == 0 })
	c.Tmux("send-keys", "-t", c.Panes("a")[0].PaneID, "y")
	c.waitTurn(name, spec.TurnCompleted)
	require.Equal(t, []string{"not into the dialog"}, c.ReceivedTexts("a"))
}

// One that comes up between the paste and the submit key is not answered by that.
func TestTheSubmitKeyIsNotPressedOnADialog(t *testing.T) {
	t.Parallel()
	c := startChats(t, envtest.Config{})
	c.runs(classAgent, "a")
	c.OnAct(func(_ context.Context, a actuate.Action, do func() actuate.Outcome) actuate.Outcome {
		out := do()
		if a.Kind == actuate.ActionPaste {
			c.shows("a", "> hello")
			c.Behave("a", envtest.Manners{Question: "Really?"})
			c.shows("a", "Really?")
		}
		return out
	})
	name := c.send("a", "hello")
	c.Eventually("it was pasted", func() bool { return len(c.Actions(actuate.ActionPaste)) == 1 })
	c.Always(time.Second, "no key is pressed", func() bool { return len(c.Actions(actuate.ActionSubmit)) == 0 })
	c.Behave("a", envtest.Manners{})
	c.waitTurn(name, spec.TurnCompleted)
	require.Equal(t, []string{"hello"}, c.ReceivedTexts("a"))
}

func TestATurnWaitsWhileTheClientWorks(t *testing.T) {
	t.Parallel()
	c := startChats(t, envtest.Config{})
	c.Behave("a", envtest.Manners{Works: 1500 * time.Millisecond})
	c.runs(classAgent, "a")
	pane := c.Panes("a")[0].PaneID
	c.Tmux("send-keys", "-t", pane, "-l", "a person's own")
	c.Tmux("send-keys", "-t", pane, "Enter")
	c.Eventually("the person's prompt is worked on", func() bool { return len(c.Received("a")) == 1 })
	name := c.send("a", "mine")
	c.waitReason(name, spec.ReasonClientWorking)
	require.Len(t, c.Received("a"), 1)
	c.waitTurn(name, spec.TurnCompleted)
	require.Equal(t, []string{"a person's own", "mine"}, c.ReceivedTexts("a"))
	received := c.Received("a")
	assert.GreaterOrEqual(t, received[1].At.Sub(received[0].At), 1500*time.Millisecond)
}

// What a person has typed and not submitted is not submitted with a turn.
func TestATurnWaitsWhileSomethingStandsInTheInputLine(t *testing.T) {
	t.Parallel()
	c := startChats(t, envtest.Config{})
	c.runs(classAgent, "a")
	pane := c.Panes("a")[0].PaneID
	c.Tmux("send-keys", "-t", pane, "-l", "half a thou")
	name := c.send("a", "mine")
	c.waitReason(name, spec.ReasonComposerInUse)
	c.Tmux("send-keys", "-t", pane, "-l", "ght")
	c.Tmux("send-keys", "-t", pane, "Enter")
	c.waitTurn(name, spec.TurnCompleted)
	require.Equal(t, []string{"half a thought", "mine"}, c.ReceivedTexts("a"))
}

// A person scrolls back: keys would go to the copy mode and not to the client.
func TestCopyModeIsLeftForATurn(t *testing.T) {
	t.Parallel()
	c := startChats(t, envtest.Config{})
	c.runs(classAgent, "a")
	pane := c.Panes("a")[0].PaneID
	c.Tmux("copy-mode", "-t", pane)
	c.waitTurn(c.send("a", "hello"), spec.TurnCompleted)
	require.Equal(t, []string{"hello"}, c.ReceivedTexts("a"))
	require.Equal(t, "0", c.Tmux("display-message", "-p", "-t", pane, "#{pane_in_mode}"))
}

// A key that the client swallows is pressed again, at most three times in all; the
// prompt is pasted once.
func TestOnlyTheSubmitKeyIsRepeated(t *testing.T) {
	t.Parallel()
	for swallows, want := range map[int]spec.TurnPhase{2: spec.TurnCompleted, 9: spec.TurnUncertain} {
		t.Run(fmt.Sprint(swallows), func(t *testing.T) {
			t.Parallel()
			c := startChats(t, envtest.Config{})
			c.Behave("a", envtest.Manners{Swallows: swallows})
			c.runs(classAgent, "a")
			ended := c.waitEnd(c.send("a", "hello"))
			require.Equal(t, want, spec.DisplayTurnStatus(&ended), deliveredOf(ended).Message)
			require.Len(t, c.Actions(actuate.ActionPaste), 1)
			require.Len(t, c.Actions(actuate.ActionSubmit), 3)
			if want == spec.TurnUncertain {
				require.Equal(t, spec.ReasonNotSubmitted, deliveredOf(ended).Reason)
				require.Empty(t, c.Received("a"))
				c.waitEvent("a", spec.ReasonNotSubmitted)
				return
			}
			require.Equal(t, []string{"hello"}, c.ReceivedTexts("a"))
		})
	}
}

// The client dies with the prompt in its hands: it is said what is known, and nothing is
// sent again.
func TestAClientThatDiesWithATurn(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]struct {
		manners   envtest.Manners
		want      spec.TurnPhase
		retryable bool
		received  int
	}{
		"at the paste":   {envtest.Manners{DiesAt: envtest.AtPaste}, spec.TurnFailed, true, 0},
		"at the submit":  {envtest.Manners{DiesAt: envtest.AtSubmit}, spec.TurnUncertain, false, 0},
		"while it works": {envtest.Manners{Hangs: true}, spec.TurnFailed, false, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := startChats(t, envtest.Config{})
			c.Behave("a", r.manners)
			c.runs(classAgent, "a")
			turn := c.send("a", "hello")
			if r.manners.Hangs {
				c.waitTurn(turn, spec.TurnDelivered)
				c.Kill(c.Client("a").Process)
			}
			ended := c.waitEnd(turn)
			require.Equal(t, r.want, spec.DisplayTurnStatus(&ended), deliveredOf(ended).Message)
			require.Equal(t, r.retryable, ended.Status.Retryable)
			c.waitEvent("a", spec.ReasonClientDied)
			c.Behave("a", envtest.Manners{})
			c.WaitFor("a", envtest.Incarnation(2))
			c.waitTurn(c.send("a", "next"), spec.TurnCompleted)
			require.Len(t, c.Received("a"), r.received+1)
			require.Len(t, c.Actions(actuate.ActionPaste), 2)
		})
	}
}

// A failure that the client reports is the turn's.
func TestATurnThatTheClientFails(t *testing.T) {
	t.Parallel()
	c := startChats(t, envtest.Config{})
	c.Behave("a", envtest.Manners{Fails: "server_error"})
	c.runs(classAgent, "a")
	ended := c.waitEnd(c.send("a", "hello"))
	require.Equal(t, spec.TurnFailed, spec.DisplayTurnStatus(&ended))
	require.Equal(t, metav1.ConditionTrue, deliveredOf(ended).Status)
	require.NotEmpty(t, c.Controller().Events("a").Items)
}

// A client that hears nothing is not taken to have heard.
func TestATurnThatNothingConfirmsIsUncertain(t *testing.T) {
	t.Parallel()
	c := startChats(t, envtest.Config{})
	c.runs(classChat, "a")
	c.Behave("a", envtest.Manners{Deaf: true})
	ended := c.waitEnd(c.send("a", "hello"))
	require.NotEqual(t, metav1.ConditionTrue, deliveredOf(ended).Status)
	require.Empty(t, c.Received("a"))
}

// The daemon crashes at each step of a hand-over: the client has the prompt at most
// once, what is called delivered was received, and the next turn arrives.
func TestTheDaemonIsDroppedDuringAHandOver(t *testing.T) {
	t.Parallel()
	for _, class := range []string{classAgent, classChat} {
		for _, kind := range []actuate.Kind{actuate.ActionPaste, actuate.ActionSubmit} {
			for _, done := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%s/done=%v", class, kind, done), func(t *testing.T) {
					t.Parallel()
					c := startChats(t, envtest.Config{})
					c.runs(class, "a")
					reached := make(chan struct{}, 1)
					c.OnAct(func(ctx context.Context, a actuate.Action, do func() actuate.Outcome) actuate.Outcome {
						if a.Kind != kind {
							return do()
						}
						if done {
							do()
						}
						reached <- struct{}{}
						<-ctx.Done()
						return actuate.Outcome{}
					})
					name := c.send("a", "hello")
					<-reached
					c.OnAct(nil)
					c.Restart()
					ended := c.waitEnd(name)
					received := c.ReceivedTexts("a")
					require.LessOrEqual(t, len(received), 1)
					if deliveredOf(ended).Status == metav1.ConditionTrue {
						require.Equal(t, []string{"hello"}, received)
					}
					if done || kind == actuate.ActionSubmit {
						require.Equal(t, metav1.ConditionTrue, deliveredOf(ended).Status, "its pane tells: %s", deliveredOf(ended).Message)
					}
					require.LessOrEqual(t, len(c.Actions(actuate.ActionPaste)), 1)
					next := c.waitEnd(c.send("a", "next"))
					require.Equal(t, metav1.ConditionTrue, deliveredOf(next).Status, deliveredOf(next).Message)
				})
			}
		}
	}
}

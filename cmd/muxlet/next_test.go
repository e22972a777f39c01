// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muxlet/muxlet/spec"
)

// askingAt is a session whose client has had a question for so long.
func askingAt(name, pane string, long time.Duration) spec.Session {
	s := runningSession(name, 1, 5)
	place(&s, pane)
	condition(&s, spec.ConditionInputRequired, metav1.ConditionTrue, spec.ReasonPermissionRequired, "")
	s.Status.Activity = &spec.ActivityStatus{State: spec.ActivityAwaitingInput, AsksSince: pointer(before(long))}
	return s
}

func attachTo(pane string) []string {
	return []string{"tmux", "-u", "-S", "/run/muxlet/tmux.sock", "attach-session", "-t", pane}
}

func TestNextAttachesToTheSessionThatWaitsLongest(t *testing.T) {
	c := newCLI(t, newFakeDaemon(runningSession("a", 1, 5), askingAt("b", "%1", time.Minute), askingAt("c", "%2", time.Hour)))
	done := c.terminal("")
	assert.Equal(t, 0, c.run("next"))
	assert.Equal(t, attachTo("%2"), done.argv)
	assert.Empty(t, c.errOut)
}

func TestNextSaysThatNobodyWaits(t *testing.T) {
	c := newCLI(t, newFakeDaemon(runningSession("a", 1, 5)))
	done := c.terminal("")
	assert.Equal(t, 0, c.run("next"))
	assert.Empty(t, done.argv)
	assert.Equal(t, "No session waits for you.\n", c.errOut)
}

// What waits without a pane can only be described; what has one goes first.
func TestNextNamesWhatWaitsAndCannotBeAttached(t *testing.T) {
	blocked := stalledSession("b", spec.ReasonWorkspaceMissing, "The directory /home/me/src/b does not exist.")
	c := newCLI(t, newFakeDaemon(blocked, askingAt("c", "%2", time.Second)))
	done := c.terminal("")
	assert.Equal(t, 0, c.run("next"))
	assert.Equal(t, attachTo("%2"), done.argv)

	c = newCLI(t, newFakeDaemon(blocked))
	c.terminal("")
	assert.Equal(t, exitError, c.run("next"))
	assert.Contains(t, c.errOut, `session "b" waits for you and has no client`)
	assert.Contains(t, c.errOut, "The directory /home/me/src/b does not exist")
	assert.Contains(t, c.errOut, `"muxlet describe b"`)
}

func TestAKeySwitchesTheClientThatItWasPressedIn(t *testing.T) {
	c := newCLI(t, newFakeDaemon(askingAt("b", "%1", time.Minute)))
	done := c.terminal("")
	assert.Equal(t, 0, c.run("next", "--client", "/dev/pts/9"))
	assert.Equal(t, []string{"tmux", "-u", "-S", "/run/muxlet/tmux.sock", "switch-client", "-c", "/dev/pts/9", "-t", "%1"}, done.argv)
	assert.Empty(t, c.out+c.errOut, "what is printed would be shown over the pane")
}

func TestATextMeansNothingToTmux(t *testing.T) {
	assert.Equal(t, `100%% of ##(touch x) ##{pid}\;`, tmuxText("100% of #(touch x) #{pid};"))
	assert.Equal(t, "a b", tmuxText("a\nb"))
	assert.Equal(t, "a^[b", tmuxText("a\x1bb"))
}

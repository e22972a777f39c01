// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muxlet/muxlet/spec"
)

func TestWaitEndsAtOnceWhenTheGoalIsReached(t *testing.T) {
	f := newFakeDaemon(runningSession("web", 3, 1234567), runningSession("api", 1, 5), suspendedSession("off"))
	f.setClass(spec.ClientClass{ObjectMeta: metav1.ObjectMeta{Name: "gem"}})
	f.setTurn(completedTurn(pendingTurn("web", 1)))
	c := newCLI(t, f)
	for _, test := range []struct{ line, want string }{
		{"web", "session/web condition met\n"},
		{"web sessions/api --for=condition=Ready", "session/web condition met\nsession/api condition met\n"},
		{"web --for=condition=ready=true", "session/web condition met\n"},
		{"off --for=condition=Ready=False", "session/off condition met\n"},
		{"off --for=condition=Suspended", "session/off condition met\n"},
		{"web --for=jsonpath={.status.client.pid}=1234567", "session/web condition met\n"},
		{"web --for=jsonpath=.status.client.ready=true", "session/web condition met\n"},
		{"web --for=jsonpath={.status.conditions[?(@.type==\"Ready\")].status}=True", "session/web condition met\n"},
		{"web --for=jsonpath={.status.tmux}", "session/web condition met\n"},
		{"web --for=create", "session/web condition met\n"},
		{"nobody --for=delete", "session/nobody condition met\n"},
		{"-l repo=none --for=delete", ""},
		{"turn/web-1", "turn/web-1 condition met\n"},
		{"turn web-1 --for=condition=Delivered", "turn/web-1 condition met\n"},
		{"clientclass/gem --for=create", "clientclass/gem condition met\n"},
		{"clientclass gem --for=jsonpath={.status.sessions}=0", "clientclass/gem condition met\n"},
		{"web --timeout=0", "session/web condition met\n"},
	} {
		assert.Equal(t, 0, c.run(append([]string{"wait"}, strings.Fields(test.line)...)...), "%s: %s", test.line, c.errOut)
		assert.Equal(t, test.want, c.out, test.line)
		assert.Empty(t, c.errOut, test.line)
	}
}

func TestWaitSeesTheGoalComeAndTheSessionGo(t *testing.T) {
	f := newFakeDaemon(downSession("web", spec.ReasonStarting, ""), runningSession("old", 1, 5))
	c := newCLI(t, f)
	c.prepare = func(g *globals) { g.patience = time.Minute }
	go func() {
		f.set(runningSession("web", 1, 5))
		f.remove("old")
		f.set(runningSession("late", 1, 6))
	}()
	assert.Equal(t, 0, c.run("wait", "web"))
	assert.Equal(t, 0, c.run("wait", "old", "--for=delete"))
	assert.Equal(t, 0, c.run("wait", "late", "--for=create"))
	assert.Equal(t, 0, c.run("wait", "late"), "what was just declared may not be there yet")
}

// What cannot come without a person ends the wait early, with the reason.
func TestWaitEndsWhenTheGoalCannotBeReached(t *testing.T) {
	asks := runningSession("asks", 1, 5)
	condition(&asks, spec.ConditionReady, metav1.ConditionFalse, spec.ReasonTrustRequired, "the client asks whether the directory is to be trusted")
	condition(&asks, spec.ConditionInputRequired, metav1.ConditionTrue, spec.ReasonTrustRequired, "the client asks whether the directory is to be trusted")
	held := runningSession("held", 1, 5)
	condition(&held, spec.ConditionAccepted, metav1.ConditionFalse, spec.ReasonRemovalHeld, "the directory /m is empty now")
	f := newFakeDaemon(suspendedSession("off"), dormantSession("rests"), invalidSession("bad"), asks, held, runningSession("runs", 1, 7),
		stalledSession("lost", spec.ReasonWorkspaceMissing, "~/src/lost does not exist"),
		stalledSession("bare", spec.ReasonCommandNotFound, "npm was not found"))
	f.setTurn(failedTurn(pendingTurn("runs", 1), spec.ReasonClientDied, "the client has ended", true))
	f.setTurn(completedTurn(pendingTurn("runs", 2)))
	c := newCLI(t, f)
	for _, test := range []struct {
		line string
		code int
		want string
	}{
		{"off", exitConflict, "session \"off\" does not get to condition=Ready: it is Suspended: spec.suspend is true. Run: muxlet resume off"},
		{"rests", exitConflict, "it is Dormant: There is no client until"},
		{"bad", exitError, "it is Invalid: /home/me/.config/muxlet/sessions/bad.yaml:6:3: spec.workspce"},
		{"asks", exitConflict, "it is Running (TrustRequired): the client asks whether the directory is to be trusted. Answer it: muxlet attach asks."},
		{"asks --for=jsonpath={.status.activity.state}=Idle", exitConflict, "muxlet attach asks"},
		{"held --for=delete", exitConflict, "(RemovalHeld): the directory /m is empty now. Put the file back to keep the session, or run \"muxlet prune --confirm\""},
		{"lost", exitConflict, "mkdir -p"},
		{"bare", exitRetryable, "it is Blocked (CommandNotFound): npm was not found."},
		{"nobody", exitNotFound, "session \"nobody\" not found"},
		{"turn/runs-1", exitRetryable, "turn \"runs-1\" to session \"runs\" was"},
		{"turn/runs-2 --for=condition=Completed=False", exitConflict, "it is over (Completed: the client has ended it) and changes no more"},
		{"turn/runs-9", exitNotFound, "turn \"runs-9\" not found"},
		{"-l repo=none", exitNotFound, "no sessions found: none matches the selector repo=none"},
		{"runs off", exitConflict, "session \"off\""},
	} {
		assert.Equal(t, test.code, c.run(append([]string{"wait"}, strings.Fields(test.line)...)...), "%s: %s", test.line, c.errOut)
		assert.Contains(t, c.errOut, test.want, test.line)
		assert.Equal(t, 1, strings.Count(c.errOut, "\n"), c.errOut)
	}
	assert.Equal(t, "session/runs condition met\n", c.out, "one that cannot be does not keep the others")
}

// Where it is the person that is waited for, nothing ends early.
func TestWaitWaitsForAPersonWhoIsWaitedFor(t *testing.T) {
	f := newFakeDaemon(suspendedSession("off"))
	c := newCLI(t, f)
	assert.Equal(t, exitDeadline, c.run("wait", "off", "--for=condition=Suspended=False", "--timeout=100ms"), "not ended early")
	f.set(runningSession("off", 1, 5))
	assert.Equal(t, 0, c.run("wait", "off", "--for=condition=Suspended=False"), c.errOut)
}

func TestWaitEndsInTime(t *testing.T) {
	f := newFakeDaemon(crashLooping("web"))
	f.setTurn(pendingTurn("web", 1))
	c := newCLI(t, f)
	for _, test := range []struct{ line, want string }{
		{"web --timeout=20ms", "Error: the goal condition=Ready of session \"web\" was not seen within 20ms (it is CrashLoopBackOff: The client exited with status 1; the 4th start waits 12s): see \"muxlet describe web\".\n"},
		{"web --timeout=0", "Error: the goal condition=Ready of session \"web\" was not there at the one look (it is CrashLoopBackOff"},
		{"late --for=create --timeout=20ms", "Error: the goal create of session \"late\" was not seen within 20ms (there is none)"},
		{"turn/web-1 --timeout=20ms", "Error: the goal condition=Completed of turn \"web-1\" was not seen within 20ms (it is Pending"},
	} {
		assert.Equal(t, exitDeadline, c.run(append([]string{"wait"}, strings.Fields(test.line)...)...), test.line)
		assert.Contains(t, c.errOut, test.want, test.line)
	}
	ctx, interrupt := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer interrupt()
	assert.Equal(t, exitDeadline, c.runIn(ctx, "wait", "web", "--timeout=-1s"))
	assert.Contains(t, c.errOut, "of session \"web\" was not ")
	assert.Equal(t, exitNotFound, c.run("wait", "late", "--timeout=0"))
}

func TestWaitRefusesWhatMakesNoSense(t *testing.T) {
	c := newCLI(t, newFakeDaemon(runningSession("web", 1, 5)))
	for line, want := range map[string]string{
		"":                                    "which sessions? Give at least one name",
		"web --for=condition=Redy":            "unknown condition \"Redy\" of a session: it must be Accepted, Observed, WorkspaceReady, ClientAlive, ConversationBound, UpToDate, Ready, Suspended, InputRequired, Stalled (did you mean \"Ready\"?)",
		"web --for=condition=Ready=Yes":       "a condition is never \"Yes\": it is True, False or Unknown",
		"web --for=delet":                     "unknown goal \"delet\" for --for: it must be condition=CONDITION[=STATUS], jsonpath='{PATH}'[=VALUE], create or delete (did you mean \"delete\"?)",
		"web --for=jsonpath=":                 "it is empty",
		"web --for=jsonpath={.status":         "is not valid",
		"web --for=jsonpath={.status.x}=":     "is empty: leave the last equals sign out",
		"web --for=jsonpath={.status}=a":      "finds an object or a list",
		"web --for=jsonpath={..type}=a":       "finds 12 values",
		"-l a=b --for=create":                 "--for=create needs names",
		"web --all":                           "names cannot be given together with -l or --all",
		"events web":                          "events are not waited for",
		"turn/a -l a=b":                       "-l and --all are for sessions",
		"clientclass a --for=condition=Ready": "a clientclass has no conditions",
		"web --timeout=soon":                  "invalid argument \"soon\"",
	} {
		assert.Equal(t, exitUsage, c.run(append([]string{"wait"}, strings.Fields(line)...)...), line)
		assert.Contains(t, c.errOut, want, line)
	}
}

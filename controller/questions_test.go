// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/muxlet/muxlet/actuate"
	"github.com/muxlet/muxlet/controller/envtest"
	"github.com/muxlet/muxlet/controller/plan"
	"github.com/muxlet/muxlet/spec"
)

// F5: nothing is typed into a question; the session says which one waits, and is ready
// by itself once a person has answered.
func TestAQuestionWaitsForAPersonAndTheSessionGoesOnByItself(t *testing.T) {
	t.Parallel()
	a := startAgents(t, envtest.Config{})
	s := a.claude("shop")
	s.Spec.Workspace.Directory = filepath.Join(a.Dir, "elsewhere")
	require.NoError(t, os.MkdirAll(s.Spec.Workspace.Directory, 0o700))
	a.Apply(s)
	asks := a.WaitFor("shop", envtest.Condition(spec.ConditionInputRequired, metav1.ConditionTrue, spec.ReasonTrustRequired),
		envtest.Condition(spec.ConditionReady, metav1.ConditionFalse, spec.ReasonTrustRequired), envtest.Shows(spec.StatusRunning))
	assert.Contains(t, strings.Join(asks.Status.Evidence.LastScreen, "\n"), "trust this folder")
	assert.Equal(t, spec.ActivityAwaitingInput, asks.Status.Activity.State)
	a.Always(4*envtest.Resync, "it waits", envtest.Holds(a.Env, "shop", envtest.Condition(spec.ConditionInputRequired, metav1.ConditionTrue, spec.ReasonTrustRequired)))
	assert.Empty(t, a.Actions(actuate.ActionKeys), "nothing was typed")
	assert.Len(t, a.Events("shop", spec.ReasonTrustRequired), 1, "it is told once")
	for _, event := range a.Controller().Events("shop").Items {
		assert.NotContains(t, event.Message, "trust this folder", "a screen belongs into no event")
	}
	pane := a.pane("shop")
	a.Tmux("send-keys", "-t", pane, "Down")
	a.Tmux("send-keys", "-t", pane, "Enter")
	ready := a.WaitFor("shop", envtest.Running)
	assert.Empty(t, ready.Status.Evidence.LastScreen)
	assert.Len(t, a.spoken("shop", "start"), 1)
}

// A question that a ready client asks makes it not ready, and its answer ready again.
func TestAPermissionIsAskedOfAPerson(t *testing.T) {
	t.Parallel()
	a := startAgents(t, envtest.Config{})
	s := a.claude("shop")
	s.Spec.Client.Args = []string{"--permission-mode", "default"}
	a.ready(s)
	a.types("shop", "!ask echo done")
	a.WaitFor("shop", envtest.Condition(spec.ConditionInputRequired, metav1.ConditionTrue, spec.ReasonPermissionRequired),
		envtest.Condition(spec.ConditionReady, metav1.ConditionFalse, spec.ReasonPermissionRequired),
		envtest.Check{Words: "shows the question", Holds: func(s spec.Session) bool {
			return strings.Contains(strings.Join(s.Status.Evidence.LastScreen, "\n"), "Do you want to proceed?")
		}})
	a.Tmux("send-keys", "-t", a.pane("shop"), "Enter")
	a.WaitFor("shop", idle, envtest.Condition(spec.ConditionInputRequired, metav1.ConditionFalse, spec.ReasonNothingAsked))
}

// P1: an edit waits for the end of the turn, is shown meanwhile, and is carried out
// when the client is idle.
func TestAnEditWaitsForTheEndOfTheTurn(t *testing.T) {
	t.Parallel()
	a := startAgents(t, envtest.Config{})
	s := a.claude("shop")
	a.ready(s)
	a.turn("shop", "one")
	id := a.begun("shop")
	stop := filepath.Join(a.Dir, "stop")
	a.types("shop", "!tool while [ ! -e "+stop+" ]; do sleep 0.05; done")
	a.WaitFor("shop", working)
	s.Spec.Client.Args = []string{"--model", "opus"}
	a.Apply(s)
	a.WaitFor("shop", envtest.Condition(spec.ConditionUpToDate, metav1.ConditionFalse, spec.ReasonUpdatePending))
	a.Always(4*envtest.Resync, "it waits", func() bool { return len(a.spoken("shop", "start")) == 1 })
	require.NoError(t, os.WriteFile(stop, nil, 0o600))
	a.WaitFor("shop", envtest.Incarnation(2), envtest.Condition(spec.ConditionUpToDate, metav1.ConditionTrue, ""))
	assert.Contains(t, lastArgv(a.spoken("shop", "start")), "--resume "+id)
	assert.Contains(t, lastArgv(a.spoken("shop", "start")), "--model opus")
}

// longHold keeps a hold without a stated time for longer than a test takes.
var longHold = plan.Policy{BackOffInitial: 10 * time.Millisecond, BackOffMax: time.Hour, BackOffReset: time.Hour, UnknownGrace: envtest.Settle}

// E2: the first refused credential holds those that share it, with one event; another
// credential is not held, what runs goes on, and a turn that goes well ends it.
func TestARefusedCredentialHoldsWhoSharesIt(t *testing.T) {
	t.Parallel()
	a := startAgents(t, envtest.Config{Policy: longHold})
	other := a.claude("other")
	set(other, "ANTHROPIC_API_KEY", strings.Replace(agentKey, "test", "rest", 1))
	a.ready(a.claude("shop"), a.claude("web"), other)
	for _, name := range []string{"shop", "web", "other"} {
		a.turn(name, "of "+name)
		a.begun(name)
	}
	a.types("shop", "!fail 401")
	a.WaitFor("shop", failing(spec.ReasonAuthenticationFailed))
	a.Eventually("it is told", func() bool { return len(a.Events("shop", spec.ReasonAuthenticationFailed)) == 1 })
	a.Kill(a.client("web"))
	a.Kill(a.client("other"))
	s := a.WaitFor("web", envtest.Because(spec.ReasonAuthenticationFailed), envtest.Shows(spec.StatusBlocked))
	assert.Contains(t, s.Status.Decision.Message, "shop")
	a.WaitFor("other", envtest.Incarnation(2))
	assert.Len(t, a.spoken("web", "start"), 1)
	a.WaitFor("shop", failing(spec.ReasonAuthenticationFailed))
	assert.Len(t, a.spoken("shop", "start"), 1, "what runs goes on")
	assert.Empty(t, a.Events("web", spec.ReasonAuthenticationFailed), "one event for all")

	a.turn("shop", "after the login")
	a.WaitFor("web", envtest.Incarnation(2))
	a.Eventually("the end is told", func() bool { return len(a.Events("shop", spec.ReasonRecovered)) == 1 })
	assert.Equal(t, "turns=2 first=of web", a.turn("web", "two"))
}

// failing shows a turn that has failed.
func failing(reason string) envtest.Check {
	return envtest.Check{Words: "has failed because of " + reason, Holds: func(s spec.Session) bool {
		return s.Status.Client.Pid > 0 && s.Status.Activity != nil && s.Status.Activity.Failure == reason
	}}
}

// A person's resume tries at once, whatever is held.
func TestAPersonsResumeEndsAHold(t *testing.T) {
	t.Parallel()
	a := startAgents(t, envtest.Config{Policy: longHold})
	a.ready(a.claude("shop"), a.claude("web"))
	a.turn("web", "one")
	a.begun("web")
	a.types("shop", "!fail 401")
	a.WaitFor("shop", failing(spec.ReasonAuthenticationFailed))
	a.Eventually("it is told", func() bool { return len(a.Events("shop", spec.ReasonAuthenticationFailed)) == 1 })
	require.NoError(t, a.Controller().Terminate(t.Context(), "web"))
	a.WaitFor("web", envtest.Shows(spec.StatusTerminated))
	require.NoError(t, a.Controller().Resume(t.Context(), "web", false))
	a.WaitFor("web", envtest.Running)
	assert.Len(t, a.Events("shop", spec.ReasonRecovered), 1)
	a.Always(2*envtest.Resync, "the old failure on the screen begins no other hold", func() bool {
		return a.Events("shop", spec.ReasonAuthenticationFailed)[0].Count <= 1
	})
}

// E3: a limit with a stated time is waited for.
func TestAUsageLimitIsWaitedForUntilTheStatedTime(t *testing.T) {
	t.Parallel()
	a := startAgents(t, envtest.Config{Policy: longHold})
	a.ready(a.codex("shop"), a.codex("web"))
	a.turn("web", "one")
	a.begun("web")
	at := time.Now().Add(3 * time.Hour).Truncate(time.Minute)
	a.types("shop", "!fail 429 until "+at.Format("3:04 PM"))
	s := a.WaitFor("shop", failing(spec.ReasonUsageLimited))
	require.NotNil(t, s.Status.Activity.RetryTime)
	assert.WithinDuration(t, at, s.Status.Activity.RetryTime.Time, time.Minute)
	a.Kill(a.client("web"))
	web := a.WaitFor("web", envtest.Because(spec.ReasonUsageLimited))
	require.NotNil(t, web.Status.NextAttemptTime)
	assert.WithinDuration(t, at, web.Status.NextAttemptTime.Time, time.Minute)
	assert.Len(t, a.spoken("web", "start"), 1)
}

// A client that shows nothing for as long as a start may take is ended, and is looked at
// ever less often until then.
func TestAClientThatShowsNothingEndsWithStartTimeout(t *testing.T) {
	t.Parallel()
	e := envtest.Start(t, envtest.Config{})
	e.Write("mute.yaml", `apiVersion: muxlet.dev/v1alpha1
kind: ClientClass
metadata: {name: mute}
spec:
  start: {command: [/bin/sleep, "1000"]}
  ready: {pattern: "^> "}
`)
	s := &spec.Session{}
	s.Name, s.Spec.ClientClassName, s.Spec.Workspace.Directory = "a", "mute", e.Work
	s.Spec.Client.ShellMode = spec.ShellNone
	s.Spec.StartupTimeoutSeconds = ptr.To[int32](3)
	s.Spec.RestartPolicy = spec.RestartNever
	e.Apply(s)
	e.WaitFor("a", envtest.Check{Words: "was ended for its start", Holds: func(s spec.Session) bool {
		last := s.Status.Client.LastTermination
		return last != nil && last.Reason == spec.ReasonStartTimeout
	}})
}

// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muxlet/muxlet/spec"
)

// H2
func TestDescribeARunningSession(t *testing.T) {
	s := runningSession("api", 4, 4711)
	s.Labels = map[string]string{"repo": "shop", "team": "web"}
	ended(&s, 3, killed())
	s.Spec.Client.Args = []string{"--host", "0.0.0.0; it's"}
	s.Spec.Client.Env = []spec.EnvVar{
		{Name: "LOG", Value: "hunter2"},
		{Name: "PATH", Value: "/hunter2/bin:/bin"},
		{Name: "API_KEY", ValueFrom: &spec.EnvVarSource{FileRef: &spec.FileRef{Path: "~/.config/keys/anthropic"}}},
	}
	s.Spec.Client.EnvFrom = []spec.EnvFromSource{{FileRef: &spec.FileRef{Path: "~/agents.env", Optional: true}}}
	s.Status.Client.Survivors = []int{812, 813}
	f := eventful(newFakeDaemon(s))
	f.screens["api"] = "VITE v5 ready\n\n  ➜ Local: http://localhost:5173/\n\n\n"
	c := newCLI(t, f)
	assert.Equal(t, 0, c.run("describe", "api"))
	c.golden("describe-running")
	assert.NotContains(t, c.out, "hunter2", "of the environment only names are shown")
}

// E1
func TestDescribeACrashLoop(t *testing.T) {
	c := newCLI(t, eventful(newFakeDaemon(crashLooping("web"))))
	assert.Equal(t, 0, c.run("describe", "web"))
	c.golden("describe-crash-loop")
}

// B10
func TestDescribeABlockedSession(t *testing.T) {
	s := stalledSession("docs", spec.ReasonWorkspaceMissing, "The directory /home/me/src/docs does not exist.")
	condition(&s, spec.ConditionWorkspaceReady, metav1.ConditionFalse, spec.ReasonWorkspaceMissing, "The directory /home/me/src/docs does not exist.")
	c := newCLI(t, newFakeDaemon(s))
	assert.Equal(t, 0, c.run("describe", "docs"))
	c.golden("describe-blocked")
}

// E7
func TestDescribeASessionWhoseProgramIsMissing(t *testing.T) {
	message := "The program npm was not found in PATH (/usr/bin:/bin)."
	s := stalledSession("web", spec.ReasonCommandNotFound, message)
	ended(&s, 0, spec.Termination{Reason: spec.ReasonCommandNotFound, Message: message, FinishedAt: before(2 * time.Minute)})
	c := newCLI(t, newFakeDaemon(s))
	assert.Equal(t, 0, c.run("describe", "web"))
	c.golden("describe-no-program")
}

func TestDescribeAnInvalidSession(t *testing.T) {
	c := newCLI(t, newFakeDaemon(invalidSession("typo")))
	assert.Equal(t, 0, c.run("describe", "typo"))
	c.golden("describe-invalid")
}

func TestDescribeARunningSessionWithATypoInItsFile(t *testing.T) {
	s := runningSession("api", 1, 4711)
	problem := s.Status.Source.File + ":6:3: spec.workspce: unknown field (did you mean \"workspace\"?)"
	s.Status.Source.Error = problem
	condition(&s, spec.ConditionAccepted, metav1.ConditionFalse, spec.ReasonInvalid, problem)
	c := newCLI(t, newFakeDaemon(s))
	assert.Equal(t, 0, c.run("describe", "api"))
	c.golden("describe-running-invalid")
}

func TestDescribeASuspendedSession(t *testing.T) {
	c := newCLI(t, newFakeDaemon(suspendedSession("old")))
	assert.Equal(t, 0, c.run("describe", "old"))
	c.golden("describe-suspended")
}

func TestDescribeASessionThatWaitsForADemand(t *testing.T) {
	s := dormantSession("lazy")
	s.Spec.InitialPrompt = "hunter2:\n- read the notes\n\n"
	ended(&s, 2, killed())
	c := newCLI(t, newFakeDaemon(s))
	assert.Equal(t, 0, c.run("describe", "lazy"))
	c.golden("describe-dormant")
	assert.NotContains(t, c.out, "hunter2", "of a prompt only the size is shown")
}

func TestTheSizeOfAPromptIsThatOfWhatIsHandedOver(t *testing.T) {
	for prompt, want := range map[string]string{
		"a": "1 byte in 1 line", "a\n\n": "1 byte in 1 line", "🙂\nb\n": "6 bytes in 2 lines", "\n\na": "3 bytes in 3 lines",
	} {
		assert.Equal(t, want+", the first turn of each fresh conversation", promptSize(prompt))
	}
	assert.Empty(t, promptSize(""))
}

func TestDescribeASessionOfAMuteTmux(t *testing.T) {
	c := newCLI(t, newFakeDaemon(unknownSession("hung")))
	assert.Equal(t, 0, c.run("describe", "hung"))
	c.golden("describe-unknown")
}

func TestDescribeAHeldSession(t *testing.T) {
	s := runningSession("api", 1, 4711)
	s.Status.Source.Held = "the directory /home/me/.config/muxlet/sessions is empty now"
	condition(&s, spec.ConditionAccepted, metav1.ConditionTrue, spec.ReasonRemovalHeld, "Its document is gone and its removal is held back.")
	c := newCLI(t, newFakeDaemon(s))
	assert.Equal(t, 0, c.run("describe", "api"))
	c.golden("describe-held")
}

func TestDescribeASessionThatNobodyLookedAtYet(t *testing.T) {
	c := newCLI(t, newFakeDaemon(spec.Session{ObjectMeta: metav1.ObjectMeta{Name: "new"}}))
	assert.Equal(t, 0, c.run("describe", "new"))
	c.golden("describe-new")
}

func TestDescribeSeveralSessions(t *testing.T) {
	c := newCLI(t, newFakeDaemon(runningSession("a", 1, 5), suspendedSession("b")))
	assert.Equal(t, exitNotFound, c.run("describe", "a", "nobody", "sessions/b"))
	assert.Contains(t, c.out, "Name:           a\n")
	assert.Contains(t, c.out, "\n\nName:           b\n")
	assert.Contains(t, c.errOut, `session "nobody" not found`)
}

func TestDescribeShowsTheLatestEventsOfMany(t *testing.T) {
	f := newFakeDaemon(runningSession("a", 1, 5))
	for i := range 50 {
		f.events = append(f.events, event("a", "Normal", spec.ReasonStarted, strings.Repeat("x", i+1), 1, time.Hour, time.Duration(50-i)*time.Minute))
	}
	c := newCLI(t, f)
	assert.Equal(t, 0, c.run("describe", "a"))
	_, events, _ := strings.Cut(c.out, "Events:\n")
	assert.Equal(t, describedEvents+1, strings.Count(events, "\n"))
	assert.Contains(t, events, strings.Repeat("x", 50))
}

func TestOrdinalsAreEnglish(t *testing.T) {
	for n, want := range map[int32]string{1: "1st", 2: "2nd", 3: "3rd", 4: "4th", 11: "11th", 12: "12th", 13: "13th", 21: "21st", 102: "102nd", 111: "111th"} {
		assert.Equal(t, want, ordinal(n))
	}
}

func TestTheNextAttemptIsNeverInThePast(t *testing.T) {
	for left, want := range map[time.Duration]string{
		-time.Minute: "now", 0: "now", time.Millisecond: "in 1s", 12 * time.Second: "in 12s", 200 * time.Second: "in 3m20s",
	} {
		s := declared("a")
		s.Status.NextAttemptTime = pointer(metav1.NewTime(noon.Add(left)))
		assert.Equal(t, want, nextAttempt(&description{Session: &s, sheet: sheet{now: noon}}))
	}
}

// A reason that keeps a session down must come with something to do.
func TestEveryReasonThatKeepsASessionDownHasAnAdvice(t *testing.T) {
	for _, reason := range []string{
		spec.ReasonInvalid, spec.ReasonDuplicateName, spec.ReasonTmuxTimeout, spec.ReasonTmuxNotFound, spec.ReasonTmuxUnreachable,
		spec.ReasonTmuxDenied, spec.ReasonTmuxMismatch, spec.ReasonTmuxFailed, spec.ReasonListingIncomplete, spec.ReasonTwoServers,
		spec.ReasonForeignServer, spec.ReasonProcessUnknown, spec.ReasonTmuxServerFailed, spec.ReasonCrashLoopBackOff,
		spec.ReasonStartFailed, spec.ReasonStartTimeout, spec.ReasonAttemptAbandoned, spec.ReasonWaitingForBudget,
		spec.ReasonNameConflict, spec.ReasonDuplicateClient, spec.ReasonClientIgnoresKill, spec.ReasonWorkspaceMissing,
		spec.ReasonWorkspaceNotDirectory, spec.ReasonWorkspaceInaccessible, spec.ReasonCommandNotFound, spec.ReasonEnvFileMissing,
		spec.ReasonEnvFileUnreadable, spec.ReasonCommandNotExecutable, spec.ReasonEnvFileInvalid, spec.ReasonExecFailed, spec.ReasonLeaseHeld, spec.ReasonStateUnwritable,
		spec.ReasonRecordQuarantined, spec.ReasonRecordTooNew, spec.ReasonSuspended, spec.ReasonTerminated,
		spec.ReasonNotRecovered, spec.ReasonCompleted, spec.ReasonDormant,
	} {
		s := stalledSession("web", reason, "")
		advice := whatToDo(&s, spec.DisplayStatus(&s), reason)
		assert.NotEmpty(t, advice, reason)
		assert.NotContains(t, advice, "%!", reason)
	}
	s := runningSession("web", 1, 5)
	assert.Empty(t, whatToDo(&s, spec.StatusRunning, spec.ReasonRunning), "nothing is to be done about one that runs")
}

// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muxlet/muxlet/controller/envtest"
	"github.com/muxlet/muxlet/controller/plan"
	"github.com/muxlet/muxlet/spec"
)

// B10
func TestASessionWithoutItsDirectoryIsBlockedUntilThatIsThere(t *testing.T) {
	t.Parallel()
	e := envtest.Start(t, envtest.Config{})
	dir := filepath.Join(e.Dir, "gone")
	s := e.Fake("a", envtest.Script{})
	s.Spec.Workspace.Directory = dir
	e.Apply(s)

	blocked := e.WaitFor("a", envtest.Shows(spec.StatusBlocked),
		envtest.Condition(spec.ConditionWorkspaceReady, metav1.ConditionFalse, spec.ReasonWorkspaceMissing),
		envtest.Condition(spec.ConditionStalled, metav1.ConditionTrue, spec.ReasonWorkspaceMissing))
	assert.Contains(t, blocked.Status.Decision.Message, dir, "the message names what to mend")
	e.Always(stays, "nothing is tried", func() bool { return len(e.Launches("a")) == 0 })

	require.NoError(t, os.Mkdir(dir, 0o700))
	e.WaitFor("a", envtest.Incarnation(1))
	assert.Equal(t, dir, e.Client("a").Dir)
	assert.Empty(t, e.Record("a").BackOff.Deaths, "nothing died")
}

// D5
func TestAClientThatIsDoneStaysDown(t *testing.T) {
	t.Parallel()
	e := envtest.Start(t, envtest.Config{})
	s := e.Fake("a", envtest.Script{Ends: true, Lives: 100 * time.Millisecond})
	s.Spec.RestartPolicy = spec.RestartOnFailure
	e.Apply(s)
	done := e.WaitFor("a", envtest.Shows(spec.StatusCompleted))
	require.NotNil(t, done.Status.Client.LastTermination.ExitCode)
	assert.Zero(t, *done.Status.Client.LastTermination.ExitCode)
	assert.Equal(t, spec.ReasonCompleted, done.Status.Client.LastTermination.Reason)

	e.Always(stays, "it is not restarted", func() bool { return len(e.Launches("a")) == 1 })
	e.Restart()
	e.WaitFor("a", envtest.Shows(spec.StatusCompleted))
	e.Always(stays, "it is not restarted", func() bool { return len(e.Launches("a")) == 1 })
	for _, event := range e.Controller().Events("a").Items {
		assert.Equal(t, corev1.EventTypeNormal, event.Type, event.Message)
	}

	require.NoError(t, e.Controller().Resume(t.Context(), "a", false))
	e.Eventually("it runs once more", func() bool { return len(e.Starts("a")) == 2 })
}

// D5, the other exits
func TestTheRestartPolicyJudgesTheClientsOwnExitOnly(t *testing.T) {
	for name, c := range map[string]struct {
		policy   spec.RestartPolicy
		script   envtest.Script
		restarts bool
	}{
		"OnFailure, status 3":    {spec.RestartOnFailure, envtest.Script{Ends: true, Exit: 3}, true},
		"OnFailure, own signal":  {spec.RestartOnFailure, envtest.Script{Ends: true, Signal: "SIGTERM"}, true},
		"Never, status 3":        {spec.RestartNever, envtest.Script{Ends: true, Exit: 3}, false},
		"Always, status 0":       {spec.RestartAlways, envtest.Script{Ends: true}, true},
		"Never, its pane killed": {spec.RestartNever, envtest.Script{}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := envtest.Start(t, envtest.Config{})
			s := e.Fake("a", c.script)
			s.Spec.RestartPolicy = c.policy
			e.Apply(s)
			if !c.script.Ends {
				e.Client("a")
				e.Tmux("kill-pane", "-t", e.Panes("a")[0].PaneID)
			}
			if c.restarts {
				e.Eventually("it is restarted", func() bool { return len(e.Starts("a")) >= 2 })
				return
			}
			e.WaitFor("a", envtest.Shows(spec.StatusCompleted))
			e.Always(stays, "it stays down", func() bool { return len(e.Launches("a")) == 1 })
		})
	}
}

// E1
func TestAClientThatAlwaysDiesIsTriedForEverAtGrowingCappedIntervals(t *testing.T) {
	t.Parallel()
	policy := plan.Policy{BackOffInitial: 200 * time.Millisecond, BackOffMax: 800 * time.Millisecond, BackOffReset: time.Hour}
	e := envtest.Start(t, envtest.Config{Policy: policy})
	e.Apply(e.Fake("a", envtest.Script{Ends: true, Exit: 1, Prints: "no key\nno luck"}))

	s := e.WaitFor("a", envtest.Shows(spec.StatusCrashLoopBackOff), envtest.Check{Words: "has died 4 times or more", Holds: func(s spec.Session) bool {
		return s.Status.ConsecutiveDeaths >= 4
	}})
	require.NotNil(t, s.Status.NextAttemptTime)
	assert.WithinRange(t, s.Status.NextAttemptTime.Time, time.Now().Add(-time.Second), time.Now().Add(policy.BackOffMax+time.Second))
	assert.EqualValues(t, 1, *s.Status.Client.LastTermination.ExitCode)
	assert.Equal(t, spec.ReasonExited, s.Status.Client.LastTermination.Reason)
	assert.Contains(t, s.Status.Evidence.LastScreen, "no luck")

	// A new daemon goes on counting, and goes on trying.
	e.Restart()
	e.Eventually("it is still tried", func() bool { return len(e.Starts("a")) >= 7 })
	s, _ = e.Session("a")
	assert.GreaterOrEqual(t, s.Status.ConsecutiveDeaths, int32(6))
	starts := e.Starts("a")
	for i, want := range []time.Duration{0, 200, 400, 800, 800, 800} {
		gap := starts[i+1].At.Sub(starts[i].At)
		assert.GreaterOrEqual(t, gap, want*time.Millisecond, "between starts %d and %d", i+1, i+2)
	}
}

// E1: a change of the spec, and a person, are not made to wait.
func TestAnEditOrADemandEndsTheWaitOfTheBackOff(t *testing.T) {
	t.Parallel()
	policy := plan.Policy{BackOffInitial: time.Hour, BackOffMax: time.Hour, BackOffReset: 10 * time.Hour}
	e := envtest.Start(t, envtest.Config{Policy: policy})
	e.Apply(e.Fake("a", envtest.Script{Ends: true, Exit: 1}))
	e.WaitFor("a", envtest.Shows(spec.StatusCrashLoopBackOff), envtest.Because(spec.ReasonCrashLoopBackOff))
	require.Len(t, e.Launches("a"), 2, "the first restart does not wait")

	require.NoError(t, e.Controller().Resume(t.Context(), "a", false))
	e.Eventually("one attempt was bought", func() bool { return len(e.Starts("a")) == 3 })
	e.WaitFor("a", envtest.Because(spec.ReasonCrashLoopBackOff))
	e.Restart()
	e.WaitFor("a", envtest.Because(spec.ReasonCrashLoopBackOff))
	e.Always(stays, "nothing is started", func() bool { return len(e.Launches("a")) == 3 })

	e.Apply(e.Fake("a", envtest.Script{}))
	s := e.WaitFor("a", envtest.Running)
	assert.Zero(t, s.Status.ConsecutiveDeaths)
}

// E7
func TestAFailureThatTryingAgainCannotMendWaitsForTheWorldToChange(t *testing.T) {
	for name, c := range map[string]struct {
		reason string
		// want changes the spec so that it names the file; mend makes the file.
		want func(s *spec.Session, file string)
		mend func(file string) error
	}{
		"program missing": {
			spec.ReasonCommandNotFound,
			func(s *spec.Session, file string) { s.Spec.Client.Command = []string{file} },
			func(file string) error {
				return os.WriteFile(file, []byte("#!/bin/sh\nexec sleep 1000\n"), 0o700)
			},
		},
		"program missing in PATH": {
			spec.ReasonCommandNotFound,
			func(s *spec.Session, file string) {
				s.Spec.Client.Command = []string{filepath.Base(file)}
				s.Spec.Client.Env = []spec.EnvVar{{Name: "PATH", Value: "/usr/bin:/bin:" + filepath.Dir(file)}}
			},
			func(file string) error {
				return os.WriteFile(file, []byte("#!/bin/sh\nexec sleep 1000\n"), 0o700)
			},
		},
		"env file missing": {
			spec.ReasonEnvFileMissing,
			func(s *spec.Session, file string) {
				s.Spec.Client.EnvFrom = []spec.EnvFromSource{{FileRef: &spec.FileRef{Path: file}}}
			},
			func(file string) error { return os.WriteFile(file, []byte("A=1\n"), 0o600) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := envtest.Start(t, envtest.Config{})
			file := filepath.Join(e.Dir, "wanted")
			s := sleeper(e, "a")
			c.want(s, file)
			e.Apply(s)

			blocked := e.WaitFor("a", envtest.Shows(spec.StatusBlocked), envtest.Condition(spec.ConditionStalled, metav1.ConditionTrue, c.reason))
			assert.Contains(t, blocked.Status.Decision.Message, filepath.Base(file))
			e.Always(stays, "it is not tried again", func() bool { return len(e.Launches("a")) == 1 })
			e.Restart()
			e.WaitFor("a", envtest.Shows(spec.StatusBlocked))
			e.Always(stays, "it is not tried again", func() bool { return len(e.Launches("a")) == 1 })

			require.NoError(t, c.mend(file))
			e.WaitFor("a", envtest.Incarnation(1))
			assert.Len(t, e.Launches("a"), 2)
		})
	}
}

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
	"k8s.io/utils/ptr"

	"github.com/muxlet/muxlet/controller/envtest"
	"github.com/muxlet/muxlet/spec"
)

// asked is a session whose client is asked each second from its start on by a script.
func asked(e *envtest.Env, name, script string) *spec.Session {
	return askedBy(e, name, "sh", "-c", script)
}

func askedBy(e *envtest.Env, name string, command ...string) *spec.Session {
	e.Helper()
	s := e.Fake(name, envtest.Script{})
	s.Spec.LivenessProbe = &spec.LivenessProbe{
		Exec: spec.ProbeExec{Command: command}, InitialDelaySeconds: ptr.To[int32](0), PeriodSeconds: ptr.To[int32](1),
	}
	s.Spec.Workspace.Directory = filepath.Join(e.Work, name)
	if err := os.MkdirAll(s.Spec.Workspace.Directory, 0o700); err != nil {
		e.Fatalf("make directory: %v", err)
	}
	return s
}

// failThrice fails three times once there is a file called sick.
const failThrice = `[ -e sick ] || exit 0; echo no >> noes; [ $(wc -l < noes) -lt 3 ] || rm sick; echo wedged >&2; exit 1`

func touch(e *envtest.Env, path string) {
	e.Helper()
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		e.Fatalf("write file: %v", err)
	}
}

// result waits for a result of the session's probe that came after a moment.
func result(e *envtest.Env, name string, want spec.ProbeResult, since time.Time) spec.Session {
	e.Helper()
	return e.WaitFor(name, envtest.Check{Words: "was probed: " + string(want), Holds: func(s spec.Session) bool {
		p := s.Status.LivenessProbe
		return p != nil && p.Result == want && p.LastProbeTime != nil && p.LastProbeTime.After(since)
	}})
}

// C6: three failures in a row, and not one or two, replace a client.
func TestAClientWhoseProbeFailsThreeTimesIsReplaced(t *testing.T) {
	t.Parallel()
	e := envtest.Start(t, envtest.Config{})
	s := asked(e, "s", failThrice)
	e.Apply(s)
	before := e.WaitFor("s", envtest.Incarnation(1))
	result(e, "s", spec.ProbeSucceeded, time.Time{})
	touch(e, filepath.Join(s.Spec.Workspace.Directory, "sick"))
	after := e.WaitFor("s", envtest.Incarnation(2))
	assert.NotEqual(t, before.Status.Client.Pid, after.Status.Client.Pid)
	last := after.Status.Client.LastTermination
	require.NotNil(t, last)
	assert.Equal(t, spec.ReasonLivenessProbeFailed, last.Reason)
	assert.Contains(t, last.Message, "its liveness probe failed 3 times in a row; the last time sh ended with status 1: wedged; ended by muxlet (LivenessProbeFailed), by SIGTERM")
	assert.EqualValues(t, 1, after.Status.ConsecutiveDeaths, "it counts as a death")
	noes, err := os.ReadFile(filepath.Join(s.Spec.Workspace.Directory, "noes"))
	require.NoError(t, err)
	assert.Equal(t, "no\nno\nno\n", string(noes))
	assert.Len(t, e.Events("s", spec.ReasonLivenessProbeFailed), 1)
	assert.Len(t, e.Events("s", spec.ReasonLivenessProbeFailing), 1)
	result(e, "s", spec.ProbeSucceeded, time.Now())
	e.WaitFor("s", envtest.Incarnation(2))
}

func TestAProbedClientThatIgnoresTermIsKilledAfterItsGracePeriod(t *testing.T) {
	t.Parallel()
	e := envtest.Start(t, envtest.Config{})
	s := asked(e, "s", failThrice)
	s.Spec.Client.Command = e.Command(envtest.Script{Ignore: []string{"SIGTERM", "SIGHUP"}})
	s.Spec.TerminationGracePeriodSeconds = ptr.To[int32](1)
	touch(e, filepath.Join(s.Spec.Workspace.Directory, "sick"))
	e.Apply(s)
	after := e.WaitFor("s", envtest.Incarnation(2))
	assert.Equal(t, "SIGKILL", after.Status.Client.LastTermination.Signal)
	assert.Equal(t, spec.ReasonLivenessProbeFailed, after.Status.Client.LastTermination.Reason)
}

// What gives no answer says nothing of the client, however often.
func TestAProbeThatGivesNoAnswerKillsNothing(t *testing.T) {
	t.Parallel()
	e := envtest.Start(t, envtest.Config{})
	plain := filepath.Join(e.Dir, "plain")
	touch(e, plain)
	probes := map[string][]string{
		"hangs":    {"sh", "-c", "sleep 600"},
		"missing":  {"no-such-program"},
		"plain":    {plain},
		"shell":    {"sh", "-c", "no-such-program"},
		"crashing": {"sh", "-c", "kill -SEGV $$"},
	}
	for name, command := range probes {
		s := askedBy(e, name, command...)
		s.Spec.LivenessProbe.FailureThreshold = ptr.To[int32](1)
		e.Apply(s)
	}
	for name := range probes {
		since := time.Time{}
		for range 3 {
			s := result(e, name, spec.ProbeUnknown, since)
			since = s.Status.LivenessProbe.LastProbeTime.Time
			assert.NotEmpty(t, s.Status.LivenessProbe.Message)
		}
		s := e.WaitFor(name, envtest.Incarnation(1))
		assert.Zero(t, s.Status.LivenessProbe.ConsecutiveFailures)
		e.WaitFor(name, envtest.Condition(spec.ConditionClientAlive, "True", spec.ReasonLivenessProbeUnknown))
		require.Len(t, e.Events(name, spec.ReasonLivenessProbeUnknown), 1, "it is told, and not at each time")
		assert.EqualValues(t, 1, e.Events(name, spec.ReasonLivenessProbeUnknown)[0].Count)
	}
}

func TestAnEditOfTheProbeRestartsNothingAndTakesEffectAtOnce(t *testing.T) {
	t.Parallel()
	e := envtest.Start(t, envtest.Config{})
	s := asked(e, "s", "exit 0")
	e.Apply(s)
	before := e.WaitFor("s", envtest.Incarnation(1))
	result(e, "s", spec.ProbeSucceeded, time.Time{})
	s.Spec.LivenessProbe.Exec.Command = []string{"sh", "-c", "exit 1"}
	s.Spec.LivenessProbe.FailureThreshold = ptr.To[int32](100)
	e.Apply(s)
	after := result(e, "s", spec.ProbeFailed, time.Time{})
	assert.Equal(t, before.Status.Client.Pid, after.Status.Client.Pid)
	e.WaitFor("s", envtest.Condition(spec.ConditionUpToDate, "True", spec.ReasonUpToDate))
	e.WaitFor("s", envtest.Check{Words: "has failed twice", Holds: func(s spec.Session) bool { return s.Status.LivenessProbe.ConsecutiveFailures >= 2 }})
	// With what was counted before it would be ended now.
	s.Spec.LivenessProbe.FailureThreshold = ptr.To[int32](2)
	s.Spec.LivenessProbe.Exec.Command = []string{"sh", "-c", "exit 0"}
	e.Apply(s)
	result(e, "s", spec.ProbeSucceeded, time.Time{})
	s.Spec.LivenessProbe = nil
	e.Apply(s)
	after = e.WaitFor("s", envtest.Check{Words: "has no probe", Holds: func(s spec.Session) bool { return s.Status.LivenessProbe == nil }})
	assert.Equal(t, before.Status.Client.Pid, after.Status.Client.Pid)
	assert.EqualValues(t, 1, after.Status.Client.Incarnation)
}

func TestProbingGoesOnUnderANewDaemon(t *testing.T) {
	t.Parallel()
	e := envtest.Start(t, envtest.Config{})
	s := asked(e, "s", failThrice)
	s.Spec.LivenessProbe.FailureThreshold = ptr.To[int32](3)
	e.Apply(s)
	before := e.WaitFor("s", envtest.Incarnation(1))
	result(e, "s", spec.ProbeSucceeded, time.Time{})
	e.Restart()
	after := result(e, "s", spec.ProbeSucceeded, time.Time{})
	assert.Equal(t, before.Status.Client.Pid, after.Status.Client.Pid)
	touch(e, filepath.Join(s.Spec.Workspace.Directory, "sick"))
	e.WaitFor("s", envtest.Incarnation(2))
}

func TestAProbeHasWhatItsClientHas(t *testing.T) {
	t.Parallel()
	e := envtest.Start(t, envtest.Config{})
	secret := filepath.Join(e.Dir, "secret")
	require.NoError(t, os.WriteFile(secret, []byte("hunter2\n"), 0o600))
	s := asked(e, "s", `[ "$COLOUR $KEY $MUXLET_SESSION" = "green hunter2 s" ] && [ -n "$TMUX_PANE" ] && [ -z "$MUXLET_CLIENT" ] && [ "$(pwd)" = "$PWD" ] && [ "${PWD##*/}" = s ] && ! read x`)
	s.Spec.Client.Env = []spec.EnvVar{
		{Name: "COLOUR", Value: "green"},
		{Name: "KEY", ValueFrom: &spec.EnvVarSource{FileRef: &spec.FileRef{Path: secret}}},
	}
	e.Apply(s)
	result(e, "s", spec.ProbeSucceeded, time.Time{})
}

// A thousand of them would make a hundred changes each second.
func TestAProbeThatSaysTheSameAsBeforeIsNoNews(t *testing.T) {
	t.Parallel()
	e := envtest.Start(t, envtest.Config{})
	e.Apply(asked(e, "s", "exit 0"))
	e.WaitFor("s", envtest.Running)
	first := result(e, "s", spec.ProbeSucceeded, time.Time{})
	e.Eventually("nothing changes while it is asked three times", func() bool {
		s := first
		for range 3 {
			s = result(e, "s", spec.ProbeSucceeded, s.Status.LivenessProbe.LastProbeTime.Time)
		}
		same := s.ResourceVersion == first.ResourceVersion && s.Status.Decision.At.Equal(&first.Status.Decision.At)
		first = s
		return same
	})
	assert.Empty(t, e.Events("s", spec.ReasonLivenessProbeFailing))
}

// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muxlet/muxlet/controller/record"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec"
)

func withProbe(in *Input) {
	in.Plan.Record.Spec.LivenessProbe = &spec.LivenessProbe{Exec: spec.ProbeExec{Command: []string{"check"}}}
	spec.SetDefaults(in.Plan.Record.Spec)
	in.NextProbe = now.Add(10 * time.Second)
}

func saying(outcome observe.ProbeOutcome, message string, failures int) given {
	return func(in *Input) {
		withProbe(in)
		in.Probed = observe.Probed{Attempt: "a3", Of: in.Plan.Record.Spec.LivenessProbe, Failures: failures, At: now, Last: observe.ProbeResult{Outcome: outcome, Message: message}}
	}
}

func TestWhatALivenessProbeSaysIsServed(t *testing.T) {
	last, next := metav1.NewTime(now), metav1.NewTime(now.Add(10*time.Second))
	for name, c := range map[string]struct {
		in              Input
		want            *spec.LivenessProbeStatus
		reason, message string
	}{
		"there is none":  {up(spec.ReasonRunning), nil, spec.ReasonRunning, "pid 100 runs"},
		"not asked yet":  {up(spec.ReasonRunning, withProbe), &spec.LivenessProbeStatus{Result: spec.ProbeUnknown, NextProbeTime: &next}, spec.ReasonRunning, "pid 100 runs"},
		"it is alive":    {up(spec.ReasonRunning, saying(observe.ProbeSucceeded, "", 0)), &spec.LivenessProbeStatus{Result: spec.ProbeSucceeded, LastProbeTime: &last, NextProbeTime: &next}, spec.ReasonRunning, "pid 100 runs"},
		"it is not":      {up(spec.ReasonRunning, saying(observe.ProbeFailed, "check ended with status 1", 2)), &spec.LivenessProbeStatus{Result: spec.ProbeFailed, Message: "check ended with status 1", ConsecutiveFailures: 2, LastProbeTime: &last, NextProbeTime: &next}, spec.ReasonLivenessProbeFailing, "pid 100 runs; its liveness probe failed 2 of the 3 times in a row that replace it: check ended with status 1"},
		"nobody knows":   {up(spec.ReasonRunning, saying(observe.ProbeUnknown, "check hangs", 2)), &spec.LivenessProbeStatus{Result: spec.ProbeUnknown, Message: "check hangs", ConsecutiveFailures: 2, LastProbeTime: &last, NextProbeTime: &next}, spec.ReasonLivenessProbeUnknown, "pid 100 runs; its liveness probe gives no answer, which changes nothing: check hangs"},
		"of another one": {up(spec.ReasonRunning, saying(observe.ProbeFailed, "no", 2), func(in *Input) { in.Probed.Attempt = "a2" }), &spec.LivenessProbeStatus{Result: spec.ProbeUnknown, NextProbeTime: &next}, spec.ReasonRunning, "pid 100 runs"},
		"by another one": {up(spec.ReasonRunning, saying(observe.ProbeFailed, "no", 2), func(in *Input) { in.Probed.Of = &spec.LivenessProbe{} }), &spec.LivenessProbeStatus{Result: spec.ProbeUnknown, NextProbeTime: &next}, spec.ReasonRunning, "pid 100 runs"},
		"it is replaced": {up(spec.ReasonStopping, saying(observe.ProbeFailed, "no", 3), func(in *Input) {
			in.Plan.Record.Stop = &record.Stop{Reason: record.StopProbeFailed, Process: client}
		}), &spec.LivenessProbeStatus{Result: spec.ProbeFailed, Message: "no", ConsecutiveFailures: 3, LastProbeTime: &last, NextProbeTime: &next}, spec.ReasonStopping, "pid 100 runs"},
	} {
		t.Run(name, func(t *testing.T) {
			s := Summarize(c.in)
			require.Equal(t, c.want, s.LivenessProbe)
			alive := meta.FindStatusCondition(s.Conditions, spec.ConditionClientAlive)
			require.Equal(t, metav1.ConditionTrue, alive.Status)
			require.Equal(t, c.reason, alive.Reason)
			require.Equal(t, c.message, alive.Message)
		})
	}
	require.Nil(t, Summarize(down(spec.ReasonNoClient, withProbe)).LivenessProbe, "nobody is asked while there is no client")
}

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

func probedSession(said *spec.LivenessProbeStatus) spec.Session {
	s := runningSession("api", 4, 4711)
	s.Spec.LivenessProbe = &spec.LivenessProbe{Exec: spec.ProbeExec{Command: []string{"curl", "-fsS", "localhost:3000/health check"}}}
	spec.SetDefaults(&s.Spec)
	s.Status.LivenessProbe = said
	return s
}

func at(after time.Duration) *metav1.Time {
	t := before(-after)
	return &t
}

func TestDescribeTellsWhatTheLivenessProbeSays(t *testing.T) {
	for name, c := range map[string]struct {
		said *spec.LivenessProbeStatus
		want string
	}{
		"none was asked": {&spec.LivenessProbeStatus{Result: spec.ProbeUnknown, NextProbeTime: at(5 * time.Second)},
			"  Last result:  none yet\n  Failures:     0 in a row\n  Next:         in 5s\n"},
		"it failed": {&spec.LivenessProbeStatus{Result: spec.ProbeFailed, Message: "curl ended with status 22: 503", ConsecutiveFailures: 2, LastProbeTime: at(-3 * time.Second), NextProbeTime: at(7 * time.Second)},
			"  Last result:  Failed, 3s ago\n                curl ended with status 22: 503\n  Failures:     2 in a row\n  Next:         in 7s\n"},
		"no client runs": {nil, "  Last result:  none: no client is asked now\n"},
	} {
		t.Run(name, func(t *testing.T) {
			cli := newCLI(t, newFakeDaemon(probedSession(c.said)))
			assert.Equal(t, 0, cli.run("describe", "api"))
			assert.Contains(t, cli.out, "Liveness probe:\n  Command:      curl -fsS 'localhost:3000/health check'\n"+
				"  Timing:       every 10s from 10s after the start, 1s for an answer, 3 failures in a row replace the client\n"+c.want)
		})
	}
}

func TestDescribeSaysWhatToDoAboutAProbeThatGivesNoAnswer(t *testing.T) {
	s := probedSession(&spec.LivenessProbeStatus{Result: spec.ProbeUnknown, Message: "curl is not in the client's PATH", LastProbeTime: at(-time.Second)})
	condition(&s, spec.ConditionClientAlive, metav1.ConditionTrue, spec.ReasonLivenessProbeUnknown, "pid 4711 runs; its liveness probe gives no answer")
	cli := newCLI(t, newFakeDaemon(s))
	assert.Equal(t, 0, cli.run("describe", "api"))
	assert.Contains(t, cli.out, "The liveness probe gives no answer, and so guards nothing")
	assert.Contains(t, cli.out, "Running")
}

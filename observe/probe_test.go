// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/muxlet/muxlet/spec"
)

func TestOnlyFailuresInARowAreCounted(t *testing.T) {
	at := time.Unix(100, 0)
	outcomes := map[rune]ProbeOutcome{'F': ProbeFailed, 'S': ProbeSucceeded, 'U': ProbeUnknown}
	for given, want := range map[string]int{
		"": 0, "S": 0, "U": 0, "F": 1, "FFF": 3, "FFS": 0, "FFSF": 1, "UUU": 0,
		"FUF": 2, "FUUUU": 1, "UFUFU": 2, "FFUS": 0,
	} {
		t.Run(given, func(t *testing.T) {
			var p Probed
			for _, r := range given {
				p = p.After("a", probe(3), ProbeResult{Outcome: outcomes[r], Message: "x"}, at)
			}
			assert.Equal(t, want, p.Failures)
		})
	}
}

func probe(threshold int32) *spec.LivenessProbe {
	return &spec.LivenessProbe{Exec: spec.ProbeExec{Command: []string{"check"}}, FailureThreshold: &threshold}
}

func TestFailuresOfAnotherIncarnationOrAnotherProbeDoNotCount(t *testing.T) {
	at := time.Unix(100, 0)
	p := Probed{Attempt: "a", Of: probe(3), Failures: 2}
	failed := ProbeResult{Outcome: ProbeFailed, Message: "no"}
	assert.Equal(t, Probed{Attempt: "a", Of: probe(3), Failures: 3, Last: failed, At: at}, p.After("a", probe(3), failed, at))
	assert.Equal(t, Probed{Attempt: "b", Of: probe(3), Failures: 1, Last: failed, At: at}, p.After("b", probe(3), failed, at))
	assert.Equal(t, Probed{Attempt: "a", Of: probe(2), Failures: 1, Last: failed, At: at}, p.After("a", probe(2), failed, at))
	assert.Equal(t, Probed{Attempt: "b", Of: probe(3), At: at}, p.After("b", probe(3), ProbeResult{}, at))
	assert.False(t, p.About("a", nil))
	assert.False(t, Probed{}.About("a", probe(3)))
}

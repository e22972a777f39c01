// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
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
				p = p.After("a", ProbeResult{Outcome: outcomes[r], Message: "x"}, at)
			}
			assert.Equal(t, want, p.Failures)
		})
	}
}

func TestFailuresOfAnotherIncarnationDoNotCount(t *testing.T) {
	at := time.Unix(100, 0)
	p := Probed{Attempt: "a", Failures: 2}
	failed := ProbeResult{Outcome: ProbeFailed, Message: "no"}
	assert.Equal(t, Probed{Attempt: "b", Failures: 1, Last: failed, At: at}, p.After("b", failed, at))
	assert.Equal(t, Probed{Attempt: "b", At: at}, p.After("b", ProbeResult{}, at))
}

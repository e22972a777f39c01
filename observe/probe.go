// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"reflect"
	"time"

	"github.com/muxlet/muxlet/spec"
)

// Probe is one question to a running client: is it alive?
type Probe struct {
	// Client that is asked. The probe has its environment, as far as the client's own
	// mark proves that to be its own.
	Client Process
	// Command is an argv, run in Directory without a shell.
	Command   []string
	Directory string
	// Timeout after which it is ended.
	Timeout time.Duration
}

// ProbeOutcome is an answer. The zero value is none.
type ProbeOutcome int

// The outcomes.
const (
	// ProbeUnknown: the probe gave no answer, which proves nothing.
	ProbeUnknown ProbeOutcome = iota
	// ProbeSucceeded: the client is alive.
	ProbeSucceeded
	// ProbeFailed: the probe says that it is not.
	ProbeFailed
)

// ProbeResult is the end of one probe.
type ProbeResult struct {
	Outcome ProbeOutcome
	// Message says why, for a person; empty after a success.
	Message string
}

// Probed is what the probes of one incarnation have said.
type Probed struct {
	// Attempt of the incarnation, and the probe that was asked; empty before the first.
	Attempt string
	Of      *spec.LivenessProbe
	// Last result.
	Last ProbeResult
	// At is when it came.
	At time.Time
	// Failures since the last success, or the beginning. What gave no answer neither
	// counts nor ends the count.
	Failures int
}

// About says whether p tells of that incarnation and that probe: an edit of a probe
// begins anew, since what another one has said proves nothing of it.
func (p Probed) About(attempt string, of *spec.LivenessProbe) bool {
	return p.Attempt == attempt && reflect.DeepEqual(p.Of, of)
}

// After is what is known after one more result of the attempt's client and the probe.
func (p Probed) After(attempt string, of *spec.LivenessProbe, r ProbeResult, at time.Time) Probed {
	if !p.About(attempt, of) {
		p = Probed{Attempt: attempt, Of: of}
	}
	p.Last, p.At = r, at
	switch r.Outcome {
	case ProbeSucceeded:
		p.Failures = 0
	case ProbeFailed:
		p.Failures++
	case ProbeUnknown:
	}
	return p
}

// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"time"

	"github.com/muxlet/muxlet/controller/plan"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec"
)

// results are the words for what a probe has said.
var results = map[observe.ProbeOutcome]spec.ProbeResult{
	observe.ProbeUnknown: spec.ProbeUnknown, observe.ProbeSucceeded: spec.ProbeSucceeded, observe.ProbeFailed: spec.ProbeFailed,
}

// probed is what the session's probe has said of its present client; false when there is
// no such client or no probe.
func probed(in Input) (p observe.Probed, probe *spec.LivenessProbe) {
	r := in.Plan.Record
	if r.Client == nil || r.Spec == nil || r.Spec.LivenessProbe == nil {
		return p, nil
	}
	if in.Probed.About(r.Client.Attempt, r.Spec.LivenessProbe) {
		p = in.Probed
	}
	return p, r.Spec.LivenessProbe
}

func probeStatus(in Input) *spec.LivenessProbeStatus {
	p, probe := probed(in)
	if probe == nil {
		return nil
	}
	s := &spec.LivenessProbeStatus{Result: results[p.Last.Outcome], Message: p.Last.Message, ConsecutiveFailures: int32(p.Failures)}
	TimeProbe(s, p, in.NextProbe)
	return s
}

// TimeProbe says in s when the last probe was and when the next one is due; zero when
// there is none.
func TimeProbe(s *spec.LivenessProbeStatus, p observe.Probed, next time.Time) {
	s.LastProbeTime, s.NextProbeTime = timeOf(p.At), timeOf(next)
	if s.NextProbeTime != nil {
		s.NextProbeTime.Time = next.UTC().Round(0)
	}
}

// unwell is the reason and the message of a running client whose last probe did not
// succeed; empty for any other.
func unwell(in Input) (reason, message string) {
	p, probe := probed(in)
	switch {
	case probe == nil || p.At.IsZero() || p.Last.Outcome == observe.ProbeSucceeded:
		return "", ""
	case p.Last.Outcome == observe.ProbeFailed:
		return spec.ReasonLivenessProbeFailing, fmt.Sprintf("its liveness probe failed %d of the %d times in a row that replace it: %s", p.Failures, plan.ProbeThreshold(probe), p.Last.Message)
	}
	return spec.ReasonLivenessProbeUnknown, "its liveness probe gives no answer, which changes nothing: " + p.Last.Message
}

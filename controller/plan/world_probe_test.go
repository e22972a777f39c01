// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"time"

	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/controller/record"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec"
)

// probe gives s one, sometimes.
func (d dice) probe(s *spec.SessionSpec) {
	if d.one(2) {
		return
	}
	s.LivenessProbe = aProbe()
	*s.LivenessProbe.InitialDelaySeconds, *s.LivenessProbe.PeriodSeconds = int32(d.IntN(3)), int32(1+d.IntN(2))
	*s.LivenessProbe.FailureThreshold = int32(1 + d.IntN(3))
}

// probed completes an input by what a probe has said, mostly the session's of its client.
func (d dice) probed(in Input) Input {
	s, c := in.Desired.Spec, in.Record.Client
	if s == nil {
		s = in.Record.Spec
	}
	in.Probed = observe.Probed{Attempt: label(int64(d.IntN(4))), Of: aProbe(), At: d.time(), Failures: d.IntN(5), Last: observe.ProbeResult{Outcome: observe.ProbeOutcome(d.IntN(3))}}
	if c != nil && !d.one(5) {
		in.Probed.Attempt = c.Attempt
	}
	if s != nil && !d.one(5) {
		in.Probed.Of = s.DeepCopy().LivenessProbe
	}
	return in
}

// probe: a client is ended for its probe only when that very probe has failed often
// enough of that very client, and the client is known to run.
func (v *verdicts) probe(in Input, p Plan) {
	before, after := in.Record.Stop, p.Record.Stop
	if after == nil || after.Reason != record.StopProbeFailed || before != nil && before.Reason == record.StopProbeFailed {
		return
	}
	c, probe := in.Record.Client, p.Record.Spec.LivenessProbe
	v.must(in.Seen.Sight == SightKnown && in.Seen.Client == observe.Running, "a client is ended for its probe that is not known to run")
	v.must(c != nil && c.Process == after.Process && in.Probed.Attempt == c.Attempt, "a client is ended for the probe of another")
	v.must(probe != nil && in.Probed.About(c.Attempt, probe) && in.Probed.Failures >= int(*probe.FailureThreshold), "a client is ended for a probe that has not failed often enough")
	v.must(!p.Record.Spec.Suspend && in.Desired.Want == Keep, "the probe of a session is judged that nobody wants")
}

// pulse is what a client answers to probes.
type pulse struct {
	// A sick one answers that it is not alive, a deaf one does not answer.
	sick, deaf bool
	// failures in a row, as nobody but the world knows them.
	failures int
}

// clinic is what the daemon of a world knows of probes. It is forgotten with it.
type clinic struct {
	probed observe.Probed
	due    time.Time
	// healthy: nobody gets sick any more.
	healthy bool
}

func (w *world) sicken(b *body) {
	b.sick, b.deaf = !w.healthy && w.one(4), !w.healthy && w.one(4)
}

func (w *world) heal() {
	w.healthy = true
	for _, b := range w.bodies {
		b.sick, b.deaf = false, false
	}
}

// probe asks the client as the scheduler does.
func (w *world) probe() {
	probe, from := ProbeOf(&w.disk, nil)
	if probe == nil || w.blind || w.now.Before(from) || w.now.Before(w.due) {
		return
	}
	b := w.find(w.disk.Client.Process)
	r := observe.ProbeResult{Outcome: observe.ProbeSucceeded}
	switch {
	case b.live != observe.Running || b.deaf:
		r = observe.ProbeResult{Message: "no answer"}
	case b.sick:
		r = observe.ProbeResult{Outcome: observe.ProbeFailed, Message: "wedged"}
		b.failures++
	default:
		b.failures = 0
	}
	w.probed, w.due = w.probed.After(w.disk.Client.Attempt, probe, r, w.now), w.now.Add(ProbePeriod(probe))
}

// endsTheDead: whatever the daemon has forgotten or mixed up, a client is replaced only
// after it has said so itself that often, without having said the opposite since.
func (w *world) endsTheDead(in Input, p Plan) {
	before, after := in.Record.Stop, p.Record.Stop
	if after == nil || after.Reason != record.StopProbeFailed || before != nil {
		return
	}
	b := w.find(after.Process)
	require.GreaterOrEqual(w.t, b.failures, int(*p.Record.Spec.LivenessProbe.FailureThreshold), "a client was ended that has not failed so often")
}

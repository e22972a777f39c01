// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"time"

	"github.com/muxlet/muxlet/controller/record"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec"
)

// ProbeOf is the liveness probe that the recorded client is to be asked, and when that
// begins; nil while it is not asked: there is none, the client is being ended or is not
// known to be ready yet, or its session is suspended.
func ProbeOf(r *record.Record, class *Class) (probe *spec.LivenessProbe, from time.Time) {
	if r.Client == nil || r.Spec == nil || r.Stop != nil || r.Attempt != nil || r.Spec.Suspend {
		return nil, time.Time{}
	}
	p := &pass{rec: *r, class: ClassOf(r, r.Spec, class)}
	if probe = p.probeOf(r.Client); probe == nil {
		return nil, time.Time{}
	}
	return probe, r.Client.StartedAt.Add(secondsOf(probe.InitialDelaySeconds, spec.DefaultProbeInitialDelaySeconds))
}

func (p *pass) probeOf(c *record.Client) *spec.LivenessProbe {
	if p.rec.Spec == nil || p.watched(c) && c.ReadyAt.IsZero() {
		return nil
	}
	return p.rec.Spec.LivenessProbe
}

func secondsOf(given *int32, otherwise int32) time.Duration {
	if given != nil {
		otherwise = *given
	}
	return time.Duration(otherwise) * time.Second
}

// ProbePeriod is the time from one probe to the next.
func ProbePeriod(probe *spec.LivenessProbe) time.Duration {
	return secondsOf(probe.PeriodSeconds, spec.DefaultProbePeriodSeconds)
}

// ProbeTimeout is the time after which a probe has given no answer.
func ProbeTimeout(probe *spec.LivenessProbe) time.Duration {
	return secondsOf(probe.TimeoutSeconds, spec.DefaultProbeTimeoutSeconds)
}

// ProbeThreshold is the number of failures in a row that replace a client.
func ProbeThreshold(probe *spec.LivenessProbe) int {
	if probe.FailureThreshold == nil {
		return spec.DefaultProbeFailureThreshold
	}
	return int(*probe.FailureThreshold)
}

// judgeProbe: a client may run and do nothing any more, which only a person's own
// program can tell. One failure may be chance, so there have to be several without a
// success in between, of this very incarnation and by the probe as it is now; and the
// last of them must be new: while tmux cannot be asked nobody asks the client either,
// and it may have recovered since. What gave no answer was not counted.
func (p *pass) judgeProbe() bool {
	c := p.rec.Client
	if c == nil {
		return false
	}
	probe := p.probeOf(c)
	if probe == nil || !p.Probed.About(c.Attempt, probe) || p.Probed.Failures < ProbeThreshold(probe) {
		return false
	}
	if p.Now.Sub(p.Probed.At) > 2*ProbePeriod(probe)+ProbeTimeout(probe) {
		return false
	}
	p.plan.Looked = true
	p.event(Warning, spec.ReasonLivenessProbeFailed, fmt.Sprintf("Ending incarnation %d, pid %d: %s", c.Incarnation, c.Process.PID, probedSentence(p.Probed)))
	return p.beginStop(record.StopProbeFailed, c.Process)
}

// probedSentence says how often a probe has failed, and what it said last.
func probedSentence(p observe.Probed) string {
	times := fmt.Sprintf("%d times in a row", p.Failures)
	if p.Failures == 1 {
		times = "once"
	}
	said := ""
	if p.Last.Message != "" {
		said = "; the last time " + p.Last.Message
	}
	return fmt.Sprintf("its liveness probe failed %s%s", times, said)
}

// closeUnresponsive writes down the end of a client that was found not to work any more.
// It is judged as an end of which the status is not known.
func (p *pass) closeUnresponsive(s *record.Stop, e end) {
	c := p.rec.Client
	message := "its liveness probe failed too often"
	if p.Probed.Attempt == c.Attempt && p.Probed.Failures > 0 {
		message = probedSentence(p.Probed)
	}
	message += "; " + stoppedSentence(s)
	p.countDeath(c.StartedAt)
	p.closeClient(record.Termination{Incarnation: c.Incarnation, Exit: e.exit, Reason: spec.ReasonLivenessProbeFailed, Message: message, At: p.Now})
	p.event(Normal, spec.ReasonStopped, fmt.Sprintf("Incarnation %d ended: %s", c.Incarnation, message))
	p.judgeExit(end{own: true})
}

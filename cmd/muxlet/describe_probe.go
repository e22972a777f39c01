// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/utils/ptr"

	"github.com/muxlet/muxlet/spec"
)

// probe is what the liveness probe has said; nothing for a session without one.
func (d *description) probe() {
	declared, said := d.Spec.LivenessProbe, d.Status.LivenessProbe
	if declared == nil {
		return
	}
	d.section("Liveness probe")
	d.sub("Command", "%s", shellWords(declared.Exec.Command))
	d.sub("Timing", "%s", probeTiming(declared))
	if said == nil {
		d.sub("Last result", "none: no client is asked now")
		return
	}
	result := string(said.Result)
	if said.LastProbeTime == nil {
		result = "none yet"
	} else {
		result += ", " + ago(*said.LastProbeTime, d.now)
	}
	d.sub("Last result", "%s", strings.TrimSuffix(result+"\n"+said.Message, "\n"))
	d.sub("Failures", "%d in a row", said.ConsecutiveFailures)
	if said.NextProbeTime != nil {
		d.sub("Next", "%s", soon(said.NextProbeTime.Sub(d.now)))
	}
}

func probeTiming(p *spec.LivenessProbe) string {
	seconds := func(n *int32) string { return duration.HumanDuration(time.Duration(ptr.Deref(n, 0)) * time.Second) }
	return fmt.Sprintf("every %s from %s after the start, %s for an answer, %d failures in a row replace the client",
		seconds(p.PeriodSeconds), seconds(p.InitialDelaySeconds), seconds(p.TimeoutSeconds), ptr.Deref(p.FailureThreshold, 0))
}

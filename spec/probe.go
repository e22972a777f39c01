// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
)

// The defaults of a LivenessProbe, as Kubernetes has them but for the initial delay.
const (
	DefaultProbeInitialDelaySeconds = 10
	DefaultProbePeriodSeconds       = 10
	DefaultProbeTimeoutSeconds      = 1
	DefaultProbeFailureThreshold    = 3
)

// LivenessProbe asks a running client from time to time whether it still does its work.
// A probe that fails failureThreshold times in a row, without a success in between, has
// its client replaced: it is ended, counted as a death, and its conversation is resumed,
// unless restartPolicy is Never; that death counts as a failure for OnFailure.
// One success is enough to begin the count anew. A probe that gives no answer (it hangs,
// is missing, cannot be executed, is killed) is neither: it kills nothing, and leaves the
// count as it is. An edit of it restarts nothing, takes effect at once, and begins the
// count anew.
type LivenessProbe struct {
	// Exec is the program that is asked.
	Exec ProbeExec `json:"exec"`
	// InitialDelaySeconds is the time, in seconds, from the start of the client to the
	// first probe at the earliest; a client that its class can tell to be ready is not
	// asked before it is. Default 10, 0 to 86400.
	InitialDelaySeconds *int32 `json:"initialDelaySeconds,omitempty"`
	// PeriodSeconds is the time, in seconds, from one probe to the next. Default 10, 1 to
	// 86400.
	PeriodSeconds *int32 `json:"periodSeconds,omitempty"`
	// TimeoutSeconds is the time, in seconds, after which a probe is ended, with its whole
	// process group, and has given no answer. Default 1, 1 to 300.
	TimeoutSeconds *int32 `json:"timeoutSeconds,omitempty"`
	// FailureThreshold is the number of failures in a row that replace the client. Default
	// 3, 1 to 100.
	FailureThreshold *int32 `json:"failureThreshold,omitempty"`
}

// ProbeExec is a program whose exit status is the answer.
type ProbeExec struct {
	// Command is an argv, run without a shell in the directory and with the environment
	// of the client; nothing in it is expanded. Status 0 is a success, any other a
	// failure, but for 126 and 127: by them a shell says that it could not run the
	// program, which is no answer. What it prints is thrown away, but for the first line
	// of its standard error, which is shown to people.
	Command []string `json:"command"`
}

// ProbeResult is what the last probe of a client has said.
type ProbeResult string

// The results.
const (
	// ProbeSucceeded: the client is alive.
	ProbeSucceeded ProbeResult = "Succeeded"
	// ProbeFailed: the probe ended with a status that says otherwise.
	ProbeFailed ProbeResult = "Failed"
	// ProbeUnknown: it gave no answer, or there was none yet.
	ProbeUnknown ProbeResult = "Unknown"
)

// LivenessProbeStatus is what the liveness probe has said of the present client.
type LivenessProbeStatus struct {
	// Result of the last probe.
	Result ProbeResult `json:"result"`
	// Message says why, for a person; empty after a success.
	Message string `json:"message,omitempty"`
	// ConsecutiveFailures since the last success.
	ConsecutiveFailures int32 `json:"consecutiveFailures"`
	// LastProbeTime is when the last one ended; nil before the first.
	LastProbeTime *metav1.Time `json:"lastProbeTime,omitempty"`
	// NextProbeTime is when the next one is due; nil when none is.
	NextProbeTime *metav1.Time `json:"nextProbeTime,omitempty"`
}

func setProbeDefaults(p *LivenessProbe) {
	if p == nil {
		return
	}
	for _, f := range []struct {
		field **int32
		value int32
	}{
		{&p.InitialDelaySeconds, DefaultProbeInitialDelaySeconds},
		{&p.PeriodSeconds, DefaultProbePeriodSeconds},
		{&p.TimeoutSeconds, DefaultProbeTimeoutSeconds},
		{&p.FailureThreshold, DefaultProbeFailureThreshold},
	} {
		if *f.field == nil {
			*f.field = ptr.To(f.value)
		}
	}
}

// daySeconds bounds what is counted in seconds and may take long.
const daySeconds = 24 * 60 * 60

func validateProbe(p *LivenessProbe, path *field.Path) field.ErrorList {
	if p == nil {
		return nil
	}
	command := path.Child("exec", "command")
	errs := validateArgv(p.Exec.Command, command)
	if len(p.Exec.Command) == 0 {
		errs = append(errs, field.Required(command, "it is the program that is asked, such as [curl, -fsS, \"http://localhost:3000/health\"]"))
	}
	if total := bytesOf(nil, p.Exec.Command); total > maxArgvBytes {
		errs = append(errs, field.Invalid(command, field.OmitValueType{},
			fmt.Sprintf("the command has %d bytes; the system takes at most %d: put the text into a file", total, maxArgvBytes)))
	}
	errs = append(errs, between(path.Child("initialDelaySeconds"), p.InitialDelaySeconds, 0, daySeconds)...)
	errs = append(errs, between(path.Child("periodSeconds"), p.PeriodSeconds, 1, daySeconds)...)
	errs = append(errs, between(path.Child("timeoutSeconds"), p.TimeoutSeconds, 1, 300)...)
	return append(errs, between(path.Child("failureThreshold"), p.FailureThreshold, 1, 100)...)
}

// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/utils/ptr"
)

const probeHead = `apiVersion: muxlet.dev/v1alpha1
kind: Session
metadata: {name: a}
spec:
  client: {command: [a]}
  workspace: {directory: /a}
`

func TestALivenessProbeNeedsACommandOnly(t *testing.T) {
	docs := DecodeFile("f", []byte(probeHead+"  livenessProbe: {exec: {command: [check]}}\n"))
	require.Empty(t, texts(docs))
	s := docs.Items[0].Session.Spec
	want := &LivenessProbe{
		Exec: ProbeExec{Command: []string{"check"}}, InitialDelaySeconds: ptr.To[int32](10), PeriodSeconds: ptr.To[int32](10),
		TimeoutSeconds: ptr.To[int32](1), FailureThreshold: ptr.To[int32](3),
	}
	SetDefaults(&s)
	assert.Equal(t, want, s.LivenessProbe)
	SetDefaults(&s)
	assert.Equal(t, want, s.LivenessProbe, "again it changes nothing")
	none := SessionSpec{}
	SetDefaults(&none)
	assert.Nil(t, none.LivenessProbe, "nobody is asked who did not ask for it")
}

func TestALivenessProbeIsRefusedWithThePlaceOfTheMistake(t *testing.T) {
	for name, c := range map[string]struct {
		line string
		want []string
	}{
		"without a program":             {"livenessProbe: {}", []string{`f:7:3: spec.livenessProbe.exec.command: is required: it is the program that is asked, such as [curl, -fsS, "http://localhost:3000/health"]`}},
		"with no words":                 {"livenessProbe: {exec: {command: []}}", []string{`f:7:35: spec.livenessProbe.exec.command: is required: it is the program that is asked, such as [curl, -fsS, "http://localhost:3000/health"]`}},
		"with an empty word":            {"livenessProbe: {exec: {command: ['']}}", []string{"f:7:36: spec.livenessProbe.exec.command[0]: the program's name is empty"}},
		"as a text":                     {"livenessProbe: {exec: {command: curl -f x}}", []string{"f:7:35: spec.livenessProbe.exec.command: must be a list, one word each: [\"curl\", \"-f\", \"x\"]"}},
		"of another kind":               {"livenessProbe: {httpGet: {}}", []string{"f:7:19: spec.livenessProbe.httpGet: unknown field; the fields here are exec, initialDelaySeconds, periodSeconds, timeoutSeconds, failureThreshold"}},
		"with a threshold of successes": {"livenessProbe: {exec: {command: [a]}, successThreshold: 1}", []string{"f:7:41: spec.livenessProbe.successThreshold: unknown field; the fields here are exec, initialDelaySeconds, periodSeconds, timeoutSeconds, failureThreshold"}},
		"numbers that are too low": {"livenessProbe: {exec: {command: [a]}, initialDelaySeconds: -1, periodSeconds: 0, timeoutSeconds: 0, failureThreshold: 0}", []string{
			"f:7:62: spec.livenessProbe.initialDelaySeconds: -1 is not between 0 and 86400",
			"f:7:81: spec.livenessProbe.periodSeconds: 0 is not between 1 and 86400",
			"f:7:100: spec.livenessProbe.timeoutSeconds: 0 is not between 1 and 300",
			"f:7:121: spec.livenessProbe.failureThreshold: 0 is not between 1 and 100",
		}},
		"numbers that are too high": {"livenessProbe: {exec: {command: [a]}, initialDelaySeconds: 86401, periodSeconds: 86401, timeoutSeconds: 301, failureThreshold: 101}", []string{
			"f:7:62: spec.livenessProbe.initialDelaySeconds: 86401 is not between 0 and 86400",
			"f:7:84: spec.livenessProbe.periodSeconds: 86401 is not between 1 and 86400",
			"f:7:107: spec.livenessProbe.timeoutSeconds: 301 is not between 1 and 300",
			"f:7:130: spec.livenessProbe.failureThreshold: 101 is not between 1 and 100",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.want, texts(DecodeFile("f", []byte(probeHead+"  "+c.line+"\n"))))
		})
	}
}

func TestAProbeThatTheSystemWouldNotTakeIsRefused(t *testing.T) {
	s := valid()
	s.Spec.LivenessProbe = &LivenessProbe{Exec: ProbeExec{Command: []string{"sh", "-c", strings.Repeat("x", maxWordBytes)}}}
	SetDefaults(&s.Spec)
	errs := Validate(s)
	require.Len(t, errs, 1)
	assert.Equal(t, "spec.livenessProbe.exec.command[2]", errs[0].Field)
	s.Spec.LivenessProbe.Exec.Command = []string{"echo", "a\x00b"}
	require.Len(t, Validate(s), 1)
	words := make([]string, 9)
	for i := range words {
		words[i] = strings.Repeat("x", maxWordBytes-1)
	}
	s.Spec.LivenessProbe.Exec.Command = words
	errs = Validate(s)
	require.Len(t, errs, 1)
	assert.Contains(t, errs[0].Detail, "the system takes at most")
}

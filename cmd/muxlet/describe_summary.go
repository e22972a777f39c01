// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/muxlet/muxlet/spec"
)

// summary tells how the session is, why, and what a person can do about it.
func (d *description) summary() {
	reason, message := primaryReason(d.Session)
	d.field("Name", "%s", d.Name)
	d.field("Class", "%s", d.Spec.ClientClassName)
	d.field("Status", "%s", statusLine(d.status, reason))
	d.field("Message", "%s", message)
	d.field("What to do", "%s", whatToDo(d.Session, d.status, reason))
	d.field("Next attempt", "%s", nextAttempt(d))
	d.field("Source", "%s", source(d.Status.Source))
	if d.Status.Source != nil {
		if !strings.Contains(message, d.Status.Source.Error) {
			d.field("Problem", "%s", d.Status.Source.Error)
		}
		d.field("Held", "%s", d.Status.Source.Held)
	}
	d.field("Labels", "%s", labelList(d.Labels))
	d.field("Age", "%s", age(d.CreationTimestamp, d.now))
	if d.Spec.RestartPolicy != "" {
		d.field("Policies", "provisioning %s, restart %s, recovery %s, update %s, deletion %s",
			orAbsent(string(d.Spec.ProvisioningPolicy)), d.Spec.RestartPolicy, d.Spec.RecoveryPolicy, d.Spec.UpdateStrategy.Type, d.Spec.DeletionPolicy)
	}
	d.field("Initial prompt", "%s", promptSize(d.Spec.InitialPrompt))
}

// promptSize is how long a prompt is as it is handed over. Its text is nobody's who
// looks over a shoulder.
func promptSize(prompt string) string {
	prompt = strings.TrimRight(prompt, "\n")
	if prompt == "" {
		return ""
	}
	lines, bytes := 1+strings.Count(prompt, "\n"), len(prompt)
	words := map[bool]string{true: "s"}
	return fmt.Sprintf("%d byte%s in %d line%s, the first turn of each fresh conversation", bytes, words[bytes != 1], lines, words[lines != 1])
}

func statusLine(status spec.Status, reason string) string {
	if reason == "" || reason == string(status) {
		return string(status)
	}
	return fmt.Sprintf("%s (%s)", status, reason)
}

// primaryReason is the one reason, and its message, that explains the status
// best: why nothing could be observed, else what is wrong with the document when
// that keeps the client down, else what the reconciler decided, else why the
// session is not ready.
func primaryReason(s *spec.Session) (reason, message string) {
	status := spec.DisplayStatus(s)
	if c := failing(s, spec.ConditionObserved); c != nil {
		return c.Reason, c.Message
	}
	if c := failing(s, spec.ConditionAccepted); c != nil && (status == spec.StatusInvalid || status == spec.StatusConflict) {
		return c.Reason, c.Message
	}
	if d := s.Status.Decision; d != nil && d.Reason != "" {
		return d.Reason, d.Message
	}
	if c := meta.FindStatusCondition(s.Status.Conditions, spec.ConditionReady); c != nil {
		return c.Reason, c.Message
	}
	return spec.ReasonNotYetObserved, "The daemon has not looked at this session yet."
}

// failing is the condition if it is there and not True.
func failing(s *spec.Session, kind string) *metav1.Condition {
	c := meta.FindStatusCondition(s.Status.Conditions, kind)
	if c == nil || c.Status == metav1.ConditionTrue {
		return nil
	}
	return c
}

// nextAttempt is when the next start is due, and how bad it has been.
func nextAttempt(d *description) string {
	at := d.Status.NextAttemptTime
	if at == nil || at.IsZero() {
		return ""
	}
	when := soon(at.Sub(d.now))
	if n := d.Status.ConsecutiveDeaths; n > 0 {
		when += fmt.Sprintf(" (%s death in a row)", ordinal(n))
	}
	return when
}

// soon says when something is due that is so far away.
func soon(left time.Duration) string {
	if left <= 0 {
		return "now"
	}
	return "in " + duration.HumanDuration((left + time.Second - 1).Truncate(time.Second))
}

// ordinal is 1st, 2nd, 3rd, 4th, 11th, 21st.
func ordinal(n int32) string {
	suffix := "th"
	if n%100 < 11 || n%100 > 13 {
		switch n % 10 {
		case 1:
			suffix = "st"
		case 2:
			suffix = "nd"
		case 3:
			suffix = "rd"
		}
	}
	return fmt.Sprintf("%d%s", n, suffix)
}

func source(s *spec.SourceStatus) string {
	switch {
	case s == nil:
		return ""
	case s.Line == 0:
		return s.File
	}
	return fmt.Sprintf("%s:%d", s.File, s.Line)
}

func labelList(labels map[string]string) string {
	var list []string
	for key, value := range labels {
		list = append(list, key+"="+value)
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}

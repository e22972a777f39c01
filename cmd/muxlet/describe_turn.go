// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muxlet/muxlet/spec"
)

// turnDescription of one turn. What was sent is not part of it.
type turnDescription struct {
	*spec.Turn
	sheet
}

func (d *turnDescription) text() string {
	phase := spec.DisplayTurnStatus(d.Turn)
	reason, message := turnReason(d.Turn)
	status := string(phase)
	if reason != "" && reason != status {
		status += " (" + reason + ")"
	}
	d.field("Name", "%s", d.Name)
	d.field("Session", "%s", d.Spec.SessionName)
	d.field("Status", "%s", status)
	d.field("Message", "%s", message)
	d.field("What to do", "%s", d.advice(phase))
	if phase == spec.TurnFailed {
		d.field("Retryable", "%t", d.Status.Retryable)
	}
	d.field("Labels", "%s", labelList(d.Labels))
	if d.Status.Initial {
		d.field("Sent by", "spec.initialPrompt of the session, for a fresh conversation")
	}
	d.prompt()
	d.field("Incarnation", "%s", incarnation(d.Status.Incarnation))
	d.field("Conversation", "%s", d.Status.ConversationID)
	d.times()
	d.listConditions(spec.TurnConditionTypes, d.Status.Conditions)
	return d.written.String()
}

func (d *turnDescription) advice(phase spec.TurnPhase) string {
	advice := turnAdvice(d.Turn, phase)
	if phase == spec.TurnFailed && d.Status.Retryable && d.Spec.Prompt != "" {
		advice = strings.TrimSpace(advice + fmt.Sprintf(
			"\nThe same prompt: muxlet get turn %s -o jsonpath='{.spec.prompt}' | muxlet send %s", d.Name, d.Spec.SessionName))
	}
	return advice
}

// prompt tells how much was sent.
func (d *turnDescription) prompt() {
	kept := ""
	if d.Spec.Prompt == "" {
		kept = ", no longer kept"
	}
	d.field("Prompt", "%s in %s%s", count(int(d.Status.PromptBytes), "byte"), count(int(d.Status.PromptLines), "line"), kept)
}

func (d *turnDescription) times() {
	d.section("Times")
	created := d.CreationTimestamp
	for _, t := range []struct {
		label string
		at    *metav1.Time
	}{
		{"Sent", &created},
		{"Deadline", d.Spec.Deadline},
		{"Handed over", d.Status.HandedAt},
		{"Delivered", d.Status.DeliveredAt},
		{"Over", d.Status.FinishedAt},
	} {
		switch {
		case t.at == nil || t.at.IsZero():
		case t.at.After(d.now) && (d.Status.HandedAt != nil || d.Status.FinishedAt != nil):
			// The deadline does not count any more.
			d.sub(t.label, "%s", stamp(*t.at))
		case t.at.After(d.now):
			d.sub(t.label, "%s (in %s)", stamp(*t.at), age(metav1.NewTime(d.now), t.at.Time))
		default:
			d.sub(t.label, "%s (%s)", stamp(*t.at), ago(*t.at, d.now))
		}
	}
}

// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/muxlet/muxlet/spec"
)

// replacedWords say why a conversation was replaced.
var replacedWords = map[string]string{
	spec.ReplacedCleared:      "another one was begun in the client",
	spec.ReplacedForked:       "it was forked in the client",
	spec.ReplacedResumed:      "another one was resumed in the client",
	spec.ReplacedReported:     "the client told another one",
	spec.ReplacedNeverBegun:   "it never had a turn",
	spec.ReplacedMissing:      "it no longer existed",
	spec.ReplacedFresh:        "a person asked for a fresh one",
	spec.ReplacedAdopted:      "spec.conversation.id named another one",
	spec.ReplacedClassChanged: "the session got another client class",
}

// conversation tells which one the client has, and which it had before.
func (d *description) conversation() {
	c := d.Status.Conversation
	if c == nil {
		return
	}
	d.section("Conversation")
	d.sub("Id", "%s", orAbsent(c.ID))
	d.sub("Source", "%s", c.Source)
	d.sub("Resumable", "%s", resumable(c))
	d.sub("Directory", "%s", c.Directory)
	for i, past := range c.History {
		label := "Earlier"
		if i > 0 {
			label = " "
		}
		why := replacedWords[past.Reason]
		if why == "" {
			why = past.Reason
		}
		line := fmt.Sprintf("%s until %s (%s): %s", past.ID, ago(past.ReplacedAt, d.now), past.Reason, why)
		if past.ClientClassName != "" && past.ClientClassName != d.Spec.ClientClassName {
			line += ", class " + past.ClientClassName
		}
		d.earlier(label, line)
	}
}

// earlier is a line of the history; only the first has a label.
func (d *description) earlier(label, line string) {
	if label == " " {
		d.write("%*s%s\n", labelWidth, "", line)
		return
	}
	d.sub(label, "%s", line)
}

func resumable(c *spec.ConversationStatus) string {
	switch {
	case c.Resumable == nil:
		return "not known"
	case !*c.Resumable:
		return "no: there is no transcript of it with a turn"
	case c.Transcript == "":
		return "yes"
	}
	return "yes, by " + c.Transcript
}

// activity tells what the client does, how fresh that is, and why its last turn has
// failed.
func (d *description) activity() {
	a := d.Status.Activity
	if a == nil {
		return
	}
	d.section("Activity")
	d.sub("State", "%s for %s", a.State, age(a.Since, d.now))
	if asks := meta.FindStatusCondition(d.Status.Conditions, spec.ConditionInputRequired); asks != nil && asks.Status == metav1.ConditionTrue {
		d.sub("Question", "%s", asks.Reason+": "+asks.Message)
	}
	if a.AsksSince != nil {
		d.sub("Attention", "%s", attentionWords(d.Session, d.now))
	}
	if a.ReportedAt == nil {
		d.sub("Reported", "not since the daemon started; its files and its screen tell")
	} else {
		d.sub("Reported", "%s (%s)", ago(*a.ReportedAt, d.now), stamp(*a.ReportedAt))
	}
	if a.Failure != "" {
		d.sub("Failure", "%s", a.Failure+retryWords(a.RetryTime, d.now))
	}
}

// attentionWords say whether somebody has seen what the client has to show.
func attentionWords(s *spec.Session, now time.Time) string {
	a := s.Status.Activity
	if spec.AsksForAttention(s) {
		return fmt.Sprintf("wanted since %s; nobody has looked at it yet", stamp(*a.AsksSince))
	}
	if a.SeenAt == nil {
		return "not wanted"
	}
	return fmt.Sprintf("not wanted; somebody looked at it %s", ago(*a.SeenAt, now))
}

func retryWords(at *metav1.Time, now time.Time) string {
	if at == nil {
		return ""
	}
	if left := at.Sub(now); left > 0 {
		return fmt.Sprintf("; it may be used again in %s (%s)", duration.HumanDuration(left), stamp(*at))
	}
	return fmt.Sprintf("; it may be used again since %s", stamp(*at))
}

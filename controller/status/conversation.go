// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muxlet/muxlet/controller/plan"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec"
)

// unbound are the reasons for which a conversation is not bound although the session
// has one.
var unbound = map[string]bool{
	spec.ReasonConversationMissing: true, spec.ReasonConversationElsewhere: true, spec.ReasonConversationInUse: true,
	spec.ReasonRecordQuarantined: true,
}

func conversationBound(in Input) metav1.Condition {
	const kind = spec.ConditionConversationBound
	v, c := in.Plan.Verdict, in.Plan.Record.Conversation
	switch {
	case in.Class == nil && v.Reason == spec.ReasonClassNotFound:
		return condition(kind, metav1.ConditionUnknown, v.Reason, v.Message)
	case in.Class == nil:
		return condition(kind, metav1.ConditionUnknown, spec.ReasonUnknown, "its client class is not known")
	case !converses(in.Class):
		return condition(kind, metav1.ConditionFalse, spec.ReasonNotApplicable, fmt.Sprintf("class %s has no conversations", in.Class.Name))
	case unbound[v.Reason]:
		return condition(kind, metav1.ConditionFalse, v.Reason, v.Message)
	case v.Reason == spec.ReasonConversationUnknown:
		return condition(kind, metav1.ConditionUnknown, v.Reason, v.Message)
	case c == nil && alive(in) == observe.Running:
		return condition(kind, metav1.ConditionFalse, spec.ReasonConversationPending, "the client has not told its conversation yet")
	case c == nil:
		return condition(kind, metav1.ConditionFalse, spec.ReasonConversationPending, "the next client begins a conversation")
	case !c.Begun:
		return condition(kind, metav1.ConditionFalse, spec.ReasonConversationNew, fmt.Sprintf("conversation %s has had no turn yet", c.ID))
	}
	return condition(kind, metav1.ConditionTrue, spec.ReasonConversationBound, "conversation "+c.ID)
}

func converses(class *plan.Class) bool {
	identity := class.Spec.Conversation.Identity
	return identity != "" && identity != spec.IdentityNone
}

// tellsReady says whether the class tells when a client is ready; any other one is as
// soon as it runs.
func tellsReady(class *plan.Class) bool {
	return class.Spec.Ready.Pattern != "" || class.Spec.Reports != "" && class.Spec.Reports != spec.ReportsNone
}

// conversationStatus is nil for a class without conversations.
func conversationStatus(in Input) *spec.ConversationStatus {
	rec := in.Plan.Record
	if in.Class == nil || !converses(in.Class) || rec.Conversation == nil && len(rec.History) == 0 {
		return nil
	}
	s := &spec.ConversationStatus{}
	for _, past := range rec.History {
		s.History = append(s.History, spec.PastConversation{
			ID: past.ID, ReplacedAt: metav1.NewTime(past.ReplacedAt), Reason: past.Reason, ClientClassName: past.Class,
		})
	}
	c := rec.Conversation
	if c == nil {
		return s
	}
	s.ID, s.Source, s.Directory = c.ID, c.Source, c.Directory
	if before := in.Previous.Conversation; before != nil && before.ID == c.ID {
		s.Resumable, s.Transcript = before.Resumable, before.Transcript
	}
	if in.EvidenceOf != c.ID {
		return s
	}
	switch in.Evidence.State {
	case observe.EvidenceResumable:
		s.Resumable, s.Transcript = new(true), in.Evidence.Path
	case observe.EvidenceAbsent, observe.EvidenceUnusable:
		s.Resumable, s.Transcript = new(false), ""
	case observe.EvidenceUnknown:
	}
	return s
}

// activityStatus is nil without a client, and for a class that tells nothing.
func activityStatus(in Input) *spec.ActivityStatus {
	switch {
	case !in.Watched:
		return nil
	case in.Seen.Sight != plan.SightKnown:
		return in.Previous.Activity
	case alive(in) != observe.Running:
		return nil
	}
	s := &spec.ActivityStatus{State: spec.ActivityUnknown, Since: metav1.NewTime(in.Now)}
	if in.Sight.Activity != "" {
		s.State = in.Sight.Activity
	}
	if before := in.Previous.Activity; before != nil && before.State == s.State {
		s.Since = before.Since
	} else if !in.ActiveSince.IsZero() {
		s.Since = metav1.NewTime(in.ActiveSince)
	}
	s.ReportedAt, s.AsksSince, s.SeenAt = timeOf(in.ReportedAt), timeOf(in.AsksSince), timeOf(in.SeenAt)
	if f := in.Sight.Failure; f != nil {
		s.Failure = f.Reason
		if !f.Until.IsZero() {
			s.RetryTime = &metav1.Time{Time: f.Until}
		}
	}
	return s
}

// asks is the question that waits for a person; empty when none does.
func asks(in Input) (reason, message string) {
	if !in.Watched || alive(in) != observe.Running || in.Plan.Record.Stop != nil {
		return "", ""
	}
	switch {
	case in.Sight.Attention != nil:
		return in.Sight.Attention.Reason, in.Sight.Attention.Message
	case in.Plan.Verdict.Reason == spec.ReasonQuestion:
		return spec.ReasonQuestion, in.Plan.Verdict.Message
	}
	return "", ""
}

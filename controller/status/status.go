// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

// Package status is the only writer of conditions and events. It turns a
// decision and what it rested on into the words that a person reads. It decides
// nothing, and it never shows as true what was not observed.
package status

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muxlet/muxlet/controller/plan"
	"github.com/muxlet/muxlet/controller/record"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec"
)

// Input is what a status is made from.
type Input struct {
	Now time.Time
	// Previous status, for the times of transitions.
	Previous spec.SessionStatus
	// Plan is the decision; Seen and Workspace are what it rested on.
	Plan      plan.Plan
	Seen      plan.Seen
	Workspace plan.Workspace
	// Refusal is why the present document is not in use, or why there is none.
	Refusal plan.Verdict
	// Source of the document, with its problems.
	Source spec.SourceStatus
	// LastScreen of a dead pane.
	LastScreen []string
	// Class in force; nil when there is none. Watched says that its clients show whether
	// they are ready and what they do.
	Class   *plan.Class
	Watched bool
	// Evidence that was found of the conversation EvidenceOf.
	Evidence   observe.Evidence
	EvidenceOf string
	// Probed is what its liveness probe has said, NextProbe when that is due; zero when it
	// is not.
	Probed    observe.Probed
	NextProbe time.Time
	// Sight is what the present client shows, ActiveSince since when it does what it does,
	// ReportedAt when it last reported anything; zero when that is not known.
	// AsksSince is when it began to ask for attention, SeenAt when somebody last saw that.
	Sight                   observe.Sight
	ActiveSince, ReportedAt time.Time
	AsksSince, SeenAt       time.Time
}

// stalling are the reasons that hold until a person or the world acts.
var stalling = map[string]bool{
	spec.ReasonWorkspaceMissing: true, spec.ReasonWorkspaceNotDirectory: true, spec.ReasonWorkspaceInaccessible: true,
	spec.ReasonCommandNotFound: true, spec.ReasonEnvFileMissing: true, spec.ReasonEnvFileInvalid: true,
	spec.ReasonEnvFileUnreadable: true, spec.ReasonCommandNotExecutable: true,
	spec.ReasonNameConflict: true, spec.ReasonDuplicateClient: true, spec.ReasonInvalid: true,
	spec.ReasonDuplicateName: true, spec.ReasonRecordTooNew: true, spec.ReasonRecordQuarantined: true,
	spec.ReasonClassNotFound: true, spec.ReasonConversationMissing: true, spec.ReasonConversationElsewhere: true,
	spec.ReasonConversationInUse: true, spec.ReasonResourcesUnsupported: true,
	spec.ReasonStateUnwritable: true, spec.ReasonTooManyTerminals: true, spec.ReasonTooManyOpenFiles: true, spec.ReasonClientIgnoresKill: true,
}

// Summarize computes the status of a session that was visited.
func Summarize(in Input) spec.SessionStatus {
	rec := in.Plan.Record
	// A copy: the address of a part would keep the whole input as long as the
	// status, 20 KB for each session.
	source := in.Source
	s := spec.SessionStatus{
		ObservedGeneration: rec.Generation,
		Conditions:         append([]metav1.Condition(nil), in.Previous.Conditions...),
		Client:             clientStatus(in),
		Conversation:       conversationStatus(in),
		Activity:           activityStatus(in),
		LivenessProbe:      probeStatus(in),
		Workspace:          spec.WorkspaceStatus{Path: in.Workspace.Path},
		Tmux:               tmuxStatus(in),
		ConsecutiveDeaths:  int32(rec.BackOff.Deaths),
		Source:             &source,
		Evidence:           evidence(in),
		Decision:           decision(in),
	}
	if !in.Plan.NextAttempt.IsZero() {
		s.NextAttemptTime = &metav1.Time{Time: in.Plan.NextAttempt}
	}
	for _, c := range conditions(in) {
		c.ObservedGeneration = rec.Generation
		c.LastTransitionTime = metav1.NewTime(in.Now)
		meta.SetStatusCondition(&s.Conditions, c)
	}
	return s
}

func conditions(in Input) []metav1.Condition {
	return []metav1.Condition{
		accepted(in), observed(in), workspaceReady(in), clientAlive(in),
		conversationBound(in), upToDate(in), ready(in), suspended(in), inputRequired(in), stalled(in),
	}
}

func condition(kind string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message}
}

func accepted(in Input) metav1.Condition {
	if in.Refusal.Reason != "" {
		return condition(spec.ConditionAccepted, metav1.ConditionFalse, in.Refusal.Reason, in.Refusal.Message)
	}
	if in.Source.Held != "" {
		return condition(spec.ConditionAccepted, metav1.ConditionTrue, spec.ReasonRemovalHeld, in.Source.Held)
	}
	return condition(spec.ConditionAccepted, metav1.ConditionTrue, spec.ReasonAccepted, "the document is valid")
}

func observed(in Input) metav1.Condition {
	if in.Seen.Sight == plan.SightKnown {
		return condition(spec.ConditionObserved, metav1.ConditionTrue, spec.ReasonObserved, "tmux and the process table answered")
	}
	return condition(spec.ConditionObserved, metav1.ConditionFalse, in.Seen.Reason, in.Plan.Verdict.Message)
}

func workspaceReady(in Input) metav1.Condition {
	if in.Workspace.Obstacle != "" {
		return condition(spec.ConditionWorkspaceReady, metav1.ConditionFalse, in.Workspace.Obstacle, in.Workspace.Message)
	}
	return condition(spec.ConditionWorkspaceReady, metav1.ConditionTrue, spec.ReasonWorkspaceReady, in.Workspace.Path)
}

// alive judges the client that the plan's record names by what was seen.
func alive(in Input) observe.Liveness {
	if in.Seen.Sight != plan.SightKnown {
		return observe.LivenessUnknown
	}
	c := in.Plan.Record.Client
	switch {
	case c == nil:
		return observe.Gone
	case in.Seen.ReceiptState == plan.ReceiptFound && in.Seen.Receipt.Attempt == c.Attempt:
		return in.Seen.ReceiptProcess
	case in.Plan.Verdict.Reason == spec.ReasonAdopted:
		return observe.Running
	default:
		return in.Seen.Client
	}
}

func clientAlive(in Input) metav1.Condition {
	v := in.Plan.Verdict
	switch alive(in) {
	case observe.Running:
		reason, message := spec.ReasonRunning, fmt.Sprintf("pid %d runs", in.Plan.Record.Client.Process.PID)
		switch said, why := unwell(in); {
		case in.Plan.Record.Stop != nil:
			reason = spec.ReasonStopping
		case said != "":
			reason, message = said, message+"; "+why
		}
		return condition(spec.ConditionClientAlive, metav1.ConditionTrue, reason, message)
	case observe.Gone:
		switch {
		case in.Plan.Record.Attempt != nil:
			return condition(spec.ConditionClientAlive, metav1.ConditionFalse, spec.ReasonStarting, v.Message)
		case len(in.Seen.Clients) > 0:
			// Processes of the session run, and none of them is its client.
			return condition(spec.ConditionClientAlive, metav1.ConditionFalse, v.Reason, v.Message)
		}
		return condition(spec.ConditionClientAlive, metav1.ConditionFalse, spec.ReasonNoClient, "no client runs")
	case observe.LivenessUnknown:
	}
	return condition(spec.ConditionClientAlive, metav1.ConditionUnknown, unknownReason(in), unknownMessage(in))
}

func unknownReason(in Input) string {
	if in.Seen.Reason != "" {
		return in.Seen.Reason
	}
	return spec.ReasonProcessUnknown
}

// unknownMessage gives the last evidence and its age.
func unknownMessage(in Input) string {
	last := in.Previous.Evidence
	if last == nil || last.ObservedAt.IsZero() {
		return "nothing was observed since the daemon started"
	}
	return fmt.Sprintf("last seen %s ago: pane %s, process %s", in.Now.Sub(last.ObservedAt.Time).Round(time.Second), last.Pane, last.Process)
}

func upToDate(in Input) metav1.Condition {
	rec := in.Plan.Record
	switch c := rec.Client; {
	case c == nil:
		return condition(spec.ConditionUpToDate, metav1.ConditionTrue, spec.ReasonNoClient, "the next client is started from the present spec")
	case alive(in) == observe.LivenessUnknown:
		return condition(spec.ConditionUpToDate, metav1.ConditionUnknown, unknownReason(in), unknownMessage(in))
	case in.Plan.Pending != "":
		reason := in.Plan.PendingReason
		if reason == "" {
			reason = spec.ReasonUpdatePending
		}
		return condition(spec.ConditionUpToDate, metav1.ConditionFalse, reason, in.Plan.Pending)
	case c.Launched == nil || rec.Spec == nil:
		return condition(spec.ConditionUpToDate, metav1.ConditionUnknown, spec.ReasonLaunchedSpecUnknown, "the client was adopted; what it was started from is not known")
	case rec.Stop != nil && rec.Stop.Reason == record.StopUpdating:
		return condition(spec.ConditionUpToDate, metav1.ConditionFalse, spec.ReasonUpdating, "the client is being replaced")
	}
	return condition(spec.ConditionUpToDate, metav1.ConditionTrue, spec.ReasonUpToDate, "the client runs what the spec says")
}

func ready(in Input) metav1.Condition {
	v := in.Plan.Verdict
	switch alive(in) {
	case observe.LivenessUnknown:
		return condition(spec.ConditionReady, metav1.ConditionUnknown, unknownReason(in), unknownMessage(in))
	case observe.Running:
		if reason, message := asks(in); reason != "" {
			return condition(spec.ConditionReady, metav1.ConditionFalse, reason, message)
		}
		switch {
		case v.Reason == spec.ReasonReady:
			return condition(spec.ConditionReady, metav1.ConditionTrue, v.Reason, "the client can take a turn")
		case v.Reason != spec.ReasonRunning && v.Reason != spec.ReasonStarted && v.Reason != spec.ReasonAdopted:
		case in.Class == nil || !tellsReady(in.Class):
			return condition(spec.ConditionReady, metav1.ConditionTrue, spec.ReasonRunning, "the client runs in its pane")
		case in.Plan.Record.Client.ReadyAt.IsZero():
			return condition(spec.ConditionReady, metav1.ConditionFalse, spec.ReasonNotReady, "the client runs and has not said that it can take a turn")
		default:
			return condition(spec.ConditionReady, metav1.ConditionTrue, spec.ReasonReady, "the client can take a turn")
		}
	case observe.Gone:
	}
	return condition(spec.ConditionReady, metav1.ConditionFalse, v.Reason, v.Message)
}

func suspended(in Input) metav1.Condition {
	if s := in.Plan.Record.Spec; s != nil && s.Suspend {
		return condition(spec.ConditionSuspended, metav1.ConditionTrue, spec.ReasonSuspended, "spec.suspend is true")
	}
	return condition(spec.ConditionSuspended, metav1.ConditionFalse, spec.ReasonNotSuspended, "spec.suspend is false")
}

func inputRequired(in Input) metav1.Condition {
	if alive(in) == observe.LivenessUnknown {
		return condition(spec.ConditionInputRequired, metav1.ConditionUnknown, unknownReason(in), unknownMessage(in))
	}
	if reason, message := asks(in); reason != "" {
		return condition(spec.ConditionInputRequired, metav1.ConditionTrue, reason, message)
	}
	return condition(spec.ConditionInputRequired, metav1.ConditionFalse, spec.ReasonNothingAsked, "no question waits for a person")
}

func stalled(in Input) metav1.Condition {
	v := in.Plan.Verdict
	if in.Seen.Sight != plan.SightKnown && v.Reason != spec.ReasonStateUnwritable {
		return condition(spec.ConditionStalled, metav1.ConditionUnknown, unknownReason(in), "nothing is decided while nothing is observed")
	}
	if stalling[v.Reason] {
		return condition(spec.ConditionStalled, metav1.ConditionTrue, v.Reason, v.Message)
	}
	return condition(spec.ConditionStalled, metav1.ConditionFalse, spec.ReasonProgressing, "muxlet can go on by itself")
}

func clientStatus(in Input) spec.ClientStatus {
	rec := in.Plan.Record
	s := spec.ClientStatus{Incarnation: rec.Incarnation, RestartCount: rec.RestartCount(), LastTermination: termination(rec.LastTermination)}
	for _, p := range rec.Survivors {
		s.Survivors = append(s.Survivors, p.PID)
	}
	if c := rec.Client; c != nil && alive(in) == observe.Running {
		if c.Scope.Name != "" {
			s.Scope = &spec.ScopeStatus{Name: c.Scope.Name, ControlGroup: c.Scope.ControlGroup}
		}
		s.Pid, s.StartedAt = c.Process.PID, &metav1.Time{Time: c.StartedAt}
		s.Ready = ready(in).Status == metav1.ConditionTrue
	}
	return s
}

func termination(t *record.Termination) *spec.Termination {
	if t == nil {
		return nil
	}
	out := &spec.Termination{Incarnation: t.Incarnation, Reason: t.Reason, Message: t.Message, FinishedAt: metav1.NewTime(t.At)}
	if e := t.Exit; e != nil {
		code := int32(e.Code)
		if e.Signal != 0 {
			code, out.Signal = int32(128+e.Signal), plan.SignalName(e.Signal)
		}
		out.ExitCode = &code
	}
	return out
}

func tmuxStatus(in Input) *spec.TmuxStatus {
	if in.Seen.Sight != plan.SightKnown {
		return in.Previous.Tmux
	}
	for _, pane := range in.Seen.Panes {
		if c := in.Plan.Record.Client; (c == nil || pane.PaneID == c.Pane) && !pane.Taken() {
			return &spec.TmuxStatus{Socket: in.Seen.Server.Socket, Session: pane.SessionID, Pane: pane.PaneID, Attached: pane.Attached}
		}
	}
	return nil
}

func evidence(in Input) *spec.EvidenceStatus {
	if in.Seen.Sight != plan.SightKnown {
		if in.Previous.Evidence == nil {
			return &spec.EvidenceStatus{Pane: observe.PresenceUnknown.String(), Process: observe.LivenessUnknown.String(), Message: in.Seen.Message}
		}
		last := *in.Previous.Evidence
		last.Message = in.Seen.Message
		return &last
	}
	e := &spec.EvidenceStatus{ObservedAt: metav1.NewTime(in.Seen.At), Pane: observe.Absent.String(), Process: alive(in).String(), LastScreen: in.LastScreen}
	if reason, _ := asks(in); reason != "" {
		e.LastScreen = in.Sight.Screen
	}
	for _, pane := range in.Seen.Panes {
		if c := in.Plan.Record.Client; (c == nil || c.Pane == pane.PaneID) && !pane.Taken() {
			e.Pane = pane.State.String()
			e.Message = fmt.Sprintf("pane %s with pid %d in tmux session %s (%s)", pane.PaneID, pane.PID, pane.SessionName, pane.SessionID)
		}
	}
	return e
}

func decision(in Input) *spec.DecisionStatus {
	v := in.Plan.Verdict
	d := &spec.DecisionStatus{Rule: v.Rule, Action: string(in.Plan.Action.Kind), Reason: v.Reason, Message: v.Message, At: metav1.NewTime(in.Now)}
	if last := in.Previous.Decision; last != nil && last.Rule == d.Rule && last.Reason == d.Reason && last.Action == d.Action {
		d.At = last.At
	}
	return d
}

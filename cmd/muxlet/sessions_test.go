// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muxlet/muxlet/spec"
)

// noon is when the tests take place.
var noon = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

func before(d time.Duration) metav1.Time { return metav1.NewTime(noon.Add(-d)) }

func pointer[T any](value T) *T { return &value }

// condition sets one condition of a session.
func condition(s *spec.Session, kind string, status metav1.ConditionStatus, reason, message string) {
	meta.SetStatusCondition(&s.Status.Conditions, metav1.Condition{
		Type: kind, Status: status, Reason: reason, Message: message, LastTransitionTime: before(90 * time.Second),
	})
}

// declared is a session of which nothing is wrong and nothing runs.
func declared(name string) spec.Session {
	s := spec.Session{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: spec.Namespace, UID: types.UID("uid-of-" + name), Generation: 1,
			CreationTimestamp: before(26 * time.Hour),
		},
		Spec: spec.SessionSpec{
			Client:    spec.ClientSpec{Command: []string{"npm", "run", "dev"}},
			Workspace: spec.WorkspaceSpec{Directory: "~/src/" + name},
		},
	}
	spec.SetDefaults(&s.Spec)
	s.Status.ObservedGeneration = 1
	s.Status.Workspace.Path = "/home/me/src/" + name
	s.Status.Source = &spec.SourceStatus{File: "/home/me/.config/muxlet/sessions/" + name + ".yaml", Line: 1}
	s.Status.Evidence = &spec.EvidenceStatus{ObservedAt: before(2 * time.Second), Pane: "Absent", Process: "Gone"}
	condition(&s, spec.ConditionAccepted, metav1.ConditionTrue, spec.ReasonAccepted, "")
	condition(&s, spec.ConditionObserved, metav1.ConditionTrue, spec.ReasonObserved, "")
	condition(&s, spec.ConditionWorkspaceReady, metav1.ConditionTrue, spec.ReasonWorkspaceReady, "")
	condition(&s, spec.ConditionClientAlive, metav1.ConditionFalse, spec.ReasonNoClient, "")
	condition(&s, spec.ConditionConversationBound, metav1.ConditionFalse, spec.ReasonNotApplicable, "")
	condition(&s, spec.ConditionUpToDate, metav1.ConditionTrue, spec.ReasonUpToDate, "")
	condition(&s, spec.ConditionReady, metav1.ConditionFalse, spec.ReasonNoClient, "")
	condition(&s, spec.ConditionSuspended, metav1.ConditionFalse, spec.ReasonNotSuspended, "")
	condition(&s, spec.ConditionInputRequired, metav1.ConditionFalse, spec.ReasonNothingAsked, "")
	condition(&s, spec.ConditionStalled, metav1.ConditionFalse, spec.ReasonProgressing, "")
	return s
}

func decide(s *spec.Session, rule, action, reason, message string) {
	s.Status.Decision = &spec.DecisionStatus{Rule: rule, Action: action, Reason: reason, Message: message, At: before(30 * time.Second)}
}

func place(s *spec.Session, pane string) {
	s.Status.Tmux = &spec.TmuxStatus{Socket: "/run/muxlet/tmux.sock", Session: "$3", Pane: pane}
}

// runningSession is one with a client.
func runningSession(name string, incarnation int64, pid int) spec.Session {
	s := declared(name)
	s.Status.Client = spec.ClientStatus{
		Incarnation: incarnation, Pid: pid, StartedAt: pointer(before(5 * time.Minute)),
		RestartCount: incarnation - 1, Ready: true,
	}
	place(&s, "%7")
	s.Status.Evidence.Pane, s.Status.Evidence.Process = "Present", "Running"
	condition(&s, spec.ConditionClientAlive, metav1.ConditionTrue, spec.ReasonRunning, "")
	condition(&s, spec.ConditionReady, metav1.ConditionTrue, spec.ReasonRunning, "")
	decide(&s, "live", "", spec.ReasonRunning, "The client runs in its pane.")
	return s
}

// ended gives a session an earlier incarnation that came to an end.
func ended(s *spec.Session, incarnation int64, end spec.Termination) {
	end.Incarnation = incarnation
	s.Status.Client.LastTermination = &end
	s.Status.Client.Incarnation = max(s.Status.Client.Incarnation, incarnation)
	s.Status.Client.RestartCount = max(s.Status.Client.RestartCount, incarnation-1)
}

func killed() spec.Termination {
	return spec.Termination{ExitCode: pointer(int32(137)), Signal: "SIGKILL", Reason: spec.ReasonKilled, FinishedAt: before(2 * time.Minute)}
}

func failed() spec.Termination {
	return spec.Termination{ExitCode: pointer(int32(1)), Reason: spec.ReasonExited, FinishedAt: before(4 * time.Second)}
}

// downSession is one without a client, for a reason that stands in Ready,
// ClientAlive and the decision.
func downSession(name, reason, message string) spec.Session {
	s := declared(name)
	condition(&s, spec.ConditionReady, metav1.ConditionFalse, reason, message)
	condition(&s, spec.ConditionClientAlive, metav1.ConditionFalse, reason, message)
	decide(&s, "no client", "", reason, message)
	return s
}

// stalledSession is a downSession that waits for a person or the world.
func stalledSession(name, reason, message string) spec.Session {
	s := downSession(name, reason, message)
	condition(&s, spec.ConditionStalled, metav1.ConditionTrue, reason, message)
	return s
}

func crashLooping(name string) spec.Session {
	s := downSession(name, spec.ReasonCrashLoopBackOff, "The client exited with status 1; the 4th start waits 12s.")
	ended(&s, 4, failed())
	place(&s, "%9")
	s.Status.Evidence.Pane = "Dead"
	s.Status.Evidence.LastScreen = []string{"> dev", "Error: Cannot find module 'vite'", "\x1b[31mnpm ERR!\x1b[0m code 1"}
	s.Status.ConsecutiveDeaths = 4
	s.Status.NextAttemptTime = pointer(metav1.NewTime(noon.Add(12 * time.Second)))
	return s
}

func suspendedSession(name string) spec.Session {
	s := downSession(name, spec.ReasonSuspended, "spec.suspend is true.")
	s.Spec.Suspend = true
	condition(&s, spec.ConditionSuspended, metav1.ConditionTrue, spec.ReasonSuspended, "spec.suspend is true.")
	return s
}

// dormantSession is one that has a client at a demand alone, and had one.
func dormantSession(name string) spec.Session {
	s := downSession(name, spec.ReasonDormant, "There is no client until a turn, resume or attach asks for one.")
	condition(&s, spec.ConditionClientAlive, metav1.ConditionFalse, spec.ReasonNoClient, "no client runs")
	s.Spec.ProvisioningPolicy = spec.ProvisioningOnDemand
	return s
}

func unknownSession(name string) spec.Session {
	s := runningSession(name, 2, 4711)
	s.Status.Client.Pid, s.Status.Client.Ready = 0, false
	message := "tmux did not answer within 5s; last seen running 40s ago."
	s.Status.Evidence = &spec.EvidenceStatus{
		ObservedAt: before(40 * time.Second), Pane: "Unknown", Process: "Running", Message: "Pane %7 ran pid 4711.",
	}
	condition(&s, spec.ConditionObserved, metav1.ConditionFalse, spec.ReasonTmuxTimeout, message)
	condition(&s, spec.ConditionClientAlive, metav1.ConditionUnknown, spec.ReasonTmuxTimeout, message)
	condition(&s, spec.ConditionReady, metav1.ConditionUnknown, spec.ReasonTmuxTimeout, message)
	decide(&s, "observation unknown", "", spec.ReasonTmuxTimeout, message)
	return s
}

func invalidSession(name string) spec.Session {
	s := declared(name)
	message := s.Status.Source.File + ":6:3: spec.workspce: unknown field (did you mean \"workspace\"?)"
	s.Status.Source.Error = message
	condition(&s, spec.ConditionAccepted, metav1.ConditionFalse, spec.ReasonInvalid, message)
	condition(&s, spec.ConditionStalled, metav1.ConditionTrue, spec.ReasonInvalid, message)
	condition(&s, spec.ConditionReady, metav1.ConditionFalse, spec.ReasonInvalid, message)
	s.Spec = spec.SessionSpec{}
	s.Status.Workspace.Path = ""
	return s
}

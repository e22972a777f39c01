// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/muxlet/muxlet/actuate"
	"github.com/muxlet/muxlet/controller/plan"
	"github.com/muxlet/muxlet/controller/record"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec"
)

var (
	now     = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	client  = observe.Process{PID: 100, Ticks: 1000}
	another = observe.Process{PID: 90, Ticks: 900}
)

type given func(*Input)

func aSpec() *spec.SessionSpec {
	s := &spec.SessionSpec{Client: spec.ClientSpec{Command: []string{"agent"}}, Workspace: spec.WorkspaceSpec{Directory: "/work"}}
	spec.SetDefaults(s)
	return s
}

// down is a session without a client for the reason.
func down(reason string, gs ...given) Input {
	in := Input{
		Now: now,
		Plan: plan.Plan{
			Record:  record.Record{UID: "u", Name: "shop", Generation: 2, Incarnation: 3, Spec: aSpec()},
			Verdict: plan.Verdict{Rule: "Rule", Reason: reason, Message: "in words"},
		},
		Seen:      plan.Seen{Sight: plan.SightKnown, At: now, ReceiptState: plan.ReceiptMissing, Server: observe.Server{Socket: "/run/tmux.sock"}},
		Workspace: plan.Workspace{Path: "/work"},
		Source:    spec.SourceStatus{File: "/m/shop.yaml", Line: 3},
		Class:     &plan.Class{Name: spec.ClassExec, Spec: &spec.ClientClassSpec{}},
	}
	for _, g := range gs {
		g(&in)
	}
	return in
}

// up is a session whose client runs in its pane.
func up(reason string, gs ...given) Input {
	in := down(reason)
	in.Plan.Record.Client = &record.Client{Incarnation: 3, Attempt: "a3", Process: client, Pane: "%3", PanePID: 100, StartedAt: now.Add(-time.Minute), Launched: aSpec()}
	in.Seen.Client = observe.Running
	in.Seen.Panes = []plan.SeenPane{{
		Pane: observe.Pane{SessionID: "$1", SessionName: "shop", PaneID: "%3", PID: 100, State: observe.Present, Attached: 2}, Process: client, Live: observe.Running,
	}}
	for _, g := range gs {
		g(&in)
	}
	return in
}

// blind: tmux could not be asked.
func blind(in *Input) {
	in.Seen = plan.Seen{Reason: spec.ReasonTmuxTimeout, Message: "tmux did not answer"}
	in.Plan.Verdict = plan.Verdict{Rule: "Unknown", Reason: spec.ReasonTmuxTimeout, Message: "tmux did not answer; unknown for 7s"}
}

func attempted(in *Input) { in.Plan.Record.Attempt = &record.Attempt{ID: "a4", Incarnation: 4} }

func stopping(p observe.Process) given {
	return func(in *Input) { in.Plan.Record.Stop = &record.Stop{Reason: record.StopUpdating, Process: p} }
}

func judged(l observe.Liveness) given { return func(in *Input) { in.Seen.Client = l } }

func refused(reason string) given {
	return func(in *Input) { in.Refusal = plan.Verdict{Reason: reason, Message: "refused"} }
}

func obstructed(reason string) given {
	return func(in *Input) { in.Workspace.Obstacle, in.Workspace.Message = reason, "no such directory" }
}

func suspendedSpec(in *Input) { in.Plan.Record.Spec.Suspend = true }

func onDemand(in *Input) { in.Plan.Record.Spec.ProvisioningPolicy = spec.ProvisioningOnDemand }

func edited(in *Input) { in.Plan.Record.Spec.Client.Command = []string{"agent", "--new"} }

// executed: the receipt of this pass has made the client.
func executed(l observe.Liveness) given {
	return func(in *Input) {
		in.Seen.Client = observe.LivenessUnknown // there was none when it was looked at
		in.Seen.ReceiptState, in.Seen.ReceiptProcess = plan.ReceiptFound, l
		in.Seen.Receipt = observe.Receipt{Attempt: "a3", Process: client, Stage: observe.StageExec}
	}
}

func TestEveryConditionIsPresentFromTheFirstVisit(t *testing.T) {
	for _, in := range []Input{down(spec.ReasonStarting), up(spec.ReasonRunning), up("", blind), {}} {
		s := Summarize(in)
		require.Len(t, s.Conditions, len(spec.ConditionTypes))
		for _, kind := range spec.ConditionTypes {
			require.NotNil(t, meta.FindStatusCondition(s.Conditions, kind), kind)
		}
	}
}

func TestConditions(t *testing.T) {
	const yes, no, unknown = metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown
	for _, r := range []struct {
		name   string
		in     Input
		kind   string
		status metav1.ConditionStatus
		reason string
	}{
		{"a valid document", up(spec.ReasonRunning), spec.ConditionAccepted, yes, spec.ReasonAccepted},
		{"a document that is not in use", up(spec.ReasonRunning, refused(spec.ReasonInvalid)), spec.ConditionAccepted, no, spec.ReasonInvalid},
		{"a removal that is held", up(spec.ReasonRunning, func(in *Input) { in.Source.Held = "the root is gone" }), spec.ConditionAccepted, yes, spec.ReasonRemovalHeld},
		{"a document that is not in use and held", up(spec.ReasonRunning, refused(spec.ReasonInvalid), func(in *Input) { in.Source.Held = "x" }), spec.ConditionAccepted, no, spec.ReasonInvalid},

		{"tmux answered", up(spec.ReasonRunning), spec.ConditionObserved, yes, spec.ReasonObserved},
		{"tmux did not", up("", blind), spec.ConditionObserved, no, spec.ReasonTmuxTimeout},

		{"the workspace is there", down(spec.ReasonStarting), spec.ConditionWorkspaceReady, yes, spec.ReasonWorkspaceReady},
		{"it is not", down(spec.ReasonWorkspaceMissing, obstructed(spec.ReasonWorkspaceMissing)), spec.ConditionWorkspaceReady, no, spec.ReasonWorkspaceMissing},
		{"it is not, and the client runs", up(spec.ReasonRunning, obstructed(spec.ReasonWorkspaceMissing)), spec.ConditionWorkspaceReady, no, spec.ReasonWorkspaceMissing},

		{"the client runs", up(spec.ReasonRunning), spec.ConditionClientAlive, yes, spec.ReasonRunning},
		{"the client was executed just now", up(spec.ReasonStarted, executed(observe.Running)), spec.ConditionClientAlive, yes, spec.ReasonRunning},
		{"the client was executed and is gone", up(spec.ReasonStarted, executed(observe.Gone)), spec.ConditionClientAlive, no, spec.ReasonNoClient},
		{"the receipt is another attempt's", up(spec.ReasonRunning, executed(observe.Gone), judged(observe.Running), func(in *Input) { in.Seen.Receipt.Attempt = "a9" }), spec.ConditionClientAlive, yes, spec.ReasonRunning},
		{"the client was adopted just now", up(spec.ReasonAdopted, judged(observe.LivenessUnknown)), spec.ConditionClientAlive, yes, spec.ReasonRunning},
		{"the client is being ended", up(spec.ReasonStopping, stopping(client)), spec.ConditionClientAlive, yes, spec.ReasonStopping},
		{"the client is gone", up(spec.ReasonDied, judged(observe.Gone)), spec.ConditionClientAlive, no, spec.ReasonNoClient},
		{"the client cannot be judged", up(spec.ReasonProcessUnknown, judged(observe.LivenessUnknown)), spec.ConditionClientAlive, unknown, spec.ReasonProcessUnknown},
		{"nothing could be observed", up("", blind), spec.ConditionClientAlive, unknown, spec.ReasonTmuxTimeout},
		{"nothing could be observed of one without a client", down("", blind), spec.ConditionClientAlive, unknown, spec.ReasonTmuxTimeout},
		{"there is none", down(spec.ReasonCompleted), spec.ConditionClientAlive, no, spec.ReasonNoClient},
		{"there is none until a demand", down(spec.ReasonDormant, onDemand), spec.ConditionClientAlive, no, spec.ReasonNoClient},
		{"there was one, and there is none until a demand", up(spec.ReasonDormant, onDemand, judged(observe.Gone)), spec.ConditionClientAlive, no, spec.ReasonNoClient},
		{"there is none yet", down(spec.ReasonStarting, attempted), spec.ConditionClientAlive, no, spec.ReasonStarting},
		{"others run, and none of them is the session's", down(spec.ReasonDuplicateClient, func(in *Input) { in.Seen.Clients = make([]observe.MarkedProcess, 2) }), spec.ConditionClientAlive, no, spec.ReasonDuplicateClient},

		{"class exec has no conversation", up(spec.ReasonRunning), spec.ConditionConversationBound, no, spec.ReasonNotApplicable},

		{"the client is what the spec says", up(spec.ReasonRunning), spec.ConditionUpToDate, yes, spec.ReasonUpToDate},
		{"there is no spec to compare with", up(spec.ReasonRunning, func(in *Input) { in.Plan.Record.Spec = nil }), spec.ConditionUpToDate, unknown, spec.ReasonLaunchedSpecUnknown},
		{"there is no client", down(spec.ReasonCompleted), spec.ConditionUpToDate, yes, spec.ReasonNoClient},
		{"there is no client until a demand", down(spec.ReasonDormant, onDemand), spec.ConditionUpToDate, yes, spec.ReasonNoClient},
		{"an edit waits", up(spec.ReasonRunning, edited, func(in *Input) { in.Plan.Pending = "spec.client.command changed: waits" }), spec.ConditionUpToDate, no, spec.ReasonUpdatePending},
		{"an edit is being carried out, in each pass of that", up(spec.ReasonStopping, edited, stopping(client)), spec.ConditionUpToDate, no, spec.ReasonUpdating},
		{"what was started is not known", up(spec.ReasonRunning, edited, func(in *Input) { in.Plan.Record.Client.Launched = nil }), spec.ConditionUpToDate, unknown, spec.ReasonLaunchedSpecUnknown},
		{"nothing could be observed, so nothing is said of what runs", up("", blind), spec.ConditionUpToDate, unknown, spec.ReasonTmuxTimeout},

		{"ready", up(spec.ReasonRunning), spec.ConditionReady, yes, spec.ReasonRunning},
		{"ready since just now", up(spec.ReasonStarted, executed(observe.Running)), spec.ConditionReady, yes, spec.ReasonRunning},
		{"ready and adopted", up(spec.ReasonAdopted), spec.ConditionReady, yes, spec.ReasonRunning},
		{"not ready while it is being ended", up(spec.ReasonStopping, stopping(client)), spec.ConditionReady, no, spec.ReasonStopping},
		{"not ready at rest until a demand", down(spec.ReasonDormant, onDemand), spec.ConditionReady, no, spec.ReasonDormant},
		{"not ready without a client", down(spec.ReasonCrashLoopBackOff), spec.ConditionReady, no, spec.ReasonCrashLoopBackOff},
		{"not known to be ready", up("", blind), spec.ConditionReady, unknown, spec.ReasonTmuxTimeout},
		{"not known to be ready, by its process", up(spec.ReasonProcessUnknown, judged(observe.LivenessUnknown)), spec.ConditionReady, unknown, spec.ReasonProcessUnknown},

		{"suspended", down(spec.ReasonSuspended, suspendedSpec), spec.ConditionSuspended, yes, spec.ReasonSuspended},
		{"suspended, known from its spec alone", up("", suspendedSpec, blind), spec.ConditionSuspended, yes, spec.ReasonSuspended},
		{"not suspended", up(spec.ReasonRunning), spec.ConditionSuspended, no, spec.ReasonNotSuspended},
		{"without a spec", down(spec.ReasonInvalid, func(in *Input) { in.Plan.Record.Spec = nil }), spec.ConditionSuspended, no, spec.ReasonNotSuspended},

		{"nothing is asked", up(spec.ReasonRunning), spec.ConditionInputRequired, no, spec.ReasonNothingAsked},
		{"not known whether anything is asked", up("", blind), spec.ConditionInputRequired, unknown, spec.ReasonTmuxTimeout},

		{"stalled", down(spec.ReasonCommandNotFound), spec.ConditionStalled, yes, spec.ReasonCommandNotFound},
		{"not stalled in back-off", down(spec.ReasonCrashLoopBackOff), spec.ConditionStalled, no, spec.ReasonProgressing},
		{"not stalled at rest", down(spec.ReasonCompleted), spec.ConditionStalled, no, spec.ReasonProgressing},
		{"not stalled at rest until a demand", down(spec.ReasonDormant, onDemand), spec.ConditionStalled, no, spec.ReasonProgressing},
		{"not known to be stalled", up("", blind), spec.ConditionStalled, unknown, spec.ReasonTmuxTimeout},
		{"a full disk stalls whatever is observed", up("", blind, func(in *Input) { in.Plan.Verdict.Reason = spec.ReasonStateUnwritable }), spec.ConditionStalled, yes, spec.ReasonStateUnwritable},
	} {
		t.Run(r.kind+": "+r.name, func(t *testing.T) {
			s := Summarize(r.in)
			c := meta.FindStatusCondition(s.Conditions, r.kind)
			require.Equal(t, r.status, c.Status, "%s: %s", c.Reason, c.Message)
			require.Equal(t, r.reason, c.Reason)
			require.NotEmpty(t, c.Message)
			require.Equal(t, int64(2), c.ObservedGeneration)
			require.Equal(t, now, c.LastTransitionTime.UTC())
		})
	}
}

// Reasons that time alone does not mend are told as such.
func TestEveryPermanentReasonStalls(t *testing.T) {
	permanent := 0
	for _, reason := range constantsOf(t, "../../spec/conditions.go") {
		if plan.Permanent(reason) {
			permanent++
			require.True(t, stalling[reason], reason)
		}
	}
	require.Equal(t, 9, permanent)
}

func TestATransitionKeepsItsTime(t *testing.T) {
	first := Summarize(up(spec.ReasonRunning))
	later := up(spec.ReasonRunning, func(in *Input) { in.Now, in.Previous = now.Add(time.Hour), first })
	second := Summarize(later)
	require.Equal(t, first.Conditions, second.Conditions)
	require.Equal(t, first.Decision, second.Decision)

	later.Seen.Client, later.Plan.Verdict.Reason = observe.Gone, spec.ReasonDied
	third := Summarize(later)
	require.Equal(t, now.Add(time.Hour), meta.FindStatusCondition(third.Conditions, spec.ConditionReady).LastTransitionTime.UTC())
	require.Equal(t, now, meta.FindStatusCondition(third.Conditions, spec.ConditionObserved).LastTransitionTime.UTC())
	require.Equal(t, now.Add(time.Hour), third.Decision.At.UTC(), "another reason is another decision")
	later = up(spec.ReasonRunning, func(in *Input) {
		in.Now, in.Previous, in.Plan.Action.Kind = now.Add(time.Hour), first, actuate.ActionKillPane
	})
	require.Equal(t, now.Add(time.Hour), Summarize(later).Decision.At.UTC(), "so is another action")
	require.Equal(t, metav1.ConditionTrue, meta.FindStatusCondition(first.Conditions, spec.ConditionReady).Status, "the previous status is left as it was")
}

// C8: of what an earlier daemon knew nothing is shown as true. A new daemon has no
// previous status, and a record that says that a client runs.
func TestNothingOfAnEarlierDaemonIsShownAsTrue(t *testing.T) {
	s := Summarize(up("", blind))
	for _, kind := range []string{spec.ConditionObserved, spec.ConditionClientAlive, spec.ConditionReady, spec.ConditionUpToDate, spec.ConditionInputRequired, spec.ConditionStalled} {
		require.NotEqual(t, metav1.ConditionTrue, meta.FindStatusCondition(s.Conditions, kind).Status, kind)
	}
	require.Zero(t, s.Client.Pid)
	require.Nil(t, s.Client.StartedAt)
	require.False(t, s.Client.Ready)
	require.Nil(t, s.Tmux)
	require.Equal(t, &spec.EvidenceStatus{Pane: "Unknown", Process: "Unknown", Message: "tmux did not answer"}, s.Evidence)
	require.Equal(t, "nothing was observed since the daemon started", meta.FindStatusCondition(s.Conditions, spec.ConditionClientAlive).Message)
	require.Equal(t, int64(3), s.Client.Incarnation, "what was accounted for stays")
	require.Equal(t, spec.StatusUnknown, spec.DisplayStatus(&spec.Session{Status: s}))

	s = Summarize(up("", blind, func(in *Input) { in.Previous = s }))
	require.Equal(t, "nothing was observed since the daemon started", meta.FindStatusCondition(s.Conditions, spec.ConditionClientAlive).Message, "nor after the second look that failed")
}

// Unknown shows the last evidence and its age.
func TestTheLastEvidenceIsShownWithItsAge(t *testing.T) {
	first := Summarize(up(spec.ReasonRunning))
	in := up("", blind, func(in *Input) { in.Now, in.Previous = now.Add(7*time.Second), first })
	s := Summarize(in)
	require.Equal(t, "last seen 7s ago: pane Present, process Running", meta.FindStatusCondition(s.Conditions, spec.ConditionReady).Message)
	require.Equal(t, now, s.Evidence.ObservedAt.UTC())
	require.Equal(t, "Present", s.Evidence.Pane)
	require.Equal(t, "tmux did not answer", s.Evidence.Message)
	require.Equal(t, first.Tmux, s.Tmux, "where it was is still the place to look")
	require.Zero(t, s.Client.Pid)

	in.Now, in.Previous = now.Add(60*time.Second), s
	s = Summarize(in)
	require.Equal(t, "last seen 1m0s ago: pane Present, process Running", meta.FindStatusCondition(s.Conditions, spec.ConditionReady).Message, "an age grows from the last look that counted")
	require.Contains(t, first.Evidence.Message, "pane %3 with pid 100", "the previous status is left as it was")
}

func TestTheClientIsDescribed(t *testing.T) {
	s := Summarize(up(spec.ReasonRunning, func(in *Input) {
		in.Plan.Record.Survivors = []observe.Process{another}
		in.Plan.Record.BackOff.Deaths = 2
	}))
	require.Equal(t, spec.ClientStatus{
		Incarnation: 3, Pid: 100, StartedAt: &metav1.Time{Time: now.Add(-time.Minute)}, RestartCount: 2, Ready: true, Survivors: []int{90},
	}, s.Client)
	require.Equal(t, &spec.TmuxStatus{Socket: "/run/tmux.sock", Session: "$1", Pane: "%3", Attached: 2}, s.Tmux)
	require.Equal(t, "/work", s.Workspace.Path)
	require.Equal(t, int64(2), s.ObservedGeneration)
	require.Equal(t, int32(2), s.ConsecutiveDeaths)
	require.Equal(t, &spec.SourceStatus{File: "/m/shop.yaml", Line: 3}, s.Source)
	require.Nil(t, s.NextAttemptTime)

	s = Summarize(up(spec.ReasonStopping, stopping(client)))
	require.Equal(t, 100, s.Client.Pid)
	require.False(t, s.Client.Ready)

	s = Summarize(up(spec.ReasonDied, judged(observe.Gone)))
	require.Zero(t, s.Client.Pid)
	require.Nil(t, s.Client.StartedAt)
}

// A pane that a person has taken is none to attach to, and shows nothing of the
// client.
func TestAPaneThatAPersonHasTakenIsNotShownAsTheSessions(t *testing.T) {
	s := Summarize(up(spec.ReasonPaneTaken, judged(observe.Gone), func(in *Input) { in.Seen.Panes[0].LaunchedPID = 99 }))
	require.Nil(t, s.Tmux)
	require.Equal(t, "Absent", s.Evidence.Pane)
}

func TestTheLastEndIsDescribed(t *testing.T) {
	for _, r := range []struct {
		name string
		exit *observe.Exit
		code *int32
		sig  string
	}{
		{"an exit", &observe.Exit{Code: 3}, ptr.To[int32](3), ""},
		{"status 0", &observe.Exit{}, ptr.To[int32](0), ""},
		{"a signal", &observe.Exit{Signal: 9}, ptr.To[int32](137), "SIGKILL"},
		{"an end that was not observed", nil, nil, ""},
	} {
		t.Run(r.name, func(t *testing.T) {
			s := Summarize(down(spec.ReasonCrashLoopBackOff, func(in *Input) {
				in.Plan.Record.LastTermination = &record.Termination{Incarnation: 3, Exit: r.exit, Reason: spec.ReasonKilled, Message: "words", At: now}
				in.Plan.NextAttempt = now.Add(time.Second)
			}))
			require.Equal(t, &spec.Termination{
				Incarnation: 3, ExitCode: r.code, Signal: r.sig, Reason: spec.ReasonKilled, Message: "words", FinishedAt: metav1.NewTime(now),
			}, s.Client.LastTermination)
			require.Equal(t, now.Add(time.Second), s.NextAttemptTime.UTC())
		})
	}
}

func TestTheEvidenceIsWhatWasSeen(t *testing.T) {
	dead := func(in *Input) { in.Seen.Panes[0].State, in.Seen.Panes[0].Live = observe.Dead, observe.Gone }
	otherPane := func(in *Input) { in.Seen.Panes[0].PaneID = "%9" }
	for _, r := range []struct {
		name          string
		in            Input
		pane, process string
		message       string
	}{
		{"alive", up(spec.ReasonRunning), "Present", "Running", "pane %3 with pid 100 in tmux session shop ($1)"},
		{"dead in its pane", up(spec.ReasonDied, judged(observe.Gone), dead), "Dead", "Gone", "pane %3 with pid 100 in tmux session shop ($1)"},
		{"an orphan", up(spec.ReasonStopping, func(in *Input) { in.Seen.Panes = nil }), "Absent", "Running", ""},
		{"a pane of another attempt is not the client's", up(spec.ReasonRunning, otherPane), "Absent", "Running", ""},
		{"a pane that stays behind", up(spec.ReasonCompleted, dead, func(in *Input) { in.Plan.Record.Client = nil }), "Dead", "Gone", "pane %3 with pid 100 in tmux session shop ($1)"},
		{"nothing", down(spec.ReasonCompleted), "Absent", "Gone", ""},
	} {
		t.Run(r.name, func(t *testing.T) {
			r.in.LastScreen = []string{"bye"}
			s := Summarize(r.in)
			require.Equal(t, &spec.EvidenceStatus{ObservedAt: metav1.NewTime(now), Pane: r.pane, Process: r.process, Message: r.message, LastScreen: []string{"bye"}}, s.Evidence)
			require.Equal(t, r.message == "", s.Tmux == nil)
		})
	}
}

func TestTheDecisionIsShown(t *testing.T) {
	s := Summarize(down(spec.ReasonStarting, func(in *Input) { in.Plan.Action.Kind = actuate.ActionCreate }))
	require.Equal(t, &spec.DecisionStatus{Rule: "Rule", Action: "Create", Reason: spec.ReasonStarting, Message: "in words", At: metav1.NewTime(now)}, s.Decision)
}

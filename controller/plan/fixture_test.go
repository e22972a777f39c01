// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/utils/ptr"

	"github.com/muxlet/muxlet/actuate"
	"github.com/muxlet/muxlet/controller/record"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec"
)

// The session of these tests has spent three incarnations. Its client, when it
// has one, is incarnation 3 of attempt a3: pid 100, the first process of pane %3.
// A pending attempt is a4, its launcher pid 200 in pane %4.
const (
	instance = "11111111-1111-4111-8111-111111111111"
	uid      = "22222222-2222-4222-8222-222222222222"
)

var (
	now    = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	server = observe.Server{Process: process(10), StartTime: 1, Socket: "/run/muxlet/tmux.sock", Instance: instance}
	policy = Policy{BackOffInitial: time.Second, BackOffMax: 5 * time.Minute, BackOffReset: 10 * time.Minute, UnknownGrace: 5 * time.Second}
)

func ago(d time.Duration) time.Time { return now.Add(-d) }

func process(pid int) observe.Process {
	return observe.Process{PID: pid, Ticks: uint64(pid) * 10}
}

// given changes an input.
type given func(*Input)

func build(in Input, gs []given) Input {
	for _, g := range gs {
		g(&in)
	}
	return in
}

func aSpec() *spec.SessionSpec {
	s := &spec.SessionSpec{
		Client:    spec.ClientSpec{Command: []string{"agent"}, Env: []spec.EnvVar{{Name: "LOG", Value: "debug"}}},
		Workspace: spec.WorkspaceSpec{Directory: "/work"},
	}
	spec.SetDefaults(s)
	return s
}

// down is a session without a client, with nothing in the way of a start.
func down(gs ...given) Input {
	return build(Input{
		Now:     now,
		Desired: Desired{Spec: aSpec(), File: "/m/shop.yaml", Labels: map[string]string{"repo": "shop"}},
		Record: record.Record{
			UID: uid, Name: "shop", CreatedAt: ago(time.Hour), Generation: 1, Spec: aSpec(), File: "/m/shop.yaml",
			Labels: map[string]string{"repo": "shop"}, Incarnation: 3,
		},
		Seen: Seen{
			Sight: SightKnown, At: now, Confirmation: Confirmed, ServerState: observe.ServerRunning, Server: server,
			ReceiptState: ReceiptMissing, Lease: observe.Lease{State: observe.Gone},
		},
		Workspace: Workspace{Path: "/work"},
		Grant:     GrantStart,
		New:       NewAttempt{ID: "a4", Instance: instance, Base: []string{"PATH=/bin"}},
		Policy:    policy,
	}, gs)
}

// up is a session whose client runs in its pane.
func up(gs ...given) Input {
	in := down(seesPane(pane("%3", 3, 100)), seesClient(marked(3, 100)))
	in.Record.Client = &record.Client{
		Incarnation: 3, Attempt: "a3", Process: process(100), Pane: "%3", PanePID: 100,
		StartedAt: ago(time.Minute), Launched: aSpec(), Server: server,
	}
	in.Seen.Client = observe.Running
	return build(in, gs)
}

// starting is a session whose launcher is on its way.
func starting(gs ...given) Input {
	in := down(seesPane(pane("%4", 4, 200)))
	in.Record.Attempt = &record.Attempt{
		ID: "a4", Incarnation: 4, Fence: record.FenceOpen, OpenedAt: ago(100 * time.Millisecond), Spec: *aSpec(),
	}
	return build(in, gs)
}

// stopping is a session whose client is being ended.
func stopping(reason record.StopReason, gs ...given) Input {
	in := up()
	in.Record.Stop = &record.Stop{Reason: reason, Process: process(100)}
	in.Seen.Stop = observe.Running
	return build(in, gs)
}

func label(incarnation int64) string { return "a" + string('0'+rune(incarnation)) }

func pane(id string, incarnation int64, pid int) SeenPane {
	return SeenPane{
		Pane: observe.Pane{
			SessionID: "$1", WindowID: "@1", PaneID: id, SessionName: "shop", PID: pid, State: observe.Present,
			Labels: observe.Labels{
				Instance: instance, UID: uid, Name: "shop", Attempt: label(incarnation), Role: observe.RoleClient, Incarnation: incarnation,
			},
		},
		Process: process(pid), Live: observe.Running,
	}
}

func marked(incarnation int64, pid int) observe.MarkedProcess {
	return observe.MarkedProcess{
		Mark:    observe.Mark{Instance: instance, UID: uid, Attempt: label(incarnation), Incarnation: incarnation, Process: process(pid)},
		Session: "shop", Parent: 10,
	}
}

func seesPane(p SeenPane) given { return func(in *Input) { in.Seen.Panes = append(in.Seen.Panes, p) } }

func seesClient(m observe.MarkedProcess) given {
	return func(in *Input) { in.Seen.Clients = append(in.Seen.Clients, m) }
}

func noPanes(in *Input) { in.Seen.Panes = nil }

func noClients(in *Input) { in.Seen.Clients = nil }

// noServer: it is proven that no tmux server of ours exists.
func noServer(in *Input) {
	in.Seen.ServerState, in.Seen.Server, in.Seen.Panes = observe.ServerNone, observe.Server{}, nil
}

// gone: the recorded client ended that long ago.
func gone(d time.Duration) given {
	return func(in *Input) { in.Seen.Client, in.Seen.GoneFor, in.Seen.Clients = observe.Gone, d, nil }
}

// dead makes pane n dead; its process ended with the status, or without one that
// tmux knows.
func dead(n int, status *int, signal int) given {
	return func(in *Input) {
		p := &in.Seen.Panes[n]
		p.State, p.Live, p.Process, p.ExitStatus, p.ExitSignal = observe.Dead, observe.Gone, observe.Process{}, status, signal
	}
}

// shellBelow: a shell, pid 99, is the pane's first process, and the client runs
// below it.
func shellBelow(in *Input) {
	in.Record.Client.PanePID = 99
	in.Seen.Panes[0].PID, in.Seen.Panes[0].Process = 99, process(99)
}

// taken makes pane n one that a person has run something else in: it was launched
// with the pid of its client, and runs pid 555.
func taken(n int) given {
	return func(in *Input) {
		p := &in.Seen.Panes[n]
		p.LaunchedPID = p.PID
		p.PID, p.Process, p.State, p.Live = 555, process(555), observe.Present, observe.Running
	}
}

// reused: the pid of the dead pane n is another process's by now.
func reused(n int) given {
	return func(in *Input) {
		p := &in.Seen.Panes[n]
		p.State, p.Live, p.Process = observe.Dead, observe.Running, observe.Process{PID: p.PID, Ticks: 99_999}
	}
}

// exited: the client ended with the status, and its pane shows that.
func exited(status int) given {
	return func(in *Input) {
		gone(0)(in)
		dead(0, ptr.To(status), 0)(in)
	}
}

// signalled: a signal ended the client, and its pane shows that.
func signalled(signal int) given {
	return func(in *Input) {
		gone(0)(in)
		dead(0, nil, signal)(in)
	}
}

// ofSpec changes the spec that is in force and that the client was started from.
func ofSpec(edit func(*spec.SessionSpec)) given {
	return func(in *Input) {
		edit(in.Desired.Spec)
		edit(in.Record.Spec)
		if c := in.Record.Client; c != nil && c.Launched != nil {
			edit(c.Launched)
		}
	}
}

// edited changes the document only.
func edited(edit func(*spec.SessionSpec)) given { return func(in *Input) { edit(in.Desired.Spec) } }

func suspended(s *spec.SessionSpec) { s.Suspend = true }

func otherCommand(s *spec.SessionSpec) { s.Client.Command = []string{"agent", "--new"} }

func restartPolicy(r spec.RestartPolicy) func(*spec.SessionSpec) {
	return func(s *spec.SessionSpec) { s.RestartPolicy = r }
}

func recovery(r spec.RecoveryPolicy) func(*spec.SessionSpec) {
	return func(s *spec.SessionSpec) { s.RecoveryPolicy = r }
}

func strategy(u spec.UpdateStrategyType) func(*spec.SessionSpec) {
	return func(s *spec.SessionSpec) { s.UpdateStrategy.Type = u }
}

func deletion(d spec.DeletionPolicy) func(*spec.SessionSpec) {
	return func(s *spec.SessionSpec) { s.DeletionPolicy = d }
}

func graceOf(seconds int32) func(*spec.SessionSpec) {
	return func(s *spec.SessionSpec) { s.TerminationGracePeriodSeconds = &seconds }
}

func removed(in *Input) { in.Desired.Want = Remove }

func firstLook(in *Input) { in.FirstLook = true }

func demanded(in *Input) {
	in.Record.Demand = &record.Demand{Reason: spec.ReasonResumed, At: now}
}

func intends(kind record.IntentKind, incarnation int64) given {
	return func(in *Input) {
		in.Record.Intent = &record.Intent{Kind: kind, Incarnation: incarnation, At: ago(time.Second)}
	}
}

func latched(reason string) given {
	return func(in *Input) { in.Record.Latch = &record.Latch{Reason: reason, At: ago(time.Minute)} }
}

func blocked(reason string) given {
	return func(in *Input) {
		in.Record.Block = &record.Block{Reason: reason, Message: "it is not there", At: ago(time.Minute)}
	}
}

// deaths in a row, the last that long ago.
func deaths(n int, last time.Duration) given {
	return func(in *Input) { in.Record.BackOff.Deaths, in.Record.BackOff.LastDeathAt = n, ago(last) }
}

// ofRecord is any other change of the record.
func ofRecord(edit func(*record.Record)) given { return func(in *Input) { edit(&in.Record) } }

// ofSeen is any other change of what was seen.
func ofSeen(edit func(*Seen)) given { return func(in *Input) { edit(&in.Seen) } }

// row is one sentence about Compute.
type row struct {
	name string
	in   Input
	want expect
}

// expect is what a plan is to be. What is left zero is expected to be zero.
type expect struct {
	rule, reason string
	action       actuate.Kind
	requeue      time.Duration
	// changes turns the input's record into the plan's; nil changes nothing.
	// Messages for a person are not compared.
	changes func(*record.Record)
	// events as "Type Reason".
	events []string
	fate   Fate
	looked bool
	// also looks at whatever else the row is about.
	also func(*testing.T, Plan)
}

func check(t *testing.T, rows []row) {
	t.Helper()
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			p := decide(t, r.in)
			want := r.in.Record.Copy()
			if r.want.changes != nil {
				r.want.changes(&want)
			}
			got := p.Record.Copy()
			require.Equal(t, r.want.rule, p.Verdict.Rule, "rule: %s", p.Verdict.Message)
			require.Equal(t, r.want.reason, p.Verdict.Reason, "reason: %s", p.Verdict.Message)
			require.Equal(t, r.want.action, p.Action.Kind, "action")
			require.Equal(t, r.want.requeue, p.RequeueAfter, "requeue")
			require.Equal(t, wordless(want), wordless(got), "record")
			require.Equal(t, r.want.events, eventsOf(p), "events")
			require.Equal(t, r.want.fate, p.Fate, "fate")
			require.Equal(t, r.want.looked, p.Looked, "looked")
			require.NotEmpty(t, p.Verdict.Message, "a person is told why")
			if r.want.also != nil {
				r.want.also(t, p)
			}
		})
	}
}

func eventsOf(p Plan) []string {
	var words []string
	for _, e := range p.Events {
		words = append(words, string(e.Type)+" "+e.Reason)
	}
	return words
}

// wordless drops the sentences for a person.
func wordless(r record.Record) record.Record {
	if r.LastTermination != nil {
		r.LastTermination.Message = ""
	}
	if r.Latch != nil {
		r.Latch.Message = ""
	}
	if r.Block != nil {
		r.Block.Message = ""
	}
	if r.Attempt != nil {
		r.Attempt.Message = ""
	}
	return r
}

// ended is the end of incarnation 3 now.
func ended(reason string, exit *observe.Exit) func(*record.Record) {
	return func(r *record.Record) {
		r.Client = nil
		r.LastTermination = &record.Termination{Incarnation: 3, Exit: exit, Reason: reason, At: now}
	}
}

// counted is one more death, now.
func counted(r *record.Record) {
	r.BackOff.Deaths++
	r.BackOff.LastDeathAt = now
}

// opened is a new attempt of the next incarnation.
func opened(r *record.Record) {
	s, demand := r.Spec.DeepCopy(), r.Demand
	r.Demand = nil
	r.Attempt = &record.Attempt{
		Demand: demand,
		ID:     "a4", Incarnation: r.Incarnation + 1, Fence: record.FenceOpen, OpenedAt: now, Spec: *s,
		Order: actuate.Order{
			Instance: instance, UID: uid, Session: "shop", Incarnation: r.Incarnation + 1, Attempt: "a4", Args: slices.Concat(s.Client.Command, s.Client.Args),
			Directory: "/work", Env: s.Client.Env, EnvFrom: s.Client.EnvFrom, ShellMode: s.Client.ShellMode, Base: []string{"PATH=/bin"},
		},
	}
}

// restartWanted is an intent to restart that has become a demand.
func restartWanted(r *record.Record) {
	r.Intent, r.Demand = nil, &record.Demand{Reason: spec.ReasonRestarting, At: now}
}

// ending begins a stop.
func ending(reason record.StopReason, pid int) func(*record.Record) {
	return func(r *record.Record) { r.Stop = &record.Stop{Reason: reason, Process: process(pid)} }
}

// allOf makes several changes.
func allOf(changes ...func(*record.Record)) func(*record.Record) {
	return func(r *record.Record) {
		for _, change := range changes {
			change(r)
		}
	}
}

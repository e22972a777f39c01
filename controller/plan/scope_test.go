// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/muxlet/muxlet/actuate"
	"github.com/muxlet/muxlet/controller/record"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec"
)

const bus = "unix:path=/run/user/1/bus"

func hasBus(in *Input) { in.Scopes = Scopes{Known: true, Bus: bus} }

func noBus(in *Input) { in.Scopes = Scopes{Known: true, Problem: "there is no bus"} }

func confined(s *spec.SessionSpec) {
	s.Resources.Limits = spec.ResourceLimits{
		Memory: ptr.To(resource.MustParse("60Mi")), CPU: ptr.To(resource.MustParse("1.5")), Tasks: ptr.To[int32](200),
	}
}

func ignored(s *spec.SessionSpec) { s.Resources.OnUnsupported = spec.UnsupportedIgnore }

// Invariant 5: the scope's whole name is on disk before anybody is asked for it.
func TestTheScopeIsOrderedInTheAttempt(t *testing.T) {
	order := func(gs ...given) *actuate.ScopeOrder {
		p := decide(t, down(gs...))
		require.Equal(t, actuate.ActionCreate, p.Action.Kind)
		return p.Record.Attempt.Order.Scope
	}
	plain := &actuate.ScopeOrder{
		Name: "muxlet-" + instance + "-" + uid + "-4.scope", Bus: bus, Slice: "muxlet.slice", Description: "muxlet session shop", StopTimeout: 10 * time.Second,
	}
	require.Equal(t, plain, order(hasBus))
	require.Nil(t, order(noBus), "nothing is asked for where nobody could give it")
	full := *plain
	full.MemoryBytes, full.CPUMicroseconds, full.Tasks, full.Required = 60<<20, 1_500_000, 200, true
	require.Equal(t, &full, order(hasBus, ofSpec(confined)))
	full.Required = false
	require.Equal(t, &full, order(hasBus, ofSpec(confined), ofSpec(ignored)))
	full.Bus, full.Problem = "", "there is no bus"
	require.Equal(t, &full, order(noBus, ofSpec(confined), ofSpec(ignored)), "the receipt is to say why it runs without")
}

func TestLimitsThatCannotBePutInForceAreRefused(t *testing.T) {
	unlimitable := expect{rule: "Block", reason: spec.ReasonResourcesUnsupported, looked: true}
	forgets := unlimitable
	forgets.changes = func(r *record.Record) { r.Demand = nil }
	check(t, []row{
		{"without a manager", down(noBus, ofSpec(confined)), unlimitable},
		{"a demand cannot be met", down(noBus, ofSpec(confined), demanded), forgets},
		{"nothing is confined", down(noBus), creates(nil)},
		{"a client that runs is kept, and no edit ends it", up(noBus, edited(confined)), expect{rule: "Live", reason: spec.ReasonRunning, looked: true, changes: func(r *record.Record) {
			confined(r.Spec)
			r.Generation = 2
		}, also: func(t *testing.T, p Plan) {
			require.Contains(t, p.Pending, "spec.resources.limits changed: the client is kept, since no other could be started")
		}}},
		{"what its launcher has found stands until the manager is another one", down(hasBus, ofSpec(confined), blocked(spec.ReasonResourcesUnsupported)), expect{rule: "Block", reason: spec.ReasonResourcesUnsupported, looked: true}},
	})
	require.True(t, Permanent(spec.ReasonResourcesUnsupported))
}

func TestAnEditOfTheLimitsReplacesTheClient(t *testing.T) {
	p := decide(t, up(hasBus, edited(confined)))
	require.Equal(t, record.StopUpdating, p.Record.Stop.Reason)
	p = decide(t, up(hasBus, edited(ignored)))
	require.Nil(t, p.Record.Stop)
}

// What has left the client's tree is found in its scope.
func TestWhatIsLeftInAScopeIsEndedWithTheSession(t *testing.T) {
	left := ofSeen(func(s *Seen) { s.Remains = descendants })
	ends := func(rule string, reason record.StopReason, looked bool) expect {
		return expect{rule: rule, reason: spec.ReasonStopping, requeue: soon, looked: looked, changes: func(r *record.Record) {
			r.Stop = &record.Stop{Reason: reason, Process: descendants[0], Descendants: descendants}
		}}
	}
	latch := latched(spec.ReasonTerminated)
	check(t, []row{
		{"removed", down(left, removed), ends("Remove", record.StopRemoved, true)},
		{"suspended", down(left, ofSpec(suspended)), ends("Suspend", record.StopSuspended, true)},
		{"terminated", down(left, intends(record.IntentTerminate, 3)), ends("Intent", record.StopTerminated, false)},
		{"found later", down(left, latch), ends("Latch", record.StopTerminated, true)},
		{"a survivor is not counted twice", down(left, ofSpec(suspended), ofRecord(func(r *record.Record) { r.Survivors = descendants[:1] })), expect{
			rule: "Suspend", reason: spec.ReasonStopping, requeue: soon, looked: true, changes: func(r *record.Record) {
				r.Stop, r.Survivors = &record.Stop{Reason: record.StopSuspended, Process: descendants[0], Descendants: descendants}, nil
			}}},
		{"not when the client comes back", down(left), creates(nil)},
		{"not when it has completed its work", down(left, latched(spec.ReasonCompleted), ofSpec(restartPolicy(spec.RestartNever)), ofRecord(func(r *record.Record) {
			r.LastTermination = &record.Termination{Exit: &observe.Exit{}}
		})), expect{rule: "Latch", reason: spec.ReasonCompleted, looked: true}},
		{"not when it was left running on purpose", down(left, ofSpec(deletion(spec.DeletionOrphan)), removed), expect{
			rule: "Remove", reason: spec.ReasonRemoved, fate: FateArchive, looked: true, events: []string{"Normal Removed"}}},
	})
}

func TestTheScopeOfAClientIsKnownFromItsReceipt(t *testing.T) {
	scope := observe.Scope{Name: "muxlet-i-u-4.scope", ControlGroup: "/g"}
	in := starting(seesClient(marked(4, 200)), ofSeen(func(s *Seen) {
		s.ReceiptState, s.ReceiptProcess = ReceiptFound, observe.Running
		s.Receipt = observe.Receipt{Attempt: "a4", Process: process(200), Stage: observe.StageExec, At: now, Scope: scope}
	}))
	require.Equal(t, scope, decide(t, in).Record.Client.Scope)
}

func oom(kills int, before time.Duration) given {
	return ofSeen(func(s *Seen) { s.OOM = observe.OOM{Kills: kills, At: ago(before)} })
}

func TestAClientThatTheKernelEndsForWantOfMemoryIsOOMKilled(t *testing.T) {
	killed := &observe.Exit{Signal: 9}
	told := []string{"Warning OOMKilled"}
	check(t, []row{
		{"by its signal", up(signalled(9), oom(1, 0)), respawns(told, ended(spec.ReasonOOMKilled, killed), counted)},
		{"a signal that tmux has lost", up(gone(time.Second), dead(0, nil, 0), oom(1, time.Second)), respawns(told, ended(spec.ReasonOOMKilled, nil), func(r *record.Record) {
			r.BackOff = record.BackOff{Deaths: 1, LastDeathAt: ago(time.Second)}
		})},
		{"not when that was long before", up(signalled(9), oom(1, 6*time.Second)), respawns([]string{"Warning Died"}, ended(spec.ReasonKilled, killed), counted)},
		{"not when nothing was ended", up(signalled(9)), respawns([]string{"Warning Died"}, ended(spec.ReasonKilled, killed), counted)},
		{"not when it has ended otherwise", up(exited(137), oom(1, 0)), respawns([]string{"Warning Died"}, ended(spec.ReasonExited, &observe.Exit{Code: 137}), counted)},
	})
	p := decide(t, up(ofSpec(confined), signalled(9), oom(1, 0)))
	require.Contains(t, p.Events[0].Message, "it had used up its limit of 60Mi (spec.resources.limits.memory)")
	p = decide(t, up(signalled(9), oom(1, 0)))
	require.Contains(t, p.Events[0].Message, "the machine, or a control group around the session, has run out of memory")
	in := up(ofSpec(restartPolicy(spec.RestartOnFailure)), signalled(9), oom(1, 0))
	require.Nil(t, decide(t, in).Record.Latch, "it is a failure")
}

func TestAChildThatTheKernelEndsIsToldOnceAndNothingElse(t *testing.T) {
	lives := expect{rule: "Live", reason: spec.ReasonRunning, looked: true}
	tells := lives
	tells.events, tells.changes = []string{"Warning OOMKilled"}, func(r *record.Record) { r.Client.OOMKills = 2 }
	waits := lives
	waits.requeue = 400 * time.Millisecond
	check(t, []row{
		{"told", up(oom(2, time.Second)), tells},
		{"it may be the client itself", up(oom(2, 600*time.Millisecond)), waits},
		{"once", up(oom(2, time.Hour), ofRecord(func(r *record.Record) { r.Client.OOMKills = 2 })), lives},
		{"by a clock that has jumped back", up(oom(2, -time.Hour)), tells},
	})
}

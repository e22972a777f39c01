// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/utils/ptr"

	"github.com/muxlet/muxlet/actuate"
	"github.com/muxlet/muxlet/controller/record"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec"
)

func TestAnEditReplacesAClientByUpdateStrategy(t *testing.T) {
	attached := ofSeen(func(s *Seen) { s.Panes[0].Attached = 1 })
	edit := func(r *record.Record) {
		otherCommand(r.Spec)
		r.Generation++
	}
	replaces := expect{
		rule: "Update", reason: spec.ReasonStopping, requeue: soon, looked: true, events: []string{"Normal Updating"},
		changes: allOf(edit, ending(record.StopUpdating, 100)),
	}
	waits := func(requeue time.Duration, pending string) expect {
		return expect{rule: "Live", reason: spec.ReasonRunning, requeue: requeue, looked: true, changes: edit, also: func(t *testing.T, p Plan) {
			require.Contains(t, p.Pending, "spec.client.command changed")
			require.Contains(t, p.Pending, pending)
		}}
	}
	goesOn := func(changes func(*record.Record)) expect {
		return expect{rule: "Live", reason: spec.ReasonRunning, looked: true, changes: changes, also: func(t *testing.T, p Plan) { require.Empty(t, p.Pending) }}
	}
	recreate, onRestart := ofSpec(strategy(spec.UpdateRecreate)), ofSpec(strategy(spec.UpdateOnRestart))
	check(t, []row{
		{"Recreate at once", up(recreate, edited(otherCommand)), replaces},
		{"Recreate under a person's eyes as well", up(recreate, attached, edited(otherCommand)), replaces},
		{"WhenIdle when nobody is attached", up(edited(otherCommand)), replaces},
		{"WhenIdle not while somebody is", up(attached, edited(otherCommand)), waits(pollDetach, "nobody is attached")},
		{"WhenIdle not while somebody is, in a pane below a shell", up(attached, edited(otherCommand), shellBelow), waits(pollDetach, "nobody is attached")},
		{"OnRestart never by itself", up(onRestart, edited(otherCommand)), waits(0, "next restart")},
		{"the strategy of the same edit counts", up(recreate, edited(otherCommand), edited(strategy(spec.UpdateOnRestart))), expect{
			rule: "Live", reason: spec.ReasonRunning, looked: true, changes: allOf(edit, func(r *record.Record) { r.Spec.UpdateStrategy.Type = spec.UpdateOnRestart }),
		}},
		{"an edit that was made long ago is seen as well", up(recreate, ofRecord(func(r *record.Record) { otherCommand(r.Client.Launched) })), expect{
			rule: "Update", reason: spec.ReasonStopping, requeue: soon, looked: true, events: []string{"Normal Updating"}, changes: ending(record.StopUpdating, 100),
		}},
		{"what it was started from is not known: nothing", up(recreate, edited(otherCommand), ofRecord(func(r *record.Record) { r.Client.Launched = nil })), goesOn(edit)},
		{"there is no spec: nothing", up(func(in *Input) { in.Desired.Spec, in.Record.Spec = nil, nil }), goesOn(nil)},
		{"a policy-only edit: nothing", up(recreate, edited(restartPolicy(spec.RestartNever)), edited(deletion(spec.DeletionOrphan)), edited(graceOf(3))), goesOn(func(r *record.Record) {
			restartPolicy(spec.RestartNever)(r.Spec)
			deletion(spec.DeletionOrphan)(r.Spec)
			graceOf(3)(r.Spec)
			r.Generation++
		})},
		{"an edit of the terminal, which a running pane has: nothing", up(recreate, edited(func(s *spec.SessionSpec) { s.Terminal.Rows = 99 })), goesOn(func(r *record.Record) {
			r.Spec.Terminal.Rows = 99
			r.Generation++
		})},
		{"a default that was not written out when it was started: nothing", up(recreate, ofRecord(func(r *record.Record) { r.Client.Launched.Client.ShellMode = "" })), goesOn(nil)},
	})
}

func TestALiveClientIsKept(t *testing.T) {
	goesOn := func(changes func(*record.Record)) expect {
		return expect{rule: "Live", reason: spec.ReasonRunning, looked: true, changes: changes}
	}
	older := func(in *Input) { in.Seen.Panes = append([]SeenPane{pane("%2", 2, 90)}, in.Seen.Panes...) }
	check(t, []row{
		{"nothing is to be done, nor to be looked at again", up(), goesOn(nil)},
		{"with a past of many deaths", up(deaths(9, 0)), goesOn(nil)},
		{"without a grant", up(func(in *Input) { in.Grant = GrantNone }), goesOn(nil)},
		{"a demand is met", up(demanded), goesOn(func(r *record.Record) { r.Demand = nil })},
		{"a dead pane of an earlier attempt goes", up(older, dead(0, nil, 9)), expect{rule: "Live", reason: spec.ReasonRunning, action: actuate.ActionKillPane, requeue: pollSlow, looked: true, also: func(t *testing.T, p Plan) {
			require.Equal(t, "%2", p.Action.Pane.PaneID)
			require.Equal(t, server, p.Action.Server)
		}}},
		{"no pane of its own attempt goes", up(func(in *Input) { in.Seen.Panes = append([]SeenPane{pane("%8", 3, 80)}, in.Seen.Panes...) }, dead(0, nil, 9)), goesOn(nil)},
		{"a pane in which a person runs something stays", up(older), goesOn(nil)},
	})
}

func limited(change func(*observe.Limits)) given { return func(in *Input) { change(&in.Limits) } }

// says checks the words of the verdict.
func says(words ...string) func(*testing.T, Plan) {
	return func(t *testing.T, p Plan) {
		for _, w := range words {
			require.Contains(t, p.Verdict.Message, w)
		}
	}
}

func TestAStartWaitsForItsTurn(t *testing.T) {
	waits := func(rule, reason string, requeue time.Duration) expect {
		return expect{rule: rule, reason: reason, requeue: requeue, looked: true}
	}
	check(t, []row{
		// D1
		{"for a second look when most sessions were seen dead at once", down(ofSeen(func(s *Seen) { s.Confirmation = Unconfirmed })), waits("Server", spec.ReasonConfirming, pollReceipt)},
		{"also without a server", down(noServer, ofSeen(func(s *Seen) { s.Confirmation = Unconfirmed })), waits("Server", spec.ReasonConfirming, pollReceipt)},
		{"for a server", down(noServer), waits("Server", spec.ReasonServerStarting, 0)},
		{"for a server that cannot be started, and says why", down(noServer, ofSeen(func(s *Seen) { s.ServerFailure = "no tmux" })), waits("Server", spec.ReasonTmuxServerFailed, 0)},
		// I6
		{"for a foreign tmux session to give the name up", down(ofSeen(func(s *Seen) { s.NameHolder = "$7" })), waits("Name", spec.ReasonNameConflict, 0)},
		{"for a terminal to be free", down(limited(func(l *observe.Limits) { l.Terminals = observe.Use{Used: 3056, Limit: 3072} })), expect{
			rule: "Limits", reason: spec.ReasonTooManyTerminals, requeue: pollLimits, looked: true, also: says("3056 of 3072", "sysctl -w kernel.pty.max"),
		}},
		{"for a descriptor of the server, whose limit can be raised", down(limited(func(l *observe.Limits) {
			l.ServerFiles, l.ServerHardLimit = observe.Use{Used: 992, Limit: 1024}, 4096
		})), expect{
			rule: "Limits", reason: spec.ReasonTooManyOpenFiles, requeue: pollLimits, looked: true, also: says("pid 10", "992 of its 1024", "prlimit --pid 10 --nofile=4096:4096"),
		}},
		{"for a descriptor of the server, whose limit cannot be raised by us", down(limited(func(l *observe.Limits) {
			l.ServerFiles, l.ServerHardLimit = observe.Use{Used: 1024, Limit: 1024}, 1024
		})), expect{
			rule: "Limits", reason: spec.ReasonTooManyOpenFiles, requeue: pollLimits, looked: true, also: says("LimitNOFILE=2048"),
		}},
		{"for a descriptor of the daemon", down(limited(func(l *observe.Limits) { l.OwnFiles = observe.Use{Used: 960, Limit: 1024} })), expect{
			rule: "Limits", reason: spec.ReasonTooManyOpenFiles, requeue: pollLimits, looked: true, also: says("the daemon has 960 of its 1024"),
		}},
		{"for nothing with just enough", down(limited(func(l *observe.Limits) {
			l.Terminals, l.ServerFiles, l.OwnFiles = observe.Use{Used: 3055, Limit: 3072}, observe.Use{Used: 991, Limit: 1024}, observe.Use{Used: 959, Limit: 1024}
		})), creates(nil)},
		{"and what runs is left alone", up(limited(func(l *observe.Limits) { l.Terminals = observe.Use{Used: 9, Limit: 9} })), expect{rule: "Live", reason: spec.ReasonRunning, looked: true}},
		// A11
		{"for other starts", down(func(in *Input) { in.Grant = GrantNone }), waits("Budget", spec.ReasonWaitingForBudget, pollBudget)},
	})
}

// D8: the person's own windows outlive our pane, and the client comes back to
// them.
func TestAClientComesBackToTheSessionThatWasMadeForIt(t *testing.T) {
	p := decide(t, down(ofSeen(func(s *Seen) { s.OwnSession = "$3" })))
	require.Equal(t, actuate.ActionCreate, p.Action.Kind)
	require.Equal(t, "$3", p.Action.Launch.Into)
}

// I6, E4: ours of an earlier incarnation is taken over.
func TestANameThatOurOwnPaneHoldsIsNoConflict(t *testing.T) {
	in := down(ofSeen(func(s *Seen) { s.NameHolder = "$7" }), seesPane(pane("%3", 3, 100)), dead(0, ptr.To(1), 0))
	require.Equal(t, actuate.ActionRespawn, decide(t, in).Action.Kind)
}

func TestAStartPrefersOurOwnDeadPane(t *testing.T) {
	stale := pane("%3", 3, 100) // tmux holds its process to be alive
	stale.Live, stale.Process = observe.Gone, observe.Process{}
	deadPane := pane("%2", 2, 90)
	deadPane.State, deadPane.Live, deadPane.Process = observe.Dead, observe.Gone, observe.Process{}
	otherDead, otherStale := deadPane, stale
	otherDead.PaneID, otherStale.PaneID = "%8", "%9"
	lastEnd := func(age time.Duration) given {
		return ofRecord(func(r *record.Record) { r.LastTermination = &record.Termination{At: ago(age)} })
	}
	starts := func(kind actuate.Kind, id string) expect {
		e := creates(nil)
		e.action = kind
		e.also = func(t *testing.T, p Plan) { require.Equal(t, id, p.Action.Pane.PaneID) }
		return e
	}
	reaps := func(requeue time.Duration) expect {
		return expect{rule: "Start", reason: spec.ReasonStarting, action: actuate.ActionReap, requeue: requeue, looked: true}
	}
	check(t, []row{
		{"none: a new session", down(), starts(actuate.ActionCreate, "")},
		{"one", down(seesPane(deadPane)), starts(actuate.ActionRespawn, "%2")},
		{"one that is dead, whatever has got its pid since", down(seesPane(deadPane), reused(0)), starts(actuate.ActionRespawn, "%2")},
		{"a dead one before one that tmux wrongly holds to be alive", down(seesPane(stale), seesPane(deadPane)), starts(actuate.ActionRespawn, "%2")},
		{"the first of two dead ones", down(seesPane(deadPane), seesPane(otherDead)), starts(actuate.ActionRespawn, "%2")},
		{"the first of two that tmux wrongly holds to be alive", down(seesPane(stale), seesPane(otherStale), lastEnd(3*time.Second)), starts(actuate.ActionRespawnKill, "%3")},
		{"whichever comes first", down(seesPane(deadPane), seesPane(stale)), starts(actuate.ActionRespawn, "%2")},
		{"one that tmux wrongly holds to be alive: tmux is asked first", down(seesPane(stale), lastEnd(time.Second)), reaps(pollSlow)},
		{"until three seconds have passed", down(seesPane(stale), lastEnd(2900*time.Millisecond)), reaps(100 * time.Millisecond)},
		{"then it is forced", down(seesPane(stale), lastEnd(3*time.Second)), starts(actuate.ActionRespawnKill, "%3")},
		{"also when the clock has jumped back", down(seesPane(stale), lastEnd(-time.Hour)), starts(actuate.ActionRespawnKill, "%3")},
		{"also when no end is known, as soon as the record is that old", down(seesPane(stale), ofRecord(func(r *record.Record) { r.CreatedAt = ago(3 * time.Second) })), starts(actuate.ActionRespawnKill, "%3")},
		{"not before", down(seesPane(stale), ofRecord(func(r *record.Record) { r.CreatedAt = ago(2900 * time.Millisecond) })), reaps(100 * time.Millisecond)},
	})
}

// The whole way from a death that tmux never notices to the next start.
func TestADeathThatTmuxNeverNoticesIsForced(t *testing.T) {
	in := up(gone(0), ofSeen(func(s *Seen) { s.Panes[0].Live, s.Panes[0].Process = observe.Gone, observe.Process{} }))
	reaps := 0
	for in.Now.Before(now.Add(time.Minute)) {
		p := decide(t, in)
		if p.Action.Kind != actuate.ActionReap {
			require.Equal(t, actuate.ActionRespawnKill, p.Action.Kind)
			require.GreaterOrEqual(t, in.Now.Sub(now), respawnKillAge)
			require.LessOrEqual(t, in.Now.Sub(now), respawnKillAge+2*statusPatience)
			require.Greater(t, reaps, 10)
			return
		}
		reaps++
		in.Record, in.Now = p.Record, in.Now.Add(p.RequeueAfter)
		in.Seen.GoneFor = 0
		if p.Record.Client != nil {
			in.Seen.GoneFor = in.Now.Sub(now)
		}
	}
	t.Fatal("the session was never started again")
}

// Invariant 5: everything that a launcher and tmux need is in the record and in
// the action.
func TestAStartSaysEverythingThatIsNeeded(t *testing.T) {
	in := down(ofSpec(func(s *spec.SessionSpec) {
		s.Terminal = spec.TerminalSpec{Columns: 120, Rows: 40, HistoryLimit: ptr.To[int32](7)}
		s.Client.ShellMode = spec.ShellNone
		s.Client.EnvFrom = []spec.EnvFromSource{{FileRef: &spec.FileRef{Path: "/env"}}}
	}))
	in.Workspace.Path = "/home/p/work"
	p := decide(t, in)
	require.Equal(t, actuate.Launch{
		Labels:    observe.Labels{Instance: instance, UID: uid, Name: "shop", Attempt: "a4", Role: observe.RoleClient, Incarnation: 4},
		Directory: "/home/p/work", ShellMode: spec.ShellNone, Columns: 120, Rows: 40, HistoryLimit: 7,
	}, p.Action.Launch)
	require.Equal(t, actuate.Order{
		Instance: instance, UID: uid, Session: "shop", Incarnation: 4, Attempt: "a4", Args: []string{"agent"}, Directory: "/home/p/work",
		Env: []spec.EnvVar{{Name: "LOG", Value: "debug"}}, EnvFrom: []spec.EnvFromSource{{FileRef: &spec.FileRef{Path: "/env"}}},
		ShellMode: spec.ShellNone, Base: []string{"PATH=/bin"},
	}, p.Record.Attempt.Order)
	require.Equal(t, *in.Desired.Spec, p.Record.Attempt.Spec)
	require.Equal(t, server, p.Action.Server)

	in = down(ofSpec(func(s *spec.SessionSpec) { s.Terminal.HistoryLimit = nil }))
	require.Equal(t, spec.DefaultHistoryLimit, decide(t, in).Action.Launch.HistoryLimit)
}

// The record is saved at each step of a start: a prompt is in it once.
func TestAnAttemptKeepsNoPrompt(t *testing.T) {
	in := down(ofSpec(func(s *spec.SessionSpec) { s.InitialPrompt = "hello\n" }))
	p := decide(t, in)
	require.NotNil(t, p.Record.Attempt)
	require.Empty(t, p.Record.Attempt.Spec.InitialPrompt)
	require.True(t, p.Record.Attempt.Initial)
	require.Equal(t, "hello\n", p.Record.Spec.InitialPrompt)
	require.Empty(t, spec.LaunchDiff(&p.Record.Attempt.Spec, p.Record.Spec), "nor is it missed")
}

func TestAnAttemptKeepsTheSpecThatItWasMadeFrom(t *testing.T) {
	in := down()
	in.Record = decide(t, in).Record
	in.Seen.Panes = []SeenPane{pane("%4", 4, 200)}
	receipt(observe.StageExec, 0)(&in)
	seesClient(marked(4, 200))(&in)
	edited(otherCommand)(&in)
	p := decide(t, in)
	require.Equal(t, []string{"agent"}, p.Record.Client.Launched.Client.Command)
	require.Equal(t, []string{"agent", "--new"}, p.Record.Spec.Client.Command)
}

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

// respawns is a death that is followed by a start in the same pass.
func respawns(events []string, changes ...func(*record.Record)) expect {
	return expect{
		rule: "Start", reason: spec.ReasonStarting, action: actuate.ActionRespawn, requeue: pollReceipt, looked: true,
		events: events, changes: allOf(append(changes, opened)...),
	}
}

func creates(events []string, changes ...func(*record.Record)) expect {
	e := respawns(events, changes...)
	e.action = actuate.ActionCreate
	return e
}

// Nothing is decided on a listing from the lifetime of a client that has ended
// since, whatever the listing shows: tmux is asked again, and told to collect
// the end meanwhile.
func TestAListingFromTheClientsLifetimeDecidesNothing(t *testing.T) {
	outdated := ofSeen(func(s *Seen) { s.Outdated = true })
	again := expect{rule: "Outdated", reason: spec.ReasonDied, action: actuate.ActionReap, requeue: soon}
	check(t, []row{
		{"the pane is there", up(gone(0), outdated), again},
		{"the pane was not there", up(gone(0), noPanes, outdated), again},
		{"another client is marked", up(gone(0), outdated, seesClient(marked(2, 90))), again},
		{"the session is removed", up(gone(0), outdated, removed), again},
		{"there was no server", up(gone(0), noServer, outdated), expect{rule: "Outdated", reason: spec.ReasonDied, requeue: soon}},
		{"the client runs", up(outdated), expect{rule: "Live", reason: spec.ReasonRunning, looked: true}},
	})
	stopped := stopping(record.StopTerminated, exited(0), outdated, ofSeen(func(s *Seen) { s.Stop = observe.Gone }))
	require.Nil(t, Compute(stopped).Record.Client, "an end that was asked for is judged where it was asked for")
}

// A dead pane gets the same command again, in the same pane.
func TestADeathIsAccountedForAndFollowedByAStart(t *testing.T) {
	died, dies := []string{"Warning Died"}, []string{"Normal Died"}
	check(t, []row{
		{"a signal", up(signalled(9)), respawns(died, ended(spec.ReasonKilled, &observe.Exit{Signal: 9}), counted)},
		{"an exit with a status", up(exited(3)), respawns(died, ended(spec.ReasonExited, &observe.Exit{Code: 3}), counted)},
		// B13: status 0 is a death like others.
		{"an exit with status 0", up(exited(0)), respawns(dies, ended(spec.ReasonCompleted, &observe.Exit{}), counted)},
		{"an end that tmux never told: the kernel's word", up(gone(time.Second), dead(0, nil, 0), ofSeen(func(s *Seen) { s.ClientExit = &observe.Exit{Signal: 9} })), respawns(died, ended(spec.ReasonKilled, &observe.Exit{Signal: 9}), func(r *record.Record) {
			r.BackOff = record.BackOff{Deaths: 1, LastDeathAt: ago(time.Second)}
		})},
		{"an end that nobody told", up(gone(time.Second), dead(0, nil, 0)), respawns(died, ended(spec.ReasonLost, nil), func(r *record.Record) {
			r.BackOff = record.BackOff{Deaths: 1, LastDeathAt: ago(time.Second)}
		})},
		// A3
		{"the pane was killed", up(gone(0), noPanes), creates(died, ended(spec.ReasonLost, nil), counted)},
		{"the pane was killed, and the kernel tells the end", up(gone(0), noPanes, ofSeen(func(s *Seen) { s.ClientExit = &observe.Exit{Signal: 1} })), creates(died, ended(spec.ReasonKilled, &observe.Exit{Signal: 1}), counted)},
		// A1, A2
		{"the tmux server was killed and another one runs", up(gone(time.Hour), noPanes), creates(died, ended(spec.ReasonLost, nil), func(r *record.Record) {
			r.BackOff = record.BackOff{Deaths: 1, LastDeathAt: ago(time.Second)}
		})},
		{"the tmux server was killed and none runs", up(gone(0), noServer), expect{
			rule: "Server", reason: spec.ReasonServerStarting, looked: true, events: died, changes: allOf(ended(spec.ReasonLost, nil), counted),
		}},
		{"intents of a person are settled as well", up(exited(0), intends(record.IntentRestart, 3)), respawns(dies, ended(spec.ReasonCompleted, &observe.Exit{}), counted, restartWanted)},
	})
}

func TestAnUnknownClientIsNotDead(t *testing.T) {
	check(t, []row{
		{"nothing is concluded", up(noClients, ofSeen(func(s *Seen) { s.Client = observe.LivenessUnknown })), expect{rule: "Death", reason: spec.ReasonProcessUnknown, requeue: pollSlow}},
		{"although its pane is dead", up(exited(0), ofSeen(func(s *Seen) { s.Client = observe.LivenessUnknown })), expect{rule: "Death", reason: spec.ReasonProcessUnknown, requeue: pollSlow}},
		{"although its server is gone and it is suspended", up(noServer, noClients, ofSpec(suspended), ofSeen(func(s *Seen) { s.Client = observe.LivenessUnknown })), expect{rule: "Death", reason: spec.ReasonProcessUnknown, requeue: pollSlow}},
	})
}

// tmux 3.3a loses most ends on a quiet machine until it gets a SIGCHLD.
func TestTmuxIsAskedToCollectALostEnd(t *testing.T) {
	reaps := func(requeue time.Duration) expect {
		return expect{rule: "Death", reason: spec.ReasonDied, action: actuate.ActionReap, requeue: requeue, also: func(t *testing.T, p Plan) {
			require.Equal(t, server, p.Action.Server)
		}}
	}
	present := ofSeen(func(s *Seen) { s.Panes[0].Live = observe.Gone })
	check(t, []row{
		{"at once when the pane is dead without a status", up(gone(0), dead(0, nil, 0)), reaps(pollStatus)},
		{"at once when the pane is not even dead", up(gone(0), present), reaps(pollStatus)},
		{"although the pane was looked at just before the client ended", up(gone(0)), reaps(pollStatus)},
		{"although nothing is known of the pane's process, which was the client", up(gone(0), ofSeen(func(s *Seen) { s.Panes[0].Live = observe.LivenessUnknown })), reaps(pollStatus)},
		{"although the client ran below a shell, when that is gone as well", up(gone(0), shellBelow, ofSeen(func(s *Seen) { s.Panes[0].Live = observe.Gone })), reaps(pollStatus)},
		{"although the dead shell's pid is another process's by now", up(gone(0), shellBelow, reused(0)), reaps(pollStatus)},
		{"less often later", up(gone(800*time.Millisecond), dead(0, nil, 0)), reaps(200 * time.Millisecond)},
		{"up to a second", up(gone(time.Second-1), dead(0, nil, 0)), reaps(249999999 * time.Nanosecond)},
	})
}

// Completed by restartPolicy: only an own exit can be the end of the work.
func TestRestartPolicyJudgesAClientsOwnExit(t *testing.T) {
	lost := given(func(in *Input) {
		gone(0)(in)
		noPanes(in)
	})
	unknown := given(func(in *Input) {
		gone(time.Second)(in)
		dead(0, nil, 0)(in)
	})
	for _, r := range []struct {
		policy    spec.RestartPolicy
		end       string
		how       given
		completes bool
	}{
		{spec.RestartAlways, "status 0", exited(0), false},
		{spec.RestartAlways, "status 1", exited(1), false},
		{spec.RestartAlways, "a signal", signalled(9), false},
		{spec.RestartAlways, "an unknown end", unknown, false},
		{spec.RestartAlways, "a lost pane", lost, false},
		// D5
		{spec.RestartOnFailure, "status 0", exited(0), true},
		{spec.RestartOnFailure, "status 1", exited(1), false},
		{spec.RestartOnFailure, "a signal", signalled(9), false},
		{spec.RestartOnFailure, "an unknown end", unknown, false},
		{spec.RestartOnFailure, "a lost pane", lost, false},
		{spec.RestartNever, "status 0", exited(0), true},
		{spec.RestartNever, "status 1", exited(1), true},
		{spec.RestartNever, "a signal", signalled(9), true},
		{spec.RestartNever, "an unknown end", unknown, true},
		{spec.RestartNever, "a lost pane", lost, false},
	} {
		t.Run(string(r.policy)+" after "+r.end, func(t *testing.T) {
			p := decide(t, up(ofSpec(restartPolicy(r.policy)), r.how))
			require.Equal(t, 1, p.Record.BackOff.Deaths, "it is counted all the same")
			if !r.completes {
				require.Equal(t, "Start", p.Verdict.Rule)
				return
			}
			require.Equal(t, "Latch", p.Verdict.Rule)
			require.Equal(t, spec.ReasonCompleted, p.Verdict.Reason)
			require.Zero(t, p.Action)
			require.Zero(t, p.RequeueAfter)
			require.Equal(t, &record.Latch{Reason: spec.ReasonCompleted, Message: p.Record.LastTermination.Message + "; restartPolicy is " + string(r.policy), At: now}, p.Record.Latch)
			require.Contains(t, eventsOf(p), "Normal Completed")
		})
	}
	require.False(t, completes("", &observe.Exit{}), "without a policy nothing is complete")
}

func TestASessionWithoutASpecCompletesNothing(t *testing.T) {
	p := decide(t, up(exited(0), func(in *Input) { in.Desired, in.Record.Spec = Desired{}, nil }))
	require.Nil(t, p.Record.Latch)
	require.Equal(t, spec.ReasonInvalid, p.Verdict.Reason)
}

func TestAnEndIsToldInWords(t *testing.T) {
	for _, r := range []struct {
		exit     *observe.Exit
		reason   string
		sentence string
	}{
		{nil, spec.ReasonLost, "how it ended was not observed"},
		{&observe.Exit{}, spec.ReasonCompleted, "exited with status 0"},
		{&observe.Exit{Code: 3}, spec.ReasonExited, "exited with status 3"},
		{&observe.Exit{Signal: 15}, spec.ReasonKilled, "ended by SIGTERM"},
	} {
		require.Equal(t, r.reason, end{exit: r.exit}.reason())
		require.Equal(t, r.sentence, end{exit: r.exit}.sentence())
	}
	require.Nil(t, exitOf(observe.Pane{}))
	require.Equal(t, &observe.Exit{Signal: 9}, exitOf(observe.Pane{ExitSignal: 9, ExitStatus: ptr.To(0)}))
}

// An end is read from the pane in which the client was executed, and from no
// other.
func TestAnEndIsReadFromTheClientsOwnPane(t *testing.T) {
	in := up(gone(0), ofSeen(func(s *Seen) { s.Panes[0].PID, s.Panes[0].Process = 555, process(555) }), dead(0, ptr.To(7), 0))
	require.Nil(t, decide(t, in).Record.LastTermination.Exit, "the status is that of what a person ran there")

	in = up(gone(0), ofSeen(func(s *Seen) { s.Panes[0].Labels.Attempt = "a2" }), dead(0, ptr.To(7), 0))
	require.Nil(t, decide(t, in).Record.LastTermination.Exit, "the status is that of another attempt")

	in = up(gone(0), ofRecord(func(r *record.Record) { r.Client.PanePID = 0 }), dead(0, ptr.To(7), 0))
	require.Equal(t, &observe.Exit{Code: 7}, decide(t, in).Record.LastTermination.Exit, "the pane was not known, the pid is enough")
}

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

// adopted is the record of the client of incarnation 3, 4 … in pane id.
func adopted(incarnation int64, id string, pid, panePID int) func(*record.Record) {
	return func(r *record.Record) {
		r.Incarnation = max(r.Incarnation, incarnation)
		r.Client = &record.Client{
			Incarnation: incarnation, Attempt: label(incarnation), Process: process(pid), Pane: id, PanePID: panePID, StartedAt: now, Server: server,
		}
		r.Attempt, r.Stop, r.Demand, r.Latch, r.Block = nil, nil, nil, nil, nil
	}
}

var justAdopted = expect{rule: "Adopt", reason: spec.ReasonAdopted, requeue: soon, events: []string{"Normal Adopted"}}

func adoption(incarnation int64, id string, pid, panePID int) expect {
	e := justAdopted
	e.changes = adopted(incarnation, id, pid, panePID)
	return e
}

// forget makes the record that of a session that was never seen.
func forget(in *Input) {
	in.Record = record.Record{UID: uid, Name: "shop", CreatedAt: now, Generation: 1, Spec: aSpec(), File: in.Record.File, Labels: in.Record.Labels}
}

// M4, A8: state was lost or rolled back while tmux and the client lived on.
func TestALiveClientIsAdopted(t *testing.T) {
	lives := []given{seesPane(pane("%5", 5, 300)), seesClient(marked(5, 300))}
	live := func(gs ...given) Input { return down(append(lives, gs...)...) }
	check(t, []row{
		{"when the record was lost", live(forget), adoption(5, "%5", 300, 300)},
		{"when the record is behind", live(), adoption(5, "%5", 300, 300)},
		{"when the record was rolled back to a client that is gone", up(gone(time.Hour), noPanes, lives[0], lives[1]), adoption(5, "%5", 300, 300)},
		{"when the record was rolled back to another attempt", starting(noPanes, lives[0], lives[1]), adoption(5, "%5", 300, 300)},
		{"when the record was rolled back to a stop", stopping(record.StopUpdating, gone(0), noPanes, lives[0], lives[1], ofSeen(func(s *Seen) { s.Stop = observe.Gone })), adoption(5, "%5", 300, 300)},
		{"although the record says why there is none", live(latched(spec.ReasonTerminated), blocked(spec.ReasonCommandNotFound), demanded), adoption(5, "%5", 300, 300)},
		{"although its document is removed, since only then it can be stopped", live(removed), adoption(5, "%5", 300, 300)},
		{"below the shell that is the pane's first process", down(seesPane(pane("%5", 5, 299)), func(in *Input) {
			m := marked(5, 300)
			m.Parent = 299
			in.Seen.Clients = append(in.Seen.Clients, m)
		}), adoption(5, "%5", 300, 299)},
		{"by its lease, when it hides its environment", down(forget, seesPane(pane("%5", 5, 300)), func(in *Input) {
			in.Seen.Clients = []observe.MarkedProcess{{Mark: observe.Mark{UID: uid, Process: process(300)}}}
		}), adoption(5, "%5", 300, 300)},
		{"by its lease, one number above the record", down(seesPane(pane("%4", 4, 300)), func(in *Input) {
			in.Seen.Clients = []observe.MarkedProcess{{Mark: observe.Mark{UID: uid, Process: process(300)}}}
		}), adoption(4, "%4", 300, 300)},
		{"by its lease, although its attempt was taken for a failure", down(seesPane(pane("%4", 4, 300)), ofRecord(func(r *record.Record) { r.LastFailed = "a4" }), func(in *Input) {
			in.Seen.Clients = []observe.MarkedProcess{{Mark: observe.Mark{UID: uid, Process: process(300)}}}
		}), adoption(4, "%4", 300, 300)},
		{"as what its mark says, whatever the pane's label is", down(seesPane(pane("%5", 5, 300)), seesClient(marked(6, 300))), adoption(6, "%5", 300, 300)},
		{"beside another one that has no pane", live(forget, seesClient(marked(4, 280))), adoption(5, "%5", 300, 300)},
		{"and a number that the record has already is kept", down(seesPane(pane("%2", 2, 300)), seesClient(marked(2, 300))), adoption(2, "%2", 300, 300)},
	})
}

// N1: what a person said about this incarnation outlives the loss of the record's
// client; what they said about an earlier one never ends a later one.
func TestAPersonsIntentOutlivesAnAdoption(t *testing.T) {
	in := down(intends(record.IntentTerminate, 5), seesPane(pane("%5", 5, 300)), seesClient(marked(5, 300)))
	p := decide(t, in)
	require.Equal(t, spec.ReasonAdopted, p.Verdict.Reason)
	in.Record, in.Seen.Client = p.Record, observe.Running
	p = decide(t, in)
	require.Equal(t, &record.Stop{Reason: record.StopTerminated, Process: process(300)}, p.Record.Stop)

	in = down(intends(record.IntentTerminate, 4), seesPane(pane("%5", 5, 300)), seesClient(marked(5, 300)))
	p = decide(t, in)
	in.Record, in.Seen.Client = p.Record, observe.Running
	p = decide(t, in)
	require.Equal(t, spec.ReasonRunning, p.Verdict.Reason)
	require.Nil(t, p.Record.Intent)
}

func TestNoClientIsAdopted(t *testing.T) {
	lives := []given{seesPane(pane("%5", 5, 300)), seesClient(marked(5, 300))}
	check(t, []row{
		{"while the recorded one runs: the other one is a duplicate", up(lives...), expect{
			rule: "Duplicate", reason: spec.ReasonStopping, requeue: soon, events: []string{"Warning DuplicateClient"},
			changes: allOf(ending(record.StopDuplicate, 300), func(r *record.Record) { r.Incarnation = 5 }),
		}},
		{"while it is not known whether the recorded one runs", up(append(lives, ofSeen(func(s *Seen) { s.Client, s.Clients = observe.LivenessUnknown, s.Clients[1:] }))...), expect{
			rule: "Death", reason: spec.ReasonProcessUnknown, requeue: pollSlow, changes: func(r *record.Record) { r.Incarnation = 5 },
		}},
		{"while the pending attempt's runs: the other one is a duplicate", starting(append(lives, seesClient(marked(4, 200)))...), expect{
			rule: "Duplicate", reason: spec.ReasonStopping, requeue: soon, events: []string{"Warning DuplicateClient"},
			changes: allOf(ending(record.StopDuplicate, 300), func(r *record.Record) { r.Incarnation = 5 }),
		}},
		{"when two run in panes and the record knows neither", down(append(lives, seesPane(pane("%6", 6, 310)), seesClient(marked(6, 310)))...), expect{
			rule: "Duplicate", reason: spec.ReasonDuplicateClient, changes: func(r *record.Record) { r.Incarnation = 6 },
		}},
		{"by a pane's labels alone, which survive a person's own respawn", down(lives[0]), expect{
			rule: "Occupied", reason: spec.ReasonNameConflict, looked: true, changes: func(r *record.Record) { r.Incarnation = 5 },
		}},
		{"in a pane that is dead", down(lives[0], lives[1], dead(0, nil, 9)), expect{
			rule: "Orphan", reason: spec.ReasonStopping, requeue: soon, events: []string{"Warning Orphan"},
			changes: allOf(ending(record.StopOrphan, 300), func(r *record.Record) { r.Incarnation = 5 }),
		}},
	})
}

func TestTheIncarnationIsRaisedToWhatWasSeen(t *testing.T) {
	for _, r := range []struct {
		name string
		in   Input
		want int64
	}{
		{"a mark is proof that its number is spent", down(seesClient(marked(7, 300))), 7},
		{"also the mark of the pending attempt", starting(seesClient(marked(4, 200))), 4},
		{"a label two above the record is that of a lost record", down(seesPane(pane("%5", 5, 300))), 5},
		{"so is one that is one above it", down(seesPane(pane("%4", 4, 300)), dead(0, ptr.To(1), 0)), 4},
		{"but not that of the attempt that failed last", down(seesPane(pane("%4", 4, 300)), dead(0, ptr.To(1), 0), ofRecord(func(r *record.Record) { r.LastFailed = "a4" })), 3},
		{"nor that of the pending attempt", starting(), 3},
		{"but that of another one beside it", starting(seesPane(pane("%3", 4, 300)), ofSeen(func(s *Seen) { s.Panes[1].Labels.Attempt = "lost" })), 4},
		{"what is lower lowers nothing", down(seesClient(marked(1, 300)), seesPane(pane("%2", 2, 300))), 3},
	} {
		t.Run(r.name, func(t *testing.T) {
			require.Equal(t, r.want, decide(t, r.in).Record.Incarnation)
		})
	}
}

// No number is used twice: not after the client that was adopted has died, nor
// after one that was seen and never got into the record.
func TestANumberIsNeverUsedTwice(t *testing.T) {
	in := down(forget, seesPane(pane("%5", 5, 300)), seesClient(marked(5, 300)))
	in.Record = decide(t, in).Record
	gone(0)(&in)
	dead(0, ptr.To(1), 0)(&in)
	p := decide(t, in)
	require.Equal(t, actuate.ActionRespawn, p.Action.Kind)
	require.Equal(t, int64(6), p.Record.Attempt.Incarnation)

	// The attempt's client ran, as its mark has shown, and nothing else is left of it.
	in = starting(seesClient(marked(4, 200)), noPanes)
	p = decide(t, in)
	require.Equal(t, spec.ReasonStopping, p.Verdict.Reason)
	in.Record, in.Seen.Clients, in.Seen.Stop = p.Record, nil, observe.Gone
	p = decide(t, in) // the fence is closed
	in.Record, in.New.ID = p.Record, "a5"
	p = decide(t, in)
	require.Equal(t, int64(5), p.Record.Attempt.Incarnation)
}

// Invariant 4: at most one live client.
func TestADuplicateIsEnded(t *testing.T) {
	ends := func(pid int) expect {
		return expect{
			rule: "Duplicate", reason: spec.ReasonStopping, requeue: soon, events: []string{"Warning DuplicateClient"},
			changes: ending(record.StopDuplicate, pid),
		}
	}
	holds := expect{rule: "Duplicate", reason: spec.ReasonDuplicateClient, also: func(t *testing.T, p Plan) {
		require.Regexp(t, "^pids [0-9]+, [0-9]+ all are clients", p.Verdict.Message)
	}}
	check(t, []row{
		{"when the record matches the other one", up(seesClient(marked(2, 90))), ends(90)},
		{"also in a pane of its own", up(seesClient(marked(2, 90)), seesPane(pane("%2", 2, 90))), ends(90)},
		{"when the pending attempt matches the other one", starting(seesClient(marked(2, 90)), seesClient(marked(4, 200)), ofRecord(func(r *record.Record) { r.Incarnation = 4 })), ends(90)},
		{"when the recorded one has lost its pane to it, since the record decides", up(noPanes, seesPane(pane("%2", 2, 90)), seesClient(marked(2, 90))), ends(90)},
		{"when both are in the record, and it has no pane", up(func(in *Input) {
			in.Record.Attempt = starting().Record.Attempt
			in.Record.Incarnation = 4
			in.Seen.Panes = starting().Seen.Panes
		}, seesClient(marked(4, 200))), ends(100)},
		{"before that, when no record names it", up(func(in *Input) {
			in.Record.Attempt = starting().Record.Attempt
			in.Record.Incarnation = 4
			in.Seen.Panes = starting().Seen.Panes
		}, seesClient(marked(4, 200)), seesClient(marked(2, 90))), ends(90)},
		{"not when both are in the record and have panes", up(func(in *Input) {
			in.Record.Attempt = starting().Record.Attempt
			in.Record.Incarnation = 4
		}, seesPane(pane("%4", 4, 200)), seesClient(marked(4, 200))), holds},
		{"not when neither is in the record: a person must choose", down(seesClient(marked(2, 90)), seesClient(marked(3, 100))), holds},
	})
}

func TestADuplicateWaitsForAStopInProgress(t *testing.T) {
	in := stopping(record.StopDuplicate, seesClient(marked(2, 90)), seesClient(marked(1, 80)))
	in.Record.Stop.Process = process(90)
	in.Record.Stop.TermAt = ago(time.Second)
	p := decide(t, in)
	require.Equal(t, "Stop", p.Verdict.Rule)
	in.Seen.Stop = observe.Gone
	in.Seen.Clients = in.Seen.Clients[:1:1]
	seesClient(marked(1, 80))(&in)
	p = decide(t, in)
	require.Nil(t, p.Record.Stop, "it has ended")
	require.Equal(t, soon, p.RequeueAfter, "and the next one is looked at in another pass")
	in.Record = p.Record
	require.Equal(t, &record.Stop{Reason: record.StopDuplicate, Process: process(80)}, decide(t, in).Record.Stop)
}

// K1, C1: a client without its pane can take no turn and still writes.
func TestAnOrphanIsEnded(t *testing.T) {
	ends := func(pid int) expect {
		return expect{
			rule: "Orphan", reason: spec.ReasonStopping, requeue: soon, events: []string{"Warning Orphan"},
			changes: ending(record.StopOrphan, pid),
		}
	}
	respawned := ofSeen(func(s *Seen) { s.Panes[0].PID, s.Panes[0].Process = 555, process(555) })
	check(t, []row{
		{"when its pane is dead", up(dead(0, ptr.To(0), 0)), ends(100)},
		{"when its pane is gone", up(noPanes), ends(100)},
		{"when its server is gone", up(noServer), ends(100)},
		{"when a person has run something else in its pane", up(respawned), ends(100)},
		{"when no record names it", down(seesClient(marked(2, 90))), ends(90)},
		{"when it is the pending attempt's", starting(noPanes, seesClient(marked(4, 200)), ofRecord(func(r *record.Record) { r.Incarnation = 4 })), ends(200)},
		{"when it is the pending attempt's, and the listing is younger", starting(noPanes, seesClient(marked(4, 200)), receipt(observe.StageExec, 0), ofRecord(func(r *record.Record) { r.Incarnation = 4 })), ends(200)},
		{"when it is the pending attempt's, and the pane is another one's", starting(noPanes, seesPane(pane("%2", 2, 555)), seesClient(marked(4, 200)), ofRecord(func(r *record.Record) { r.Incarnation = 4 })), ends(200)},
		{"when an attempt is pending, and it is another one's, whose pane a person uses", starting(seesPane(pane("%2", 2, 555)), seesClient(marked(2, 90))), ends(90)},
		{"when the shell between its pane and it is gone, though tmux does not say so", starting(seesClient(marked(4, 210)), ofSeen(func(s *Seen) { s.Panes[0].Live = observe.Gone }), ofRecord(func(r *record.Record) { r.Incarnation = 4 })), ends(210)},
		{"although its session is removed", up(noPanes, removed), ends(100)},
		{"although its session is suspended", up(noPanes, ofSpec(suspended)), ends(100)},
	})
}

func TestAClientInItsPaneIsNoOrphan(t *testing.T) {
	check(t, []row{
		{"when a shell is the pane's first process", up(shellBelow), expect{rule: "Live", reason: spec.ReasonRunning, looked: true}},
		{"when other programs are between the pane and the client of a pending attempt", starting(seesClient(marked(4, 210)), receipt(observe.StageExec, 0), ofSeen(func(s *Seen) {
			s.Receipt.Process = process(210)
		}), ofRecord(func(r *record.Record) { r.Incarnation = 4 })), expect{
			rule: "Attempt", reason: spec.ReasonStarted, requeue: soon, events: []string{"Normal Started"}, changes: executed(4, 210, 200),
		}},
		{"when it was executed after the listing was made: its pane may be there by now", starting(noPanes, seesClient(marked(4, 200)), receipt(observe.StageExec, 0), ofSeen(func(s *Seen) {
			s.At = ago(time.Millisecond)
		}), ofRecord(func(r *record.Record) { r.Incarnation = 4 })), expect{
			rule: "Attempt", reason: spec.ReasonStarted, requeue: soon, events: []string{"Normal Started"}, changes: executed(4, 200, 0),
		}},
		{"when its pane was moved to another session", up(ofSeen(func(s *Seen) {
			s.Panes[0].SessionID, s.Panes[0].SessionName, s.Panes[0].WindowID = "$9", "elsewhere", "@9"
		})), expect{rule: "Live", reason: spec.ReasonRunning, looked: true}},
	})
}

// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/utils/ptr"

	"github.com/muxlet/muxlet/actuate"
	"github.com/muxlet/muxlet/controller/record"
	"github.com/muxlet/muxlet/controller/turn"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec"
)

// dice makes inputs: of a handful of processes, panes and attempts, so that they
// meet, and without regard to whether the whole can be true.
type dice struct{ *rand.Rand }

func (d dice) one(n int) bool { return d.IntN(n) == 0 }

func (d dice) time() time.Time {
	return now.Add([]time.Duration{-time.Hour, -time.Minute, -11 * time.Second, -3 * time.Second, -time.Second, -50 * time.Millisecond, 0, time.Hour}[d.IntN(8)])
}

func (d dice) process() observe.Process { return process(100 + d.IntN(5)) }

func (d dice) live() observe.Liveness { return observe.Liveness(d.IntN(3)) }

func (d dice) spec() *spec.SessionSpec {
	s := aSpec()
	s.Suspend = d.one(6)
	s.RestartPolicy = []spec.RestartPolicy{spec.RestartAlways, spec.RestartOnFailure, spec.RestartNever}[d.IntN(3)]
	s.RecoveryPolicy = []spec.RecoveryPolicy{spec.RecoveryResume, spec.RecoveryDormant}[d.IntN(2)]
	s.UpdateStrategy.Type = []spec.UpdateStrategyType{spec.UpdateWhenIdle, spec.UpdateRecreate, spec.UpdateOnRestart}[d.IntN(3)]
	s.ProvisioningPolicy = []spec.ProvisioningPolicy{spec.ProvisioningEager, spec.ProvisioningEager, spec.ProvisioningOnDemand}[d.IntN(3)]
	if d.one(4) {
		s.InitialPrompt = "hello"
	}
	s.DeletionPolicy = []spec.DeletionPolicy{spec.DeletionDelete, spec.DeletionOrphan}[d.IntN(2)]
	s.TerminationGracePeriodSeconds = ptr.To(int32(d.IntN(3) * 5))
	if d.one(3) {
		otherCommand(s)
	}
	if d.one(2) {
		d.converse(s)
	}
	d.probe(s)
	if d.one(5) {
		confined(s)
		s.Resources.OnUnsupported = []spec.OnUnsupported{spec.UnsupportedFail, spec.UnsupportedIgnore}[d.IntN(2)]
	}
	return s
}

func (d dice) exit() *observe.Exit {
	return []*observe.Exit{nil, {}, {Code: 1}, {Signal: 9}}[d.IntN(4)]
}

func (d dice) record() record.Record {
	r := record.Record{UID: uid, Name: "shop", CreatedAt: d.time(), Incarnation: int64(d.IntN(5))}
	if !d.one(8) {
		r.Spec, r.Generation = d.spec(), 1
	}
	switch d.IntN(4) {
	case 0:
		n := r.Incarnation + 1
		r.Attempt = &record.Attempt{ID: label(n), Incarnation: n, OpenedAt: d.time(), Spec: *d.spec(), Fence: []record.Fence{record.FenceOpen, record.FenceClosed}[d.IntN(2)], Reason: []string{spec.ReasonStartTimeout, spec.ReasonSuspended}[d.IntN(2)]}
	case 1, 2:
		n := max(r.Incarnation, 1)
		p := d.process()
		r.Client = &record.Client{Incarnation: n, Attempt: label(n), Process: p, PanePID: p.PID, Pane: "%1", StartedAt: d.time(), Launched: d.spec(), Server: server}
		if d.one(4) {
			r.Client.PanePID, r.Client.Launched = 100+d.IntN(5), nil
		}
	}
	if d.one(5) {
		r.Stop = &record.Stop{Reason: []record.StopReason{record.StopSuspended, record.StopUpdating, record.StopOrphan, record.StopTerminated, record.StopLeftover, record.StopProbeFailed}[d.IntN(6)], Process: d.process()}
		if d.one(2) {
			r.Stop.TermAt, r.Stop.Descendants = d.time(), []observe.Process{process(200)}
		}
		if d.one(4) {
			r.Stop.KillAt, r.Stop.TreeTermAt = d.time(), d.time()
		}
	}
	d.moods(&r)
	d.conversation(&r)
	return r
}

func (d dice) moods(r *record.Record) {
	if d.one(4) {
		r.Intent = &record.Intent{Kind: []record.IntentKind{record.IntentTerminate, record.IntentRestart}[d.IntN(2)], Incarnation: int64(d.IntN(5)), At: d.time()}
	}
	if d.one(4) {
		r.Demand = &record.Demand{Reason: spec.ReasonResumed, At: d.time()}
	}
	if d.one(4) {
		r.Latch = &record.Latch{Reason: []string{spec.ReasonTerminated, spec.ReasonCompleted, spec.ReasonNotRecovered}[d.IntN(3)], At: d.time()}
	}
	if d.one(4) {
		r.Block = &record.Block{Reason: spec.ReasonCommandNotFound, At: d.time()}
	}
	if d.one(3) {
		r.BackOff = record.BackOff{Deaths: d.IntN(12), LastDeathAt: d.time(), BoughtAt: d.time()}
	}
	if d.one(2) {
		r.LastTermination = &record.Termination{Incarnation: r.Incarnation, Exit: d.exit(), Reason: spec.ReasonExited, At: d.time()}
	}
}

func (d dice) pane(n int) SeenPane {
	p := pane(fmt.Sprintf("%%%d", n), int64(d.IntN(7)), 100+d.IntN(5))
	p.Live, p.Attached = d.live(), d.IntN(2)
	if p.Live != observe.Running {
		p.Process = observe.Process{}
	}
	if d.one(3) {
		p.LaunchedPID = 100 + d.IntN(5)
	}
	if d.one(2) {
		p.State = observe.Dead
		if e := d.exit(); e != nil {
			p.ExitSignal = e.Signal
			p.ExitStatus = &e.Code
		}
	}
	return p
}

func (d dice) seen() Seen {
	s := Seen{
		Sight: Sight(min(d.IntN(6), 1)), Reason: spec.ReasonTmuxTimeout, At: now, UnknownFor: time.Duration(d.IntN(9)) * time.Second,
		Confirmation: Confirmation(min(d.IntN(6), 1)), ServerState: observe.ServerRunning, Server: server,
		Client: d.live(), ClientExit: d.exit(), GoneFor: []time.Duration{0, time.Millisecond, time.Second, time.Minute}[d.IntN(4)],
		ReceiptState: ReceiptState(d.IntN(3)), ReceiptProcess: d.live(), Lease: observe.Lease{State: d.live()},
		Stop: d.live(),
	}
	if s.ReceiptState == ReceiptFound {
		s.Receipt = observe.Receipt{Attempt: "a4", Process: d.process(), At: d.time(), Stage: observe.StageExec}
		if d.one(2) {
			s.Receipt.Stage, s.Receipt.Reason = observe.StageFailed, []string{spec.ReasonExecFailed, spec.ReasonCommandNotFound}[d.IntN(2)]
			d.findings(&s.Receipt)
		}
	}
	if d.one(5) {
		s.ServerState, s.Server = observe.ServerNone, observe.Server{}
	} else {
		for n := range d.IntN(3) {
			s.Panes = append(s.Panes, d.pane(n))
		}
		if d.one(5) {
			s.NameHolder = "$9"
		}
	}
	for range d.IntN(5) / 3 {
		s.Clients = append(s.Clients, marked(int64(1+d.IntN(5)), 100+d.IntN(5)))
	}
	if d.one(2) {
		s.Tree, s.TreeRunning = descendants, []observe.Process{process(200)}
	}
	if d.one(4) {
		s.Remains = descendants
	}
	if d.one(4) {
		s.OOM = observe.OOM{Kills: d.IntN(3), At: ago(time.Duration(d.IntN(10)) * time.Second)}
	}
	return s
}

func (d dice) input() Input {
	in := Input{
		Now: now, Record: d.record(), Seen: d.seen(), Workspace: Workspace{Path: "/work"}, Block: Obstacle(d.IntN(2)),
		Grant: Grant(min(d.IntN(5), 1)), New: NewAttempt{ID: "new", Instance: instance}, Policy: policy, FirstLook: d.one(3),
		Scopes: Scopes{Known: !d.one(4), Bus: []string{"", bus}[d.IntN(2)], Problem: "there is no bus"},
	}
	if c := in.Record.Client; c != nil && len(in.Seen.Panes) > 0 && !d.one(3) {
		p := &in.Seen.Panes[0]
		p.Labels.Attempt, p.PID = c.Attempt, c.PanePID
		if p.Live == observe.Running {
			p.Process = process(p.PID)
		}
	}
	if s := in.Record.Stop; s == nil || len(s.Descendants) == 0 {
		in.Seen.TreeRunning = nil
	}
	if !d.one(4) {
		in.Desired = Desired{Spec: d.spec(), File: "/m/shop.yaml"}
	}
	if d.one(6) {
		in.Desired.Want = Remove
	}
	if d.one(8) {
		in.Desired.Refusal = Verdict{Reason: spec.ReasonDuplicateName, Message: "two files declare it"}
	}
	if d.one(8) {
		in.Limits.Terminals = observe.Use{Used: d.IntN(100), Limit: 100}
		in.Limits.ServerFiles = observe.Use{Used: d.IntN(100), Limit: 100}
	}
	if d.one(8) {
		in.Workspace.Obstacle = spec.ReasonWorkspaceMissing
	}
	return d.turns(d.probed(d.agents(in)))
}

// Whatever is fed in, the invariants hold, the input stays as it is and the plan
// is the same again.
func TestEveryPlanKeepsTheInvariants(t *testing.T) {
	rules, acted := map[string]int{}, map[actuate.Kind]int{}
	seedsUntil(t, 20_000, func(seed uint64) {
		p := decide(t, dice{rand.New(rand.NewPCG(seed, 1))}.input())
		rules[p.Verdict.Rule]++
		acted[p.Action.Kind]++
	}, func() []string {
		return append(notMet(rules, "Unknown", "Adopt", "Duplicate", "Orphan", "Stop", "Attempt", "Death", "Remove", "Leftover", "Suspend", "Intent", "Probe", "Update", "Live", "Turn", "Refusal", "Latch", "Dormant", "Occupied", "Block", "BackOff", "Server", "Name", "Limits", "Hold", "Conversation", "Budget", "Start"),
			notMet(acted, actuate.ActionCreate, actuate.ActionRespawn, actuate.ActionRespawnKill, actuate.ActionKillPane, actuate.ActionRelease, actuate.ActionReap, actuate.ActionSignal, actuate.ActionKeys, actuate.ActionPaste, actuate.ActionSubmit, actuate.ActionQueue)...)
	})
}

// still makes a world out of dice: everything in it stays as it is.
func still(t *testing.T, seed uint64) *world {
	d := dice{rand.New(rand.NewPCG(seed, 2))}
	w := newWorld(t, seed)
	w.disk, w.serverUp = d.record(), !d.one(5)
	w.serverAt = now.Add(24 * time.Hour)
	w.restart = d.one(2)
	w.desired.Spec = d.spec()
	if d.one(6) {
		w.desired.Want = Remove
	}
	for n := range 5 {
		b := &body{Process: process(100 + n), live: d.live(), exit: d.exit(), goneAt: ago(time.Duration(d.IntN(3)) * time.Second)}
		if d.one(4) {
			m := marked(int64(1+d.IntN(5)), 100+n)
			b.mark, b.noLease = &m, d.one(2)
		}
		w.bodies = append(w.bodies, b)
	}
	for n := range d.IntN(3) {
		p := d.pane(n)
		w.rooms = append(w.rooms, &room{Pane: p.Pane, inside: w.find(process(p.PID))})
	}
	if a := w.disk.Attempt; a != nil && d.one(2) {
		w.receipts[a.ID] = d.receipt(a.ID)
	}
	return w
}

func (d dice) receipt(attempt string) observe.Receipt {
	r := observe.Receipt{Attempt: attempt, Process: d.process(), At: d.time(), Stage: observe.StageExec}
	if d.one(2) {
		r.Stage, r.Reason = observe.StageFailed, spec.ReasonExecFailed
	}
	return r
}

// When nothing moves, not even time, the record comes to rest.
func TestARecordSettlesWhenNothingMoves(t *testing.T) {
	seeds(t, 1000, func(seed uint64) {
		w := still(t, seed)
		for range 12 {
			in := w.input()
			p := decide(t, in)
			if equalRecords(in.Record, p.Record) {
				return
			}
			w.disk = p.Record
			w.restart = w.restart && !p.Looked
		}
		p := decide(t, w.input())
		t.Fatalf("the record still changes: rule %s, %s: %s", p.Verdict.Rule, p.Verdict.Reason, p.Verdict.Message)
	})
}

// When nothing moves but time, no more is looked at, started or written than a
// poll and a back-off allow: nothing spins.
func TestNothingSpinsWhenNothingMovesButTime(t *testing.T) {
	seeds(t, 60, func(seed uint64) {
		w := still(t, seed)
		passes, starts, writes := 0, 0, 0
		for w.now.Before(now.Add(time.Minute)) {
			in := w.input()
			p := decide(t, in)
			passes++
			if !equalRecords(in.Record, p.Record) {
				writes++
			}
			if p.Action.Launch.Labels.Attempt != "" {
				starts++
			}
			w.disk = p.Record
			w.restart = w.restart && !p.Looked
			if p.RequeueAfter == 0 {
				p.RequeueAfter = 15 * time.Second
			}
			w.now = w.now.Add(p.RequeueAfter)
		}
		require.Less(t, passes, 60*4+200, "looks")
		require.Less(t, starts, 9, "starts")
		require.Less(t, writes, 60+9*5, "writes")
	})
}

// disturb does to the world what happens in the field.
func (w *world) disturb() {
	switch w.rand.IntN(24) {
	case 0, 1, 2:
		for _, b := range w.clients() {
			w.end(b, dice{w.rand}.exit())
		}
	case 3:
		if len(w.rooms) > 0 {
			w.killPane(w.rooms[0])
		}
	case 4:
		for len(w.rooms) > 0 {
			w.killPane(w.rooms[0])
		}
		w.serverUp, w.serverAt = false, w.now
	case 5:
		if len(w.rooms) > 0 { // a person's own respawn
			old := w.rooms[0].inside
			w.spawn(w.rooms[0]).stubborn = false
			if !old.stubborn {
				w.end(old, &observe.Exit{Signal: 1})
			}
		}
	case 6:
		w.blind = true
	case 7, 8, 9:
		w.disk, _ = Apply(w.disk, []Request{RequestResume, RequestResume, RequestResume, RequestRestart, RequestTerminate}[w.rand.IntN(5)], w.now)
	case 10, 11:
		w.desired.Spec = dice{w.rand}.spec()
		w.settle(w.desired.Spec)
		if id := w.desired.Spec.Conversation.ID; id != "" {
			w.adoptable[id], w.lost = true, false
		}
	case 12:
		if len(w.past) > 0 {
			w.disk, w.forgetful, w.restart, w.lost = w.past[w.rand.IntN(len(w.past))], true, true, false
		}
	case 13:
		w.disk, w.forgetful, w.restart = record.Record{UID: uid, Name: "shop", CreatedAt: w.now}, true, true
		if w.lost = w.one(2); w.lost {
			w.disk.Block = &record.Block{Reason: spec.ReasonRecordQuarantined, Message: "it was damaged", At: w.now}
		}
	case 14:
		w.crash()
	case 16, 17, 18, 19, 20, 21, 22, 23:
		w.disturbAgents()
	case 15:
		w.later(time.Duration(w.rand.IntN(30)) * time.Second)
	}
}

// calm ends all disturbance: the session is wanted, a person has said so, and
// what they ran in its pane has ended.
func (w *world) calm() {
	w.blind = false
	w.desired.Spec = aSpec()
	dice{w.rand}.probe(w.desired.Spec)
	w.settle(w.desired.Spec)
	w.calmAgents()
	w.heal()
	w.disk.Demand = &record.Demand{Reason: spec.ReasonResumed, At: w.now, Fresh: w.disk.Block != nil && w.disk.Block.Reason == spec.ReasonRecordQuarantined || w.one(4)}
	w.lost = false
	w.disk.Intent = nil
	for _, b := range w.bodies {
		if b.attempt == "" {
			w.end(b, &observe.Exit{})
		}
	}
}

// heed does what a person is told to: end what runs in our pane. It may be what
// they started there, or a launcher that hangs and that no record tells of.
func (w *world) heed(p Plan) {
	if p.Waiting.Reason == spec.ReasonTrustRequired {
		// The class of its client knows no questions, and a turn has found one.
		w.calmAgents()
	}
	switch p.Verdict.Reason {
	case spec.ReasonTrustRequired:
		w.calmAgents()
	case spec.ReasonConversationElsewhere:
		w.disk, _ = Apply(w.disk, RequestResume, w.now)
	case spec.ReasonRecordQuarantined:
		w.disk, _ = Apply(w.disk, RequestFresh, w.now)
	}
	if p.Verdict.Reason != spec.ReasonNameConflict {
		return
	}
	for _, r := range w.rooms {
		w.end(r.inside, &observe.Exit{})
	}
}

// Invariants 4 and 11: whatever happens, and wherever the daemon is cut off, no
// two clients run at once, and when things calm down there is exactly one, in a
// pane, and nothing is written any more.
func TestASessionArrivesAndStays(t *testing.T) {
	met := map[string]int{}
	seedsUntil(t, 60, func(seed uint64) {
		w := newWorld(t, seed)
		for range 250 {
			if w.one(6) {
				w.disturb()
			}
			if w.one(12) {
				w.send("", false)
			}
			w.blind = w.blind && !w.one(3)
			p := w.pass(w.one(12))
			w.meet(met, p)
			w.later(w.pause(p))
		}
		w.calm()
		w.send("", false)
		quiet := 0
		for range 4000 {
			before := w.disk
			p := w.pass(false)
			w.heed(p)
			w.later(w.pause(p))
			live := p.Verdict.Reason == spec.ReasonRunning || p.Verdict.Reason == spec.ReasonReady
			if quiet++; !live || p.Action.Kind != actuate.ActionNone || !equalRecords(before, w.disk) || len(w.open()) > 0 {
				quiet = 0
			}
			if quiet == 20 {
				require.Len(t, w.clients(), 1)
				require.Equal(t, w.clients()[0].Process, w.disk.Client.Process)
				w.remembers()
				w.ended()
				w.count(met)
				return
			}
		}
		p := decide(t, w.input())
		t.Fatalf("the session never came to rest: rule %s, %s: %s", p.Verdict.Rule, p.Verdict.Reason, p.Verdict.Message)
	}, func() []string { return unmet(met) })
}

// A removed session goes away altogether.
func TestARemovedSessionArrivesAtNothing(t *testing.T) {
	seeds(t, 60, func(seed uint64) {
		w := newWorld(t, seed)
		for range 100 {
			if w.one(6) {
				w.disturb()
			}
			if w.one(12) {
				w.send("", false)
			}
			w.blind = w.blind && !w.one(3)
			w.later(w.pause(w.pass(w.one(12))))
		}
		w.calm()
		w.desired.Want = Remove
		for range 4000 {
			p := w.pass(false)
			if p.Fate == FateArchive {
				for _, left := range after(Input{Turns: w.open()}, p) {
					require.Equal(t, turn.Over, left.Phase, "a turn outlives its session")
				}
				require.Empty(t, w.clients())
				for _, pane := range w.look().Panes {
					require.Equal(t, observe.Running, pane.Live, "a pane without a process stayed")
					require.False(t, pane.Taken(), "a person's pane still has our labels")
				}
				return
			}
			w.later(w.pause(p))
		}
		t.Fatal("the session never went away")
	})
}

// pause is until the next look: when the plan asks for it or a hint comes.
func (w *world) pause(p Plan) time.Duration {
	again := p.RequeueAfter
	if again == 0 || w.one(4) {
		again = time.Duration(1+w.rand.IntN(1000)) * time.Millisecond
	}
	return again
}

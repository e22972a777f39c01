// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"math/rand/v2"
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

// body is a process of a world.
type body struct {
	observe.Process
	live   observe.Liveness
	exit   *observe.Exit
	goneAt time.Time
	// attempt that it launches or runs, and the mark once it is a client.
	attempt     string
	incarnation int64
	mark        *observe.MarkedProcess
	// children that it has started.
	children []observe.Process
	// A stubborn one ends by SIGKILL only; one without a lease has closed it.
	stubborn, noLease bool
	// readyAt is when a launcher reaches its end.
	readyAt time.Time
	mind
	pulse
}

// room is a pane of a world. What tmux shows of it can be behind what is true.
type room struct {
	observe.Pane
	inside *body
}

// world is tmux, the process table and the disk of one session, in memory.
type world struct {
	t        *testing.T
	rand     *rand.Rand
	now      time.Time
	serverUp bool
	serverAt time.Time
	server   observe.Server
	bodies   []*body
	rooms    []*room
	receipts map[string]observe.Receipt
	disk     record.Record
	past     []record.Record
	desired  Desired
	blind    bool
	restart  bool // the daemon is new
	kind     bool // nothing goes wrong
	executed []record.Attempt
	ids      int
	// spent is the highest number that a client was executed with; forgetful is
	// set once the disk was rolled back, after which numbers can come again.
	spent     int64
	forgetful bool
	agents
	post
	clinic
}

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{t: t, rand: rand.New(rand.NewPCG(seed, 7)), now: now, serverUp: true, server: server, receipts: map[string]observe.Receipt{}, restart: true, agents: newAgents(), post: newPost()}
	w.desired, w.home = Desired{Spec: aSpec(), File: "/m/shop.yaml"}, classes[seed%uint64(len(classes))]
	w.settle(w.desired.Spec)
	w.disk = record.Record{UID: uid, Name: "shop", CreatedAt: now}
	return w
}

func (w *world) one(n int) bool { return !w.kind && w.rand.IntN(n) == 0 }

func (w *world) find(p observe.Process) *body {
	for _, b := range w.bodies {
		if b.Process == p {
			return b
		}
	}
	return &body{Process: p, live: observe.Gone, goneAt: now}
}

// look is what the controller's gathering makes of the world.
func (w *world) look() Seen {
	if w.blind {
		return Seen{Reason: spec.ReasonTmuxTimeout, Message: "tmux did not answer", UnknownFor: time.Duration(w.rand.IntN(6)) * time.Second}
	}
	s := Seen{Sight: SightKnown, At: w.now, Confirmation: Confirmed, ReceiptState: ReceiptMissing, ServerState: observe.ServerNone, Lease: observe.Lease{State: observe.Gone}}
	if w.serverUp {
		s.ServerState, s.Server = observe.ServerRunning, w.server
		for _, r := range w.rooms {
			if r.Labels.UID != "" {
				s.Panes = append(s.Panes, w.seenPane(r))
			}
		}
	}
	for _, b := range w.bodies {
		if b.mark != nil && b.live != observe.Gone {
			s.Clients = append(s.Clients, *b.mark)
			if !b.noLease {
				s.Lease = observe.Lease{State: observe.Running, Holder: b.PID}
			}
		}
	}
	w.lookAtRecord(&s)
	return s
}

func (w *world) seenPane(r *room) SeenPane {
	p := SeenPane{Pane: r.Pane, Live: r.inside.live}
	if p.Live != observe.Gone {
		p.Process = r.inside.Process
	}
	return p
}

func (w *world) lookAtRecord(s *Seen) {
	if c := w.disk.Client; c != nil {
		b := w.find(c.Process)
		if s.Client = b.live; b.live == observe.Gone {
			s.GoneFor, s.ClientExit = max(w.now.Sub(b.goneAt), 0), b.exit
		}
	}
	if stop := w.disk.Stop; stop != nil {
		b := w.find(stop.Process)
		if s.Stop = b.live; stop.TermAt.IsZero() {
			s.Tree = b.children
		}
		for _, d := range stop.Descendants {
			if w.find(d).live != observe.Gone {
				s.TreeRunning = append(s.TreeRunning, d)
			}
		}
	}
	if a := w.disk.Attempt; a != nil {
		if r, ok := w.receipts[a.ID]; ok {
			s.Receipt, s.ReceiptState, s.ReceiptProcess = r, ReceiptFound, w.find(r.Process).live
		}
	}
}

func (w *world) input() Input {
	w.ids++
	return w.bring(w.ask(Input{
		Now: w.now, Desired: w.desired, Record: w.disk, Seen: w.look(), Workspace: Workspace{Path: "/work"}, Grant: GrantStart,
		New:    NewAttempt{ID: fmt.Sprintf("u%d", w.ids), Instance: instance},
		Policy: policy, FirstLook: w.restart,
	}))
}

// pass decides once, as the controller does; crash cuts it off at a random place.
func (w *world) pass(crash bool) Plan {
	in := w.input()
	p := decide(w.t, in)
	w.blank(p)
	w.endsTheDead(in, p)
	cut := func() bool {
		if crash && w.one(5) {
			w.crash()
			return true
		}
		return false
	}
	if p.Fate == FateArchive || cut() {
		return p
	}
	w.makeInitial(p)
	if cut() {
		return p
	}
	if !equalRecords(w.disk, p.Record) {
		w.past = append(w.past, w.disk)
	}
	w.disk = p.Record
	w.heard()
	if cut() || !w.saveTurns(p) || cut() {
		return p
	}
	w.restart = w.restart && (!p.Looked || in.Seen.Sight == SightUnknown)
	w.act(p.Action)
	if crash {
		w.crash()
	}
	return p
}

func (w *world) act(a actuate.Action) {
	switch a.Kind {
	case actuate.ActionCreate:
		r := &room{Pane: observe.Pane{SessionID: "$1", SessionName: "shop", PaneID: fmt.Sprintf("%%%d", w.ids)}}
		w.rooms = append(w.rooms, r)
		w.launch(r, a)
	case actuate.ActionRespawn, actuate.ActionRespawnKill:
		w.launch(w.room(a), a)
	case actuate.ActionKillPane:
		w.killPane(w.room(a))
	case actuate.ActionRelease:
		r := w.room(a)
		if r.inside.live != observe.Gone {
			r.Labels = observe.Labels{}
		}
	case actuate.ActionReap:
		if !w.one(3) {
			w.collect()
		}
	case actuate.ActionSignal:
		for _, p := range a.Processes {
			if b := w.find(p); a.Signal == actuate.SignalKill || !b.stubborn {
				w.end(b, &observe.Exit{Signal: map[actuate.Signal]int{actuate.SignalTerm: 15, actuate.SignalKill: 9}[a.Signal]})
			}
		}
	case actuate.ActionKeys:
		if b := w.room(a).inside; !b.stubborn {
			w.end(b, &observe.Exit{})
		}
	case actuate.ActionPaste, actuate.ActionSubmit, actuate.ActionQueue:
		w.handOver(a)
	case actuate.ActionNone, actuate.ActionStartServer, actuate.ActionStartUnit, actuate.ActionConfigure, actuate.ActionRestoreSocket, actuate.ActionKeepServer, actuate.ActionClearBuffers, actuate.ActionShowWaiting:
	}
}

func (w *world) room(a actuate.Action) *room {
	for _, r := range w.rooms {
		if r.PaneID == a.Pane.PaneID && r.PID == a.Pane.PID && w.serverUp {
			return r
		}
	}
	return &room{inside: &body{live: observe.Gone}}
}

func (w *world) launch(r *room, a actuate.Action) {
	b := w.spawn(r)
	b.attempt, b.incarnation = a.Launch.Labels.Attempt, a.Launch.Labels.Incarnation
	b.readyAt = w.now.Add(time.Duration(w.rand.IntN(100)) * time.Millisecond)
	if w.one(20) {
		b.readyAt = w.now.Add(24 * time.Hour) // a profile that hangs
	}
	r.Labels, r.LaunchedPID = a.Launch.Labels, r.PID
}

func (w *world) spawn(r *room) *body {
	w.ids++
	b := &body{Process: process(1000 + w.ids), live: observe.Running, stubborn: w.one(3), noLease: w.one(2)}
	w.bodies = append(w.bodies, b)
	r.inside, r.PID, r.State, r.ExitStatus, r.ExitSignal = b, b.PID, observe.Present, nil, 0
	return b
}

func (w *world) end(b *body, exit *observe.Exit) {
	if b.live == observe.Gone {
		return
	}
	b.live, b.exit, b.goneAt = observe.Gone, exit, w.now
	for _, r := range w.rooms {
		if r.inside == b && !w.one(4) { // else tmux has not noticed
			w.show(r, !w.one(3))
		}
	}
}

func (w *world) show(r *room, status bool) {
	r.State = observe.Dead
	if exit := r.inside.exit; status && exit != nil {
		r.ExitStatus, r.ExitSignal = ptr.To(exit.Code), exit.Signal
		if exit.Signal != 0 {
			r.ExitStatus = nil
		}
	}
}

func (w *world) collect() {
	for _, r := range w.rooms {
		if r.inside.live == observe.Gone {
			w.show(r, true)
		}
	}
}

func (w *world) killPane(r *room) {
	w.rooms = slices.DeleteFunc(w.rooms, func(other *room) bool { return other == r })
	if !r.inside.stubborn {
		w.end(r.inside, &observe.Exit{Signal: 1})
	}
}

// later lets time pass: launchers come to their end and a server is started.
func (w *world) later(d time.Duration) {
	w.now = w.now.Add(d)
	if !w.serverUp && w.now.Sub(w.serverAt) > time.Second {
		w.serverUp = true
		w.server.StartTime++
		w.server.Process = process(10 + int(w.server.StartTime))
	}
	for _, b := range w.bodies {
		if b.live == observe.Running && b.attempt != "" && b.mark == nil && !w.now.Before(b.readyAt) {
			w.execute(b)
		}
	}
	w.converse()
	w.workOn()
	w.probe()
}

// execute is the launcher: lease, fence, receipt, exec.
func (w *world) execute(b *body) {
	held := w.look().Lease.State == observe.Running
	a := w.disk.Attempt
	r := observe.Receipt{Attempt: b.attempt, Process: b.Process, At: w.now, Stage: observe.StageFailed, Reason: spec.ReasonLeaseHeld, Message: "held"}
	switch {
	case held:
	case a == nil || a.ID != b.attempt || a.Fence != record.FenceOpen:
		w.end(b, &observe.Exit{Code: 1})
		return
	case w.one(10):
		r.Reason = spec.ReasonExecFailed
	case w.verify(a) != "":
		r.Reason = w.verify(a)
	default:
		r = observe.Receipt{Attempt: b.attempt, Process: b.Process, At: w.now, Stage: observe.StageExec}
	}
	if a != nil && a.Order.Class != nil {
		r.Home, r.ConfigDirectory = "/home", "/home/.c"
	}
	w.receipts[b.attempt] = r
	if r.Stage == observe.StageFailed {
		w.end(b, &observe.Exit{Code: 1})
		return
	}
	for _, other := range w.bodies {
		require.False(w.t, other.mark != nil && other.live != observe.Gone, "a second client was executed beside pid %d", other.PID)
	}
	require.True(w.t, w.forgetful || b.incarnation > w.spent, "number %d was used twice", b.incarnation)
	w.spent = max(w.spent, b.incarnation)
	if w.one(2) {
		child := w.spawn(&room{})
		child.attempt, child.readyAt = "child", w.now.Add(24*time.Hour)
		b.children = []observe.Process{child.Process}
	}
	b.mark = &observe.MarkedProcess{Mark: observe.Mark{Instance: instance, UID: uid, Attempt: b.attempt, Incarnation: b.incarnation, Process: b.Process}}
	w.begins(b, a)
	w.wake(b, a)
}

func (w *world) clients() (live []*body) {
	for _, b := range w.bodies {
		if b.mark != nil && b.live != observe.Gone {
			live = append(live, b)
		}
	}
	return live
}

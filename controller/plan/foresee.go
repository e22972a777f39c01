// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"time"

	"github.com/muxlet/muxlet/actuate"
	"github.com/muxlet/muxlet/controller/record"
	"github.com/muxlet/muxlet/controller/turn"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec"
)

// Outlook is asked for what a pass looks at anew before it decides. Whoever answers
// changes nothing.
type Outlook interface {
	// Workspace is the state of the directory in which a client of rec runs by s: of the
	// directories that DirectoryOf names.
	Workspace(rec *record.Record, s *spec.SessionSpec) Workspace
	// Evidence of a conversation, and the other session that has it; empty when none has.
	// The session's own client is no Holder: the next one comes when it has ended.
	Evidence(ref observe.ConversationRef) (observe.Evidence, string)
}

// edit is what rule Update does about a client that was launched from another spec.
type edit int

const (
	// editNone: nothing waits.
	editNone edit = iota
	// editWhenIdle, editAtRestart: it waits for that.
	editWhenIdle
	editAtRestart
	// editHindered: no other client could be started.
	editHindered
)

// mostSteps is more than any course takes: a stop, an attempt, a few looks.
const mostSteps = 40

// Foresee tells what becomes of a session when nothing but the loop acts upon it from
// now on and all goes well: what is asked to end does, what is launched is executed. It
// decides nothing itself: each step is one of Compute, on what would be seen then.
func Foresee(in Input, o Outlook) spec.Effect {
	c := newCourse(in, o)
	p := c.run()
	e := c.outcome(p)
	if e.Kind == spec.EffectUntouched {
		e = c.afterWaiting(p, e)
	}
	e.Warning = c.warning(p)
	return e
}

// course is one session on its way.
type course struct {
	in Input
	o  Outlook
	// had says that it had a client at the beginning, or one on its way; ended that it
	// was ended since.
	had, ended bool
	// suspended says that it was before.
	suspended bool
	// busy is what a replacement that waits would wait for; empty when it is idle, or was
	// waited for.
	busy   string
	waited bool
	// delay is why the next client is not started at once.
	delay Verdict
	// left is why the conversation was left on the way.
	left string
	// unread says that a client had ended before anybody looked at it: its last screen may
	// say that its conversation does not exist.
	unread bool
	// guessed says that a client had ended by itself, and that how is not known yet.
	guessed bool
}

func newCourse(in Input, o Outlook) *course {
	in.Grant = GrantStart
	in.Seen.Panes, in.Seen.Clients = slices.Clone(in.Seen.Panes), slices.Clone(in.Seen.Clients)
	r := &in.Record
	return &course{in: in, o: o, had: r.Client != nil || r.Attempt != nil || len(in.Seen.Clients) > 0, suspended: r.Spec != nil && r.Spec.Suspend}
}

// run goes on until nothing more comes by itself.
func (c *course) run() *pass {
	for step := 1; ; step++ {
		c.look()
		p := compute(c.in)
		if p.left != "" {
			c.left = p.left
		}
		if client := c.in.Record.Client; client != nil && !c.ended && !c.waited {
			c.busy = p.busyUntil(client)
		}
		if c.arrived(p) || step == mostSteps || !c.step(p) {
			return p
		}
	}
}

// look is what a pass looks at anew.
func (c *course) look() {
	s := c.in.Desired.Spec
	if s == nil {
		s = c.in.Record.Spec
	}
	if s == nil {
		return
	}
	c.in.Workspace = c.o.Workspace(&c.in.Record, s)
	c.in.Evidence, c.in.Rival = observe.Evidence{}, ""
	if ref, known := Reference(c.in); known {
		c.in.Evidence, c.in.Rival = c.o.Evidence(ref)
	}
}

// arrived: a client is on its way, the session is gone, or nothing can be decided.
func (c *course) arrived(p *pass) bool {
	return c.starts(p) || p.plan.Fate == FateArchive || p.Seen.Sight != SightKnown
}

func (c *course) starts(p *pass) bool {
	return p.rec.Attempt != nil && p.rec.Attempt.ID == c.in.New.ID
}

// step makes c.in what the next pass is given when all goes well; false when only
// somebody else could bring the session further.
func (c *course) step(p *pass) bool {
	in := &c.in
	c.meet(p)
	in.Seen.NotFound = in.Seen.NotFound && sameClient(in.Record.Client, p.rec.Client)
	sameTalk := sameConversation(in.Record.Conversation, p.rec.Conversation)
	in.Record, in.Heard, in.HandOver = p.rec.Copy(), nil, c.handOver(p)
	in.FirstLook = in.FirstLook && !p.plan.Looked
	in.Turns = slices.DeleteFunc(slices.Clone(p.turns), func(t turn.Turn) bool { return t.Phase == turn.Over })
	switch {
	case p.rec.Stop != nil:
		c.ends(p.rec.Stop.Process)
	case p.plan.Action.Kind == actuate.ActionKillPane, p.plan.Action.Kind == actuate.ActionRelease:
		in.Seen.Panes = slices.DeleteFunc(in.Seen.Panes, func(pane SeenPane) bool { return pane.PaneID == p.plan.Action.Pane.PaneID })
	case p.plan.Action.Kind == actuate.ActionReap:
		c.reap()
	case in.Seen.Confirmation == Unconfirmed:
		in.Seen.Confirmation = Confirmed
	case p.plan.Verdict.Reason == spec.ReasonServerStarting:
		in.Seen.ServerState = observe.ServerRunning
	case p.rec.Attempt != nil:
		return c.executes(p.rec.Attempt)
	case p.plan.NextAttempt.After(in.Now) && (c.ended || p.plan.Verdict.Rule == "Hold"):
		in.Now, c.delay = p.plan.NextAttempt, p.plan.Verdict
	default:
		// Of another conversation it was not looked for yet where its client keeps it.
		return p.plan.Same || p.plan.RequeueAfter == soon || !sameTalk
	}
	return true
}

// handOver is what is known of it: of one that is made now nothing yet.
func (c *course) handOver(p *pass) HandOver {
	if slices.Contains([]actuate.Kind{actuate.ActionPaste, actuate.ActionSubmit, actuate.ActionQueue}, p.plan.Action.Kind) {
		return HandOver{}
	}
	return c.in.HandOver
}

// meet: a client that the record learns of in this pass runs.
func (c *course) meet(p *pass) {
	in := &c.in
	if known := in.Record.Client; p.rec.Client != nil && (known == nil || known.Process != p.rec.Client.Process) {
		in.Seen.Client = observe.Running
		if in.Seen.ReceiptState == ReceiptFound && in.Seen.Receipt.Process == p.rec.Client.Process && in.Seen.ReceiptProcess != observe.LivenessUnknown {
			in.Seen.Client = in.Seen.ReceiptProcess
			c.unread = in.Seen.ReceiptProcess == observe.Gone
		}
		// Whether it will be idle is not known while it starts.
		in.Sight = observe.Sight{At: latest(in.Now, p.rec.Client.StartedAt), Activity: spec.ActivityWorking}
	}
}

func sameClient(a, b *record.Client) bool { return a != nil && b != nil && a.Attempt == b.Attempt }

// sameConversation says whether what was found of one holds for the other: it is that one,
// and looked for at the same place.
func sameConversation(a, b *record.Conversation) bool {
	return a == nil && b == nil || a != nil && b != nil && a.ID == b.ID && a.Home == b.Home && a.ConfigDirectory == b.ConfigDirectory
}

// ends: a process that is to be ended has ended, and with it what it has left where
// that is ended too.
func (c *course) ends(process observe.Process) {
	seen, client := &c.in.Seen, c.in.Record.Client
	seen.Stop, seen.Tree, seen.TreeRunning, seen.Outdated = observe.Gone, nil, nil, false
	seen.Clients = slices.DeleteFunc(seen.Clients, func(m observe.MarkedProcess) bool { return m.Process == process })
	seen.Lease = observe.Lease{State: observe.Gone}
	if seen.ReceiptState == ReceiptFound && seen.Receipt.Process == process {
		seen.ReceiptProcess = observe.Gone
	}
	pid := process.PID
	if client != nil && client.Process == process {
		c.ended = true
		seen.Client, seen.ClientExit, seen.GoneFor = observe.Gone, &observe.Exit{Signal: 15}, statusPatience
		c.in.Sight, c.in.Told = observe.Sight{}, observe.Told{}
		pid = client.PanePID
	}
	for i := range seen.Panes {
		if pane := &seen.Panes[i]; pane.State == observe.Present && (pane.PID == pid || pane.PID == process.PID) {
			pane.State, pane.Live, pane.Process, pane.ExitSignal = observe.Dead, observe.Gone, observe.Process{}, 15
		}
	}
}

// reap: tmux has noticed what has ended.
func (c *course) reap() {
	seen := &c.in.Seen
	seen.GoneFor = max(seen.GoneFor, respawnKillAge)
	if !c.ended && seen.Client == observe.Gone && seen.ClientExit == nil {
		c.guessed, c.unread = true, c.unread || !seen.NotFound
	}
	for i := range seen.Panes {
		if pane := &seen.Panes[i]; pane.Live == observe.Gone && pane.State == observe.Present {
			pane.State = observe.Dead
			if exit := seen.ClientExit; exit != nil && c.in.Record.Client != nil && pane.PID == c.in.Record.Client.PanePID {
				pane.ExitStatus, pane.ExitSignal = asTmuxTells(exit)
			} else {
				pane.ExitSignal = 15
			}
		}
	}
}

// asTmuxTells is an end that the kernel has told.
func asTmuxTells(e *observe.Exit) (status *int, signal int) {
	if e.Signal != 0 {
		return nil, e.Signal
	}
	code := e.Code
	return &code, 0
}

// executes: the launcher of an attempt that is under way executes its client, or ends
// when the attempt was given up. One without a pane never comes.
func (c *course) executes(a *record.Attempt) bool {
	seen := &c.in.Seen
	i := slices.IndexFunc(seen.Panes, func(pane SeenPane) bool { return pane.Labels.Attempt == a.ID && pane.Live == observe.Running })
	switch {
	case seen.ReceiptState == ReceiptFound && seen.ReceiptProcess == observe.Gone:
		return false
	case seen.ReceiptState == ReceiptFound && seen.Receipt.Stage == observe.StageExec && a.Fence == record.FenceOpen:
		seen.ReceiptProcess = observe.Running
	case i < 0 || a.Fence == record.FenceClosed:
		if i >= 0 {
			c.ends(seen.Panes[i].Process)
		}
		before := c.in.Now
		c.in.Now = latest(before.Add(soon), a.OpenedAt.Add(startupTimeout(&a.Spec)+time.Second))
		return c.in.Now.Sub(before) > soon
	default:
		seen.ReceiptState, seen.ReceiptProcess = ReceiptFound, observe.Running
		seen.Receipt = observe.Receipt{Attempt: a.ID, Process: seen.Panes[i].Process, At: c.in.Now, Stage: observe.StageExec}
	}
	known := slices.ContainsFunc(seen.Clients, func(m observe.MarkedProcess) bool { return m.Attempt == a.ID })
	if !known {
		seen.Clients = append(seen.Clients, observe.MarkedProcess{Mark: observe.Mark{
			Instance: c.in.New.Instance, UID: c.in.Record.UID, Attempt: a.ID, Incarnation: a.Incarnation, Process: seen.Receipt.Process,
		}})
	}
	return true
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// outcome is what a course has come to, where that does not hang on an end that is not known.
func (c *course) outcome(p *pass) spec.Effect {
	if s := p.rec.Spec; c.guessed && s != nil && s.RestartPolicy != spec.RestartAlways {
		return spec.Effect{Kind: spec.EffectUnknown, Reason: spec.ReasonDied, Message: "its client has just ended, and how is not known yet: ask again in a moment"}
	}
	return c.effect(p)
}

// effect is what a course has come to.
func (c *course) effect(p *pass) spec.Effect {
	v := p.plan.Verdict
	because := func(kind spec.EffectKind) spec.Effect {
		return spec.Effect{Kind: kind, Reason: v.Reason, Message: v.Message}
	}
	switch {
	case p.Seen.Sight != SightKnown:
		return because(spec.EffectUnknown)
	case p.Desired.Want == Remove:
		return c.removal()
	case c.starts(p):
		return c.start(p)
	case v.Rule == "Live", v.Rule == "Turn":
		return spec.Effect{Kind: spec.EffectUntouched}
	case v.Rule == "Attempt":
		return because(spec.EffectUnknown)
	case v.Rule == "Suspend" && c.suspended && !c.had:
		return spec.Effect{Kind: spec.EffectUntouched, Reason: v.Reason}
	case v.Rule == "Suspend":
		return spec.Effect{Kind: spec.EffectStopped, Reason: v.Reason}
	case c.had && (v.Rule == "Latch" || v.Rule == "Dormant"):
		return spec.Effect{Kind: spec.EffectStopped, Reason: v.Reason}
	case v.Rule == "Latch", v.Rule == "Dormant", v.Rule == "BackOff":
		return spec.Effect{Kind: spec.EffectUntouched, Reason: v.Reason}
	}
	e := because(spec.EffectBlocked)
	if c.ended {
		e.Message = "its client is ended and no other is started: " + e.Message
	}
	return e
}

func (c *course) removal() spec.Effect {
	e := spec.Effect{Kind: spec.EffectRemoved}
	if s := c.in.Record.Spec; c.had && s != nil && s.DeletionPolicy == spec.DeletionOrphan {
		e.Message = "its client is left running: deletionPolicy is Orphan"
	}
	return e
}

// start is what the next client gets.
func (c *course) start(p *pass) spec.Effect {
	e := spec.Effect{Kind: spec.EffectStarted, Resumes: p.rec.Attempt.Resumes, Reason: c.delay.Reason, Message: c.delay.Message}
	if c.had {
		e.Kind = spec.EffectRestartsNow
		if c.busy != "" && e.Message == "" {
			e.Message = "not idle: nothing waits until " + c.busy
		}
	}
	if e.Resumes != "" && (p.Evidence.State == observe.EvidenceUnknown || c.unread) {
		e.Reason, e.Message = spec.ReasonConversationUnknown, and("whether it can be resumed is found out where its client runs", e.Message)
	}
	if e.Resumes == "" && p.class.converses() {
		e.Fresh = c.left
		if e.Fresh == "" {
			e.Fresh = "there is none to resume"
		}
	}
	return e
}

// afterWaiting is what comes of an edit once what it waits for has come.
func (c *course) afterWaiting(p *pass, now spec.Effect) spec.Effect {
	var kind spec.EffectKind
	message := ""
	switch p.edit {
	case editNone:
		return now
	case editHindered:
		return spec.Effect{Kind: spec.EffectBlocked, Message: "its client is kept, since no other could be started: " + p.unstartable()}
	case editWhenIdle:
		kind, message = spec.EffectRestartsWhenIdle, "not before "+p.busyUntil(p.rec.Client)
		c.busy = ""
		c.idle()
	case editAtRestart:
		kind, c.busy = spec.EffectAtNextRestart, ""
		c.in.Record.Intent = &record.Intent{Kind: record.IntentRestart, Incarnation: p.rec.Client.Incarnation, At: c.in.Now}
	}
	c.waited = true
	e := c.outcome(c.run())
	if !c.ended {
		return spec.Effect{Kind: kind, Message: message}
	}
	e.Kind, e.Message = kind, and(message, e.Message)
	return e
}

// and joins two parts of a sentence, of which each may be empty.
func and(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "; " + b
}

// idle: the client has done what it was given, and nobody looks at it.
func (c *course) idle() {
	in := &c.in
	in.Turns = slices.DeleteFunc(in.Turns, func(t turn.Turn) bool { return t.Phase != turn.Pending })
	in.Sight.Activity, in.Sight.Attention = spec.ActivityIdle, nil
	in.Sight.At = latest(in.Sight.At, in.Record.Client.StartedAt)
	for i := range in.Seen.Panes {
		in.Seen.Panes[i].Attached = 0
	}
}

// warning is what a person may not expect of an edit of the directory.
func (c *course) warning(p *pass) string {
	if p.rec.Spec == nil || p.Desired.Want == Remove || !p.elsewhere() {
		return ""
	}
	return p.elsewhereSentence()
}

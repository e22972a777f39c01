// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muxlet/muxlet/actuate"
	"github.com/muxlet/muxlet/controller/record"
	"github.com/muxlet/muxlet/controller/turn"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec"
)

// otherWords are what a person has typed into an input line.
const otherWords = "other words"

// desk is what a client of a world has of turns.
type desk struct {
	// composer is what stands in its input line: otherWords, the name of a turn, or
	// nothing.
	composer string
	// works is until when it works, workingSince since when, since since when it does what
	// it does, turnAt when it ended a turn last, seenAt when it was last seen to work.
	works, workingSince, since, turnAt, seenAt time.Time
	// mute is true for one whose hooks tell nothing, blur for one whose files do not.
	mute, blur bool
	// queued are the turns in its own queue.
	queued []string
}

// post is the turns of a world: what is on disk, what the daemon knows, and what has
// become of them in truth.
type post struct {
	sentTurns []turn.Turn
	handed    HandOver
	waited    Verdict
	started   time.Time
	turnsTold map[string]*observe.Told
	lateHooks []func()
	number    int64
	pasted    map[string]int
	keys      map[string]int
	received  []string
	// undelivered are the turns that a queue outlives its client with.
	undelivered []string
}

func newPost() post {
	return post{started: now, turnsTold: map[string]*observe.Told{}, pasted: map[string]int{}, keys: map[string]int{}}
}

func (w *world) open() []turn.Turn {
	var open []turn.Turn
	rank := func(t turn.Turn) int64 {
		switch {
		case t.Phase == turn.Delivering || t.Phase == turn.Delivered:
			return -2
		case t.Initial:
			return -1
		}
		return t.Number
	}
	for _, t := range w.sentTurns {
		if t.Phase != turn.Over {
			open = append(open, t)
		}
	}
	slices.SortStableFunc(open, func(a, b turn.Turn) int { return int(rank(a) - rank(b)) })
	return open
}

// send makes a turn.
func (w *world) send(request string, initially bool) {
	if request != "" && slices.ContainsFunc(w.sentTurns, func(t turn.Turn) bool { return t.Request == request }) {
		return
	}
	w.number++
	t := turn.Turn{
		Name: fmt.Sprintf("shop-%d", w.number), SessionUID: uid, Number: w.number, CreatedAt: w.now, Request: request, Initial: initially,
		Phase: turn.Pending, Revision: 1, Digest: fmt.Sprintf("d%d", w.number),
	}
	if !initially {
		t.Deadline = w.now.Add([]time.Duration{2 * time.Second, time.Minute, 2 * time.Minute}[w.rand.IntN(3)])
	}
	w.sentTurns = append(w.sentTurns, t)
}

// bring completes an input by the turns.
func (w *world) bring(in Input) Input {
	in.Turns, in.HandOver, in.Waited, in.Started, in.PromptFile = w.open(), w.handed, w.waited, w.started, "/turns/prompt"
	attempt := ""
	switch {
	case len(in.Turns) > 0 && in.Turns[0].Attempt != "":
		attempt = in.Turns[0].Attempt
	case in.Record.Client != nil:
		attempt = in.Record.Client.Attempt
	}
	if told := w.turnsTold[attempt]; told != nil {
		in.Told = *told
		in.Told.Prompted = slices.Clone(told.Prompted)
	}
	if WantsHand(in) && !w.blind && !w.one(6) {
		in.Hand = w.lookForHand(in)
	}
	return in
}

func (w *world) lookForHand(in Input) observe.Hand {
	b := w.find(in.Record.Client.Process)
	class := classOfBody(b)
	h := observe.Hand{At: w.now, Digest: fmt.Sprintf("%s/%d", b.composer, len(w.received)), Working: class.Spec.Working.Pattern != "" && w.worksNow(b)}
	switch {
	case b.asks:
		h.Attention = observe.AttentionFor(spec.ReasonTrustRequired)
	case class.Spec.Submit.Composer.Pattern == "":
	case b.composer == "":
		h.Composing = observe.ComposingNothing
	case b.composer == in.Turns[0].Name:
		h.Composing = observe.ComposingPrompt
	default:
		h.Composing = observe.ComposingOther
	}
	return h
}

func classOfBody(b *body) *Class {
	if class := classNamed(b.class); class != nil {
		return class
	}
	return &exec
}

func (w *world) worksNow(b *body) bool { return b.works.After(w.now) || w.working }

func (w *world) makeInitial(p Plan) {
	if p.Initial != nil {
		w.send(p.Initial.Request, true)
	}
}

// saveTurns puts the changes of a plan on disk, unless somebody else was faster.
func (w *world) saveTurns(p Plan) bool {
	w.waited = p.Waiting
	if w.one(40) {
		w.meddle()
	}
	for _, next := range p.Turns {
		i := slices.IndexFunc(w.sentTurns, func(t turn.Turn) bool { return t.Name == next.Name })
		if w.sentTurns[i].Revision != next.Revision {
			return false
		}
		next.Revision++
		w.judgeTurn(w.sentTurns[i], next)
		w.sentTurns[i] = next
	}
	return true
}

// meddle is what others do to turns that are pending: a person, the sweeper.
func (w *world) meddle() {
	for i, t := range w.sentTurns {
		if t.Phase != turn.Pending || !w.one(2) {
			continue
		}
		if next, expired := Expire(t, w.waited, w.now); expired {
			t = next
		} else if w.blind && !t.Initial {
			t = Unavailable(t, "mute", w.now)
		} else if w.one(3) {
			t = t.Cancel(w.now)
		}
		t.Revision++
		w.sentTurns[i] = t
	}
}

// crash ends the daemon: what it knew of acts and reports is lost, or told once more.
func (w *world) crash() {
	w.restart, w.handed, w.waited, w.started = true, HandOver{}, Verdict{}, w.now
	w.probed = observe.Probed{}
	if w.one(2) {
		w.turnsTold = map[string]*observe.Told{}
	}
}

// handOver is tmux, or the queue's command.
func (w *world) handOver(a actuate.Action) {
	name := a.Turn.Name
	if a.Kind != actuate.ActionSubmit {
		moved := 0
		if w.handed.Turn == name {
			moved = w.handed.Moved
		}
		w.handed = HandOver{Turn: name, Moved: moved}
	}
	if a.Kind == actuate.ActionQueue {
		w.enqueue(a)
		return
	}
	b := w.room(a).inside
	if a.Turn.Cursor != nil && w.one(10) {
		b.asks = w.one(2)
		w.refuse(a, true)
		return
	}
	if b.live == observe.Gone || b.mark == nil {
		w.refuse(a, false)
		return
	}
	switch unclear := w.one(12); {
	case unclear && w.one(2):
	case a.Kind == actuate.ActionPaste:
		w.pasted[name]++
		require.Equal(w.t, 1, w.pasted[name], "turn %s was pasted twice", name)
		known := classOfBody(b).Spec.Submit.Composer.Pattern != ""
		require.False(w.t, b.asks || known && b.composer != "", "a paste upon %q", b.composer)
		// Where nobody can see it, what was not submitted before stands there still.
		b.composer = strings.TrimPrefix(b.composer+"|"+name, "|")
		if !unclear {
			w.handed.DoneAt = w.now
		}
	default:
		w.press(b, name)
	}
	if a.Kind == actuate.ActionSubmit {
		w.handed.Untyped = false
	}
}

func (w *world) refuse(a actuate.Action, cursor bool) {
	if cursor {
		w.handed.Moved++
	}
	if a.Kind == actuate.ActionSubmit {
		w.handed.Untyped = true
		return
	}
	w.handed.Nothing, w.handed.Reason, w.handed.Message = true, spec.ReasonPending, "it was refused"
}

func (w *world) press(b *body, name string) {
	w.keys[name]++
	require.LessOrEqual(w.t, w.keys[name], maxSubmits, "too many keys for turn %s", name)
	require.False(w.t, b.asks, "a key upon a question")
	swallows := classOfBody(b).Spec.Submit.Composer.Pattern != "" && w.one(3)
	stands := strings.Split(b.composer, "|")
	if !slices.Contains(stands, name) || swallows {
		return
	}
	b.composer = ""
	for _, one := range stands {
		w.receive(b, one)
	}
}

func (w *world) enqueue(a actuate.Action) {
	b := w.find(a.Turn.Client)
	switch {
	case w.one(10):
		w.handed.Nothing, w.handed.Reason, w.handed.Message = true, spec.ReasonPending, "it could not be executed"
		return
	case w.one(10): // it has failed, and may have done it
		if w.one(2) {
			return
		}
	default:
		w.handed.DoneAt = w.now
	}
	if w.pasted[a.Turn.Name]++; b.live == observe.Gone {
		w.undelivered = append(w.undelivered, a.Turn.Name)
		return
	}
	b.queued = append(b.queued, a.Turn.Name)
}

// receive: the client has the turn. Its hook tells, now or later or never.
func (w *world) receive(b *body, name string) {
	require.NotContains(w.t, w.received, name, "turn %s was received twice", name)
	w.received = append(w.received, name)
	t := w.turnNamed(name)
	b.works = w.now.Add(time.Duration(w.rand.IntN(4000)) * time.Millisecond)
	b.workingSince, b.since, b.seenAt = w.now, w.now, w.now
	at, digest := w.now, t.Digest
	if w.one(6) {
		digest = ""
	}
	w.hook(b, func(told *observe.Told) {
		told.Prompted = append(told.Prompted, observe.Prompted{At: at, Digest: digest})
	})
}

func (w *world) turnNamed(name string) turn.Turn {
	for _, t := range w.sentTurns {
		if t.Name == name {
			return t
		}
	}
	require.Fail(w.t, "turn "+name+" is not known")
	return turn.Turn{}
}

func (w *world) hook(b *body, tell func(*observe.Told)) {
	if s := classOfBody(b).Spec; s.Reports == "" || b.mute || w.one(10) {
		return
	}
	apply := func() {
		if w.turnsTold[b.attempt] == nil {
			w.turnsTold[b.attempt] = &observe.Told{Attempt: b.attempt}
		}
		tell(w.turnsTold[b.attempt])
	}
	if w.one(3) {
		w.lateHooks = append(w.lateHooks, apply)
		return
	}
	apply()
}

// begins: an attempt's client is executed, with a turn where it was given one.
func (w *world) begins(b *body, a *record.Attempt) {
	b.mute, b.blur = w.one(4), w.one(2)
	if a.Order.Class != nil {
		b.class = a.Order.Class.Name
	}
	if a.Turn != "" {
		require.NotEmpty(w.t, a.Order.PromptFile)
		w.receive(b, a.Turn)
	}
	b.queued, w.undelivered = append(b.queued, w.undelivered...), nil
}

// workOn lets clients end turns and begin those that are queued, and people type.
func (w *world) workOn() {
	if w.one(3) {
		for _, apply := range w.lateHooks {
			apply()
		}
		w.lateHooks = nil
	}
	for _, b := range w.clients() {
		if !b.works.IsZero() && !b.works.After(w.now) {
			at := b.works
			b.works, b.since, b.turnAt = time.Time{}, at, at
			w.hook(b, func(told *observe.Told) { told.Done = at })
		}
		if len(b.queued) > 0 && b.works.IsZero() && w.one(3) {
			name := b.queued[0]
			b.queued = b.queued[1:]
			w.receive(b, name)
		}
		if classOfBody(b).Spec.Submit.Composer.Pattern != "" && w.one(40) {
			switch b.composer {
			case "":
				b.composer = otherWords
			case otherWords:
				b.composer = ""
			}
		}
	}
}

func (w *world) seeDesk(b *body, s *observe.Sight) {
	s.Since = b.since
	if w.worksNow(b) {
		s.Activity, b.seenAt = spec.ActivityWorking, w.now
	}
	s.WorkingAt = b.seenAt
	if class := classOfBody(b); class.Spec.Reports == "" || b.blur {
		return
	}
	s.TurnAt = b.turnAt
	if b.works.After(w.now) {
		s.WorkingSince = b.workingSince
	}
}

// judgeTurn is what holds for each step of each turn.
func (w *world) judgeTurn(before, after turn.Turn) {
	name := after.Name
	if after.Delivered.Status == "True" && before.Delivered.Status != "True" {
		require.Contains(w.t, w.received, name, "turn %s is called delivered, and nobody has received it: %s", name, after.Delivered.Message)
	}
	if after.Phase == turn.Over && after.Delivered.Status == "False" || after.Phase == turn.Pending {
		require.NotContains(w.t, w.received, name, "turn %s is called undelivered, and was received: %s", name, after.Delivered.Message)
	}
	if after.Phase == turn.Delivering && before.Phase == turn.Pending {
		require.True(w.t, after.Deadline.IsZero() || w.now.Before(after.Deadline), "turn %s is handed over after its deadline", name)
	}
}

// ended: what holds once everything has come to rest.
func (w *world) ended() {
	last := int64(0)
	for _, name := range w.received {
		t := w.turnNamed(name)
		require.NotEqual(w.t, metav1.ConditionFalse, t.Delivered.Status, "turn %s failed, and was received all the same: %s", name, t.Delivered.Message)
		if t.Initial || t.Delivered.Status != "True" {
			continue
		}
		require.Greater(w.t, t.Number, last, "turns were received in another order than they were sent")
		last = t.Number
	}
}

// count tells what has become of the turns.
func (w *world) count(met map[string]int) {
	for _, t := range w.sentTurns {
		reason := t.Completed.Reason
		if t.Delivered.Status != "True" {
			reason = fmt.Sprintf("%s %s", t.Delivered.Status, t.Delivered.Reason)
		}
		met["turn "+reason]++
		if t.Initial && t.Delivered.Status == metav1.ConditionTrue {
			met["turn initial"]++
		}
		met["turn by "+string(t.Method)]++
		met[fmt.Sprintf("turn keys %d", t.Submits)]++
	}
}

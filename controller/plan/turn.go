// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"time"

	"github.com/muxlet/muxlet/controller/record"
	"github.com/muxlet/muxlet/controller/turn"
	"github.com/muxlet/muxlet/spec"
)

// Windows of turns.
const (
	// confirmWindow is how long after the last submit key, or what else was done last, a
	// turn may take to be confirmed, unless Policy says so; screenWindow is the same where the screen is all that
	// tells.
	confirmWindow = 30 * time.Second
	screenWindow  = 5 * time.Second
	// submitPatience is how long a submit key may take to show before it is repeated, and
	// maxSubmits how many there are.
	submitPatience = 3 * time.Second
	maxSubmits     = 3
	// movedPatience is how often an act may be refused because of the cursor alone before
	// it is done without that precondition.
	movedPatience = 3
	// idleWindow is how long a client that has a turn may be idle, or was not seen to
	// work, before it is taken for done; muteWindow the same where nothing tells what it
	// does, staleWindow where what it does was not looked at for so long.
	idleWindow  = 10 * time.Second
	muteWindow  = time.Minute
	staleWindow = 10 * time.Minute
	// settledWorking is how long a client that has worked must have stopped.
	settledWorking = 2 * time.Second
	// unknownPatience is how long a turn waits for tmux to answer at all.
	unknownPatience = 4 * time.Second
	// clockSkew is how far in the future a time may lie without the clock having jumped.
	clockSkew = time.Second

	pollTurn        = time.Second
	pollTurnPending = 5 * time.Second
	pollTurnWorking = 15 * time.Second
)

// settleTurns does before the rules what does not depend on what is seen of tmux: what
// nobody wants any more, what is too late, and what the client itself has told.
func (p *pass) settleTurns() {
	p.turns = slices.Clone(p.Turns)
	for i := range p.turns {
		t := &p.turns[i]
		clampTurn(t, p.Now)
		p.refuseUnwanted(t)
		*t, _ = Expire(*t, p.waited(i), p.Now)
		p.confirm(t)
		p.complete(t)
	}
}

// waited is why turn i has waited by the last pass.
func (p *pass) waited(i int) Verdict {
	if i == 0 || p.turns[0].Phase == turn.Over {
		return p.Waited
	}
	return queuedBehind(&p.turns[0])
}

func queuedBehind(t *turn.Turn) Verdict {
	return Verdict{Rule: "Turn", Reason: spec.ReasonQueued, Message: fmt.Sprintf("turn %s comes first", t.Name)}
}

// concludeTurns does after the rules what follows from what they have decided.
func (p *pass) concludeTurns() {
	for i := range p.turns {
		p.judgeUnderWay(&p.turns[i])
	}
	for i := range p.turns {
		p.answer(&p.turns[i], p.Turns[i].Phase != turn.Pending && p.rec.Client == nil)
	}
	p.sayWaiting()
	for i := range p.turns {
		if p.turns[i] != p.Turns[i] {
			p.plan.Turns = append(p.plan.Turns, p.turns[i])
		}
		p.again(p.due(&p.turns[i]))
	}
	if p.plan.Initial != nil {
		p.again(soon)
	}
}

// first is the turn that is under way or next; nil without one.
func (p *pass) first() *turn.Turn {
	for i := range p.turns {
		if p.turns[i].Phase != turn.Over {
			return &p.turns[i]
		}
	}
	return nil
}

// hasTurn says whether c has a turn, or is being given one.
func (p *pass) hasTurn(c *record.Client) bool {
	t := p.first()
	return t != nil && t.Phase != turn.Pending && t.Attempt == c.Attempt
}

// sayWaiting says why the first turn that is pending waits.
func (p *pass) sayWaiting() {
	for i := range p.turns {
		t := &p.turns[i]
		if t.Phase != turn.Pending {
			continue
		}
		p.plan.Waiting = p.waiting
		if p.waitingOf != "" && p.waitingOf != t.Name {
			p.plan.Waiting = Verdict{Rule: "Turn", Reason: spec.ReasonPending, Message: "it is next"}
		}
		if f := p.first(); f != t {
			p.plan.Waiting = queuedBehind(f)
		} else if p.waiting.Reason == "" {
			p.plan.Waiting = p.plan.Verdict
		}
		return
	}
}

// again asks for another look at that time at the latest; 0 asks for none.
func (p *pass) again(after time.Duration) {
	if after > 0 && (p.plan.RequeueAfter == 0 || after < p.plan.RequeueAfter) {
		p.plan.RequeueAfter = after
	}
}

// due is when to look at a turn again, whatever else happens.
func (p *pass) due(t *turn.Turn) time.Duration {
	switch {
	case t.Phase == turn.Over || p.plan.Fate == FateArchive:
		return 0
	case t.Phase == turn.Delivering, t.Phase == turn.Delivered && !p.busy(t):
		return pollTurn
	case t.Phase == turn.Delivered:
		return pollTurnWorking
	case p.Seen.Sight != SightKnown:
		return pollTurn
	case t.Deadline.IsZero():
		return pollTurnPending
	}
	return min(pollTurnPending, max(t.Deadline.Sub(p.Now), soon))
}

// busy says whether the client works on t, or asks something about it.
func (p *pass) busy(t *turn.Turn) bool {
	return p.sees(t) && (p.Sight.Activity == spec.ActivityWorking || p.Sight.Activity == spec.ActivityAwaitingInput)
}

// sees says whether Sight is of the client that has t.
func (p *pass) sees(t *turn.Turn) bool {
	c := p.rec.Client
	return c != nil && c.Attempt == t.Attempt && p.sighted(c)
}

// clampTurn moves times of t that lie in the future to now: the clock has jumped back,
// and no wait may grow by that.
func clampTurn(t *turn.Turn, now time.Time) {
	limit := now.Add(clockSkew)
	if t.CreatedAt.After(limit) {
		if !t.Deadline.IsZero() {
			t.Deadline = t.Deadline.Add(now.Sub(t.CreatedAt))
		}
		t.CreatedAt = now
	}
	for _, at := range []*time.Time{&t.HandedAt, &t.PastedAt, &t.SubmittedAt, &t.DeliveredAt} {
		if at.After(limit) {
			*at = now
		}
	}
}

func later(times ...time.Time) time.Time {
	return slices.MaxFunc(times, time.Time.Compare)
}

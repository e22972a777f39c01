// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"time"

	"github.com/muxlet/muxlet/controller/record"
	"github.com/muxlet/muxlet/controller/turn"
)

// Intervals of the plan. They bound how soon the loop looks again when no hint
// comes.
const (
	soon           = time.Millisecond
	pollReceipt    = 25 * time.Millisecond
	pollStatus     = 4 * time.Millisecond
	pollDetach     = time.Second
	pollSlow       = 250 * time.Millisecond
	pollBudget     = 5 * time.Second
	pollLimits     = 5 * time.Second
	pollInUse      = 5 * time.Second
	pollActivity   = 5 * time.Second
	statusPatience = time.Second
	markPatience   = time.Second
	leftoverGrace  = 3 * time.Second
	respawnKillAge = 3 * time.Second
	killRepeat     = time.Second
	enginePatience = 3 * time.Second
	buyInterval    = 10 * time.Second
)

// pass is one computation: the input, and the plan as it grows.
type pass struct {
	Input
	rec  record.Record
	plan Plan
	// class in force; nil when there is no spec, or no class of the name that it gives.
	class *Class
	// evidenceOf is the conversation that Evidence and Rival are about.
	evidenceOf string
	// resumes is the conversation that a start of this pass brings back.
	resumes string
	// jumped: the clock has jumped back since the conversation became the session's, so
	// that what is told of another cannot be held against that time.
	jumped bool
	// turns are Input.Turns as they become.
	turns []turn.Turn
	// waiting is why the first of them that is pending waits, where rule Turn knows better
	// than the verdict.
	waiting Verdict
	// waitingOf is the turn that waiting is about.
	waitingOf string
	// edit is what rule Update waits for.
	edit edit
	// left is why the conversation was put into the history by this pass; empty when it
	// was not.
	left string
	// wantsHand is true when what is next needs a look at the client's screen that nobody
	// has made.
	wantsHand bool
}

// rule decides or passes. done is true when it has decided.
type rule struct {
	name   string
	decide func(*pass) (done bool)
}

// rules in their order; the first that decides ends the pass.
var rules = []rule{
	{"Unknown", (*pass).holdWhileUnknown},
	{"Outdated", (*pass).lookAgain},
	{"Adopt", (*pass).adoptLiveClient},
	{"Duplicate", (*pass).endDuplicate},
	{"Orphan", (*pass).endOrphan},
	{"Stop", (*pass).continueStop},
	{"Attempt", (*pass).judgeAttempt},
	{"Death", (*pass).accountDeath},
	{"Remove", (*pass).remove},
	{"Leftover", (*pass).endLeftover},
	{"Suspend", (*pass).suspend},
	{"Intent", (*pass).obeyIntent},
	{"Probe", (*pass).judgeProbe},
	{"Update", (*pass).update},
	{"Live", (*pass).awaitReady},
	{"Turn", (*pass).handOver},
	{"Live", (*pass).keepLive},
	{"Recovery", (*pass).judgeRecovery},
	{"Refusal", (*pass).refuse},
	{"Latch", (*pass).stayDown},
	{"Dormant", (*pass).stayDormant},
	{"Occupied", (*pass).waitForPane},
	{"Block", (*pass).waitForWorld},
	{"BackOff", (*pass).waitForTime},
	{"Server", (*pass).waitForServer},
	{"Name", (*pass).waitForName},
	{"Limits", (*pass).waitForLimits},
	{"Hold", (*pass).waitForCredential},
	{"Conversation", (*pass).settleConversation},
	{"Budget", (*pass).waitForBudget},
	{"Start", (*pass).start},
}

// Compute decides about one session.
func Compute(in Input) Plan { return compute(in).plan }

func compute(in Input) *pass {
	p := prepare(in)
	p.settleTurns()
	for _, r := range rules {
		if r.decide(p) {
			p.plan.Verdict.Rule = r.name
			break
		}
	}
	p.concludeTurns()
	p.plan.InFlight = p.inFlight()
	p.plan.Record = p.rec
	return p
}

// prepare takes in what holds whatever is seen of tmux and the process table: what is
// wanted, and what the client has told.
func prepare(in Input) *pass {
	p := &pass{Input: in, rec: in.Record.Copy()}
	if ref, known := Reference(in); known {
		p.evidenceOf = ref.ID
	}
	p.takeDesired()
	p.takeClass()
	p.clampClock()
	p.hear()
	return p
}

// say sets the verdict and ends the pass.
func (p *pass) say(reason, message string, again time.Duration) bool {
	p.plan.Verdict.Reason, p.plan.Verdict.Message = reason, message
	p.plan.RequeueAfter = again
	return true
}

func (p *pass) event(t EventType, reason, message string) {
	p.plan.Events = append(p.plan.Events, Event{Type: t, Reason: reason, Message: message})
}

// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"time"

	"github.com/muxlet/muxlet/actuate"
	"github.com/muxlet/muxlet/controller/record"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec"
)

// beginStop writes the stop down. The first signal comes with the next pass,
// when the descendants are known.
func (p *pass) beginStop(reason record.StopReason, process observe.Process) bool {
	// What earlier ones have left belongs to the descendants of this one.
	p.rec.Stop = &record.Stop{Reason: reason, Process: process, Descendants: p.rec.Survivors}
	p.rec.Survivors = nil
	return p.say(spec.ReasonStopping, stopSentence(reason, process), soon)
}

func stopSentence(reason record.StopReason, process observe.Process) string {
	why := map[record.StopReason]string{
		record.StopSuspended:    "the session is suspended",
		record.StopTerminated:   "a person terminated it",
		record.StopRestarting:   "a person restarted it",
		record.StopRemoved:      "its document was removed",
		record.StopUpdating:     "its spec has changed",
		record.StopOrphan:       "it runs without its pane",
		record.StopDuplicate:    "another client of the session runs",
		record.StopStartTimeout: "it did not start in time",
		record.StopLeftover:     "its client has ended",
		record.StopEngineGone:   "the program that does its work has ended",
		record.StopForTurn:      "its class takes a turn at its start only",
		record.StopProbeFailed:  "its liveness probe has failed",
	}[reason]
	return fmt.Sprintf("ending pid %d: %s", process.PID, why)
}

// stopGrace is the time between SIGTERM and SIGKILL. A process that nobody can
// see any more, or that has nothing left to wrap, gets at most three seconds.
func (p *pass) stopGrace() time.Duration {
	s, c := p.rec.Stop, p.rec.Client
	switch s.Reason {
	case record.StopOrphan, record.StopDuplicate, record.StopLeftover, record.StopEngineGone:
		return min(p.grace(), leftoverGrace)
	case record.StopSuspended, record.StopTerminated, record.StopRemoved:
		// It may have begun as the stop of an orphan.
		if c != nil && c.Process == s.Process && !p.inPane(c) {
			return min(p.grace(), leftoverGrace)
		}
	case record.StopRestarting, record.StopUpdating, record.StopStartTimeout, record.StopForTurn, record.StopProbeFailed:
	}
	return p.grace()
}

func (p *pass) inPane(c *record.Client) bool {
	_, ok := p.paneOf(liveClient{process: c.Process, panePID: c.PanePID})
	return ok
}

// continueStop carries a stop to its verified end: SIGTERM, SIGKILL after the
// grace period, the same for the descendants where the stop is for good.
func (p *pass) continueStop() bool {
	s := p.rec.Stop
	if s == nil {
		return false
	}
	p.raiseStop(s)
	switch p.Seen.Stop {
	case observe.Running:
		return p.signalStop(s)
	case observe.Gone:
	case observe.LivenessUnknown:
		return p.say(spec.ReasonProcessUnknown, fmt.Sprintf("whether pid %d still runs could not be read", s.Process.PID), pollSlow)
	}
	if s.Reason.EndsTree() && len(p.Seen.TreeRunning) > 0 {
		return p.signalTree(s)
	}
	return p.finishStop(s)
}

// raiseStop: a stop that was to be followed by another client has become one for
// good meanwhile.
func (p *pass) raiseStop(s *record.Stop) {
	if !s.Reason.EndsTree() && p.rec.Client != nil && p.rec.Client.Process == s.Process {
		switch p.unwanted() {
		case spec.ReasonRemoved:
			s.Reason = record.StopRemoved
		case spec.ReasonSuspended:
			s.Reason = record.StopSuspended
		case spec.ReasonTerminated:
			s.Reason = record.StopTerminated
		}
	}
}

func (p *pass) signalStop(s *record.Stop) bool {
	grace := p.stopGrace()
	if asked(s).IsZero() {
		s.Descendants = append(s.Descendants, p.Seen.Tree...)
		if p.askPolitely(s) {
			s.PoliteAt = p.Now
			return p.say(spec.ReasonStopping, stopSentence(s.Reason, s.Process), max(min(politeness(grace), grace), soon))
		}
		s.TermAt = p.Now
		p.signal(actuate.SignalTerm, s.Process)
		return p.say(spec.ReasonStopping, stopSentence(s.Reason, s.Process), max(grace, soon))
	}
	left := asked(s).Add(grace).Sub(p.Now)
	if polite := s.PoliteAt.Add(politeness(grace)).Sub(p.Now); s.TermAt.IsZero() && left > 0 {
		if polite > 0 {
			return p.say(spec.ReasonStopping, stopSentence(s.Reason, s.Process), min(polite, left))
		}
		s.TermAt = p.Now
		p.signal(actuate.SignalTerm, s.Process)
		return p.say(spec.ReasonStopping, stopSentence(s.Reason, s.Process)+"; SIGTERM sent", left)
	}
	if left > 0 {
		return p.say(spec.ReasonStopping, fmt.Sprintf("%s; SIGKILL in %s", stopSentence(s.Reason, s.Process), left.Round(time.Second)), left)
	}
	if s.KillAt.IsZero() {
		p.event(Warning, spec.ReasonKilled, fmt.Sprintf("Pid %d did not end within %s of %s", s.Process.PID, grace, howAsked(s)))
		s.KillAt = p.Now
		p.signal(actuate.SignalKill, s.Process)
		return p.say(spec.ReasonStopping, stopSentence(s.Reason, s.Process)+"; SIGKILL sent", killRepeat)
	}
	return p.repeatKill(s, grace)
}

// repeatKill: SIGKILL was sent and the process still runs. After a while that is
// told to a person, since only the kernel can hold it.
func (p *pass) repeatKill(s *record.Stop, grace time.Duration) bool {
	left := s.KillAt.Add(killRepeat).Sub(p.Now)
	if left <= 0 {
		s.KillAt, left = p.Now, killRepeat
		p.signal(actuate.SignalKill, s.Process)
	}
	if p.Now.Sub(asked(s).Add(grace)) < killRepeat {
		return p.say(spec.ReasonStopping, stopSentence(s.Reason, s.Process)+"; SIGKILL sent", left)
	}
	return p.say(spec.ReasonClientIgnoresKill, fmt.Sprintf("pid %d was sent SIGKILL and still runs; it may hang in the kernel", s.Process.PID), left)
}

func (p *pass) signalTree(s *record.Stop) bool {
	grace := min(p.grace(), leftoverGrace)
	if s.TreeTermAt.IsZero() {
		s.TreeTermAt = p.Now
		p.signal(actuate.SignalTerm, p.Seen.TreeRunning...)
	}
	age := p.Now.Sub(s.TreeTermAt)
	again := poll(age)
	switch {
	case age < grace, p.plan.Action.Kind != actuate.ActionNone:
		again = max(min(again, grace-age), soon)
	case p.Now.Sub(s.TreeKillAt) >= killRepeat:
		s.TreeKillAt = p.Now
		p.signal(actuate.SignalKill, p.Seen.TreeRunning...)
	}
	who := "client"
	if s.Reason == record.StopStartTimeout && p.rec.Client == nil {
		who = "profile"
	}
	return p.say(spec.ReasonStopping, fmt.Sprintf("ending %d processes that the %s left", len(p.Seen.TreeRunning), who), again)
}

func (p *pass) signal(sig actuate.Signal, processes ...observe.Process) {
	p.plan.Action = actuate.Action{Kind: actuate.ActionSignal, Signal: sig, Processes: processes}
}

// finishStop accounts for what the stop was for, and lets the chain go on. What a
// person asked for is still in the record's intent.
func (p *pass) finishStop(s *record.Stop) bool {
	if p.rec.Client != nil && p.rec.Client.Process == s.Process {
		if p.Seen.Client != observe.Gone {
			return p.say(spec.ReasonStopping, fmt.Sprintf("pid %d has just ended", s.Process.PID), pollStatus)
		}
		e, wait := p.endOfClient()
		if wait {
			return p.say(spec.ReasonStopping, "waiting for the client's end to be known", p.plan.RequeueAfter)
		}
		p.closeStopped(s, e)
	}
	// Where the stop is for good none of them is left by now.
	p.rec.Stop, p.rec.Survivors = nil, p.Seen.TreeRunning
	if len(p.Seen.Clients) > 0 {
		// The rules that judge live clients stood back while the stop went on.
		return p.say(spec.ReasonStopping, fmt.Sprintf("pid %d has ended; another client of the session is judged next", s.Process.PID), soon)
	}
	return false
}

// closeStopped writes down the end of a client that we ended. Only a client
// that was lost with its pane or its engine, that never came up or that was found
// not to work any more counts as a death.
func (p *pass) closeStopped(s *record.Stop, e end) {
	c := p.rec.Client
	if s.Reason == record.StopStartTimeout {
		message := fmt.Sprintf("showed nothing for %s", p.Now.Sub(c.StartedAt).Round(time.Second))
		p.countDeath(c.StartedAt)
		p.closeClient(record.Termination{Incarnation: c.Incarnation, Exit: e.exit, Reason: spec.ReasonStartTimeout, Message: message, At: p.Now})
		p.event(Warning, spec.ReasonStartTimeout, fmt.Sprintf("Incarnation %d %s and was ended", c.Incarnation, message))
		return
	}
	if s.Reason == record.StopEngineGone {
		p.closeWrapper(c, e)
		return
	}
	if s.Reason == record.StopProbeFailed {
		p.closeUnresponsive(s, e)
		return
	}
	if s.Reason == record.StopOrphan {
		p.countDeath(c.StartedAt)
		p.closeClient(record.Termination{Incarnation: c.Incarnation, Exit: e.exit, Reason: spec.ReasonLost, Message: "its pane was lost; " + e.sentence(), At: p.Now})
		p.event(Warning, spec.ReasonLost, fmt.Sprintf("Incarnation %d lost its pane and was ended", c.Incarnation))
		return
	}
	t := record.Termination{Incarnation: c.Incarnation, Exit: e.exit, Reason: spec.ReasonStopped, Message: stoppedSentence(s), At: p.Now}
	p.closeClient(t)
	p.event(Normal, spec.ReasonStopped, fmt.Sprintf("Incarnation %d ended: %s", c.Incarnation, t.Message))
}

func stoppedSentence(s *record.Stop) string {
	how := "by " + howAsked(s)
	switch {
	case asked(s).IsZero():
		return fmt.Sprintf("ended before muxlet signalled it (%s)", s.Reason)
	case !s.KillAt.IsZero():
		how = "by SIGKILL after the grace period"
	}
	return fmt.Sprintf("ended by muxlet (%s), %s", s.Reason, how)
}

// closeClient forgets the client but for its end.
func (p *pass) closeClient(t record.Termination) {
	if c := p.rec.Client; c.ReadyAt.IsZero() {
		p.giveBack(c.Demand)
	}
	p.rec.LastTermination, p.rec.Client = &t, nil
}

func (p *pass) latch(reason, message string) {
	p.rec.Latch = &record.Latch{Reason: reason, Message: message, At: p.Now}
	p.rec.Demand = nil
}

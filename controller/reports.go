// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muxlet/muxlet/controller/plan"
	"github.com/muxlet/muxlet/controller/record"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec"
)

// errBusy is the answer to a report for which there is no room: it is spooled.
var errBusy = errors.New("too many reports wait for the session's worker")

// errEarly is the answer to a report that came before this daemon knows its sessions.
var errEarly = errors.New("the sessions were not looked at yet")

// reportPatience is how long a report waits for its worker. Its hook has spooled it
// long before, and it comes again from there.
const reportPatience = time.Second

// told is a report that waits for the worker of its session, and whom to answer.
type told struct {
	report observe.Report
	done   func(error)
}

// sender says whose report it is.
type sender int

// The senders. The zero value is refused.
const (
	// senderStranger: nobody's that counts.
	senderStranger sender = iota
	// senderEarly: of an attempt of which it is not known yet whether it was executed.
	senderEarly
	// senderPresent: of the client that the record names.
	senderPresent
	// senderLast: of the last client, which has ended, and nothing newer was started.
	senderLast
)

// senderOf judges whose report r is. An agent that a person starts by hand in the
// pane inherits the mark and is told from the client by the processes between them.
func senderOf(rec record.Record, instance string, r observe.Report) sender {
	m := r.Mark
	if instance == "" || m.Instance != instance || m.UID != rec.UID {
		return senderStranger
	}
	switch client := rec.Client; {
	case client != nil && client.Attempt == m.Attempt:
		if ofClass(client, r.Class) && observe.Proves(r, client.Process, client.Attempt) {
			return senderPresent
		}
	case rec.Attempt != nil && rec.Attempt.ID == m.Attempt:
		return senderEarly
	case client == nil && rec.Attempt == nil && m.Incarnation == rec.Incarnation && observe.Proves(r, m.Process, m.Attempt):
		return senderLast
	}
	return senderStranger
}

// ofClass says whether a report of a hook of the class may be the client's, as far as it
// is known what that was started from.
func ofClass(client *record.Client, class string) bool {
	launched := client.Launched
	return launched == nil || launched.ClientClassName == "" || class == "" || launched.ClientClassName == class
}

// takeReport takes a report from the socket or from the spool. It returns nil once
// nothing of it can be lost any more: at once when it changes no record, be it that it
// does not count, else when the record is saved.
func (c *Controller) takeReport(ctx context.Context, r observe.Report) error {
	select {
	case <-c.loaded:
	case <-ctx.Done():
		return ctx.Err()
	}
	answer := make(chan error, 1)
	// It may be answered twice, and when nobody waits for it any more: whoever answers
	// has the controller's lock.
	done := func(err error) {
		select {
		case answer <- err:
		default:
		}
	}
	if name := c.queueReport(r, done); name != "" {
		c.queue.Add(name)
	}
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-c.Clock.After(reportPatience):
		return errBusy
	}
}

// serveReports takes reports until ctx ends.
func (c *Controller) serveReports(ctx context.Context) {
	if err := c.Reports.Serve(ctx, c.takeReport); err != nil && ctx.Err() == nil {
		c.Log.Error(err, "Reports are not taken any more")
	}
}

// queueReport settles a report that needs nothing written down, and puts any other
// one into its session's queue. It names the session whose worker has to see to it.
func (c *Controller) queueReport(r observe.Report, done func(error)) (name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.sessionOf(r.Mark.UID)
	if s == nil || c.instance == "" {
		if !c.first.told {
			// Its session may be adopted a moment later.
			done(errEarly)
			return ""
		}
		done(nil)
		return ""
	}
	if len(s.reports) == 0 && senderOf(s.rec, c.instance, r) == senderPresent && c.hear(s, r, done) {
		return ""
	}
	if len(s.reports) >= mostReports {
		done(errBusy)
		return ""
	}
	s.reports = append(s.reports, told{r, done})
	return s.name
}

// mostReports that wait for one session's worker; more than a tmux that hangs for its
// deadline lets come. The hooks of those beyond spool them.
const mostReports = 1000

// sessionOf finds a session by its uid. c.mu is held.
func (c *Controller) sessionOf(uid string) *session {
	if uid == "" {
		return nil
	}
	if s := c.byUID[uid]; s != nil && s.rec.UID == uid {
		return s
	}
	for _, s := range c.sessions {
		if s.rec.UID == uid {
			c.byUID[uid] = s
			return s
		}
	}
	return nil
}

// hear takes a report of a session's client in, and says whether it is settled by
// that. c.mu is held.
func (c *Controller) hear(s *session, r observe.Report, done func(error)) (settled bool) {
	t := s.tellingOf(r.Mark.Attempt)
	t.clamp(c.now())
	if owner := c.ownerOf(r.Conversation, s); owner != nil && t.conversation(s.rec) != r.Conversation {
		c.refuseConversation(s, r.Conversation, owner.name)
		r.Conversation = ""
	}
	t.noteTurn(r)
	if c.turnsAwait(s, r) {
		recorded, taken := bothOf(done)
		done, t.answers = recorded, append(t.answers, taken)
		c.queue.Add(s.name)
	}
	if t.note(s.rec, r, done) {
		done(nil)
		settled = true
	}
	c.showReported(s, t.reportedAt)
	c.lookAfter(s, r)
	return settled
}

// turnsAwait says whether a turn in the client's hands may end by a report. It is answered
// when that is on disk: the hook has spooled it, and the next daemon gets it from there.
// c.mu is held.
func (c *Controller) turnsAwait(s *session, r observe.Report) bool {
	return tellsOfTurns(r.Kind) && c.book.inHand(s.rec.UID)
}

// bothOf are two halves of an answer: done is called once both were given, with the first
// error of them.
func bothOf(done func(error)) (a, b func(error)) {
	missing, failure := 2, error(nil)
	half := func(given *bool) func(error) {
		return func(err error) {
			if failure == nil {
				failure = err
			}
			if !*given {
				*given = true
				missing--
			}
			if missing == 0 {
				done(failure)
			}
		}
	}
	return half(new(bool)), half(new(bool))
}

// showReported tells when the client last reported anything, without a pass: a
// heartbeat is no change. c.mu is held.
func (c *Controller) showReported(s *session, at time.Time) {
	if s.status.Activity == nil {
		return
	}
	activity := *s.status.Activity
	activity.ReportedAt = &metav1.Time{Time: at}
	s.status.Activity = &activity
}

// refuseConversation tells once that a client has taken up a conversation which
// another session has. c.mu is held.
func (c *Controller) refuseConversation(s *session, id, owner string) {
	if s.refusedID == id {
		return
	}
	s.refusedID = id
	c.tell(s.name, s.rec.UID, plan.Event{Type: plan.Warning, Reason: spec.ReasonConversationInUse, Message: fmt.Sprintf(
		"The client has taken up conversation %s, which belongs to session %s: two clients that write one conversation lose turns of it. "+
			"This session keeps its own; end that one in the client, or run muxlet restart %s", id, owner, s.name)})
}

// takeReports takes in what waits for the worker of s: of a client that was not known
// when it came, or a report that was spooled. What is of an attempt that is still
// pending waits on.
func (c *Controller) takeReports(s *session) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var waiting []told
	for _, w := range s.reports {
		from := senderOf(s.rec, c.instance, w.report)
		switch {
		case from == senderEarly, from == senderStranger && !s.seen && s.rec.Client == nil:
			// Its client is judged, or adopted, in this pass.
			waiting = append(waiting, w)
		case from == senderStranger:
			w.done(nil)
		default:
			c.hear(s, w.report, w.done)
		}
	}
	s.reports = waiting
}

// heardOf are the conversations that the present client, or the last one, has told
// of. c.mu is held.
func (c *Controller) heardOf(s *session) []plan.Heard {
	t := s.telling
	if t == nil || (s.rec.Client != nil && t.attempt != s.rec.Client.Attempt) {
		return nil
	}
	heard := make([]plan.Heard, 0, len(t.heard))
	for _, h := range t.heard {
		heard = append(heard, h.Heard)
	}
	return heard
}

// settleHeard answers those whose reports were decided upon with the first n of what
// was heard; err is why they are not on disk.
func (c *Controller) settleHeard(s *session, n int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := s.telling
	if t == nil || n == 0 {
		return
	}
	n = min(n, len(t.heard))
	for i := range n {
		t.heard[i].done(err)
		t.heard[i].done = func(error) {}
	}
	if err == nil {
		t.heard = append([]hearing(nil), t.heard[n:]...)
	}
}

// loadSpool puts the reports that came while no daemon took them into the queues of
// their sessions, before the first decision about any. Each comes a second time while
// the spool is emptied, and is done with then.
func (c *Controller) loadSpool() {
	if c.Reports == nil {
		return
	}
	spooled, err := c.Reports.Spooled()
	if err != nil {
		c.Log.Error(err, "Spooled reports could not be read")
	}
	for _, r := range spooled {
		c.mu.Lock()
		if s := c.sessionOf(r.Mark.UID); s != nil {
			s.reports = append(s.reports, told{r, func(error) {}})
		}
		c.mu.Unlock()
	}
}

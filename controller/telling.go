// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"time"

	"github.com/muxlet/muxlet/controller/plan"
	"github.com/muxlet/muxlet/controller/record"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec"
)

// telling is what one client has told and shown, as far as this daemon knows. None
// of it is durable: what must be is in the record, and a client that runs tells and
// shows the rest again. It is used under the controller's lock.
type telling struct {
	// attempt of the client.
	attempt string
	// report is the last one that tells what the client does, reportedAt when any came
	// last; zero before the first.
	report     observe.LastReport
	reportedAt time.Time
	// namedAt is when a report last named a conversation; what is older says nothing
	// about the present one.
	namedAt time.Time
	// heard are the conversations that no record has yet, oldest first.
	heard []hearing
	// sight is what it showed last, by the last report of then, and since when its
	// activity is what it is.
	sight   observe.Sight
	sightBy observe.LastReport
	since   time.Time
	// told is what its reports tell of turns, answers are those who wait until that is
	// taken into the turns on disk.
	told    observe.Told
	answers []func(error)
	// focus is whether it asks for attention, and whether a person has seen it.
	focus focus
	// claimed is a conversation that its files name and the record does not, claimedAt
	// since when.
	claimed   string
	claimedAt time.Time
}

// hearing is a conversation that a client has told of, and whom to tell once that is
// on disk, or why it is not.
type hearing struct {
	plan.Heard
	done func(error)
}

// tellingOf is what the client of an attempt has told; a client's own begins with
// nothing. c.mu is held.
func (s *session) tellingOf(attempt string) *telling {
	if s.telling == nil || s.telling.attempt != attempt {
		if s.telling != nil {
			s.toldBefore = s.telling.told
			for _, answer := range s.telling.answers {
				answer(nil)
			}
		}
		s.telling = &telling{attempt: attempt, told: observe.Told{Attempt: attempt}}
		if known := s.rec.Conversation; known != nil {
			s.telling.namedAt = known.BoundAt
		}
	}
	return s.telling
}

// present is what the client that the record names has told; nil without one. c.mu
// is held.
func (s *session) present() *telling {
	if s.rec.Client == nil {
		return nil
	}
	return s.tellingOf(s.rec.Client.Attempt)
}

// clamp forgets times that lie in the future: the clock has jumped back, and what is told
// from now on would be taken for old.
func (t *telling) clamp(now time.Time) {
	if t.namedAt.After(now) {
		t.namedAt = time.Time{}
	}
	if t.report.At.After(now) {
		t.report.At = time.Time{}
	}
	if t.reportedAt.After(now) {
		t.reportedAt = time.Time{}
	}
}

// present is the sight as the last report has it: a turn has begun although nobody has
// looked since.
func (t *telling) present() observe.Sight {
	sight := t.sight
	begins := t.report.Kind == observe.ReportPrompted || t.report.Kind == observe.ReportWorking
	if begins && t.report != t.sightBy {
		sight.Activity = spec.ActivityWorking
	}
	return sight
}

// conversation is the one that the client has now: what it told last, else what the
// record has.
func (t *telling) conversation(r record.Record) string {
	if n := len(t.heard); n > 0 {
		return t.heard[n-1].ID
	}
	if r.Conversation != nil {
		return r.Conversation.ID
	}
	return ""
}

// note takes a report of this client in. Unless it tells of another conversation, or
// that the present one has begun, nothing needs to be written for it, and settled is
// true.
func (t *telling) note(rec record.Record, r observe.Report, done func(error)) (settled bool) {
	t.noteState(r)
	if r.Conversation == "" {
		return true
	}
	// The end of a conversation that another has followed may be told after the
	// beginning of that, and so may anything by a hook that was slow.
	late := r.Kind == observe.ReportEnded || r.At.Before(t.namedAt)
	if !late {
		t.namedAt, t.claimed = r.At, ""
	}
	begun, n := hasTurn(r) && !late, len(t.heard)
	switch {
	case n > 0 && (late || t.heard[n-1].ID == r.Conversation):
		// It is done with when what was heard before it is.
		t.heard[n-1].Begun = t.heard[n-1].Begun || begun
		t.heard[n-1].done = both(t.heard[n-1].done, done)
		return false
	case late, n == 0 && t.conversation(rec) == r.Conversation && (rec.Conversation.Begun || !begun):
		return true
	}
	t.heard = append(t.heard, hearing{
		Heard: plan.Heard{
			ID: r.Conversation, Reason: replacedReason(r), Incarnation: r.Mark.Incarnation, Class: r.Class, At: r.At, Begun: begun,
		},
		done: done,
	})
	return false
}

// noteState remembers what the client does. The end of a conversation is followed by
// another one's beginning or by the client's end, and both are told by other means.
func (t *telling) noteState(r observe.Report) {
	if r.At.After(t.reportedAt) {
		t.reportedAt = r.At
	}
	means := r.Kind != observe.ReportOther && r.Kind != observe.ReportEnded
	if r.Repeats() && t.report.Kind == observe.ReportAsked {
		return
	}
	if t.report.Kind == "" || means && !r.At.Before(t.report.At) {
		t.report = observe.LastReport{Kind: r.Kind, At: r.At, Failure: r.Failure}
	}
}

func both(a, b func(error)) func(error) {
	return func(err error) {
		a(err)
		b(err)
	}
}

// hasTurn says whether the report's conversation has had a turn.
func hasTurn(r observe.Report) bool {
	switch r.Kind {
	case observe.ReportPrompted, observe.ReportWorking, observe.ReportAsked, observe.ReportDone, observe.ReportFailed:
		return true
	case observe.ReportStarted, observe.ReportEnded, observe.ReportOther:
	}
	return false
}

// replacedReason is why the conversation before the report's was replaced, by the
// words of Claude Code and Codex for how one begins.
func replacedReason(r observe.Report) string {
	switch r.Source {
	case "clear", "startup":
		return spec.ReplacedCleared
	case "fork":
		return spec.ReplacedForked
	case "resume":
		return spec.ReplacedResumed
	}
	return spec.ReplacedReported
}

// claimPatience is how long a client's files must name a conversation that neither
// its reports nor the record name: what they are asked for may be written a moment
// after its hook has told.
const claimPatience = 3 * time.Second

// noteClaim takes in what the client's files name. It is heard at once when nothing
// else has told, and otherwise when they go on to say so and no report contradicts.
func (t *telling) noteClaim(rec record.Record, id string, now time.Time) (news bool) {
	switch {
	case id == "" || id == t.conversation(rec):
		t.claimed = ""
		return false
	case t.claimed != id:
		t.claimed, t.claimedAt = id, now
	}
	if t.conversation(rec) != "" && now.Sub(t.claimedAt) < claimPatience {
		return false
	}
	t.claimed = ""
	t.heard = append(t.heard, hearing{
		Heard: plan.Heard{ID: id, Reason: spec.ReplacedReported, Incarnation: rec.Client.Incarnation},
		done:  func(error) {},
	})
	return true
}

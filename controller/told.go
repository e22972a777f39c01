// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"slices"

	"github.com/muxlet/muxlet/controller/turn"
	"github.com/muxlet/muxlet/observe"
)

// mostPrompted is how many submissions of a client are remembered.
const mostPrompted = 20

// tellsOfTurns says whether a report is about the beginning or the end of a turn.
func tellsOfTurns(k observe.ReportKind) bool {
	switch k {
	case observe.ReportPrompted, observe.ReportDone, observe.ReportFailed:
		return true
	case observe.ReportStarted, observe.ReportWorking, observe.ReportAsked, observe.ReportEnded, observe.ReportOther:
	}
	return false
}

// noteTurn takes in what a report tells of turns. It may come twice.
func (t *telling) noteTurn(r observe.Report) {
	switch r.Kind {
	case observe.ReportPrompted:
		p := observe.Prompted{At: r.At, Digest: r.Prompt}
		if slices.Contains(t.told.Prompted, p) {
			return
		}
		// Another slice: a pass may be looking at this one.
		all := append(slices.Clone(t.told.Prompted), p)
		slices.SortStableFunc(all, func(a, b observe.Prompted) int { return a.At.Compare(b.At) })
		t.told.Prompted = all[max(len(all)-mostPrompted, 0):]
	case observe.ReportDone:
		if r.At.After(t.told.Done) {
			t.told.Done = r.At
		}
	case observe.ReportFailed:
		if r.At.After(t.told.Failed) {
			t.told.Failed, t.told.Failure = r.At, r.Failure
		}
	case observe.ReportStarted, observe.ReportWorking, observe.ReportAsked, observe.ReportEnded, observe.ReportOther:
	}
}

// toldOf is what the present client, or the last one, has told of turns: the one that
// the first turn was handed to, if both are known. c.mu is held.
func toldOf(s *session, turns []turn.Turn) observe.Told {
	if s.rec.Client != nil {
		s.tellingOf(s.rec.Client.Attempt)
	}
	if s.telling == nil {
		return observe.Told{}
	}
	if len(turns) > 0 && turns[0].Attempt != "" && turns[0].Attempt == s.toldBefore.Attempt {
		return s.toldBefore
	}
	return s.telling.told
}

// settleTold answers those whose reports this pass has taken into the turns; err is why
// that is not on disk.
func (c *Controller) settleTold(s *session, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t, n := s.telling, s.answersDue
	s.answersDue = 0
	if t == nil || n == 0 {
		return
	}
	n = min(n, len(t.answers))
	for _, answer := range t.answers[:n] {
		answer(err)
	}
	t.answers = slices.Delete(t.answers, 0, n)
}

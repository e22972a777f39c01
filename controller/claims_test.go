// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/muxlet/muxlet/controller/record"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec"
)

func withConversation(name, id string, boundAt time.Time) *session {
	s := newSession(name)
	s.rec = record.Record{UID: "uid-" + name, Name: name, CreatedAt: boundAt, Conversation: &record.Conversation{ID: id, BoundAt: boundAt}}
	return s
}

// Of two sessions that have one conversation exactly one may start.
func TestOfTwoSessionsWithOneConversationOneYields(t *testing.T) {
	early, late := time.Unix(100, 0), time.Unix(200, 0)
	for name, c := range map[string]struct {
		a, b       *session
		first, two string
	}{
		"the later one keeps it":         {withConversation("a", "c", early), withConversation("b", "c", late), "b", ""},
		"by name when it is the same":    {withConversation("a", "c", early), withConversation("b", "c", early), "", "a"},
		"conversations of their own":     {withConversation("a", "c", early), withConversation("b", "d", late), "", ""},
		"the one with a client keeps it": {withConversation("a", "c", early), withClient(withConversation("b", "c", late)), "b", ""},
		"whenever that took it up":       {withClient(withConversation("a", "c", early)), withConversation("b", "c", late), "b", "a"},
	} {
		t.Run(name, func(t *testing.T) {
			ctl := bare(t, Options{})
			ctl.sessions["a"], ctl.sessions["b"] = c.a, c.b
			assert.Equal(t, c.first, ctl.claim(c.a, c.a.rec.Conversation.ID, false))
			ctl.unclaim(c.a)
			assert.Equal(t, c.two, ctl.claim(c.b, c.b.rec.Conversation.ID, false))
		})
	}
}

func withClient(s *session) *session {
	s.rec.Client = &record.Client{Process: observe.Process{PID: 1, Ticks: 1}}
	return s
}

// While the pass of one session may take a conversation up, no other finds it free.
func TestAConversationIsClaimedByOnePassAtATime(t *testing.T) {
	ctl := bare(t, Options{})
	a, b := newSession("a"), newSession("b")
	ctl.sessions["a"], ctl.sessions["b"] = a, b
	assert.Empty(t, ctl.claim(a, "c", true))
	assert.Equal(t, "a", ctl.claim(b, "c", true))
	ctl.unclaim(a)
	assert.Empty(t, ctl.claim(b, "c", true))
}

func TestReplacedReasonsFollowTheClientsWords(t *testing.T) {
	for source, want := range map[string]string{
		"clear": spec.ReplacedCleared, "startup": spec.ReplacedCleared, "fork": spec.ReplacedForked, "resume": spec.ReplacedResumed, "": spec.ReplacedReported,
	} {
		assert.Equal(t, want, replacedReason(observe.Report{Source: source}), source)
	}
}

// A report of an earlier conversation that comes late does not bring it back.
func TestALateReportChangesNothing(t *testing.T) {
	at := time.Unix(1000, 0)
	rec := record.Record{Client: &record.Client{Attempt: "t"}, Conversation: &record.Conversation{ID: "one", Begun: true, BoundAt: at}}
	report := func(id string, kind observe.ReportKind, after time.Duration) observe.Report {
		return observe.Report{ID: id, Kind: kind, Conversation: id, Source: "clear", At: at.Add(after)}
	}
	none := func(error) {}
	var tell telling
	tell.namedAt = at
	assert.True(t, tell.note(rec, report("one", observe.ReportWorking, time.Second), none), "it is known")
	assert.False(t, tell.note(rec, report("two", observe.ReportStarted, 2*time.Second), none))
	// Until the new one is on disk, what comes waits with it.
	assert.False(t, tell.note(rec, report("one", observe.ReportEnded, 3*time.Second), none))
	assert.False(t, tell.note(rec, report("one", observe.ReportDone, 1500*time.Millisecond), none))
	assert.Len(t, tell.heard, 1)
	assert.Equal(t, "two", tell.heard[0].ID)
	rec.Conversation, tell.heard = &record.Conversation{ID: "two"}, nil
	assert.True(t, tell.note(rec, report("one", observe.ReportDone, 1800*time.Millisecond), none))
	assert.True(t, tell.note(rec, report("one", observe.ReportEnded, 4*time.Second), none))
	assert.False(t, tell.note(rec, report("two", observe.ReportPrompted, 5*time.Second), none), "that it has begun is written down")
	assert.True(t, tell.heard[0].Begun)
}

// What a client's files name counts when nothing else has told, or when it stays so.
func TestWhatFilesNameCountsWhenItStays(t *testing.T) {
	at := time.Unix(1000, 0)
	rec := record.Record{Client: &record.Client{Attempt: "t", Incarnation: 3}}
	var tell telling
	assert.True(t, tell.noteClaim(rec, "one", at))
	assert.Equal(t, "one", tell.heard[0].ID)
	rec.Conversation, tell.heard = &record.Conversation{ID: "one", Begun: true}, nil
	assert.False(t, tell.noteClaim(rec, "two", at), "it may be of a moment ago")
	assert.False(t, tell.noteClaim(rec, "one", at.Add(time.Second)))
	assert.False(t, tell.noteClaim(rec, "two", at.Add(2*time.Second)))
	assert.True(t, tell.noteClaim(rec, "two", at.Add(2*time.Second+claimPatience)))
	assert.Equal(t, "two", tell.heard[0].ID)
}

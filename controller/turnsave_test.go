// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	"k8s.io/utils/clock"

	"github.com/muxlet/muxlet/actuate"
	"github.com/muxlet/muxlet/controller/plan"
	"github.com/muxlet/muxlet/controller/record"
	"github.com/muxlet/muxlet/controller/status"
	"github.com/muxlet/muxlet/controller/turn"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec"
)

// queueing is a controller that keeps turns, and a session of it.
func queueing(t *testing.T) (*Controller, *session) {
	t.Helper()
	dir := t.TempDir()
	recorder, err := status.OpenRecorder(dir, 10)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, recorder.Close()) })
	store := turn.NewStore(dir, time.Now, func() turn.Limits { return turn.Limits{} })
	c := New(Options{Log: logr.Discard(), Clock: clock.RealClock{}, TurnStore: store, Recorder: recorder})
	c.screensDue = newQueue(c.Clock, nil)
	t.Cleanup(func() {
		c.queue.ShutDown()
		c.screensDue.ShutDown()
	})
	close(c.loaded)
	require.NoError(t, store.Prepare())
	store.Follow(c.book.put, c.book.gone)
	s := newSession("a")
	s.rec.UID, s.rec.Name = "u", "a"
	c.sessions["a"] = s
	return c, s
}

func (c *Controller) queued(t *testing.T, s *session) turn.Turn {
	t.Helper()
	made, _, err := c.TurnStore.Create(turn.Request{Session: s.name, SessionUID: s.rec.UID, Prompt: "hello"})
	require.NoError(t, err)
	return made
}

// The sweeper, or a person, ends a turn at the moment in which another one is handed
// over, or the session is stopped.
func TestATurnThatChangesMeanwhileStopsOnlyWhatIsDoneForIt(t *testing.T) {
	c, s := queueing(t)
	first, second := c.queued(t, s), c.queued(t, s)
	_, err := c.TurnStore.Update(second.Cancel(time.Now()))
	require.NoError(t, err)
	late := second.Fail(time.Now(), spec.ReasonDeadlineExceeded, "late", true)

	paste := plan.Plan{
		Action: actuate.Action{Kind: actuate.ActionPaste, Turn: actuate.Turn{Name: first.Name}},
		Turns:  []turn.Turn{first.Begin(time.Now(), spec.SubmitPaste, 1, "x", ""), late},
	}
	require.True(t, c.saveTurns(s, plan.Input{}, &paste), "its mark is on disk: it is pasted now, or never")
	require.Equal(t, actuate.ActionPaste, paste.Action.Kind)
	require.Equal(t, turn.Delivering, c.book.open("u")[0].Phase)
	require.Equal(t, time.Millisecond, paste.RequeueAfter)

	signal := plan.Plan{Action: actuate.Action{Kind: actuate.ActionSignal}, Turns: []turn.Turn{late}}
	require.True(t, c.saveTurns(s, plan.Input{}, &signal), "the record says that the client was asked to end")

	other := plan.Plan{Action: actuate.Action{Kind: actuate.ActionPaste, Turn: actuate.Turn{Name: second.Name}}, Turns: []turn.Turn{second.Begin(time.Now(), spec.SubmitPaste, 1, "x", "")}}
	require.False(t, c.saveTurns(s, plan.Input{}, &other))
	require.Equal(t, actuate.ActionNone, other.Action.Kind, "what was taken back is not handed over")
}

// The first prompt of a conversation changes the record as well: a hook that was answered
// after that alone would have told nobody when the daemon is killed before the turn is saved.
func TestAReportIsAnsweredWhenItsTurnIsOnDiskToo(t *testing.T) {
	for name, begun := range map[string]bool{"the conversation begins": false, "it has begun": true} {
		t.Run(name, func(t *testing.T) {
			c, s := queueing(t)
			s.rec.Client = &record.Client{Attempt: "x", Incarnation: 1}
			s.rec.Conversation = &record.Conversation{ID: "c", Begun: begun}
			made := c.queued(t, s)
			_, err := c.TurnStore.Update(made.Begin(time.Now(), spec.SubmitPaste, 1, "x", "c"))
			require.NoError(t, err)
			answered := 0
			c.mu.Lock()
			c.hear(s, observe.Report{Kind: observe.ReportPrompted, Conversation: "c", At: time.Now(), Mark: observe.Mark{Attempt: "x"}}, func(error) { answered++ })
			c.mu.Unlock()
			in := plan.Input{}
			c.gatherTurns(s, &in)
			heard := len(c.heardOf(s))
			require.Len(t, in.Told.Prompted, 1)
			c.settleHeard(s, heard, nil)
			require.Zero(t, answered, "the record is on disk, and the turn is not")
			require.True(t, c.saveTurns(s, in, &plan.Plan{}))
			require.Equal(t, 1, answered)
		})
	}
}

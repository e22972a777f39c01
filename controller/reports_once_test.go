// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/utils/clock"

	"github.com/muxlet/muxlet/controller/record"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec"
)

// A worker that is held up, by a disk or by a tmux that does not answer, comes to a
// report when nobody waits for the answer any more.
func TestAReportWhoseSenderHasGoneHoldsNobodyUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(Options{Log: logr.Discard(), Clock: clock.RealClock{}})
		c.screensDue = newQueue(c.Clock, nil)
		defer func() {
			c.queue.ShutDown()
			c.screensDue.ShutDown()
		}()
		close(c.loaded)
		c.instance = "i"
		client := observe.Process{PID: 4711, Ticks: 1}
		mark := observe.Mark{Instance: "i", UID: "u", Incarnation: 1, Attempt: "a", Process: client}
		s := newSession("shop")
		s.hold(record.Record{
			UID: "u", Name: "shop", Incarnation: 1, Spec: &spec.SessionSpec{ClientClassName: spec.ClassClaude},
			Client:       &record.Client{Incarnation: 1, Attempt: "a", Process: client},
			Conversation: &record.Conversation{ID: "old", Class: spec.ClassClaude, Used: true},
		})
		c.sessions["shop"] = s
		r := observe.Report{
			ID: "1", Class: spec.ClassClaude, Kind: observe.ReportStarted, Source: "clear", Conversation: "new", At: time.Now(), Mark: mark,
			Chain: []observe.Ancestor{{Process: observe.Process{PID: 4713, Ticks: 3}, Executable: "/bin/muxlet"}, {Process: client, Executable: "/bin/claude"}},
		}
		require.ErrorIs(t, c.takeReport(context.Background(), r), errBusy, "its worker does not come in time")

		c.takeReports(s)
		heard := c.heardOf(s)
		assert.Len(t, heard, 1)
		c.settleHeard(s, len(heard), nil)
		assert.Empty(t, c.heardOf(s))
	})
}

// The clock is set right, back by an hour: what the client tells afterwards is no older
// than what it has told before.
func TestAClockThatJumpsBackMakesNoReportOld(t *testing.T) {
	now := time.Unix(10_000, 0)
	s := newSession("shop")
	s.rec = record.Record{Client: &record.Client{Attempt: "a"}, Conversation: &record.Conversation{ID: "old", BoundAt: now.Add(time.Hour), Begun: true}}
	told := s.present()
	told.clamp(now)
	settled := told.note(s.rec, observe.Report{Kind: observe.ReportStarted, Conversation: "new", At: now.Add(-time.Millisecond)}, func(error) {})
	assert.False(t, settled)
	assert.Equal(t, "new", told.conversation(s.rec))
}

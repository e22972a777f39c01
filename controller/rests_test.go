// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/muxlet/muxlet/controller/plan"
	"github.com/muxlet/muxlet/observe"
)

// judged says of every process what it is told.
type judged struct {
	Deaths
	state observe.Liveness
}

func (j judged) State(observe.Process) observe.Liveness { return j.state }

// Each of what a pass would see ends the rest; above all the client's own end, which
// tmux may hide.
func TestOnlyASessionThatIsAsItWasRests(t *testing.T) {
	now := time.Unix(1000, 0)
	for name, c := range map[string]struct {
		change func(*Controller, *session, *snapshot)
		rests  bool
	}{
		"as it was":          {func(*Controller, *session, *snapshot) {}, true},
		"its client is gone": {func(c *Controller, _ *session, _ *snapshot) { c.Deaths = &judged{state: observe.Gone} }, false},
		"nobody knows":       {func(c *Controller, _ *session, _ *snapshot) { c.Deaths = &judged{state: observe.LivenessUnknown} }, false},
		"its document":       {func(_ *Controller, s *session, _ *snapshot) { s.wanted++ }, false},
		"somebody asks":      {func(_ *Controller, s *session, _ *snapshot) { s.requests = append(s.requests, request{}) }, false},
		"a person attached":  {func(_ *Controller, _ *session, snap *snapshot) { snap.panes["u"][0].Attached = 1 }, false},
		"its pane is gone":   {func(_ *Controller, _ *session, snap *snapshot) { snap.panes = nil }, false},
		"another server":     {func(_ *Controller, _ *session, snap *snapshot) { snap.view.Listing.Server.StartTime++ }, false},
		"tmux is not known":  {func(_ *Controller, _ *session, snap *snapshot) { snap.view.State = observe.ServerUnknown }, false},
		"most died":          {func(_ *Controller, _ *session, snap *snapshot) { snap.confirmation = plan.Unconfirmed }, false},
		"it is time to look": {func(_ *Controller, s *session, _ *snapshot) { s.rest.since = now.Add(-time.Hour) }, false},
		"it was not at rest": {func(_ *Controller, s *session, _ *snapshot) { s.rest = nil }, false},
	} {
		t.Run(name, func(t *testing.T) {
			ctl := &Controller{Options: Options{
				Clock: clocktesting.NewFakeClock(now), Deaths: &judged{state: observe.Running}, Initial: Settings{Resync: time.Second},
			}}
			server := observe.Server{Process: observe.Process{PID: 1, Ticks: 1}, StartTime: 7}
			pane := observe.Pane{PaneID: "%1", PID: 100, State: observe.Present}
			s := newSession("a")
			s.rec.UID = "u"
			s.rest = &rest{server: server, panes: []observe.Pane{pane}, client: observe.Process{PID: 100, Ticks: 1}, since: now}
			snap := &snapshot{
				view:         observe.ServerView{State: observe.ServerRunning, Listing: observe.Listing{Server: server}},
				panes:        map[string][]observe.Pane{"u": {pane}},
				confirmation: plan.Confirmed,
			}
			c.change(ctl, s, snap)
			assert.Equal(t, c.rests, ctl.rests(s, snap))
		})
	}
}

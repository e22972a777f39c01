// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/utils/clock"

	"github.com/muxlet/muxlet/controller/plan"
	"github.com/muxlet/muxlet/observe"
)

// bare is a Controller that is not run.
func bare(t *testing.T, o Options) *Controller {
	t.Helper()
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	c := New(o)
	t.Cleanup(c.queue.ShutDown)
	return c
}

func uids(names ...string) map[string]bool {
	out := map[string]bool{}
	for _, name := range names {
		out[name] = true
	}
	return out
}

func TestMassDeathNeedsBothTheNumberAndTheShare(t *testing.T) {
	eight := uids("a", "b", "c", "d", "e", "f", "g", "h")
	for name, c := range map[string]struct {
		before, after map[string]bool
		want          bool
	}{
		"nobody was there":                 {nil, nil, false},
		"nobody died":                      {eight, eight, false},
		"all died":                         {eight, nil, true},
		"one died and it was the only one": {uids("a"), nil, false},
		"four of eight are too few":        {eight, uids("a", "b", "c", "d"), false},
		"five of eight":                    {eight, uids("a", "b", "c"), true},
		"others came":                      {eight, uids("x", "y", "z", "a", "b", "c"), true},
	} {
		t.Run(name, func(t *testing.T) {
			b := bare(t, Options{Initial: Settings{MassDeathMin: 5, MassDeathPercent: 50}})
			assert.Equal(t, c.want, b.massDeath(c.before, c.after))
		})
	}
	few := bare(t, Options{Initial: Settings{MassDeathMin: 1, MassDeathPercent: 50}})
	assert.False(t, few.massDeath(eight, uids("a", "b", "c", "d", "e")), "three of eight are a small share")
	assert.True(t, few.massDeath(uids("a"), nil))
}

func pane(id, instance, uid string, state observe.Presence) observe.Pane {
	return observe.Pane{PaneID: id, State: state, SessionName: "s" + id, SessionID: "$" + id,
		Labels: observe.Labels{Instance: instance, UID: uid, Attempt: "a", Role: observe.RoleClient}}
}

func running(panes ...observe.Pane) observe.ServerView {
	return observe.ServerView{State: observe.ServerRunning, Listing: observe.Listing{
		Panes: panes, Sessions: map[string]string{"mine": "$9"},
	}}
}

// K3: only panes with our instance, a uid and the role are ours.
func TestPanesOfOthersAreNotSortedAmongOurs(t *testing.T) {
	c := bare(t, Options{})
	helper := pane("%4", "i", "u", observe.Present)
	helper.Labels.Role = "helper"
	// A label that muxlet does not write would be refused by every action.
	edited := pane("%6", "i", "w", observe.Dead)
	edited.Labels.Attempt = "x y"
	s := c.arrange(running(
		pane("%1", "i", "u", observe.Present), pane("%2", "other", "u", observe.Present),
		pane("%3", "i", "", observe.Present), helper, pane("%5", "i", "v", observe.Dead), edited,
	), "i")
	assert.Len(t, s.panes["u"], 1)
	assert.Len(t, s.panes["v"], 1)
	assert.Len(t, s.panes, 2)
	assert.Equal(t, uids("u"), s.live)
	assert.Equal(t, "$9", s.holders["mine"])
	assert.Empty(t, c.arrange(running(pane("%1", "", "u", observe.Present)), "").panes, "without an instance nothing is ours")
}

// D1, A6: the first look that sees most sessions dead calls for a second one, and
// a look that saw nothing in between does not pass for the first.
func TestAMassDeathIsConfirmedByTheSecondLook(t *testing.T) {
	c := bare(t, Options{Initial: Settings{MassDeathMin: 2, MassDeathPercent: 50}})
	look := func(v observe.ServerView) plan.Confirmation {
		s := c.arrange(v, "i")
		c.eyes.current = &s
		return s.confirmation
	}
	alive := running(pane("%1", "i", "u", observe.Present), pane("%2", "i", "v", observe.Present))
	assert.Equal(t, plan.Confirmed, look(alive))
	look(observe.ServerView{State: observe.ServerUnknown})
	assert.Equal(t, plan.Unconfirmed, look(running()))
	assert.Equal(t, plan.Confirmed, look(running()))
	assert.Equal(t, plan.Confirmed, look(alive))
	assert.Equal(t, plan.Unconfirmed, look(observe.ServerView{State: observe.ServerNone}))
}

// M4, I3: the instance is that of clients on the very same socket.
func TestTheInstanceIsTakenFromClientsOfTheSameSocketOnly(t *testing.T) {
	client := func(instance, socket string) observe.MarkedProcess {
		return observe.MarkedProcess{Mark: observe.Mark{Instance: instance}, Socket: socket}
	}
	marked := []observe.MarkedProcess{client("one", "/run/one"), client("none", ""), client("two", "/run/two")}
	assert.Equal(t, "two", instanceOn("/run/two", marked))
	assert.Empty(t, instanceOn("/run/three", marked))
	assert.Empty(t, instanceOn("/run/one", nil))
}

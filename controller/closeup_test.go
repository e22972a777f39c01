// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/muxlet/muxlet/controller"
	"github.com/muxlet/muxlet/controller/envtest"
	"github.com/muxlet/muxlet/observe"
)

// closeUps counts the looks at one session's panes alone.
type closeUps struct {
	controller.Tmux
	looks *atomic.Int64
}

func (c closeUps) ListOf(ctx context.Context, now func() time.Time, uid string) observe.Answer {
	c.looks.Add(1)
	return c.Tmux.ListOf(ctx, now, uid)
}

// A death among many panes is judged by the session's own, as it would be by a
// whole listing: the client comes back in its pane, or beside what a person has
// left of its session.
func TestADeathAmongManyPanesIsJudgedByTheSessionsOwn(t *testing.T) {
	t.Parallel()
	looks := &atomic.Int64{}
	e := envtest.Start(t, envtest.Config{Adjust: func(o *controller.Options) { o.Tmux = closeUps{o.Tmux, looks} }})
	e.Run("a", "b")
	pane := e.Panes("a")[0].PaneID
	for i := range 70 {
		e.Tmux("new-session", "-d", "-s", fmt.Sprint("theirs", i), "--", "sleep", "1000")
	}
	e.Eventually("the panes are listed", func() bool {
		before := looks.Load()
		incarnation := e.Client("a").Incarnation
		e.Kill(e.Client("a").Process)
		e.WaitFor("a", envtest.Incarnation(incarnation+1))
		return looks.Load() > before
	})
	assert.Equal(t, pane, e.Panes("a")[0].PaneID)

	incarnation := e.Client("a").Incarnation
	e.Tmux("kill-pane", "-t", pane)
	e.WaitFor("a", envtest.Incarnation(incarnation+1))
	e.WaitFor("b", envtest.Incarnation(1))
	assert.Len(t, e.Launches("b"), 1)
}

// Those who die with their server are not judged one by one.
func TestAServersDeathAmongManyPanesEndsAllOfItsSessions(t *testing.T) {
	t.Parallel()
	e := envtest.Start(t, envtest.Config{})
	e.Run("a", "b")
	for i := range 70 {
		e.Tmux("new-session", "-d", "-s", fmt.Sprint("theirs", i), "--", "sleep", "1000")
	}
	e.KillServer()
	e.WaitFor("a", envtest.Incarnation(2))
	e.WaitFor("b", envtest.Incarnation(2))
	assert.Len(t, e.Servers(), 1)
}

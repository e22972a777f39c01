// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/muxlet/muxlet/controller"
	"github.com/muxlet/muxlet/controller/envtest"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec"
)

// captured is a tmux whose captures are counted, and held back while stuck is set.
type captured struct {
	controller.Tmux
	captures atomic.Int64
	stuck    atomic.Bool
	release  chan struct{}
}

func (c *captured) Capture(ctx context.Context, pane string, history int) (observe.Screen, error) {
	c.captures.Add(1)
	if c.stuck.Load() {
		select {
		case <-c.release:
		case <-ctx.Done():
		}
	}
	return c.Tmux.Capture(ctx, pane, history)
}

func startCaptured(t *testing.T) (*envtest.Env, *captured) {
	t.Helper()
	c := &captured{release: make(chan struct{})}
	e := envtest.Start(t, envtest.Config{Adjust: func(o *controller.Options) {
		c.Tmux = o.Tmux
		o.Tmux = c
	}})
	return e, c
}

const showing = `apiVersion: muxlet.dev/v1alpha1
kind: ClientClass
metadata: {name: showing}
spec:
  ready: {pattern: "ready to go"}
`

// shower is a session whose client shows that it is ready.
func shower(e *envtest.Env, name string) *spec.Session {
	s := e.Fake(name, envtest.Script{Prints: "ready to go"})
	s.Spec.ClientClassName = "showing"
	return s
}

// Fifty agents at rest cost one look at each of their screens a resync, and no pass;
// the looks hold up no worker, not even when tmux does not show a screen at all.
func TestLooksAtAgentsAtRestHoldUpNobody(t *testing.T) {
	t.Parallel()
	const agents = 50
	e, c := startCaptured(t)
	e.Write("class.yaml", showing)
	for i := range agents {
		e.Apply(shower(e, fmt.Sprintf("s%02d", i)))
	}
	for i := range agents {
		e.WaitFor(fmt.Sprintf("s%02d", i), envtest.Running)
	}
	const resyncs = 6
	before := c.captures.Load()
	e.Always(resyncs*envtest.Resync, "they run", envtest.Holds(e, "s00", envtest.Running))
	looks := c.captures.Load() - before
	t.Logf("%d looks at %d agents in %d resyncs", looks, agents, resyncs)
	assert.LessOrEqual(t, looks, int64((resyncs+1)*agents))
	assert.Positive(t, looks)

	c.stuck.Store(true)
	e.Eventually("looks are stuck", func() bool {
		now := c.captures.Load()
		return now > before+looks
	})
	e.Run("other")
	e.Kill(e.Client("other").Process)
	e.WaitFor("other", envtest.Incarnation(2))
	close(c.release)
}

// A class whose clients show nothing that anybody asks for costs no look.
func TestASessionOfClassExecIsNeverLookedAt(t *testing.T) {
	t.Parallel()
	e, c := startCaptured(t)
	e.Run("a", "b")
	e.Always(6*envtest.Resync, "no screen is looked at", func() bool { return c.captures.Load() == 0 })
}

// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/controller"
	"github.com/muxlet/muxlet/controller/envtest"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/observe/process"
	"github.com/muxlet/muxlet/spec"
)

// engine waits until the program that does the work of a session's client is in its
// record, and returns it.
func (a *agents) engine(session string) observe.Process {
	a.Helper()
	a.Eventually("the record of "+session+" has an engine", func() bool {
		c := a.Record(session).Client
		return c != nil && !c.Engine.IsZero()
	})
	return a.Record(session).Client.Engine
}

// wrapperOf has a session of Codex with one turn, whose wrapper will outlive its engine.
func wrapperOf(a *agents) {
	a.Helper()
	s := a.codex("s")
	a.ready(s)
	assert.Equal(a, "turns=1 first=one", a.turn("s", "one"))
	a.begun("s")
	a.config = s.Spec.Client.Env[1].Value
	a.control(map[string]any{"wrapperStays": true})
}

// C6: losing all hints costs time, never correctness.
func TestAWrapperThatLostItsEngineWithoutANoticeIsFoundAtResync(t *testing.T) {
	for name, blind := range map[string]bool{"by its pidfd": false, "by the process table": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := startAgents(t, envtest.Config{Adjust: func(o *controller.Options) { o.Deaths = deaf{Deaths: o.Deaths, blind: blind} }})
			wrapperOf(a)
			engine := a.engine("s")
			wrapper := a.Record("s").Client.Process
			require.NotEqual(t, wrapper, engine)
			a.Kill(engine)
			a.WaitFor("s", envtest.Incarnation(2))
			assert.Equal(t, observe.Gone, process.State(wrapper))
			assert.Equal(t, "turns=2 first=one", a.turn("s", "two"))
			assert.NotEqual(t, engine, a.engine("s"))
			assert.Len(t, a.Events("s", spec.ReasonEngineGone), 1)
		})
	}
}

func TestAWrapperAtRestCostsNoPass(t *testing.T) {
	t.Parallel()
	looks := &atomic.Int64{}
	const resync = 200 * time.Millisecond
	a := startAgents(t, envtest.Config{Adjust: func(o *controller.Options) {
		o.Processes, o.Initial.Resync = counted{o.Processes, looks}, resync
	}})
	wrapperOf(a)
	engine := a.engine("s")
	observedAt := func() time.Time { return a.WaitFor("s", envtest.Running).Status.Evidence.ObservedAt.Time }
	a.Eventually("it is not looked at while three resyncs go by", func() bool {
		before, at := looks.Load(), observedAt()
		a.Eventually("three resyncs", func() bool { return observedAt().After(at.Add(3 * resync)) })
		return looks.Load() == before
	})
	assert.Equal(t, engine, a.Record("s").Client.Engine)
	a.Kill(engine)
	a.WaitFor("s", envtest.Incarnation(2))
}

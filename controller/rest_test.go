// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muxlet/muxlet/controller"
	"github.com/muxlet/muxlet/controller/envtest"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec"
)

// deaf loses every death notice; what the process table says of a watched
// process goes through it, or not.
type deaf struct {
	controller.Deaths
	blind bool
}

func (deaf) Notices() <-chan observe.Notice { return nil }

func (d deaf) State(p observe.Process) observe.Liveness {
	if d.blind {
		return observe.LivenessUnknown
	}
	return d.Deaths.State(p)
}

// counted counts the looks at the leases of sessions.
type counted struct {
	controller.Processes
	looks *atomic.Int64
}

func (c counted) Lease(uid string) observe.Lease {
	c.looks.Add(1)
	return c.Processes.Lease(uid)
}

// Losing all hints costs time, never correctness: also of a session that no
// resync has made a whole pass of.
func TestADeathWithoutANoticeIsFoundAtResync(t *testing.T) {
	for name, blind := range map[string]bool{"by its pidfd": false, "by the process table": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := envtest.Start(t, envtest.Config{Adjust: func(o *controller.Options) { o.Deaths = deaf{Deaths: o.Deaths, blind: blind} }})
			e.Run("a", "b")
			e.Kill(e.Client("a").Process)
			e.WaitFor("a", envtest.Incarnation(2))
			e.WaitFor("b", envtest.Incarnation(1))
		})
	}
}

func TestASessionAtRestCostsNoPass(t *testing.T) {
	t.Parallel()
	looks := &atomic.Int64{}
	const resync = 100 * time.Millisecond
	e := envtest.Start(t, envtest.Config{Adjust: func(o *controller.Options) {
		o.Processes, o.Initial.Resync = counted{o.Processes, looks}, resync
	}})
	e.Run("a", "b")
	observedAt := func() time.Time { return e.WaitFor("a", envtest.Running).Status.Evidence.ObservedAt.Time }
	e.Eventually("nobody is looked at while three resyncs go by", func() bool {
		before, at := looks.Load(), observedAt()
		e.Eventually("three resyncs", func() bool { return observedAt().After(at.Add(3 * resync)) })
		return looks.Load() == before
	})
	before := looks.Load()
	e.Eventually("a whole pass of each now and then", func() bool { return looks.Load() >= before+2 })
	assert.Len(t, e.Launches("a"), 1)
}

// What a resync finds different ends the rest.
func TestAResyncFindsWhatChangedOfASessionAtRest(t *testing.T) {
	t.Parallel()
	e := envtest.Start(t, envtest.Config{})
	e.Run("a")
	e.Tmux("rename-session", "-t", "=a:", "renamed")
	e.Eventually("the status tells the tmux session's name", func() bool {
		return strings.Contains(e.WaitFor("a", envtest.Running).Status.Evidence.Message, "renamed")
	})
	e.WaitFor("a", envtest.Incarnation(1))
}

// A question may wait for days: while nothing changes, it costs no pass.
func TestASessionWhoseQuestionWaitsCostsNoPass(t *testing.T) {
	t.Parallel()
	looks := &atomic.Int64{}
	const resync = time.Second
	e := envtest.Start(t, envtest.Config{Adjust: func(o *controller.Options) {
		o.Processes, o.Initial.Resync = counted{o.Processes, looks}, resync
	}})
	e.Write("asker.yaml", `apiVersion: muxlet.dev/v1alpha1
kind: ClientClass
metadata: {name: asker}
spec:
  start: {command: [/bin/sh, -c, "echo 'Trust this folder?'; exec sleep 1000"]}
  ready: {pattern: "^> "}
  attention: [{pattern: "Trust this folder", reason: TrustRequired}]
`)
	s := &spec.Session{}
	s.Name, s.Spec.ClientClassName, s.Spec.Workspace.Directory = "a", "asker", e.Work
	s.Spec.Client.ShellMode = spec.ShellNone
	e.Apply(s)
	asked := envtest.Condition(spec.ConditionInputRequired, metav1.ConditionTrue, spec.ReasonTrustRequired)
	observedAt := func() time.Time { return e.WaitFor("a", asked).Status.Evidence.ObservedAt.Time }
	e.Eventually("nobody is looked at while three resyncs go by", func() bool {
		before, at := looks.Load(), observedAt()
		e.Eventually("three resyncs", func() bool { return observedAt().After(at.Add(3 * resync)) })
		return looks.Load() == before
	})
}

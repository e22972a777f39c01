// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"k8s.io/utils/clock"

	"github.com/muxlet/muxlet/controller"
	"github.com/muxlet/muxlet/controller/envtest"
	"github.com/muxlet/muxlet/observe/process"
	"github.com/muxlet/muxlet/spec"
)

// Where the system gives no notice of deaths they are polled for: everything is a
// little later, and nothing is different.
func TestSessionsAreKeptWithoutNoticesOfDeaths(t *testing.T) {
	t.Parallel()
	deaths := process.NewPollingWatcher(100*time.Millisecond, clock.RealClock{})
	defer func() { assert.NoError(t, deaths.Close()) }()
	e := envtest.Start(t, envtest.Config{Adjust: func(o *controller.Options) {
		o.Deaths, o.Initial.Resync = deaths, time.Hour
	}})
	// The controller ends before its watcher does.
	defer e.Drop()
	e.Run("a", "b")
	for n := range int64(3) {
		client := e.Client("a")
		e.Kill(client.Process)
		s := e.WaitFor("a", envtest.Incarnation(n+2))
		last := s.Status.Client.LastTermination
		assert.Equal(t, spec.ReasonKilled, last.Reason, "tmux tells how it ended")
		assert.Equal(t, "SIGKILL", last.Signal)
	}
	e.WaitFor("b", envtest.Incarnation(1))
	e.Delete("b")
	e.WaitNoSession("b")
	e.NoClient("b")
}

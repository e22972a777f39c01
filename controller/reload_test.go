// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/controller"
	"github.com/muxlet/muxlet/controller/envtest"
	"github.com/muxlet/muxlet/controller/plan"
	"github.com/muxlet/muxlet/spec"
)

func TestOtherSettingsAreInForceInTheNextPass(t *testing.T) {
	t.Parallel()
	var first controller.Settings
	e := envtest.Start(t, envtest.Config{
		Policy: plan.Policy{BackOffInitial: time.Hour, BackOffMax: time.Hour, BackOffReset: time.Hour},
		Adjust: func(o *controller.Options) {
			o.Initial.Resync = time.Hour
			first = o.Initial
		},
	})
	e.Run("a")
	e.Apply(e.Fake("crash", envtest.Script{Ends: true, Exit: 1}))
	e.WaitFor("crash", envtest.Shows(spec.StatusCrashLoopBackOff))
	client, launches := e.Client("a"), len(e.Launches("crash"))
	e.Always(stays, "it waits for an hour", func() bool { return len(e.Launches("crash")) == launches })

	second := first
	second.Policy = plan.Policy{BackOffInitial: 10 * time.Millisecond, BackOffMax: 20 * time.Millisecond, BackOffReset: time.Hour}
	more := filepath.Join(e.Dir, "more")
	require.NoError(t, os.Mkdir(more, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(more, "b.yaml"), []byte(e.Document(e.Fake("b", envtest.Script{}))), 0o600))
	second.Manifests = []string{e.Manifests, more}
	e.Controller().Reload(second)
	e.WaitFor("b", envtest.Running)
	e.Eventually("the back-off is a short one", func() bool { return len(e.Launches("crash")) > launches+2 })
	assert.Equal(t, []string{e.Manifests, more}, e.Controller().Status().Manifests)
	assert.Equal(t, client.Process, e.Client("a").Process)
	assert.Len(t, e.Launches("a"), 1)
}

// What is written all over the loop is read by one pass at a time: run with -race.
func TestSettingsMayBeReplacedAtAnyTime(t *testing.T) {
	t.Parallel()
	var settings controller.Settings
	e := envtest.Start(t, envtest.Config{Adjust: func(o *controller.Options) { settings = o.Initial }})
	e.Run("a", "b")
	a, b := e.Client("a"), e.Client("b")
	for n := range 100 {
		settings.MaxInFlight, settings.MassDeathMin = 1+n%3, 2+n
		settings.Resync = time.Duration(100+n) * time.Millisecond
		settings.Policy.UnknownGrace = time.Duration(n) * time.Millisecond
		e.Controller().Reload(settings)
		e.Controller().Status()
	}
	e.Kill(b.Process)
	e.WaitFor("b", envtest.Incarnation(2))
	assert.Equal(t, a.Process, e.Client("a").Process)
}

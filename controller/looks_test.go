// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/controller"
	"github.com/muxlet/muxlet/controller/envtest"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec"
)

// D2: the one look that a death gives a hint for goes wrong. The death is noticed
// with the next one, long before everything is looked at again.
func TestADeathWhoseLookGoesWrongIsNoticedSoon(t *testing.T) {
	t.Parallel()
	e := envtest.Start(t, envtest.Config{Meddled: true, Adjust: func(o *controller.Options) { o.Initial.Resync = time.Hour }})
	e.Run("a")
	once := filepath.Join(e.Dir, "once")
	e.Meddle(fmt.Sprintf(`case "$*" in *list-panes*) rm %s 2>/dev/null && { echo "fork failed: Resource temporarily unavailable" >&2; exit 1; };; esac`, once))
	require.NoError(t, os.WriteFile(once, nil, 0o600))
	e.Kill(e.Client("a").Process)
	e.WaitFor("a", envtest.Incarnation(2))
	assert.NoFileExists(t, once)
}

// A server that somebody else has started on our path is used, and gets our
// configuration: without it a pane would vanish together with its client, and
// the end of the client with the pane.
func TestAServerOfSomebodyElseOnOurPathIsConfigured(t *testing.T) {
	t.Parallel()
	e := envtest.Start(t, envtest.Config{})
	e.Run("a")
	e.Drop()
	e.KillServer()
	e.StartServer("new-session", "-d", "-s", "mine", "--", "sleep", "1000")
	e.Tmux("set-option", "-g", "remain-on-exit", "off")
	e.Boot()
	e.WaitFor("a", envtest.Incarnation(2))
	e.Eventually("the server carries our instance", func() bool {
		l, ok := e.Listing()
		return ok && l.Server.Instance != ""
	})
	done := e.Fake("done", envtest.Script{Ends: true, Lives: 100 * time.Millisecond})
	done.Spec.RestartPolicy = spec.RestartOnFailure
	e.Apply(done)
	e.WaitFor("done", envtest.Shows(spec.StatusCompleted))
	assert.Len(t, e.Starts("done"), 1)
	l, ok := e.Listing()
	require.True(t, ok)
	assert.Contains(t, l.Sessions, "mine")
	for _, p := range l.Panes {
		if p.SessionName == "mine" {
			assert.Equal(t, observe.Present, p.State)
		}
	}
}

// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/actuate"
	"github.com/muxlet/muxlet/controller"
	"github.com/muxlet/muxlet/controller/envtest"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec"
)

// statusRight is the right end of the status line as tmux would draw it, without styles.
func statusRight(e *envtest.Env) string {
	text := e.Tmux("display-message", "-p", "#{T:status-right}")
	var plain strings.Builder
	for _, part := range strings.Split(text, "#[") {
		if _, rest, styled := strings.Cut(part, "]"); styled {
			part = rest
		}
		plain.WriteString(part)
	}
	return plain.String()
}

// The status line tells how many sessions wait for a person and which one waits longest, on
// each server, and says so when nobody keeps that up to date any more.
func TestTheStatusLineTellsHowManySessionsWait(t *testing.T) {
	t.Parallel()
	e := envtest.Start(t, envtest.Config{Adjust: func(o *controller.Options) { o.ShowWaitingAfter = time.Millisecond }})
	e.Run("a", "b")
	assert.NotContains(t, statusRight(e), "waiting")
	shows := func(text string) {
		t.Helper()
		e.Eventually("the status line shows "+text, func() bool { return strings.Contains(statusRight(e), text) })
	}
	missing := func(name string) string { return filepath.Join(e.Dir, "missing-"+name) }
	for i, name := range []string{"m", "l"} {
		s := e.Fake(name, envtest.Script{})
		s.Spec.Workspace.Directory = missing(name)
		e.Apply(s)
		e.WaitFor(name, envtest.Shows(spec.StatusBlocked))
		shows([]string{" 1 waiting: m", " 2 waiting: m"}[i])
	}
	told := len(e.Actions(actuate.ActionShowWaiting))
	e.Always(5*envtest.Resync, "what does not change is not told again", func() bool { return len(e.Actions(actuate.ActionShowWaiting)) == told })

	e.Drop()
	shows("the muxlet daemon is not running")
	e.Boot()
	shows(" 2 waiting: ")
	// What a daemon that is killed leaves holds for a while only.
	until, err := strconv.ParseInt(strings.TrimSpace(e.Tmux("show-options", "-sv", observe.OptionWaitingUntil)), 10, 64)
	require.NoError(t, err)
	assert.WithinRange(t, time.Unix(until, 0), time.Now(), time.Now().Add(5*time.Minute))
	e.Tmux("set-option", "-s", observe.OptionWaitingUntil, strconv.FormatInt(time.Now().Unix()-1, 10))
	shows("the muxlet daemon is not running")
	e.Restart()
	shows(" 2 waiting: ")

	server := e.Server()
	e.Kill(server)
	e.WaitFor("a", envtest.Incarnation(2))
	shows(" 2 waiting: ")
	require.NoError(t, os.Mkdir(missing("m"), 0o700))
	e.WaitFor("m", envtest.Running)
	shows(" 1 waiting: l")
	require.NoError(t, e.Controller().Delete(t.Context(), "l"))
	e.WaitNoSession("l")
	e.Eventually("nobody waits", func() bool { return !strings.Contains(statusRight(e), "waiting") })
}

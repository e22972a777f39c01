// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/spec"
)

// slow declares a session whose start takes a while, and waits until it is under
// way.
func (w *World) slow(name string) {
	w.Helper()
	w.profile("touch ~/reached; sleep 3\n")
	w.interactive(name, "terminationGracePeriodSeconds: 1")
	w.waitFor("the profile runs", func() bool {
		return len(w.processes()) > 2 && exec.Command("test", "-e", w.home+"/reached").Run() == nil
	})
}

// never requires that the start that was given up does not come to its end.
func (w *World) never(name string) {
	w.Helper()
	w.holds("the client is never executed", 4*time.Second, func() bool { return len(w.startsOf(name)) == 0 })
	assert.Empty(w, w.family(name))
}

// N2.
func TestADeleteDuringAStartLeavesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	w.slow("s")
	w.does("delete", "s")
	w.never("s")
	text, err := w.tmux("list-sessions")
	assert.True(t, err != nil || text == "", "no pane is left: %s", text)
	assert.Equal(t, 3, w.muxlet("get", "s").code)
}

func TestASuspendDuringAStartEndsIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	w.slow("s")
	w.does("suspend", "s")
	assert.Equal(t, spec.StatusSuspended, w.status("s"))
	w.never("s")
	w.profile("")
	w.does("resume", "s")
	w.runsAs("s", 1)
}

func TestATerminateDuringAStartEndsIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	w.slow("s")
	w.does("terminate", "s")
	assert.Equal(t, spec.StatusTerminated, w.status("s"))
	w.never("s")
}

func TestADaemonThatIsKilledDuringAStartLetsItComeToItsEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	w.slow("s")
	finish := w.sample()
	w.kill()
	w.start()
	w.runsAs("s", 1)
	finish()
	w.nth("s", 1)
	assert.Zero(t, w.get("s").Status.ConsecutiveDeaths)
}

func TestWhatIsEditedWithoutADaemonIsDoneOnceByTheNext(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	for _, name := range []string{"edited", "removed", "same", "policy", "other"} {
		w.declare(name, "say old", "updateStrategy: {type: Recreate}")
	}
	before := map[string]int{}
	for _, name := range []string{"edited", "removed", "same", "policy", "other"} {
		before[name] = pid(w.runs(name))
	}
	w.kill()
	w.declare("edited", "say new", "updateStrategy: {type: Recreate}")
	w.declare("policy", "say old", "updateStrategy: {type: Recreate}", "restartPolicy: OnFailure")
	w.declare("added", "say new")
	requireRemoved(w, "removed.yaml")
	w.start()
	w.runsAs("edited", 2)
	w.runsAs("added", 1)
	w.gone("removed")
	assert.Empty(t, w.family("removed"))
	delete(before, "edited")
	delete(before, "removed")
	w.holds("nothing else is touched", 2*time.Second, func() bool { return w.same(before) })
	assert.Equal(t, "say new", w.nth("edited", 2).words)
}

func TestTwoDocumentsWithOneNameAreNamedAndTheRunningOneWins(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	w.declare("s", "say first")
	before := w.runs("s")
	w.write("z.yaml", w.document("s", "say second"))
	w.eventually([]string{"describe", "s"}, "DuplicateName", w.manifests+"/s.yaml:1", w.manifests+"/z.yaml:1")
	w.holds("the client stays", 2*time.Second, func() bool { return pid(w.get("s")) == pid(before) })
	w.does("terminate", "s")
	w.does("resume", "s")
	assert.Equal(t, "say first", w.nth("s", 2).words)
	requireRemoved(w, "z.yaml")
	w.eventually([]string{"describe", "s"}, "the document is valid")

	w.write("a.yaml", w.document("new", "stay")+"---\n"+w.document("new", "stay"))
	w.reaches("new", spec.StatusConflict)
	w.eventually([]string{"describe", "new"}, w.manifests+"/a.yaml:1", w.manifests+"/a.yaml:12")
	assert.Empty(t, w.startsOf("new"))
	w.write("a.yaml", w.document("new", "stay"))
	w.runs("new")
}

// V1.
func TestThePersonsOwnTmuxIsNeitherUsedNorTouched(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	own := func(args ...string) string {
		cmd := exec.Command("tmux", append([]string{"-f", "/dev/null"}, args...)...)
		cmd.Env = w.env
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, string(out))
		return strings.TrimSpace(string(out))
	}
	own("new-session", "-d", "-s", "s", "sleep 1000000")
	place := own("display-message", "-p", "-t", "=s:", "#{socket_path},#{pid},0")
	pane := own("display-message", "-p", "-t", "=s:", "#{pane_pid}")
	w.setenv("TMUX", place)
	w.setenv("TMUX_PANE", "%0")
	w.start()
	w.declare("s", "stay")
	w.runs("s")
	w.does("restart", "s")
	w.does("delete", "s")
	w.setenv("TMUX", "")
	assert.Equal(t, "s", own("list-sessions", "-F", "#{session_name}"))
	assert.Equal(t, pane, own("display-message", "-p", "-t", "=s:", "#{pane_pid}"))
}

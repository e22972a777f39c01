// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestAYAMLWrittenUnderARunningDaemonIsUpAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	began := time.Now()
	w.declare("first", "stay")
	s := w.runs("first")
	first := time.Since(began)
	assert.EqualValues(t, 1, s.Status.Client.Incarnation)
	began = time.Now()
	w.declare("second", "stay")
	w.runs("second")
	second := time.Since(began)
	t.Logf("Up after %s with a new tmux server, after %s with a running one", first, second)
	assert.Less(t, first, 5*time.Second)
	assert.Less(t, second, 5*time.Second)
	starts := w.startsOf("second")
	require.Len(t, starts, 1)
	assert.Equal(t, start{session: "second", incarnation: 1, pid: pid(w.get("second")), directory: w.home + "/work", words: "stay"}, starts[0])
	assert.Regexp(t, `(?m)^second +exec +Running +True +0 +- +\d+s$`, w.does("get"))
}

func TestSeveralDocumentsInOneFileAndInSubfoldersComeUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	require.NoError(t, unix.Mkdir(w.manifests+"/team", 0o755))
	w.write("two.yml", w.document("a", "stay")+"---\n"+w.document("b", "stay"))
	w.write("team/c.yaml", w.document("c", "stay"))
	w.write("team/.c.yaml.swp", "not a manifest")
	w.start()
	for _, name := range []string{"a", "b", "c"} {
		w.runs(name)
	}
	assert.Equal(t, "session.muxlet.dev/a\nsession.muxlet.dev/b\nsession.muxlet.dev/c\n", w.does("get", "-o", "name"))
}

func TestAChangedCommandReplacesTheClientOnceWithRecreate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	w.declare("s", "say old", "updateStrategy: {type: Recreate}")
	before := w.runs("s")
	w.declare("s", "say new", "updateStrategy: {type: Recreate}")
	after := w.runsAs("s", 2)
	assert.Equal(t, before.Status.Tmux.Pane, after.Status.Tmux.Pane, "in the same pane")
	w.holds("it is replaced once", 2*time.Second, func() bool { return len(w.startsOf("s")) <= 2 })
	assert.Equal(t, "say new", w.nth("s", 2).words)
	assert.Contains(t, w.events("s"), "Replacing incarnation 1: spec.client.command changed")
	assert.Equal(t, "Stopped", w.get("s").Status.Client.LastTermination.Reason)
	assert.Zero(t, w.get("s").Status.ConsecutiveDeaths, "a replacement is no death")
}

func TestAChangedCommandReplacesTheClientOnceWithWhenIdleAndNobodyAttached(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	w.declare("s", "say old")
	w.runs("s")
	w.declare("s", "say new")
	w.runsAs("s", 2)
	w.holds("it is replaced once", 2*time.Second, func() bool { return len(w.startsOf("s")) <= 2 })
	assert.Equal(t, "say new", w.nth("s", 2).words)
}

func TestAChangedCommandWaitsForTheAttachedPersonWithWhenIdle(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	w.declare("s", "say old")
	before := w.runs("s")
	terminal := w.open("attach", "s")
	terminal.shows("old")
	w.declare("s", "say new")
	w.eventually([]string{"describe", "s"}, "spec.client.command changed: waits until nobody is attached", "muxlet restart s")
	w.holds("the client stays while somebody is attached", 2*time.Second, func() bool { return pid(w.get("s")) == pid(before) })
	terminal.detach()
	w.runsAs("s", 2)
	assert.Equal(t, "say new", w.nth("s", 2).words)
}

func TestAChangedCommandWaitsForARestartWithOnRestart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	w.declare("s", "say old", "updateStrategy: {type: OnRestart}")
	before := w.runs("s")
	w.declare("s", "say new", "updateStrategy: {type: OnRestart}")
	w.eventually([]string{"describe", "s"}, "spec.client.command changed: waits for the next restart")
	w.holds("the client stays", 2*time.Second, func() bool { return pid(w.get("s")) == pid(before) })
	signal(t, pid(before), unix.SIGKILL)
	after := w.runsAs("s", 2)
	assert.Equal(t, "say new", w.nth("s", 2).words, "any restart takes the edit")
	assert.True(t, isTrue(after, "UpToDate"))
}

func TestAnEditOfAPolicyRestartsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	w.declare("s", "stay", "updateStrategy: {type: Recreate}")
	before := w.runs("s")
	w.declare("s", "stay", "updateStrategy: {type: Recreate}", "restartPolicy: Never", "recoveryPolicy: Dormant")
	w.becomes("s", "seen in its new generation", isGeneration(2))
	w.holds("the client stays", time.Second, func() bool { return pid(w.get("s")) == pid(before) })
}

func TestARemovedSessionLeavesNoProcess(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	w.declare("s", "child plain child group child session")
	w.declare("other", "stay")
	other := w.runs("other")
	w.runs("s")
	w.waitFor("the client has three children", func() bool { return len(w.family("s")) == 4 })
	requireRemoved(w, "s.yaml")
	w.gone("s")
	w.waitFor("no process is left", func() bool { return len(w.family("s")) == 0 })
	text, err := w.tmux("list-sessions", "-F", "#{session_name}")
	require.NoError(t, err, text)
	assert.Equal(t, "other", text)
	assert.Equal(t, pid(other), pid(w.runs("other")))
	assert.Contains(t, w.refuses(3, "get", "s"), "not found")
}

// K1.
func TestARemovedSessionThatIgnoresSignalsLeavesNoProcess(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	w.declare("other", "stay")
	w.declare("s", "ignore child plain child group child session", "terminationGracePeriodSeconds: 1")
	w.runs("s")
	w.waitFor("the client has three children", func() bool { return len(w.family("s")) == 4 })
	requireRemoved(w, "s.yaml")
	w.gone("s")
	assert.Empty(t, w.family("s"), "a session is gone when all its processes are")
}

func TestADocumentThatMovesToAnotherFileIsTheSameSession(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	w.declare("s", "stay")
	before := w.runs("s")
	require.NoError(t, unix.Rename(w.manifests+"/s.yaml", w.manifests+"/renamed.yaml"))
	w.eventually([]string{"describe", "s"}, "renamed.yaml:1")
	w.holds("the client stays", 2*time.Second, func() bool { return pid(w.get("s")) == pid(before) })
}

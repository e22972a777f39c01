// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/muxlet/muxlet/spec"
)

// commented is a document with what a person leaves in it.
func (w *World) commented(name string) string {
	return strings.Replace(w.document(name, "stay"), "spec:\n", "# why it is here\nspec:   # the spec\n\n", 1)
}

// changed are the lines in which two texts differ.
func changed(before, after string) (gone, added []string) {
	count := map[string]int{}
	for _, line := range strings.Split(before, "\n") {
		count[line]++
	}
	for _, line := range strings.Split(after, "\n") {
		if count[line]--; count[line] < 0 {
			added = append(added, strings.TrimSpace(line))
			count[line] = 0
		}
	}
	for line, n := range count {
		for range n {
			gone = append(gone, strings.TrimSpace(line))
		}
	}
	return gone, added
}

func TestSuspendAndResumeEditTheFileAsLittleAsPossible(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	text := w.commented("s") + "---\n" + w.commented("other")
	w.write("s.yaml", text)
	w.start()
	w.runs("s")
	other := w.runs("other")
	assert.Equal(t, "session/s suspended\n", w.does("suspend", "s"))
	assert.Empty(t, w.family("s"), "suspend returns when the client is gone")
	gone, added := changed(text, w.read("s.yaml"))
	assert.Empty(t, gone)
	assert.Equal(t, []string{"suspend: true"}, added)
	assert.Equal(t, spec.StatusSuspended, w.status("s"))
	assert.Contains(t, w.does("describe", "s"), "muxlet resume s")
	assert.Contains(t, w.does("suspend", "s"), "is suspended already")
	assert.Contains(t, w.refuses(4, "restart", "s"), "muxlet resume s")
	w.kill()
	w.start()
	w.reaches("s", spec.StatusSuspended)

	assert.Contains(t, w.does("resume", "s"), "session/s resumed (incarnation 2, pid ")
	w.runsAs("s", 2)
	gone, added = changed(text, w.read("s.yaml"))
	assert.Empty(t, gone)
	assert.Subset(t, []string{"suspend: false"}, added)
	assert.Contains(t, w.refuses(4, "resume", "s"), "runs")
	assert.Equal(t, pid(other), pid(w.get("other")))
}

func TestAnEditOfSuspendIsAsGoodAsTheVerb(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	w.declare("s", "stay", "suspend: true")
	w.reaches("s", spec.StatusSuspended)
	w.declare("s", "stay")
	w.runsAs("s", 1)
	w.declare("s", "stay", "suspend: true")
	w.reaches("s", spec.StatusSuspended)
	assert.Empty(t, w.family("s"))
}

func TestAReadOnlyManifestForbidsTheEdit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.mount(w.manifests)
	w.declare("s", "stay")
	require.NoError(t, unix.Mount("none", w.manifests, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""))
	w.start()
	s := w.runs("s")
	said := w.refuses(1, "suspend", "s")
	assert.Contains(t, said, w.manifests+"/s.yaml")
	assert.Equal(t, pid(s), pid(w.get("s")))
}

func TestRestartReplacesTheClientAndListsWhatItLeaves(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	w.declare("s", "child session")
	before := w.runs("s")
	w.waitFor("the client has a child", func() bool { return len(w.family("s")) == 2 })
	text := w.read("s.yaml")
	assert.Contains(t, w.does("restart", "s"), "session/s restarted (incarnation 2, pid ")
	after := w.runsAs("s", 2)
	assert.Equal(t, before.Status.Tmux.Pane, after.Status.Tmux.Pane)
	assert.NotEqual(t, pid(before), pid(after))
	require.Len(t, after.Status.Client.Survivors, 1)
	_, alive := ticksOf(after.Status.Client.Survivors[0])
	assert.True(t, alive)
	assert.Contains(t, w.does("describe", "s"), "processes that a restart left running")
	assert.Equal(t, text, w.read("s.yaml"), "no YAML is touched")
	assert.Zero(t, after.Status.ConsecutiveDeaths)
}

// N6.
func TestParallelRestartsLeaveOneClient(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	w.declare("s", "stay")
	w.runs("s")
	finish := w.sample()
	var restarts []*exec.Cmd
	for range 5 {
		restart := exec.Command(binary, "restart", "s")
		restart.Env = w.env
		require.NoError(t, restart.Start())
		restarts = append(restarts, restart)
	}
	for _, restart := range restarts {
		require.NoError(t, restart.Wait())
	}
	w.runs("s")
	finish()
	assert.Len(t, w.clients("s"), 1)
}

// A14 without turns, N1.
func TestATerminatedSessionStaysDownUntilItIsResumed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	w.declare("s", "child group")
	w.runs("s")
	text := w.read("s.yaml")
	assert.Equal(t, "session/s terminated\n", w.does("terminate", "s"))
	assert.Empty(t, w.family("s"), "terminate returns when everything is gone")
	assert.Equal(t, text, w.read("s.yaml"), "no YAML is touched")
	assert.Equal(t, spec.StatusTerminated, w.status("s"))
	assert.Contains(t, w.does("terminate", "s"), "is down already")
	for range 2 {
		w.kill()
		w.start()
		w.reaches("s", spec.StatusTerminated)
	}
	w.holds("it stays down", 2*time.Second, func() bool { return len(w.startsOf("s")) == 1 })
	assert.Contains(t, w.does("describe", "s"), "muxlet resume s")
	w.does("resume", "s")
	w.runsAs("s", 2)
	w.kill()
	w.start()
	assert.EqualValues(t, 2, w.runs("s").Status.Client.Incarnation)
}

func TestDeleteEditsTheFileAndNeitherWaitsNorAsks(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{"removal": settings{"settle": "1h"}})
	w.write("three.yaml", "# the first\n"+w.document("a", "child session")+"---\n# the second\n"+w.document("b", "stay")+"---\n"+w.document("c", "stay"))
	w.start()
	c := w.runs("c")
	for _, name := range []string{"a", "b"} {
		w.runs(name)
	}
	assert.Equal(t, "session/a deleted\nsession/b deleted\n", w.does("delete", "a", "b"))
	assert.Empty(t, append(w.family("a"), w.family("b")...))
	text := w.read("three.yaml")
	assert.NotContains(t, text, "name: a\n")
	assert.NotContains(t, text, "name: b\n")
	assert.Contains(t, text, "name: c\n")
	assert.Equal(t, pid(c), pid(w.runs("c")))
	assert.Equal(t, "session/c deleted\n", w.does("delete", "c"), "the last one too")
	assert.Empty(t, w.family("c"))
	assert.Equal(t, 3, w.muxlet("delete", "c").code)
	w.holds("nothing comes back", 2*time.Second, func() bool { return len(w.clients("a"))+len(w.clients("b"))+len(w.clients("c")) == 0 })
}

// C5.
func TestASessionIsDeletedThoughItsTmuxServerIsGone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{"backOff": settings{"initial": "1h", "max": "1h"}})
	w.start()
	w.declare("s", "exit 1")
	w.inBackOff("s", 2)
	signal(t, w.server().pid, unix.SIGKILL)
	w.does("delete", "s")
}

func TestADeletedSessionThatIsDeclaredAgainGoesOnWithItsNumbers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	w.declare("s", "stay")
	before := w.runs("s")
	w.does("delete", "s")
	w.declare("s", "stay")
	after := w.runs("s")
	assert.Equal(t, before.UID, after.UID)
	assert.EqualValues(t, 2, after.Status.Client.Incarnation)
}

func TestDeletionPolicyOrphanLeavesTheClientAndTakesItBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	w.declare("s", "stay", "deletionPolicy: Orphan")
	before := w.runs("s")
	w.does("delete", "s")
	_, alive := ticksOf(pid(before))
	assert.True(t, alive)
	assert.Contains(t, w.muxlet("get").errOut, "Unclaimed")
	w.declare("s", "stay", "deletionPolicy: Orphan")
	after := w.runs("s")
	assert.Equal(t, pid(before), pid(after))
	w.nth("s", 1)
}

func TestAttachShowsTheClientsScreen(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	w.write("s.yaml", document("s", `[sh, -c, 'echo hello there; exec cat']`, w.home+"/work"))
	w.runs("s")
	said := w.refuses(1, "attach", "s")
	assert.Contains(t, said, "not a terminal")
	assert.Contains(t, said, "muxlet logs s")
	terminal := w.open("attach", "s")
	terminal.shows("hello there")
	terminal.types("ping\r")
	w.eventually([]string{"logs", "s"}, "hello there", "ping\nping")
	w.becomes("s", "attached", func(s *spec.Session) bool { return s.Status.Tmux.Attached == 1 })
	terminal.detach()
	assert.Contains(t, w.does("logs", "s", "--tail", "3"), "ping")
	assert.Len(t, w.clients("s"), 1)
}

func TestAttachBringsUpWhatIsDown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	w.declare("s", "say welcome")
	w.runs("s")
	w.does("terminate", "s")
	terminal := w.open("attach", "s")
	terminal.shows("welcome")
	w.runsAs("s", 2)
	terminal.detach()
	w.does("suspend", "s")
	terminal = w.open("attach", "s")
	terminal.shows("muxlet resume s")
	<-terminal.over
	assert.Equal(t, 4, terminal.cmd.ProcessState.ExitCode())
}

func TestWhatIsNotFoundHasExitCodeThree(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	for _, verb := range []string{"get", "describe", "suspend", "resume", "restart", "terminate", "delete", "logs"} {
		assert.Contains(t, w.refuses(3, verb, "nobody"), `session "nobody" not found`, verb)
	}
	terminal := w.open("attach", "nobody")
	terminal.shows("not found")
	<-terminal.over
	assert.Equal(t, 3, terminal.cmd.ProcessState.ExitCode())
	for _, args := range [][]string{{"describe"}, {"nonsense"}, {"get", "--nonsense"}} {
		assert.Equal(t, 2, w.muxlet(args...).code, args)
	}
}

func TestSeveralNamesAreDoneAtOnceAndTheWorstCodeCounts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	w.several(2, "stay")
	a := w.muxlet("terminate", "s0", "nobody", "s1")
	assert.Equal(t, 3, a.code)
	assert.Equal(t, "session/s0 terminated\nsession/s1 terminated\n", a.out)
	assert.Contains(t, a.errOut, `"nobody" not found`)
}

func TestOnceConvergesAndExits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.declare("a", "stay")
	w.declare("b", "exit 0", "restartPolicy: Never")
	w.write("c.yaml", document("c", "[sleep, inf]", w.home+"/nowhere"))
	a := w.muxlet("daemon", "--once")
	assert.Equal(t, 0, a.code, a.text())
	assert.Len(t, w.clients("a"), 1)
	w.nth("b", 1)
	a = w.muxlet("daemon", "--once")
	assert.Equal(t, 0, a.code, a.text())
	w.nth("a", 1)
	require.NoError(t, os.Remove(w.manifests+"/a.yaml"))
	a = w.muxlet("daemon", "--once")
	assert.Equal(t, 0, a.code, a.text())
	assert.Empty(t, w.clients("a"), "a removal is waited for")
}

func TestGetPrintsWhatProgramsRead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	w.declare("s", "stay")
	s := w.runs("s")
	var one spec.Session
	require.NoError(t, json.Unmarshal([]byte(w.does("get", "s", "-o", "json")), &one))
	assert.Equal(t, pid(s), pid(&one))
	var list spec.SessionList
	require.NoError(t, json.Unmarshal([]byte(w.does("get", "-o", "json")), &list))
	require.Len(t, list.Items, 1)
	assert.Contains(t, w.does("get", "s", "-o", "yaml"), "restartPolicy: Always", "with its defaults")
	assert.Contains(t, w.does("get", "-o", "wide"), w.home+"/work")
}

func TestASecretIsInNoArgvNoTmuxOptionAndNoLog(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write(w.home+"/key", "hunter2\n")
	w.start()
	w.write("s.yaml", strings.Replace(w.document("s", "stay"), "    shellMode: None\n", `    shellMode: None
    env:
    - {name: API_KEY, valueFrom: {fileRef: {path: ~/key}}}
`, 1))
	w.runs("s")
	clients := w.clients("s")
	require.Len(t, clients, 1)
	require.Equal(t, "hunter2", clients[0].variable("API_KEY"))
	for _, p := range w.processes() {
		assert.NotContains(t, p.argv, "hunter2")
	}
	for _, args := range [][]string{{"show-environment", "-g"}, {"show-environment", "-t", "=s:"}, {"show-options", "-g"}, {"list-panes", "-a", "-F", "#{pane_start_command}"}} {
		text, err := w.tmux(args...)
		require.NoError(t, err, text)
		assert.NotContains(t, text, "hunter2")
	}
	assert.NotContains(t, w.log()+w.does("describe", "s")+w.does("get", "s", "-o", "yaml"), "hunter2")
}

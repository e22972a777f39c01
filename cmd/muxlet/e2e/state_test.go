// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/muxlet/muxlet/controller/server"
	"github.com/muxlet/muxlet/spec"
)

const (
	oldBoot = "0d3f4a52-6f6e-4b1f-9d0a-1f2e3d4c5b6a\n"
	newBoot = "7c1b2a39-8e8d-4c3f-8b0a-a1b2c3d4e5f6\n"
)

// rebootable is a world whose boot id is a file.
func rebootable(t *testing.T) (w *World, bootID string) {
	t.Helper()
	w = newWorld(t)
	bootID = w.dir + "/boot_id"
	w.configure(settings{"observation": settings{"unknownGracePeriod": "1s", "bootIDPath": bootID}})
	w.write(bootID, oldBoot)
	return w, bootID
}

var bootLine = regexp.MustCompile(`msg="Compared boot id" boot="?([a-z ]+?)"? adopted=(\d+) dormant=(\d+)`)

// bootLines waits for the line of the nth daemon and returns it.
func (w *World) bootLine(nth int) string {
	w.Helper()
	var lines [][]string
	w.waitFor(fmt.Sprintf("daemon %d logs the boot line", nth), func() bool {
		lines = bootLine.FindAllStringSubmatch(w.log(), -1)
		return len(lines) >= nth
	})
	return strings.Join(lines[nth-1][1:], " ")
}

func TestTheBootIDChangesOnlyTheLogLine(t *testing.T) {
	t.Parallel()
	w, bootID := rebootable(t)
	w.start()
	assert.Equal(t, "unknown 0 0", w.bootLine(1))
	w.declare("b", "stay", "recoveryPolicy: Dormant")
	before := w.several(2, "stay")
	before["b"] = pid(w.runs("b"))
	stored := filepath.Join(w.state, "boot_id")
	steps := []struct {
		what, word string
		do         func()
	}{
		{"the same", "daemon restarted", func() {}},
		{"another one", "host rebooted", func() { w.write(bootID, newBoot) }},
		{"that one again", "daemon restarted", func() {}},
		{"truncated", "unknown", func() { w.write(bootID, newBoot[:11]) }},
		{"empty", "unknown", func() { w.write(bootID, "") }},
		{"missing", "unknown", func() { require.NoError(t, os.Remove(bootID)) }},
		{"a directory", "unknown", func() { require.NoError(t, os.Mkdir(bootID, 0o700)) }},
		{"there again", "daemon restarted", func() {
			require.NoError(t, os.Remove(bootID))
			w.write(bootID, newBoot)
		}},
		{"truncated where it is stored", "unknown", func() { w.write(stored, newBoot[:11]) }},
		{"missing where it is stored", "unknown", func() { require.NoError(t, os.Remove(stored)) }},
		{"rolled back where it is stored", "host rebooted", func() { w.write(stored, oldBoot) }},
	}
	for i, step := range steps {
		w.kill()
		step.do()
		w.start()
		assert.Equal(t, step.word+" 3 0", w.bootLine(i+2), step.what)
		require.True(t, w.same(before), "the boot id is %s: same pids", step.what)
	}
	w.untouched(before)
}

// reboot ends everything of the world at once.
func (w *World) reboot() {
	w.Helper()
	w.kill()
	for _, p := range w.processes() {
		_ = unix.Kill(p.pid, unix.SIGKILL)
	}
	w.waitFor("nothing runs", func() bool { return len(w.processes()) == 0 })
	require.NoError(w, os.RemoveAll(w.runtime))
}

// A13, A1 without conversations.
func TestAfterARebootEachSessionFollowsItsRecoveryPolicy(t *testing.T) {
	t.Parallel()
	w, bootID := rebootable(t)
	w.start()
	w.declare("resume", "stay")
	w.declare("dormant", "stay", "recoveryPolicy: Dormant")
	w.declare("suspended", "stay", "suspend: true")
	w.declare("terminated", "stay")
	for _, name := range []string{"resume", "dormant", "terminated"} {
		w.runs(name)
	}
	w.does("terminate", "terminated")
	w.reboot()
	w.write(bootID, newBoot)
	w.start()
	w.runsAs("resume", 2)
	assert.Equal(t, "host rebooted 0 1", w.bootLine(2))
	w.reaches("dormant", spec.StatusDormant)
	w.reaches("suspended", spec.StatusSuspended)
	w.reaches("terminated", spec.StatusTerminated)
	told := w.does("describe", "dormant")
	assert.Contains(t, told, "recoveryPolicy is Dormant")
	assert.Contains(t, told, "muxlet resume dormant")
	assert.Regexp(t, `(?m)^dormant +exec +Dormant +False`, w.does("get"))
	w.kill()
	w.start()
	w.reaches("dormant", spec.StatusDormant)
	w.nth("dormant", 1)
	assert.Contains(t, w.does("resume", "dormant"), "session/dormant resumed (incarnation 2")
	w.runsAs("dormant", 2)
	signal(t, pid(w.get("dormant")), unix.SIGKILL)
	w.runsAs("dormant", 3)
}

func (w *World) copyState(from, to string) {
	w.Helper()
	out, err := exec.Command("cp", "-a", from, to).CombinedOutput()
	require.NoError(w, err, string(out))
}

// M4.
func TestARolledBackStateDirectoryAdoptsWhatRuns(t *testing.T) {
	t.Parallel()
	w, _ := rebootable(t)
	w.start()
	w.declare("old", "stay")
	w.declare("removed", "stay")
	w.declare("terminated", "stay")
	for _, name := range []string{"old", "removed", "terminated"} {
		w.runs(name)
	}
	w.kill()
	w.copyState(w.state, w.dir+"/backup")
	w.start()
	w.runs("old")
	for n := range int64(3) {
		signal(t, pid(w.get("old")), unix.SIGKILL)
		w.runsAs("old", n+2)
	}
	w.declare("young", "stay")
	w.runs("young")
	w.does("delete", "removed")
	before := map[string]int{"old": pid(w.get("old")), "young": pid(w.get("young")), "terminated": pid(w.get("terminated"))}
	w.kill()
	require.NoError(t, os.RemoveAll(w.state))
	w.copyState(w.dir+"/backup", w.state)
	finish := w.sample()
	w.start()
	assert.Equal(t, "daemon restarted 3 0", w.bootLine(3))
	require.True(t, w.same(before), "same pids")
	assert.EqualValues(t, 4, w.get("old").Status.Client.Incarnation)
	assert.EqualValues(t, 1, w.get("young").Status.Client.Incarnation)
	signal(t, before["old"], unix.SIGKILL)
	w.runsAs("old", 5)
	w.oneEach(before)
	finish()
	w.nth("old", 5)
	w.nth("young", 1)
	w.gone("removed")
	assert.Empty(t, w.family("removed"))
}

func TestADeletedStateDirectoryAdoptsWhatRuns(t *testing.T) {
	t.Parallel()
	for name, place := range map[string]func(w *World){
		"with a runtime directory elsewhere": func(*World) {},
		"with the runtime directory inside": func(w *World) {
			w.setenv("XDG_RUNTIME_DIR", "")
			w.runtime = w.state + "/run"
			w.api = server.NewClient(w.runtime + "/muxlet.sock")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, _ := rebootable(t)
			place(w)
			w.start()
			w.declare("s", "stay", "recoveryPolicy: Dormant")
			before := w.several(2, "ignore")
			signal(t, pid(w.runs("s")), unix.SIGKILL)
			before["s"] = pid(w.runsAs("s", 2))
			tmux := w.server().pid
			w.kill()
			require.NoError(t, os.RemoveAll(w.state))
			finish := w.sample()
			w.start()
			assert.Equal(t, "unknown 3 0", w.bootLine(2))
			require.True(t, w.same(before), "same pids")
			assert.Equal(t, tmux, w.server().pid)
			assert.EqualValues(t, 2, w.get("s").Status.Client.Incarnation)
			w.kill()
			w.start()
			assert.Equal(t, "daemon restarted 3 0", w.bootLine(3))
			require.True(t, w.same(before), "same pids")
			signal(t, before["s"], unix.SIGKILL)
			w.runsAs("s", 3)
			finish()
			w.oneEach(before)
			w.nth("s0", 1)
		})
	}
}

// I3.
func TestTwoDaemonsWithStateOfTheirOwnDoNotSeeEachOther(t *testing.T) {
	t.Parallel()
	one, two := newWorld(t), newWorld(t)
	one.start()
	two.start()
	one.declare("s", "stay")
	two.declare("s", "stay")
	first, second := one.runs("s"), two.runs("s")
	assert.NotEqual(t, pid(first), pid(second))
	one.does("delete", "s")
	assert.Empty(t, one.family("s"))
	assert.Equal(t, pid(second), pid(two.runs("s")))
}

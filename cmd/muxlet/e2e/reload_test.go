// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/muxlet/muxlet/controller/server"
	"github.com/muxlet/muxlet/spec"
)

func (w *World) settingsFile() string { return w.home + "/.config/muxlet/config.yaml" }

// setting is what the running daemon uses.
func (w *World) setting(name string) server.RunningSetting {
	w.Helper()
	running, err := w.api.Config(w.Context())
	require.NoError(w, err)
	for _, s := range running.Settings {
		if s.Name == name {
			return s
		}
	}
	require.Fail(w, "the daemon does not tell "+name)
	return server.RunningSetting{}
}

// uses waits until the running daemon uses a value.
func (w *World) uses(name, value string) {
	w.Helper()
	w.waitFor("the daemon uses "+name+" "+value, func() bool { return w.setting(name).Value == value })
}

func TestAnEditOfTheSettingsIsInForceWithoutARestart(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{"logging": settings{"verbosity": 0}, "backOff": settings{"initial": "1h", "max": "1h"}})
	more := w.dir + "/more"
	require.NoError(t, os.Mkdir(more, 0o755))
	w.start()
	before := w.several(2, "stay")
	w.declare("crash", "exit 1")
	w.waitFor("it waits for an hour", func() bool { return len(w.startsOf("crash")) == 2 && w.status("crash") == spec.StatusCrashLoopBackOff })
	assert.NotContains(t, w.log(), "msg=Decided")
	w.write(more+"/new.yaml", w.document("new", "stay"))

	w.configure(settings{"manifests": []string{w.manifests, more}, "starts": settings{"maxInFlight": 7}})
	w.runs("new")
	w.waitFor("the back-off is a short one by now", func() bool { return len(w.startsOf("crash")) > 3 })
	w.waitFor("decisions are logged by now", func() bool { return strings.Contains(w.log(), "msg=Decided") })
	w.uses("starts.maxInFlight", "7")
	line := w.line("Reloaded settings")
	for _, name := range []string{"manifests", "backOff.initial", "backOff.max", "starts.maxInFlight", "logging.verbosity"} {
		assert.Contains(t, line, name)
	}
	assert.NotContains(t, line, "resyncPeriod", "what is as before is not named")
	assert.Contains(t, w.does("events"), spec.ReasonSettingsReloaded)
	w.untouched(before)
	assert.NotContains(t, w.does("config", "view"), "running daemon")
}

// line waits for a line of the log and returns the last one.
func (w *World) line(words string) (found string) {
	w.Helper()
	w.waitFor("the log says "+words, func() bool {
		for line := range strings.Lines(w.log()) {
			if strings.Contains(line, words) {
				found = line
			}
		}
		return found != ""
	})
	return found
}

func TestAHangUpReadsTheSettingsAgainAndChangesNothingElse(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	before := w.several(2, "stay")
	daemon := w.daemon.cmd.Process.Pid
	signal(t, daemon, unix.SIGHUP)
	assert.Contains(t, w.line("Reloaded settings"), "changed=[]")
	w.configure(settings{"starts": settings{"maxInFlight": 9}})
	signal(t, daemon, unix.SIGHUP)
	w.uses("starts.maxInFlight", "9")
	w.untouched(before)
	assert.True(t, w.same(before))
	w.stop()
}

func TestInvalidSettingsKeepTheOldOnesUntilTheyAreMended(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{"starts": settings{"maxInFlight": 3}})
	w.start()
	before := w.several(1, "stay")
	good := w.read(w.settingsFile())
	w.write(w.settingsFile(), good+"massDeth:\n  percent: 40\n")
	w.waitFor("the problem is told", func() bool { return len(w.problems("")) == 1 })
	problem := w.problems("")[0]
	assert.Regexp(t, `config\.yaml:\d+:1: massDeth: .*did you mean "massDeath"`, problem)
	assert.Contains(t, w.line("Settings cannot be used"), "massDeth")
	events, err := w.api.Events(t.Context(), "")
	require.NoError(t, err)
	var told []string
	for _, e := range events.Items {
		if e.Reason == spec.ReasonSettingsInvalid {
			told = append(told, e.Message)
		}
	}
	require.Len(t, told, 1)
	assert.Contains(t, told[0], problem)
	w.holds("the old settings are in force", 3*time.Second, func() bool { return w.setting("starts.maxInFlight").Value == "3" })
	assert.Equal(t, 1, strings.Count(w.log(), "Settings cannot be used"), "it is told once")
	w.refuses(1, "config", "view")
	signal(t, before["s0"], unix.SIGKILL)
	w.waitFor("sessions go on", func() bool { return len(w.startsOf("s0")) == 2 })

	w.write(w.settingsFile(), strings.Replace(good, "maxInFlight: 3", "maxInFlight: 5", 1))
	w.uses("starts.maxInFlight", "5")
	assert.Empty(t, w.problems(""))
}

// What an older muxlet must not misread is refused with both versions named.
func TestSettingsOfANewerVersionAreRefusedAndNamed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	before := w.several(1, "stay")
	good := w.read(w.settingsFile())
	w.write(w.settingsFile(), strings.Replace(good, "config.muxlet.dev/v1alpha1", "config.muxlet.dev/v2", 1))
	w.waitFor("the problem is told", func() bool { return len(w.problems("")) == 1 })
	assert.Regexp(t, `config\.yaml:\d+:\d+: apiVersion: .*config\.muxlet\.dev/v2.*config\.muxlet\.dev/v1alpha1`, w.problems("")[0])
	w.kill()
	w.daemon.expected = true
	d := w.spawn()
	d.expected = true
	<-d.over
	assert.Equal(t, 1, d.cmd.ProcessState.ExitCode(), "a daemon does not start with it")
	w.write(w.settingsFile(), good)
	w.start()
	w.runs("s0")
	w.untouched(before)
}

func TestSettingsAreFoundAgainHoweverTheFileIsReplaced(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{"resyncPeriod": "1h"})
	require.NoError(t, os.Remove(w.settingsFile()))
	w.start()
	before := w.several(1, "stay")
	text := func(n string) string {
		return "apiVersion: config.muxlet.dev/v1alpha1\nkind: MuxletConfiguration\nresyncPeriod: 1h\nstarts: {maxInFlight: " + n + "}\n"
	}
	w.uses("starts.maxInFlight", "4")
	w.write(w.settingsFile(), text("11"))
	w.uses("starts.maxInFlight", "11")

	require.NoError(t, os.WriteFile(w.settingsFile(), []byte(text("12")), 0o644), "in place")
	w.uses("starts.maxInFlight", "12")

	// As a ConfigMap is mounted.
	mounted := w.home + "/.config/muxlet"
	for _, edition := range []string{"13", "14"} {
		dir := filepath.Join(mounted, "..edition"+edition)
		require.NoError(t, os.Mkdir(dir, 0o755))
		require.NoError(t, os.WriteFile(dir+"/config.yaml", []byte(text(edition)), 0o644))
		require.NoError(t, os.Symlink("..edition"+edition, mounted+"/..tmp"))
		require.NoError(t, os.Rename(mounted+"/..tmp", mounted+"/..data"))
		if edition == "13" {
			require.NoError(t, os.Symlink("..data/config.yaml", mounted+"/.link"))
			require.NoError(t, os.Rename(mounted+"/.link", w.settingsFile()))
		}
		w.uses("starts.maxInFlight", edition)
	}

	require.NoError(t, os.Remove(w.settingsFile()))
	w.waitFor("that it is gone is told", func() bool { return len(w.problems("")) == 1 })
	assert.Contains(t, w.problems("")[0], "put it back")
	assert.Equal(t, "14", w.setting("starts.maxInFlight").Value, "a file that is not seen changes nothing")
	w.write(w.settingsFile(), text("15"))
	w.uses("starts.maxInFlight", "15")
	assert.Empty(t, w.problems(""))
	w.untouched(before)
}

func TestWhatNeedsARestartIsMarkedUntilThatWasMade(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	w.several(1, "stay")
	elsewhere := w.dir + "/elsewhere"
	w.configure(settings{
		"stateDir": elsewhere, "runtimeDir": w.runtime, "logging": settings{"format": "json", "verbosity": 1},
		"tmux": settings{"timeout": "2s", "command": "/usr/bin/tmux"}, "observation": settings{"bootIDPath": w.dir + "/boot"},
	})
	w.uses("tmux.timeout", "2s")
	assert.Equal(t, w.state, w.setting("stateDir").Value)
	view := w.does("config", "view")
	for _, marked := range []string{
		"stateDir: " + elsewhere + " # file; the running daemon uses " + w.state + ": restart it to change this, the records are there",
		"command: /usr/bin/tmux # file; the running daemon uses tmux: restart it",
		"format: json # file; the running daemon uses text: restart it",
		"bootIDPath: " + w.dir + "/boot # file; the running daemon uses /proc/sys/kernel/random/boot_id: restart it",
	} {
		assert.Contains(t, view, marked)
	}
	assert.Equal(t, 4, strings.Count(view, "the running daemon"), view)
	assert.Contains(t, w.line("Reloaded settings"), "needRestart=\"[stateDir tmux.command observation.bootIDPath logging.format]\"")
	assert.NoDirExists(t, elsewhere)

	w.stop()
	assert.NotContains(t, w.does("config", "view"), "the running daemon", "without a daemon nothing is said about it")
	w.start()
	assert.NotContains(t, w.does("config", "view"), "the running daemon")
	assert.Equal(t, elsewhere, w.setting("stateDir").Value)
}

func TestFlagsAndVariablesWinOverTheFileAfterAReloadToo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	other := w.dir + "/other"
	require.NoError(t, os.Mkdir(other, 0o755))
	w.setenv("MUXLET_MANIFESTS", w.manifests)
	w.spawn("-v", "2")
	w.waitFor("the daemon answers", func() bool { return w.api.Healthy(t.Context()) == nil })
	before := w.several(1, "stay")
	w.write(other+"/not.yaml", w.document("not", "stay"))
	w.configure(settings{"manifests": []string{other}, "logging": settings{"verbosity": 0}, "starts": settings{"maxInFlight": 2}})
	w.uses("starts.maxInFlight", "2")
	assert.Equal(t, server.RunningSetting{Name: "manifests", Value: w.manifests, Origin: "environment"}, w.setting("manifests"))
	assert.Equal(t, server.RunningSetting{Name: "logging.verbosity", Value: "2", Origin: "flag"}, w.setting("logging.verbosity"))
	w.holds("the sessions of the file's directory are not there", time.Second, func() bool { return len(w.startsOf("not")) == 0 })
	w.untouched(before)
	w.setenv("MUXLET_MANIFESTS", "")
	view := w.does("config", "view")
	assert.Contains(t, view, "- "+other+" # file; the running daemon uses "+w.manifests+": its environment says so")
	assert.Contains(t, view, "verbosity: 0 # file; the running daemon uses 2: it was started with that flag")
}

// Invariant 7: a directory that is taken out of the settings is not seen any more,
// which proves nothing about its sessions.
func TestADirectoryThatIsTakenOutOfTheSettingsIsHeldUntilAPersonConfirms(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	more := w.dir + "/more"
	require.NoError(t, os.Mkdir(more, 0o755))
	both := settings{"manifests": []string{w.manifests, more}}
	w.configure(both)
	w.start()
	before := w.several(1, "stay")
	w.write(more+"/guest.yaml", w.document("guest", "stay"))
	guest := pid(w.runs("guest"))
	w.configure(settings{"manifests": []string{w.manifests}})
	w.eventually([]string{"get"}, "Held: guest", "muxlet prune --confirm", more)
	w.holds("it goes on", time.Second, func() bool { _, alive := ticksOf(guest); return alive })
	w.configure(both)
	w.waitFor("nothing is held", func() bool { return !strings.Contains(w.does("get"), "Held") })
	assert.Equal(t, guest, pid(w.runs("guest")))

	w.configure(settings{"manifests": []string{w.manifests}})
	w.eventually([]string{"get"}, "Held: guest")
	w.does("prune", "--confirm")
	w.gone("guest")
	w.waitFor("its client has ended", func() bool { _, alive := ticksOf(guest); return !alive })
	w.untouched(before)
}

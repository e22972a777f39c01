// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// healthyProfile keeps the PATH of the world, whatever the machine's own profile does.
func (w *World) healthyProfile() {
	w.Helper()
	for _, v := range w.env {
		if path, ok := strings.CutPrefix(v, "PATH="); ok {
			w.write(filepath.Join(w.home, ".profile"), "export PATH="+path+"\n")
			w.write(filepath.Join(w.home, ".bash_profile"), "export PATH="+path+"\n")
		}
	}
}

func TestTheDoctorFindsNothingWrongInAHealthyWorld(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.healthyProfile()
	w.declare("shop", "")
	w.start()
	w.runs("shop")
	before := w.get("shop")

	seen := w.muxlet("doctor")
	assert.Equal(t, 0, seen.code, seen.text())
	assert.Contains(t, seen.out, "0 errors")
	assert.Contains(t, seen.out, "muxlet.sock is listened on.")
	assert.Contains(t, seen.out, "is tmux 3.")
	// Of the other worlds that run meanwhile it may find what it likes.
	assert.NotRegexp(t, "(Warning|Error) .*"+regexp.QuoteMeta(w.dir), seen.out)
	assert.NotContains(t, seen.out, "Error ")

	var asJSON struct {
		Findings []struct{ Level, Area, Message, Fix string }
	}
	require.NoError(t, json.Unmarshal([]byte(w.muxlet("doctor", "-o", "json").out), &asJSON))
	assert.Greater(t, len(asJSON.Findings), 8)
	assert.Equal(t, before.Status.Client.Pid, w.get("shop").Status.Client.Pid, "looking changes nothing")
}

func TestTheDoctorNamesWhatIsWrongAndHowToMendIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.healthyProfile()
	secret := filepath.Join(w.home, "key")
	w.write(secret, "A=b\n")
	require.NoError(t, os.Chmod(secret, 0o644))
	w.write("all.yaml", "apiVersion: muxlet.dev/v1alpha1\nkind: Session\nmetadata: {name: shop}\nspec:\n  workspace: {directory: "+w.home+"}\n"+
		"  client: {command: [no-such-program], envFrom: [{fileRef: {path: "+secret+"}}]}\n---\n"+
		"apiVersion: muxlet.dev/v1alpha1\nkind: Session\nmetadata: {name: other}\nspec:\n  workspace: {directory: "+w.home+"}\n"+
		"  client: {command: [sleep, 1d], envFrom: [{fileRef: {path: "+w.home+"/gone}}]}\n")
	w.start()
	require.NoError(t, os.Chmod(w.state, 0o755))

	// A server whose daemon is gone.
	lost := filepath.Join(w.dir, "lost")
	require.NoError(t, os.MkdirAll(lost, 0o700))
	w.write(filepath.Join(lost, "tmux.conf"), "set -g exit-empty off\n")
	server := exec.Command("tmux", "-u", "-S", filepath.Join(lost, "tmux.sock"), "-f", filepath.Join(lost, "tmux.conf"), "new-session", "-d", "sleep", "1d")
	server.Env = w.env
	out, err := server.CombinedOutput()
	require.NoError(t, err, string(out))

	seen := w.muxlet("doctor")
	assert.Equal(t, 1, seen.code)
	for _, words := range []string{
		"Error    no-such-program, which shop needs, is not found in the PATH that shellMode Interactive gives: ",
		"What to do: Install no-such-program, or give its path.",
		"Warning  " + secret + ", from which session shop gets its environment, can be read by others (mode 0644).",
		"What to do: chmod 600 " + secret,
		"Error    " + w.home + "/gone, which session other reads, cannot be read: no such file or directory.",
		"Warning  " + w.state + " is open to others (mode 0755).",
		lost + "/tmux.sock) has no daemon.",
	} {
		assert.Contains(t, seen.out, words)
	}
}

// What mends a thing is said of that thing.
func TestTheDoctorSaysWhatMendsAProgramThatIsNotThereAndAFileOfTmux(t *testing.T) {
	t.Parallel()
	none := newWorld(t, settings{"tmux": settings{"command": "/nonexistent/tmux"}})
	seen := none.muxlet("doctor")
	assert.Contains(t, seen.out, "Error    the tmux program /nonexistent/tmux cannot be executed: no such file or directory.\n"+
		"           What to do: install tmux 3.2 or newer, or name it by tmux.command in the settings.\n")

	file := filepath.Join(none.dir, "keys.conf")
	none.write(file, "set -g @x 1\nno-such-command\n")
	w := newWorld(t, settings{"tmux": settings{"include": file}})
	w.start()
	w.waitFor("the doctor names the line", func() bool {
		return strings.Contains(w.muxlet("doctor").out, "Warning  "+file+":2: unknown command: no-such-command.\n"+
			"           What to do: mend that line; the daemon tries the file again when it has changed.\n")
	})
}

// Without a daemon, with settings that cannot be read, and with a profile that hangs.
func TestTheDoctorNeedsNoDaemonAndNoSettings(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.healthyProfile()
	seen := w.muxlet("doctor")
	assert.Equal(t, 0, seen.code, seen.text())
	assert.Contains(t, seen.out, "Warning  no daemon answers on ")

	w.write(w.home+"/.config/muxlet/config.yaml", "apiVersion: config.muxlet.dev/v1alpha1\nkind: MuxletConfiguration\nbackoff: {}\n")
	seen = w.muxlet("doctor")
	assert.Equal(t, 1, seen.code)
	assert.Contains(t, seen.out, "config.yaml:3:1: backoff: unknown field (did you mean \"backOff\"?)")
	assert.Contains(t, seen.out, "gives PATH", "it goes on to look")
}

// A daemon that hangs must not make the doctor hang.
func TestTheDoctorAnswersWhileTmuxIsFrozen(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.healthyProfile()
	w.declare("shop", "")
	w.start()
	w.runs("shop")
	server := w.server()
	signal(t, server.pid, unix.SIGSTOP)
	defer func() { signal(t, server.pid, unix.SIGCONT) }()
	w.waitFor("the doctor says that tmux is mute", func() bool {
		seen := w.muxlet("doctor")
		return seen.code == 1 && strings.Contains(seen.out, "Error    tmux could not be asked")
	})
}

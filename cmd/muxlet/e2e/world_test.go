// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
	"sigs.k8s.io/yaml"

	"github.com/muxlet/muxlet/controller/server"
)

// patience is how long a thing that must happen may take on a busy machine.
var patience = 30 * time.Second

// tick is the time between two looks at what is waited for.
const tick = 10 * time.Millisecond

// World is one account with its home, its files, one daemon and one tmux server.
type World struct {
	*testing.T
	// dir has everything; its path is in the environment or the command line of
	// every process of the world.
	dir, home, manifests, state, runtime string
	env                                  []string
	// through is the command that the daemon is started by, in its own process;
	// empty for none.
	through []string
	// inherited are handed to the daemon as its descriptors 3 and up.
	inherited []*os.File
	api       *server.Client
	daemon    *daemon
}

// daemon is one run of `muxlet daemon`.
type daemon struct {
	cmd *exec.Cmd
	// over is closed when it has ended.
	over chan struct{}
	// expected is true once the test has ended it.
	expected bool
}

// settings are laid over those of every world, by their first name.
type settings map[string]any

// section of the settings that is there.
func (s settings) section(name string) settings {
	section, ok := s[name].(settings)
	if !ok {
		panic("there is no section " + name)
	}
	return section
}

// newWorld makes a world without a daemon. The periods are short, so that tests
// are.
func newWorld(t *testing.T, given ...settings) *World {
	t.Helper()
	dir, err := os.MkdirTemp("", "mx")
	require.NoError(t, err)
	w := &World{
		T: t, dir: dir, home: filepath.Join(dir, "home"),
		manifests: filepath.Join(dir, "home/.config/muxlet/sessions"),
		state:     filepath.Join(dir, "home/.local/state/muxlet"),
		runtime:   filepath.Join(dir, "run/muxlet"),
	}
	for _, d := range []string{w.manifests, filepath.Join(dir, "bin"), w.home + "/work", dir + "/run", dir + "/tmux"} {
		require.NoError(t, os.MkdirAll(d, 0o755))
	}
	require.NoError(t, os.Chmod(dir+"/run", 0o700))
	w.env = []string{
		"HOME=" + w.home, "PATH=" + dir + "/bin:" + os.Getenv("PATH"), "XDG_RUNTIME_DIR=" + dir + "/run", "DBUS_SESSION_BUS_ADDRESS=unix:path=" + dir + "/no-bus",
		"TMUX_TMPDIR=" + dir + "/tmux", "LANG=C.UTF-8", "TERM=xterm-256color",
	}
	w.api = server.NewClient(w.runtime + "/muxlet.sock")
	w.configure(given...)
	w.write(dir+"/bin/fake", strings.ReplaceAll(fakeClient, "@STARTS@", w.starts()))
	require.NoError(t, os.Chmod(dir+"/bin/fake", 0o755))
	t.Cleanup(w.close)
	return w
}

// configure writes the settings file.
func (w *World) configure(given ...settings) {
	w.Helper()
	all := settings{
		"apiVersion": "config.muxlet.dev/v1alpha1", "kind": "MuxletConfiguration",
		"resyncPeriod": "1s", "tmux": settings{"timeout": "1s"}, "removal": settings{"settle": "500ms"},
		"backOff": settings{"initial": "20ms", "max": "200ms"}, "observation": settings{"unknownGracePeriod": "1s"},
		"logging": settings{"verbosity": 1},
	}
	for _, s := range given {
		maps.Copy(all, s)
	}
	data, err := yaml.Marshal(all)
	require.NoError(w, err)
	w.write(w.home+"/.config/muxlet/config.yaml", string(data))
}

// setenv changes the environment of whatever is started from now on; an empty
// value removes the variable.
func (w *World) setenv(name, value string) {
	var env []string
	for _, v := range w.env {
		if !strings.HasPrefix(v, name+"=") {
			env = append(env, v)
		}
	}
	if value != "" {
		env = append(env, name+"="+value)
	}
	w.env = env
}

// write replaces a file in one step, as editors and git do.
func (w *World) write(path, content string) {
	w.Helper()
	if !filepath.IsAbs(path) {
		path = filepath.Join(w.manifests, path)
	}
	temporary := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".tmp")
	require.NoError(w, os.WriteFile(temporary, []byte(content), 0o644))
	require.NoError(w, os.Rename(temporary, path))
}

func (w *World) read(path string) string {
	w.Helper()
	if !filepath.IsAbs(path) {
		path = filepath.Join(w.manifests, path)
	}
	data, err := os.ReadFile(path)
	require.NoError(w, err)
	return string(data)
}

// remove a directory in one step: a daemon that runs makes it anew at once.
func (w *World) remove(directory string) {
	w.Helper()
	require.NoError(w, os.Rename(directory, w.dir+"/removed"))
	require.NoError(w, os.RemoveAll(w.dir+"/removed"))
}

func (w *World) logFile() string { return filepath.Join(w.dir, "daemon.log") }

// log is what all daemons of the world have logged so far.
func (w *World) log() string {
	data, err := os.ReadFile(w.logFile())
	require.NoError(w, err)
	return string(data)
}

// spawn starts a daemon and does not wait for it.
func (w *World) spawn(args ...string) *daemon {
	w.Helper()
	out, err := os.OpenFile(w.logFile(), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	require.NoError(w, err)
	defer func() { _ = out.Close() }()
	argv := slices.Concat(w.through, []string{binary, "daemon"}, args)
	d := &daemon{cmd: exec.Command(argv[0], argv[1:]...), over: make(chan struct{})}
	d.cmd.Env, d.cmd.Dir, d.cmd.Stdout, d.cmd.Stderr = w.env, w.home, out, out
	d.cmd.ExtraFiles = w.inherited
	require.NoError(w, d.cmd.Start())
	go func() {
		_ = d.cmd.Wait()
		close(d.over)
	}()
	w.daemon = d
	return d
}

// start starts the daemon and waits until it answers.
func (w *World) start() {
	w.Helper()
	d := w.spawn()
	w.waitFor("the daemon answers", func() bool {
		select {
		case <-d.over:
			require.Fail(w, "the daemon has ended", w.log())
		default:
		}
		return w.api.Healthy(w.Context()) == nil
	})
}

// answersAnew waits until the daemon can be reached by somebody who connects now.
func (w *World) answersAnew() {
	w.Helper()
	w.waitFor("the daemon answers on its socket", func() bool {
		w.api.Close()
		_, err := os.Stat(w.runtime + "/muxlet.sock")
		return err == nil && w.api.Healthy(w.Context()) == nil
	})
}

// end sends a signal to the daemon and waits until it is over.
func (w *World) end(sig syscall.Signal) {
	w.Helper()
	w.daemon.expected = true
	require.NoError(w, w.daemon.cmd.Process.Signal(sig))
	w.waitFor("the daemon is over", func() bool {
		select {
		case <-w.daemon.over:
			return true
		default:
			return false
		}
	})
	w.api.Close()
}

// kill ends the daemon without giving it a chance.
func (w *World) kill() { w.Helper(); w.end(syscall.SIGKILL) }

// stop ends the daemon as a service manager does.
func (w *World) stop() {
	w.Helper()
	w.end(syscall.SIGTERM)
	assert.Equal(w, 0, w.daemon.cmd.ProcessState.ExitCode(), "the daemon stops with exit code 0")
}

// waitFor polls until the condition holds.
func (w *World) waitFor(what string, condition func() bool) {
	w.Helper()
	waitFor(w.T, what, patience, condition)
}

func waitFor(t *testing.T, what string, limit time.Duration, condition func() bool) {
	t.Helper()
	end := time.Now().Add(limit)
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for !condition() {
		if time.Now().After(end) {
			require.FailNow(t, "This did not happen within "+limit.String()+": "+what)
		}
		<-ticker.C
	}
}

// holds polls for a while and requires that the condition holds all the time.
func (w *World) holds(what string, during time.Duration, condition func() bool) {
	w.Helper()
	end := time.Now().Add(during)
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for time.Now().Before(end) {
		require.True(w, condition(), "This must hold all the time: %s", what)
		<-ticker.C
	}
}

// close ends everything in the world and checks that nothing is left.
func (w *World) close() {
	if w.daemon != nil {
		select {
		case <-w.daemon.over:
			assert.True(w, w.daemon.expected, "the daemon ended by itself")
		default:
			_ = w.daemon.cmd.Process.Kill()
			<-w.daemon.over
		}
		text := w.log()
		assert.NotContains(w, text, "panic:")
		assert.NotContains(w, text, "DATA RACE")
	}
	if w.Failed() {
		w.tell()
	}
	w.api.Close()
	left := w.processes()
	for end := time.Now().Add(10 * time.Second); len(left) > 0 && time.Now().Before(end); left = w.processes() {
		for _, p := range left {
			_ = unix.Kill(p.pid, unix.SIGKILL)
		}
		<-time.After(tick)
	}
	assert.Empty(w, left, "processes are left")
	assert.NoError(w, os.RemoveAll(w.dir))
}

// tell shows the end of the daemon's log and what runs, for a test that failed.
func (w *World) tell() {
	w.Logf("The daemon's log:\n%s", lastLines(w.tail(), 80))
	for _, p := range w.processes() {
		waitsIn, _ := os.ReadFile(fmt.Sprintf("/proc/%d/wchan", p.pid))
		w.Logf("pid %d, waits in %s: %s", p.pid, waitsIn, p.argv)
	}
	w.Logf("Starts:\n%s", lastLines(w.startLines(), 20))
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

func (w *World) tail() string {
	data, err := os.ReadFile(w.logFile())
	if err != nil {
		return err.Error()
	}
	return string(data)
}

// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/muxlet/muxlet/controller/server"
	"github.com/muxlet/muxlet/spec"
	"github.com/muxlet/muxlet/spec/durable"
)

// The way to another machine, or back from a loss: what was said goes on.
func TestAfterAnImportTheConversationsGoOn(t *testing.T) {
	t.Parallel()
	eachAgent(t, func(t *testing.T, a agent) {
		w := newAgentWorld(t, a)
		w.start()
		w.employ("s")
		w.employ("rests")
		w.ready("s")
		w.ready("rests")
		w.sends("s", "alpha", 1, "alpha")
		before := w.kept("s", 1)
		id := conversation(before)
		w.does("terminate", "rests")
		file := filepath.Join(w.dir, "x.tar.gz")
		w.does("state", "export", file)
		w.everythingIsIn(file)

		w.kill()
		for _, p := range w.processes() {
			if !strings.Contains(p.argv, "mockmodel") {
				_ = unix.Kill(p.pid, unix.SIGKILL)
			}
		}
		w.waitFor("everything is gone", func() bool { return len(w.processes()) == w.standing() })
		require.NoError(t, os.RemoveAll(w.state))
		require.NoError(t, os.RemoveAll(w.runtime))
		w.does("state", "import", file, "--dry-run")
		assert.NoDirExists(t, w.state)
		assert.Contains(t, w.does("state", "import", file), "imported: 2 sessions")
		w.start()
		after := w.back(before)
		w.resumed(after, id)
		assert.Equal(t, before.UID, after.UID)
		w.turn("s", "omega", 2, "alpha")
		w.reaches("rests", spec.StatusTerminated)
		assert.Contains(t, w.does("get", "turns"), "s-1 ", "turns are known")
	})
}

// A kind of file that nobody has named for the export would be lost by it.
func (w *World) everythingIsIn(file string) {
	w.Helper()
	list, err := exec.Command("tar", "-tzf", file).Output()
	require.NoError(w, err)
	names := strings.Split(strings.TrimSpace(string(list)), "\n")
	require.NoError(w, filepath.WalkDir(w.state, func(path string, d fs.DirEntry, err error) error {
		name, _ := filepath.Rel(w.state, path)
		switch {
		case err != nil || d.IsDir() && name == "run":
			return filepath.SkipDir
		case d.Type().IsRegular() && name != "lock" && !strings.HasPrefix(d.Name(), durable.TempPrefix):
			assert.Contains(w, names, name)
		}
		return nil
	}))
	assert.NotContains(w, string(list), "lock")
	assert.NotContains(w, string(list), "run/")
}

// Sessions that run meanwhile are taken over, as after any other return of the state to
// what it was; the runtime directory inside keeps the server's socket and the leases.
func TestAnImportUnderSessionsThatRunDoublesNothing(t *testing.T) {
	t.Parallel()
	w, _ := rebootable(t)
	w.setenv("XDG_RUNTIME_DIR", "")
	w.runtime = w.state + "/run"
	w.api = server.NewClient(w.runtime + "/muxlet.sock")
	w.start()
	before := w.several(3, "stay")
	file := filepath.Join(w.dir, "x.tar.gz")
	w.does("state", "export", file)
	refused := w.refuses(1, "state", "import", file, "--force")
	assert.Contains(t, refused, "is in use by a daemon (pid ")
	signal(t, before["s0"], unix.SIGKILL)
	before["s0"] = pid(w.runsAs("s0", 2))
	tmux := w.server().pid
	w.kill()
	assert.Contains(t, w.does("state", "import", file, "--force"), "before-import-")
	finish := w.sample()
	w.start()
	w.waitFor("all run as before", func() bool { return w.same(before) })
	assert.EqualValues(t, 2, w.get("s0").Status.Client.Incarnation)
	assert.Equal(t, tmux, w.server().pid)
	signal(t, before["s1"], unix.SIGKILL)
	w.runsAs("s1", 2)
	finish()
	w.oneEach(before)
}

// Power may go at any instant of an import: there is the old state or the new one.
func TestAnImportThatIsKilledLeavesTheOldStateOrTheNewOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	w.several(20, "stay")
	file := filepath.Join(w.dir, "x.tar.gz")
	w.does("state", "export", file)
	w.kill()
	records := func() int {
		found, err := filepath.Glob(filepath.Join(w.state, "records", "*.json"))
		require.NoError(t, err)
		return len(found)
	}
	require.Equal(t, 20, records())
	for n := range 12 {
		cmd := exec.Command(binary, "state", "import", file, "--force")
		cmd.Env, cmd.Dir = w.env, w.home
		require.NoError(t, cmd.Start())
		over := make(chan struct{})
		go func() {
			_ = cmd.Wait()
			close(over)
		}()
		w.waitFor("it is under way", func() bool {
			staged, err := filepath.Glob(w.state + ".import-*/records/*.json")
			require.NoError(t, err)
			select {
			case <-over:
				return true
			default:
				return len(staged) > 2*n
			}
		})
		_ = cmd.Process.Kill()
		<-over
		require.Equal(t, 20, records(), "round %d", n)
	}
	w.does("state", "import", file, "--force")
	left, err := filepath.Glob(w.state + ".import-*")
	require.NoError(t, err)
	assert.Empty(t, left)
	w.start()
	w.runs("s0")
}

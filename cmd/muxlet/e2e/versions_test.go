// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/muxlet/muxlet/spec/durable"
)

// rewrite gives a file below the state directory another version, or another content.
func (w *World) rewrite(file string, version int, content func(data any) any) []byte {
	w.Helper()
	path := filepath.Join(w.state, file)
	var data any
	if before, err := os.ReadFile(path); err == nil {
		require.NoError(w, durable.Decode(before, version+100, &data))
	}
	text, err := durable.Encode(version, content(data))
	require.NoError(w, err)
	require.NoError(w, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(w, os.WriteFile(path, text, 0o600))
	return text
}

func novelty(data any) any { return map[string]any{"novelty": data} }

// Without either it is not known which tmux server and which clients are this daemon's.
func TestADaemonRefusesTheStateOfANewerMuxletAndLeavesItAsItIs(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"instance", "server.json"} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.start()
			w.declare("s", "stay")
			before := map[string]int{"s": pid(w.runs("s"))}
			w.stop()
			old := w.read(filepath.Join(w.state, file))
			newer := w.rewrite(file, 9, novelty)
			refused := w.muxlet("daemon")
			assert.Equal(t, 1, refused.code)
			assert.Contains(t, refused.errOut, "belongs to a newer muxlet")
			assert.Contains(t, refused.errOut, "--state-dir")
			assert.Equal(t, string(newer), w.read(filepath.Join(w.state, file)))
			_, alive := ticksOf(before["s"])
			assert.True(t, alive)
			require.NoError(t, os.WriteFile(filepath.Join(w.state, file), []byte(old), 0o600))
			w.start()
			w.untouched(before)
		})
	}
}

// Each of these costs one session or a convenience, and nobody else.
func TestFilesOfANewerMuxletAreLeftAsTheyAreWhileTheDaemonGoesOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	w.declare("old", "stay")
	w.declare("new", "stay")
	w.runs("old")
	uid := string(w.runs("new").UID)
	w.stop()
	newer := map[string][]byte{}
	for _, file := range []string{"attention.json", "notified.json", "session-defaults", "records/" + uid + ".json", "turns/" + uid + "/7.json"} {
		newer[file] = w.rewrite(file, 9, novelty)
	}
	w.start()
	w.eventually([]string{"get"}, "newer version of muxlet")
	signal(t, pid(w.get("old")), unix.SIGKILL)
	w.runsAs("old", 2)
	w.declare("third", "stay")
	w.runs("third")
	w.configure(settings{"sessionDefaults": settings{"terminationGracePeriodSeconds": 3}})
	w.waitFor("the settings are in force", func() bool {
		return w.get("third").Spec.TerminationGracePeriodSeconds != nil && *w.get("third").Spec.TerminationGracePeriodSeconds == 3
	})
	w.stop()
	for file, content := range newer {
		assert.Equal(t, string(content), w.read(filepath.Join(w.state, file)), file)
	}
	assert.NoDirExists(t, filepath.Join(w.state, durable.BackupDir))
}

// What a session remembers goes on in the new format, and the muxlet before finds its own
// bytes should it be put back.
func TestAnUpgradeKeepsTheFilesOfTheVersionBefore(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	before := w.several(2, "stay")
	uid := string(w.get("s0").UID)
	record := "records/" + uid + ".json"
	w.stop()
	old := w.rewrite(record, 1, func(data any) any { return data })
	w.start()
	w.untouched(before)
	signal(t, before["s0"], unix.SIGKILL)
	w.runsAs("s0", 2)
	w.stop()
	assert.Equal(t, string(old), w.read(filepath.Join(w.state, durable.BackupDir, "1", record)))
	info, err := os.Stat(filepath.Join(w.state, durable.BackupDir, "1", record))
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	var envelope struct{ Version int }
	require.NoError(t, json.Unmarshal([]byte(w.read(filepath.Join(w.state, record))), &envelope))
	assert.Greater(t, envelope.Version, 1)
}

// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/muxlet/muxlet/spec"
	"github.com/muxlet/muxlet/spec/durable"
)

// recordFiles are both generations of a session's record.
func (w *World) recordFiles(name string) (files []string) {
	w.Helper()
	s := w.get(name)
	require.NotNil(w, s)
	for _, generation := range []string{".json", ".json.prev"} {
		files = append(files, filepath.Join(w.state, "records", string(s.UID)+generation))
	}
	return files
}

// An older muxlet must not misread, change or remove what a newer one has
// written; after the upgrade everything goes on.
func TestARecordOfANewerMuxletIsRefusedUntouchedUntilTheUpgrade(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	before := w.several(2, "stay")
	files := w.recordFiles("s0")
	w.stop()

	older, newer := map[string]string{}, map[string]string{}
	for _, file := range files {
		older[file] = w.read(file)
		var data struct{ Data json.RawMessage }
		require.NoError(t, json.Unmarshal([]byte(older[file]), &data))
		encoded, err := durable.Encode(99, data.Data)
		require.NoError(t, err)
		newer[file] = string(encoded)
		require.NoError(t, os.WriteFile(file, encoded, 0o600))
	}
	w.start()
	w.runs("s1")
	w.becomes("s0", "refused", func(s *spec.Session) bool { return reason(s, spec.ConditionReady) == spec.ReasonRecordTooNew })
	told := w.does("describe", "s0")
	assert.Contains(t, told, "version 99")
	assert.Contains(t, told, "newer muxlet")
	assert.Contains(t, w.does("get"), string(spec.StatusBlocked))
	w.declare("s0", "say edited")
	w.muxlet("restart", "s0")
	w.muxlet("terminate", "s0")
	signal(t, before["s1"], unix.SIGKILL)
	w.runsAs("s1", 2)
	w.holds("the client of the newer one is left alone", 2*time.Second, func() bool { _, alive := ticksOf(before["s0"]); return alive })
	require.Len(t, w.startsOf("s0"), 1)
	for _, file := range files {
		assert.Equal(t, newer[file], w.read(file), "not a byte is changed")
	}

	w.declare("s0", "stay")
	w.stop()
	for _, file := range files {
		require.NoError(t, os.WriteFile(file, []byte(older[file]), 0o600))
	}
	w.start()
	assert.Equal(t, before["s0"], pid(w.runs("s0")))
	w.nth("s0", 1)
}

func TestADamagedRecordIsShownAndItsSessionGoesOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	before := w.several(2, "stay")
	files := w.recordFiles("s0")
	w.kill()
	for _, file := range files {
		require.NoError(t, os.WriteFile(file, []byte("{"), 0o600))
	}
	w.start()
	w.runs("s0")
	w.untouched(before)
	assert.Contains(t, w.events("s0"), spec.ReasonRecordQuarantined)
	assert.Contains(t, w.does("describe", "s0"), "quarantine/")
	for _, file := range files {
		assert.FileExists(t, filepath.Join(w.state, "quarantine", filepath.Base(file)))
	}
}

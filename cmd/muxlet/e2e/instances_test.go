// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/muxlet/muxlet/controller/server"
)

// A recorded socket is used as long as its server lives, whatever the settings
// say by now.
func TestADaemonWithAnotherRuntimeDirectoryTakesItsSessionsOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	before := w.several(2, "stay")
	w.kill()
	w.setenv("XDG_RUNTIME_DIR", filepath.Join(w.dir, "other"))
	w.api.Close()
	w.api = server.NewClient(filepath.Join(w.dir, "other/muxlet/muxlet.sock"))
	w.start()
	w.untouched(before)
	assert.Len(t, w.servers(), 1)
}

// A copy of a state directory has the instance of the original.
func TestADaemonOnACopyOfALiveStateIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	before := w.several(2, "stay")
	copied := filepath.Join(w.dir, "copy")
	w.copyState(w.state, copied)
	a := w.muxlet("daemon", "--state-dir", copied, "--runtime-dir", filepath.Join(w.dir, "other"))
	assert.Equal(t, 1, a.code)
	assert.Contains(t, a.errOut, "same instance")
	w.untouched(before)
}

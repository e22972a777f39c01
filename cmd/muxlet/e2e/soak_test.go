// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// That a soak runs, kills, looks and judges; whether ten minutes are flat is not known
// after twenty seconds.
func TestAShortSoakRunsToItsEnd(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "soak")
	build := exec.Command("go", "build", "-buildvcs=false", "-o", program, "github.com/muxlet/muxlet/hack/soak")
	out, err := build.CombinedOutput()
	require.NoError(t, err, string(out))
	muxlet, err := filepath.Abs(os.Getenv("MUXLET_BIN"))
	require.NoError(t, err)
	run := exec.CommandContext(t.Context(), program, "-muxlet", muxlet, "-sessions", "8", "-duration", "20s", "-every", "1s", "-kill", "250ms")
	out, err = run.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		assert.Contains(t, string(out), "not flat", "nothing but a trend may be wrong after so short a time")
	}
	assert.Regexp(t, `killed: [1-9][0-9]* clients, [1-9] tmux servers, [1-9] daemons; each of 8 sessions has one client at the end`, string(out))
	assert.Regexp(t, `goroutines +[1-9]`, string(out))
}

// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package systemd

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/actuate"
	"github.com/muxlet/muxlet/spec"
)

// fake is a systemctl in PATH that writes down how it was called, and then does what script
// says.
func fake(t *testing.T, script string) (calls func() string) {
	t.Helper()
	dir := t.TempDir()
	log := filepath.Join(dir, "calls")
	text := "#!/bin/sh\necho \"$*\" >> " + log + "\n" + script + "\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "systemctl"), []byte(text), 0o700))
	t.Setenv("PATH", dir+":/usr/bin:/bin")
	return func() string {
		text, err := os.ReadFile(log)
		require.NoError(t, err)
		return string(text)
	}
}

func start(system bool, unit string) actuate.Outcome {
	return Actuator{System: system, Environ: os.Environ()}.Do(context.Background(), actuate.Action{Kind: actuate.ActionStartUnit, Unit: unit})
}

func TestTheUnitIsAskedForAndNotWaitedFor(t *testing.T) {
	calls := fake(t, "exit 0")
	assert.Equal(t, actuate.Outcome{Result: actuate.ResultDone}, start(false, "muxlet-tmux.service"))
	assert.Equal(t, actuate.Outcome{Result: actuate.ResultDone}, start(true, "muxlet-tmux@alice.service"))
	assert.Equal(t, "--user --no-ask-password --no-block start muxlet-tmux.service\n"+
		"--no-ask-password --no-block start muxlet-tmux@alice.service\n", calls())
}

// A user may not start units of the system: the person is told what to type.
func TestARefusalSaysWhatToType(t *testing.T) {
	fake(t, "echo 'Failed to start it: Interactive authentication required.' >&2; echo See more. >&2; exit 1")
	assert.Equal(t, actuate.Outcome{Result: actuate.ResultFailed, Reason: spec.ReasonTmuxServerFailed,
		Message: "systemd did not start muxlet-tmux@alice.service (Failed to start it: Interactive authentication required); start it with: systemctl start muxlet-tmux@alice.service"},
		start(true, "muxlet-tmux@alice.service"))
	fake(t, "exit 4")
	assert.Contains(t, start(false, "x.service").Message, "(exit status 4); start it with: systemctl --user start x.service")
}

func TestWithoutSystemdThePersonIsTold(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	assert.Contains(t, start(false, "muxlet-tmux.service").Message, "(systemctl is not in PATH)")
}

func TestAnOptionIsNoUnit(t *testing.T) {
	calls := fake(t, "exit 0")
	require.Equal(t, actuate.ResultDone, start(false, "a.service").Result)
	for _, unit := range []string{"--force.service", "a.service b.service", "tmux.socket", ""} {
		assert.Equal(t, actuate.ResultFailed, start(false, unit).Result, unit)
	}
	assert.Equal(t, "--user --no-ask-password --no-block start a.service\n", calls())
}

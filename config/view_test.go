// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSettingsArePrintedWithTheirOrigins(t *testing.T) {
	in := inputs(t, map[string]string{"XDG_CONFIG_HOME": "", EnvManifests: "/a:/b c"})
	in.StateDir = given("/s")
	settings(t, in, header+"backOff: {max: 90m}\nlogging: {verbosity: 2}\n")
	e, err := Load(in)
	require.NoError(t, err)
	text, err := e.YAML(nil)
	require.NoError(t, err)
	assert.Equal(t, `apiVersion: config.muxlet.dev/v1alpha1
kind: MuxletConfiguration
manifests:
  - /a # environment
  - /b c # environment
stateDir: /s # flag
runtimeDir: /s/run # default
defaultClientClassName: claude # default
sessionDefaults: {} # default
tmux:
  command: tmux # default
  server: Managed # default
  unit: muxlet-tmux.service # default
  prefix: C-b # default
  include: "" # default
  timeout: 5s # default
scopes: Auto # default
resyncPeriod: 15s # default
observation:
  unknownGracePeriod: 5s # default
  bootIDPath: /proc/sys/kernel/random/boot_id # default
backOff:
  initial: 1s # default
  max: 1h30m # file
  resetAfter: 10m # default
starts:
  maxInFlight: 4 # default
massDeath:
  minSessions: 5 # default
  percent: 50 # default
removal:
  settle: 3s # default
  guardMin: 3 # default
  guardPercent: 50 # default
activity:
  reportTTL: 5m # default
  focusAfter: 5s # default
notifications:
  command: [] # default
  on:
    - InputRequired # default
    - Stalled # default
    - TurnCompleted # default
  minInterval: 30s # default
  timeout: 10s # default
  terminal: [] # default
retention:
  events: 1000 # default
  turns: 100 # default
  turnAge: 720h # default
  turnBytes: 256Mi # default
  archive: 720h # default
  archiveBytes: 256Mi # default
  screenBytes: 256Mi # default
  reportSpool: 64Mi # default
metrics:
  listen: "" # default
logging:
  format: text # default
  verbosity: 2 # file
`, string(text))
}

func TestPrintedSettingsAreASettingsFile(t *testing.T) {
	in := inputs(t, map[string]string{"BASE": "/with: odd # signs"})
	settings(t, in, everySetting)
	e, err := Load(in)
	require.NoError(t, err)
	text, err := e.YAML(nil)
	require.NoError(t, err)

	again := inputs(t, nil)
	path := filepath.Join(again.Home, "printed.yaml")
	require.NoError(t, os.WriteFile(path, text, 0o600))
	again.Config = &path
	printed, err := Load(again)
	require.NoError(t, err)
	assert.Equal(t, e.MuxletConfiguration, printed.MuxletConfiguration)
}

func TestDurationIsPrintedAsAPersonWritesIt(t *testing.T) {
	for want, d := range map[string]time.Duration{
		"0s": 0, "10ms": 10 * time.Millisecond, "10s": 10 * time.Second, "1m": time.Minute, "10m": 10 * time.Minute,
		"1m30s": 90 * time.Second, "1h": time.Hour, "10h30m": 630 * time.Minute, "1h0m5s": time.Hour + 5*time.Second, "20m10s": 1210 * time.Second,
	} {
		assert.Equal(t, want, short(d))
	}
}

func TestSocketsMoveToAShortDirectoryWhenTheirPathIsTooLong(t *testing.T) {
	short := Paths{StateDir: "/s", RuntimeDir: "/run/user/1000/muxlet", UID: 1000}
	assert.Equal(t, "/run/user/1000/muxlet", short.SocketDir())
	assert.Equal(t, "/run/user/1000/muxlet/muxlet.sock", short.APISocket())
	assert.Equal(t, "/run/user/1000/muxlet/tmux.sock", short.TmuxSocket())
	assert.Equal(t, "/run/user/1000/muxlet/reports.sock", short.ReportsSocket())
	assert.Equal(t, "/s/reports", short.Spool())
	assert.Equal(t, "/s/lock", short.StateLock())
	assert.Equal(t, "/run/user/1000/muxlet/lock", short.RuntimeLock())

	fits := Paths{RuntimeDir: "/" + strings.Repeat("r", maxSocketPath-len("//muxlet.sock"))}
	assert.Equal(t, fits.RuntimeDir, fits.SocketDir())
	assert.Len(t, fits.APISocket(), maxSocketPath)
	assert.LessOrEqual(t, len(fits.ReportsSocket()), 103, "what macOS takes; Linux takes 107")

	long := Paths{RuntimeDir: fits.RuntimeDir + "r", UID: 1000}
	assert.Regexp(t, `^/tmp/muxlet-1000/[0-9a-f]{16}$`, long.SocketDir())
	assert.Equal(t, long.SocketDir()+"/muxlet.sock", long.APISocket())
	assert.Equal(t, long.SocketDir()+"/tmux.sock", long.TmuxSocket())
	assert.Equal(t, long.SocketDir()+"/reports.sock", long.ReportsSocket())
	// What macOS takes, which is less than what Linux does.
	assert.LessOrEqual(t, len(fits.ReportsSocket()), 103)
	assert.Equal(t, long.RuntimeDir+"/lock", long.RuntimeLock(), "a lock needs no short path")
	other := Paths{RuntimeDir: long.RuntimeDir + "r", UID: 1000}
	assert.NotEqual(t, long.SocketDir(), other.SocketDir())
}

// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/config/systemd"
)

// findings are what the doctor says of systemd.
func (h *host) findings() string {
	h.t.Helper()
	h.run("doctor", "-o", "json")
	var all struct{ Findings []finding }
	require.NoError(h.t, json.Unmarshal([]byte(h.out), &all), h.out+h.errOut)
	var found []finding
	for _, f := range all.Findings {
		if f.Area == areaSystemd {
			found = append(found, f)
		}
	}
	return said(found)
}

func TestTheDoctorSaysThatNobodyStartsTheDaemon(t *testing.T) {
	h := newHost(t)
	h.program("systemctl", strings.Replace(systemctlScript, "LoadState=loaded", "LoadState=not-found", 1))
	assert.Contains(t, h.findings(), "Note muxlet is no service of systemd: nobody starts the daemon after a crash or a reboot. muxlet install.")
	require.NoError(t, os.Remove(h.root+"/run/systemd/system"))
	assert.Contains(t, h.findings(), "not booted with systemd")
}

func TestTheDoctorKnowsTheUnits(t *testing.T) {
	h := newHost(t)
	require.Equal(t, exitOK, h.run("install", "--user"), h.errOut)
	text := h.findings()
	assert.Contains(t, text, "OK muxlet.service is active and enabled")
	assert.Contains(t, text, "OK muxlet-tmux.service is active and enabled")
	assert.Contains(t, text, "Warning me does not linger")
	assert.Contains(t, text, "loginctl enable-linger me.")
	assert.NotContains(t, text, "another version")

	h.write("root/var/lib/systemd/linger/me", "")
	h.program("systemctl", strings.Replace(systemctlScript, "NRestarts=0", "NRestarts=7", 1))
	require.NoError(t, os.Remove(filepath.Join(h.state, "enabled/muxlet-tmux.service")))
	require.NoError(t, os.Remove(filepath.Join(h.state, "active/muxlet.socket")))
	text = h.findings()
	assert.Contains(t, text, "OK me lingers")
	assert.Contains(t, text, "Warning systemd has restarted muxlet.service 7 times.")
	assert.Contains(t, text, "Warning muxlet-tmux.service is active, but not enabled")
	assert.Contains(t, text, "Warning muxlet.socket is inactive, so that no call starts the daemon. muxlet install.", "systemd refuses to start it while the daemon runs")
	require.NoError(t, os.Remove(filepath.Join(h.state, "active/muxlet.service")))
	assert.Contains(t, h.findings(), "Warning muxlet.socket is inactive. systemctl --user start muxlet.socket.")
}

func TestADaemonThatIsAServiceIsNotStartedByHand(t *testing.T) {
	h := newHost(t)
	h.run("doctor")
	assert.Contains(t, h.out, "start it: muxlet daemon.")
	require.Equal(t, exitOK, h.run("install", "--user", "--no-start"), h.errOut)
	h.run("doctor")
	assert.Contains(t, h.out, "start it: systemctl --user start muxlet.service.")
	assert.NotContains(t, h.out, "start it: muxlet daemon.")
}

func TestTheDoctorKnowsUnitsThatAreOldOrEdited(t *testing.T) {
	h := newHost(t)
	require.Equal(t, exitOK, h.run("install", "--user"), h.errOut)
	old := h.oldUnit("muxlet.service")
	text := h.findings()
	assert.Contains(t, text, "Warning muxlet.service was written by another version of muxlet. muxlet install.")
	require.NoError(t, os.WriteFile(old, []byte("[Service]\n"), 0o644))
	assert.Contains(t, h.findings(), "Note muxlet.service was edited")
}

// oldUnit makes an installed unit one of an older template.
func (h *host) oldUnit(name string) string {
	h.t.Helper()
	path := filepath.Join(h.home, ".config/systemd/user", name)
	text, err := os.ReadFile(path)
	require.NoError(h.t, err)
	_, rest, _ := strings.Cut(string(text), "\n")
	require.NoError(h.t, os.WriteFile(path, systemd.Mark([]byte(strings.Replace(rest, "# Edition ", "# Edition 0", 1))), 0o644))
	return path
}

// The doctor's own process stands for the daemon: systemd says to a process that it is the
// one that it has started.
func TestAServerSharesItsUnitOnlyWithTheMainProcessOfAService(t *testing.T) {
	cmd := exec.Command("sleep", "60")
	cmd.Env = []string{}
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _, _ = cmd.Process.Kill(), cmd.Wait() })
	assert.Empty(t, sharedBy(cmd.Process.Pid, os.Getpid()), "a program that a person has started ends with its terminal")
	assert.Empty(t, sharedBy(os.Getpid(), 0))
}

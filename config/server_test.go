// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestWhoExecutesTheTmuxServerIsToldByFileEnvironmentAndFlag(t *testing.T) {
	env := map[string]string{}
	in := inputs(t, env)
	e, err := Load(in)
	require.NoError(t, err)
	assert.Equal(t, TmuxManaged, e.Tmux.Server)
	assert.Equal(t, "muxlet-tmux.service", e.Tmux.Unit)

	settings(t, in, header+"tmux: {server: External, unit: mine.service}\n")
	e, err = Load(in)
	require.NoError(t, err)
	assert.Equal(t, Tmux{Command: "tmux", Server: TmuxExternal, Unit: "mine.service", Prefix: "C-b", Timeout: e.Tmux.Timeout}, e.Tmux)

	env[EnvTmuxServer], env[EnvTmuxUnit] = "Managed", "muxlet-tmux@alice.service"
	e, err = Load(in)
	require.NoError(t, err)
	assert.Equal(t, TmuxManaged, e.Tmux.Server)
	assert.Equal(t, "muxlet-tmux@alice.service", e.Tmux.Unit)
	assert.Equal(t, OriginEnvironment, e.Origin["tmux.unit"])

	in.TmuxServer = given("External")
	e, err = Load(in)
	require.NoError(t, err)
	assert.Equal(t, TmuxExternal, e.Tmux.Server)
	assert.Equal(t, OriginFlag, e.Origin["tmux.server"])
}

func TestAWrongOwnerOfTheTmuxServerIsNamedWithItsPlace(t *testing.T) {
	env := map[string]string{}
	in := inputs(t, env)
	in.TmuxServer = given("external")
	_, err := Load(in)
	require.EqualError(t, err, `--tmux-server: "external" is not one of Managed, External`)
	in.TmuxServer = given("")
	_, err = Load(in)
	require.EqualError(t, err, `--tmux-server: "" is not one of Managed, External`)
	in.TmuxServer = nil
	env[EnvTmuxUnit] = "../etc"
	_, err = Load(in)
	require.EqualError(t, err, `MUXLET_TMUX_UNIT: "../etc" is no name of a service of systemd, such as muxlet-tmux.service`)
	delete(env, EnvTmuxUnit)
	path := settings(t, in, header+"tmux: {server: Systemd, unit: tmux.socket}\n")
	_, err = Load(in)
	require.ErrorContains(t, err, path+`:3:16: tmux.server: "Systemd" is not one of Managed, External`)
	assert.ErrorContains(t, err, `tmux.unit: "tmux.socket" is no name of a service of systemd`)
}

// The system units keep a person's runtime directory elsewhere, and each muxlet of that
// person has to find it without a word.
func TestTheRuntimeDirectoryOfTheSystemUnitsIsFound(t *testing.T) {
	env := map[string]string{"XDG_RUNTIME_DIR": "/run/user/1000"}
	in := inputs(t, env)
	in.UID = os.Getuid()
	in.SystemRuntimeDir = filepath.Join(t.TempDir(), "muxlet-alice")
	runtimeDir := func() string {
		e, err := Load(in)
		require.NoError(t, err)
		return e.RuntimeDir
	}
	assert.Equal(t, "/run/user/1000/muxlet", runtimeDir(), "it is not there")
	require.NoError(t, os.Mkdir(in.SystemRuntimeDir, 0o700))
	assert.Equal(t, in.SystemRuntimeDir, runtimeDir())

	in.StateDir = given("/s")
	assert.Equal(t, "/s/run", runtimeDir(), "a state directory that was given has its own")
	in.StateDir = nil
	env[EnvRuntimeDir] = "/r"
	assert.Equal(t, "/r", runtimeDir())
	delete(env, EnvRuntimeDir)

	require.NoError(t, os.Chmod(in.SystemRuntimeDir, 0o755))
	assert.Equal(t, "/run/user/1000/muxlet", runtimeDir(), "others can enter it")
	require.NoError(t, os.Chmod(in.SystemRuntimeDir, 0o700))
	in.UID++
	assert.Equal(t, "/run/user/1000/muxlet", runtimeDir(), "it is somebody else's")
	in.UID--
	require.NoError(t, os.Rename(in.SystemRuntimeDir, in.SystemRuntimeDir+".real"))
	require.NoError(t, os.Symlink(in.SystemRuntimeDir+".real", in.SystemRuntimeDir))
	assert.Equal(t, "/run/user/1000/muxlet", runtimeDir(), "it is a link")
}

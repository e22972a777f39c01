// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"maps"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestOfEachSettingItIsDecidedWhetherItNeedsARestart(t *testing.T) {
	assert.Equal(t, slices.Sorted(slices.Values(leaves())), slices.Sorted(maps.Keys(restart)))
}

func TestTheSameSettingsHaveNotChanged(t *testing.T) {
	in := inputs(t, map[string]string{"BASE": "/base"})
	settings(t, in, everySetting)
	running, err := Load(in)
	require.NoError(t, err)
	next, err := Reload(in, running)
	require.NoError(t, err)
	inUse, waiting := next.Onto(running)
	assert.Empty(t, waiting)
	assert.Empty(t, inUse.Changed(running))
	assert.Equal(t, running.MuxletConfiguration, inUse.MuxletConfiguration)
	assert.Equal(t, running.Origin, inUse.Origin)
}

// Where a word ends is a part of a command.
func TestACommandOfOtherWordsIsAnotherOne(t *testing.T) {
	in := inputs(t, nil)
	settings(t, in, header+"notifications: {command: [sh, -c, \"a b\"]}\n")
	running, err := Load(in)
	require.NoError(t, err)
	settings(t, in, header+"notifications: {command: [sh, -c, a, b]}\n")
	next, err := Reload(in, running)
	require.NoError(t, err)
	assert.Equal(t, []string{"notifications.command"}, next.Changed(running))
}

// Each setting is either in use at once or named as waiting, and never both.
func TestWhatNeedsARestartStaysAsItIs(t *testing.T) {
	in := inputs(t, map[string]string{"BASE": "/base"})
	running, err := Load(in)
	require.NoError(t, err)
	settings(t, in, everySetting)
	next, err := Reload(in, running)
	require.NoError(t, err)
	inUse, waiting := next.Onto(running)
	assert.Equal(t, []string{"stateDir", "runtimeDir", "tmux.command", "observation.bootIDPath", "logging.format"}, waiting)
	assert.ElementsMatch(t, leaves(), append(inUse.Changed(running), waiting...))
	for _, name := range waiting {
		assert.NotEmpty(t, RestartReason(name))
		assert.Equal(t, OriginDefault, inUse.Origin[name], "its origin is that of the value in use")
	}
	assert.Equal(t, running.Paths, inUse.Paths)
	assert.Equal(t, running.StateDir, inUse.StateDir)
	assert.Equal(t, time.Minute, inUse.ResyncPeriod.Duration)
	assert.Equal(t, "/base/state", next.StateDir, "what was loaded is not changed")
}

func TestAFileThatVanishesOrIsEmptyIsNoWishForTheDefaults(t *testing.T) {
	in := inputs(t, nil)
	path := settings(t, in, header+"backOff: {max: 90m}\n")
	assert.Equal(t, path, File(in))
	running, err := Load(in)
	require.NoError(t, err)

	require.NoError(t, os.WriteFile(path, []byte(" \n"), 0o600))
	_, err = Reload(in, running)
	require.ErrorContains(t, err, path+": the settings file is empty")
	require.NoError(t, os.Remove(path))
	_, err = Reload(in, running)
	require.ErrorContains(t, err, path+": the settings file is gone: put it back")

	settings(t, in, header)
	next, err := Reload(in, running)
	require.NoError(t, err, "a file that says nothing is a wish")
	inUse, _ := next.Onto(running)
	require.NoError(t, os.Remove(path))
	_, err = Reload(in, inUse)
	require.NoError(t, err, "and with nothing in use from it nothing is lost")
}

func TestProblemsAreOneLineEach(t *testing.T) {
	in := inputs(t, nil)
	path := settings(t, in, header+"resyncPriod: 5s\nstarts: {maxInFlite: 1}\n")
	_, err := Load(in)
	assert.Equal(t, []string{
		path + `:3:1: resyncPriod: unknown field (did you mean "resyncPeriod"?)`,
		path + `:4:10: starts.maxInFlite: unknown field (did you mean "maxInFlight"?)`,
	}, Problems(err))
	assert.Empty(t, Problems(nil))
}

func TestNotesStandBehindTheOrigins(t *testing.T) {
	in := inputs(t, map[string]string{EnvManifests: "/a:/b"})
	e, err := Load(in)
	require.NoError(t, err)
	text, err := e.YAML(map[string]string{"manifests": "not yet", "tmux.timeout": "restart it"})
	require.NoError(t, err)
	assert.Contains(t, string(text), "  - /a # environment; not yet\n  - /b # environment\n")
	assert.Contains(t, string(text), "  timeout: 5s # default; restart it\n")
	assert.Equal(t, OriginDefault, e.Origin["tmux.timeout"])
}

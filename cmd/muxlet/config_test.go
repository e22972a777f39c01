// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/config"
	"github.com/muxlet/muxlet/controller/server"
)

func TestWhyARunningDaemonUsesAnotherValueIsSaid(t *testing.T) {
	here := &config.Effective{File: "/c.yaml"}
	running := server.RunningConfig{File: "/c.yaml"}
	elsewhere := server.RunningConfig{File: "/d.yaml"}
	broken := server.RunningConfig{File: "/c.yaml", Problems: []string{"/c.yaml:1:1: no"}}
	for _, c := range []struct {
		used    server.RunningSetting
		running server.RunningConfig
		want    string
	}{
		{server.RunningSetting{Name: "manifests", Origin: config.OriginFlag}, running, "it was started with that flag"},
		{server.RunningSetting{Name: "stateDir", Origin: config.OriginEnvironment}, running, "its environment says so"},
		{server.RunningSetting{Name: "stateDir", Origin: config.OriginFile}, running, "restart it to change this, the records are there, and the daemon holds its lock"},
		{server.RunningSetting{Name: "stateDir", Origin: config.OriginFile}, elsewhere, "its settings file is /d.yaml"},
		{server.RunningSetting{Name: "backOff.max", Origin: config.OriginFile}, broken, "it cannot use its settings file, /c.yaml:1:1: no"},
		{server.RunningSetting{Name: "backOff.max", Origin: config.OriginDefault}, server.RunningConfig{}, "it has not read the change yet"},
	} {
		assert.Equal(t, c.want, whyUnused(c.used, c.running, here))
	}
}

// configuredDaemon tells its settings.
type configuredDaemon struct {
	*fakeDaemon
	running server.RunningConfig
}

func (d configuredDaemon) Config() server.RunningConfig { return d.running }

func TestADaemonIsAskedThoughItsSettingsFileIsDamaged(t *testing.T) {
	c := newCLI(t, nil)
	file := filepath.Join(c.dir, "config", "muxlet", "config.yaml")
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
	require.NoError(t, os.WriteFile(file, []byte("apiVersion: config.muxlet.dev/v1alpha1\nkind: MuxletConfiguration\nresyncPeriodd: 5s\n"), 0o600))
	daemon := configuredDaemon{newFakeDaemon(runningSession("a", 1, 5)), server.RunningConfig{File: file}}
	c.serve(daemon)
	assert.Equal(t, exitOK, c.run("get", "-o", "name"), c.errOut)
	assert.Equal(t, "session.muxlet.dev/a\n", c.out)
	assert.Equal(t, "Warning: the running daemon goes on with its earlier settings: /tmp/test/config/muxlet/config.yaml:3:1: "+
		"resyncPeriodd: unknown field (did you mean \"resyncPeriod\"?)\n", c.errOut)

	other := newCLI(t, nil)
	other.env["XDG_CONFIG_HOME"] = c.env["XDG_CONFIG_HOME"]
	other.serve(configuredDaemon{daemon.fakeDaemon, server.RunningConfig{File: "/elsewhere.yaml"}})
	assert.Equal(t, exitError, other.run("get"), "it is not known to be the daemon that is meant")
	assert.Empty(t, other.out)
}

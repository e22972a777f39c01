// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/stretchr/testify/assert"

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

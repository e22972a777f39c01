// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"

	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/observe/process"
)

// underSystemManager says whether this daemon is a service of the system's manager: the
// unit of its tmux server is one then, too.
func underSystemManager() bool {
	unit := unitOf(os.Getpid())
	return unit.Service() && !unit.User
}

// unitOf is the unit of systemd that a process is in.
func unitOf(pid int) observe.Unit {
	path, err := process.Cgroup(pid)
	if err != nil {
		return observe.Unit{}
	}
	return observe.UnitOf(path)
}

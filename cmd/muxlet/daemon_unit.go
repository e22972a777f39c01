// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"

	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/observe/process"
)

// ownUnit is the unit of systemd that this process is in.
func ownUnit() observe.Unit {
	path, err := process.Cgroup(os.Getpid())
	if err != nil {
		return observe.Unit{}
	}
	return observe.UnitOf(path)
}

// underSystemManager says whether this daemon is a service of the system's manager: the
// unit of its tmux server is one then, too.
func underSystemManager() bool {
	unit := ownUnit()
	return unit.Service() && !unit.User
}

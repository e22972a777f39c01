// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"strconv"

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

// sharedUnit is the unit of which this daemon is the main process, when the tmux server is in
// it too; else empty. A daemon that a person, or a test, has started inside of some unit ends
// with its terminal anyway.
func sharedUnit(server observe.Process) string { return sharedBy(os.Getpid(), server.PID) }

// sharedBy is sharedUnit of any daemon of this user.
func sharedBy(daemon, server int) string {
	unit := unitOf(daemon)
	p, _ := process.Identify(daemon)
	// Since systemd 248 it says to a process that it is the one that it has started.
	executed, _ := process.Variable(p, "SYSTEMD_EXEC_PID")
	if server == 0 || !unit.Service() || executed != strconv.Itoa(daemon) || unitOf(server) != unit {
		return ""
	}
	return unit.Name
}

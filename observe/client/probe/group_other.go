// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package probe

import (
	"syscall"
	"time"

	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/observe/process"
)

// endPoll is the time between two looks at a probe that runs.
const endPoll = 10 * time.Millisecond

// attributes put a probe into a session of its own, without a terminal.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// awaitEnd returns when our child with the pid has ended. Its status stays where it is:
// what has ended is a zombie until it is waited for.
func awaitEnd(pid int) {
	ticks := time.NewTicker(endPoll)
	defer ticks.Stop()
	for range ticks.C {
		if _, live := process.Identify(pid); live == observe.Gone {
			return
		}
	}
}

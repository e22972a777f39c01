// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

// Package process looks at the process table: identities that survive the re-use
// of a pid, client marks, leases, trees and deaths. What it could not read is
// Unknown, never Gone. It changes nothing: it sends no signal, waits for nobody's
// child and takes no lock.
package process

import (
	"errors"
	"fmt"
	"io/fs"

	"golang.org/x/sys/unix"

	"github.com/muxlet/muxlet/observe"
)

// errNoProcess says that the system proved that there is no such process.
var errNoProcess = fmt.Errorf("no such process: %w", fs.ErrNotExist)

// errNoEnvironment says that a process shows no environment: it may be between two
// programs, and then it has one in a moment.
var errNoEnvironment = errors.New("it shows none just now")

// entry is one line of the process table.
type entry struct {
	pid, parent int
	// ticks is the start time in the platform's own unit.
	ticks uint64
	// ended: only the exit status is left of the process.
	ended bool
	// kernel: a thread of the kernel, which runs no program.
	kernel bool
	// detached: it leads a session of its own, without a terminal.
	detached bool
	// command is the short name that the process can give itself.
	command string
}

// identity of the process.
func (e entry) identity() observe.Process {
	return observe.Process{PID: e.pid, Ticks: e.ticks}
}

// Ticks returns the start time of a process: on Linux field 22 of
// /proc/PID/stat, in clock ticks since boot; on macOS microseconds since 1970.
// The error wraps fs.ErrNotExist when it is proven that there is no such process.
func Ticks(pid int) (uint64, error) {
	e, err := lookUp(pid)
	if err != nil {
		return 0, err
	}
	return e.ticks, nil
}

// Parent returns the pid of a process's parent; the error is as that of Ticks.
func Parent(pid int) (int, error) {
	e, err := lookUp(pid)
	if err != nil {
		return 0, err
	}
	return e.parent, nil
}

// Identify returns the identity and the liveness of the process that has the pid
// now. The ticks are 0 when they could not be read.
func Identify(pid int) (observe.Process, observe.Liveness) {
	e, err := lookUp(pid)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return observe.Process{PID: pid}, observe.Gone
	case err != nil:
		return observe.Process{PID: pid}, observe.LivenessUnknown
	case e.ended:
		return e.identity(), observe.Gone
	}
	return e.identity(), observe.Running
}

// State says whether the process p runs. A zombie is Gone, and so is a process
// whose pid belongs to another one now. With unknown ticks only "there is no such
// process" is proof. The zero process is Unknown: it names nothing that could be
// proven.
func State(p observe.Process) observe.Liveness {
	found, state := Identify(p.PID)
	switch {
	case state != observe.Running:
		return state
	case p.Ticks == 0:
		return observe.LivenessUnknown
	case found.Ticks != p.Ticks:
		return observe.Gone
	}
	return observe.Running
}

// lookUp reads the entry of one process. errNoProcess needs the word of the system
// itself: a process table that is not mounted, or hides processes, has no entries
// either.
func lookUp(pid int) (entry, error) {
	if pid <= 0 {
		return entry{}, fmt.Errorf("looking up process %d: not a pid", pid)
	}
	e, err := readEntry(pid)
	if err == nil {
		return e, nil
	}
	if errors.Is(unix.Kill(pid, 0), unix.ESRCH) {
		return entry{}, fmt.Errorf("looking up process %d: %w", pid, errNoProcess)
	}
	// The cause is not wrapped: that a file does not exist proves nothing here.
	return entry{}, fmt.Errorf("looking up process %d: %s", pid, err.Error())
}

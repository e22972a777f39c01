// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

// Package process does to processes what muxlet may do to them: it sends a
// signal to a process that is proven to be the one that is meant, and keeps
// descriptors from programs that are started next. It never signals by name, by
// process group or by a pid alone.
package process

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/muxlet/muxlet/observe"
	observeprocess "github.com/muxlet/muxlet/observe/process"
)

// ErrGone is matched by the error of a signal whose process has ended.
var ErrGone = errors.New("process has ended")

// Check says whether the process that now has a pid is the one that is meant:
// nil when it is, an error that matches ErrGone when that one has ended, another
// error when it cannot be told.
type Check func(pid int) error

// Itself checks the start ticks of p. A process without ticks is never itself.
func Itself(p observe.Process) Check {
	return func(int) error {
		if p.Ticks == 0 {
			return fmt.Errorf("identify process %d: its start time is not known", p.PID)
		}
		switch observeprocess.State(p) {
		case observe.Running:
			return nil
		case observe.Gone:
			return fmt.Errorf("process %s: %w", p, ErrGone)
		case observe.LivenessUnknown:
		}
		return fmt.Errorf("identify process %s: the process table could not be read", p)
	}
}

// Signal sends sig to the process with this pid if check holds, and to no other
// one: the process is pinned before it is checked, where the system can pin it
// (Linux). The error matches ErrGone when it has ended. A process that has ended
// and was not yet collected by its parent counts as either.
func Signal(pid int, sig syscall.Signal, check Check) error {
	if pid <= 1 {
		return fmt.Errorf("signal process %d: not the pid of a process that muxlet may signal", pid)
	}
	if err := send(pid, sig, check); err != nil {
		if errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("signal process %d: %w", pid, ErrGone)
		}
		return fmt.Errorf("signal process %d: %w", pid, err)
	}
	return nil
}

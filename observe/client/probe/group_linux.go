// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// attributes put a probe into a session of its own, without a terminal, and end it with
// a daemon that is killed.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
}

// awaitEnd returns when our child with the pid has ended. Its status stays where it is.
func awaitEnd(pid int) {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"errors"
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"
)

// send holds the process by a pidfd while it is checked, so that its pid cannot
// pass to another process between the check and the signal.
func send(pid int, sig syscall.Signal, check Check) (err error) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return fmt.Errorf("open pidfd: %w", err)
	}
	defer func() { err = errors.Join(err, unix.Close(fd)) }()
	if err := check(pid); err != nil {
		return err
	}
	return unix.PidfdSendSignal(fd, sig, nil, 0)
}

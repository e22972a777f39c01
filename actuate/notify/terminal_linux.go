// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// isTerminalOf says whether an open file is the terminal that a client has open itself:
// a path is that of another terminal in another mount namespace.
func isTerminalOf(fd, pid int) error {
	var own unix.Stat_t
	if err := unix.Fstat(fd, &own); err != nil {
		return fmt.Errorf("look at it: %w", err)
	}
	if own.Mode&unix.S_IFMT != unix.S_IFCHR {
		return errors.New("it is no terminal")
	}
	for standard := range 3 {
		var theirs unix.Stat_t
		if unix.Stat(fmt.Sprintf("/proc/%d/fd/%d", pid, standard), &theirs) == nil &&
			theirs.Dev == own.Dev && theirs.Ino == own.Ino && theirs.Rdev == own.Rdev {
			return nil
		}
	}
	return fmt.Errorf("it is not proven to be that of pid %d", pid)
}

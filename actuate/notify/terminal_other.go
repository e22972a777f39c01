// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package notify

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// isTerminalOf says whether an open file is a terminal. Whether it is the client's is not
// asked: without mount namespaces a path is the same for everybody.
func isTerminalOf(fd, _ int) error {
	var own unix.Stat_t
	if err := unix.Fstat(fd, &own); err != nil {
		return fmt.Errorf("look at it: %w", err)
	}
	if own.Mode&unix.S_IFMT != unix.S_IFCHR {
		return errors.New("it is no terminal")
	}
	return nil
}

// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// hasWriter tells whether some process has the file open for writing. The kernel
// refuses a read lease on such a file; one that it grants is given back at once.
// What cannot be told (a file of somebody else, a file system without leases) is
// no writer: source fcntl(2), F_SETLEASE.
func hasWriter(f *os.File) bool {
	_, err := unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_RDLCK)
	if err == nil {
		_, _ = unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_UNLCK)
	}
	return errors.Is(err, unix.EAGAIN)
}

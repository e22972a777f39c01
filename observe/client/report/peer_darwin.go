// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package report

import "golang.org/x/sys/unix"

// peerOf is the pid of the process that has connected.
func peerOf(fd int) (int, error) {
	return unix.GetsockoptInt(fd, unix.SOL_LOCAL, unix.LOCAL_PEERPID)
}

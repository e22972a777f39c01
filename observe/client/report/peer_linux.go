// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package report

import "golang.org/x/sys/unix"

// peerOf is the pid of the process that has connected.
func peerOf(fd int) (int, error) {
	credentials, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return 0, err
	}
	return int(credentials.Pid), nil
}

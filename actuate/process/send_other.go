// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package process

import "syscall"

// send checks the process and signals its pid. There is no pidfd here: the
// moment between the two is not covered.
func send(pid int, sig syscall.Signal, check Check) error {
	if err := check(pid); err != nil {
		return err
	}
	return syscall.Kill(pid, sig)
}

// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package notify

import "syscall"

// ofDaemon has the kernel end the command when the daemon is killed: nobody else would
// end one that hangs.
func ofDaemon(a *syscall.SysProcAttr) *syscall.SysProcAttr {
	a.Pdeathsig = syscall.SIGKILL
	return a
}

// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package notify

import "syscall"

// ofDaemon changes nothing: the system does not end a command with who has started it.
func ofDaemon(a *syscall.SysProcAttr) *syscall.SysProcAttr { return a }

// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package launch

import (
	"os/signal"
	"syscall"

	"github.com/muxlet/muxlet/actuate/process"
)

// become replaces this process by the program at path, with no descriptor but 0,
// 1, 2 and kept. Signals that were ignored when this process started stay so.
func become(path string, argv, env []string, kept int) error {
	if err := process.SealDescriptors(kept); err != nil {
		return err
	}
	signal.Reset()
	return syscall.Exec(path, argv, env)
}

// maxWord is the size of one word: as much as all of them together may have.
const maxWord = 1 << 20

// argumentSpace is how many bytes arguments and environment may take in all: ARG_MAX
// of macOS.
func argumentSpace() int { return maxWord }

// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"syscall"
)

// SealDescriptors marks every descriptor of this process from 3 on as
// close-on-exec, those in kept excepted. What Go opens is marked already;
// this is for those that the process itself was started with.
func SealDescriptors(kept ...int) error {
	entries, err := os.ReadDir("/dev/fd")
	if err != nil {
		return fmt.Errorf("list descriptors: %w", err)
	}
	for _, entry := range entries {
		fd, err := strconv.Atoi(entry.Name())
		if err == nil && fd > 2 && !slices.Contains(kept, fd) {
			syscall.CloseOnExec(fd)
		}
	}
	return nil
}

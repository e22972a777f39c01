// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// enoughFiles is how many descriptors a process is allowed to have, if its hard
// limit lets it. Who may have millions is slow in programs that close them all.
const enoughFiles = 65536

// RaiseOpenFiles raises how many files a process, and what it starts from then on,
// may have open, as far as its hard limit allows; a limit that is high enough stays.
// Go restores the limit that it was started with, often 1024, in what it starts,
// and a tmux server needs one descriptor for each pane.
func RaiseOpenFiles(pid int, check Check) error {
	if err := check(pid); err != nil {
		return err
	}
	var limit unix.Rlimit
	if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, &limit); err != nil {
		return fmt.Errorf("read the limit of open files of process %d: %w", pid, err)
	}
	enough := min(limit.Max, enoughFiles)
	if limit.Cur >= enough {
		return nil
	}
	limit.Cur = enough
	if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, &limit, nil); err != nil {
		return fmt.Errorf("raise the limit of open files of process %d: %w", pid, err)
	}
	return nil
}

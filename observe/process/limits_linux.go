// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"bytes"
	"math"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/muxlet/muxlet/observe"
)

// ptyDir has the kernel's figures on pseudo-terminals. Of max, reserve are kept for
// the devpts of the initial mount namespace; whose one ours is cannot be told, so
// that they are not counted on.
const ptyDir = "/proc/sys/kernel/pty/"

// Limits looks at what may run out before a start: pseudo-terminals, and the file
// descriptors of the tmux server and of this process. What cannot be read is not
// known.
func Limits(server observe.Process) observe.Limits {
	l := observe.Limits{Terminals: terminals(ptyDir)}
	l.ServerFiles, l.ServerHardLimit = filesOf(server.PID)
	l.OwnFiles, _ = filesOf(os.Getpid())
	if State(server) != observe.Running {
		// What was read may be another process's.
		l.ServerFiles, l.ServerHardLimit = observe.Use{}, 0
	}
	return l
}

// Files are the descriptors of a process and how many it may have; unknown when that
// cannot be read.
func Files(pid int) observe.Use {
	use, _ := filesOf(pid)
	return use
}

func terminals(dir string) observe.Use {
	used, ok := number(dir + "nr")
	limit, known := number(dir + "max")
	if !ok || !known {
		return observe.Use{}
	}
	if reserve, ok := number(dir + "reserve"); ok && reserve < limit {
		limit -= reserve
	}
	return observe.Use{Used: used, Limit: limit}
}

func number(path string) (int, bool) {
	data, err := os.ReadFile(path)
	if err != nil {
		return 0, false
	}
	n, err := strconv.Atoi(string(bytes.TrimSpace(data)))
	return n, err == nil
}

// filesOf counts the descriptors of a process. Since Linux 6.2 the size of its
// directory is their number; before, they are listed.
func filesOf(pid int) (use observe.Use, hard int) {
	var limit unix.Rlimit
	if unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, &limit) != nil {
		return observe.Use{}, 0
	}
	dir := procPath(pid, "fd")
	info, err := os.Stat(dir)
	if err != nil {
		return observe.Use{}, 0
	}
	used := int(info.Size())
	if used == 0 {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return observe.Use{}, 0
		}
		used = len(entries)
	}
	return observe.Use{Used: used, Limit: int(min(limit.Cur, math.MaxInt32))}, int(min(limit.Max, math.MaxInt32))
}

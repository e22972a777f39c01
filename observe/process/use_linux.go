// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/muxlet/muxlet/observe"
)

// clockTick is the unit of times in proc_pid_stat(5): USER_HZ, which is 100 on every
// architecture that Go knows.
const clockTick = time.Second / 100

// Uses reads the process table with what each process has used so far, but for threads of
// the kernel. It is no snapshot: processes that end meanwhile are left out. The error is
// ErrUseUnknown where the system does not tell.
func Uses() ([]observe.ProcessUse, error) {
	pids, err := listPIDs()
	if err != nil {
		return nil, err
	}
	all := make([]observe.ProcessUse, 0, len(pids))
	for _, pid := range pids {
		stat, err := os.ReadFile(procPath(pid, "stat"))
		if err != nil {
			continue // it has ended
		}
		e, err := parseStat(stat)
		if err != nil || e.kernel {
			continue
		}
		cpu, err := parseTimes(stat)
		if err != nil {
			return nil, err
		}
		all = append(all, observe.ProcessUse{Process: e.identity(), Parent: e.parent, CPU: cpu, Command: e.command, Ended: e.ended})
	}
	return all, nil
}

// parseTimes adds fields 14 to 17 of proc_pid_stat(5): user and system time of the process,
// and of the descendants that were waited for.
func parseTimes(stat []byte) (time.Duration, error) {
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	var ticks int64
	for _, field := range fields[11:15] {
		n, err := strconv.ParseInt(string(field), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("reading the times of a process: %w", err)
		}
		ticks += n
	}
	return time.Duration(ticks) * clockTick, nil
}

// ShareOfMemory is the memory of a process in bytes, in which what it shares with others
// counts in parts (Pss of proc_pid_smaps_rollup(5)). The kernel walks all its pages for it:
// measured 0.05 ms for each MiB. It may be read of our own processes alone.
func ShareOfMemory(pid int) (int64, error) {
	rollup, err := os.ReadFile(procPath(pid, "smaps_rollup"))
	if err != nil {
		return 0, fmt.Errorf("reading the memory of process %d: %w", pid, err)
	}
	for line := range bytes.Lines(rollup) {
		if text, ok := bytes.CutPrefix(line, []byte("Pss:")); ok {
			return kibibytes(text)
		}
	}
	return 0, fmt.Errorf("reading the memory of process %d: no Pss", pid)
}

func kibibytes(text []byte) (int64, error) {
	n, err := strconv.ParseInt(string(bytes.TrimSpace(bytes.TrimSuffix(bytes.TrimSpace(text), []byte("kB")))), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("reading the memory of a process: %w", err)
	}
	return n << 10, nil
}

// ResidentMemory is the memory of a process in bytes, in which all that it shares with
// others counts (the second field of proc_pid_statm(5)). It costs next to nothing.
func ResidentMemory(pid int) (int64, error) {
	statm, err := os.ReadFile(procPath(pid, "statm"))
	if err != nil {
		return 0, fmt.Errorf("reading the memory of process %d: %w", pid, err)
	}
	fields := bytes.Fields(statm)
	if len(fields) < 2 {
		return 0, fmt.Errorf("reading the memory of process %d: %d fields", pid, len(fields))
	}
	pages, err := strconv.ParseInt(string(fields[1]), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("reading the memory of process %d: %w", pid, err)
	}
	return pages * int64(os.Getpagesize()), nil
}

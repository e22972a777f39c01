// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/muxlet/muxlet/observe"
)

// zombie is SZOMB of sys/proc.h.
const zombie = 5

// Executable is empty: this platform has no path to a running process's own
// program that outlives its file.
func Executable(observe.Process) string { return "" }

// programOf is the path of a process's program, as it was executed; empty when it
// could not be read.
func programOf(pid int) string {
	raw, err := unix.SysctlRaw("kern.procargs2", pid)
	if err != nil || len(raw) < 4 {
		return ""
	}
	path, _, _ := bytes.Cut(raw[4:], []byte{0})
	return string(path)
}

func readEntry(pid int) (entry, error) {
	info, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil {
		return entry{}, fmt.Errorf("reading kern.proc.pid: %w", err)
	}
	return entryOf(info), nil
}

func entryOf(info *unix.KinfoProc) entry {
	start := info.Proc.P_starttime
	return entry{
		pid: int(info.Proc.P_pid), parent: int(info.Eproc.Ppid),
		ticks:   uint64(start.Sec)*1_000_000 + uint64(start.Usec),
		ended:   info.Proc.P_stat == zombie,
		command: unix.ByteSliceToString(info.Proc.P_comm[:]),
	}
}

// readTable returns an entry for each process.
func readTable() ([]entry, error) { return readProcs("kern.proc.all") }

// readOf returns the processes of a uid.
func readOf(uid int) ([]entry, error) { return readProcs("kern.proc.uid", uid) }

func readProcs(name string, args ...int) ([]entry, error) {
	procs, err := unix.SysctlKinfoProcSlice(name, args...)
	if err != nil {
		return nil, fmt.Errorf("listing processes: %w", err)
	}
	if len(procs) == 0 {
		return nil, errors.New("listing processes: the system shows none, not even this one")
	}
	table := make([]entry, len(procs))
	for i := range procs {
		table[i] = entryOf(&procs[i])
	}
	return table, nil
}

// environmentOf returns the NAME=value strings of a process.
func environmentOf(pid int) ([][]byte, error) {
	words, arguments, err := readArguments(pid)
	if err != nil {
		return nil, err
	}
	return words[arguments:], nil
}

// argumentsOf returns the command line of a process.
func argumentsOf(pid int) ([][]byte, error) {
	words, arguments, err := readArguments(pid)
	if err != nil {
		return nil, err
	}
	return words[:arguments], nil
}

// readArguments reads kern.procargs2: the number of arguments in 4 bytes, the
// program's path, NULs up to a word boundary, the arguments, the environment.
func readArguments(pid int) (words [][]byte, arguments int, err error) {
	raw, err := unix.SysctlRaw("kern.procargs2", pid)
	if err != nil {
		return nil, 0, fmt.Errorf("reading kern.procargs2: %w", err)
	}
	if len(raw) < 4 {
		return nil, 0, errors.New("reading kern.procargs2: no count")
	}
	arguments = int(binary.NativeEndian.Uint32(raw))
	_, rest, _ := bytes.Cut(raw[4:], []byte{0})
	words = bytes.Split(bytes.TrimLeft(rest, "\x00"), []byte{0})
	if arguments < 0 || arguments > len(words) {
		return nil, 0, errors.New("reading kern.procargs2: fewer words than arguments")
	}
	return words, arguments, nil
}

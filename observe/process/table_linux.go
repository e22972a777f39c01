// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"syscall"

	"github.com/muxlet/muxlet/observe"
)

const (
	// minProcFile and maxProcFile bound what is read of an environment or a
	// command line, in bytes.
	minProcFile = 16 << 10
	maxProcFile = 16 << 20
	// kernelThread is PF_KTHREAD of a process's flags.
	kernelThread = 0x200000
)

// Executable is a path by which the running process p's own program can be
// executed, even after its file was replaced or removed; empty when p does not
// run.
func Executable(p observe.Process) string {
	if State(p) != observe.Running {
		return ""
	}
	return procPath(p.PID, "exe")
}

// programOf is the path of a process's program, as it was executed; empty when it
// could not be read.
func programOf(pid int) string {
	path, err := os.Readlink(procPath(pid, "exe"))
	if err != nil {
		return ""
	}
	return path
}

func procPath(pid int, name string) string {
	return "/proc/" + strconv.Itoa(pid) + "/" + name
}

func readEntry(pid int) (entry, error) {
	stat, err := os.ReadFile(procPath(pid, "stat"))
	if err != nil {
		return entry{}, err
	}
	return parseStat(stat)
}

// parseStat reads a line of proc_pid_stat(5). The command, field 2, is in brackets
// and may itself hold brackets and spaces: fields are counted from the last one.
func parseStat(stat []byte) (entry, error) {
	open, closed := bytes.IndexByte(stat, '('), bytes.LastIndexByte(stat, ')')
	if open < 0 || closed < open {
		return entry{}, errors.New("reading a process's stat: no command")
	}
	// fields[0] is field 3, the state.
	fields := bytes.Fields(stat[closed+1:])
	if len(fields) < 20 || len(fields[0]) != 1 {
		return entry{}, fmt.Errorf("reading a process's stat: %d fields after the command", len(fields))
	}
	e := entry{command: string(stat[open+1 : closed])}
	var threads, flags, session, terminal int
	for _, field := range []struct {
		text []byte
		into *int
	}{
		{bytes.TrimSpace(stat[:open]), &e.pid}, {fields[1], &e.parent}, {fields[17], &threads}, {fields[6], &flags},
		{fields[3], &session}, {fields[4], &terminal},
	} {
		n, err := strconv.Atoi(string(field.text))
		if err != nil {
			return entry{}, fmt.Errorf("reading a process's stat: %w", err)
		}
		*field.into = n
	}
	ticks, err := strconv.ParseUint(string(fields[19]), 10, 64)
	if err != nil {
		return entry{}, fmt.Errorf("reading a process's stat: %w", err)
	}
	e.ticks, e.ended, e.kernel = ticks, hasEnded(fields[0][0], threads), flags&kernelThread != 0
	e.detached = session == e.pid && terminal == 0
	return e, nil
}

// hasEnded judges the state of a process's first thread. When that thread alone
// has ended, it is a zombie while the others run on.
func hasEnded(state byte, threads int) bool {
	switch state {
	case 'Z':
		return threads <= 1
	case 'X', 'x':
		return true
	}
	return false
}

// readTable returns an entry for each process. It is no snapshot: processes that
// start meanwhile may be missed, those that end meanwhile are left out.
func readTable() ([]entry, error) {
	pids, err := listPIDs()
	if err != nil {
		return nil, err
	}
	table := make([]entry, 0, len(pids))
	for _, pid := range pids {
		if e, err := readEntry(pid); err == nil {
			table = append(table, e)
		}
	}
	return table, nil
}

// readOf returns the programs of a uid. A process that made itself unreadable belongs
// to root here, and is left out: its environment would be unreadable too.
func readOf(uid int) ([]entry, error) {
	pids, err := listPIDs()
	if err != nil {
		return nil, err
	}
	own := make([]entry, 0, len(pids))
	for _, pid := range pids {
		if !isOf(pid, uid) {
			continue
		}
		if e, err := readEntry(pid); err == nil && !e.kernel {
			own = append(own, e)
		}
	}
	return own, nil
}

func isOf(pid, uid int) bool {
	var st syscall.Stat_t
	err := syscall.Stat("/proc/"+strconv.Itoa(pid), &st)
	return err == nil && int(st.Uid) == uid
}

func listPIDs() ([]int, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, fmt.Errorf("listing processes: %w", err)
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, fmt.Errorf("listing processes: %w", err)
	}
	pids := make([]int, 0, len(names))
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			pids = append(pids, pid)
		}
	}
	if len(pids) == 0 {
		return nil, errors.New("listing processes: /proc shows none, not even this one")
	}
	return pids, nil
}

// environmentOf returns the NAME=value strings of a process. While a process is in
// execve its environment reads as empty for a moment (measured: one read in twelve
// of a shell that does nothing but execute itself). That cannot be told from an
// environment that is empty indeed: both are errNoEnvironment.
func environmentOf(pid int) ([][]byte, error) {
	environment, err := readStrings(pid, "environ")
	if err == nil && len(environment) == 0 {
		return nil, errNoEnvironment
	}
	return environment, err
}

// argumentsOf returns the command line of a process.
func argumentsOf(pid int) ([][]byte, error) { return readStrings(pid, "cmdline") }

// readStrings reads a file of strings in a single read: between two of them the
// process could execute another program, and then the first part would pass for
// the whole.
func readStrings(pid int, name string) ([][]byte, error) {
	for size := minProcFile; size <= maxProcFile; size *= 4 {
		content := make([]byte, size)
		n, err := readOnce(procPath(pid, name), content)
		if err != nil {
			return nil, err
		}
		if n == 0 {
			return nil, nil
		}
		if n < size {
			return bytes.Split(bytes.TrimSuffix(content[:n], []byte{0}), []byte{0}), nil
		}
	}
	return nil, fmt.Errorf("reading %s of process %d: longer than %d bytes", name, pid, maxProcFile)
}

func readOnce(path string, into []byte) (int, error) {
	file, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	n, err := file.Read(into)
	if errors.Is(err, io.EOF) {
		return 0, nil
	}
	return n, err
}

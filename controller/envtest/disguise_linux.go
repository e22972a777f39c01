// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package envtest

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// closeInherited closes every descriptor from 3 on that is a file. Those of Go's
// own runtime are none.
func closeInherited() {
	for fd := 3; fd < 1024; fd++ {
		target, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(fd))
		if err == nil && strings.HasPrefix(target, "/") {
			_ = syscall.Close(fd)
		}
	}
}

// rename changes what the process table shows of this process.
func rename(name string) error {
	if err := os.WriteFile("/proc/self/comm", []byte(name), 0); err != nil {
		return fmt.Errorf("rename oneself: %w", err)
	}
	return overwrite(argumentBounds, name)
}

// The fields of /proc/self/stat, from 1, that bound what the kernel shows as the
// command line and the environment of a process.
const (
	argumentBounds    = 48
	environmentBounds = 50
)

// overwrite writes text over a part of this process's memory, as often as it
// fits.
func overwrite(bounds int, text string) error {
	stat, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		return fmt.Errorf("read the bounds: %w", err)
	}
	// Field 2, the name, may hold anything; field 3 follows its last bracket.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	from, err := strconv.ParseInt(string(fields[bounds-3]), 10, 64)
	if err != nil {
		return fmt.Errorf("read the bounds: %w", err)
	}
	to, err := strconv.ParseInt(string(fields[bounds-2]), 10, 64)
	if err != nil {
		return fmt.Errorf("read the bounds: %w", err)
	}
	memory, err := os.OpenFile("/proc/self/mem", os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("open the memory: %w", err)
	}
	defer memory.Close()
	fill := bytes.Repeat([]byte(text+"\x00"), int(to-from)/(len(text)+1)+1)
	if _, err := memory.WriteAt(fill[:to-from], from); err != nil {
		return fmt.Errorf("write the memory: %w", err)
	}
	return nil
}

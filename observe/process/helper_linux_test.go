// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"bytes"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

const losesFirstThread = "loses its first thread"

func init() {
	helpers[losesFirstThread] = loseFirstThread
	helpers["overwrites its environment"] = overwriteEnvironment
	if os.Getenv(helperVariable) == losesFirstThread {
		// main, and so TestMain, stays on the first thread.
		runtime.LockOSThread()
	}
}

func loseFirstThread() {
	go func() {
		_, _ = os.Stdout.WriteString("ready\n")
		_, _ = os.Stdin.Read(make([]byte, 1))
		os.Exit(0)
	}()
	_, _, _ = syscall.RawSyscall(unix.SYS_EXIT, 0, 0, 0)
}

// overwriteEnvironment writes over the memory that the kernel shows as this
// process's environment: from field 50 of its stat to field 51.
func overwriteEnvironment() {
	stat, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		panic(err)
	}
	fields := strings.Fields(string(stat))
	var bounds [2]int64
	for i := range bounds {
		if bounds[i], err = strconv.ParseInt(fields[len(fields)-3+i], 10, 64); err != nil {
			panic(err)
		}
	}
	memory, err := os.OpenFile("/proc/self/mem", os.O_WRONLY, 0)
	if err != nil {
		panic(err)
	}
	defer memory.Close()
	if _, err = memory.WriteAt(bytes.Repeat([]byte("x"), int(bounds[1]-bounds[0])), bounds[0]); err != nil {
		panic(err)
	}
}

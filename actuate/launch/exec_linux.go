// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"fmt"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/muxlet/muxlet/actuate/process"
)

// become replaces this process by the program at path, with the default for
// every signal, none of them blocked, and no descriptor but 0, 1, 2 and kept. Go
// leaves a signal ignored that was so at its start (a shell's trap "" HUP), and
// exec hands that on. syscall.Exec also gives back the limit of open files that
// Go raises for itself.
func become(path string, argv, env []string, kept int) error {
	// The mask belongs to the thread that calls exec.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := process.SealDescriptors(kept); err != nil {
		return err
	}
	resetSignals()
	if err := unix.PthreadSigmask(unix.SIG_SETMASK, &unix.Sigset_t{}, nil); err != nil {
		return fmt.Errorf("unblock signals: %w", err)
	}
	return syscall.Exec(path, argv, env)
}

// What execve(2) takes: in all a quarter of the stack's limit, at most three quarters
// of 8 MiB, at least 128 KiB; and MAX_ARG_STRLEN of a single word, its NUL included.
const (
	mostArguments  = 6 << 20
	leastArguments = 128 << 10
	maxWord        = 128 << 10
)

// argumentSpace is how many bytes arguments and environment may take in all.
func argumentSpace() int {
	var stack unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_STACK, &stack); err != nil {
		return mostArguments
	}
	return int(max(min(stack.Cur/4, mostArguments), leastArguments))
}

// lastSignal is the kernel's _NSIG on every architecture that muxlet is built
// for.
const lastSignal = 64

// resetSignals sets every disposition to SIG_DFL, which is all zeros whatever the
// architecture's layout of struct sigaction. Those that cannot be set (SIGKILL,
// SIGSTOP) have no other one.
func resetSignals() {
	var action [8]uint64
	for sig := uintptr(1); sig <= lastSignal; sig++ {
		_, _, _ = syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, sig,
			uintptr(unsafe.Pointer(&action)), 0, lastSignal/8, 0, 0)
	}
}

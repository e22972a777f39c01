// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/muxlet/muxlet/spec"
)

const (
	// leaseWait and leasePoll bound the wait for a client that is just ending.
	leaseWait = 2 * time.Second
	leasePoll = 20 * time.Millisecond
	// leaseDescriptor is the lowest number that the lease should have. Shell
	// scripts use the small ones, and to re-use a descriptor drops the lock.
	// Linux keeps 64 descriptors within the process; for a higher number it makes
	// a table, and a process with threads then waits for every processor
	// (measured: 4 to 16 ms, the greater part of a restart).
	leaseDescriptor = 50
	// lowDescriptor is the lowest number that it has where a profile has set the
	// limit of open files below that.
	lowDescriptor = 10
)

// LeasePath is the file on which the client of session uid holds a lock.
func LeasePath(runtimeDir, uid string) string { return filepath.Join(runtimeDir, "lease", uid) }

// takeLease locks the session's lease. The lock is the process's own (fcntl, not
// OFD): it survives exec and no child inherits it. It is dropped by closing any
// descriptor of the file, so that the file is opened once and never removed.
// Linux before 5.11 drops it when a program with several threads executes
// another one; a free lease proves nothing anyway.
func (l *launcher) takeLease() *fault {
	fd, err := openLease(LeasePath(l.RuntimeDir, l.UID))
	if err != nil {
		return &fault{reason: spec.ReasonStateUnwritable, message: fmt.Sprintf(
			"The client was not executed: the session's lease could not be opened (%v); give access to %s.", err, l.RuntimeDir)}
	}
	err = lock(fd)
	for waited := time.Duration(0); isHeld(err) && waited < leaseWait; waited += leasePoll {
		time.Sleep(leasePoll)
		err = lock(fd)
	}
	switch {
	case err == nil:
		l.lease = fd
		return nil
	case isHeld(err):
		return &fault{reason: spec.ReasonLeaseHeld, message: fmt.Sprintf(
			"The client was not executed: another client of the session still runs (%s); muxlet ends it before it tries again.", holder(fd))}
	}
	return &fault{reason: spec.ReasonStateUnwritable, message: fmt.Sprintf(
		"The client was not executed: the session's lease could not be locked (%v); put the runtime directory %s on a local file system.", err, l.RuntimeDir)}
}

// dropLease is for a launcher that did not become a client: its receipt is on
// disk by then.
func (l *launcher) dropLease() {
	if l.lease != 0 {
		_ = syscall.Close(l.lease)
	}
}

// openLease opens the file without close-on-exec: the client is to keep it.
func openLease(path string) (int, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return 0, err
	}
	low, err := syscall.Open(path, syscall.O_RDWR|syscall.O_CREAT|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return 0, &os.PathError{Op: "open", Path: path, Err: err}
	}
	// Nothing is locked yet: the first descriptor may go.
	fd, err := unix.FcntlInt(uintptr(low), syscall.F_DUPFD, leaseDescriptor)
	if err != nil {
		fd, err = unix.FcntlInt(uintptr(low), syscall.F_DUPFD, lowDescriptor)
	}
	return fd, errors.Join(err, syscall.Close(low))
}

func lock(fd int) error {
	return syscall.FcntlFlock(uintptr(fd), syscall.F_SETLK, &syscall.Flock_t{
		Type: syscall.F_WRLCK, Whence: io.SeekStart,
	})
}

func isHeld(err error) bool {
	return errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EACCES)
}

func holder(fd int) string {
	query := syscall.Flock_t{Type: syscall.F_WRLCK, Whence: io.SeekStart}
	if err := syscall.FcntlFlock(uintptr(fd), syscall.F_GETLK, &query); err != nil || query.Type == syscall.F_UNLCK {
		return "its pid is not known"
	}
	return fmt.Sprintf("pid %d", query.Pid)
}

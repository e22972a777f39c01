// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"errors"
	"io"
	"io/fs"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/muxlet/muxlet/observe"
)

// LeaseOf says who holds the fcntl write lock on the file at path. A missing file
// is held by nobody (Gone); what cannot be asked is Unknown.
//
// It must never be called for a file on which the calling process itself holds a
// lock: such locks belong to the process, so that they are not seen by their
// owner, and the close at the end of the call would drop them.
func LeaseOf(path string) observe.Lease {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return observe.Lease{State: observe.Gone}
	case err != nil:
		return observe.Lease{}
	}
	defer unix.Close(fd)
	lock := unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart}
	for {
		err = unix.FcntlFlock(uintptr(fd), unix.F_GETLK, &lock)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	switch {
	case err != nil:
		return observe.Lease{}
	case lock.Type == unix.F_UNLCK:
		return observe.Lease{State: observe.Gone}
	}
	// The pid is 0 or -1 for a holder that has none in our namespace.
	return observe.Lease{State: observe.Running, Holder: max(0, int(lock.Pid))}
}

// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"errors"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// fileID is a file's identity: paths differ, links and mounts repeat.
type fileID struct{ dev, ino uint64 }

// stamp changes whenever the content of a file does, up to the resolution of
// the file system's clock.
type stamp struct {
	fileID
	size         int64
	mtime, ctime int64 // nanoseconds since the epoch
}

// stat is one look at a file.
type stat struct {
	stamp
	mode uint32
}

func (s stat) isDir() bool     { return s.mode&unix.S_IFMT == unix.S_IFDIR }
func (s stat) isRegular() bool { return s.mode&unix.S_IFMT == unix.S_IFREG }

// kind names what is neither a directory nor a regular file.
func (s stat) kind() string {
	switch s.mode & unix.S_IFMT {
	case unix.S_IFIFO:
		return "a FIFO"
	case unix.S_IFSOCK:
		return "a socket"
	}
	return "a device"
}

// settled tells whether a change after now must show in the stamp. File systems
// stamp with a coarse clock: a file written twice within one tick looks written
// once.
func (s stamp) settled(now time.Time) bool {
	const coarsest = 2 * time.Second
	return now.Sub(time.Unix(0, max(s.mtime, s.ctime))) > coarsest
}

// statPath follows symlinks.
func statPath(path string) (stat, error) {
	var st unix.Stat_t
	if err := retryInterrupted(func() error { return unix.Stat(path, &st) }); err != nil {
		return stat{}, &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	return statOf(&st), nil
}

func statFile(f *os.File) (stat, error) {
	var st unix.Stat_t
	if err := retryInterrupted(func() error { return unix.Fstat(int(f.Fd()), &st) }); err != nil {
		return stat{}, &fs.PathError{Op: "stat", Path: f.Name(), Err: err}
	}
	return statOf(&st), nil
}

func statOf(st *unix.Stat_t) stat {
	return stat{
		stamp: stamp{
			fileID: fileID{dev: uint64(st.Dev), ino: st.Ino},
			size:   st.Size,
			mtime:  time.Unix(st.Mtim.Unix()).UnixNano(),
			ctime:  time.Unix(st.Ctim.Unix()).UnixNano(),
		},
		mode: uint32(st.Mode),
	}
}

// retryInterrupted repeats a call that a signal broke off, as package os does.
func retryInterrupted(call func() error) error {
	for {
		if err := call(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

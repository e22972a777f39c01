// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

// Package socket opens Unix sockets that only their owner can reach, whatever the
// umask and the directory are. It never takes a socket away on which somebody
// answers, and never removes a file that it did not make.
package socket

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// dialTimeout bounds the question whether somebody answers on a socket.
const dialTimeout = time.Second

// ErrInUse says that somebody answers on the socket.
var ErrInUse = errors.New("another daemon answers there")

// Listen opens a Unix socket at path, mode 0600, below a directory that
// is made with mode 0700 when it is missing. A socket file that is there is
// replaced only when nobody answers on it; otherwise the error is
// ErrInUse. The socket is bound in a private directory and renamed, so
// that it never exists with a wider mode, whatever the umask is. Closing the
// listener removes the file if it is still this one.
func Listen(path string) (*Listener, error) {
	dir := filepath.Dir(path)
	if err := privateDir(dir); err != nil {
		return nil, fmt.Errorf("prepare the directory of the socket %s: %w", path, err)
	}
	if err := replaceable(path); err != nil {
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	bound, err := bind(dir, path)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	return bound, nil
}

// privateDir makes dir and what is above it. Of a directory that is there, or
// whose parent is in a shared place such as /tmp, it checks that nobody else can
// replace what is in it.
func privateDir(dir string) error {
	parent := filepath.Dir(dir)
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return err
	}
	open, err := shared(filepath.Dir(parent))
	if err != nil {
		return err
	}
	if open {
		if err := ownedAlone(parent); err != nil {
			return err
		}
	}
	err = os.Mkdir(dir, 0o700)
	if err == nil {
		return os.Chmod(dir, 0o700)
	}
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	return ownedAlone(dir)
}

// ownedAlone checks that dir is this user's and that no one else can write it.
func ownedAlone(dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is not a directory", dir)
	}
	if owner, ok := info.Sys().(*syscall.Stat_t); ok && int(owner.Uid) != os.Geteuid() {
		return fmt.Errorf("%s belongs to uid %d, not to %d: give a runtime directory of your own", dir, owner.Uid, os.Geteuid())
	}
	if info.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("%s can be written by others (mode %04o): chmod 700 it, or give another runtime directory", dir, info.Mode().Perm())
	}
	return nil
}

// shared says whether anybody may make a directory in dir, as in /tmp.
func shared(dir string) (bool, error) {
	info, err := os.Stat(dir)
	if err != nil {
		return false, err
	}
	return info.Mode().Perm()&0o002 != 0, nil
}

// replaceable is nil when path is free, or a socket on which nobody answers.
// Anything that is not proven stale is left alone.
func replaceable(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.Mode().Type() != fs.ModeSocket {
		return fmt.Errorf("%s exists and is not a socket: move it away", path)
	}
	conn, err := net.DialTimeout("unix", path, dialTimeout)
	switch {
	case err == nil:
		return errors.Join(ErrInUse, conn.Close())
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, fs.ErrNotExist):
		return nil
	default:
		return fmt.Errorf("%w, or may do so: %w", ErrInUse, err)
	}
}

func bind(dir, path string) (_ *Listener, err error) {
	private, err := os.MkdirTemp(dir, ".s")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(private)) }()
	if err := os.Chmod(private, 0o700); err != nil {
		return nil, err
	}
	temporary := filepath.Join(private, "s")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: temporary, Net: "unix"})
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false)
	if err := os.Chmod(temporary, 0o600); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	own, err := os.Lstat(temporary)
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	if err := os.Rename(temporary, path); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return &Listener{UnixListener: l, path: path, own: own}, nil
}

// Listener is a Unix listener whose file was renamed after it was bound.
type Listener struct {
	*net.UnixListener
	path string
	own  fs.FileInfo
}

// Addr is where the socket is now.
func (l *Listener) Addr() net.Addr { return &net.UnixAddr{Name: l.path, Net: "unix"} }

// Present says whether the socket's file is still this listener's own: without it
// nobody can reach it.
func (l *Listener) Present() bool {
	now, err := os.Lstat(l.path)
	return err == nil && os.SameFile(now, l.own)
}

// Close stops listening and removes the file, unless somebody replaced it.
func (l *Listener) Close() error {
	var err error
	if l.Present() {
		err = os.Remove(l.path)
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return errors.Join(l.UnixListener.Close(), err)
}

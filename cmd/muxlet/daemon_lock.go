// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/muxlet/muxlet/config"
)

// lockWait and lockPoll bound the wait for a lock whose holder is gone.
const (
	lockWait = 5 * time.Second
	lockPoll = 10 * time.Millisecond
)

// locks keep every other daemon away from our directories. They end with the
// process.
type locks struct {
	paths map[string]string // path → what it is the lock of
	held  map[string]*os.File
}

// lockAll takes the locks of the state and the runtime directory.
func lockAll(paths config.Paths) (*locks, error) {
	l := &locks{
		paths: map[string]string{
			paths.StateLock():   "state directory " + paths.StateDir,
			paths.RuntimeLock(): "runtime directory " + paths.RuntimeDir,
		},
		held: map[string]*os.File{},
	}
	if err := l.hold(); err != nil {
		l.release()
		return nil, err
	}
	return l, nil
}

// hold takes each lock whose file is not the one that we hold: at first all of
// them, later those whose directory somebody has removed. The error says that
// another daemon was faster.
func (l *locks) hold() error {
	for path, what := range l.paths {
		if held := l.held[path]; held != nil && sameFile(held, path) {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return fmt.Errorf("%s cannot be made: %w", what, cause(err))
		}
		f, err := lock(path, what)
		if err != nil {
			return err
		}
		if held := l.held[path]; held != nil {
			_ = held.Close()
		}
		l.held[path] = f
	}
	return nil
}

func sameFile(held *os.File, path string) bool {
	ours, err := held.Stat()
	if err != nil {
		return false
	}
	now, err := os.Stat(path)
	return err == nil && os.SameFile(ours, now)
}

func (l *locks) release() {
	for _, f := range l.held {
		_ = f.Close()
	}
}

// errLockHeld is matched by the error of lock when somebody else has it.
var errLockHeld = errors.New("is in use by another muxlet daemon")

// lock takes the lock file and writes our pid into it. flock(2) and not fcntl:
// it belongs to the open file, so that closing another descriptor of the same
// file does not drop it.
func lock(path, what string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be locked: %w", what, cause(err))
	}
	err = takeLock(f)
	if errors.Is(err, unix.EWOULDBLOCK) {
		holder := holderOf(f)
		_ = f.Close()
		return nil, fmt.Errorf("%s %w%s: stop that one, or give this one directories of its own with --state-dir and --runtime-dir", what, errLockHeld, holder)
	}
	if err == nil {
		err = f.Truncate(0)
	}
	if err == nil {
		_, err = f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	}
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("%s cannot be locked: %w", what, cause(err))
	}
	return f, nil
}

// takeLock locks f. A daemon that was killed while it forked a child leaves the
// lock with the child until that executes its program: while the holder that f
// names is gone, this waits a moment.
func takeLock(f *os.File) error {
	err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	for waited := time.Duration(0); errors.Is(err, unix.EWOULDBLOCK) && waited < lockWait && holderGone(f); waited += lockPoll {
		time.Sleep(lockPoll)
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	}
	return err
}

// holderGone says whether f names a process that is proven not to be there.
func holderGone(f *os.File) bool {
	pid, err := strconv.Atoi(holderPID(f))
	return err == nil && pid > 0 && errors.Is(unix.Kill(pid, 0), unix.ESRCH)
}

func holderOf(f *os.File) string {
	pid := holderPID(f)
	if pid == "" {
		return ""
	}
	return " (pid " + pid + ")"
}

// holderPID is what the holder of the lock has written into it; empty when that
// cannot be read.
func holderPID(f *os.File) string {
	data, err := io.ReadAll(io.NewSectionReader(f, 0, 32))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}

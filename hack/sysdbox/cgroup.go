// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package sysdbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sys/unix"
)

// prefix of the names of all boxes' directories.
const prefix = "sysdbox-"

// A cgroup is a directory of cgroup2 that is this box's. It is locked while the process
// that made it lives, whatever namespace that is in.
type cgroup struct {
	path string
	lock *os.File
}

// cgroupRoot finds where cgroup2 is mounted: at /sys/fs/cgroup, or beside the
// hierarchies of version 1.
func cgroupRoot() (string, error) {
	for _, path := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"} {
		var st unix.Statfs_t
		if err := unix.Statfs(path, &st); err == nil && st.Type == unix.CGROUP2_SUPER_MAGIC {
			return path, nil
		}
	}
	return "", errors.New("cgroup2 is not mounted at /sys/fs/cgroup or /sys/fs/cgroup/unified")
}

// newCgroup makes the directory of one box, and removes those of boxes whose maker is
// dead.
func newCgroup() (*cgroup, error) {
	top, err := cgroupRoot()
	if err != nil {
		return nil, err
	}
	sweep(top)
	delegate(top)
	path := filepath.Join(top, prefix+uuid.NewString()[:8])
	for range 10 { // the sweep of another box may take it before it is locked
		if err := os.Mkdir(path, 0o755); err != nil {
			return nil, fmt.Errorf("make a cgroup: %w", err)
		}
		lock, err := os.Open(path)
		if err != nil {
			continue
		}
		if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
			return nil, errors.Join(fmt.Errorf("lock the cgroup %s: %w", path, err), lock.Close())
		}
		if _, err := os.Stat(path); err == nil {
			delegate(path)
			return &cgroup{path: path, lock: lock}, nil
		}
		_ = lock.Close()
	}
	return nil, fmt.Errorf("the cgroup %s is removed again and again", path)
}

// delegate lets the directories below have the controllers that are to be had: none
// where they are bound to version 1, and then limits are accepted and not enforced.
func delegate(path string) {
	data, err := os.ReadFile(filepath.Join(path, "cgroup.controllers"))
	if err != nil {
		return
	}
	for _, controller := range strings.Fields(string(data)) {
		if slices.Contains([]string{"cpu", "io", "memory", "pids"}, controller) {
			// What is refused is not had in the box either.
			_ = os.WriteFile(filepath.Join(path, "cgroup.subtree_control"), []byte("+"+controller), 0o644)
		}
	}
}

// below makes a directory below the box's, and opens it for a process to start in.
func (c *cgroup) below(name string) (*os.File, error) {
	path := filepath.Join(c.path, name)
	if err := os.MkdirAll(path, 0o755); err != nil {
		return nil, fmt.Errorf("make a cgroup: %w", err)
	}
	return os.Open(path)
}

// clear removes all that is below: the processes there are ended or about to.
func (c *cgroup) clear() error {
	end := time.Now().Add(10 * time.Second)
	for {
		err := removeBelow(c.path)
		if err == nil || time.Now().After(end) {
			return err
		}
		time.Sleep(time.Millisecond)
	}
}

func (c *cgroup) remove() error {
	err := c.clear()
	if err == nil {
		err = os.Remove(c.path)
	}
	return errors.Join(err, c.lock.Close())
}

// removeBelow removes the directories below a cgroup, the deepest first.
func removeBelow(path string) error {
	var directories []string
	err := filepath.WalkDir(path, func(found string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() && found != path {
			directories = append(directories, found)
		}
		return nil // what vanished meanwhile is gone
	})
	for _, directory := range slices.Backward(directories) {
		if gone := os.Remove(directory); gone != nil && !errors.Is(gone, fs.ErrNotExist) {
			err = gone
		}
	}
	return err
}

// sweep removes the directories of boxes that nobody holds any more. What cannot be
// removed is left to the next box.
func sweep(top string) {
	left, err := filepath.Glob(filepath.Join(top, prefix+"*"))
	if err != nil {
		return
	}
	for _, path := range left {
		old, err := os.Open(path)
		if err != nil {
			continue
		}
		if unix.Flock(int(old.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil && removeBelow(path) == nil {
			_ = os.Remove(path)
		}
		_ = old.Close()
	}
}

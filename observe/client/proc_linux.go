// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"bufio"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/observe/process"
)

// flockHeld is one line of /proc/locks about a flock(2).
type flockHeld struct {
	pid   int
	inode uint64
}

// on says whether the lock is on that file. The device that /proc/locks names is the
// file system's own, which is not that of stat(2) on btrfs and overlays: the holder's
// open files decide, as far as they can be read.
func (l flockHeld) on(info fs.FileInfo) bool {
	if l.inode != inode(info).inode {
		return false
	}
	open, err := openFiles(l.pid)
	if err != nil {
		return true
	}
	return slices.ContainsFunc(open, func(o openFile) bool {
		other, err := os.Stat(o.link)
		return err == nil && os.SameFile(info, other)
	})
}

// heldLocks reads proc_locks(5): "7: FLOCK  ADVISORY  WRITE 4711 fe:00:10018829 0 EOF".
// A line with -> is of one that waits.
func heldLocks() []flockHeld {
	f, err := os.Open("/proc/locks")
	if err != nil {
		return nil
	}
	defer f.Close()
	var held []flockHeld
	for in := bufio.NewScanner(f); in.Scan(); {
		if l, ok := parseLock(in.Text()); ok {
			held = append(held, l)
		}
	}
	return held
}

func parseLock(line string) (flockHeld, bool) {
	fields := strings.Fields(line)
	if len(fields) < 6 || fields[1] != "FLOCK" {
		return flockHeld{}, false
	}
	pid, err := strconv.Atoi(fields[4])
	where := strings.Split(fields[5], ":")
	if err != nil || pid <= 0 || len(where) != 3 {
		return flockHeld{}, false
	}
	node, err := strconv.ParseUint(where[2], 10, 64)
	return flockHeld{pid, node}, err == nil
}

// openFile is a file that a process has open.
type openFile struct {
	// link is its entry in /proc/PID/fd, info that in /proc/PID/fdinfo, name the path by
	// which it was opened.
	link, info, name string
}

func openFiles(pid int) ([]openFile, error) {
	dir := fmt.Sprintf("/proc/%d/", pid)
	names, err := system{}.Names(dir + "fd")
	if err != nil {
		return nil, err
	}
	var open []openFile
	for _, n := range names {
		o := openFile{link: dir + "fd/" + n, info: dir + "fdinfo/" + n}
		if o.name, err = os.Readlink(o.link); err == nil {
			open = append(open, o)
		}
	}
	return open, nil
}

// locked says whether there is a flock on the open file, as proc_pid_fdinfo(5) tells:
// "lock:\t1: FLOCK  ADVISORY  WRITE 4711 fe:00:10018829 0 EOF".
func (o openFile) locked() bool {
	data, err := os.ReadFile(o.info)
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(line, "lock:"); ok {
			if _, ok := parseLock(rest); ok {
				return true
			}
		}
	}
	return false
}

// heldThreads returns the threads whose lock the client holds or, when it holds none,
// its only child that does: npm starts Codex by a wrapper.
func heldThreads(locks string, client observe.Process) []thread {
	if actual, err := filepath.EvalSymlinks(locks); err == nil {
		// The kernel knows files by their real path.
		locks = actual
	}
	if own := threadsOf(locks, client.PID); len(own) > 0 {
		return own
	}
	var wrapped []thread
	children, err := process.Children(client)
	if err != nil {
		return nil
	}
	for _, child := range children {
		threads := threadsOf(locks, child.PID)
		if len(threads) == 0 || sameProgram(client, child) {
			continue
		}
		if len(wrapped) > 0 {
			return nil
		}
		wrapped = threads
	}
	return wrapped
}

func threadsOf(locks string, pid int) []thread {
	open, err := openFiles(pid)
	if err != nil {
		return nil
	}
	rollouts := map[string]string{}
	var threads []thread
	for _, o := range open {
		id, lock := threadOf(locks, o.name)
		switch {
		case id == "":
		case !lock:
			rollouts[id] = o.name
		case o.locked():
			threads = append(threads, thread{id: id})
		}
	}
	for i := range threads {
		threads[i].rollout = rollouts[threads[i].id]
	}
	return threads
}

// sameProgram says whether two processes run the same program. What cannot be read
// is not the same.
func sameProgram(a, b observe.Process) bool {
	one, err := os.Stat(process.Executable(a))
	if err != nil {
		return false
	}
	other, err := os.Stat(process.Executable(b))
	return err == nil && os.SameFile(one, other)
}

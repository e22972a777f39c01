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
	// link is its entry in /proc/PID/fd, name the path by which it was opened.
	link, name string
}

func openFiles(pid int) ([]openFile, error) {
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	names, err := system{}.Names(dir)
	if err != nil {
		return nil, err
	}
	var open []openFile
	for _, n := range names {
		link := filepath.Join(dir, n)
		if name, err := os.Readlink(link); err == nil {
			open = append(open, openFile{link, name})
		}
	}
	return open, nil
}

// heldThreads returns the threads whose lock the client holds or, when it holds none,
// its only child that does: npm starts Codex by a wrapper.
func heldThreads(locks string, client observe.Process) []thread {
	if actual, err := filepath.EvalSymlinks(locks); err == nil {
		// The kernel knows files by their real path.
		locks = actual
	}
	held := map[int][]uint64{}
	for _, l := range heldLocks() {
		held[l.pid] = append(held[l.pid], l.inode)
	}
	if own := threadsOf(locks, client.PID, held[client.PID]); len(own) > 0 {
		return own
	}
	var wrapped []thread
	for pid, inodes := range held {
		if !isWrappedBy(client, pid) {
			continue
		}
		threads := threadsOf(locks, pid, inodes)
		if len(wrapped) > 0 && len(threads) > 0 {
			return nil
		}
		wrapped = append(wrapped, threads...)
	}
	return wrapped
}

func isWrappedBy(client observe.Process, pid int) bool {
	parent, err := process.Parent(pid)
	if err != nil || parent != client.PID {
		return false
	}
	p, live := process.Identify(pid)
	return live == observe.Running && !sameProgram(client, p)
}

func threadsOf(locks string, pid int, inodes []uint64) []thread {
	if len(inodes) == 0 {
		return nil
	}
	open, err := openFiles(pid)
	if err != nil {
		return nil
	}
	rollouts := map[string]string{}
	var threads []thread
	for _, o := range open {
		id, lock := threadOf(locks, o.name)
		if id == "" {
			continue
		}
		if !lock {
			rollouts[id] = o.name
			continue
		}
		info, err := os.Stat(o.link)
		if err == nil && slices.Contains(inodes, inode(info).inode) {
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

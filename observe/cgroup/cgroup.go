// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

// Package cgroup looks at control groups: which scopes of muxlet there are, which
// processes are in one, what memory it has, and what the kernel has ended in it. It reads
// files of the kernel alone, and changes nothing. Where there are no control groups there
// are no scopes either.
package cgroup

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/observe/process"
)

// Slice is the unit below which systemd puts the scopes of all clients.
const Slice = "muxlet.slice"

// Tree is the file system of the control groups that name processes: the unified
// hierarchy (cgroup2) or, where there is none, systemd's own.
type Tree struct {
	// Root is where it is mounted; empty where there is none.
	Root string
	// Slice is the control group of Slice, as /proc/PID/cgroup would have it.
	Slice string
}

// Find finds the tree of this system for the processes of the user uid. slice is where
// the manager of that user, as systemd starts it, puts Slice.
func Find(uid int) Tree {
	file, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return Tree{}
	}
	defer file.Close()
	return Tree{
		Root:  mountedAt(bufio.NewScanner(file)),
		Slice: fmt.Sprintf("/user.slice/user-%d.slice/user@%[1]d.service/%s", uid, Slice),
	}
}

// mountedAt is the mount point of the unified hierarchy, else of systemd's own, by the
// lines of a mountinfo file; see proc_pid_mountinfo(5).
func mountedAt(lines *bufio.Scanner) string {
	own := ""
	for lines.Scan() {
		mount, file, found := strings.Cut(lines.Text(), " - ")
		fields, kinds := strings.Fields(mount), strings.Fields(file)
		if !found || len(fields) < 5 || len(kinds) < 3 {
			continue
		}
		switch {
		case kinds[0] == "cgroup2":
			return fields[4]
		case kinds[0] == "cgroup" && slices.Contains(strings.Split(kinds[2], ","), "name=systemd"):
			own = fields[4]
		}
	}
	return own
}

// Own is the control group of this process.
func Own() (string, error) {
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", fmt.Errorf("read the own control group: %w", err)
	}
	return groupIn(string(text)), nil
}

// groupIn reads the path in a /proc/PID/cgroup: that of the unified hierarchy or, where
// it has no line or no path, of systemd's own. It is empty where there is neither.
func groupIn(text string) string {
	own := ""
	for line := range strings.Lines(text) {
		parts := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		switch {
		case len(parts) != 3:
		case parts[0] == "0" && parts[1] == "" && parts[2] != "/":
			return parts[2]
		case parts[1] == "name=systemd":
			own = parts[2]
		}
	}
	return own
}

// Of are the scopes of an instance that are there, by the uid of their session, and of
// each the incarnation.
func (t Tree) Of(instance string) (map[string]map[int64]observe.Scope, error) {
	found := map[string]map[int64]observe.Scope{}
	if t.Root == "" {
		return found, nil
	}
	entries, err := os.ReadDir(t.path(t.Slice))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list scopes: %w", err)
	}
	for _, entry := range entries {
		uid, incarnation, ours := observe.ParseScopeName(instance, entry.Name())
		if !ours || !entry.IsDir() {
			continue
		}
		if found[uid] == nil {
			found[uid] = map[int64]observe.Scope{}
		}
		found[uid][incarnation] = observe.Scope{Name: entry.Name(), ControlGroup: filepath.Join(t.Slice, entry.Name())}
	}
	return found, nil
}

// Members are the processes in a scope, and in what control groups were made below it,
// that this process may signal. A scope that is gone has none.
func (t Tree) Members(s observe.Scope) ([]observe.Process, error) {
	if t.Root == "" || s.ControlGroup == "" {
		return nil, nil
	}
	var members []observe.Process
	err := filepath.WalkDir(t.path(s.ControlGroup), func(path string, entry fs.DirEntry, err error) error {
		switch {
		case vanished(err):
			return nil
		case err != nil || !entry.IsDir():
			return err
		}
		found, err := membersOf(filepath.Join(path, "cgroup.procs"))
		members = append(members, found...)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list the processes in %s: %w", s.Name, err)
	}
	return members, nil
}

// membersOf identifies the processes that a cgroup.procs file names. A pid may pass to
// another process before that one's start time is read: only who is named again
// afterwards is a member.
func membersOf(path string) ([]observe.Process, error) {
	first, err := pidsIn(path)
	if err != nil || len(first) == 0 {
		return nil, err
	}
	var found []observe.Process
	for _, pid := range first {
		if p, live := process.Identify(pid); live == observe.Running && mayEnd(pid) {
			found = append(found, p)
		}
	}
	second, err := pidsIn(path)
	return slices.DeleteFunc(found, func(p observe.Process) bool { return !slices.Contains(second, p.PID) }), err
}

func pidsIn(path string) ([]int, error) {
	text, err := os.ReadFile(path)
	if vanished(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var pids []int
	for word := range strings.FieldsSeq(string(text)) {
		// 0 is a process of another pid namespace.
		if pid, err := strconv.Atoi(word); err == nil && pid > 1 && pid != os.Getpid() {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// vanished says whether a control group was removed: its files may be gone, or be there
// and give ENODEV.
func vanished(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENODEV)
}

// mayEnd leaves out what this process may not signal, such as a program that a client has
// started by sudo: it would be waited for, for ever.
func mayEnd(pid int) bool {
	if os.Geteuid() == 0 {
		return true
	}
	info, err := os.Stat(filepath.Join("/proc", strconv.Itoa(pid)))
	if err != nil {
		return false
	}
	owner, known := info.Sys().(*syscall.Stat_t)
	return known && int(owner.Uid) == os.Geteuid()
}

// Memory is what a control group uses and may use, in bytes. limit is -1 where it has
// none. ok is false where the system does not tell.
func (t Tree) Memory(group string) (now, limit int64, ok bool) {
	if t.Root == "" || group == "" {
		return 0, 0, false
	}
	now, ok = numberIn(filepath.Join(t.path(group), "memory.current"))
	if !ok {
		return 0, 0, false
	}
	limit, limited := numberIn(filepath.Join(t.path(group), "memory.max"))
	if !limited {
		limit = -1
	}
	return now, limit, true
}

func numberIn(path string) (int64, bool) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	return n, err == nil
}

// oomKills is the number of processes that the kernel has ended in a control group.
func (t Tree) oomKills(group string) (int, error) {
	text, err := os.ReadFile(filepath.Join(t.path(group), eventsFile))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if count, found := strings.CutPrefix(strings.TrimSpace(line), "oom_kill "); found {
			return strconv.Atoi(count)
		}
	}
	return 0, nil
}

// eventsFile counts what has come of a control group's want of memory.
const eventsFile = "memory.events"

func (t Tree) path(group string) string { return filepath.Join(t.Root, group) }

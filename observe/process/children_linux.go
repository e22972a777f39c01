// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/muxlet/muxlet/observe"
)

// childrenLooks is how often the kernel's list is read until it says the same twice.
const childrenLooks = 5

// Children returns the processes that p has started and that run, by
// proc_pid_children(5); the whole process table is read only where the kernel does not
// keep that list. The kernel may pass over a child while another one ends: what it
// says counts once it has said it twice. The error says that the children are not
// known, as those of a process that has ended.
func Children(p observe.Process) ([]observe.Process, error) {
	before, err := childList(p.PID)
	for range childrenLooks {
		if err != nil {
			return childrenInTable(p)
		}
		var now string
		if now, err = childList(p.PID); err == nil && now == before {
			return identifyChildren(p, now)
		}
		before = now
	}
	return childrenInTable(p)
}

func childList(pid int) (string, error) {
	dir := procPath(pid, "task")
	tasks, err := os.ReadDir(dir)
	if err != nil {
		return "", err
	}
	var list strings.Builder
	for _, task := range tasks {
		pids, err := os.ReadFile(dir + "/" + task.Name() + "/children")
		if err != nil {
			return "", err
		}
		list.Write(pids)
		list.WriteByte(' ')
	}
	return list.String(), nil
}

func identifyChildren(p observe.Process, list string) ([]observe.Process, error) {
	var children []observe.Process
	for _, text := range strings.Fields(list) {
		pid, err := strconv.Atoi(text)
		if err != nil {
			return nil, fmt.Errorf("looking for the children of process %s: %w", p, err)
		}
		child, live := Identify(pid)
		switch {
		case live == observe.LivenessUnknown:
			return nil, fmt.Errorf("looking for the children of process %s: process %d could not be identified", p, pid)
		case live == observe.Running && child.Ticks >= p.Ticks:
			children = append(children, child)
		}
	}
	// Judged after the list was read: if p runs now, the list was its own.
	if State(p) != observe.Running {
		return nil, fmt.Errorf("looking for the children of process %s: %w", p, os.ErrProcessDone)
	}
	return children, nil
}

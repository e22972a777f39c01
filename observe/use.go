// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"maps"
	"slices"
	"time"
)

// ProcessUse is one line of the process table, with what the process has used so far.
type ProcessUse struct {
	Process
	// Parent is the pid of its parent.
	Parent int
	// CPU is its own time and that of all descendants that were waited for.
	CPU time.Duration
	// Command is the short name that the process can give itself.
	Command string
	// Ended: only its exit status is left, until its parent waits for it.
	Ended bool
}

// Trees gives each root its processes: itself, its descendants, and those that have left it
// and still carry its name. carries tells that name of a process, empty for none; it is asked
// for those alone that belong to nobody by descent. A root within the tree of another one
// has its own. A root that is not in the table, with its ticks, has no descendants.
func Trees(table []ProcessUse, roots map[string]Process, carries func(pid int) string) map[string][]ProcessUse {
	t := forest{children: map[int][]ProcessUse{}, roots: map[Process]bool{}, taken: map[int]bool{}}
	byPID := map[int]ProcessUse{}
	for _, p := range table {
		byPID[p.PID] = p
		t.children[p.Parent] = append(t.children[p.Parent], p)
	}
	for _, root := range roots {
		t.roots[root] = true
	}
	trees := map[string][]ProcessUse{}
	for _, name := range slices.Sorted(maps.Keys(roots)) {
		if p, ok := byPID[roots[name].PID]; ok && p.Process == roots[name] {
			trees[name] = t.below(p)
		}
	}
	for _, p := range table {
		if t.taken[p.PID] || t.roots[p.Process] {
			continue
		}
		if name := carries(p.PID); name != "" {
			trees[name] = append(trees[name], p)
		}
	}
	return trees
}

// forest is a process table by parents.
type forest struct {
	children map[int][]ProcessUse
	roots    map[Process]bool
	taken    map[int]bool
}

func (t forest) below(root ProcessUse) []ProcessUse {
	tree := []ProcessUse{root}
	t.taken[root.PID] = true
	for i := 0; i < len(tree); i++ {
		for _, child := range t.children[tree[i].PID] {
			// A child is not older than its parent: that would be a pid re-used while the
			// table was read.
			if t.taken[child.PID] || t.roots[child.Process] || child.Ticks < tree[i].Ticks {
				continue
			}
			t.taken[child.PID] = true
			tree = append(tree, child)
		}
	}
	return tree
}

// CPUBetween is the time that a tree has used between two readings of the process table.
// newest is the highest start time that the first reading had: what is younger began in
// between. The time of a process that has ended is with the parent that waited for it; where
// that parent is not of the tree it is lost, as is what a process that joined the tree had
// used before.
func CPUBetween(before, after []ProcessUse, newest uint64) time.Duration {
	earlier, later := map[Process]ProcessUse{}, map[int]bool{}
	for _, p := range before {
		earlier[p.Process] = p
	}
	var used time.Duration
	for _, p := range after {
		later[p.PID] = true
		if old, ok := earlier[p.Process]; ok {
			used += p.CPU - old.CPU
			delete(earlier, p.Process)
		} else if p.Ticks >= newest {
			used += p.CPU
		}
	}
	for _, p := range earlier {
		if later[p.Parent] {
			used -= p.CPU
		}
	}
	return max(0, used)
}

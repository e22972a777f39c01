// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"fmt"
	"os"
	"slices"

	"github.com/muxlet/muxlet/observe"
)

// Descendants returns the processes below p that run: its children, theirs and so
// on, parents before their children. A process whose parent has ended belongs to
// init, and is none. What forks meanwhile may be missed: what is to end it all
// looks again. The error wraps os.ErrProcessDone when p does not run: then nobody
// can say what its descendants were.
func Descendants(p observe.Process) ([]observe.Process, error) {
	table, err := readTable()
	if err != nil {
		return nil, fmt.Errorf("looking for the descendants of process %s: %w", p, err)
	}
	children := make(map[int][]entry, len(table))
	for _, e := range table {
		children[e.parent] = append(children[e.parent], e)
	}
	// Judged after the table was read: if p runs now, it was the parent then.
	switch State(p) {
	case observe.Gone:
		return nil, fmt.Errorf("looking for the descendants of process %s: %w", p, os.ErrProcessDone)
	case observe.LivenessUnknown:
		return nil, fmt.Errorf("looking for the descendants of process %s: it could not be identified", p)
	case observe.Running:
	}
	var below []observe.Process
	for queue := []observe.Process{p}; len(queue) > 0; queue = queue[1:] {
		for _, child := range children[queue[0].PID] {
			// A child is not older than its parent: that would be a pid re-used
			// while the table was read.
			if child.ended || child.ticks < queue[0].Ticks {
				continue
			}
			below = append(below, child.identity())
			queue = append(queue, child.identity())
		}
	}
	return below, nil
}

// childrenInTable are the children of p as the whole process table has them.
func childrenInTable(p observe.Process) ([]observe.Process, error) {
	below, err := Descendants(p)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(below, func(d observe.Process) bool {
		parent, err := Parent(d.PID)
		return err != nil || parent != p.PID
	}), nil
}

// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/muxlet/muxlet/observe"
)

// Engine returns the process that does the work of a client: of those whose program
// has that base name the client itself, else its oldest child, or child's child below
// shells only. It is zero when there is none. What the engine starts in turn is none,
// whatever it is called. The error says that it is not known whether there is one.
func Engine(client observe.Process, executable string) (observe.Process, error) {
	program, err := programNow(client)
	if program == executable {
		return client, nil
	}
	var engine observe.Process
	if err == nil {
		engine, err = engineBelow(client, executable, maxAncestors)
	}
	if err != nil {
		return observe.Process{}, fmt.Errorf("looking for %s below process %s: %w", executable, client, err)
	}
	return engine, nil
}

// engineBelow looks below p, which is the client or a shell.
func engineBelow(p observe.Process, executable string, depth int) (observe.Process, error) {
	children, err := Children(p)
	if err != nil {
		return observe.Process{}, err
	}
	slices.SortFunc(children, func(a, b observe.Process) int { return cmp.Compare(a.Ticks, b.Ticks) })
	var unknown error
	for _, child := range children {
		program, err := programNow(child)
		switch {
		case program == executable:
			return child, nil
		case err == nil && observe.IsShell(program) && depth > 0:
			var found observe.Process
			if found, err = engineBelow(child, executable, depth-1); !found.IsZero() {
				return found, nil
			}
		}
		if err != nil && State(child) != observe.Gone {
			unknown = err
		}
	}
	return observe.Process{}, unknown
}

// programNow is the base name of the program that p runs, also when its file was
// replaced meanwhile.
func programNow(p observe.Process) (string, error) {
	program := programOf(p.PID)
	if program == "" || State(p) != observe.Running {
		return "", fmt.Errorf("the program of process %s could not be read", p)
	}
	return strings.TrimSuffix(path.Base(program), " (deleted)"), nil
}

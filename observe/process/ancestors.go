// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"fmt"

	"github.com/muxlet/muxlet/observe"
)

// maxAncestors bounds the line of ancestors, the process itself included.
const maxAncestors = 64

// Ancestors returns the process that has the pid now and those above it, each the
// parent of the one before it, without init, at most 64. Where one could not be
// read, or was started after its child (its pid was re-used meanwhile), the line
// ends. The error says that the process itself does not run or could not be read.
func Ancestors(pid int) ([]observe.Ancestor, error) {
	e, err := lookUp(pid)
	if err != nil {
		return nil, err
	}
	if e.ended {
		return nil, fmt.Errorf("looking up process %d: %w", pid, errNoProcess)
	}
	line := []observe.Ancestor{ancestor(e)}
	for e.parent > 1 && len(line) < maxAncestors {
		above, err := lookUp(e.parent)
		if err != nil || above.ended || above.ticks > e.ticks {
			break
		}
		e = above
		line = append(line, ancestor(e))
	}
	return line, nil
}

func ancestor(e entry) observe.Ancestor {
	return observe.Ancestor{Process: e.identity(), Executable: programOf(e.pid)}
}

// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"errors"
	"fmt"

	"github.com/muxlet/muxlet/observe"
)

// ErrUseUnknown says that this system does not tell what processes use.
var ErrUseUnknown = fmt.Errorf("this system does not tell what processes use: that needs /proc, as Linux has it: %w", errors.ErrUnsupported)

// UIDCarried is the uid of the session in whose client a process, or an ancestor of it, has
// begun: what its environment says, be the process where it may. It is empty for none and
// where it could not be read, and proves nothing.
func UIDCarried(pid int) string {
	environment, err := environmentOf(pid)
	if err != nil {
		return ""
	}
	text, _ := variable(environment, observe.EnvClient)
	mark, err := observe.ParseMark(text)
	if err != nil {
		return ""
	}
	return mark.UID
}

// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package process

import "github.com/muxlet/muxlet/observe"

// Children returns the processes that p has started and that run. The error says that
// they are not known, as those of a process that has ended.
func Children(p observe.Process) ([]observe.Process, error) { return childrenInTable(p) }

// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package client

import (
	"io/fs"

	"github.com/muxlet/muxlet/observe"
)

// flockHeld would be a flock(2) of another process: this platform does not tell of
// them without taking the lock.
type flockHeld struct{ pid int }

func (flockHeld) on(fs.FileInfo) bool { return false }

func heldLocks() []flockHeld { return nil }

func heldThreads(string, observe.Process) []thread { return nil }

func sameProgram(observe.Process, observe.Process) bool { return false }

// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package actuate

import "fmt"

// Fence says whether an attempt may still execute its client.
type Fence int

// The states of a fence. Only FenceOpen lets a client be executed.
const (
	// FenceUnknown: the record could not be read.
	FenceUnknown Fence = iota
	// FenceClosed: the attempt was given up, or it is not the pending one.
	FenceClosed
	// FenceOpen: the attempt is pending.
	FenceOpen
)

// String is the word shown to people.
func (f Fence) String() string {
	switch f {
	case FenceClosed:
		return "Closed"
	case FenceOpen:
		return "Open"
	case FenceUnknown:
		return "Unknown"
	}
	return fmt.Sprintf("Fence(%d)", int(f))
}

// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package observe

// Terminal is a terminal that is attached to a tmux server.
type Terminal struct {
	// TTY is its path as the client of tmux has it, PID that client.
	TTY string
	PID int
	// Name is its TERM, Type what it says of itself; empty when it says nothing.
	Name, Type string
	// Written counts the bytes that tmux has meant for it so far.
	Written uint64
}

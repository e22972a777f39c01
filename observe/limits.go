// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package observe

// Use is how much is in use of something that runs out. The zero value says that
// nothing is known.
type Use struct {
	Used, Limit int
}

// Left is how much is left; ok is false when that is not known.
func (u Use) Left() (left int, ok bool) { return u.Limit - u.Used, u.Limit > 0 }

// Limits are what else a start needs of the system.
type Limits struct {
	// Terminals are the pseudo-terminals of the whole system.
	Terminals Use
	// ServerFiles are the file descriptors of the tmux server, OwnFiles those of this
	// process. ServerHardLimit is how far the server's limit can be raised.
	ServerFiles, OwnFiles Use
	ServerHardLimit       int
}

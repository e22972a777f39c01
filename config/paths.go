// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"crypto/sha256"
	"encoding/hex"
	"path/filepath"
	"strconv"
)

// Paths are the files that the daemon and its clients must agree on.
type Paths struct {
	// StateDir and RuntimeDir, absolute.
	StateDir, RuntimeDir string
	// UID of the user whose files these are.
	UID int
}

// maxSocketPath fits into a socket address on every system, in bytes, with one to
// spare for the name of the other sockets.
const maxSocketPath = 100

// SocketDir is the directory of the sockets: RuntimeDir, or one of its own below
// /tmp/muxlet-<uid> when a socket's path would be too long there. Who makes it
// gives it mode 0700 and refuses one, or a parent below /tmp, that belongs to
// another user.
func (p Paths) SocketDir() string {
	if len(filepath.Join(p.RuntimeDir, apiSocket)) <= maxSocketPath {
		return p.RuntimeDir
	}
	sum := sha256.Sum256([]byte(p.RuntimeDir))
	return filepath.Join("/tmp", "muxlet-"+strconv.Itoa(p.UID), hex.EncodeToString(sum[:8]))
}

// apiSocket is at most one byte shorter than the other sockets' names. Where sockets
// are is decided by it alone, as ever: a live tmux server is found there.
const apiSocket = "muxlet.sock"

// APISocket is where the daemon serves its API.
func (p Paths) APISocket() string { return filepath.Join(p.SocketDir(), apiSocket) }

// TmuxSocket is the socket of muxlet's own tmux server.
func (p Paths) TmuxSocket() string { return filepath.Join(p.SocketDir(), "tmux.sock") }

// ReportsSocket takes the reports of the clients' hooks.
func (p Paths) ReportsSocket() string { return filepath.Join(p.SocketDir(), "reports.sock") }

// Spool is where reports wait for the daemon.
func (p Paths) Spool() string { return filepath.Join(p.StateDir, "reports") }

// StateLock is held by the only daemon that writes to StateDir.
func (p Paths) StateLock() string { return filepath.Join(p.StateDir, "lock") }

// RuntimeLock is held by the only daemon that uses RuntimeDir.
func (p Paths) RuntimeLock() string { return filepath.Join(p.RuntimeDir, "lock") }

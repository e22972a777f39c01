// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package record

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/muxlet/muxlet/spec/durable"
)

// What must be free for a start: its record is written several times, and the
// launcher must be able to write a receipt.
const (
	minFreeBytes  = 1 << 20
	minFreeInodes = 64
	// readOnly is ST_RDONLY of Linux and MNT_RDONLY of darwin.
	readOnly = 1
)

// Room says whether the state directory's file system has room for a start. The
// error is a sentence for a person. A file system that does not tell has room.
func (s *Store) Room() error {
	var st unix.Statfs_t
	if err := unix.Statfs(s.state, &st); err != nil {
		return fmt.Errorf("ask for the free space of state directory %s: %w", s.state, err)
	}
	if st.Flags&readOnly != 0 {
		return fmt.Errorf("state directory %s is on a read-only file system: make it writable (mount -o remount,rw), and starts go on by themselves", s.state)
	}
	free := uint64(st.Bavail) * uint64(st.Bsize)
	if st.Blocks > 0 && free < minFreeBytes {
		return fmt.Errorf("the disk of state directory %s is full (%d KiB are free, %d are needed): make room, and starts go on by themselves", s.state, free>>10, minFreeBytes>>10)
	}
	if st.Files > 0 && st.Ffree < minFreeInodes {
		return fmt.Errorf("the disk of state directory %s has only %d inodes free: remove files, and starts go on by themselves", s.state, st.Ffree)
	}
	return nil
}

// Try returns once the disk of the state directory has taken a few bytes, or has refused
// them: Room is answered from memory where a write waits for minutes. It waits for no lock.
func (s *Store) Try() error {
	probe := filepath.Join(s.state, ".probe")
	err := durable.WriteFile(probe, []byte("probe\n"), 0o600)
	if err == nil {
		err = os.Remove(probe)
	}
	if err != nil {
		return fmt.Errorf("try the disk of state directory %s: %w", s.state, err)
	}
	return nil
}

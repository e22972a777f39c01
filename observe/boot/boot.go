// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

// Package boot reads the boot id and says, for one line of the log, whether the
// host was rebooted since it was last stored. It decides nothing: tmux and the
// process table are asked every time, whatever it says.
package boot

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"

	"github.com/google/uuid"
)

const (
	// idLength is the length of a boot id in bytes.
	idLength = 36
	// maxFile bounds what is read, in bytes.
	maxFile = 128
)

// Change is what two boot ids say about the time between them.
type Change int

// The changes.
const (
	// Unknown: one of the ids is missing, unreadable or damaged.
	Unknown Change = iota
	// HostRebooted: the ids differ.
	HostRebooted
	// DaemonRestarted: the ids are equal.
	DaemonRestarted
)

// String is the phrase of the log line.
func (c Change) String() string {
	switch c {
	case HostRebooted:
		return "host rebooted"
	case DaemonRestarted:
		return "daemon restarted"
	case Unknown:
		return "unknown"
	}
	return fmt.Sprintf("Change(%d)", int(c))
}

// Read returns the boot id in the file at path, such as
// /proc/sys/kernel/random/boot_id, without the white space around it. The error
// wraps fs.ErrNotExist when there is no file; a file that holds anything else than
// a UUID is an error too.
func Read(path string) (string, error) {
	// Non-blocking, for the path is a setting and might name a pipe.
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return "", fmt.Errorf("opening the boot id: %w", err)
	}
	defer file.Close()
	content := make([]byte, maxFile)
	n, err := io.ReadFull(file, content)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return "", fmt.Errorf("reading the boot id: %w", err)
	}
	id := strings.TrimSpace(string(content[:n]))
	if !valid(id) {
		return "", fmt.Errorf("reading the boot id in %s: not a UUID", path)
	}
	return id, nil
}

// Compare says what a stored and the current boot id mean together. Each error of
// reading or storing either makes it Unknown.
func Compare(stored, current string, errs ...error) Change {
	switch {
	case errors.Join(errs...) != nil, !valid(stored), !valid(current):
		return Unknown
	case strings.EqualFold(stored, current):
		return DaemonRestarted
	}
	return HostRebooted
}

func valid(id string) bool {
	return len(id) == idLength && uuid.Validate(id) == nil
}

// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package durable

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// M3: a write that does not fit leaves the old content and nothing else.
func TestAFullDiskKeepsTheOldContent(t *testing.T) {
	if os.Geteuid() != 0 {
		require.Empty(t, os.Getenv("CI"), "CI must run this test as root: it mounts a file system")
		t.Skip("mounting needs root")
	}
	dir := t.TempDir()
	require.NoError(t, unix.Mount("tmpfs", dir, "tmpfs", 0, "size=64k"), "mount a small tmpfs: this test needs CAP_SYS_ADMIN")
	t.Cleanup(func() { require.NoError(t, unix.Unmount(dir, unix.MNT_DETACH)) })
	path := filepath.Join(dir, "a")
	require.NoError(t, WriteFile(path, []byte("old"), 0o600))
	require.ErrorIs(t, WriteFile(path, bytes.Repeat([]byte("x"), 128<<10), 0o600), unix.ENOSPC)
	require.Equal(t, []string{"a"}, names(t, dir), "the temporary file is gone")
	got, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "old", string(got))
	require.NoError(t, WriteFile(path, []byte("new"), 0o600), "and there is room for what fits")
}

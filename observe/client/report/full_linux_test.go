// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// On a full disk a hook gives up; once there is room the next one is kept.
func TestAFullDiskLeavesNoHalfReport(t *testing.T) {
	if os.Geteuid() != 0 {
		require.Empty(t, os.Getenv("CI"), "CI must run this test as root: it mounts a file system")
		t.Skip("mounting needs root")
	}
	p := newPlace(t)
	p.prepare(t)
	require.NoError(t, unix.Mount("tmpfs", p.spool, "tmpfs", 0, "size=64k"), "mount a small tmpfs: this test needs CAP_SYS_ADMIN")
	t.Cleanup(func() { require.NoError(t, unix.Unmount(p.spool, unix.MNT_DETACH)) })
	filler := filepath.Join(p.spool, "filler")
	require.ErrorIs(t, os.WriteFile(filler, bytes.Repeat([]byte("x"), 128<<10), 0o600), unix.ENOSPC)
	require.ErrorIs(t, ours(p, event("Stop", "id-1")).Run(), unix.ENOSPC)
	entries, err := os.ReadDir(p.spool)
	require.NoError(t, err)
	require.Len(t, entries, 1, "only what fills it")
	require.NoError(t, os.Remove(filler))
	require.NoError(t, ours(p, event("Stop", "id-2")).Run())
	require.Equal(t, []string{"id-2"}, conversations(t, p.spool))

	require.NoError(t, unix.Mount("", p.spool, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""))
	require.ErrorIs(t, ours(p, event("Stop", "id-3")).Run(), unix.EROFS)
}

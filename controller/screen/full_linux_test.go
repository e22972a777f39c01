// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// M3: what is left of a disk belongs to the records: no start fails for lack of
// what a screen has taken.
func TestAScreenTakesNothingOfADiskThatIsNearlyFull(t *testing.T) {
	if os.Geteuid() != 0 {
		require.Empty(t, os.Getenv("CI"), "CI must run this test as root: it mounts a file system")
		t.Skip("mounting needs root")
	}
	dir := t.TempDir()
	require.NoError(t, unix.Mount("tmpfs", dir, "tmpfs", 0, "size=8m"), "mount a small tmpfs: this test needs CAP_SYS_ADMIN")
	t.Cleanup(func() { require.NoError(t, unix.Unmount(dir, unix.MNT_DETACH)) })
	s := NewStore(dir)
	require.NoError(t, s.Save("u", saved(1, "old")))
	filler := filepath.Join(dir, "filler")
	require.NoError(t, os.WriteFile(filler, make([]byte, 5<<20), 0o600))
	require.ErrorContains(t, s.Save("u", saved(2, "new")), "left to records")
	got, err := s.Load("u")
	require.NoError(t, err)
	assert.Equal(t, []string{"old"}, got.Lines)
	require.NoError(t, os.Remove(filler))
	require.NoError(t, s.Save("u", saved(2, "new")))
}

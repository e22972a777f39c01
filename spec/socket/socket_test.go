// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package socket

import (
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// socketPath is short enough for a Unix socket.
func socketPath(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "mx")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return filepath.Join(dir, "run", "muxlet.sock")
}

func mode(t *testing.T, path string) os.FileMode {
	t.Helper()
	info, err := os.Lstat(path)
	require.NoError(t, err)
	return info.Mode()
}

// leaveStale stops listening and leaves the file, as a kill -9 does.
func leaveStale(t *testing.T, l *Listener) {
	t.Helper()
	require.NoError(t, l.UnixListener.Close())
}

// Not parallel: the umask is the whole process's.
func TestTheSocketIsItsOwnersAloneWhateverTheUmaskIs(t *testing.T) {
	for _, umask := range []int{0, 0o022, 0o777} {
		path := socketPath(t)
		old := syscall.Umask(umask)
		if umask == 0o777 {
			// Directories above the runtime directory are made by the same umask; here
			// only the last one is missing.
			require.NoError(t, os.Chmod(filepath.Dir(filepath.Dir(path)), 0o700))
		}
		l, err := Listen(path)
		syscall.Umask(old)
		require.NoError(t, err, "%o", umask)
		assert.Equal(t, os.ModeSocket|0o600, mode(t, path), "%o", umask)
		assert.Equal(t, os.ModeDir|0o700, mode(t, filepath.Dir(path)), "%o", umask)
		entries, err := os.ReadDir(filepath.Dir(path))
		require.NoError(t, err)
		assert.Len(t, entries, 1, "nothing else stays behind")
		assert.Equal(t, path, l.Addr().String())
		require.NoError(t, l.Close())
		assert.NoFileExists(t, path)
	}
}

// R1
func TestAStaleSocketIsReplaced(t *testing.T) {
	path := socketPath(t)
	first, err := Listen(path)
	require.NoError(t, err)
	leaveStale(t, first)
	require.Equal(t, os.ModeSocket|0o600, mode(t, path))
	second, err := Listen(path)
	require.NoError(t, err)
	conn, err := net.Dial("unix", path)
	require.NoError(t, err)
	require.NoError(t, conn.Close())
	require.NoError(t, second.Close())
}

// O1
func TestASocketOnWhichSomebodyAnswersIsLeftAlone(t *testing.T) {
	path := socketPath(t)
	first, err := Listen(path)
	require.NoError(t, err)
	_, err = Listen(path)
	require.ErrorIs(t, err, ErrInUse)
	require.ErrorContains(t, err, path)
	conn, err := net.Dial("unix", path)
	require.NoError(t, err, "the first one still has its socket")
	require.NoError(t, conn.Close())
	require.NoError(t, first.Close())
}

func TestAnotherFileInTheWayIsNotRemoved(t *testing.T) {
	path := socketPath(t)
	require.NoError(t, os.Mkdir(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, []byte("mine"), 0o600))
	_, err := Listen(path)
	require.ErrorContains(t, err, "is not a socket")
	assert.FileExists(t, path)
}

func TestADirectoryThatOthersCanWriteIsRefused(t *testing.T) {
	path := socketPath(t)
	require.NoError(t, os.Mkdir(filepath.Dir(path), 0o700))
	require.NoError(t, os.Chmod(filepath.Dir(path), 0o777))
	_, err := Listen(path)
	require.ErrorContains(t, err, "can be written by others (mode 0777)")
	require.NoError(t, os.Chmod(filepath.Dir(path), 0o755))
	l, err := Listen(path)
	require.NoError(t, err, "one that they can only read is not")
	require.NoError(t, l.Close())
}

// Anybody may make a directory in /tmp, also the one that ours is to be in.
func TestAParentInASharedPlaceMustBeOurOwn(t *testing.T) {
	shared := filepath.Dir(filepath.Dir(socketPath(t)))
	require.NoError(t, os.Chmod(shared, 0o777))
	parent := filepath.Join(shared, "mx")
	require.NoError(t, os.Mkdir(parent, 0o700))
	require.NoError(t, os.Chmod(parent, 0o777))
	_, err := Listen(filepath.Join(parent, "run", "muxlet.sock"))
	require.ErrorContains(t, err, "can be written by others (mode 0777)")
}

func TestAFileInPlaceOfTheDirectoryIsAClearError(t *testing.T) {
	path := socketPath(t)
	require.NoError(t, os.WriteFile(filepath.Dir(path), nil, 0o600))
	_, err := Listen(path)
	require.ErrorContains(t, err, "is not a directory")
}

func TestClosingLeavesASuccessorsSocketAlone(t *testing.T) {
	path := socketPath(t)
	first, err := Listen(path)
	require.NoError(t, err)
	require.NoError(t, os.Remove(path))
	assert.False(t, first.Present())
	second, err := Listen(path)
	require.NoError(t, err)
	assert.True(t, second.Present())
	assert.False(t, first.Present(), "the file there is another listener's")
	require.NoError(t, first.Close())
	assert.Equal(t, os.ModeSocket|0o600, mode(t, path))
	require.NoError(t, second.Close())
}

// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func mode(t *testing.T, path string) os.FileMode {
	t.Helper()
	info, err := os.Lstat(path)
	require.NoError(t, err)
	return info.Mode()
}

// leaveStale stops listening and leaves the file, as a kill -9 does.
func leaveStale(t *testing.T, l net.Listener) {
	t.Helper()
	ours, ok := l.(*listener)
	require.True(t, ok)
	require.NoError(t, ours.UnixListener.Close())
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
	require.ErrorIs(t, err, ErrSocketInUse)
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
	second, err := Listen(path)
	require.NoError(t, err)
	require.NoError(t, first.Close())
	assert.Equal(t, os.ModeSocket|0o600, mode(t, path))
	require.NoError(t, second.Close())
}

func TestServeAnswersWhatIsInFlightAndThenEnds(t *testing.T) {
	path := socketPath(t)
	l, err := Listen(path)
	require.NoError(t, err)
	f := newFake("a")
	entered, release := make(chan struct{}), make(chan struct{})
	f.hook = func(method string) {
		if method == "Status" {
			close(entered)
			<-release
		}
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- Serve(ctx, l, Handler(f)) }()
	answered := make(chan error, 1)
	go func() {
		_, err := NewClient(path).Status(context.Background())
		answered <- err
	}()
	<-entered
	stop()
	require.Eventually(t, func() bool {
		_, err := os.Lstat(path)
		return os.IsNotExist(err)
	}, 5*time.Second, 5*time.Millisecond, "no new requests are taken")
	close(release)
	require.NoError(t, <-answered)
	require.NoError(t, <-ended)
}

func TestServeReportsAListenerThatFails(t *testing.T) {
	l, err := Listen(socketPath(t))
	require.NoError(t, err)
	require.NoError(t, l.Close())
	require.ErrorContains(t, Serve(context.Background(), l, http.NotFoundHandler()), "serve the API")
}

// A peer that asks and never reads must not keep anybody else from an answer.
func TestASlowReaderBlocksNobody(t *testing.T) {
	f := newFake("a")
	f.sessions["a"].Annotations = map[string]string{"large": strings.Repeat("x", 1<<19)}
	path := serve(t, Handler(f))
	for range 4 {
		conn, err := net.Dial("unix", path)
		require.NoError(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		_, err = fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", sessionsPath)
		require.NoError(t, err)
		_, err = bufio.NewReader(conn).ReadByte()
		require.NoError(t, err, "its answer has begun")
	}
	c := NewClient(path)
	defer c.Close()
	_, err := c.Status(t.Context())
	require.NoError(t, err)
}

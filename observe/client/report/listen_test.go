// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec/socket"
)

func TestSocketAndSpoolAreTheirOwnersAlone(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	l, err := Listen(p.socket, p.spool)
	require.NoError(t, err)
	for path, want := range map[string]os.FileMode{
		p.socket:               os.ModeSocket | 0o600,
		filepath.Dir(p.socket): os.ModeDir | 0o700,
		p.spool:                os.ModeDir | 0o700,
	} {
		info, err := os.Lstat(path)
		require.NoError(t, err)
		assert.Equal(t, want, info.Mode(), path)
	}
	target, err := os.Readlink(SpoolLink(p.socket))
	require.NoError(t, err)
	assert.Equal(t, p.spool, target)
	require.NoError(t, l.Close())
	assert.NoFileExists(t, p.socket)
	_, err = os.Stat(SpoolLink(p.socket))
	assert.NoError(t, err, "hooks still find the spool")
}

func TestTheSocketOfADaemonThatWasKilledIsReplaced(t *testing.T) {
	t.Parallel()
	p, d := newPlace(t), &desk{}
	first, err := Listen(p.socket, p.spool)
	require.NoError(t, err)
	require.NoError(t, first.socket.UnixListener.Close())
	require.FileExists(t, p.socket)
	serve(t, p, d.handle)
	require.NoError(t, ours(p, event("Stop", "id-1")).Run())
	assert.Len(t, d.all(), 1)
}

func TestASecondListenerLeavesTheFirstAlone(t *testing.T) {
	t.Parallel()
	p, d := newPlace(t), &desk{}
	serve(t, p, d.handle)
	_, err := Listen(p.socket, p.spool+"-other")
	require.ErrorIs(t, err, socket.ErrInUse)
	target, err := os.Readlink(SpoolLink(p.socket))
	require.NoError(t, err)
	assert.Equal(t, p.spool, target)
	require.NoError(t, ours(p, event("Stop", "id-1")).Run())
	assert.Len(t, d.all(), 1)
}

// I3: two daemons on one host do not hear each other's clients.
func TestDaemonsOfOtherPlacesHearNothing(t *testing.T) {
	t.Parallel()
	here, there := newPlace(t), newPlace(t)
	d, other := &desk{}, &desk{}
	serve(t, here, d.handle)
	serve(t, there, other.handle)
	require.NoError(t, ours(here, event("Stop", "id-1")).Run())
	assert.Len(t, d.all(), 1)
	assert.Empty(t, other.all())
	assert.True(t, isEmpty(t, there.spool))
}

func TestAStateDirectoryThatMovedIsFoundAgain(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.prepare(t)
	moved := place{socket: p.socket, spool: filepath.Join(filepath.Dir(p.spool), "moved")}
	moved.prepare(t)
	require.NoError(t, ours(p, event("Stop", "id-1")).Run())
	assert.False(t, isEmpty(t, moved.spool))
	assert.True(t, isEmpty(t, p.spool))
}

func TestSomethingElseInThePlaceOfTheLinkIsNotRemoved(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	require.NoError(t, os.MkdirAll(filepath.Join(SpoolLink(p.socket), "mine"), 0o700))
	require.NoError(t, os.Chmod(filepath.Dir(p.socket), 0o700))
	_, err := Listen(p.socket, p.spool)
	require.Error(t, err)
	assert.DirExists(t, filepath.Join(SpoolLink(p.socket), "mine"))
	assert.NoFileExists(t, p.socket)
}

func TestWhoConnectsAndNeverWritesBlocksNobody(t *testing.T) {
	t.Parallel()
	p, d := newPlace(t), &desk{}
	serve(t, p, d.handle)
	var wg sync.WaitGroup
	for range maxConnections / 2 {
		conn := dial(t, p)
		_, err := conn.Write([]byte(`{"version":1,`))
		require.NoError(t, err)
	}
	for range 20 {
		wg.Go(func() { assert.NoError(t, ours(p, event("Stop", "id-1")).Run()) })
	}
	wg.Wait()
	assert.Len(t, d.all(), 20)
	assert.True(t, isEmpty(t, p.spool))
}

func TestMoreConnectionsThanAreHandledWaitTheirTurn(t *testing.T) {
	t.Parallel()
	p, d := newPlace(t), &desk{}
	serve(t, p, d.handle)
	for range maxConnections + 10 {
		dial(t, p)
	}
	require.NoError(t, ours(p, event("Stop", "id-1")).Run(), "those that say nothing are dropped after a second")
	assert.Len(t, d.all(), 1)
}

func TestWhatSomebodyRemovedIsMadeAgain(t *testing.T) {
	t.Parallel()
	p, d := newPlace(t), &desk{}
	serve(t, p, d.handle)
	// Renamed first: what is made again meanwhile is in nobody's way.
	gone := filepath.Dir(p.socket) + ".gone"
	require.NoError(t, os.Rename(filepath.Dir(p.socket), gone))
	require.NoError(t, os.RemoveAll(gone))
	eventually(t, func() bool {
		conn, err := net.Dial("unix", p.socket)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	}, "the socket is there again")
	require.NoError(t, ours(p, event("Stop", "id-1")).Run())
	assert.Len(t, d.all(), 1)
	require.NoError(t, os.Remove(SpoolLink(p.socket)))
	eventually(t, func() bool {
		target, err := os.Readlink(SpoolLink(p.socket))
		return err == nil && target == p.spool
	}, "the way to the spool is there again")
	require.NoError(t, os.RemoveAll(p.spool))
	eventually(t, func() bool { _, err := os.Stat(p.spool); return err == nil }, "the spool is there again")
}

func TestOnlyTheLatestHandledReportsAreRemembered(t *testing.T) {
	var h handled
	calls := 0
	call := func() error { calls++; return nil }
	id := func(n int) string { return observe.Process{PID: n}.String() }
	for n := range maxHandled + 1 {
		done, err := h.once(id(n), call)
		require.NoError(t, err)
		require.True(t, done)
	}
	done, err := h.once(id(maxHandled), call)
	require.NoError(t, err)
	assert.True(t, done)
	assert.Equal(t, maxHandled+1, calls)
	assert.Len(t, h.done, maxHandled)
	_, _ = h.once(id(0), call)
	assert.Equal(t, maxHandled+2, calls, "the oldest is forgotten")
}

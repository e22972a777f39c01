// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/observe/process"
)

// patience is how long a test waits for what is there at once.
const patience = 30 * time.Second

// fake is a tree of plain files.
func fake(t *testing.T) Tree {
	t.Helper()
	tree := Tree{Root: t.TempDir(), Slice: "/user.slice/muxlet.slice"}
	require.NoError(t, os.MkdirAll(tree.path(tree.Slice), 0o700))
	return tree
}

func write(t *testing.T, path, text string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
}

func TestScopesAreFoundByTheirWholeNames(t *testing.T) {
	tree := fake(t)
	for _, name := range []string{
		observe.ScopeName("i", "u-1", 3), observe.ScopeName("i", "u-1", 4), observe.ScopeName("i", "u-10", 3),
		observe.ScopeName("j", "u-1", 3), "muxlet-i-u-1-x.scope", "muxlet-i-u-1-03.scope", "muxlet-i-u-1-3.service", "tmux-spawn-1.scope",
	} {
		require.NoError(t, os.Mkdir(filepath.Join(tree.path(tree.Slice), name), 0o700))
	}
	write(t, filepath.Join(tree.path(tree.Slice), observe.ScopeName("i", "file", 1)), "")
	found, err := tree.Of("i")
	require.NoError(t, err)
	of := func(uid string, incarnation int64) observe.Scope {
		name := observe.ScopeName("i", uid, incarnation)
		return observe.Scope{Name: name, ControlGroup: tree.Slice + "/" + name}
	}
	assert.Equal(t, map[string]map[int64]observe.Scope{
		"u-1": {3: of("u-1", 3), 4: of("u-1", 4)}, "u-10": {3: of("u-10", 3)},
	}, found)
	none, err := tree.Of("")
	require.NoError(t, err)
	assert.Empty(t, none)
	none, err = Tree{Root: t.TempDir(), Slice: "/s"}.Of("i")
	require.NoError(t, err, "no slice: no client has a scope")
	assert.Empty(t, none)
}

func TestMembersAreTheProcessesOfAScopeAndOfWhatIsBelowIt(t *testing.T) {
	tree := fake(t)
	s := observe.Scope{Name: "s", ControlGroup: tree.Slice + "/s.scope"}
	none, err := tree.Members(s)
	require.NoError(t, err, "a scope that is gone has no members")
	assert.Empty(t, none)

	var pids []int
	for range 2 {
		cmd := exec.CommandContext(t.Context(), "sleep", "1000")
		require.NoError(t, cmd.Start())
		t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
		pids = append(pids, cmd.Process.Pid)
	}
	ended := exec.CommandContext(t.Context(), "true")
	require.NoError(t, ended.Run())
	dir := tree.path(s.ControlGroup)
	write(t, filepath.Join(dir, "cgroup.procs"), fmt.Sprintf("0\n1\n%d\n%d\n%d\n", os.Getpid(), ended.Process.Pid, pids[0]))
	write(t, filepath.Join(dir, "inner", "cgroup.procs"), fmt.Sprintf("%d\n", pids[1]))
	members, err := tree.Members(s)
	require.NoError(t, err)
	var want []observe.Process
	for _, pid := range pids {
		p, _ := process.Identify(pid)
		want = append(want, p)
	}
	assert.ElementsMatch(t, want, members)
}

func TestTheTreeIsFoundWhereverItIsMounted(t *testing.T) {
	hybrid := "30 23 0:26 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n" +
		"31 30 0:27 / /sys/fs/cgroup/systemd rw shared:9 - cgroup cgroup rw,xattr,name=systemd\n"
	unified := "32 30 0:28 / /sys/fs/cgroup/unified rw,nosuid - cgroup2 cgroup2 rw\n"
	for text, want := range map[string]string{"": "", hybrid: "/sys/fs/cgroup/systemd", hybrid + unified: "/sys/fs/cgroup/unified", "x\n - \n": ""} {
		assert.Equal(t, want, mountedAt(bufio.NewScanner(strings.NewReader(text))))
	}
}

func TestTheOwnGroupIsThatOfTheTree(t *testing.T) {
	for text, want := range map[string]string{
		"0::/user.slice/a:b.scope\n":                         "/user.slice/a:b.scope",
		"4:memory:/x\n1:name=systemd:/y\n0::/z\n":            "/z",
		"1:name=systemd:/user.slice/session-1.scope\n0::/\n": "/user.slice/session-1.scope",
		"1:name=systemd:/y\n":                                "/y", "0::/\n": "", "": "", "nonsense": "",
	} {
		assert.Equal(t, want, groupIn(text), text)
	}
}

func TestMemoryIsToldWhereTheSystemCountsIt(t *testing.T) {
	tree := fake(t)
	_, _, ok := tree.Memory("/g")
	assert.False(t, ok)
	write(t, tree.path("/g/memory.current"), "1048576\n")
	write(t, tree.path("/g/memory.max"), "max\n")
	now, limit, ok := tree.Memory("/g")
	assert.True(t, ok)
	assert.EqualValues(t, 1<<20, now)
	assert.EqualValues(t, -1, limit)
	write(t, tree.path("/g/memory.max"), "2097152\n")
	_, limit, _ = tree.Memory("/g")
	assert.EqualValues(t, 2<<20, limit)
}

func TestWhatTheKernelEndsIsNoticedAndKeptAfterTheScopeIsGone(t *testing.T) {
	tree := fake(t)
	s := observe.Scope{Name: "s", ControlGroup: tree.Slice + "/s.scope"}
	events := tree.path(s.ControlGroup + "/memory.events")
	write(t, events, "low 0\noom 4\noom_kill 4\noom_group_kill 0\n")
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	w, err := NewWatcher(tree, func() time.Time { return at })
	require.NoError(t, err)
	t.Cleanup(func() { _ = w.Close() })
	w.Watch(s, "shop")
	w.Watch(s, "shop")
	assert.Equal(t, observe.OOM{Kills: 4}, w.OOM(s), "what was before it was watched is nobody's end now")

	write(t, events, "low 0\noom 5\noom_kill 5\noom_group_kill 0\n")
	select {
	case key := <-w.Notices():
		assert.Equal(t, "shop", key)
	case <-time.After(patience):
		t.Fatal("there was no notice")
	}
	assert.Equal(t, observe.OOM{Kills: 5, At: at}, w.OOM(s))
	require.NoError(t, os.RemoveAll(tree.path(s.ControlGroup)))
	assert.Equal(t, observe.OOM{Kills: 5, At: at}, w.OOM(s))
	w.Forget(s)
	w.Forget(s)
	assert.Zero(t, w.OOM(s))
}

func TestASystemThatDoesNotCountIsNotWatched(t *testing.T) {
	tree := fake(t)
	w, err := NewWatcher(tree, time.Now)
	require.NoError(t, err)
	t.Cleanup(func() { _ = w.Close() })
	s := observe.Scope{Name: "s", ControlGroup: "/gone.scope"}
	w.Watch(s, "shop")
	assert.Zero(t, w.OOM(s))
}

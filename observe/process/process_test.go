// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/observe"
)

func TestRunningProcessIsIdentified(t *testing.T) {
	p := identified(t, os.Getpid())
	require.Equal(t, os.Getpid(), p.PID)
	require.Equal(t, observe.Running, State(p))
	ticks, err := Ticks(p.PID)
	require.NoError(t, err)
	require.Equal(t, p.Ticks, ticks)
	parent, err := Parent(p.PID)
	require.NoError(t, err)
	require.Equal(t, os.Getppid(), parent)
}

func TestProcessThatEndedIsGone(t *testing.T) {
	cmd := helper(t, "waits")
	p := identified(t, cmd.Process.Pid)
	end(cmd)
	require.Equal(t, observe.Gone, State(p))
	require.Equal(t, observe.Gone, State(observe.Process{PID: p.PID}))
	_, state := Identify(p.PID)
	require.Equal(t, observe.Gone, state)
	_, err := Ticks(p.PID)
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = Parent(p.PID)
	require.ErrorIs(t, err, fs.ErrNotExist)
}

func TestZombieIsGone(t *testing.T) {
	cmd := helper(t, "waits")
	p := identified(t, cmd.Process.Pid)
	require.NoError(t, cmd.Process.Kill())
	becomesGone(t, p)
	_, state := Identify(p.PID)
	require.Equal(t, observe.Gone, state)
	require.Equal(t, observe.Gone, State(observe.Process{PID: p.PID}), "its ticks are not needed")
	ticks, err := Ticks(p.PID)
	require.NoError(t, err, "it is not collected yet")
	require.Equal(t, p.Ticks, ticks)
}

// A re-used pid is another process: the ticks tell.
func TestProcessWithOtherTicksIsGone(t *testing.T) {
	p := identified(t, os.Getpid())
	for _, ticks := range []uint64{1, p.Ticks - 1, p.Ticks + 1, math.MaxUint64} {
		require.Equal(t, observe.Gone, State(observe.Process{PID: p.PID, Ticks: ticks}))
	}
}

func TestWhatCannotBeProvenIsUnknown(t *testing.T) {
	require.Equal(t, observe.LivenessUnknown, State(observe.Process{PID: os.Getpid()}), "ticks not known")
	require.Equal(t, observe.LivenessUnknown, State(observe.Process{}))
	require.Equal(t, observe.LivenessUnknown, State(observe.Process{PID: -1, Ticks: 1}))
	_, err := Ticks(0)
	require.Error(t, err)
	require.NotErrorIs(t, err, fs.ErrNotExist)
}

func TestExecDoesNotChangeTheIdentity(t *testing.T) {
	cmd, line := shell(t, `cut -d' ' -f22 /proc/$$/stat; exec sleep 1000`)
	require.Eventually(t, func() bool {
		e, err := readEntry(cmd.Process.Pid)
		return err == nil && e.command == "sleep"
	}, patience, time.Millisecond)
	require.Equal(t, line, strconv.FormatUint(identified(t, cmd.Process.Pid).Ticks, 10))
}

func TestDescendantsAreTheWholeTree(t *testing.T) {
	cmd, line := shell(t, `sh -c 'sleep 1000 & echo $!; wait' & wait`)
	p := identified(t, cmd.Process.Pid)
	grandchild, err := strconv.Atoi(line)
	require.NoError(t, err)
	g := identified(t, grandchild)
	c, err := Parent(grandchild)
	require.NoError(t, err)
	below, err := Descendants(p)
	require.NoError(t, err)
	require.Equal(t, []observe.Process{identified(t, c), g}, below, "parents before children")
	below, err = Descendants(g)
	require.NoError(t, err)
	require.Empty(t, below)
	require.NoError(t, syscall.Kill(grandchild, syscall.SIGKILL))
	end(cmd)
	becomesGone(t, g)
}

func TestDescendantsOfWhatDoesNotRunAreNotKnown(t *testing.T) {
	cmd := helper(t, "waits")
	p := identified(t, cmd.Process.Pid)
	_, err := Descendants(observe.Process{PID: p.PID, Ticks: p.Ticks + 1})
	require.ErrorIs(t, err, os.ErrProcessDone)
	_, err = Descendants(observe.Process{PID: p.PID})
	require.Error(t, err)
	require.NotErrorIs(t, err, os.ErrProcessDone)
	end(cmd)
	_, err = Descendants(p)
	require.ErrorIs(t, err, os.ErrProcessDone)
}

func TestLeaseIsRunningWhileItsHolderLives(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lease")
	require.Equal(t, observe.Lease{State: observe.Gone}, LeaseOf(path), "no file")
	require.Equal(t, observe.Lease{State: observe.Gone}, LeaseOf(filepath.Join(path, "none", "none")), "no directory")
	holder := helper(t, "locks", "LOCKED="+path)
	want := observe.Lease{State: observe.Running, Holder: holder.Process.Pid}
	require.Equal(t, want, LeaseOf(path))
	require.Equal(t, want, LeaseOf(path), "asking drops nothing")
	end(holder)
	require.Equal(t, observe.Lease{State: observe.Gone}, LeaseOf(path))
}

func TestLeaseThatCannotBeAskedIsUnknown(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	loop := filepath.Join(dir, "loop")
	require.NoError(t, os.Symlink(loop, loop))
	for _, path := range []string{filepath.Join(file, "lease"), loop} {
		require.Equal(t, observe.Lease{}, LeaseOf(path))
	}
}

func TestAncestorsAreTheLineUpToTheTop(t *testing.T) {
	cmd, line := shell(t, `sh -c 'sleep 1000 & echo $!; wait' & wait`)
	outer := identified(t, cmd.Process.Pid)
	grandchild, err := strconv.Atoi(line)
	require.NoError(t, err)
	var above []observe.Ancestor
	require.Eventually(t, func() bool {
		above, err = Ancestors(grandchild)
		return err == nil && filepath.Base(above[0].Executable) == "sleep"
	}, time.Minute, 5*time.Millisecond, "it is the shell until it executes its program")
	require.GreaterOrEqual(t, len(above), 4)
	require.Equal(t, identified(t, grandchild), above[0].Process, "it comes first itself")
	require.Equal(t, outer, above[2].Process)
	require.Equal(t, identified(t, os.Getpid()), above[3].Process)
	self, err := os.Executable()
	require.NoError(t, err)
	require.Equal(t, self, above[3].Executable)
	for _, a := range above {
		require.NotEqual(t, 1, a.PID, "init is above everything, and says nothing")
	}
	require.NoError(t, syscall.Kill(grandchild, syscall.SIGKILL))
	end(cmd)
	_, err = Ancestors(cmd.Process.Pid)
	require.Error(t, err, "what does not run has none")
}

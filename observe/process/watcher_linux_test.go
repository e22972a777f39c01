// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
	"k8s.io/utils/clock"

	"github.com/muxlet/muxlet/observe"
)

func pidfds(t testing.TB) *pidfdWatcher {
	t.Helper()
	w, err := newPidfdWatcher()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, w.Close()) })
	return w
}

func TestPidfdsAreUsedWhereTheKernelHasThem(t *testing.T) {
	w, err := NewWatcher(time.Second, clock.RealClock{})
	require.NoError(t, err)
	defer w.Close()
	require.IsType(t, &pidfdWatcher{}, w)
}

func TestPollingIsUsedWherePidfdsAreRefused(t *testing.T) {
	for _, refusal := range []error{unix.ENOSYS, unix.EPERM} {
		w, err := chooseWatcher(fmt.Errorf("opening: %w", refusal), time.Second, clock.RealClock{})
		require.NoError(t, err)
		require.IsType(t, &pollingWatcher{}, w)
		require.NoError(t, w.Close())
	}
	_, err := chooseWatcher(unix.EMFILE, time.Second, clock.RealClock{})
	require.ErrorIs(t, err, unix.EMFILE)
}

// exits says whether this kernel tells how a process ended that is not our child
// (Linux 6.15).
func exits(t *testing.T) bool {
	t.Helper()
	cmd := exec.Command("true")
	require.NoError(t, cmd.Start())
	fd, err := unix.PidfdOpen(cmd.Process.Pid, 0)
	require.NoError(t, err)
	defer unix.Close(fd)
	require.NoError(t, cmd.Wait())
	info := unix.PidfdInfo{Mask: unix.PIDFD_INFO_EXIT}
	return unix.IoctlPidfdInfo(fd, &info) == nil && info.Mask&unix.PIDFD_INFO_EXIT != 0
}

// The status of a process that is somebody else's child, from the moment when that one
// has collected it.
func TestExitOfAProcessIsTold(t *testing.T) {
	if !exits(t) {
		t.Skip("this kernel does not tell: older than 6.15")
	}
	for name, c := range map[string]struct {
		script string
		signal syscall.Signal
		want   observe.Exit
	}{
		"status 0": {"read x; exit 0", 0, observe.Exit{}},
		"status 3": {"read x; exit 3", 0, observe.Exit{Code: 3}},
		"SIGKILL":  {"read x", syscall.SIGKILL, observe.Exit{Signal: 9}},
		"SIGTERM":  {"read x", syscall.SIGTERM, observe.Exit{Signal: 15}},
	} {
		t.Run(name, func(t *testing.T) {
			w := pidfds(t)
			cmd := exec.Command("sh", "-c", "(echo $(exec sh -c 'echo $PPID'); "+c.script+") <&3 & wait; exec sleep 1000")
			release, stdin, err := os.Pipe()
			require.NoError(t, err)
			cmd.ExtraFiles = []*os.File{release}
			pid, err := strconv.Atoi(start(t, cmd))
			require.NoError(t, err)
			p := identified(t, pid)
			require.NoError(t, w.Watch(p, name))
			require.Nil(t, w.Exit(p), "it runs")
			if c.signal != 0 {
				require.NoError(t, syscall.Kill(pid, c.signal))
			} else {
				_, err = stdin.WriteString("\n")
				require.NoError(t, err)
			}
			require.Equal(t, Notice{Process: p, Key: name}, noticed(t, w))
			require.Eventually(t, func() bool { return w.Exit(p) != nil }, patience, time.Millisecond)
			require.Equal(t, c.want, *w.Exit(p))
			w.Forget(p)
			require.Nil(t, w.Exit(p))
			require.NoError(t, release.Close())
			require.NoError(t, stdin.Close())
		})
	}
}

func TestStateOfAProcessIsTold(t *testing.T) {
	w, err := newPidfdWatcher()
	require.NoError(t, err)
	defer func() { require.NoError(t, w.Close()) }()
	cmd := helper(t, "waits")
	p := identified(t, cmd.Process.Pid)
	require.NoError(t, w.Watch(p, "a"))
	require.Equal(t, observe.Running, w.State(p))
	require.NoError(t, cmd.Process.Kill())
	require.Equal(t, p, noticed(t, w).Process)
	require.Equal(t, observe.Gone, w.State(p), "a zombie is Gone")
}

func TestExitOfAZombieIsNotKnownYet(t *testing.T) {
	w := pidfds(t)
	cmd := helper(t, "waits")
	p := identified(t, cmd.Process.Pid)
	require.NoError(t, w.Watch(p, "zombie"))
	require.NoError(t, cmd.Process.Kill())
	noticed(t, w)
	require.Nil(t, w.Exit(p))
	end(cmd)
	if exits(t) {
		require.Equal(t, &observe.Exit{Signal: 9}, w.Exit(p))
	}
}

func openFiles(t *testing.T) int {
	t.Helper()
	names, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	return len(names)
}

func TestPidfdsAreClosedByForgetAndByClose(t *testing.T) {
	before := openFiles(t)
	w, err := newPidfdWatcher()
	require.NoError(t, err)
	idle := openFiles(t)
	alive, dead := identified(t, os.Getpid()), observe.Process{PID: os.Getpid(), Ticks: 1}
	parent := identified(t, os.Getppid())
	for range 3 {
		require.NoError(t, w.Watch(alive, "alive"))
		require.NoError(t, w.Watch(dead, "dead"))
		require.Equal(t, idle+1, openFiles(t))
		w.Forget(alive)
		w.Forget(dead)
		require.Equal(t, idle, openFiles(t))
	}
	require.NoError(t, w.Watch(alive, "alive"))
	require.NoError(t, w.Watch(parent, "parent"))
	require.NoError(t, w.Close())
	require.Equal(t, before, openFiles(t))
}

// A pidfd's number is re-used at once: the event of the one before must not be taken for
// the death of its successor.
func TestWatchesThatComeAndGoAreNotConfused(t *testing.T) {
	w := pidfds(t)
	living := identified(t, os.Getpid())
	var busy sync.WaitGroup
	for worker := range 4 {
		busy.Go(func() {
			for i := range 10 {
				cmd := exec.Command("sleep", "1000")
				if cmd.Start() != nil {
					continue
				}
				p, _ := Identify(cmd.Process.Pid)
				_ = w.Watch(p, fmt.Sprint(worker, i))
				_ = cmd.Process.Kill()
				w.Forget(p)
				_ = w.Watch(living, "living")
				_ = cmd.Wait()
			}
		})
	}
	go func() { busy.Wait(); _ = w.Watch(observe.Process{PID: living.PID, Ticks: 1}, "end") }()
	for n := noticed(t, w); n.Key != "end"; n = noticed(t, w) {
		require.NotEqual(t, living, n.Process)
	}
}

// A thousand watches and the death of one of them.
func BenchmarkNoticeAmongThousandWatches(b *testing.B) {
	w := pidfds(b)
	for range 1000 {
		cmd := exec.Command("sleep", "1000")
		require.NoError(b, cmd.Start())
		defer end(cmd)
		p, _ := Identify(cmd.Process.Pid)
		require.NoError(b, w.Watch(p, "standing"))
	}
	for b.Loop() {
		b.StopTimer()
		cmd := exec.Command("sleep", "1000")
		require.NoError(b, cmd.Start())
		p, _ := Identify(cmd.Process.Pid)
		require.NoError(b, w.Watch(p, "dies"))
		b.StartTimer()
		require.NoError(b, cmd.Process.Kill())
		<-w.Notices()
		b.StopTimer()
		_ = cmd.Wait()
		w.Forget(p)
		b.StartTimer()
	}
}

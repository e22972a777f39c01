// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/muxlet/muxlet/observe"
	observeprocess "github.com/muxlet/muxlet/observe/process"
)

// start runs a process that waits until it is killed.
func start(t *testing.T) (*exec.Cmd, observe.Process) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sleep", "1000")
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	p, alive := observeprocess.Identify(cmd.Process.Pid)
	require.Equal(t, observe.Running, alive)
	return cmd, p
}

func TestASignalReachesTheProcessThatIsMeant(t *testing.T) {
	cmd, p := start(t)
	require.NoError(t, Signal(p.PID, syscall.SIGTERM, Itself(p)))
	err := cmd.Wait()
	var exited *exec.ExitError
	require.ErrorAs(t, err, &exited)
	status, ok := exited.Sys().(syscall.WaitStatus)
	require.True(t, ok)
	assert.Equal(t, syscall.SIGTERM, status.Signal())
}

// Invariant 10: every signal goes through a pidfd after the ticks check.
func TestAProcessWithOtherTicksIsNotSignalled(t *testing.T) {
	_, p := start(t)
	other := observe.Process{PID: p.PID, Ticks: p.Ticks + 1}
	require.ErrorIs(t, Signal(p.PID, syscall.SIGKILL, Itself(other)), ErrGone)
	unidentified := observe.Process{PID: p.PID}
	err := Signal(p.PID, syscall.SIGKILL, Itself(unidentified))
	require.Error(t, err)
	require.NotErrorIs(t, err, ErrGone, "ignorance is not absence")
	assert.Equal(t, observe.Running, observeprocess.State(p))
}

func TestACheckThatFailsKeepsTheSignal(t *testing.T) {
	_, p := start(t)
	doubt := errors.New("doubt")
	require.ErrorIs(t, Signal(p.PID, syscall.SIGKILL, func(pid int) error {
		assert.Equal(t, p.PID, pid)
		return doubt
	}), doubt)
	assert.Equal(t, observe.Running, observeprocess.State(p))
}

func TestAProcessThatHasEndedIsGone(t *testing.T) {
	cmd, p := start(t)
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait()
	require.ErrorIs(t, Signal(p.PID, syscall.SIGTERM, Itself(p)), ErrGone)
}

func TestPidsThatMeanManyProcessesAreRefused(t *testing.T) {
	for _, pid := range []int{-1, 0, 1, -os.Getpid()} {
		err := Signal(pid, syscall.SIGKILL, func(int) error {
			t.Error("must not get as far as this")
			return nil
		})
		require.Error(t, err)
		require.NotErrorIs(t, err, ErrGone)
	}
}

func TestSealedDescriptorsAreNotHandedOnAndKeptOnesAre(t *testing.T) {
	var fds [2]int
	require.NoError(t, unix.Pipe(fds[:]))
	t.Cleanup(func() {
		_ = unix.Close(fds[0])
		_ = unix.Close(fds[1])
	})
	require.NoError(t, SealDescriptors(fds[1]))
	assert.True(t, closedOnExec(t, fds[0]))
	assert.False(t, closedOnExec(t, fds[1]))
	assert.False(t, closedOnExec(t, 1))
}

func closedOnExec(t *testing.T, fd int) bool {
	t.Helper()
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
	require.NoError(t, err)
	return flags&unix.FD_CLOEXEC != 0
}

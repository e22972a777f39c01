// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/observe"
)

// useOf is the line of this process in the table.
func useOf(t *testing.T, pid int) observe.ProcessUse {
	t.Helper()
	all, err := Uses()
	require.NoError(t, err)
	for _, p := range all {
		if p.PID == pid {
			return p
		}
	}
	require.Fail(t, "it is not in the table")
	return observe.ProcessUse{}
}

func TestTheTableTellsWhatAProcessHasUsed(t *testing.T) {
	before := useOf(t, os.Getpid())
	assert.Equal(t, os.Getppid(), before.Parent)
	assert.NotEmpty(t, before.Command)
	for end := time.Now().Add(30 * time.Second); useOf(t, os.Getpid()).CPU < before.CPU+50*time.Millisecond; {
		require.True(t, time.Now().Before(end), "it works and uses no time")
	}
	burn := useOf(t, os.Getpid()).CPU
	require.NoError(t, exec.Command("sh", "-c", "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done").Run())
	assert.Greater(t, useOf(t, os.Getpid()).CPU, burn, "the time of a child that was waited for is its parent's")
}

func TestMemoryIsReadInParts(t *testing.T) {
	resident, err := ResidentMemory(os.Getpid())
	require.NoError(t, err)
	share, err := ShareOfMemory(os.Getpid())
	if os.IsPermission(err) || os.IsNotExist(err) {
		t.Skip("this system gives no smaps_rollup")
	}
	require.NoError(t, err)
	assert.Positive(t, share)
	assert.Less(t, share, 2*resident)
	_, err = ResidentMemory(1 << 30)
	require.Error(t, err)
	_, err = ShareOfMemory(1 << 30)
	assert.Error(t, err)
}

func TestWhatHasLeftItsClientStillCarriesTheSession(t *testing.T) {
	mark := "MUXLET_CLIENT=00000000-0000-4000-8000-000000000001/00000000-0000-4000-8000-000000000002/3/00000000-0000-4000-8000-000000000003/1/1"
	child := exec.Command("sleep", "1000")
	child.Env = append(os.Environ(), mark)
	require.NoError(t, child.Start())
	defer func() { _ = child.Process.Kill(); _ = child.Wait() }()
	assert.Eventually(t, func() bool { return UIDCarried(child.Process.Pid) == "00000000-0000-4000-8000-000000000002" }, 30*time.Second, 5*time.Millisecond)
	assert.Empty(t, UIDCarried(1<<30))
}

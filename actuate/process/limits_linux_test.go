// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestTheLimitOfOpenFilesIsRaisedAndNeverLowered(t *testing.T) {
	_, p := start(t)
	limits := func() (l unix.Rlimit) {
		require.NoError(t, unix.Prlimit(p.PID, unix.RLIMIT_NOFILE, nil, &l))
		return l
	}
	hard := limits().Max
	low := unix.Rlimit{Cur: 100, Max: hard}
	require.NoError(t, unix.Prlimit(p.PID, unix.RLIMIT_NOFILE, &low, nil))
	require.Error(t, RaiseOpenFiles(p.PID, func(int) error { return errors.New("another process") }))
	assert.EqualValues(t, 100, limits().Cur)
	require.NoError(t, RaiseOpenFiles(p.PID, Itself(p)))
	assert.Equal(t, unix.Rlimit{Cur: min(hard, enoughFiles), Max: hard}, limits())

	lower := unix.Rlimit{Cur: 200, Max: 200}
	require.NoError(t, unix.Prlimit(p.PID, unix.RLIMIT_NOFILE, &lower, nil))
	require.NoError(t, RaiseOpenFiles(p.PID, Itself(p)))
	assert.Equal(t, lower, limits(), "the hard limit is what somebody has set")
}

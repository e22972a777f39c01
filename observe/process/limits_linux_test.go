// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/muxlet/muxlet/observe"
)

func TestTheLimitsOfThisSystemAreSeen(t *testing.T) {
	self, live := Identify(os.Getpid())
	require.Equal(t, observe.Running, live)
	l := Limits(self)
	var limit unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &limit))
	assert.EqualValues(t, limit.Cur, l.OwnFiles.Limit)
	assert.EqualValues(t, limit.Cur, l.ServerFiles.Limit)
	assert.EqualValues(t, limit.Max, l.ServerHardLimit)
	assert.Greater(t, l.OwnFiles.Used, 3)

	for range 50 {
		f, err := os.Open(os.DevNull)
		require.NoError(t, err)
		defer f.Close()
	}
	assert.Greater(t, Limits(self).OwnFiles.Used, l.OwnFiles.Used+40)
	_, ok := l.Terminals.Left()
	assert.True(t, ok)
}

func TestOfAProcessThatIsGoneNoLimitIsKnown(t *testing.T) {
	self, _ := Identify(os.Getpid())
	l := Limits(observe.Process{PID: self.PID, Ticks: self.Ticks + 1})
	_, ok := l.ServerFiles.Left()
	assert.False(t, ok)
	_, ok = l.OwnFiles.Left()
	assert.True(t, ok)
}

func TestReservedTerminalsAreNotCountedOn(t *testing.T) {
	dir := t.TempDir() + "/"
	assert.Equal(t, observe.Use{}, terminals(dir))
	for name, text := range map[string]string{"nr": "7\n", "max": "4096\n"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	assert.Equal(t, observe.Use{Used: 7, Limit: 4096}, terminals(dir))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "reserve"), []byte("1024\n"), 0o600))
	assert.Equal(t, observe.Use{Used: 7, Limit: 3072}, terminals(dir))
}

// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/utils/clock"

	"github.com/muxlet/muxlet/controller/metrics"
)

func TestWhatTheStateTakesIsToldByKind(t *testing.T) {
	state := t.TempDir()
	for _, name := range []string{"records/a.json", "turns/a/1.json", "turns/a/1.prompt", "worktrees/a/huge", "instance", "nobody/knows/this"} {
		path := filepath.Join(state, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte("x"), 0o600))
	}
	require.NoError(t, os.Symlink("/", filepath.Join(state, "elsewhere")))
	got := usageByKind(state)
	assert.Equal(t, 1, got["records"].Files)
	assert.Positive(t, got["records"].Bytes)
	assert.Equal(t, 2, got["turns"].Files)
	assert.Equal(t, 3, got["other"].Files, "what a link leads to is not looked at")
	assert.Equal(t, metrics.Usage{}, got["archive"])
	assert.NotContains(t, got, "worktrees")
}

// A disk that does not answer must not hide all the rest; and one that is slow is not
// asked all the time.
func TestACostlyQuestionIsAskedRarelyAndNotWaitedForForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r rarely[int]
		takes := time.Duration(0)
		var asked atomic.Int64
		get := func() int {
			return r.get(clock.RealClock{}, time.Minute, 10, func() int {
				n := asked.Add(1)
				<-time.After(takes)
				return int(n)
			})
		}
		assert.Equal(t, 1, get())
		assert.Equal(t, 1, get(), "it was just asked")
		<-time.After(time.Minute)
		assert.Equal(t, 2, get())

		takes = time.Hour
		<-time.After(time.Minute)
		began := time.Now()
		assert.Equal(t, 2, get(), "the last answer will do")
		assert.Equal(t, askPatience, time.Since(began))
		assert.Equal(t, 2, get())
		assert.EqualValues(t, 3, asked.Load(), "while one question is open there is no other")
		<-time.After(time.Hour)
		assert.Equal(t, 3, get())
		<-time.After(9 * time.Hour)
		assert.Equal(t, 3, get(), "what took an hour is asked ten hours later")
	})
}

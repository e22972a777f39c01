// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package record

import (
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The state directory may be written again while a worker saves.
func TestTwoSavesOfOneRecordAtTheSameTimeAreBothWhole(t *testing.T) {
	s := newStore(t)
	for n := range 20 {
		var all sync.WaitGroup
		for _, held := range []string{"", strings.Repeat("x", 5000)} {
			all.Go(func() { assert.NoError(t, s.Save(Record{UID: "u1", Name: "shop", Generation: int64(n), Held: held})) })
		}
		all.Wait()
		r, err := s.Read("u1")
		require.NoError(t, err)
		require.EqualValues(t, n, r.Generation)
	}
}

func TestARestoredRecordNeverReplacesALaterOne(t *testing.T) {
	s := newStore(t)
	require.NoError(t, s.Restore(Record{UID: "u1", Name: "shop", Generation: 1}))
	require.NoError(t, s.Save(Record{UID: "u1", Name: "shop", Generation: 2}))
	require.NoError(t, s.Restore(Record{UID: "u1", Name: "shop", Generation: 1}))
	r, err := s.Read("u1")
	require.NoError(t, err)
	require.EqualValues(t, 2, r.Generation)
}

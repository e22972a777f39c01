// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/spec/durable"
)

func TestOldReceiptsThatNobodyAccountsForAreRemoved(t *testing.T) {
	state := t.TempDir()
	receipts := Receipts{StateDir: state}
	none := func(string) bool { return false }
	require.NoError(t, receipts.Prune(time.Now(), none), "there may be no receipts yet")
	require.NoError(t, os.Mkdir(filepath.Join(state, "receipts"), 0o700))
	old := time.Now().Add(-2 * time.Hour)
	put := func(name string, at time.Time) string {
		path := filepath.Join(state, "receipts", name)
		require.NoError(t, os.WriteFile(path, []byte("{"), 0o600))
		require.NoError(t, os.Chtimes(path, at, at))
		return path
	}
	running, left, young := put("a1.json", old), put("a2.json", old), put("a3.json", time.Now())
	crashed, writing, foreign := put(durable.TempPrefix+"a4.json-1", old), put(durable.TempPrefix+"a5.json-1", time.Now()), put("README", old)
	require.NoError(t, receipts.Prune(time.Now().Add(-time.Hour), func(attempt string) bool { return attempt == "a1" }))
	for _, path := range []string{running, young, writing, foreign} {
		assert.FileExists(t, path)
	}
	for _, path := range []string{left, crashed} {
		assert.NoFileExists(t, path)
	}
}

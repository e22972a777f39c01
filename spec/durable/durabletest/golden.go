// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

// Package durabletest checks, in the tests of a durable format's owner, that files of
// every version that was ever written are read and lose nothing. It writes nothing.
package durabletest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/spec/durable"
)

// Golden reads the files testdata/<kind>-v<n>*.json of each version n up to newest, of
// which there must be some, as T. What they say must be in what T says.
func Golden[T any](t *testing.T, kind string, newest int) {
	t.Helper()
	for version := 1; version <= newest; version++ {
		files, err := filepath.Glob(fmt.Sprintf("testdata/%s-v%d*.json", kind, version))
		require.NoError(t, err)
		require.NotEmpty(t, files, "version %d of %s has no golden file", version, kind)
		for _, file := range files {
			data, err := os.ReadFile(file)
			require.NoError(t, err)
			var value T
			require.NoError(t, durable.Decode(data, newest, &value), file)
			var old, grown any
			require.NoError(t, durable.Decode(data, newest, &old))
			text, err := json.Marshal(value)
			require.NoError(t, err)
			require.NoError(t, json.Unmarshal(text, &grown))
			Within(t, file, old, grown)
		}
	}
}

// Within fails for anything in old that is not the same in grown, which may have more.
func Within(t *testing.T, path string, old, grown any) {
	t.Helper()
	switch o := old.(type) {
	case map[string]any:
		g, ok := grown.(map[string]any)
		require.True(t, ok, path)
		for field := range o {
			require.Contains(t, g, field, path)
			Within(t, path+"."+field, o[field], g[field])
		}
	case []any:
		g, ok := grown.([]any)
		require.True(t, ok, path)
		require.Len(t, g, len(o), path)
		for i := range o {
			Within(t, fmt.Sprintf("%s[%d]", path, i), o[i], g[i])
		}
	default:
		require.Equal(t, old, grown, path)
	}
}

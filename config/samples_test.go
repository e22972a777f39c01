// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What the samples of notifications do is tested with the built binary, in cmd/muxlet/e2e.
func TestEverySampleOfNotificationsIsAValidSettingsFile(t *testing.T) {
	files, err := filepath.Glob("samples/notifications/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		in := inputs(t, nil)
		path, err := filepath.Abs(file)
		require.NoError(t, err)
		in.Config = &path
		e, err := Load(in)
		require.NoError(t, err, file)
		assert.NotEmpty(t, append(e.Notifications.Command, printedTerminals(e)...), file)
	}
}

func printedTerminals(e *Effective) (words []string) {
	for _, way := range e.Notifications.Terminal {
		words = append(words, string(way))
	}
	return words
}

// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"bytes"
	"io/fs"
	"os"
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

func TestEverySampleOfSettingsIsValid(t *testing.T) {
	samples := 0
	require.NoError(t, filepath.WalkDir("samples", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".yaml" {
			return err
		}
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		if !bytes.Contains(data, []byte("apiVersion: "+GroupVersionKind.GroupVersion().String())) {
			return nil
		}
		samples++
		settings, err := Load(Inputs{
			Config: &path, Home: "/home/me", WorkingDir: ".",
			LookupEnv: func(string) (string, bool) { return "", false },
		})
		require.NoError(t, err)
		assert.NotEqual(t, Defaults(), settings.MuxletConfiguration, path)
		return nil
	}))
	assert.Positive(t, samples)
}

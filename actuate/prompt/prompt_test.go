// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package prompt

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAPromptIsReadWholeOrNotAtAll(t *testing.T) {
	path := filepath.Join(t.TempDir(), "1.prompt")
	const limit = 20
	for _, c := range []struct {
		content string
		whole   bool
	}{
		{"say\n\t'hi' \\", true},
		{strings.Repeat("x", limit), true},
		{strings.Repeat("x", limit+1), false},
		{"", false},
		{" \n\t ", false},
		{"secret\n", false},
		{"secret\x1b[201~", false},
		{"secret\r", false},
		{"secret\x00", false},
		{"secret\xff", false},
	} {
		require.NoError(t, os.WriteFile(path, []byte(c.content), 0o600))
		got, err := Read(path, limit)
		if c.whole {
			require.NoError(t, err)
			assert.Equal(t, c.content, got)
			continue
		}
		require.Error(t, err, "%q", c.content)
		assert.Empty(t, got)
		assert.NotContains(t, err.Error(), "secret")
	}
}

func TestAPromptThatIsGoneIsSaidToBe(t *testing.T) {
	_, err := Read(filepath.Join(t.TempDir(), "none"), 10)
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = Read(t.TempDir(), 10)
	require.Error(t, err)
}

// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package tmux

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/observe"
)

func TestTheTerminalsOfAServerAreParsed(t *testing.T) {
	const (
		plain     = "T\t0\t11\t500\t/dev/pts/1\txterm-256color\tattached,focused,UTF-8\t\n"
		nested    = "T\t0\t12\t7\t/dev/pts/2\ttmux-256color\tattached\ttmux 3.3a\tand more\n"
		control   = "T\t1\t13\t0\t\t\tattached,control-mode\t\n"
		suspended = "T\t0\t14\t9\t/dev/pts/4\txterm\tattached,suspended\t\n"
	)
	found, err := parseTerminals(plain + control + nested + suspended + "E\n")
	require.NoError(t, err)
	assert.Equal(t, []observe.Terminal{
		{TTY: "/dev/pts/1", PID: 11, Name: "xterm-256color", Written: 500},
		{TTY: "/dev/pts/2", PID: 12, Name: "tmux-256color", Type: "tmux 3.3a\tand more", Written: 7},
	}, found)
	found, err = parseTerminals("E\n")
	require.NoError(t, err)
	assert.Empty(t, found)
	for _, broken := range []string{"", plain, plain + "T\t0\nE\n", "X" + plain[1:] + "E\n"} {
		_, err := parseTerminals(broken)
		assert.Error(t, err, "%q", broken)
	}
}

func TestAServerWithoutTerminalsHasNone(t *testing.T) {
	c := testServer(t)
	for range 2 {
		found, err := c.Terminals(t.Context())
		require.NoError(t, err)
		assert.Empty(t, found)
		newSession(t, c, "a")
		run(t, c, "kill-session", "-t", "=a")
	}
	nobody := testConn(t)
	found, err := nobody.Terminals(t.Context())
	require.NoError(t, err)
	assert.Empty(t, found)
}

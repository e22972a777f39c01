// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build systemd && linux

package systemd

import (
	"os"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// survivesUninstall: the units are gone, and what runs in tmux goes on; installed anew,
// it is taken over as it is.
func (s *service) survivesUninstall() {
	before := s.asBefore(nil)
	a := s.uninstalls()
	require.Equal(s, 0, a.code, a.text())
	assert.Empty(s, s.unitFiles())
	assert.NotEqual(s, "active", s.look(s.daemonUnit()).state)
	require.Equal(s, before.panes, s.panes(), "the sessions go on")
	assert.Contains(s, a.out, "go on in the tmux server (pid "+before.panes[""]+")")
	a = s.uninstalls()
	require.Equal(s, 0, a.code, a.text())
	a = s.installs()
	require.Equal(s, 0, a.code, a.text())
	s.up(0)
	s.asBefore(&before)
}

// endsWithUninstall: if a person says so the sessions end too; what she has written,
// and the state, stay.
func (s *service) endsWithUninstall() {
	before := s.asBefore(nil)
	a := s.uninstalls("--end-sessions")
	require.Equal(s, 0, a.code, a.text())
	assert.Empty(s, s.unitFiles())
	assert.Empty(s, s.panes())
	assert.Empty(s, s.alive(before.panes))
	assert.Empty(s, s.systemctl("list-units", "--no-legend", "muxlet*.service", "muxlet*.socket", "muxlet*.scope").out)
	for _, path := range []string{"/.config/muxlet/sessions/plain.yaml", "/.local/state/muxlet/instance"} {
		_, err := os.Stat(s.box.Path(s.home() + path))
		assert.NoError(s, err)
	}
}

// unitFiles of muxlet's that the manager knows; the scopes of clients that go on have none.
func (s *service) unitFiles() string {
	s.Helper()
	return s.systemctl("list-unit-files", "--no-legend", "muxlet*.service", "muxlet*.socket", "muxlet*.slice").out
}

// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build systemd && linux

package systemd

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/hack/sysdbox"
)

// comesBackAfterItsServer: the clients end with their tmux server, whatever ends that;
// there is another server, and each client that is to run comes back.
func (s *service) comesBackAfterItsServer() {
	before := s.asBefore(nil)
	for _, death := range []struct {
		name string
		end  func(s *service)
	}{
		{"kill -9", func(s *service) { s.does("root", "kill", "-s", "KILL", before.panes[""]) }},
		{"kill-server", func(s *service) { require.Equal(s, 0, s.tmux("kill-server").code) }},
		{"the whole unit killed", func(s *service) { s.control("kill", "-s", "KILL", s.tmuxUnit()) }},
		{"while its program is replaced", func(s *service) {
			const program = "/usr/local/bin/muxlet"
			s.does("root", "mv", program, program+".away")
			s.control("kill", "-s", "KILL", s.tmuxUnit())
			s.eventually("a start without it", func() bool {
				result := strings.TrimSpace(s.systemctl("show", "--value", "-p", "Result", s.tmuxUnit()).out)
				return result == "exit-code" || result == "exec-condition"
			})
			s.does("root", "mv", program+".away", program)
		}},
	} {
		s.in(death.name, func(s *service) {
			daemon := s.look(s.daemonUnit())
			death.end(s)
			after := s.cameBack(before)
			assert.NotEqual(s, before.panes[""], after.panes[""], "another server")
			assert.Equal(s, daemon, s.look(s.daemonUnit()), "the daemon stays")
			assert.Empty(s, s.alive(clientsOf(before, after)), "no client of the old server is left")
			before = after
		})
	}
	s.in("nobody stops it by a slip", func(s *service) {
		assert.NotEqual(s, 0, s.systemctl("stop", s.tmuxUnit()).code)
		assert.NotEqual(s, 0, s.systemctl("restart", s.tmuxUnit()).code)
		s.asBefore(&before)
	})
}

// clientsOf before that are not those of after.
func clientsOf(before, after state) map[string]string {
	old := map[string]string{}
	for name, pid := range before.panes {
		if name != "" && after.panes[name] != pid {
			old[name] = pid
		}
	}
	return old
}

// comesBackAfterReboots: each boot has an id of its own.
func (s *service) comesBackAfterReboots() {
	s.in("power cut", func(s *service) { s.comesBackAfter(s.box.PowerCut) })
	s.in("poweroff", func(s *service) { s.comesBackAfter(s.box.Poweroff) })
	s.in("power cut again", func(s *service) { s.comesBackAfter(s.box.PowerCut) })
}

func (s *service) comesBackAfter(off func() error) {
	before, boot := s.asBefore(nil), s.box.BootID()
	require.NoError(s, off())
	s.boot()
	require.NotEqual(s, boot, s.box.BootID())
	after := s.cameBack(before)
	assert.True(s, s.hostRebooted(), "the log says that the host rebooted")
	daemon := s.look(s.daemonUnit())
	assert.Equal(s, "active", daemon.state)
	assert.Zero(s, daemon.restarts)
	s.asBefore(&after)
}

// What a user's manager runs lives as long as that does: beyond a logout only with
// linger, and then whatever logind does to the processes of a login.
func TestALogoutEndsSessionsOnlyWithoutLinger(t *testing.T) {
	t.Parallel()
	m := newMachine(t, sysdbox.User{Name: "alice", UID: 2001, Linger: true}, sysdbox.User{Name: "bob", UID: 2002})
	require.NoError(t, m.box.WriteFile("/etc/systemd/logind.conf.d/kill.conf", "[Login]\nKillUserProcesses=yes\nKillOnlyUsers=alice\n", 0o644))
	m.boot()
	alice := &service{machine: m, user: "alice", uid: 2001}
	bob := &service{machine: m, user: "bob", uid: 2002}
	t.Cleanup(alice.tell)
	t.Cleanup(bob.tell)
	alice.in("lingering", func(s *service) {
		out := s.logsIn()
		s.declares()
		a := s.installs()
		require.Equal(s, 0, a.code, a.text())
		assert.NotContains(s, a.text(), "enable-linger")
		before := s.settled()
		out()
		s.asBefore(&before)
		assert.Equal(s, "active", s.does("root", "systemctl", "is-active", "user@2001.service"))
	})
	bob.in("not lingering", func(s *service) {
		out := s.logsIn()
		s.declares()
		a := s.installs()
		assert.Contains(s, a.text(), "loginctl enable-linger", "a person is told before it matters")
		before := s.settled()
		out()
		s.eventually("the user's manager ends, and all that it ran", func() bool {
			state := strings.TrimSpace(s.tries("root", "systemctl", "is-active", "user@2002.service").out)
			return (state == "inactive" || state == "failed") && len(s.alive(before.panes)) == 0
		})
		out = s.logsIn()
		after := s.cameBack(before)
		s.does("root", "loginctl", "enable-linger", "bob")
		out()
		s.asBefore(&after)
	})
}

// logsIn opens a login session of the user, and returns what ends it.
func (s *service) logsIn() (logout func()) {
	s.Helper()
	login := s.box.Login(s.Context(), s.user, "cat")
	in, err := login.StdinPipe()
	require.NoError(s, err)
	require.NoError(s, login.Start())
	s.eventually("the user is logged in, and her manager runs", func() bool {
		return s.tries(s.user, "systemctl", "--user", "is-active", "--quiet", "basic.target").code == 0 && s.logins() > 0
	})
	return func() {
		require.NoError(s, in.Close())
		require.NoError(s, login.Wait())
		s.eventually("the login has ended", func() bool { return s.logins() == 0 })
	}
}

// logins of the user that logind knows.
func (s *service) logins() int {
	s.Helper()
	n := 0
	for line := range strings.Lines(s.does("root", "loginctl", "list-sessions", "--no-legend")) {
		if fields := strings.Fields(line); len(fields) > 2 && fields[2] == s.user {
			n++
		}
	}
	return n
}

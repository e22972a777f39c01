// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build systemd && linux

package systemd

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/hack/sysdbox"
	"github.com/muxlet/muxlet/spec"
)

// escaper is a client that has a child which leaves its session and its tree; both are
// found by their own numbers of seconds.
const escaper = `[sh, -c, "setsid -f sleep 11%[1]d; exec sleep 22%[1]d"], shellMode: None}` + "\n"

// declaresScoped writes sessions whose clients are escapers, with more of the spec.
func (s *service) declaresScoped(more ...string) {
	s.Helper()
	for i, text := range more {
		name := fmt.Sprintf("s%d", i)
		document := fmt.Sprintf("apiVersion: muxlet.dev/v1alpha1\nkind: Session\nmetadata: {name: %s}\nspec:\n  workspace: {directory: /home/%s}\n  client: {command: ", name, s.user) +
			fmt.Sprintf(escaper, i) + text
		require.NoError(s, s.box.WriteFile(fmt.Sprintf("/home/%s/.config/muxlet/sessions/%s.yaml", s.user, name), document, 0o644))
	}
}

// counts the processes of an escaper: two when it runs.
func (s *service) counts(i int) int {
	s.Helper()
	return len(strings.Fields(s.tries(s.user, "pgrep", "-fx", fmt.Sprintf("sleep (11|22)%d", i)).out))
}

// scopesNow are the units of the clients.
func (s *service) scopesNow() []string {
	s.Helper()
	var names []string
	for line := range strings.Lines(s.does(s.user, "systemctl", "--user", "list-units", "--plain", "--no-legend", "muxlet-*.scope")) {
		names = append(names, strings.Fields(line)[0])
	}
	return names
}

func (s *service) client(name string) spec.ClientStatus {
	s.Helper()
	session, err := s.api().Session(s.Context(), name)
	require.NoError(s, err)
	return session.Status.Client
}

func (s *service) runs(name string, incarnation int64) {
	s.Helper()
	s.eventually(name+" runs", func() bool {
		session, err := s.api().Session(s.Context(), name)
		return err == nil && ready(session) && session.Status.Client.Incarnation == incarnation
	})
}

// The user's own manager makes each client's scope as it was ordered, all that a client
// started ends with its session, and with no other.
func TestEachClientHasAScopeOfTheManagerAndEndsWithAllThatItStarted(t *testing.T) {
	t.Parallel()
	m := newMachine(t, sysdbox.User{Name: "alice", UID: 2001, Linger: true})
	m.boot()
	s := &service{machine: m, user: "alice", uid: 2001}
	t.Cleanup(s.tell)
	s.declaresScoped("  resources: {limits: {memory: 60Mi, cpu: 500m, tasks: 100}}\n  terminationGracePeriodSeconds: 7\n", "", "", "")
	daemon := func(unit string) {
		s.does("alice", "systemd-run", "--user", "--quiet", "--unit="+unit, "-p", "KillMode=process", "muxlet", "daemon")
	}
	daemon("first")
	for i := range 4 {
		s.runs(fmt.Sprintf("s%d", i), 1)
	}
	scope := s.client("s0").Scope
	require.NotNil(t, scope)
	assert.Len(t, s.scopesNow(), 4)
	shown := s.does("alice", "systemctl", "--user", "show", scope.Name, "-p", "ActiveState,Slice,ControlGroup,OOMPolicy,CollectMode,MemoryMax,MemorySwapMax,CPUQuotaPerSecUSec,TasksMax,SendSIGHUP,TimeoutStopUSec")
	for _, property := range []string{
		"ActiveState=active", "Slice=muxlet.slice", "ControlGroup=" + scope.ControlGroup, "OOMPolicy=continue", "CollectMode=inactive-or-failed",
		"MemoryMax=62914560", "MemorySwapMax=0", "CPUQuotaPerSecUSec=500ms", "TasksMax=100", "SendSIGHUP=yes", "TimeoutStopUSec=7s",
	} {
		assert.Contains(t, strings.Split(shown, "\n"), property)
	}
	s.eventually("the client and what it has started", func() bool { return s.counts(0) == 2 })

	// For good: the whole tree, and what has left it.
	s.muxlet("terminate", "s0")
	assert.Zero(t, s.counts(0))
	s.muxlet("delete", "s1")
	assert.Zero(t, s.counts(1))
	// A restart leaves and lists it.
	s.muxlet("restart", "s2")
	s.runs("s2", 2)
	s.eventually("what the client before has left, and the new one with what it starts", func() bool { return s.counts(2) == 3 })
	assert.Len(t, s.client("s2").Survivors, 1)
	s.muxlet("suspend", "s2")
	assert.Zero(t, s.counts(2))

	// The unit has the tmux server too, which goes on.
	// What a client has left that ended while no daemon ran is ended by the next one, since
	// its session is to be down.
	before := s.client("s3").Pid
	s.does("alice", "systemctl", "--user", "kill", "--kill-who=main", "-s", "KILL", "first")
	s.eventually("the daemon is gone", func() bool { return s.tries("alice", "pgrep", "-fx", "muxlet daemon").out == "" })
	assert.Equal(t, 2, s.counts(3), "clients go on without a daemon")
	s.declaresScoped("", "", "  suspend: true\n", "  suspend: true\n")
	s.does("alice", "sh", "-c", fmt.Sprintf("rm ~/.config/muxlet/sessions/s1.yaml; kill -9 %d", before))
	s.eventually("the child alone is left", func() bool { return s.counts(3) == 1 })
	daemon("second")
	s.eventually("and is ended", func() bool { return s.counts(3) == 0 })
	s.eventually("no scope is left", func() bool { return len(s.scopesNow()) == 0 })
}

// A daemon of the system's manager asks the manager of its user only when that outlives
// her logouts: else they would end her sessions.
func TestAServiceOfTheSystemUsesTheManagerOfAUserWhoLingersAlone(t *testing.T) {
	t.Parallel()
	m := newMachine(t, sysdbox.User{Name: "alice", UID: 2001, Linger: true}, sysdbox.User{Name: "bob", UID: 2002})
	m.boot()
	daemon := func(user string, uid int) *service {
		s := &service{machine: m, user: user, uid: uid, system: true}
		t.Cleanup(s.tell)
		s.declaresScoped("", "  resources: {limits: {tasks: 100}}\n")
		m.does("root", "install", "-d", "-o", user, "-m", "0700", s.runtimeDir())
		m.does("root", "systemd-run", "--quiet", "--uid="+user, "--unit=by-hand-"+user, "-E", "HOME="+s.home(), "-E", "MUXLET_RUNTIME_DIR="+s.runtimeDir(), "muxlet", "daemon")
		s.runs("s0", 1)
		return s
	}
	alice := daemon("alice", 2001)
	alice.runs("s1", 1)
	assert.Len(t, alice.scopesNow(), 2)

	bob := daemon("bob", 2002)
	assert.Nil(t, bob.client("s0").Scope)
	bob.eventually("limits are refused", func() bool {
		session, err := bob.api().Session(t.Context(), "s1")
		return err == nil && spec.DisplayStatus(session) == spec.StatusBlocked && session.Status.Decision.Reason == spec.ReasonResourcesUnsupported
	})
	assert.Contains(t, bob.muxlet("describe", "s1"), "does not outlive a logout")

	// They are in no unit of the system's manager, and end with the sessions all the same.
	m.does("root", "systemctl", "stop", "by-hand-alice")
	a := alice.installs()
	require.Equal(t, 0, a.code, a.text())
	alice.runs("s0", 2)
	alice.runs("s1", 2)
	a = alice.uninstalls("--end-sessions")
	require.Equal(t, 0, a.code, a.text())
	assert.Empty(t, m.tries("root", "pgrep", "-u", "alice", "-x", "-a", "sleep").out)
	assert.Empty(t, alice.scopesNow())
}

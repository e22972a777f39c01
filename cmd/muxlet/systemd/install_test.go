// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build systemd && linux

package systemd

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/hack/sysdbox"
)

// A8, A13, K6: what a person installs survives everything that happens to a daemon, and
// comes back after what happens to a tmux server and to a host.
func TestInstalledSessionsSurviveWhatHappensToADaemonAServerAndAHost(t *testing.T) {
	t.Parallel()
	m := newMachine(t, sysdbox.User{Name: "alice", UID: 2001, Linger: true})
	m.boot()
	s := &service{machine: m, user: "alice", uid: 2001}
	t.Cleanup(s.tell)
	s.in("installed", (*service).isInstalled)
	s.in("daemon", (*service).survivesItsDaemon)
	s.in("managers", (*service).survivesManagers)
	s.in("upgrade", (*service).survivesAnUpgrade)
	s.in("server", (*service).comesBackAfterItsServer)
	s.in("reboots", (*service).comesBackAfterReboots)
	s.in("uninstalled", (*service).survivesUninstall)
	s.in("ended", (*service).endsWithUninstall)
}

// The same by the system's manager, for a user who has none of her own.
func TestTheSystemsManagerRunsMuxletForAUser(t *testing.T) {
	t.Parallel()
	m := newMachine(t, sysdbox.User{Name: "alice", UID: 2001})
	m.boot()
	s := &service{machine: m, user: "alice", uid: 2001, system: true}
	t.Cleanup(s.tell)
	s.seesTheBootID()
	s.in("installed", (*service).isInstalled)
	s.in("hardened", (*service).isHardened)
	s.in("daemon", (*service).survivesItsDaemon)
	s.in("server", (*service).comesBackAfterItsServer)
	s.in("reboot", func(s *service) { s.comesBackAfter(s.box.PowerCut) })
	s.in("uninstalled", (*service).survivesUninstall)
	s.in("ended", (*service).endsWithUninstall)
}

// A person who began by hand installs muxlet later: her sessions go on in the tmux
// server that they have, until that ends.
func TestWhatWasStartedByHandIsTakenOverAsItIs(t *testing.T) {
	t.Parallel()
	m := newMachine(t, sysdbox.User{Name: "alice", UID: 2001, Linger: true})
	m.boot()
	s := &service{machine: m, user: "alice", uid: 2001}
	t.Cleanup(s.tell)
	s.declares()
	byHand := m.box.Command(t.Context(), "alice", "sh", "-c", "echo $$; exec muxlet daemon 2>daemon.log")
	out, err := byHand.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, byHand.Start())
	pid, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	pid = strings.TrimSpace(pid)
	before := s.settled()

	a := s.installs()
	assert.NotZero(t, a.code, a.text())
	assert.Contains(t, a.errOut, "pid "+pid, "it is not fought with")
	s.asBefore(&before)
	m.does("root", "kill", pid)
	_ = byHand.Wait()
	a = s.installs()
	require.Zero(t, a.code, a.text())
	s.up(0)
	s.asBefore(&before)
	assert.Zero(t, s.look(s.tmuxUnit()).pid, "the old server holds the sessions")

	m.does("root", "kill", "-s", "KILL", before.panes[""])
	after := s.cameBack(before) // and is owned by the unit
	a = s.installs()
	require.Zero(t, a.code, a.text())
	s.asBefore(&after)
}

// isInstalled: once, whatever number of times it is asked for.
func (s *service) isInstalled() {
	s.declares()
	a := s.installs()
	require.Equal(s, 0, a.code, a.text())
	s.up(0)
	before := s.settled()
	s.ownsTheServer(before)
	s.givesNothingOfItsOwn(before)
	s.tellsItsManager()
	daemon := s.look(s.daemonUnit())
	assert.Regexp(s, `\b0 errors, 0 warnings\b`, s.muxlet("doctor"))
	a = s.installs()
	require.Equal(s, 0, a.code, a.text())
	assert.NotContains(s, a.out, "created")
	assert.NotContains(s, a.out, "configured")
	assert.Equal(s, daemon, s.look(s.daemonUnit()), "nothing is restarted")
	s.asBefore(&before)
	verify := []string{"systemd-analyze", "verify", s.daemonUnit(), s.tmuxUnit(), s.socketUnit(), "muxlet.slice"}
	if !s.system {
		verify = append([]string{"systemd-analyze", "--user", "verify"}, verify[2:]...)
	}
	assert.Empty(s, s.tries(s.installer(), verify...).text(), "systemd has nothing to say about the units")
	for _, unit := range []string{s.daemonUnit(), s.tmuxUnit(), s.socketUnit()} {
		assert.Equal(s, "enabled", s.systemctl("is-enabled", unit).out[:len("enabled")], unit)
	}
}

// tellsItsManager how many sessions there are, and the journal which one a line is about.
func (s *service) tellsItsManager() {
	s.Helper()
	s.eventually("the status line counts the sessions", func() bool {
		return strings.Contains(s.control("show", "-P", "StatusText", s.daemonUnit()), "3 running")
	})
	s.tries("root", "journalctl", "--sync")
	for _, name := range declared {
		entries := s.does("root", "journalctl", "-b", "--no-pager", "-o", "json", "MUXLET_SESSION="+name)
		assert.Contains(s, entries, `"SYSLOG_IDENTIFIER":"muxlet"`, name)
		assert.Contains(s, entries, `"PRIORITY":"6"`, name)
	}
}

// givesNothingOfItsOwn: what systemd tells a service about itself would mislead a client
// that speaks to systemd.
func (s *service) givesNothingOfItsOwn(now state) {
	s.Helper()
	for _, name := range atWork {
		env := s.does("root", "sh", "-c", "tr '\\0' '\\n' </proc/"+now.panes[name]+"/environ")
		assert.NotRegexp(s, `(?m)^(NOTIFY_SOCKET|WATCHDOG_|LISTEN_|INVOCATION_ID|JOURNAL_STREAM|SYSTEMD_EXEC_PID|MANAGERPID|MUXLET_TMUX_|MUXLET_RUNTIME_DIR)`, env, name)
		assert.Contains(s, env, "HOME="+s.home()+"\n")
	}
}

// seesTheBootID also with a /proc of its own, which a protected unit of the system gets:
// the boot id of a box is a file above that of the kernel.
func (s *service) seesTheBootID() {
	s.Helper()
	const dropIn = "[Service]\nBindReadOnlyPaths=" + sysdbox.BootIDFile + ":/proc/sys/kernel/random/boot_id\n"
	require.NoError(s, s.box.WriteFile("/etc/systemd/system/muxlet@.service.d/boot-id.conf", dropIn, 0o644))
	s.control("daemon-reload")
}

// isHardened: the daemon's unit, by systemd's own score.
func (s *service) isHardened() {
	out := s.does("root", "systemd-analyze", "security", "--no-pager", s.daemonUnit())
	_, rest, found := strings.Cut(out, "Overall exposure level for "+s.daemonUnit()+": ")
	require.True(s, found, out)
	score, err := strconv.ParseFloat(strings.Fields(rest)[0], 64)
	require.NoError(s, err, rest)
	assert.LessOrEqual(s, score, 2.0, "the score of %s", s.daemonUnit())
	s.Logf("The score of %s is %.1f.", s.daemonUnit(), score)
}

// survivesItsDaemon: whatever ends it, there is another one, and each client and the
// tmux server have the pid that they had.
func (s *service) survivesItsDaemon() {
	before := s.asBefore(nil)
	replaced := func(name string, end func(pid int)) {
		s.in(name, func(s *service) {
			daemon := s.look(s.daemonUnit())
			end(daemon.pid)
			s.up(daemon.pid)
			s.asBefore(&before)
		})
	}
	signal := func(name string) func(int) {
		return func(pid int) { s.does("root", "kill", "-s", name, strconv.Itoa(pid)) }
	}
	replaced("SIGKILL", signal("KILL"))
	replaced("SIGABRT", signal("ABRT"))
	replaced("SIGTERM of its own accord", signal("TERM"))
	replaced("the whole unit killed", func(int) { s.control("kill", "-s", "KILL", s.daemonUnit()) })
	replaced("stop, then start", func(int) {
		s.control("stop", s.daemonUnit())
		require.Equal(s, before.panes, s.panes(), "while it is down")
		s.control("start", s.daemonUnit())
	})
	s.in("reload", func(s *service) {
		daemon := s.look(s.daemonUnit())
		s.control("reload", s.daemonUnit())
		s.asBefore(&before)
		assert.Equal(s, daemon, s.look(s.daemonUnit()))
	})
	s.in("restart, and nobody is refused", func(s *service) { s.refusesNobody() })
	s.asBefore(&before)
	s.in("hang", (*service).isReplacedWhenItHangs)
	s.asBefore(&before)
}

// refusesNobody: the API takes connections all through a restart of the daemon.
func (s *service) refusesNobody() {
	daemon := s.look(s.daemonUnit())
	restarted := make(chan answer, 1)
	done := false
	go func() { restarted <- s.systemctl("restart", s.daemonUnit()) }()
	calls := 0
	for end := time.Now().Add(patience); calls < 200 || !done; calls++ {
		require.True(s, time.Now().Before(end), "the restart does not end")
		require.NoError(s, s.call(), "call %d", calls+1)
		select {
		case a := <-restarted:
			require.Equal(s, 0, a.code, a.text())
			done = true
		default:
		}
	}
	s.Logf("%d calls were answered.", calls)
	assert.NotEqual(s, daemon.pid, s.look(s.daemonUnit()).pid)
}

// call the API once, on a connection of its own, and wait for the answer: from the
// daemon that runs, or from the next.
func (s *service) call() error {
	socket := fmt.Sprintf("/proc/%d/root%s/muxlet.sock", s.box.PID(), s.runtimeDir())
	conn, err := net.DialTimeout("unix", socket, patience)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(conn, "GET /healthz HTTP/1.1\r\nHost: muxlet\r\nConnection: close\r\n\r\n"); err != nil {
		return fmt.Errorf("ask: %w", err)
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		return fmt.Errorf("read the answer: %w", err)
	}
	if !strings.Contains(line, " 200 ") {
		return fmt.Errorf("the answer is %q", line)
	}
	return nil
}

// isReplacedWhenItHangs: by the watchdog. A person's drop-in makes that soon.
func (s *service) isReplacedWhenItHangs() {
	dropIn := "/etc/systemd/system/muxlet@.service.d/soon.conf"
	if !s.system {
		dropIn = s.home() + "/.config/systemd/user/muxlet.service.d/soon.conf"
	}
	require.NoError(s, s.box.WriteFile(dropIn, "[Service]\nWatchdogSec=4\n", 0o644))
	s.control("daemon-reload")
	s.control("restart", s.daemonUnit())
	daemon := s.up(0)
	s.does("root", "kill", "-s", "STOP", strconv.Itoa(daemon.pid))
	next := s.up(daemon.pid)
	assert.Equal(s, daemon.restarts+1, next.restarts, "by systemd, once")
	s.tries("root", "journalctl", "--sync")
	assert.Contains(s, s.does("root", "journalctl", "--no-pager", "-b", "-o", "cat"), "Watchdog timeout")
	require.NoError(s, os.Remove(s.box.Path(dropIn)))
	s.control("daemon-reload")
	s.control("restart", s.daemonUnit())
	s.up(next.pid)
}

// survivesManagers: they execute themselves anew, as after an upgrade of systemd.
func (s *service) survivesManagers() {
	before := s.asBefore(nil)
	daemon := s.look(s.daemonUnit())
	s.control("daemon-reexec")
	assert.Equal(s, daemon, s.up(0))
	s.does("root", "systemctl", "daemon-reexec")
	assert.Equal(s, daemon, s.up(0))
	s.control("daemon-reload")
	assert.Equal(s, daemon, s.up(0))
	s.asBefore(&before)
}

// survivesAnUpgrade: a new program takes the place of the old one, and is installed.
func (s *service) survivesAnUpgrade() {
	before := s.asBefore(nil)
	daemon := s.look(s.daemonUnit())
	require.NoError(s, s.box.CopyFile(binary, "/usr/local/bin/muxlet"))
	executable := func(pid int) string { return s.does("root", "readlink", fmt.Sprintf("/proc/%d/exe", pid)) }
	require.Contains(s, executable(daemon.pid), "(deleted)")
	a := s.installs()
	require.Equal(s, 0, a.code, a.text())
	assert.Equal(s, "/usr/local/bin/muxlet", executable(s.up(daemon.pid).pid))
	s.asBefore(&before)
}

// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/muxlet/muxlet/config"
	"github.com/muxlet/muxlet/config/systemd"
	"github.com/muxlet/muxlet/observe/process"
)

// possible says why systemd cannot run muxlet here, each time with what to do.
func (s *setup) possible(ctx context.Context) error {
	if _, err := exec.LookPath("systemctl"); err != nil {
		return errors.New("there is no systemctl here, and install is for systemd: keep \"muxlet daemon\" running by what this system has instead")
	}
	if _, err := os.Stat(s.root + "/run/systemd/system"); err != nil {
		return errors.New("this machine was not booted with systemd: keep \"muxlet daemon\" running by what it has instead")
	}
	if s.system {
		return nil
	}
	if s.settings.Origin["runtimeDir"] == config.OriginDefault && s.settings.RuntimeDir == s.systemRuntimeDir() {
		return fmt.Errorf("muxlet of %s lives in %s, which units of the system have made: end that first with: sudo muxlet uninstall --system %s --end-sessions",
			s.account.Username, s.settings.RuntimeDir, s.account.Username)
	}
	if err := s.userManager(ctx); err != nil {
		return fmt.Errorf("%w, or have root run: muxlet install --system %s", err, s.account.Username)
	}
	return nil
}

// userManager says why the user's own systemd cannot be asked.
func (s *setup) userManager(ctx context.Context) error {
	if dir, _ := s.lookupEnv("XDG_RUNTIME_DIR"); dir == "" {
		return fmt.Errorf("XDG_RUNTIME_DIR is not set, as behind su or sudo, so that your systemd cannot be found: log in as %s", s.account.Username)
	}
	if _, err := s.run(ctx, "show-environment"); err != nil {
		return fmt.Errorf("your systemd does not answer (%w): see whether it runs (systemctl status user@%d.service; it needs dbus-user-session)", err, s.uid)
	}
	return nil
}

// answering says why there is no systemd from which muxlet could be taken back.
func (s *setup) answering(ctx context.Context) error {
	if _, err := exec.LookPath("systemctl"); err != nil {
		return errors.New("there is no systemctl here, and uninstall takes back what install did with it: a daemon that you have started yourself ends with a SIGTERM")
	}
	if _, err := os.Stat(s.root + "/run/systemd/system"); err != nil {
		return fmt.Errorf("this machine was not booted with systemd, so that no unit runs: what is left are the files muxlet* in %s", s.dir())
	}
	if s.system {
		return nil
	}
	return s.userManager(ctx)
}

// otherDaemon names a daemon on the same state that is not the unit's: two would fight for
// its lock, and the unit would fail again and again.
func (s *setup) otherDaemon(ctx context.Context) error {
	if s.noStart {
		return nil
	}
	if !s.system {
		return s.otherDaemonOn(ctx, s.settings.Paths, systemd.UnitNames(false, ""))
	}
	for _, name := range s.users {
		u, err := s.lookupUser(name)
		if err != nil {
			return fmt.Errorf("user %s is not known here: %w", name, err)
		}
		usual := config.Paths{StateDir: filepath.Join(u.HomeDir, ".local/state/muxlet"), RuntimeDir: "/run/user/" + u.Uid + "/muxlet"}
		if err := s.otherDaemonOn(ctx, usual, systemd.UnitNames(true, name)); err != nil {
			return err
		}
	}
	return nil
}

func (s *setup) otherDaemonOn(ctx context.Context, paths config.Paths, names systemd.Names) error {
	holder := holderOfLock(paths.StateLock())
	// One that was just told to end needs a moment.
	for waited := time.Duration(0); holder != 0 && waited < s.patience && !s.isUnits(ctx, holder, names); waited += s.pollPeriod {
		wait(ctx, s.pollPeriod)
		holder = holderOfLock(paths.StateLock())
	}
	if holder == 0 || s.isUnits(ctx, holder, names) {
		return nil
	}
	by, stop, after := "was started by hand", fmt.Sprintf("kill %d", holder), "the sessions go on"
	if unit := unitOf(holder); unit.Service() && sharedBy(holder, holder) != "" {
		by, stop = "is "+unit.Name, strings.Join(systemctl{system: !unit.User}.words("disable", "--now", unit.Name), " ")
		if servers, err := process.FindServers(paths.TmuxSocket()); err == nil && len(servers) > 0 && unitOf(servers[0].PID) == unit {
			after = "the tmux server is in that unit: its sessions end with it and come back, unless you set KillMode=process in it before"
		}
	}
	return fmt.Errorf("a muxlet daemon that %s (pid %d) keeps the sessions of %s: stop it (%s; %s) and run this again", by, holder, paths.StateDir, stop, after)
}

// otherSocket says that the unit of the tmux server serves another runtime directory than is
// to be installed. It goes on there until it ends, sessions in it without a daemon, and the
// new daemon would wait for a server that never comes.
func (s *setup) otherSocket(ctx context.Context) error {
	if s.system || s.noStart {
		return nil
	}
	unit := systemd.UnitNames(false, "").Tmux
	state, err := s.state(ctx, unit)
	if err != nil || state.mainPID == 0 {
		return err
	}
	servers, err := process.AllServers()
	if err != nil {
		return fmt.Errorf("look where %s is: %w", unit, err)
	}
	for _, server := range servers {
		if dir := filepath.Dir(server.Socket); server.PID == state.mainPID && server.Socket != s.settings.Paths.TmuxSocket() {
			return fmt.Errorf("%s (pid %d) serves the sessions of %s, and not of %s: install for the directories that it has, or end its sessions first with: muxlet uninstall --runtime-dir %s --end-sessions",
				unit, server.PID, dir, s.settings.RuntimeDir, shellWord(dir))
		}
	}
	return nil
}

// isUnits says whether a process is the daemon of the unit.
func (s *setup) isUnits(ctx context.Context, pid int, names systemd.Names) bool {
	state, err := s.state(ctx, names.Daemon)
	return err == nil && state.mainPID == pid
}

// holderOfLock is the pid of the daemon that holds a lock; 0 when nobody does.
func holderOfLock(path string) int {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return 0
	}
	defer func() { _ = f.Close() }()
	if err := unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB); !errors.Is(err, unix.EWOULDBLOCK) {
		return 0
	}
	pid, _ := strconv.Atoi(holderPID(f))
	return pid
}

// tellServer says whose the tmux server is: sessions that live already go on where they are.
func (s *setup) tellServer(ctx context.Context, names systemd.Names) error {
	socket := ""
	if s.settings != nil {
		socket = s.settings.Paths.TmuxSocket()
	}
	state, err := s.state(ctx, names.Tmux)
	if err != nil {
		return err
	}
	if state.active == "active" {
		return s.say("%s runs (pid %d)", names.Tmux, state.mainPID)
	}
	if servers, err := process.FindServers(socket); socket != "" && err == nil && len(servers) > 0 {
		return s.say("The tmux server that holds your sessions (pid %d) was started before: they go on in it, and %s takes over once it has ended.", servers[0].PID, names.Tmux)
	}
	return s.say("%s is %s: the daemon has it started when a session waits.", names.Tmux, state.active)
}

// lingers says whether the units of a user run without a login.
func (g *globals) lingers(name string) bool {
	_, err := os.Stat(filepath.Join(g.root+"/var/lib/systemd/linger", name))
	return err == nil
}

// advise lets the units live without a login, or says how.
func (s *setup) advise(ctx context.Context) error {
	users := s.users
	if !s.system {
		users = []string{s.account.Username}
	}
	for _, name := range users {
		switch {
		case s.lingers(name):
		case s.linger && s.dryRun:
			if err := s.say("Would run: loginctl enable-linger %s", name); err != nil {
				return err
			}
		case s.linger:
			if _, err := runProgram(ctx, s.environ(), "loginctl", "enable-linger", name); err != nil {
				return fmt.Errorf("let the units of %s run without a login (%w): have root run: loginctl enable-linger %s", name, err, name)
			}
			if err := s.say("The units of %s run without a login from now on.", name); err != nil {
				return err
			}
		case !s.system:
			s.complain("Warning: your sessions end at your last logout, and come back at your next login: to keep them, run: loginctl enable-linger %s", name)
		}
	}
	return nil
}

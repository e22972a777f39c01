// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/muxlet/muxlet/config"
	"github.com/muxlet/muxlet/config/systemd"
)

// unitConf is the configuration with which the unit starts the tmux server.
const unitConf = "/dev/null"

// manyRestarts of the daemon by systemd are no accident any more.
const manyRestarts = 5

// service is what the doctor finds of muxlet as a service of systemd.
type service struct {
	systemctl
	names, files systemd.Names
	dir          string
}

// lookAtSystemd looks at the units, and at what decides whether sessions outlive the daemon
// and a logout.
func (p *patient) lookAtSystemd(ctx context.Context) {
	p.lookAtFate()
	if _, err := exec.LookPath("systemctl"); err != nil || p.account == nil {
		p.found(levelNote, areaSystemd, "", "there is no systemctl here: what keeps the daemon running is not looked at")
		return
	}
	if _, err := os.Stat(p.root + "/run/systemd/system"); err != nil {
		p.found(levelNote, areaSystemd, "", "this machine was not booted with systemd: what keeps the daemon running is not looked at")
		return
	}
	s, user := p.service(), ""
	if u, err := p.account(); err == nil {
		user = u.Username
	}
	daemon, err := s.state(ctx, s.names.Daemon)
	switch {
	case err != nil:
		p.found(levelNote, areaSystemd, "log in as the user, or see why: systemctl status user@"+strconv.Itoa(p.uid), "your systemd does not answer (%v): whether muxlet is a service is not known", err)
	case !daemon.loaded:
		p.found(levelNote, areaSystemd, "muxlet install", "muxlet is no service of systemd: nobody starts the daemon after a crash or a reboot")
		p.lookAtLogout(ctx)
		return
	default:
		p.lookAtUnits(ctx, s, daemon)
	}
	if !s.system {
		p.lookAtLinger(user)
	}
	p.lookAtBus()
}

func (p *patient) service() service { return p.serviceOf(p.settings) }

// serviceOf is that of the system when its runtime directory is in use, else the user's own.
func (g *globals) serviceOf(settings *config.Effective) service {
	user, _ := strings.CutPrefix(filepath.Base(g.systemRuntimeDir()), "muxlet-")
	if user != "" && settings.RuntimeDir == g.systemRuntimeDir() {
		return service{systemctl{true, g.environ()}, systemd.UnitNames(true, user), systemd.UnitNames(true, ""), g.root + systemd.SystemDir}
	}
	names := systemd.UnitNames(false, "")
	return service{systemctl{false, g.environ()}, names, names, filepath.Join(g.home, ".config", "systemd", "user")}
}

// starter is how a person starts the daemon: by hand only where it is no service, since one
// that was started by hand keeps the service from its state.
func (s service) starter() string {
	if _, err := os.Stat(filepath.Join(s.dir, s.files.Daemon)); err != nil {
		return "muxlet daemon"
	}
	return strings.Join(s.words("start", s.names.Daemon), " ")
}

func (p *patient) lookAtUnits(ctx context.Context, s service, daemon unitState) {
	again := "muxlet install"
	if s.system {
		again = "sudo muxlet install --system " + strings.TrimSuffix(strings.TrimPrefix(s.names.Daemon, "muxlet@"), ".service")
	}
	p.lookAtUnit(s, s.names.Daemon, daemon)
	for _, name := range []string{s.names.Tmux, s.names.Socket} {
		state, err := s.state(ctx, name)
		switch {
		case err != nil:
		case name == s.names.Socket && state.loaded && state.active != "active" && daemon.active == "active":
			// systemd refuses to start a socket whose service runs.
			p.found(levelWarning, areaSystemd, again, "%s is %s, so that no call starts the daemon", name, state.active)
		default:
			p.lookAtUnit(s, name, state)
		}
	}
	if daemon.restarts >= manyRestarts {
		p.found(levelWarning, areaSystemd, s.journal(s.names.Daemon), "systemd has restarted %s %d times", s.names.Daemon, daemon.restarts)
	}
	p.lookAtUnitFiles(s, again)
	if p.daemon != nil && daemon.mainPID != p.daemon.PID {
		p.found(levelWarning, areaSystemd, fmt.Sprintf("end it (kill %d; the sessions go on): systemd starts its own", p.daemon.PID), "the daemon that answers (pid %d) is not that of %s", p.daemon.PID, s.names.Daemon)
	}
	if target, err := os.Readlink("/proc/" + strconv.Itoa(daemon.mainPID) + "/exe"); err == nil && strings.HasSuffix(target, " (deleted)") {
		p.found(levelWarning, areaSystemd, again, "the program of %s was replaced, and the old one runs still", s.names.Daemon)
	}
}

// lookAtUnitFiles says which units are not those that this program would write.
func (p *patient) lookAtUnitFiles(s service, again string) {
	for _, name := range []string{s.files.Daemon, s.files.Tmux, s.files.Socket, s.files.Slice} {
		file, err := os.ReadFile(filepath.Join(s.dir, name))
		switch {
		case err != nil:
		case systemd.Edited(file):
			p.found(levelNote, areaSystemd, "put what you want otherwise into a drop-in: "+strings.Join(s.words("edit", name), " "), "%s was edited: muxlet install leaves it as it is", name)
		case !systemd.Current(name, file):
			p.found(levelWarning, areaSystemd, again, "%s was written by another version of muxlet", name)
		}
	}
}

// journal is how a person reads the log of a unit.
func (s service) journal(unit string) string {
	if s.system {
		return "its log says why: journalctl -u " + unit
	}
	return "its log says why: journalctl --user -u " + unit
}

func (p *patient) lookAtUnit(s service, name string, state unitState) {
	switch {
	case !state.loaded:
		p.found(levelWarning, areaSystemd, "muxlet install", "%s is not installed", name)
	case state.active == "failed":
		p.found(levelError, areaSystemd, s.journal(name), "%s has failed (%s)", name, state.result)
	case state.result == "exec-condition" && state.active == "inactive":
		p.found(levelNote, areaSystemd, "", "%s does not run: a tmux server lived on its socket already, and the unit takes over once that has ended", name)
	case state.active != "active":
		p.found(levelWarning, areaSystemd, strings.Join(s.words("start", name), " "), "%s is %s", name, state.active)
	case state.enabled != "enabled":
		p.found(levelWarning, areaSystemd, strings.Join(s.words("enable", name), " "), "%s is active, but not enabled: it does not come back after a reboot", name)
	default:
		p.found(levelOK, areaSystemd, "", "%s is active and enabled", name)
	}
}

// lookAtFate looks whether the tmux server is in the unit of the daemon, which systemd ends
// as a whole.
func (p *patient) lookAtFate() {
	if p.daemon == nil {
		return
	}
	if unit := sharedBy(p.daemon.PID, p.tmuxServer.PID); unit != "" {
		p.found(levelError, areaSystemd, "muxlet install gives the tmux server a unit of its own; the next server is in it",
			"the tmux server (pid %d) is in the daemon's own unit %s: your agents would die with the daemon", p.tmuxServer.PID, unit)
	}
}

func (p *patient) lookAtLinger(user string) {
	if p.lingers(user) {
		p.found(levelOK, areaSystemd, "", "%s lingers: the units run from boot on, and after a logout", user)
		return
	}
	p.found(levelWarning, areaSystemd, "loginctl enable-linger "+user, "%s does not linger: sessions end at the last logout, and come back at the next login only", user)
}

// lookAtLogout is for a server that lives in the session of a login.
func (p *patient) lookAtLogout(ctx context.Context) {
	unit := unitOf(p.tmuxServer.PID)
	if p.tmuxServer.PID == 0 || !strings.HasPrefix(unit.Name, "session-") {
		return
	}
	out, err := runProgram(ctx, p.environ(), "loginctl", "show-session", "--value", "-p", "KillUserProcesses")
	if err == nil && strings.TrimSpace(out) == "yes" {
		p.found(levelWarning, areaSystemd, "muxlet install --enable-linger", "the tmux server (pid %d) is in %s, and logind has KillUserProcesses=yes: your logout ends every session", p.tmuxServer.PID, unit.Name)
	}
}

// lookAtBus looks for the bus by which clients get scopes of their own.
func (p *patient) lookAtBus() {
	dir, _ := p.lookupEnv("XDG_RUNTIME_DIR")
	if dir == "" {
		dir = "/run/user/" + strconv.Itoa(p.uid)
	}
	if answers(filepath.Join(dir, "bus")) {
		p.found(levelOK, areaSystemd, "", "the user's bus answers: clients get scopes of their own")
		return
	}
	p.found(levelNote, areaSystemd, "install dbus-user-session, and let the user linger", "the user's bus does not answer (%s): clients get no scopes, and spec.resources cannot be kept", filepath.Join(dir, "bus"))
}

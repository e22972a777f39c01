// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build systemd && linux

package systemd

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/controller/server"
	"github.com/muxlet/muxlet/spec"
)

// service is the muxlet of one user: run by her manager, or by the system's.
type service struct {
	*machine
	user   string
	uid    int
	system bool
}

// systemctl speaks to the manager that runs it.
func (s *service) systemctl(args ...string) answer {
	s.Helper()
	if s.system {
		return s.tries("root", append([]string{"systemctl"}, args...)...)
	}
	return s.tries(s.user, append([]string{"systemctl", "--user"}, args...)...)
}

func (s *service) control(args ...string) string {
	s.Helper()
	a := s.systemctl(args...)
	require.Equal(s, 0, a.code, "systemctl %s: %s", strings.Join(args, " "), a.text())
	return strings.TrimSpace(a.out)
}

// The names of the units.
func (s *service) daemonUnit() string { return s.unit("muxlet", "service") }
func (s *service) tmuxUnit() string   { return s.unit("muxlet-tmux", "service") }
func (s *service) socketUnit() string { return s.unit("muxlet", "socket") }

func (s *service) unit(name, kind string) string {
	if s.system {
		name += "@" + s.user
	}
	return name + "." + kind
}

// runtimeDir has the sockets.
func (s *service) runtimeDir() string {
	if s.system {
		return "/run/muxlet-" + s.user
	}
	return fmt.Sprintf("/run/user/%d/muxlet", s.uid)
}

// installs runs `muxlet install` as a person does for this kind of service.
func (s *service) installs(args ...string) answer {
	s.Helper()
	return s.tries(s.installer(), s.words("install", args)...)
}

func (s *service) uninstalls(args ...string) answer {
	s.Helper()
	return s.tries(s.installer(), s.words("uninstall", args)...)
}

func (s *service) installer() string {
	if s.system {
		return "root"
	}
	return s.user
}

func (s *service) words(verb string, args []string) []string {
	if s.system {
		return slices.Concat([]string{"muxlet", verb, "--system", s.user}, args)
	}
	return slices.Concat([]string{"muxlet", verb, "--user"}, args)
}

// muxlet runs a verb as the user, with no setting that would lead it to the daemon.
func (s *service) muxlet(args ...string) string {
	s.Helper()
	return s.does(s.user, append([]string{"muxlet"}, args...)...)
}

// running is a unit as its manager sees it; all of it from one call.
type running struct {
	state, result string
	pid, restarts int
}

func (s *service) look(unit string) running {
	s.Helper()
	a := s.systemctl("show", unit, "-p", "ActiveState", "-p", "MainPID", "-p", "NRestarts", "-p", "Result")
	fields := map[string]string{}
	for line := range strings.Lines(a.out) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		fields[name] = value
	}
	pid, _ := strconv.Atoi(fields["MainPID"])
	restarts, _ := strconv.Atoi(fields["NRestarts"])
	return running{state: fields["ActiveState"], result: fields["Result"], pid: pid, restarts: restarts}
}

// up waits until the daemon's unit is active, with another process than that.
func (s *service) up(but int) running {
	s.Helper()
	var r running
	s.eventually("the daemon's unit is active, with another process than before", func() bool {
		r = s.look(s.daemonUnit())
		return r.state == "active" && r.pid != 0 && r.pid != but
	})
	return r
}

// api reaches the daemon from outside of the box.
func (s *service) api() *server.Client {
	return server.NewClient(fmt.Sprintf("/proc/%d/root%s/muxlet.sock", s.box.PID(), s.runtimeDir()))
}

// sessions as the daemon shows them now; nil when it does not.
func (s *service) sessions() map[string]*spec.Session {
	ctx, cancel := context.WithTimeout(s.Context(), 5*time.Second)
	defer cancel()
	api := s.api()
	defer api.Close()
	all := map[string]*spec.Session{}
	for _, name := range declared {
		found, err := api.Session(ctx, name)
		if err != nil {
			return nil
		}
		all[name] = found
	}
	return all
}

// tmux asks the server that the service uses.
func (s *service) tmux(args ...string) answer {
	s.Helper()
	return s.tries(s.user, append([]string{"tmux", "-N", "-S", s.runtimeDir() + "/tmux.sock"}, args...)...)
}

// panes are the pids in tmux's own words, by session: also without a daemon. The
// server's is under an empty name.
func (s *service) panes() map[string]string {
	s.Helper()
	all := map[string]string{}
	a := s.tmux("list-panes", "-a", "-F", "#{pid} #{session_name} #{pane_pid} #{pane_dead}")
	for line := range strings.Lines(a.out) {
		fields := strings.Fields(line)
		if len(fields) == 4 && fields[3] == "0" {
			all[""] = fields[0]
			all[fields[1]] = fields[2]
		}
	}
	return all
}

// alive says which of the processes of panes run in the box.
func (s *service) alive(panes map[string]string) []string {
	s.Helper()
	var alive []string
	for _, name := range slices.Sorted(maps.Keys(panes)) {
		if s.tries("root", "sh", "-c", "grep -qs '^State:.*[^ZX] (' /proc/"+panes[name]+"/status").code == 0 {
			alive = append(alive, name)
		}
	}
	return alive
}

// log is what the daemons of this boot have told the journal, with all its fields.
func (s *service) log() string {
	s.Helper()
	field := "_SYSTEMD_USER_UNIT="
	if s.system {
		field = "_SYSTEMD_UNIT="
	}
	s.tries("root", "journalctl", "--sync")
	return s.does("root", "journalctl", "--no-pager", "-b", "-o", "json", field+s.daemonUnit())
}

// tell shows what there is to see of a test that failed.
func (s *service) tell() {
	if !s.Failed() {
		return
	}
	s.Logf("units:\n%s", s.systemctl("--no-pager", "status", s.daemonUnit(), s.tmuxUnit(), s.socketUnit()).text())
	s.Logf("journal:\n%s", s.tries("root", "journalctl", "--no-pager", "-b", "-o", "short-monotonic", "-n", "150").text())
	s.Logf("sessions:\n%s", s.tries(s.user, "muxlet", "get", "-o", "wide").text())
	s.Logf("panes:\n%s", s.tmux("list-panes", "-a").text())
}

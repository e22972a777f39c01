// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/muxlet/muxlet/config/systemd"
	"github.com/muxlet/muxlet/observe/process"
)

// uninstall takes back what install did. Nothing of a session is removed.
func (s *setup) uninstall(ctx context.Context) error {
	if err := s.answering(ctx); err != nil {
		return err
	}
	if s.system && len(s.users) == 0 {
		s.users = s.enabledUsers()
	}
	if s.endSessions {
		// It would bring them back.
		if err := s.otherDaemon(ctx); err != nil {
			return err
		}
	}
	for _, names := range s.instances() {
		if err := s.bringDown(ctx, names); err != nil {
			return err
		}
	}
	if s.endSessions {
		if err := s.endRest(ctx); err != nil {
			return err
		}
	}
	if err := s.removeUnits(ctx); err != nil {
		return err
	}
	if s.dryRun {
		return nil
	}
	return s.farewell()
}

// enabledUsers are those whose instances start at boot.
func (s *setup) enabledUsers() []string {
	var users []string
	links, _ := filepath.Glob(filepath.Join(s.dir(), "*.wants", "muxlet@*.service"))
	for _, link := range links {
		users = append(users, strings.TrimSuffix(strings.TrimPrefix(filepath.Base(link), "muxlet@"), ".service"))
	}
	slices.Sort(users)
	return slices.Compact(users)
}

// bringDown stops and disables the units of one user. The socket goes first: a call would
// start the daemon again.
func (s *setup) bringDown(ctx context.Context, names systemd.Names) error {
	var there []string
	for _, unit := range []string{names.Socket, names.Daemon, names.Tmux} {
		state, err := s.state(ctx, unit)
		if err != nil {
			return err
		}
		if state.loaded && state.enabled != "" {
			there = append(there, unit)
		}
		if unit != names.Tmux && (state.loaded || state.active == "active") {
			if err := s.do(ctx, "stop", unit); err != nil {
				return err
			}
		}
	}
	if s.endSessions {
		if err := s.endServer(ctx, names); err != nil {
			return err
		}
	}
	if len(there) == 0 {
		return nil
	}
	return s.do(ctx, append([]string{"disable"}, there...)...)
}

// endServer stops the unit of the tmux server, with every session. It refuses a stop by
// hand, and a drop-in that lasts until the next boot takes that back for this one.
func (s *setup) endServer(ctx context.Context, names systemd.Names) error {
	state, err := s.state(ctx, names.Tmux)
	if err != nil || state.active != "active" && state.active != "activating" {
		return err
	}
	if s.dryRun {
		return s.do(ctx, "stop", names.Tmux)
	}
	dir := filepath.Join(s.passingDir(), names.Tmux+".d")
	dropIn := filepath.Join(dir, "50-uninstall.conf")
	// The directory goes only when nothing else is in it.
	defer func() { _, _ = os.Remove(dropIn), os.Remove(dir) }()
	err = os.MkdirAll(dir, 0o755)
	if err == nil {
		err = os.WriteFile(dropIn, []byte("[Unit]\nRefuseManualStop=no\n"), 0o644)
	}
	if err != nil {
		return fmt.Errorf("let %s be stopped: %w", names.Tmux, cause(err))
	}
	if err := s.do(ctx, "daemon-reload"); err != nil {
		return err
	}
	if err := s.do(ctx, "stop", names.Tmux); err != nil {
		return err
	}
	return s.say("%s and its sessions were ended", names.Tmux)
}

// passingDir has units that last until the next boot.
func (s *setup) passingDir() string {
	if s.system {
		return s.root + "/run/systemd/system"
	}
	dir, _ := s.lookupEnv("XDG_RUNTIME_DIR")
	return filepath.Join(dir, "systemd", "user")
}

// removeUnits removes the files, those of the system once no user needs them any more.
func (s *setup) removeUnits(ctx context.Context) error {
	if left := s.enabledUsers(); s.system && !s.dryRun && len(left) > 0 {
		return s.say("The units stay for %s.", strings.Join(left, ", "))
	}
	names := systemd.UnitNames(s.system, "")
	files := []string{names.Daemon, names.Socket, names.Tmux, names.Slice}
	if s.system {
		files = append(files, systemd.NeedrestartFile, "muxlet@root.service.d/10-root.conf")
	}
	there, removed := false, false
	for _, name := range files {
		_, err := os.Lstat(s.path(name))
		there = there || err == nil
		gone, err := s.removeFile(s.path(name))
		if err != nil {
			return err
		}
		removed = removed || gone
	}
	switch {
	case !there:
		return s.say("No unit of muxlet is there.")
	case !removed:
		return nil
	}
	_ = os.Remove(filepath.Dir(s.path("muxlet@root.service.d/10-root.conf")))
	return s.do(ctx, "daemon-reload")
}

func (s *setup) removeFile(path string) (gone bool, err error) {
	there, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err == nil && systemd.Edited(there) && !s.force {
		return false, s.say("%s was edited, and is left (--force removes it)", path)
	}
	if s.dryRun {
		return true, s.say("%s removed (dry run)", path)
	}
	if err := os.Remove(path); err != nil {
		return false, fmt.Errorf("remove unit %s: %w", path, cause(err))
	}
	return true, s.say("%s removed", path)
}

// farewell says what goes on, and what is kept where.
func (s *setup) farewell() error {
	if s.system {
		for _, name := range s.users {
			if err := s.leaveRuntimeDir(name, s.root+"/run/muxlet-"+name); err != nil {
				return err
			}
		}
		return s.say("State and manifests of each user are kept, in ~/.local/state/muxlet and ~/.config/muxlet.")
	}
	if servers, err := process.FindServers(s.settings.Paths.TmuxSocket()); err == nil && len(servers) > 0 {
		err := s.say("The sessions go on in the tmux server (pid %d). To keep them up without systemd: muxlet daemon. To end them: tmux -S %s kill-server",
			servers[0].PID, shellWord(s.settings.Paths.TmuxSocket()))
		if err != nil {
			return err
		}
	}
	return s.say("Kept are the state in %s and the manifests in %s.", s.settings.StateDir, strings.Join(s.settings.Manifests, ", "))
}

// leaveRuntimeDir takes the directory with a user's sockets away, which would still be
// taken for hers, but never from under a tmux server that lives: that is her process, and
// root does not find it among its own.
func (s *setup) leaveRuntimeDir(name, dir string) error {
	var st syscall.Stat_t
	if err := syscall.Stat(dir, &st); errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return fmt.Errorf("look at %s: %w", dir, err)
	}
	socket := filepath.Join(dir, "tmux.sock")
	servers, err := process.FindServersOf(int(st.Uid), socket)
	if err == nil && len(servers) > 0 {
		return s.say("The sessions of %s go on in the tmux server (pid %d). End them with: tmux -S %s kill-server", name, servers[0].PID, socket)
	}
	if err == nil && !slices.Contains(s.enabledUsers(), name) {
		err = os.RemoveAll(dir)
	}
	if err != nil {
		s.complain("Warning: %s was left: %v", dir, err)
	}
	return nil
}

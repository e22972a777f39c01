// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/muxlet/muxlet/config/systemd"
	"github.com/muxlet/muxlet/spec/durable"
)

// install brings systemd to run muxlet. Whatever could be in the way is looked for before
// anything is changed.
func (s *setup) install(ctx context.Context) error {
	if err := s.possible(ctx); err != nil {
		return err
	}
	files, err := s.units(ctx)
	if err != nil {
		return err
	}
	files = append(files, s.rootDropIn()...)
	changes, err := s.compare(files)
	if err != nil {
		return err
	}
	if err := s.otherDaemon(ctx); err != nil {
		return err
	}
	if err := s.otherSocket(ctx); err != nil {
		return err
	}
	for _, c := range changes {
		if err := s.write(c); err != nil {
			return err
		}
	}
	if err := s.reloadIf(ctx, changes); err != nil {
		return err
	}
	for _, names := range s.instances() {
		if err := s.bringUp(ctx, names, changes); err != nil {
			return err
		}
	}
	if s.system && len(s.users) == 0 {
		if err := s.say("Start it for a user with: muxlet install --system USER"); err != nil {
			return err
		}
	}
	return s.advise(ctx)
}

// change is what becomes of one file.
type change struct {
	systemd.File
	path, word string
}

// The words for what becomes of a file.
const (
	fileCreated    = "created"
	fileConfigured = "configured"
	fileUnchanged  = "unchanged"
)

// compare says what becomes of each file. One that somebody has edited is theirs.
func (s *setup) compare(files []systemd.File) ([]change, error) {
	var out []change
	var edited []string
	for _, f := range files {
		c := change{File: f, path: s.path(f.Name), word: fileConfigured}
		there, err := os.ReadFile(c.path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			c.word = fileCreated
		case err != nil:
			return nil, fmt.Errorf("read unit %s: %w", c.path, cause(err))
		case bytes.Equal(there, f.Content):
			c.word = fileUnchanged
		case systemd.Edited(there):
			edited = append(edited, c.path)
		}
		out = append(out, c)
	}
	if len(edited) > 0 && !s.force {
		return nil, fmt.Errorf("%s was not written by muxlet install, or was edited since: put what you want otherwise into a drop-in (%s) and remove the file, or give --force to have it written anew",
			strings.Join(edited, ", "), strings.Join(s.words("edit", filepath.Base(edited[0])), " "))
	}
	return out, nil
}

func (s *setup) write(c change) error {
	if c.word != fileUnchanged && !s.dryRun {
		err := os.MkdirAll(filepath.Dir(c.path), 0o755)
		if err == nil {
			err = durable.WriteFile(c.path, c.Content, 0o644)
		}
		if err != nil {
			return fmt.Errorf("write unit %s: %w", c.path, cause(err))
		}
	}
	if s.dryRun {
		return s.say("%s %s (dry run)", c.path, c.word)
	}
	return s.say("%s %s", c.path, c.word)
}

// rootDropIn keeps root's daemon able to look at root's own clients, which hold every
// capability: /proc of a process tells one with fewer nothing.
func (s *setup) rootDropIn() []systemd.File {
	for _, name := range s.users {
		if name == "root" {
			return []systemd.File{{Name: "muxlet@root.service.d/10-root.conf", Content: systemd.Mark([]byte("[Service]\n# root's clients hold every capability; who has fewer is told nothing of them.\nCapabilityBoundingSet=~\n"))}}
		}
	}
	return nil
}

// do runs systemctl, or says that it would.
func (s *setup) do(ctx context.Context, words ...string) error {
	if s.dryRun {
		return s.say("Would run: %s", strings.Join(s.words(words...), " "))
	}
	_, err := s.run(ctx, words...)
	return err
}

// reloadIf has systemd read the units again where they are not as it knows them: by what is
// written now, or by what somebody put into a drop-in. Only before that can it be told for
// which daemon that means a new start.
func (s *setup) reloadIf(ctx context.Context, changes []change) error {
	reload := false
	for _, c := range changes {
		reload = reload || c.word != fileUnchanged && !filepath.IsAbs(c.Name)
	}
	s.stale = map[string]bool{}
	for _, names := range s.instances() {
		for _, unit := range []string{names.Tmux, names.Socket, names.Daemon} {
			state, err := s.state(ctx, unit)
			if err != nil {
				return err
			}
			s.stale[unit] = state.reload
			reload = reload || state.reload
		}
	}
	if !reload {
		return nil
	}
	return s.do(ctx, "daemon-reload")
}

// bringUp enables and starts the units of one user. The tmux server is left alone whatever
// has changed: sessions live in it.
func (s *setup) bringUp(ctx context.Context, names systemd.Names, changes []change) error {
	states := map[string]unitState{}
	var enable []string
	for _, unit := range []string{names.Tmux, names.Socket, names.Daemon} {
		state, err := s.state(ctx, unit)
		if err != nil {
			return err
		}
		states[unit] = state
		if state.enabled != "enabled" {
			enable = append(enable, unit)
		}
	}
	if len(enable) > 0 {
		if err := s.do(ctx, append([]string{"enable"}, enable...)...); err != nil {
			return err
		}
	}
	if s.noStart {
		return nil
	}
	if states[names.Tmux].active != "active" {
		if err := s.do(ctx, "start", names.Tmux); err != nil {
			return err
		}
	}
	if err := s.bringUpDaemon(ctx, names, states, changes); err != nil || s.dryRun {
		return err
	}
	return s.tellRunning(ctx, names, states[names.Daemon].mainPID)
}

// bringUpDaemon starts the daemon, or starts it anew when its unit or its program is another
// one. A socket can only be opened, or moved, while the daemon is down.
func (s *setup) bringUpDaemon(ctx context.Context, names systemd.Names, states map[string]unitState, changes []change) error {
	template := systemd.UnitNames(s.system, "")
	daemon, socket := states[names.Daemon], states[names.Socket]
	runs := daemon.active == "active" || daemon.active == "activating" || daemon.active == "reloading"
	moved := has(changes, template.Socket)
	if socket.active != "active" || moved {
		if runs {
			if err := s.do(ctx, "stop", names.Daemon); err != nil {
				return err
			}
			runs = false
		}
		if err := s.do(ctx, "restart", names.Socket); err != nil {
			return err
		}
	}
	switch {
	case !runs:
		return s.started(s.do(ctx, "start", names.Daemon), names)
	case has(changes, template.Daemon), has(changes, "muxlet@root.service.d/10-root.conf") && names.Daemon == "muxlet@root.service",
		s.stale[names.Daemon], s.replaced(daemon.mainPID):
		return s.started(s.do(ctx, "restart", names.Daemon), names)
	}
	return nil
}

// has says whether a file of that name is not as it was.
func has(changes []change, name string) bool {
	for _, c := range changes {
		if c.Name == name && c.word != fileUnchanged {
			return true
		}
	}
	return false
}

// replaced says whether a daemon runs a program that is not the one for its unit any more.
func (s *setup) replaced(pid int) bool {
	program, err := s.program()
	return err == nil && pid > 0 && !sameProgram("/proc/"+strconv.Itoa(pid)+"/exe", program)
}

// started says where to look when the daemon did not come up.
func (s *setup) started(err error, names systemd.Names) error {
	if err == nil {
		return nil
	}
	look := "journalctl --user -u " + names.Daemon
	if s.system {
		look = "journalctl -u " + names.Daemon
	}
	return fmt.Errorf("%s did not come up (%w): its log says why: %s", names.Daemon, err, look)
}

// tellRunning says what runs now.
func (s *setup) tellRunning(ctx context.Context, names systemd.Names, before int) error {
	daemon, err := s.state(ctx, names.Daemon)
	if err != nil {
		return err
	}
	word := "started"
	switch {
	case before == daemon.mainPID:
		word = "runs"
	case before > 0:
		word = "restarted"
	}
	if err := s.say("%s %s (pid %d)", names.Daemon, word, daemon.mainPID); err != nil {
		return err
	}
	return s.tellServer(ctx, names)
}

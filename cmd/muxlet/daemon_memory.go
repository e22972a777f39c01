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
	"reflect"

	"github.com/go-logr/logr"

	"github.com/muxlet/muxlet/config"
	"github.com/muxlet/muxlet/spec"
	"github.com/muxlet/muxlet/spec/durable"
)

// What the settings give to each session is a part of what sessions are. A daemon that
// starts and does not find the settings file, because it is being replaced or what it is
// on is not mounted, would otherwise edit every session at once. So the last daemon's is
// kept in the state directory, and stays in force until a settings file says otherwise.

// settingsMemory is what is kept.
type settingsMemory struct {
	// File that said so; empty when none did.
	File                   string           `json:"file,omitempty"`
	SessionDefaults        spec.SessionSpec `json:"sessionDefaults"`
	DefaultClientClassName string           `json:"defaultClientClassName"`
}

const settingsMemoryVersion = 1

func settingsMemoryPath(stateDir string) string { return filepath.Join(stateDir, "session-defaults") }

// recalled are the settings with what the last daemon's file gave to sessions, where that
// file is gone; those themselves otherwise. file is the path of the settings file.
// The error says that a newer muxlet has kept it, so that it cannot be known.
func recalled(s *config.Effective, file string, log logr.Logger) (*config.Effective, error) {
	if !s.NoFile() {
		return s, nil
	}
	var before settingsMemory
	err := durable.Read(settingsMemoryPath(s.StateDir), settingsMemoryVersion, &before)
	if errors.Is(err, durable.ErrNewer) {
		return nil, fmt.Errorf("what the last settings file gave to sessions is not known: %w: write a settings file, or start the newer muxlet", err)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		log.Error(err, "What the last settings gave to sessions could not be read")
	}
	if err != nil || before.File == "" || before.File != file {
		return s, nil
	}
	out := s.WithSessions(before.File, before.SessionDefaults, before.DefaultClientClassName)
	log.Info("Settings file is gone, what it gave to sessions stays in force", "settings", file)
	return out, nil
}

// rested are the settings once their file has rested, where it says otherwise of sessions
// than the last daemon's did: one that is being written in place is a shorter one for a
// moment.
func (g *globals) rested(ctx context.Context, s *config.Effective) (*config.Effective, error) {
	const looks = 10
	var err error
	for range looks {
		var before settingsMemory
		if s.NoFile() || durable.Read(settingsMemoryPath(s.StateDir), settingsMemoryVersion, &before) != nil || before.saysAs(s) {
			return s, nil
		}
		info, statErr := os.Stat(s.File)
		if statErr != nil {
			return s, nil
		}
		if age := g.now().Sub(info.ModTime()); age < 0 || age >= settingsSettle {
			return s, err
		} else if !pause(ctx, settingsSettle-age) {
			return s, nil
		}
		var next *config.Effective
		if next, err = g.settings(); err == nil {
			s = next
		}
	}
	return s, err
}

func (m settingsMemory) saysAs(s *config.Effective) bool {
	return m.DefaultClientClassName == s.DefaultClientClassName && reflect.DeepEqual(m.SessionDefaults, s.SessionDefaults)
}

// remember keeps what the settings give to sessions for the next daemon.
func remember(s *config.Effective, log logr.Logger) {
	now := settingsMemory{SessionDefaults: s.SessionDefaults, DefaultClientClassName: s.DefaultClientClassName}
	if s.SessionsFromFile() {
		now.File = s.File
	}
	path := settingsMemoryPath(s.StateDir)
	var before settingsMemory
	if durable.Read(path, settingsMemoryVersion, &before) == nil && reflect.DeepEqual(before, now) {
		return
	}
	if err := (durable.Backup{State: s.StateDir}).Write(path, settingsMemoryVersion, now); err != nil {
		log.Error(err, "What the settings give to sessions could not be kept for the next daemon")
	}
}

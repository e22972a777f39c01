// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os/user"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/muxlet/muxlet/config"
	"github.com/muxlet/muxlet/config/systemd"
)

// setupFlags are those of install and uninstall.
type setupFlags struct {
	asUser, asSystem, dryRun, force bool
	linger, noStart, endSessions    bool
}

func newInstallCommand(g *globals) *cobra.Command {
	var f setupFlags
	cmd := &cobra.Command{
		Use:   "install [--user | --system [USER...]]",
		Short: "Have systemd run muxlet, and start it",
		Long: "Writes the units of systemd, enables and starts them, and says what is missing for sessions to live on\n" +
			"after a logout and a reboot. The daemon and the tmux server are services of their own: neither a restart\n" +
			"nor a crash of the daemon touches a session. Run it again after an upgrade: the daemon is restarted when\n" +
			"its program was replaced, sessions keep their processes, and what is right already stays as it is.\n\n" +
			"--user writes units for your own systemd (~/.config/systemd/user), --system templates for everybody's\n" +
			"(/etc/systemd/system, as root) and starts those of each USER. --config, --state-dir, --runtime-dir and\n" +
			"--manifests, or their variables, go into the daemon's unit with --user; for --system they belong into\n" +
			"/etc/muxlet/USER.env as MUXLET_ variables. A unit that somebody has edited is left alone:\n" +
			"what you want otherwise belongs in a drop-in, which stays.",
		Example: "  muxlet install\n  muxlet install --enable-linger\n  muxlet install --dry-run\n  sudo muxlet install --system alice",
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := g.newSetup(f, args)
			if err != nil {
				return err
			}
			return s.install(cmd.Context())
		},
	}
	f.common(cmd)
	flags := cmd.Flags()
	flags.BoolVar(&f.linger, "enable-linger", false, "let the user's units run without a login, from boot on")
	flags.BoolVar(&f.noStart, "no-start", false, "write and enable the units, and start nothing")
	return cmd
}

func newUninstallCommand(g *globals) *cobra.Command {
	var f setupFlags
	cmd := &cobra.Command{
		Use:   "uninstall [--user | --system [USER...]]",
		Short: "Stop the daemon and remove its units",
		Long: "Stops and disables the daemon and its socket and removes the units. The tmux server and its sessions go on\n" +
			"unless --end-sessions is given. State, settings and manifests are never removed.",
		Example: "  muxlet uninstall\n  muxlet uninstall --end-sessions\n  sudo muxlet uninstall --system alice",
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := g.newSetup(f, args)
			if err != nil {
				return err
			}
			return s.uninstall(cmd.Context())
		},
	}
	f.common(cmd)
	cmd.Flags().BoolVar(&f.endSessions, "end-sessions", false, "end the tmux server and every session in it")
	return cmd
}

// common are the flags of both.
func (f *setupFlags) common(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.BoolVar(&f.asUser, "user", false, "your own units (the default, but for root)")
	flags.BoolVar(&f.asSystem, "system", false, "units of the system, for each USER")
	flags.BoolVar(&f.dryRun, "dry-run", false, "say what would be done, and do nothing")
	flags.BoolVar(&f.force, "force", false, "also where somebody has edited a unit")
}

// setup installs or uninstalls.
type setup struct {
	*globals
	setupFlags
	account *user.User
	// users are those whose instances of the system's units are meant.
	users []string
	// stale are the units that were not on disk as systemd knew them.
	stale map[string]bool
	// settings of the person; nil for the system's units.
	settings *config.Effective
	systemctl
}

// newSetup says whose units are meant, and that they can be.
func (g *globals) newSetup(f setupFlags, users []string) (*setup, error) {
	if err := g.allowed(f, users); err != nil {
		return nil, err
	}
	account, err := g.account()
	if err != nil {
		return nil, fmt.Errorf("look up this account: %w", err)
	}
	s := &setup{globals: g, setupFlags: f, account: account, users: users, systemctl: systemctl{system: f.asSystem, callEnv: g.environ()}}
	for _, name := range users {
		if !userPattern().MatchString(name) {
			return nil, usagef("%q is no name of a user", name)
		}
		if _, err := g.lookupUser(name); err != nil {
			return nil, fmt.Errorf("user %s is not known here: %w", name, err)
		}
	}
	if !f.asSystem {
		s.settings, err = g.settings()
	}
	return s, err
}

// allowed says why these flags, of this person, mean nothing.
func (g *globals) allowed(f setupFlags, users []string) error {
	switch {
	case f.asUser && f.asSystem:
		return usagef("--user and --system cannot be given together")
	case len(users) > 0 && !f.asSystem:
		return usagef("a user is named together with --system alone")
	case g.account == nil:
		return errors.New("the account of this user is not known")
	case g.uid == 0 && !f.asUser && !f.asSystem:
		return usagef("say whose units are meant: --user for root's own sessions, --system USER for those of a user")
	case f.asSystem && g.uid != 0:
		return errors.New("units of the system are root's to write: run it with sudo, or leave --system out for units of your own")
	}
	for _, flag := range []string{"config", "state-dir", "runtime-dir", "manifests", "tmux-server", "metrics-listen", "v"} {
		if f.asSystem && g.given(flag, "") != nil {
			return usagef("--%s means nothing with --system, whose units are those of every user: settings of one user belong into ~USER/.config/muxlet/config.yaml, or into /etc/muxlet/USER.env as MUXLET_ variables", flag)
		}
	}
	return nil
}

// units are those that this program would write.
func (s *setup) units(ctx context.Context) ([]systemd.File, error) {
	binary, err := s.program()
	if err != nil {
		return nil, err
	}
	tmux, err := s.tmuxProgram()
	if err != nil {
		return nil, err
	}
	want := systemd.Settings{System: s.system, Binary: binary, Tmux: tmux}
	manager := s.environment(ctx)
	if manager["LANG"] == "" {
		want.Lang = "C.UTF-8"
	}
	want.Path = pathWith(manager["PATH"], filepath.Dir(tmux))
	if s.system {
		return systemd.Units(want)
	}
	want.Paths = s.settings.Paths
	want.UserRuntimeDir, _ = s.lookupEnv("XDG_RUNTIME_DIR")
	want.Arguments, want.Variables = s.given()
	return systemd.Units(want)
}

// dir is where the units are.
func (s *setup) dir() string {
	if s.system {
		return s.root + systemd.SystemDir
	}
	return filepath.Join(s.home, ".config", "systemd", "user")
}

// path of a file of the units.
func (s *setup) path(name string) string {
	if filepath.IsAbs(name) {
		return s.root + name
	}
	return filepath.Join(s.dir(), name)
}

// instances are the names of the units that run: the user's, or those of each user.
func (s *setup) instances() []systemd.Names {
	if !s.system {
		return []systemd.Names{systemd.UnitNames(false, "")}
	}
	var out []systemd.Names
	for _, name := range s.users {
		out = append(out, systemd.UnitNames(true, name))
	}
	return out
}

// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"github.com/muxlet/muxlet/config"
	"github.com/muxlet/muxlet/controller/server"
)

// settings are those in force, with the flags of this command line laid over
// them.
func (g *globals) settings() (*config.Effective, error) {
	in, err := g.inputs()
	if err != nil {
		return nil, err
	}
	effective, err := config.Load(in)
	if err != nil {
		return nil, err
	}
	return g.withFlags(effective), nil
}

// inputs are what the settings are made of, besides their file.
func (g *globals) inputs() (config.Inputs, error) {
	// The directory of a shell may be removed under it, as a worktree is.
	directory, err := os.Getwd()
	if err != nil {
		directory = ""
	}
	return config.Inputs{
		Config:     g.given("config", g.flags.config),
		StateDir:   g.given("state-dir", g.flags.stateDir),
		RuntimeDir: g.given("runtime-dir", g.flags.runtimeDir),
		TmuxServer: g.given("tmux-server", g.flags.tmuxServer), MetricsListen: g.given("metrics-listen", g.flags.metricsListen),
		Manifests:  g.flags.manifests,
		LookupEnv:  g.lookupEnv,
		Home:       g.home,
		WorkingDir: directory,
		UID:        g.uid,

		SystemRuntimeDir: g.systemRuntimeDir(),
	}, nil
}

// systemRuntimeDir is where the system units keep the runtime directory of the account.
// Whoever has given HOME another value does not mean the account's own daemon.
func (g *globals) systemRuntimeDir() string {
	if g.account == nil {
		return ""
	}
	u, err := g.account()
	if err != nil || u.HomeDir != g.home || strings.ContainsRune(u.Username, '/') {
		return ""
	}
	return "/run/muxlet-" + u.Username
}

// withFlags lays the flags over the settings that Load does not know.
func (g *globals) withFlags(effective *config.Effective) *config.Effective {
	if g.given(verbosityFlag, "") != nil {
		effective.Logging.Verbosity = g.flags.verbosity
		effective.Origin["logging.verbosity"] = config.OriginFlag
	}
	return effective
}

// given is the value of a flag, nil when the flag was not given.
func (g *globals) given(flag, value string) *string {
	if g.command == nil || !g.command.Flags().Changed(flag) {
		return nil
	}
	return &value
}

// client for the daemon that the settings point at.
func (g *globals) client() (*server.Client, error) {
	settings, err := g.settings()
	if err != nil {
		return g.clientDespite(err)
	}
	client := server.NewClient(g.apiSocket(settings))
	client.Start = g.serviceOf(settings).starter()
	return client, nil
}

// apiSocket is where the daemon of the settings answers. In a pane of muxlet's own tmux server
// there is often no XDG_RUNTIME_DIR: where nobody told the runtime directory, and there is no
// daemon in the usual one, that server's is meant.
func (g *globals) apiSocket(settings *config.Effective) string {
	socket := settings.Paths.APISocket()
	if settings.Origin["runtimeDir"] != config.OriginDefault {
		return socket
	}
	if _, err := os.Stat(socket); err == nil {
		return socket
	}
	outer := outerSocket(g.environ())
	around := config.Paths{RuntimeDir: filepath.Dir(outer), UID: g.uid}
	if _, err := os.Stat(around.APISocket()); err != nil || outer != around.TmuxSocket() {
		return socket
	}
	return around.APISocket()
}

// clientDespite is for a daemon that goes on with its earlier settings while the
// file cannot be used: what it keeps up is to be looked at and stopped meanwhile.
// A daemon that does not say that it has read that very file is another one.
func (g *globals) clientDespite(problem error) (*server.Client, error) {
	in, err := g.inputs()
	if err != nil {
		return nil, problem
	}
	settings, err := config.LoadDespiteFile(in)
	if err != nil {
		return nil, problem
	}
	client := server.NewClient(settings.Paths.APISocket())
	running, err := client.Config(context.Background())
	if err != nil || running.File == "" || running.File != config.File(in) {
		client.Close()
		return nil, problem
	}
	if g.started {
		g.complain("Warning: the running daemon goes on with its earlier settings: %v", problem)
	}
	return client, nil
}

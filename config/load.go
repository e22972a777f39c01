// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/muxlet/muxlet/spec"
)

// Inputs are what Load decides from, besides the settings file.
type Inputs struct {
	// Config, StateDir and RuntimeDir are the values of --config, --state-dir
	// and --runtime-dir; nil when the flag was not given.
	Config, StateDir, RuntimeDir *string
	// TmuxServer and MetricsListen are the values of --tmux-server and --metrics-listen; nil
	// when the flag was not given.
	TmuxServer, MetricsListen *string
	// Manifests are the values of --manifests; empty when it was not given.
	Manifests []string
	// LookupEnv reads an environment variable, as os.LookupEnv does. An empty
	// one counts as unset.
	LookupEnv func(name string) (string, bool)
	// Home is the person's home directory; empty when it is not known.
	Home string
	// WorkingDir anchors the relative paths of flags and environment variables; empty when
	// there is none, so that they cannot be used.
	WorkingDir string
	// UID of the person.
	UID int
	// SystemRuntimeDir is where the system units keep the person's runtime directory,
	// /run/muxlet-<user>; empty when that is not known.
	SystemRuntimeDir string
}

// The environment variables that give settings.
const (
	EnvConfig     = "MUXLET_CONFIG"
	EnvManifests  = "MUXLET_MANIFESTS"
	EnvStateDir   = "MUXLET_STATE_DIR"
	EnvRuntimeDir = "MUXLET_RUNTIME_DIR"
	EnvTmuxServer = "MUXLET_TMUX_SERVER"
	EnvTmuxUnit   = "MUXLET_TMUX_UNIT"
)

// Where a setting comes from, the strongest last.
const (
	OriginDefault     = "default"
	OriginFile        = "file"
	OriginEnvironment = "environment"
	OriginFlag        = "flag"
)

// Effective are the settings in force.
type Effective struct {
	// MuxletConfiguration with every value filled in and every path absolute.
	MuxletConfiguration
	// Origin of each setting by its path, such as backOff.initial.
	Origin map[string]string
	// File that was read; empty when there is none.
	File string
	// Paths that follow from the settings.
	Paths Paths
	// Sessions is sessionDefaults, ready to be laid under sessions; nil for none.
	Sessions *spec.SessionDefaults

	// empty is true when the file holds nothing at all.
	empty bool
}

// Load finds the settings in force: of each, the value of its flag, else of its
// environment variable, else of the settings file, else the default. The error
// names the flag, the variable, or the place in the file.
func Load(in Inputs) (*Effective, error) {
	l := &loader{in: in, e: &Effective{MuxletConfiguration: defaults(), Origin: map[string]string{}}}
	if err := l.emptyFlag(); err != nil {
		return nil, err
	}
	if err := errors.Join(l.file(), l.overrides()); err != nil {
		return nil, err
	}
	if err := errors.Join(l.expandFile(), l.defaultPaths()); err != nil {
		return nil, err
	}
	e := l.e
	e.Paths = Paths{StateDir: e.StateDir, RuntimeDir: e.RuntimeDir, UID: in.UID}
	e.Sessions = spec.NewSessionDefaults(&e.SessionDefaults, e.DefaultClientClassName)
	return e, nil
}

// LoadDespiteFile is Load as far as a settings file that cannot be used lets it
// tell: what is wrong there is passed over. It is for finding a daemon that went
// on with the file as it was, and nothing else.
func LoadDespiteFile(in Inputs) (*Effective, error) {
	l := &loader{in: in, e: &Effective{MuxletConfiguration: defaults(), Origin: map[string]string{}}}
	if err := l.emptyFlag(); err != nil {
		return nil, err
	}
	_ = l.file()
	if l.tree == nil {
		l.tree = &spec.Tree{}
	}
	if err := errors.Join(l.overrides(), l.expandFile(), l.defaultPaths()); err != nil {
		return nil, err
	}
	l.e.Paths = Paths{StateDir: l.e.StateDir, RuntimeDir: l.e.RuntimeDir, UID: in.UID}
	return l.e, nil
}

// loader collects the settings into e.
type loader struct {
	in   Inputs
	e    *Effective
	tree *spec.Tree
}

// emptyFlag refuses --state-dir "", which is most often an unset variable of a
// script: taking the default instead would touch the person's own state.
func (l *loader) emptyFlag() error {
	for _, f := range []struct {
		name  string
		value *string
	}{{"--config", l.in.Config}, {"--state-dir", l.in.StateDir}, {"--runtime-dir", l.in.RuntimeDir}} {
		if f.value != nil && *f.value == "" {
			return fmt.Errorf("%s is empty: give a path or leave the flag out", f.name)
		}
	}
	for _, root := range l.in.Manifests {
		if root == "" {
			return errors.New("--manifests is empty: give a path or leave the flag out")
		}
	}
	return nil
}

// file reads the settings file. One that was named must exist.
func (l *loader) file() error {
	path, named, err := l.filePath()
	if err != nil {
		return err
	}
	data, err := read(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !named:
	case err != nil:
		return fmt.Errorf("reading the settings file: %w", err)
	default:
		l.e.File, l.e.empty = path, len(bytes.TrimSpace(data)) == 0
	}
	tree, problems := spec.DecodeStrict(path, data, GroupVersionKind, &l.e.MuxletConfiguration)
	if len(problems) == 0 {
		problems = tree.Problems(Validate(&l.e.MuxletConfiguration))
	}
	l.tree = tree
	for _, name := range leaves() {
		l.set(name, OriginDefault)
		if tree.Has(name) {
			l.set(name, OriginFile)
		}
	}
	return joined(problems)
}

func joined(problems []spec.Problem) error {
	errs := make([]error, len(problems))
	for i, p := range problems {
		errs[i] = p
	}
	return errors.Join(errs...)
}

// filePath is where the settings file is, and whether someone named it.
func (l *loader) filePath() (path string, named bool, err error) {
	if l.in.Config != nil {
		path, err = l.resolve("--config", *l.in.Config)
		return path, true, err
	}
	if value := l.env(EnvConfig); value != "" {
		path, err = l.resolve(EnvConfig, value)
		return path, true, err
	}
	dir, err := l.xdg("XDG_CONFIG_HOME", ".config")
	if err != nil {
		return "", false, nil // no home, no file; a default that needs one will say so
	}
	return filepath.Join(dir, "muxlet", "config.yaml"), false, nil
}

// read reads at most one byte more than is decoded.
func read(path string) (data []byte, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, spec.MaxFileBytes+1))
}

// overrides lays the environment and the flags over the file.
func (l *loader) overrides() error {
	return errors.Join(
		l.override("stateDir", &l.e.StateDir, EnvStateDir, "--state-dir", l.in.StateDir),
		l.override("runtimeDir", &l.e.RuntimeDir, EnvRuntimeDir, "--runtime-dir", l.in.RuntimeDir),
		l.overrideManifests(),
		l.overrideTmux(),
		l.overrideMetrics(),
	)
}

// overrideTmux takes who executes the tmux server from the flag and the environment.
func (l *loader) overrideTmux() error {
	server, unit, source := l.env(EnvTmuxServer), l.env(EnvTmuxUnit), EnvTmuxServer
	if server != "" {
		l.set("tmux.server", OriginEnvironment)
	}
	if l.in.TmuxServer != nil {
		server, source = *l.in.TmuxServer, "--tmux-server"
		l.set("tmux.server", OriginFlag)
	}
	t := &l.e.Tmux
	if server != "" || l.in.TmuxServer != nil {
		t.Server = TmuxServer(server)
		if t.Server != TmuxManaged && t.Server != TmuxExternal {
			return fmt.Errorf("%s: %q is not one of %s, %s", source, server, TmuxManaged, TmuxExternal)
		}
	}
	if unit != "" {
		l.set("tmux.unit", OriginEnvironment)
		if t.Unit = unit; !unitPattern().MatchString(unit) {
			return fmt.Errorf("%s: %q is no name of a service of systemd, such as %s", EnvTmuxUnit, unit, DefaultTmuxUnit)
		}
	}
	return nil
}

func (l *loader) override(name string, setting *string, env, flag string, given *string) (err error) {
	switch value := l.env(env); {
	case given != nil:
		l.set(name, OriginFlag)
		*setting, err = l.resolve(flag, *given)
	case value != "":
		l.set(name, OriginEnvironment)
		*setting, err = l.resolve(env, value)
	}
	return err
}

func (l *loader) overrideManifests() error {
	roots, source, origin := l.in.Manifests, "--manifests", OriginFlag
	if len(roots) == 0 {
		roots = strings.FieldsFunc(l.env(EnvManifests), func(r rune) bool { return r == filepath.ListSeparator })
		source, origin = EnvManifests, OriginEnvironment
	}
	if len(roots) == 0 {
		return nil
	}
	l.set("manifests", origin)
	l.e.Manifests = nil
	for _, root := range roots {
		path, err := l.resolve(source, root)
		if err != nil {
			return err
		}
		l.e.Manifests = append(l.e.Manifests, path)
	}
	return nil
}

func (l *loader) set(name, origin string) { l.e.Origin[name] = origin }

// expandFile makes the paths of the file absolute. Those of flags and variables
// are: a second expansion would take a $ in a directory's name for a variable.
func (l *loader) expandFile() error {
	errs := []error{
		l.expandOne("stateDir", "stateDir", &l.e.StateDir),
		l.expandOne("runtimeDir", "runtimeDir", &l.e.RuntimeDir),
		l.expandOne("observation.bootIDPath", "observation.bootIDPath", &l.e.Observation.BootIDPath),
		l.expandOne("tmux.include", "tmux.include", &l.e.Tmux.Include),
	}
	if strings.Contains(l.e.Tmux.Command, "/") {
		errs = append(errs, l.expandOne("tmux.command", "tmux.command", &l.e.Tmux.Command))
	}
	if command := l.e.Notifications.Command; len(command) > 0 && strings.ContainsAny(command[0], "/~$") {
		errs = append(errs, l.expandOne("notifications.command", "notifications.command[0]", &command[0]))
	}
	for i := range l.e.Manifests {
		errs = append(errs, l.expandOne("manifests", fmt.Sprintf("manifests[%d]", i), &l.e.Manifests[i]))
	}
	return errors.Join(errs...)
}

// expandOne expands a path of the file, if it is one.
func (l *loader) expandOne(setting, path string, value *string) error {
	if l.e.Origin[setting] != OriginFile || *value == "" {
		return nil
	}
	expanded, err := l.expand(*value)
	if err == nil && !filepath.IsAbs(expanded) {
		err = fmt.Errorf("%q is relative once its variables are filled in", expanded)
	}
	if err != nil {
		return spec.Problem{Position: l.tree.Position(path), Path: path, Message: err.Error()}
	}
	*value = filepath.Clean(expanded)
	return nil
}

// defaultPaths fills in the paths that nobody gave.
func (l *loader) defaultPaths() error {
	if len(l.e.Manifests) == 0 {
		dir, err := l.xdg("XDG_CONFIG_HOME", ".config")
		if err != nil {
			return err
		}
		l.set("manifests", OriginDefault)
		l.e.Manifests = []string{filepath.Join(dir, "muxlet", "sessions")}
	}
	given := l.e.StateDir != ""
	if !given {
		dir, err := l.xdg("XDG_STATE_HOME", filepath.Join(".local", "state"))
		if err != nil {
			return err
		}
		l.set("stateDir", OriginDefault)
		l.e.StateDir = filepath.Join(dir, "muxlet")
	}
	if l.e.RuntimeDir == "" {
		l.set("runtimeDir", OriginDefault)
		l.e.RuntimeDir = filepath.Join(l.e.StateDir, "run")
		switch dir := l.env("XDG_RUNTIME_DIR"); {
		case given:
		case l.in.SystemRuntimeDir != "" && private(l.in.SystemRuntimeDir, l.in.UID):
			l.e.RuntimeDir = l.in.SystemRuntimeDir
		case filepath.IsAbs(dir):
			l.e.RuntimeDir = filepath.Join(dir, "muxlet")
		}
	}
	return nil
}

// private says whether dir is a directory, no link to one, of the user's own that nobody
// else can enter. Anybody may name one in a directory that is open to all; nobody can make
// one that belongs to somebody else.
func private(dir string, uid int) bool {
	info, err := os.Lstat(dir)
	if err != nil || !info.IsDir() || info.Mode().Perm() != 0o700 {
		return false
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(owner.Uid) == uid
}

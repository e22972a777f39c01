// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/muxlet/muxlet/config"
	"github.com/muxlet/muxlet/config/systemd"
)

// userPattern matches what useradd takes for a name, and what means nothing to systemd.
var userPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]*$`) })

// passing are directories whose files do not stay.
var passing = []string{"/tmp", "/var/tmp", "/dev/shm", "/run", "/proc"}

// calledAs is the path of this program as the person calls it: a link that is kept up to date
// by whoever upgrades stays a link.
func calledAs() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find the muxlet program: %w", err)
	}
	if strings.HasSuffix(self, " (deleted)") {
		return "", errors.New("this muxlet was removed or replaced while it ran: run the one that is there now")
	}
	called, err := exec.LookPath(os.Args[0])
	if err == nil {
		called, err = filepath.Abs(called)
	}
	if err != nil || !sameProgram(called, self) {
		called = self
	}
	return called, nil
}

// sameProgram says whether two paths lead to the same file.
func sameProgram(a, b string) bool {
	one, errOne := os.Stat(a)
	other, errOther := os.Stat(b)
	return errOne == nil && errOther == nil && os.SameFile(one, other)
}

// program is the path for the units. One that will be gone at the next boot is refused.
func (s *setup) program() (string, error) {
	called, err := s.called()
	if err != nil {
		return "", err
	}
	target, err := filepath.EvalSymlinks(called)
	if err != nil {
		return "", fmt.Errorf("find the muxlet program: %w", err)
	}
	for _, path := range []string{called, target} {
		if !s.stays(path) {
			return "", fmt.Errorf("%s does not stay there: put muxlet where it does, such as %s, and run that one", path, s.goodPlace())
		}
	}
	if err := executable(called); err != nil {
		return "", err
	}
	if s.system {
		return called, s.reachable(target)
	}
	return called, nil
}

// executable says that systemd takes no such path for a program, however it is quoted.
func executable(path string) error {
	if strings.ContainsFunc(path, func(r rune) bool { return unicode.IsControl(r) || strings.ContainsRune(`"'\\`, r) }) {
		return fmt.Errorf("systemd executes nothing whose path has quotes, backslashes or control characters: have %q at another path, and run this again", path)
	}
	return nil
}

// staying says whether a file is still there after the next boot.
func staying(path string) bool {
	return !strings.Contains(path, "/go-build") && !slices.ContainsFunc(passing, func(dir string) bool { return strings.HasPrefix(path, dir+"/") })
}

func (s *setup) goodPlace() string {
	if s.system {
		return "/usr/local/bin"
	}
	return "~/.local/bin"
}

// reachable says whether every user can execute a program.
func reachable(path string) error {
	for at := path; ; at = filepath.Dir(at) {
		info, err := os.Stat(at)
		if err != nil {
			return fmt.Errorf("look at %s: %w", at, cause(err))
		}
		if info.Mode().Perm()&0o001 == 0 {
			return fmt.Errorf("other users cannot execute %s, since %s is closed to them: put it into /usr/local/bin", path, at)
		}
		if at == "/" {
			return nil
		}
	}
}

// tmuxProgram is the absolute path of tmux.
func (s *setup) tmuxProgram() (string, error) {
	command := "tmux"
	if s.settings != nil {
		command = s.settings.Tmux.Command
	}
	path, err := exec.LookPath(command)
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err != nil {
		return "", fmt.Errorf("%s is not in PATH: install tmux 3.2 or newer, or name it by tmux.command in the settings", command)
	}
	return path, executable(path)
}

// pathWith is the PATH of the daemon: empty where the manager's own has dir.
func pathWith(manager, dir string) string {
	if manager == "" {
		manager = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	}
	if slices.Contains(filepath.SplitList(manager), dir) {
		return ""
	}
	return dir + ":" + manager
}

// given are the settings of this call, by flag or environment, that the daemon's unit has to
// repeat: it has neither.
func (s *setup) given() (arguments []string, variables []systemd.Variable) {
	for _, v := range []struct{ name, usual string }{{"XDG_CONFIG_HOME", ".config"}, {"XDG_STATE_HOME", ".local/state"}} {
		if value, _ := s.lookupEnv(v.name); filepath.IsAbs(value) && filepath.Clean(value) != filepath.Join(s.home, v.usual) {
			variables = append(variables, systemd.Variable{Name: v.name, Value: value})
		}
	}
	said := func(setting string) bool {
		return slices.Contains([]string{config.OriginFlag, config.OriginEnvironment}, s.settings.Origin[setting])
	}
	if env, _ := s.lookupEnv(config.EnvConfig); env != "" || s.globals.given("config", "") != nil {
		arguments = append(arguments, "--config", s.settings.File)
	}
	if said("stateDir") {
		arguments = append(arguments, "--state-dir", s.settings.StateDir)
	}
	if said("manifests") {
		for _, root := range s.settings.Manifests {
			arguments = append(arguments, "--manifests", root)
		}
	}
	return arguments, variables
}

// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	actuatetmux "github.com/muxlet/muxlet/actuate/tmux"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/observe/process"
	"github.com/muxlet/muxlet/spec"
	"github.com/muxlet/muxlet/spec/manifest"
)

// slowProfile is the time from which on a person is told that the profile is slow: each
// start of a client waits for it.
const slowProfile = 2 * time.Second

// need is a program that sessions run.
type need struct {
	name string
	mode spec.ShellMode
	// path is the PATH that the sessions set themselves; empty when they set none.
	path string
	// class of it; empty for a session's own command.
	class string
	// sessions that need it; none for a class that is only there.
	sessions []string
}

// needsOf are the programs of what is declared, and of the built-in classes, by their
// mode, name and PATH.
func needsOf(sessions []spec.Document, classes *manifest.Classes) []need {
	found := map[string]*need{}
	add := func(n need, session string) {
		key := strings.Join([]string{string(n.mode), n.name, n.path, n.class}, "\x00")
		if found[key] == nil {
			found[key] = &n
		}
		if session != "" {
			found[key].sessions = append(found[key].sessions, session)
		}
	}
	used := map[string]bool{}
	for _, doc := range sessions {
		client := &doc.Session.Spec.Client
		n := need{mode: cmp.Or(client.ShellMode, spec.ShellInteractive), path: literal(client.Env, "PATH")}
		if class := classes.Of(&doc); class != nil && len(class.Spec.Start.Command) > 0 {
			n.name, n.class = class.Spec.Start.Command[0], class.Name
		} else if len(client.Command) > 0 {
			n.name = client.Command[0]
		} else {
			continue
		}
		used[n.class] = true
		add(n, doc.Name)
	}
	for _, name := range spec.ClassNames(classes.Declared) {
		class := spec.ResolveClass(name, classes.Declared)
		if len(class.Spec.Start.Command) > 0 && !used[name] {
			add(need{name: class.Spec.Start.Command[0], class: name, mode: spec.ShellInteractive}, "")
		}
	}
	var all []need
	for _, key := range slices.Sorted(maps.Keys(found)) {
		all = append(all, *found[key])
	}
	return all
}

// literal is the value that env sets; empty for none, or one that is read from a file.
func literal(env []spec.EnvVar, name string) string {
	value := ""
	for _, v := range env {
		if v.Name == name {
			value = v.Value
		}
	}
	return value
}

// judgeNeed says whether a program is found in path; own is the PATH of whoever asks.
func judgeNeed(n need, path, own string, search func(name, path string) string) finding {
	f := finding{Area: areaPrograms}
	who := n.name
	if n.class != "" {
		who = fmt.Sprintf("%s (class %s)", n.name, n.class)
	}
	if n.path != "" {
		path = n.path
	}
	if at := search(n.name, path); at != "" {
		f.Level, f.Message = levelOK, fmt.Sprintf("%s is %s.", who, at)
		return f
	}
	if len(n.sessions) == 0 {
		f.Level, f.Message = levelNote, fmt.Sprintf("%s is not found; no session uses it.", who)
		return f
	}
	f.Level = levelError
	users := listed(n.sessions) + " needs"
	if len(n.sessions) > 1 {
		users = listed(n.sessions) + " need"
	}
	f.Message = fmt.Sprintf("%s, which %s, is not found in the PATH that shellMode %s gives: %s", who, users, n.mode, path)
	f.Fix = fmt.Sprintf("Install %s, or give its path.", n.name)
	if n.path != "" {
		f.Message = fmt.Sprintf("%s, which %s, is not found in the PATH of spec.client.env: %s", who, users, n.path)
	}
	if at := search(n.name, own); at != "" {
		f.Fix = fmt.Sprintf("It is in your own PATH (%s): add %s to PATH in your shell's profile, or set PATH in spec.client.env.", at, filepath.Dir(at))
	}
	return f
}

// search is where a program is found in path; empty for nowhere.
func search(name, path string) string {
	if strings.Contains(name, "/") && !filepath.IsAbs(name) {
		return name // it is looked for in the workspace
	}
	found, err := process.LookPath(name, "/", []string{"PATH=" + path})
	if err != nil {
		return ""
	}
	return found
}

// listed are names for a sentence.
func listed(names []string) string {
	const most = 3
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}

func (p *patient) lookAtPrograms(ctx context.Context) {
	shell := p.accountShell()
	if problem := shell.Problem(); problem != "" {
		p.found(levelWarning, areaPrograms, "choose another one with chsh, or live with it", "%s: %s is used for shellMode Interactive and Login", problem, shell.Path)
	}
	own, _ := p.lookupEnv("PATH")
	needs := needsOf(p.sessions())
	paths := map[spec.ShellMode]string{}
	for _, n := range needs {
		if _, known := paths[n.mode]; known || n.path != "" {
			continue
		}
		paths[n.mode] = p.pathOf(ctx, shell, n.mode)
	}
	for _, n := range needs {
		if paths[n.mode] != "" || n.path != "" {
			p.findings = append(p.findings, judgeNeed(n, paths[n.mode], own, search))
		}
	}
}

// sessions are the documents of sessions, as the manifests have them now, with the
// classes to judge them by.
func (p *patient) sessions() ([]spec.Document, *manifest.Classes) {
	classes := &manifest.Classes{Default: p.settings.DefaultClientClassName}
	classes.AddReading(p.reading)
	var found []spec.Document
	for _, file := range p.reading.Files {
		for _, doc := range file.Items {
			if doc.Session != nil && len(doc.Problems) == 0 {
				found = append(found, doc)
			}
		}
	}
	return found, classes
}

// accountShell is the shell through which the daemon reaches its launchers.
func (p *patient) accountShell() actuatetmux.Shell {
	given, _ := p.lookupEnv("SHELL")
	shell, err := actuatetmux.AccountShell(passwdFile, p.uid, given)
	if err != nil {
		p.found(levelNote, areaPrograms, "", "%v: %s is used", err, shell.Path)
	}
	return shell
}

// pathOf is the PATH that a client gets in a shell mode; empty when that cannot be told.
func (p *patient) pathOf(ctx context.Context, shell actuatetmux.Shell, mode spec.ShellMode) string {
	base := p.daemonEnvironment(shell.Path)
	if mode == spec.ShellNone {
		path := variableOf(base, "PATH")
		p.found(levelOK, areaPrograms, "", "shellMode None gives PATH %s", path)
		return path
	}
	began := p.now()
	path, err := profilePath(ctx, shell.Argv(mode, []string{"/bin/sh", "-c", `printf '%s' "` + pathMark + `$PATH` + pathMark + `"`}), base, p.home)
	took := p.now().Sub(began)
	switch {
	case err != nil:
		p.found(levelError, areaPrograms, "see what the profile does, or set shellMode None in the sessions", "%s did not come through its profile (shellMode %s): %v", shell.Path, mode, err)
	case took > slowProfile:
		p.found(levelWarning, areaPrograms, "see what the profile does; each start of a client waits for it", "%s takes %s to read its profile (shellMode %s)", shell.Path, took.Round(100*time.Millisecond), mode)
	default:
		p.found(levelOK, areaPrograms, "", "%s gives PATH %s (shellMode %s)", shell.Path, path, mode)
	}
	return path
}

// pathMark sets the PATH apart from what a profile prints.
const pathMark = "<muxlet-path>"

func profilePath(ctx context.Context, argv, env []string, home string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, profilePatience)
	defer cancel()
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env, cmd.Dir, cmd.Stdout = append(slices.Clone(env), "TERM=xterm-256color"), home, &out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	parts := strings.Split(out.String(), pathMark)
	switch {
	case len(parts) == 3:
		return parts[1], nil
	case ctx.Err() != nil:
		return "", fmt.Errorf("it took more than %s", profilePatience)
	case err != nil:
		return "", err
	}
	return "", fmt.Errorf("it ended without running the command")
}

// daemonEnvironment is what the daemon that runs gives to its panes, or what one that is
// started from here would.
func (p *patient) daemonEnvironment(shell string) []string {
	lookup := p.lookupEnv
	if p.daemon != nil {
		if daemon, alive := process.Identify(p.daemon.PID); alive == observe.Running {
			if env, err := process.Environment(daemon); err == nil {
				lookup = func(name string) (string, bool) {
					value := variableOf(env, name)
					return value, value != ""
				}
			}
		}
	}
	return baseOf(lookup, p.home, shell)
}

func variableOf(env []string, name string) string {
	value := ""
	for _, pair := range env {
		if after, ok := strings.CutPrefix(pair, name+"="); ok {
			value = after
		}
	}
	return value
}

// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/muxlet/muxlet/controller/envtest"
	"github.com/muxlet/muxlet/spec"
)

// modeFiles make each shell say by variables in which mode it runs.
var modeFiles = map[string]map[string]string{
	"bash": {".bash_profile": "export LOGIN_SHELL=1\ncase $- in *i*) . ~/.bashrc;; esac\n", ".bashrc": "export INTERACTIVE_SHELL=1\n"},
	"zsh":  {".zprofile": "export LOGIN_SHELL=1\n", ".zshrc": "export INTERACTIVE_SHELL=1\n"},
	"dash": {".profile": "export LOGIN_SHELL=1\ncase $- in *i*) export INTERACTIVE_SHELL=1;; esac\n"},
	"fish": {".config/fish/config.fish": "status is-login; and set -gx LOGIN_SHELL 1\nstatus is-interactive; and set -gx INTERACTIVE_SHELL 1\n"},
}

func TestTheShellModeSaysWhichProfileAClientSees(t *testing.T) {
	for shell, files := range modeFiles {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			e := withShell(t, shell)
			for name, text := range files {
				home(e, name, text)
			}
			e.Boot()
			for mode, want := range map[spec.ShellMode][2]bool{
				spec.ShellInteractive: {true, true}, spec.ShellLogin: {true, false}, spec.ShellNone: {false, false},
			} {
				name := strings.ToLower(string(mode))
				s := shelled(e, name)
				s.Spec.Client.ShellMode = mode
				e.Apply(s)
				e.WaitFor(name, envtest.Incarnation(1))
				env := strings.Join(e.Client(name).Env, " ")
				assert.Equal(t, want[0], strings.Contains(env, "LOGIN_SHELL"), "%s: %s", mode, env)
				assert.Equal(t, want[1], strings.Contains(env, "INTERACTIVE_SHELL"), "%s: %s", mode, env)
				for _, always := range []string{"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "TERM", "TMUX_PANE", "PWD", "MUXLET_SESSION"} {
					assert.Contains(t, e.Client(name).Env, always, mode)
				}
			}
		})
	}
}

// telling is a client that writes its environment into a file of its session's name
// and stays.
func telling(e *envtest.Env, name string, env ...spec.EnvVar) *spec.Session {
	e.Helper()
	s := sleeper(e, name)
	out := filepath.Join(e.Dir, "env."+name)
	s.Spec.Client.Command = []string{"/bin/sh", "-c", fmt.Sprintf("env >%s.new; mv %s.new %s; exec sleep 1000", out, out, out)}
	s.Spec.Client.ShellMode = spec.ShellInteractive
	s.Spec.Client.Env = env
	return s
}

// told is what such a client wrote.
func told(e *envtest.Env, name string) map[string]string {
	e.Helper()
	vars := map[string]string{}
	e.Eventually("client of "+name+" has told its environment", func() bool {
		text, err := os.ReadFile(filepath.Join(e.Dir, "env."+name))
		for line := range strings.Lines(string(text)) {
			key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
			vars[key] = value
		}
		return err == nil
	})
	return vars
}

func fileRef(path string, optional bool) *spec.FileRef {
	return &spec.FileRef{Path: path, Optional: optional}
}

// H2
func TestTheSpecWinsOverEnvFilesAndThoseOverTheProfile(t *testing.T) {
	t.Parallel()
	e := withShell(t, "bash")
	profile(e, "export A=profile B=profile C=profile D=profile PATH=/from/profile:$PATH\n")
	home(e, "agents.env", "export B=\"from a file\"\nC=file\nD=file\n")
	home(e, "key", "from a key\n")
	e.Boot()
	s := telling(e, "a", spec.EnvVar{Name: "C", Value: "spec"}, spec.EnvVar{Name: "PATH", Value: "/usr/bin:/bin"},
		spec.EnvVar{Name: "D", ValueFrom: &spec.EnvVarSource{FileRef: fileRef("~/key", false)}},
		spec.EnvVar{Name: "E", ValueFrom: &spec.EnvVarSource{FileRef: fileRef("~/not there", true)}})
	s.Spec.Client.EnvFrom = []spec.EnvFromSource{{FileRef: fileRef("~/agents.env", false)}, {FileRef: fileRef("$HOME/not there", true)}}
	e.Apply(s)
	vars := told(e, "a")
	assert.Equal(t, []string{"profile", "from a file", "spec", "from a key", "/usr/bin:/bin"}, []string{vars["A"], vars["B"], vars["C"], vars["D"], vars["PATH"]})
	assert.NotContains(t, vars, "E")
}

// H2: the PATH that the client gets is the one that its program is looked for in.
func TestTheProgramIsLookedForInThePathThatIsInForce(t *testing.T) {
	t.Parallel()
	e := withShell(t, "bash")
	for dir, word := range map[string]string{"profile": "profile", "spec": "spec"} {
		path := filepath.Join(e.Home, dir, "agent")
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\necho "+word+" >$HOME/$MUXLET_SESSION\nexec sleep 1000\n"), 0o700))
	}
	profile(e, "export PATH=$HOME/profile:$PATH\n")
	e.Boot()
	agent := func(name string, mode spec.ShellMode, env ...spec.EnvVar) {
		s := sleeper(e, name)
		s.Spec.Client = spec.ClientSpec{Command: []string{"agent"}, ShellMode: mode, Env: env}
		e.Apply(s)
	}
	path := spec.EnvVar{Name: "PATH", Value: filepath.Join(e.Home, "spec") + ":/usr/bin:/bin"}
	agent("by-profile", spec.ShellInteractive)
	agent("by-spec", spec.ShellInteractive, path)
	agent("without", spec.ShellNone)
	for name, want := range map[string]string{"by-profile": "profile\n", "by-spec": "spec\n"} {
		e.Eventually("the right program was found for "+name, func() bool {
			got, err := os.ReadFile(filepath.Join(e.Home, name))
			return err == nil && string(got) == want
		})
	}
	s := e.WaitFor("without", envtest.Shows(spec.StatusBlocked))
	assert.Contains(t, s.Status.Decision.Message, "The program agent was not found in PATH (/usr/local/bin:/usr/bin:/bin)")
}

// What is in a file is in the client's environment and nowhere else, also when the
// file cannot be used.
func TestWhatAnEnvFileHoldsIsToldNowhere(t *testing.T) {
	t.Parallel()
	const hidden = "hunter2"
	e := withShell(t, "bash")
	profile(e, "export FROM_PROFILE="+hidden+"\n")
	home(e, "key", hidden+"\n")
	home(e, "good.env", "A="+hidden+"\n")
	home(e, "bad.env", "A=1\n"+hidden+"\n")
	e.Boot()
	s := telling(e, "a", spec.EnvVar{Name: "KEY", ValueFrom: &spec.EnvVarSource{FileRef: fileRef("~/key", false)}})
	s.Spec.Client.EnvFrom = []spec.EnvFromSource{{FileRef: fileRef("~/good.env", false)}}
	e.Apply(s)
	bad := telling(e, "b")
	bad.Spec.Client.EnvFrom = []spec.EnvFromSource{{FileRef: fileRef("~/bad.env", false)}}
	e.Apply(bad)
	vars := told(e, "a")
	require.Equal(t, []string{hidden, hidden, hidden}, []string{vars["KEY"], vars["A"], vars["FROM_PROFILE"]})
	blocked := e.WaitFor("b", envtest.Shows(spec.StatusBlocked))
	assert.Contains(t, blocked.Status.Decision.Message, filepath.Join(e.Home, "bad.env")+":2: it is not NAME=value")

	require.NoError(t, filepath.WalkDir(e.State, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			data, err := os.ReadFile(path)
			require.NoError(t, err)
			assert.NotContains(t, string(data), hidden, path)
		}
		return err
	}))
	assert.NotContains(t, e.Log(), hidden)
	for _, args := range [][]string{
		{"show-environment", "-g"}, {"show-environment", "-t", "=a:"}, {"show-options", "-g"}, {"show-options", "-s"},
		{"list-panes", "-a", "-F", "#{pane_start_command} #{pane_current_command} #{pane_title}"}, {"show-options", "-p", "-t", e.Panes("a")[0].PaneID},
	} {
		assert.NotContains(t, e.Tmux(args...), hidden, args)
	}
	for _, name := range []string{"a", "b"} {
		s, _ := e.Session(name)
		assert.NotContains(t, fmt.Sprintf("%+v", s.Status), hidden)
		for _, event := range e.Controller().Events(name).Items {
			assert.NotContains(t, event.Message, hidden)
		}
	}
}

// E7, the reasons of files and programs: each waits for the world to change, says
// what to mend, and is tried again when it is mended.
func TestEveryReasonThatTimeDoesNotMendWaitsForTheWorldToChange(t *testing.T) {
	file := func(text string, mode os.FileMode) func(string) error {
		return func(path string) error {
			_ = os.Remove(path)
			return os.WriteFile(path, []byte(text), mode)
		}
	}
	loop := func(path string) error { return os.Symlink(path, path) }
	directory := func(path string) error { _ = os.Remove(path); return os.Mkdir(path, 0o700) }
	fifo := func(path string) error { return unix.Mkfifo(path, 0o600) }
	program, envFile := "#!/bin/sh\nexec sleep 1000\n", "A=1\n"
	runs := func(s *spec.Session, path string) { s.Spec.Client.Command = []string{path} }
	reads := func(s *spec.Session, path string) {
		s.Spec.Client.Env = []spec.EnvVar{{Name: "KEY", ValueFrom: &spec.EnvVarSource{FileRef: fileRef(path, true)}}}
	}
	readsAll := func(s *spec.Session, path string) {
		s.Spec.Client.EnvFrom = []spec.EnvFromSource{{FileRef: fileRef(path, true)}}
	}
	worksIn := func(s *spec.Session, path string) { s.Spec.Workspace.Directory = path }
	for name, c := range map[string]struct {
		reason      string
		spoil, mend func(path string) error
		use         func(s *spec.Session, path string)
		says        string
	}{
		"a program that is a directory":      {spec.ReasonCommandNotFound, directory, file(program, 0o700), runs, "it is a directory"},
		"a program without permission":       {spec.ReasonCommandNotFound, file(program, 0o600), file(program, 0o700), runs, "it is not executable"},
		"a script without a first line":      {spec.ReasonCommandNotExecutable, file("echo\n", 0o700), file(program, 0o700), runs, "#!/bin/sh"},
		"a script without its interpreter":   {spec.ReasonCommandNotExecutable, file("#!/no/such/sh\n", 0o700), file(program, 0o700), runs, "/no/such/sh"},
		"a secret that is a directory":       {spec.ReasonEnvFileInvalid, directory, file("key", 0o600), reads, "not a regular file"},
		"a secret that is a pipe":            {spec.ReasonEnvFileInvalid, fifo, file("key", 0o600), reads, "not a regular file"},
		"a secret that cannot be read":       {spec.ReasonEnvFileUnreadable, loop, file("key", 0o600), reads, "could not be read"},
		"a secret with a NUL":                {spec.ReasonEnvFileInvalid, file("k\x00y", 0o600), file("key", 0o600), reads, "NUL"},
		"an env file with a mistake":         {spec.ReasonEnvFileInvalid, file("A=1\nB\n", 0o600), file(envFile, 0o600), readsAll, ":2: it is not NAME=value"},
		"a workspace that is a file":         {spec.ReasonWorkspaceNotDirectory, file("", 0o600), directory, worksIn, "directory"},
		"a workspace that cannot be entered": {spec.ReasonWorkspaceInaccessible, loop, directory, worksIn, "symbolic links"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := envtest.Start(t, envtest.Config{})
			path := filepath.Join(e.Dir, "wanted")
			require.NoError(t, c.spoil(path))
			s := sleeper(e, "a")
			c.use(s, path)
			s.Spec.TerminationGracePeriodSeconds = ptr.To[int32](1)
			e.Apply(s)
			blocked := e.WaitFor("a", envtest.Shows(spec.StatusBlocked), envtest.Condition(spec.ConditionStalled, metav1.ConditionTrue, c.reason))
			assert.Contains(t, blocked.Status.Decision.Message, path)
			assert.Contains(t, blocked.Status.Decision.Message, c.says)
			launches := len(e.Launches("a"))
			e.Always(stays, "it is not tried again", func() bool { return len(e.Launches("a")) == launches })

			require.NoError(t, c.mend(path))
			e.WaitFor("a", envtest.Incarnation(1))
		})
	}
}

// The interpreter of a script is looked for as well as the script.
func TestAScriptWaitsForItsInterpreter(t *testing.T) {
	t.Parallel()
	e := envtest.Start(t, envtest.Config{})
	interpreter, script := filepath.Join(e.Dir, "interpreter"), filepath.Join(e.Dir, "script")
	require.NoError(t, os.WriteFile(script, []byte("#!"+interpreter+" 1000\n"), 0o700))
	s := sleeper(e, "a")
	s.Spec.Client.Command = []string{script}
	e.Apply(s)
	e.WaitFor("a", envtest.Shows(spec.StatusBlocked), envtest.Because(spec.ReasonCommandNotExecutable))
	require.NoError(t, os.WriteFile(interpreter, []byte("#!/bin/sh\nexec sleep \"$1\"\n"), 0o700))
	e.WaitFor("a", envtest.Incarnation(1))
}

// E7: what a profile lacked is there when the profile is mended.
func TestAProgramThatTheProfilesPathLackedIsFoundOnceThatIsMended(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "dash", "fish"} {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			e := withShell(t, shell)
			require.NoError(t, os.Mkdir(filepath.Join(e.Home, "bin"), 0o700))
			require.NoError(t, os.WriteFile(filepath.Join(e.Home, "bin", "agent"), []byte("#!/bin/sh\nexec sleep 1000\n"), 0o700))
			home(e, "keys/a", "key")
			profile(e, "")
			e.Boot()
			s := sleeper(e, "a")
			s.Spec.Client = spec.ClientSpec{Command: []string{"agent"}}
			e.Apply(s)
			s = sleeper(e, "b")
			s.Spec.Client.ShellMode = spec.ShellLogin
			s.Spec.Client.EnvFrom = []spec.EnvFromSource{{FileRef: fileRef("$KEYS/b", false)}}
			e.Apply(s)
			e.WaitFor("a", envtest.Shows(spec.StatusBlocked), envtest.Because(spec.ReasonCommandNotFound))
			e.WaitFor("b", envtest.Shows(spec.StatusBlocked), envtest.Because(spec.ReasonEnvFileInvalid))
			launches := len(e.Launches(""))
			e.Always(stays, "it is not tried again", func() bool { return len(e.Launches("")) == launches })
			home(e, "keys/b", "A=1\n")
			profile(e, "export PATH=$HOME/bin:/usr/bin:/bin\nexport KEYS=$HOME/keys\n")
			e.WaitFor("a", envtest.Incarnation(1))
			e.WaitFor("b", envtest.Incarnation(1))
		})
	}
}

// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/utils/ptr"

	"github.com/muxlet/muxlet/controller/envtest"
	"github.com/muxlet/muxlet/spec"
)

// profileFiles are what each shell reads first as a login shell, interactive or
// not, below HOME.
var profileFiles = map[string]string{
	"bash": ".bash_profile", "zsh": ".zprofile", "dash": ".profile", "sh": ".profile", "fish": ".config/fish/config.fish",
}

// withShell makes a world in which people have the shell, without a controller.
func withShell(t *testing.T, shell string) *envtest.Env {
	t.Helper()
	path, err := exec.LookPath(shell)
	if err != nil {
		t.Skipf("%s is not installed; CI installs it", shell)
	}
	return envtest.Make(t, envtest.Config{Shell: path})
}

// home writes a file below the home directory.
func home(e *envtest.Env, name, text string) {
	e.Helper()
	path := filepath.Join(e.Home, name)
	require.NoError(e, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(e, os.WriteFile(path, []byte(text), 0o600))
}

// profile writes the profile of the world's shell.
func profile(e *envtest.Env, text string) {
	e.Helper()
	home(e, profileFiles[filepath.Base(e.Shell)], text)
}

// shelled is a fake client that is reached through the shell and its profile. What
// hangs is given a second, and so is what does not end.
func shelled(e *envtest.Env, name string) *spec.Session {
	e.Helper()
	s := e.Fake(name, envtest.Script{})
	s.Spec.Client.ShellMode = spec.ShellInteractive
	s.Spec.TerminationGracePeriodSeconds = ptr.To[int32](1)
	return s
}

// harmless are profiles that a client is reached through all the same; each sets
// FROM_PROFILE last.
var harmless = map[string]string{
	"prints": `i=0; while [ $i -lt 3000 ]; do echo "line $i of a very long greeting"; echo "and on stderr" >&2; i=$((i+1)); done
printf '\033[2J\033]0;a title\007\033[?1049h\033[?1000h\033[31mno newline'`,
	"sets another directory":          `cd / && OLDPWD=/nowhere`,
	"replaces the arguments":          `set -- echo other arguments`,
	"has aliases for what it runs":    `alias exec='echo no' builtin='echo no' muxlet='echo no' launch='echo no'`,
	"stops at the first mistake":      `set -eu`,
	"traces":                          `set -x`,
	"has traps":                       `trap 'echo left' EXIT; trap '' HUP INT QUIT TERM; trap 'true' CHLD`,
	"sets limits":                     `ulimit -n 32; ulimit -S -c 0`,
	"opens and redirects descriptors": `exec 3</dev/null 9>/dev/null`,
	"leaves jobs":                     `sleep 1000 & sleep 1001 </dev/null >/dev/null 2>&1 &`,
	"has prompts that fail":           `PROMPT_COMMAND='exit 3'; PS1='$(exit 3)'; export PS1`,
	"starts tmux where there is none": `export TMUX_TMPDIR=$HOME; [ -z "$TMUX" ] && exec tmux; [ -n "$TMUX" ] || exec tmux new -A -s main; true`,
	"fails at something":              `no-such-command; cat /no/such/file; false; true`,
}

// functions are for the shells that take them.
const functions = `exec() { echo no; }; muxlet() { echo no; }
`

func TestAClientIsReachedThroughWhateverAProfileDoes(t *testing.T) {
	for name, text := range harmless {
		for _, shell := range []string{"bash", "zsh", "dash"} {
			t.Run(shell+" "+name, func(t *testing.T) {
				t.Parallel()
				e := withShell(t, shell)
				more := "export FROM_PROFILE=yes\n"
				if shell != "dash" {
					more += functions
				}
				profile(e, text+"\n"+more)
				e.Boot()
				reached(t, e)
			})
		}
	}
}

func TestAClientIsReachedThroughFish(t *testing.T) {
	t.Parallel()
	e := withShell(t, "fish")
	profile(e, `for i in (seq 2000); echo greeting; echo error >&2; end
printf '\033[2J\033]0;a title\007no newline'
cd /
set argv echo other arguments
function muxlet; echo no; end
sleep 1000 &
no-such-command
false
set -gx TMUX_TMPDIR $HOME
if not set -q TMUX; exec tmux; end
set -gx FROM_PROFILE yes
`)
	e.Boot()
	reached(t, e)
}

// reached asserts that a client runs at the first attempt, in its workspace, with
// the profile's environment, in the pane's own process.
func reached(t *testing.T, e *envtest.Env) {
	t.Helper()
	e.Apply(shelled(e, "a"))
	e.WaitFor("a", envtest.Incarnation(1))
	client := e.Client("a")
	assert.Equal(t, e.Work, client.Dir)
	assert.Contains(t, client.Env, "FROM_PROFILE")
	assert.Contains(t, client.Env, "TMUX_PANE")
	panes := e.Panes("a")
	require.Len(t, panes, 1)
	assert.Equal(t, panes[0].PID, client.Process.PID)
	assert.Len(t, e.Launches("a"), 1)
}

// ends are profiles that end the shell: how, and what the screen says then.
var ends = map[string]struct{ text, how, screen string }{
	"exits":              {`echo "cannot go on"; exit 3`, "(exited with status 3)", "cannot go on"},
	"exits quietly":      {`exit 0`, "(exited with status 0)", ""},
	"is killed":          {`echo bye; kill -9 $$`, "(ended by SIGKILL)", "bye"},
	"stops at a mistake": {`set -e; echo "before it"; cat /no/such/file`, "(exited with status 1)", "No such file"},
	"executes a program": {`exec sh -c 'echo instead; exit 7'`, "(exited with status 7)", "instead"},
	// TMUX is set in our pane: tmux refuses to be nested.
	"executes tmux": {`export TMUX_TMPDIR=$HOME; exec tmux`, "(exited with status 1)", "nested"},
}

// R2; tmux 3.3a loses half of these ends on a quiet machine.
func TestAProfileThatEndsItsShellIsToldWithHowItEnded(t *testing.T) {
	for name, c := range ends {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := withShell(t, "bash")
			profile(e, c.text+"\n")
			e.Boot()
			e.Apply(shelled(e, "a"))
			s := e.WaitFor("a", envtest.Shows(spec.StatusCrashLoopBackOff), failedTimes(5), showsScreen(c.screen))
			last := s.Status.Client.LastTermination
			assert.Equal(t, spec.ReasonStartFailed, last.Reason)
			assert.Contains(t, last.Message, "the shell ended before it reached the launcher "+c.how)
			assert.Contains(t, last.Message, "bash reads (~/.bash_profile,")
			assert.Contains(t, last.Message, "shellMode None")
			assert.Zero(t, s.Status.Client.Incarnation, "no client ran")
			for _, event := range e.Events("a", spec.ReasonStartFailed) {
				assert.Contains(t, event.Message, c.how)
			}
			profile(e, "")
			e.WaitFor("a", envtest.Incarnation(1))
		})
	}
}

func failedTimes(n int32) envtest.Check {
	return envtest.Check{Words: "has failed again and again", Holds: func(s spec.Session) bool { return s.Status.ConsecutiveDeaths >= n }}
}

func showsScreen(words string) envtest.Check {
	return envtest.Check{Words: "shows the last screen", Holds: func(s spec.Session) bool {
		return strings.Contains(strings.Join(s.Status.Evidence.LastScreen, "\n"), words)
	}}
}

// holdups are profiles through which nobody comes: the text for each shell.
var holdups = map[string]struct{ shell, text string }{
	"hangs":                           {"bash", "echo before; sleep 1000"},
	"hangs in zsh":                    {"zsh", "echo before; sleep 1000"},
	"hangs in dash":                   {"dash", "echo before; sleep 1000"},
	"hangs in fish":                   {"fish", "echo before; sleep 1000"},
	"hangs with jobs":                 {"bash", "set -m; sleep 1001 & (trap '' TERM HUP; sleep 1002) & sleep 1000"},
	"cannot be stopped":               {"bash", "trap '' TERM HUP INT; while :; do sleep 1000; done"},
	"asks":                            {"bash", "read -p 'continue? ' answer"},
	"executes another shell":          {"bash", "exec sh"},
	"executes another shell in fish":  {"fish", "exec sh"},
	"executes itself once":            {"bash", `[ -n "$GUARD" ] || { export GUARD=1; exec bash -l; }`},
	"executes itself again and again": {"bash", "exec bash -l"},
	"executes a nested tmux":          {"bash", `unset TMUX; until tmux -f /dev/null -S "$HOME/persons" attach || tmux -f /dev/null -S "$HOME/persons" new; do sleep 0.1; done`},
}

// R2, C1: whoever sits in the pane instead of the client is never taken for it, and
// is ended with everything that belongs to it before the next attempt.
func TestAProfileThatNobodyComesThroughEndsInStartTimeout(t *testing.T) {
	for name, c := range holdups {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := withShell(t, c.shell)
			profile(e, c.text+"\n")
			e.Boot()
			s := shelled(e, "a")
			s.Spec.StartupTimeoutSeconds = ptr.To[int32](1)
			e.Apply(s)
			e.Eventually("the start has timed out twice", func() bool {
				now, ok := e.Session("a")
				require.False(t, ok && (now.Status.Client.Pid != 0 || now.Status.Client.Ready), "never alive")
				return ok && now.Status.ConsecutiveDeaths >= 2
			})
			told, _ := e.Session("a")
			last := told.Status.Client.LastTermination
			assert.Equal(t, spec.ReasonStartTimeout, last.Reason)
			assert.Contains(t, last.Message, "the launcher was not reached within 1s: the shell's profile may hang")
			assert.Contains(t, last.Message, profileFiles[c.shell])
			assert.Zero(t, told.Status.Client.Incarnation)
			if name == "asks" {
				e.WaitFor("a", showsScreen("continue?"))
			}

			profile(e, "")
			e.WaitFor("a", envtest.Incarnation(1))
			e.Client("a")
			assert.Len(t, e.Starts("a"), 1)
			e.Eventually("nothing of the profile is left", func() bool { return sleepers(e) == 0 })
		})
	}
}

// sleepers counts the processes of the world that sleep: its clients do not.
func sleepers(e *envtest.Env) (n int) {
	e.Helper()
	found, err := filepath.Glob("/proc/[0-9]*")
	require.NoError(e, err)
	for _, dir := range found {
		argv, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
		environ, _ := os.ReadFile(filepath.Join(dir, "environ"))
		if strings.HasPrefix(string(argv), "sleep\x00") && strings.Contains(string(environ), e.Dir+"/") {
			n++
		}
	}
	return n
}

// A person in front of the pane can answer what a profile asks.
func TestAQuestionOfAProfileCanBeAnswered(t *testing.T) {
	t.Parallel()
	e := withShell(t, "bash")
	profile(e, "read -p 'which key? ' KEY\nexport KEY\n")
	e.Boot()
	e.Apply(shelled(e, "a"))
	e.Eventually("it asks", func() bool {
		l, ok := e.Listing()
		return ok && len(l.Panes) == 1 && strings.Contains(e.Tmux("capture-pane", "-p", "-t", l.Panes[0].PaneID), "which key?")
	})
	e.Tmux("send-keys", "-t", e.Panes("a")[0].PaneID, "mine", "Enter")
	e.WaitFor("a", envtest.Incarnation(1))
	assert.Contains(t, e.Client("a").Env, "KEY")
	assert.Len(t, e.Launches("a"), 1)
}

// A profile that lets go of the terminal takes the client's pane away: whatever was
// started is ended, and it is tried again as any other loss.
func TestAProfileThatClosesItsTerminalDoublesNothing(t *testing.T) {
	t.Parallel()
	e := withShell(t, "bash")
	profile(e, "exec </dev/null >/dev/null 2>&1\n")
	e.Boot()
	e.Apply(shelled(e, "a"))
	e.Eventually("it was tried again", func() bool {
		require.LessOrEqual(t, len(e.Clients("a")), 1)
		s, ok := e.Session("a")
		return ok && s.Status.ConsecutiveDeaths >= 2
	})
	profile(e, "")
	s := e.WaitFor("a", envtest.Running)
	e.Client("a")
	e.Always(stays, "one client runs, and stays", func() bool {
		now, _ := e.Session("a")
		return len(e.Clients("a")) == 1 && now.Status.Client.Pid == s.Status.Client.Pid
	})
}

// The account's shell is taken away, or replaced by an upgrade, under the daemon.
func TestAShellThatVanishesIsToldAndWaitedFor(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	shell := filepath.Join(dir, "bash")
	require.NoError(t, os.Symlink("/bin/bash", shell))
	e := envtest.Start(t, envtest.Config{Shell: shell})
	e.Apply(shelled(e, "a"))
	e.WaitFor("a", envtest.Incarnation(1))
	require.NoError(t, os.Remove(shell))
	e.Kill(e.Client("a").Process)
	e.Eventually("it is told", func() bool { return len(e.Events("a", spec.ReasonShellUnsupported)) > 0 })
	told := e.Events("a", spec.ReasonShellUnsupported)[0].Message
	assert.Contains(t, told, shell+" does not exist")
	assert.Contains(t, told, "shellMode None")
	require.NoError(t, os.Symlink("/bin/bash", shell))
	e.WaitFor("a", envtest.Incarnation(2))
}

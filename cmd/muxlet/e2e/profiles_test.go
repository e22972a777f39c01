// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/spec"
)

// ofClient adds lines below spec.client.
func ofClient(document string, lines ...string) string {
	return strings.Replace(document, "    shellMode: None\n", "    shellMode: Interactive\n    "+strings.Join(lines, "\n    ")+"\n", 1)
}

// R2: a nested tmux is somebody else's, in our pane. TMUX keeps most profiles from
// it; where one insists, the session is not alive, and the other tmux is left alone.
func TestAProfileThatExecutesTmuxIsNeverAlive(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.profile(`export TMUX_TMPDIR=~; [ -z "$TMUX" ] && exec tmux new -A -s main` + "\n")
	w.start()
	w.interactive("s", "startupTimeoutSeconds: 2", "terminationGracePeriodSeconds: 1")
	w.runsAs("s", 1)
	w.profile("unset TMUX; until tmux -f /dev/null -S ~/persons attach || tmux -f /dev/null -S ~/persons new -s main; do sleep 0.1; done\n")
	w.interactive("nested", "startupTimeoutSeconds: 1", "terminationGracePeriodSeconds: 1")
	w.neverAlive("nested")
	assert.Contains(t, w.does("describe", "nested"), "~/.bash_profile")
	persons, err := exec.Command("tmux", "-S", w.home+"/persons", "list-sessions", "-F", "#{session_name}").CombinedOutput()
	require.NoError(t, err, string(persons))
	assert.Equal(t, "main\n", string(persons), "the other server and its session go on")
	w.profile("export TMUX_TMPDIR=~; exec tmux\n")
	w.interactive("refused")
	s := w.becomes("refused", "told how its shell ended", func(s *spec.Session) bool { return s.Status.Client.LastTermination != nil })
	assert.Equal(t, "StartFailed", s.Status.Client.LastTermination.Reason)
	w.eventually([]string{"describe", "refused"}, "exited with status 1", "nested", "shellMode None")
	assert.NotContains(t, strings.Join(strings.Fields(w.does("get")), " "), "main")
	w.profile("")
	w.runsAs("nested", 1)
	w.runsAs("refused", 1)
	assert.Len(t, w.startsOf("s"), 1)
}

// H2: the spec's PATH is where the program is looked for, and what the client has;
// describe names it and tells no value.
func TestThePathOfTheSpecWinsAndOnlyItsNameIsShown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for dir, does := range map[string]string{"profile": "exit 9", "spec": "exec " + w.dir + "/bin/fake stay"} {
		require.NoError(t, os.MkdirAll(w.home+"/"+dir, 0o755))
		w.write(w.home+"/"+dir+"/agent", "#!/bin/sh\n"+does+"\n")
		require.NoError(t, os.Chmod(w.home+"/"+dir+"/agent", 0o755))
	}
	w.profile("export PATH=$HOME/profile:$PATH COLOUR=profile SIZE=profile\n")
	w.write(w.home+"/agents.env", "export COLOUR='from a file'\nSIZE=file\n")
	w.start()
	text := strings.Replace(w.document("s", "stay"), `["`+w.dir+`/bin/fake", "stay"]`, "[agent]", 1)
	w.write("s.yaml", ofClient(text,
		"env:", "- {name: PATH, value: '"+w.home+"/spec:/usr/bin:/bin'}", "- {name: SIZE, value: spec-size}",
		"envFrom: [{fileRef: {path: ~/agents.env}}, {fileRef: {path: ~/other.env, optional: true}}]"))
	w.runsAs("s", 1)
	w.nth("s", 1)
	client := w.clients("s")[0]
	assert.Equal(t, w.home+"/spec:/usr/bin:/bin", client.variable("PATH"))
	assert.Equal(t, "from a file", client.variable("COLOUR"))
	assert.Equal(t, "spec-size", client.variable("SIZE"))
	told := w.does("describe", "s")
	assert.Contains(t, told, "PATH (value; the program is looked for in it), SIZE (value)")
	assert.Contains(t, told, "~/agents.env, ~/other.env (optional)")
	assert.NotContains(t, told, w.home+"/spec")
	assert.NotContains(t, told, "spec-size")
}

// E7
func TestASecretThatCannotBeReadIsNamedAndWaitedFor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	require.NoError(t, os.MkdirAll(w.home+"/keys/unreadable", 0o755))
	require.NoError(t, os.Symlink("loop", w.home+"/keys/loop"))
	w.write(w.home+"/keys/wrong.env", "A=1\nhunter2\n")
	w.start()
	w.write("missing.yaml", ofClient(w.document("missing", "stay"), "env: [{name: KEY, valueFrom: {fileRef: {path: ~/keys/missing}}}]"))
	w.write("directory.yaml", ofClient(w.document("directory", "stay"), "env: [{name: KEY, valueFrom: {fileRef: {path: ~/keys/unreadable, optional: true}}}]"))
	w.write("unreadable.yaml", ofClient(w.document("unreadable", "stay"), "env: [{name: KEY, valueFrom: {fileRef: {path: ~/keys/loop, optional: true}}}]"))
	w.write("wrong.yaml", ofClient(w.document("wrong", "stay"), "envFrom: [{fileRef: {path: ~/keys/wrong.env}}]"))
	w.write("optional.yaml", ofClient(w.document("optional", "stay"), "env: [{name: KEY, valueFrom: {fileRef: {path: ~/keys/missing, optional: true}}}]"))
	for name, c := range map[string]struct{ reason, says, todo string }{
		"missing":    {spec.ReasonEnvFileMissing, w.home + "/keys/missing does not exist", "Create the file"},
		"directory":  {spec.ReasonEnvFileInvalid, w.home + "/keys/unreadable cannot be used (it is not a regular file)", "Correct the file"},
		"unreadable": {spec.ReasonEnvFileUnreadable, w.home + "/keys/loop could not be read", "Give this user access"},
		"wrong":      {spec.ReasonEnvFileInvalid, w.home + "/keys/wrong.env:2: it is not NAME=value", "Correct the file"},
	} {
		s := w.reaches(name, spec.StatusBlocked)
		assert.Equal(t, c.reason, reason(s, spec.ConditionStalled))
		told := w.does("describe", name)
		assert.Contains(t, told, c.says)
		assert.Contains(t, told, c.todo)
		assert.NotContains(t, told, "hunter2")
		assert.Empty(t, w.startsOf(name))
	}
	w.runsAs("optional", 1)
	w.nth("optional", 1)
	assert.NotContains(t, w.clients("optional")[0].environ, "\nKEY=")

	require.NoError(t, os.Remove(w.home+"/keys/unreadable"))
	require.NoError(t, os.Remove(w.home+"/keys/loop"))
	for _, file := range []string{"missing", "unreadable", "loop"} {
		w.write(w.home+"/keys/"+file, "hunter2\n")
	}
	w.write(w.home+"/keys/wrong.env", "A=hunter2\n")
	for _, name := range []string{"missing", "directory", "unreadable"} {
		w.runsAs(name, 1)
		w.nth(name, 1)
		assert.Equal(t, "hunter2", w.clients(name)[0].variable("KEY"))
	}
	w.runsAs("wrong", 1)
	assert.NotContains(t, w.log()+w.does("get", "-o", "yaml")+w.does("events"), "hunter2")
}

// ownPasswd lets the daemon, and what it starts, find another /etc/passwd.
const ownPasswd = `mount --bind "$1" /etc/passwd && shift && exec "$@"`

// An account that may not log in, or has a shell that nobody has tried, gets /bin/sh,
// and an event says so. One that is in no passwd has the shell of its environment.
func TestAnAccountWithoutAUsableShellGetsAnotherOneAndIsTold(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		passwd, variable, told, reads string
	}{
		"nologin":               {"root:x:0:0::/:/usr/sbin/nologin", "/bin/bash", "The account's shell /usr/sbin/nologin refuses logins: /bin/sh is used", ".profile"},
		"another shell":         {"root:x:0:0::/:/bin/tcsh", "/bin/bash", "/bin/tcsh is not one that muxlet knows to work (bash, zsh, dash, sh, fish): /bin/sh is used", ".profile"},
		"a shell that is gone":  {"root:x:0:0::/:/opt/bin/bash", "/bin/bash", "/opt/bin/bash does not exist: /bin/sh is used", ".profile"},
		"no account":            {"daemon:x:1:1::/:/bin/sh", "", "The account is not in /etc/passwd, and SHELL is not set: /bin/sh is used", ".profile"},
		"no account, but SHELL": {"daemon:x:1:1::/:/bin/sh", "/bin/bash", "", ".bash_profile"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.write(w.dir+"/passwd", c.passwd+"\n")
			w.through = []string{"unshare", "-m", "sh", "-c", ownPasswd, "sh", w.dir + "/passwd"}
			w.setenv("SHELL", c.variable)
			for _, file := range []string{".profile", ".bash_profile"} {
				w.write(w.home+"/"+file, "export READ="+file+"\n")
			}
			w.start()
			w.interactive("s")
			w.runsAs("s", 1)
			w.nth("s", 1)
			assert.Equal(t, c.reads, w.clients("s")[0].variable("READ"))
			events := w.does("events")
			if c.told == "" {
				assert.NotContains(t, events, "ShellUnsupported")
				return
			}
			assert.Contains(t, events, "ShellUnsupported")
			assert.Contains(t, events, c.told)
		})
	}
}

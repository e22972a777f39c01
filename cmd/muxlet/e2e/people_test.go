// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/spec"
)

// person runs tmux commands that must go well, and returns what they print.
func (w *World) person(args ...string) string {
	w.Helper()
	out, err := w.tmux(args...)
	require.NoError(w, err, "tmux %s: %s", strings.Join(args, " "), out)
	return out
}

// views is what each person has before them, by tmux's own account.
func (w *World) views() string {
	w.Helper()
	return w.person("list-clients", "-F", "#{client_pid} #{session_id} #{window_id} #{pane_id} #{client_width}x#{client_height} #{window_layout}")
}

// theirs are the panes that are not muxlet's, with what runs in them.
func (w *World) theirs() string {
	w.Helper()
	return w.person("list-panes", "-a", "-f", "#{==:#{@muxlet-role},}", "-F", "#{session_name} #{window_id} #{pane_id} #{pane_pid} #{pane_dead}")
}

const echoing = `[sh, -c, 'echo hello there; exec cat']`

// A person splits, joins, breaks and renames panes, moves our pane into another
// session and groups sessions: nothing is restarted and nothing is lost, while the
// daemon is killed as well; a client that dies comes back before them, and the
// removal leaves their panes alone. A8, D8
func TestWhatPeopleDoInThePanesIsTheirs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	w.write("s.yaml", document("s", echoing, w.home+"/work"))
	before := w.runs("s")
	pane := before.Status.Tmux.Pane
	terminal := w.open("attach", "s")
	terminal.shows("hello there")
	sleep := []string{"--", "sleep", "1000000"}
	split := w.person(append([]string{"split-window", "-d", "-h", "-P", "-F", "#{pane_id}", "-t", pane}, sleep...)...)
	theirs := w.person(append([]string{"new-session", "-d", "-P", "-F", "#{pane_id}", "-s", "mine"}, sleep...)...)
	w.person("join-pane", "-d", "-s", theirs, "-t", split)
	w.person("break-pane", "-d", "-s", split, "-n", "broken")
	w.person("rename-window", "-t", pane, "x #{pid}")
	w.person("rename-session", "-t", "=s:", "renamed")
	w.person("new-session", "-d", "-s", "group", "-t", "=renamed")
	w.person(append([]string{"new-session", "-d", "-s", "other"}, sleep...)...)
	w.person("link-window", "-s", pane, "-t", "=other:")

	panes, views := w.theirs(), w.views()
	w.kill()
	w.start()
	after := w.becomes("s", "attached to", func(s *spec.Session) bool { return isRunning(s) && s.Status.Tmux.Attached == 1 })
	assert.Equal(t, pid(before), pid(after))
	assert.Equal(t, pane, after.Status.Tmux.Pane)
	assert.Equal(t, "renamed", w.person("display-message", "-p", "-t", after.Status.Tmux.Session+":", "#{session_name}"), "our own of the sessions that show it")
	assert.Contains(t, w.does("describe", "s"), pane)
	assert.Equal(t, views, w.views())

	signal(t, pid(before), 9)
	after = w.runsAs("s", 2)
	assert.Equal(t, pane, after.Status.Tmux.Pane)
	assert.Equal(t, views, w.views())
	terminal.types("ping\r")
	w.eventually([]string{"logs", "s"}, "ping\nping")
	terminal.detach()
	assert.Zero(t, terminal.cmd.ProcessState.ExitCode())

	w.person("join-pane", "-s", pane, "-t", "=other:^")
	terminal = w.open("attach", "s")
	terminal.shows("hello there")
	terminal.types("here it is\r")
	w.eventually([]string{"logs", "s"}, "here it is\nhere it is")
	assert.Contains(t, w.views(), " "+pane+" ")
	terminal.detach()
	assert.Equal(t, panes, w.theirs())
	w.does("delete", "s")
	w.gone("s")
	assert.Equal(t, panes, w.theirs())
	assert.NotContains(t, w.person("list-panes", "-a", "-F", "#{pane_id}#"), pane+"#")
}

// A person's own respawn of our pane: what they run is theirs, the client comes back
// beside it, and describe tells.
func TestAPaneThatAPersonTakesIsTheirs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	w.declare("s", "ignore", "terminationGracePeriodSeconds: 1")
	before := w.runs("s")
	finish := w.sample()
	pane := before.Status.Tmux.Pane
	w.person("respawn-pane", "-k", "-t", pane, "--", "sleep", "1000000")
	program := w.person("display-message", "-p", "-t", pane, "#{pane_pid}")
	after := w.runsAs("s", 2)
	finish()
	assert.NotEqual(t, pane, after.Status.Tmux.Pane)
	w.eventually([]string{"describe", "s"}, spec.ReasonPaneTaken, "Pane "+pane+" runs what a person has started there")
	w.does("restart", "s")
	w.does("delete", "s")
	w.gone("s")
	assert.Equal(t, program, w.person("display-message", "-p", "-t", pane, "#{pane_pid}"))
}

// attach inside muxlet's own server switches the person's client, and inside
// another tmux it is nested with a hint.
func TestAttachInsideATmuxSwitchesOrIsNested(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	w.write("a.yaml", document("a", `[sh, -c, 'echo this is a; exec cat']`, w.home+"/work"))
	w.write("b.yaml", document("b", `[sh, -c, 'echo this is b; exec cat']`, w.home+"/work"))
	a, b := w.runs("a"), w.runs("b")
	terminal := w.open("attach", "a")
	terminal.shows("this is a")
	shell := w.person(append([]string{"split-window", "-P", "-F", "#{pane_id}", "-t", a.Status.Tmux.Pane, "--", "env", "PS1=ready "}, append(w.env, "sh", "-i")...)...)
	w.person("select-pane", "-t", shell)
	terminal.shows("ready ")
	terminal.types(binary + " attach b\r")
	w.waitFor("the person has b before them", func() bool { return strings.Contains(w.views(), " "+b.Status.Tmux.Pane+" ") })
	terminal.shows("this is b")
	assert.Len(t, strings.Split(w.views(), "\n"), 1, "the same client")
	terminal.detach()
	assert.Zero(t, terminal.cmd.ProcessState.ExitCode())

	w.setenv("TMUX", w.dir+"/tmux/other,1,0")
	terminal = w.open("attach", "a")
	terminal.shows("Attaching inside another tmux")
	terminal.shows("this is a")
	terminal.detach()
	assert.Zero(t, terminal.cmd.ProcessState.ExitCode())
}

// Of several sessions that show the pane, attach takes the one that is ours, and
// not the one that somebody used last.
func TestAttachTakesOurOwnSessionOfSeveral(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	w.declare("first", "stay")
	w.runs("first")
	w.person("new-session", "-d", "-s", "mine", "--", "sleep", "1000000")
	w.write("s.yaml", document("s", echoing, w.home+"/work"))
	s := w.runs("s")
	w.person("link-window", "-s", s.Status.Tmux.Pane, "-t", "=mine:")
	w.person("new-session", "-d", "-s", "group", "-t", "=s")
	first := w.open("attach", "s")
	first.shows("hello there")
	second := w.open("attach", "s")
	second.shows("hello there")
	w.becomes("s", "attached to by both", func(s *spec.Session) bool { return s.Status.Tmux.Attached == 2 })
	assert.Equal(t, "s\ns", w.person("list-clients", "-F", "#{client_session}"))
	first.detach()
	second.detach()
}

// X1: the tmux program is replaced under a running server by one that does not
// understand it. The server's own program is used by the daemon, by a new daemon
// without any state and by attach, though its file is no more.
func TestATmuxThatIsReplacedUnderItsServerLosesNoSession(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	program, err := exec.LookPath("tmux")
	require.NoError(t, err)
	data, err := os.ReadFile(program)
	require.NoError(t, err)
	own := w.dir + "/bin/tmux"
	require.NoError(t, os.WriteFile(own, data, 0o755))
	w.start()
	w.write("s.yaml", document("s", echoing, w.home+"/work"))
	before := w.runs("s")

	require.NoError(t, os.Remove(own))
	w.write(own, "#!/bin/sh\necho server exited unexpectedly >&2\nexit 1\n")
	require.NoError(t, os.Chmod(own, 0o755))
	w.holds("the session is known", 2*time.Second, func() bool { s := w.get("s"); return s != nil && isRunning(s) && pid(s) == pid(before) })
	w.does("restart", "s")
	signal(t, pid(w.runsAs("s", 2)), 9)
	w.runsAs("s", 3)
	w.kill()
	w.remove(w.state)
	w.start()
	w.runsAs("s", 3)
	w.declare("new", "stay")
	w.runsAs("new", 1)
	terminal := w.open("attach", "s")
	terminal.shows("hello there")
	terminal.detach()
	w.does("delete", "s")
	w.gone("s")
}

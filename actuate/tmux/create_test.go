// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package tmux

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/actuate"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/observe/process"
	"github.com/muxlet/muxlet/spec"
)

func TestACreatedPaneHasItsLabelsItsSizeAndItsHistory(t *testing.T) {
	h := newServer(t)
	l := h.launch("shop")
	h.done(actuate.Action{Kind: actuate.ActionCreate, Server: h.listing().Server, Launch: l})
	saw := h.ran(l)
	p := h.pane(l.Labels.Attempt)
	assert.Equal(t, l.Labels, p.Labels)
	assert.Equal(t, "shop", p.SessionName)
	assert.Equal(t, observe.Present, p.State)
	assert.Equal(t, saw.PID, p.PID, "the launcher is the pane's own process")
	assert.Equal(t, "100x30 1234 shop", h.tmux("display-message", "-p", "-t", p.PaneID,
		"#{pane_width}x#{pane_height} #{history_limit} #{window_name}"))

	h.tmux("split-window", "-t", p.PaneID, "--", "sleep", "1000")
	assert.Equal(t, "1234", h.tmux("display-message", "-p", "-t", "=shop:", "#{history_limit}"))
}

func TestTheLauncherIsToldWhereAndWhatAndNothingElse(t *testing.T) {
	h := newServer(t)
	l := h.launch("shop")
	h.done(actuate.Action{Kind: actuate.ActionCreate, Server: h.listing().Server, Launch: l})
	assert.Equal(t, []string{
		h.Binary, "launch", "--state", h.StateDir, "--runtime", h.dir,
		"--uid", l.Labels.UID, "--attempt", l.Labels.Attempt, "extra;",
	}, h.ran(l).Argv)
}

func TestEachListingShowsAPaneWithAllOfItsLabelsOrNotAtAll(t *testing.T) {
	h := newServer(t)
	server := h.listing().Server
	stop := make(chan struct{})
	var watcher sync.WaitGroup
	watcher.Go(func() {
		for {
			for _, p := range h.listing().Panes {
				assert.Equal(t, instance, p.Labels.Instance)
				assert.Equal(t, p.SessionName, p.Labels.Name)
				assert.NotEmpty(t, p.Labels.UID)
				assert.NotEmpty(t, p.Labels.Attempt)
				assert.NotZero(t, p.Labels.Incarnation)
				assert.Equal(t, observe.RoleClient, p.Labels.Role)
			}
			select {
			case <-stop:
				return
			default:
			}
		}
	})
	for i := range 12 {
		h.done(actuate.Action{Kind: actuate.ActionCreate, Server: server, Launch: h.launch(fmt.Sprintf("s-%d", i))})
	}
	close(stop)
	watcher.Wait()
	assert.Len(t, h.listing().Panes, 12)
}

// I1
func TestSessionsWhoseNamesBeginAlikeAreToldApart(t *testing.T) {
	h := newServer(t)
	ten := h.create("a-10")
	one := h.create("a-1")
	assert.Equal(t, "a-1", one.SessionName)
	assert.Equal(t, ten, h.pane(ten.Labels.Attempt), "a-10 was not relabelled")
	h.done(actuate.Action{Kind: actuate.ActionKillPane, Server: h.listing().Server, Pane: one})
	assert.Equal(t, []observe.Pane{ten}, h.listing().Panes)

	one = h.create("a-1")
	h.done(actuate.Action{Kind: actuate.ActionKillPane, Server: h.listing().Server, Pane: ten})
	assert.Equal(t, []observe.Pane{one}, h.listing().Panes)
}

// I6
func TestAForeignSessionOfTheSameNameIsRefusedUntouched(t *testing.T) {
	h := newServer(t)
	h.tmux("new-session", "-d", "-s", "shop", "--", "sleep", "1000")
	before := h.listing()
	outcome := h.Do(t.Context(), actuate.Action{Kind: actuate.ActionCreate, Server: before.Server, Launch: h.launch("shop")})
	assert.Equal(t, actuate.ResultFailed, outcome.Result)
	assert.Equal(t, spec.ReasonNameConflict, outcome.Reason)
	assert.Contains(t, outcome.Message, `"shop"`)
	assert.Equal(t, before.Panes, h.listing().Panes)
	assert.Empty(t, h.tmux("show-options", "-p", "-t", "=shop:"))
}

func TestADirectoryIsANameAndNeverACommand(t *testing.T) {
	h := newServer(t)
	for i, name := range []string{
		"with space", "semicolon;", ";", "#(touch x)", "#{pid}", "##", "it's", `"quoted"`, `back\slash\`,
		"héllo→", "$HOME", "~", "{brace", "%1", "%H", "-dash", "`touch x`", "a # comment",
	} {
		dir := filepath.Join(h.dir, "w", name)
		require.NoError(t, os.MkdirAll(dir, 0o700))
		l := h.launch(fmt.Sprintf("d-%d", i))
		l.Directory = dir
		h.done(actuate.Action{Kind: actuate.ActionCreate, Server: h.listing().Server, Launch: l})
		assert.Equal(t, dir, h.ran(l).Dir)

		dead := h.die(h.pane(l.Labels.Attempt))
		again := h.launch(l.Labels.Name)
		again.Directory = dir
		h.done(actuate.Action{Kind: actuate.ActionRespawn, Server: h.listing().Server, Pane: dead, Launch: again})
		assert.Equal(t, dir, h.ran(again).Dir)
	}
	for _, where := range []string{".", h.dir, filepath.Join(h.dir, "w")} {
		assert.NoFileExists(t, filepath.Join(where, "x"))
	}
}

func TestADirectoryThatTmuxWouldMisreadIsLeftToTheLauncher(t *testing.T) {
	h := newServer(t)
	l := h.launch("shop")
	l.Directory = filepath.Join(h.dir, "new\n  line")
	h.done(actuate.Action{Kind: actuate.ActionCreate, Server: h.listing().Server, Launch: l})
	h.ran(l)
}

func TestTheProfileOfAShellReachesTheLauncherInThePanesOwnProcess(t *testing.T) {
	for _, shell := range []string{"/bin/bash", "/bin/dash", "/bin/sh", "/bin/zsh", "/bin/fish"} {
		for mode, wanted := range map[spec.ShellMode][]string{
			spec.ShellInteractive: {"PROFILE=1"}, spec.ShellLogin: {"PROFILE=1"}, spec.ShellNone: {},
		} {
			t.Run(shell+string(mode), func(t *testing.T) {
				if _, err := exec.LookPath(shell); err != nil {
					t.Skip("CI installs it:", err)
				}
				h := newHost(t)
				h.Shell.Path = shell
				for _, name := range []string{".profile", ".zprofile", ".config/fish/config.fish"} {
					file := filepath.Join(h.dir, name)
					require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
					require.NoError(t, os.WriteFile(file, []byte("export PROFILE=1\n"), 0o600))
				}
				h.done(actuate.Action{Kind: actuate.ActionStartServer})
				l := h.launch("shop")
				l.ShellMode = mode
				h.done(actuate.Action{Kind: actuate.ActionCreate, Server: h.listing().Server, Launch: l})
				saw := h.ran(l)
				assert.Equal(t, h.pane(l.Labels.Attempt).PID, saw.PID)
				assert.Equal(t, []string{l.Labels.UID, "--attempt", l.Labels.Attempt, "extra;"}, saw.Argv[7:])
				assert.Equal(t, wanted, matching(saw.Env, "PROFILE="))
				assert.Empty(t, matching(saw.Env, "SECRET="))
				assert.Equal(t, []string{"COLORTERM=truecolor"}, matching(saw.Env, "COLORTERM="))
			})
		}
	}
}

func matching(env []string, prefix string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(v string) bool { return !strings.HasPrefix(v, prefix) })
}

func TestAHookThatRenamesNewSessionsLeavesNoPaneWithoutLabels(t *testing.T) {
	for _, hook := range []string{"rename-session hooked", "kill-session", "new-window ; kill-window -t ^"} {
		t.Run(hook, func(t *testing.T) {
			h := newServer(t)
			h.tmux("new-session", "-d", "-s", "persons", "--", "sleep", "1000")
			h.tmux("set-hook", "-g", "after-new-session", hook)
			before := h.listing()
			outcome := h.Do(t.Context(), actuate.Action{Kind: actuate.ActionCreate, Server: before.Server, Launch: h.launch("shop")})
			assert.NotEqual(t, actuate.ResultDone, outcome.Result)
			for _, p := range h.listing().Panes {
				started := strings.Contains(h.tmux("display-message", "-p", "-t", p.PaneID, "#{pane_start_command}"), "launch")
				assert.False(t, started && p.Labels.Attempt == "", "pane %s runs a launcher without labels", p.PaneID)
			}
		})
	}
}

func TestAHookThatOpensMoreLeavesTheLabelsOnTheLaunchersPane(t *testing.T) {
	for _, hook := range []string{"split-window", "split-window -b", "new-window", "new-window -b"} {
		t.Run(hook, func(t *testing.T) {
			h := newServer(t)
			h.tmux("set-hook", "-g", "after-new-session", hook)
			l := h.launch("shop")
			outcome := h.Do(t.Context(), actuate.Action{Kind: actuate.ActionCreate, Server: h.listing().Server, Launch: l})
			if outcome.Result == actuate.ResultDone {
				assert.Equal(t, h.ran(l).PID, h.pane(l.Labels.Attempt).PID)
				return
			}
			assert.Equal(t, actuate.ResultFailed, outcome.Result)
			for _, p := range h.listing().Panes {
				assert.NotContains(t, h.tmux("display-message", "-p", "-t", p.PaneID, "#{pane_start_command}"), "launch")
				assert.Empty(t, p.Labels.Attempt)
			}
		})
	}
}

// V1
func TestThePersonsOwnTmuxServerIsNotTouched(t *testing.T) {
	persons := newServer(t)
	persons.create("shop")
	before := persons.listing()
	t.Setenv("TMUX", fmt.Sprintf("%s,%d,0", persons.conn.Socket, before.Server.Process.PID))
	t.Setenv("TMUX_PANE", before.Panes[0].PaneID)
	t.Setenv("TMUX_TMPDIR", persons.dir)

	h := newServer(t)
	mine := h.create("shop")
	assert.NotEqual(t, before.Server.Process.PID, h.listing().Server.Process.PID)
	h.done(actuate.Action{Kind: actuate.ActionKillPane, Server: h.listing().Server, Pane: mine})
	assert.Equal(t, before.Panes, persons.listing().Panes)
}

func TestNothingSecretIsInTheServerOrInAnyCommandLine(t *testing.T) {
	h := newServer(t)
	p := h.create("shop")
	assert.NotContains(t, h.tmux("show-environment", "-g"), "leak")
	assert.NotContains(t, h.tmux("show-environment", "-t", "=shop:"), "leak")
	server := h.listing().Server.Process
	assert.Equal(t, observe.Running, process.State(server))
	for _, pid := range []int{server.PID, p.PID} {
		environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		require.NoError(t, err)
		assert.NotContains(t, string(environ), "leak")
	}
}

func TestALaunchThatNobodyWouldRecogniseIsRefused(t *testing.T) {
	h := newServer(t)
	for name, spoil := range map[string]func(*observe.Labels){
		"no name":           func(l *observe.Labels) { l.Name = "" },
		"a format as name":  func(l *observe.Labels) { l.Name = "#(touch x)" },
		"a name with a dot": func(l *observe.Labels) { l.Name = "a.b" },
		"another instance":  func(l *observe.Labels) { l.Instance = "other" },
		"no uid":            func(l *observe.Labels) { l.UID = "" },
		"no attempt":        func(l *observe.Labels) { l.Attempt = "" },
		"no incarnation":    func(l *observe.Labels) { l.Incarnation = 0 },
		"a format as uid":   func(l *observe.Labels) { l.UID = "#{pid}" },
	} {
		t.Run(name, func(t *testing.T) {
			l := h.launch("shop")
			spoil(&l.Labels)
			h.unchanged(actuate.Action{Kind: actuate.ActionCreate, Server: h.listing().Server, Launch: l})
		})
	}
}

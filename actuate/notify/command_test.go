// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/actuate"
	"github.com/muxlet/muxlet/spec"
)

const patience = 60 * time.Second

var example = actuate.Notification{
	Event: spec.NotifyInputRequired, Sessions: []string{"shop"}, Reason: spec.ReasonPermissionRequired, Message: "it asks", Labels: map[string]string{"repo": "shop"},
}

// person has a home, and a directory bin in their PATH.
func person(t *testing.T) Person {
	home := t.TempDir()
	require.NoError(t, os.Mkdir(home+"/bin", 0o700))
	return Person{Home: home, Environ: []string{
		"PATH=relative:" + home + "/bin:" + os.Getenv("PATH"), "HOME=" + home, "NOTIFY_SOCKET=/x", "WATCHDOG_USEC=1", "MUXLET_CLIENT=x", "MUXLET_SESSION=other",
		"MUXLET_STATE_DIR=/state", "TMUX=/x,1,1", "DISPLAY=:1",
	}}
}

func (p Person) program(t *testing.T, name, script string) string {
	path := filepath.Join(p.Home, "bin", name)
	require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\n"+script), 0o700))
	return path
}

func way(command ...string) actuate.NotificationWay {
	return actuate.NotificationWay{Command: command, Timeout: patience}
}

func TestACommandGetsTheDetailsAndItsArguments(t *testing.T) {
	p := person(t)
	p.program(t, "tell", `printf '%s\n' "$PWD" "$#" "$1" "$2" >"$HOME/told"; env >"$HOME/environ"; cat >"$HOME/stdin"`)
	out := p.Notify(t.Context(), way("tell", "a b", "$HOME"), example)
	require.NoError(t, out.CommandErr)
	assert.Positive(t, out.Took)
	assert.Equal(t, p.Home+"\n2\na b\n$HOME\n", read(t, p.Home+"/told"))
	assert.Empty(t, read(t, p.Home+"/stdin"))
	environ := strings.Split(read(t, p.Home+"/environ"), "\n")
	for _, pair := range append(example.Environ(), "DISPLAY=:1", "MUXLET_STATE_DIR=/state", "HOME="+p.Home) {
		assert.Contains(t, environ, pair)
	}
	for _, pair := range environ {
		name, _, _ := strings.Cut(pair, "=")
		assert.NotContains(t, []string{"NOTIFY_SOCKET", "WATCHDOG_USEC", "MUXLET_CLIENT", "TMUX"}, name)
	}
}

func read(t *testing.T, path string) string {
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(data)
}

func TestACommandThatFailsIsToldWithItsFirstWords(t *testing.T) {
	p := person(t)
	notExecutable := filepath.Join(p.Home, "data")
	require.NoError(t, os.WriteFile(notExecutable, nil, 0o600))
	for name, c := range map[string]struct {
		script string
		argv   []string
		want   string
	}{
		"with an exit code": {script: "echo; echo \"no \t bell\x1b[31m\" >&2; echo more >&2; exit 3", want: "the command tell ended with exit status 3: no bell [31m"},
		"without a word":    {script: "exit 1", want: "the command tell ended with exit status 1"},
		"by a signal":       {script: "kill -9 $$", want: "the command tell ended with signal: killed"},
		"with a flood":      {script: "yes 'a very long line' | head -c 3000000 | tr '\\n' ' ' >&2; exit 1", want: "the command tell ended with exit status 1: " + strings.Repeat("a very long line ", 12)[:199] + "…"},
		"that is not there": {argv: []string{"tell-nobody", "SECRET"}, want: "the command tell-nobody was not found in the daemon's PATH (relative:"},
		"a missing path":    {argv: []string{"/nowhere/tell", "SECRET"}, want: "the command tell cannot be run: no such file or directory"},
		"no program":        {argv: []string{notExecutable, "SECRET"}, want: "the command data cannot be run: permission denied"},
		"a secret argument": {argv: []string{"sh", "-c", "exit 2", "SECRET"}, want: "the command sh ended with exit status 2"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.argv == nil {
				c.argv = []string{p.program(t, "tell", c.script)}
			}
			out := p.Notify(t.Context(), way(c.argv...), example)
			require.Error(t, out.CommandErr)
			assert.True(t, strings.HasPrefix(out.CommandErr.Error(), c.want), "got  %s\nwant %s", out.CommandErr, c.want)
			assert.NotContains(t, out.CommandErr.Error(), "SECRET")
		})
	}
}

// What the command has started is killed with it, and nothing is waited for.
func TestACommandThatHangsIsKilledWithItsProcessGroup(t *testing.T) {
	p := person(t)
	hang := p.program(t, "hang", `trap '' TERM HUP INT; echo waiting >&2; sleep 1000 & echo $! $$ >"$HOME/pids"; wait`)
	hangs := way(hang)
	hangs.Timeout = 2 * time.Second
	began := time.Now()
	out := p.Notify(t.Context(), hangs, example)
	require.EqualError(t, out.CommandErr, "the command hang was killed after 2s: waiting")
	assert.Less(t, time.Since(began), patience)
	for _, pid := range strings.Fields(read(t, p.Home+"/pids")) {
		eventuallyGone(t, pid)
	}
}

func eventuallyGone(t *testing.T, pid string) {
	n, err := strconv.Atoi(pid)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		stat, err := os.ReadFile("/proc/" + pid + "/stat")
		return syscall.Kill(n, 0) != nil || err == nil && strings.Contains(string(stat), ") Z ")
	}, patience, 10*time.Millisecond, "process %s lives on", pid)
}

func TestTheEndOfTheDaemonEndsACommand(t *testing.T) {
	p := person(t)
	hang := p.program(t, "hang", `echo $$ >"$HOME/pid"; exec sleep 1000`)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan actuate.NotificationOutcome, 1)
	go func() { ended <- p.Notify(ctx, way(hang), example) }()
	require.Eventually(t, func() bool { data, err := os.ReadFile(p.Home + "/pid"); return err == nil && len(data) > 1 }, patience, 10*time.Millisecond)
	cancel()
	require.EqualError(t, (<-ended).CommandErr, "the command hang was ended with the daemon")
	eventuallyGone(t, strings.TrimSpace(read(t, p.Home+"/pid")))
}

// A sound that goes on, or a banner that waits to be clicked, holds up nothing.
func TestWhatACommandLeavesRunningIsItsOwn(t *testing.T) {
	p := person(t)
	leaves := p.program(t, "leaves", `sleep 1000 & echo $! >"$HOME/pid"`)
	out := p.Notify(t.Context(), way(leaves), example)
	require.NoError(t, out.CommandErr)
	assert.Less(t, out.Took, patience)
	pid, err := strconv.Atoi(strings.TrimSpace(read(t, p.Home+"/pid")))
	require.NoError(t, err)
	assert.NoError(t, syscall.Kill(pid, 0))
	require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
}

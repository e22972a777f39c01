// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// floor is a tmux server without muxlet.
type floor struct {
	*bench
	dir     string
	journal *journal
}

// floorConf makes a tmux server that starts nothing by itself, keeps dead panes, and
// brings a program that ended back in its pane, as people do with a hook.
const floorConf = `set-option -s exit-empty off
set-option -g remain-on-exit on
set-option -g history-limit 100
set-hook -g pane-died respawn-pane
`

func (b *bench) newFloor() (*floor, error) {
	dir, err := b.newDir()
	if err != nil {
		return nil, err
	}
	f := &floor{bench: b, dir: dir}
	f.journal, err = openJournal(dir + "/pipe")
	return f, err
}

func (f *floor) socket() string { return f.dir + "/tmux.sock" }

// words of a session's client.
func (f *floor) words(name string) []string { return []string{f.client, name, f.journal.path} }

// loop is a shell that runs the client again whenever it ends.
func (f *floor) loop(name string) []string {
	return []string{"/bin/sh", "-c", `while :; do "$@"; done`, "sh", f.client, name, f.journal.path}
}

// newSession is the line of a configuration file, or the words of a command.
func newSession(name string, words []string) []string {
	return append([]string{"new-session", "-d", "-s", name, "-x", "80", "-y", "24", "-c", "/", "--"}, words...)
}

// configured starts the server with one file that has all sessions.
func (f *floor) configured(ctx context.Context, lines [][]string) error {
	var conf strings.Builder
	conf.WriteString(floorConf)
	for _, line := range lines {
		for _, word := range line {
			conf.WriteString(" '" + word + "'")
		}
		conf.WriteString("\n")
	}
	path := f.dir + "/tmux.conf"
	if err := os.WriteFile(path, []byte(conf.String()), 0o600); err != nil {
		return err
	}
	return f.run(ctx, "-f", path, "start-server")
}

// run executes tmux.
func (f *floor) run(ctx context.Context, words ...string) error {
	ctx, cancel := context.WithTimeout(ctx, ample)
	defer cancel()
	cmd := exec.CommandContext(ctx, f.tmux, append([]string{"-u", "-S", f.socket()}, words...)...)
	cmd.Env, cmd.Dir = []string{"HOME=" + f.dir, "PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8"}, "/"
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("run tmux: %w: %s", err, out)
	}
	return nil
}

func (f *floor) close() error {
	return errors.Join(killServer(f.tmux, f.socket()), f.journal.close(), os.RemoveAll(f.dir))
}

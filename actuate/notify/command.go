// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/muxlet/muxlet/actuate"
)

const (
	// saidBytes is what is kept of what a command says, saidRunes of its first line.
	saidBytes = 4 << 10
	saidRunes = 200
	// drainTime is how long it is waited for the last words of a command that has ended:
	// something that it left behind may hold its pipe for ever.
	drainTime = 200 * time.Millisecond
)

// foreign are variables that speak of the process which started the daemon, and would
// mislead the command. A name with * at its end stands for all that begin with it.
var foreign = []string{
	"NOTIFY_SOCKET", "WATCHDOG_*", "INVOCATION_ID", "JOURNAL_STREAM", "LISTEN_*", "MANAGERPID", "TMUX", "TMUX_PANE", "MUXLET_*",
}

// kept are those that lead a command of the person's to their daemon.
var kept = []string{"MUXLET_CONFIG", "MUXLET_MANIFESTS", "MUXLET_STATE_DIR", "MUXLET_RUNTIME_DIR"}

// run runs the command to its end. The error is a sentence for a person: it has the
// name of the program and the first line that it wrote to standard error, and no
// argument. What the command leaves running when it ends is its own.
func (p Person) run(ctx context.Context, way actuate.NotificationWay, n actuate.Notification) error {
	name := filepath.Base(way.Command[0])
	program, err := p.find(way.Command[0])
	if err != nil {
		return err
	}
	bounded, cancel := context.WithTimeout(ctx, way.Timeout)
	defer cancel()
	said := &firstBytes{limit: saidBytes}
	cmd := exec.CommandContext(bounded, program, way.Command[1:]...)
	cmd.Args[0] = way.Command[0]
	cmd.Env, cmd.Dir, cmd.Stderr = slices.Concat(p.inherited(), n.Environ()), p.Home, said
	if cmd.Dir == "" {
		cmd.Dir = "/"
	}
	// A session of its own: it has no terminal to stop at, and its group ends as one.
	cmd.SysProcAttr = ofDaemon(&syscall.SysProcAttr{Setsid: true})
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = drainTime
	// The kernel ends the command with the thread that has started it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err = cmd.Run()
	switch exited := (*exec.ExitError)(nil); {
	case cmd.ProcessState != nil && cmd.ProcessState.Success():
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("the command %s was ended with the daemon", name)
	case bounded.Err() != nil:
		return fmt.Errorf("the command %s was killed after %s%s", name, way.Timeout, said.quoted())
	case errors.As(err, &exited):
		return fmt.Errorf("the command %s ended with %s%s", name, exited.ProcessState, said.quoted())
	}
	return fmt.Errorf("the command %s cannot be run: %w", name, cause(err))
}

// find finds the program: a path, or a name in the PATH of the daemon.
func (p Person) find(program string) (string, error) {
	if strings.Contains(program, "/") {
		return program, nil
	}
	path := ""
	for _, pair := range p.Environ {
		if value, ok := strings.CutPrefix(pair, "PATH="); ok {
			path = value
		}
	}
	for _, dir := range filepath.SplitList(path) {
		if !filepath.IsAbs(dir) {
			continue
		}
		if found, err := exec.LookPath(filepath.Join(dir, program)); err == nil {
			return found, nil
		}
	}
	return "", fmt.Errorf("the command %s was not found in the daemon's PATH (%s): give its path", program, path)
}

// inherited is the environment without what is foreign.
func (p Person) inherited() []string {
	return slices.DeleteFunc(slices.Clone(p.Environ), func(pair string) bool {
		name, _, _ := strings.Cut(pair, "=")
		return !slices.Contains(kept, name) && slices.ContainsFunc(foreign, func(pattern string) bool {
			prefix, open := strings.CutSuffix(pattern, "*")
			return name == pattern || open && strings.HasPrefix(name, prefix)
		})
	})
}

// cause is what the system says, without the path that the message has already.
func cause(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}

// firstBytes keeps the first limit bytes and takes the rest, so that the writer neither
// blocks nor fails.
type firstBytes struct {
	kept  bytes.Buffer
	limit int
}

// Write is io.Writer's.
func (b *firstBytes) Write(p []byte) (int, error) {
	b.kept.Write(p[:min(len(p), b.limit-b.kept.Len())])
	return len(p), nil
}

// quoted is the first line that says something, behind a colon; empty when there is none.
func (b *firstBytes) quoted() string {
	for line := range strings.Lines(b.kept.String()) {
		if plain := actuate.Plain(line, saidRunes); plain != "" {
			return ": " + plain
		}
	}
	return ""
}

// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/creack/pty"
	"github.com/stretchr/testify/require"
)

// terminal is a person in front of a command.
type terminal struct {
	w    *World
	cmd  *exec.Cmd
	pty  *os.File
	over chan struct{}

	mu    sync.Mutex
	shown bytes.Buffer
}

// open runs a verb in a terminal.
func (w *World) open(args ...string) *terminal {
	w.Helper()
	tm := &terminal{w: w, cmd: exec.Command(binary, args...), over: make(chan struct{})}
	tm.cmd.Env, tm.cmd.Dir = w.env, w.home
	file, err := pty.StartWithSize(tm.cmd, &pty.Winsize{Rows: 30, Cols: 100})
	require.NoError(w, err)
	tm.pty = file
	go tm.copy()
	w.Cleanup(func() { _ = tm.pty.Close() })
	return tm
}

func (tm *terminal) copy() {
	defer close(tm.over)
	buffer := make([]byte, 4096)
	for {
		n, err := tm.pty.Read(buffer)
		tm.mu.Lock()
		tm.shown.Write(buffer[:n])
		tm.mu.Unlock()
		if err != nil {
			_ = tm.cmd.Wait()
			return
		}
	}
}

func (tm *terminal) text() string {
	tm.mu.Lock()
	defer tm.mu.Unlock()
	return tm.shown.String()
}

// shows waits until the terminal has shown a text.
func (tm *terminal) shows(text string) {
	tm.w.Helper()
	defer func() {
		if tm.w.Failed() {
			tm.w.Logf("The terminal shows: %q", tm.text())
		}
	}()
	tm.w.waitFor("the terminal shows "+text, func() bool { return bytes.Contains([]byte(tm.text()), []byte(text)) })
}

// stroke is the time between two keys of a quick person. tmux takes keys that follow each
// other, or the session's last activity, within a millisecond for a paste (assume-paste-time),
// and a paste presses no bound key.
const stroke = 5 * time.Millisecond

func (tm *terminal) types(keys string) {
	tm.w.Helper()
	if rest, ok := strings.CutPrefix(keys, "\x02"); ok {
		_, err := tm.pty.WriteString("\x02")
		require.NoError(tm.w, err)
		<-time.After(stroke)
		keys = rest
	}
	_, err := tm.pty.WriteString(keys)
	require.NoError(tm.w, err)
}

// detach leaves tmux as a person does, and waits for the end of the command.
func (tm *terminal) detach() {
	tm.w.Helper()
	tm.types("\x02d")
	tm.w.waitFor("the attached terminal is left", func() bool {
		select {
		case <-tm.over:
			return true
		default:
			return false
		}
	})
}

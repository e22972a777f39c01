// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package envtest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"

	"github.com/creack/pty"
)

// Terminal is a person in front of a session: a tmux client with a terminal.
type Terminal struct {
	e    *Env
	cmd  *exec.Cmd
	pty  *os.File
	over chan struct{}

	mu    sync.Mutex
	shown bytes.Buffer
}

// Attach puts a person in front of a tmux session until the test ends or they
// leave. Their terminal has 100 columns and 30 rows.
func (e *Env) Attach(session string) *Terminal {
	e.Helper()
	return e.AttachWith(100, 30, "attach-session", "-t", "="+session)
}

// AttachWith is a person whose terminal has that size and who runs a command of
// tmux in it, such as new-session -t.
func (e *Env) AttachWith(columns, rows int, args ...string) *Terminal {
	e.Helper()
	cmd := exec.Command("tmux", append([]string{"-N", "-u", "-S", e.Socket()}, args...)...)
	cmd.Env, cmd.Dir = append(e.base(), "TERM=xterm-256color"), e.Dir
	file, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: uint16(rows), Cols: uint16(columns)})
	if err != nil {
		e.Fatalf("attach: %v", err)
	}
	t := &Terminal{e: e, cmd: cmd, pty: file, over: make(chan struct{})}
	go t.copy()
	e.Cleanup(t.Leave)
	e.Eventually("the person is attached", func() bool { return t.View() != "" })
	return t
}

// copy keeps what the terminal shows until tmux closes it.
func (t *Terminal) copy() {
	defer close(t.over)
	buffer := make([]byte, 4096)
	for {
		n, err := t.pty.Read(buffer)
		t.mu.Lock()
		t.shown.Write(buffer[:n])
		t.mu.Unlock()
		if err != nil {
			_ = t.cmd.Wait()
			return
		}
	}
}

// Type presses keys.
func (t *Terminal) Type(keys string) {
	t.e.Helper()
	if _, err := t.pty.WriteString(keys); err != nil {
		t.e.Fatalf("type: %v", err)
	}
}

// WaitShows waits until the terminal has shown a text.
func (t *Terminal) WaitShows(text string) {
	t.e.Helper()
	t.e.Eventually("the terminal shows "+text, func() bool {
		t.mu.Lock()
		defer t.mu.Unlock()
		return bytes.Contains(t.shown.Bytes(), []byte(text))
	})
}

// View is what the person has before them, by tmux's own account: session, window,
// pane, the size of the terminal, and the window's layout. It is empty when they
// are not attached.
func (t *Terminal) View() string {
	r := t.e.TryTmux("list-clients", "-F",
		"#{client_pid} #{session_id} #{window_id} #{pane_id} #{client_width}x#{client_height} #{window_layout} #{window_zoomed_flag}")
	for line := range strings.Lines(r.Stdout) {
		if view, mine := strings.CutPrefix(line, fmt.Sprintf("%d ", t.cmd.Process.Pid)); mine {
			return strings.TrimSpace(view)
		}
	}
	return ""
}

// Leave ends the person's tmux client.
func (t *Terminal) Leave() {
	_ = t.cmd.Process.Kill()
	<-t.over
	_ = t.pty.Close()
}

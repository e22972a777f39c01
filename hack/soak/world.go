// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/muxlet/muxlet/controller/server"
	"github.com/muxlet/muxlet/spec"
)

// settings let a client that is killed every few minutes start again soon, and have the
// bounds of what is kept reached while one looks.
const settings = `apiVersion: config.muxlet.dev/v1alpha1
kind: MuxletConfiguration
backOff: {initial: 100ms, max: 2s, resetAfter: 20s}
retention: {events: 200}
starts: {maxInFlight: 8}
`

const manifest = `apiVersion: muxlet.dev/v1alpha1
kind: Session
metadata: {name: s%d}
spec:
  clientClassName: exec
  client: {command: [%s, "%s"], shellMode: None}
  workspace: {directory: %s}
---
`

// world is a daemon with everything that it needs, below one directory.
type world struct {
	config
	dir, mark string
	env       []string
	api       *server.Client
	http      http.Client
	daemon    *exec.Cmd
	log       *os.File
	killed    struct{ clients, servers, daemons int }
}

func newWorld(c config) (*world, error) {
	dir, err := os.MkdirTemp("", "mxsoak")
	if err != nil {
		return nil, err
	}
	if c.muxlet, err = filepath.Abs(c.muxlet); err != nil {
		return nil, err
	}
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		return nil, err
	}
	w := &world{config: c, dir: dir, mark: strconv.Itoa(1e8 + os.Getpid())}
	socket := filepath.Join(dir, "run", "muxlet.sock")
	w.api = server.NewClient(socket)
	w.http = http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}}}
	w.env = []string{"HOME=" + dir, "PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8", "SHELL=/bin/sh"}
	var documents bytes.Buffer
	for i := range c.sessions {
		fmt.Fprintf(&documents, manifest, i, sleep, w.mark, dir)
	}
	for name, text := range map[string]string{"config.yaml": settings, "sessions/all.yaml": documents.String()} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			return nil, err
		}
	}
	w.log, err = os.Create(filepath.Join(dir, "daemon.log"))
	return w, err
}

func (w *world) startDaemon() error {
	w.daemon = exec.Command(w.muxlet, "daemon", "--config", w.dir+"/config.yaml", "--manifests", w.dir+"/sessions",
		"--state-dir", w.dir+"/state", "--runtime-dir", w.dir+"/run")
	w.daemon.Env, w.daemon.Stderr, w.daemon.Dir = w.env, w.log, w.dir
	if err := w.daemon.Start(); err != nil {
		return fmt.Errorf("start the daemon: %w", err)
	}
	return nil
}

// waitRunning waits until each session has its client.
func (w *world) waitRunning(ctx context.Context, limit time.Duration) error {
	running := 0
	for end := time.Now().Add(limit); time.Now().Before(end); {
		list, err := w.api.Sessions(ctx, "")
		if err == nil {
			running = 0
			for i := range list.Items {
				if spec.DisplayStatus(&list.Items[i]) == spec.StatusRunning && list.Items[i].Status.Client.Pid > 0 {
					running++
				}
			}
			if running == w.sessions && w.clients() == w.sessions {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
	return fmt.Errorf("after %s %d of %d sessions run", limit, running, w.sessions)
}

// clients counts those of this world in the process table: each has its mark as its only
// argument.
func (w *world) clients() (n int) {
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return 0
	}
	for _, file := range files {
		if argv, err := os.ReadFile(file); err == nil && bytes.HasSuffix(argv, []byte("\x00"+w.mark+"\x00")) && bytes.Count(argv, []byte{0}) == 2 {
			n++
		}
	}
	return n
}

func (w *world) killClient(ctx context.Context, session int) error {
	s, err := w.api.Session(ctx, fmt.Sprintf("s%d", session))
	if err != nil || s.Status.Client.Pid <= 0 {
		// It has no client now, or the daemon is starting.
		return nil
	}
	pid := s.Status.Client.Pid
	argv, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil || !bytes.Contains(argv, []byte(w.mark)) {
		return nil
	}
	w.killed.clients++
	return gone(syscall.Kill(pid, syscall.SIGKILL))
}

func (w *world) killServer() error {
	pid := w.serverPID()
	if pid <= 0 {
		return nil
	}
	w.killed.servers++
	return gone(syscall.Kill(pid, syscall.SIGKILL))
}

// killDaemon kills the daemon and starts the next one, as its service would.
func (w *world) killDaemon() error {
	w.killed.daemons++
	if err := w.daemon.Process.Kill(); err != nil {
		return err
	}
	_ = w.daemon.Wait()
	return w.startDaemon()
}

func gone(err error) error {
	if errors.Is(err, syscall.ESRCH) {
		return nil
	}
	return err
}

// serverPID asks our own tmux server for its pid; 0 when there is none.
func (w *world) serverPID() int {
	out, err := w.tmux("display-message", "-p", "#{pid}").Output()
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(out)))
	if err != nil {
		return 0
	}
	return pid
}

func (w *world) tmux(args ...string) *exec.Cmd {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	cmd := exec.CommandContext(ctx, "tmux", append([]string{"-N", "-S", w.dir + "/run/tmux.sock"}, args...)...)
	cmd.Env, cmd.WaitDelay = w.env, time.Second
	context.AfterFunc(ctx, cancel)
	return cmd
}

func (w *world) metrics() (string, error) {
	answer, err := w.http.Get("http://muxlet/metrics")
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("metrics answered %s", answer.Status)
	}
	return string(text), err
}

// close ends what was started, and keeps the daemon's log when something went wrong.
func (w *world) close() error {
	if w.daemon != nil && w.daemon.Process != nil {
		_ = w.daemon.Process.Signal(syscall.SIGTERM)
		_ = w.daemon.Wait()
	}
	_ = w.tmux("kill-server").Run()
	_ = w.log.Close()
	for end := time.Now().Add(10 * time.Second); w.clients() > 0; time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			return fmt.Errorf("%d clients are left in the process table: see %s", w.clients(), w.dir)
		}
	}
	return os.RemoveAll(w.dir)
}

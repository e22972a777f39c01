// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/muxlet/muxlet/controller/server"
)

const (
	// ample bounds whatever has to come in the end.
	ample = 2 * time.Minute
	// glance is the time between two looks at something that tells nobody.
	glance = 500 * time.Microsecond
)

// settings of every world: waits after deaths that many rounds of kills do not add up
// to, and all else as a person has it.
const settings = `apiVersion: config.muxlet.dev/v1alpha1
kind: MuxletConfiguration
backOff: {initial: 1ms, max: 1ms}
`

// world is one muxlet with a home, files, a daemon and a tmux server of its own.
type world struct {
	*bench
	dir, manifests string
	env            []string
	journal        *journal
	api            *server.Client
	daemon         *exec.Cmd
}

func (b *bench) newDir() (string, error) {
	b.worlds++
	dir := filepath.Join(b.dir, fmt.Sprint(b.worlds))
	return dir, os.Mkdir(dir, 0o700)
}

func (b *bench) newWorld() (*world, error) {
	dir, err := b.newDir()
	if err != nil {
		return nil, err
	}
	w := &world{bench: b, dir: dir, manifests: dir + "/config/muxlet/sessions"}
	w.env = []string{
		"HOME=" + dir, "PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8", "TERM=xterm-256color",
		"XDG_CONFIG_HOME=" + dir + "/config", "XDG_STATE_HOME=" + dir + "/state", "XDG_RUNTIME_DIR=" + dir,
	}
	w.api = server.NewClient(dir + "/muxlet/muxlet.sock")
	if err := os.MkdirAll(w.manifests, 0o700); err != nil {
		return nil, err
	}
	if err := os.WriteFile(dir+"/config/muxlet/config.yaml", []byte(settings), 0o600); err != nil {
		return nil, err
	}
	w.journal, err = openJournal(dir + "/pipe")
	return w, err
}

// manifest of a session; note is a comment in it.
func (w *world) manifest(name, note string, words ...string) string {
	words = append([]string{w.client, name, w.journal.path}, words...)
	return fmt.Sprintf(`# %s
apiVersion: muxlet.dev/v1alpha1
kind: Session
metadata: {name: %s}
spec:
  client: {command: [%s], shellMode: None}
  workspace: {directory: /}
  updateStrategy: {type: Recreate}
  terminal: {columns: 80, rows: 24, historyLimit: 100}
`, note, name, strings.Join(words, ", "))
}

// declare writes a session's file in one step, as editors do.
func (w *world) declare(name, note string, words ...string) error {
	path := filepath.Join(w.manifests, name+".yaml")
	if err := os.WriteFile(path+".new", []byte(w.manifest(name, note, words...)), 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// sessionName of the ith session of a world or a floor.
func sessionName(i int) string { return fmt.Sprintf("s%04d", i) }

func (w *world) declareMany(n int) error {
	for i := range n {
		if err := w.declare(sessionName(i), "measured"); err != nil {
			return err
		}
	}
	return nil
}

// populate starts the daemon on n sessions and waits until all are ready.
func (w *world) populate(ctx context.Context, n int) error {
	if err := w.declareMany(n); err != nil {
		return err
	}
	if err := w.start(); err != nil {
		return err
	}
	return w.settled(ctx, n)
}

// start starts the daemon and waits for nothing.
func (w *world) start() error {
	log, err := os.OpenFile(w.dir+"/log", os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	w.daemon = exec.Command(w.muxlet, "daemon")
	w.daemon.Env, w.daemon.Dir, w.daemon.Stdout, w.daemon.Stderr = w.env, w.dir, log, log
	w.daemon.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return w.daemon.Start()
}

// answers waits until the API does.
func (w *world) answers(ctx context.Context) error {
	deadline := time.Now().Add(ample)
	for {
		err := w.api.Healthy(ctx)
		if err == nil || time.Now().After(deadline) {
			return err
		}
		if err := sleep(ctx, glance); err != nil {
			return err
		}
	}
}

// settled waits until n sessions are ready as far as the daemon knows.
func (w *world) settled(ctx context.Context, n int) error {
	for deadline := time.Now().Add(ample); ; {
		list, err := w.api.Sessions(ctx, "")
		if err == nil {
			ready := 0
			for _, s := range list.Items {
				if s.Status.Client.Ready {
					ready++
				}
			}
			if ready == n {
				return nil
			}
			err = fmt.Errorf("%d of %d sessions are ready", ready, n)
		}
		if time.Now().After(deadline) {
			return err
		}
		if err := sleep(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
}

// end sends the daemon a signal and waits for its end.
func (w *world) end(sig syscall.Signal) error {
	if w.daemon == nil {
		return nil
	}
	err := w.daemon.Process.Signal(sig)
	process := w.daemon.Process
	stubborn := time.AfterFunc(ample, func() { _ = process.Kill() })
	// How it ended does not matter.
	_ = w.daemon.Wait()
	stubborn.Stop()
	w.daemon = nil
	w.api.Close()
	return err
}

// close ends the daemon, the tmux server and with it the clients.
func (w *world) close() error {
	err := w.end(syscall.SIGTERM)
	if _, missing := os.Stat(w.socket()); missing == nil {
		err = errors.Join(err, killServer(w.tmux, w.socket()))
	}
	return errors.Join(err, w.journal.close(), os.RemoveAll(w.dir))
}

func (w *world) socket() string { return w.dir + "/muxlet/tmux.sock" }

// killServer ends a tmux server of ours and all that runs in it.
func killServer(tmux, socket string) error {
	ctx, cancel := context.WithTimeout(context.Background(), ample)
	defer cancel()
	if out, err := exec.CommandContext(ctx, tmux, "-N", "-S", socket, "kill-server").CombinedOutput(); err != nil {
		return fmt.Errorf("end tmux on %s: %w: %s", socket, err, out)
	}
	return nil
}

// serverPid of the tmux server on a socket.
func serverPid(ctx context.Context, tmux, socket string) (pid int, err error) {
	ctx, cancel := context.WithTimeout(ctx, ample)
	defer cancel()
	out, err := exec.CommandContext(ctx, tmux, "-N", "-S", socket, "display-message", "-p", "#{pid}").Output()
	if err == nil {
		_, err = fmt.Sscan(string(out), &pid)
	}
	if err != nil {
		return 0, fmt.Errorf("ask tmux for its pid: %w", err)
	}
	return pid, nil
}

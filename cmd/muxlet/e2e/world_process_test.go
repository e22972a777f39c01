// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// process is one of the world, found in the process table without asking muxlet.
type process struct {
	pid     int
	argv    string
	environ string
	// ticks since boot at its start; with pid its identity.
	ticks uint64
}

// processes of the world that run: its path is in their environment or command
// line. A zombie does not run.
func (w *World) processes() []process {
	var out []process
	for _, pid := range pids() {
		if p, ok := w.look(pid); ok {
			out = append(out, p)
		}
	}
	return out
}

func pids() []int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		panic(err)
	}
	var out []int
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil && pid != os.Getpid() {
			out = append(out, pid)
		}
	}
	return out
}

// look at one process; ok when it belongs to the world and runs.
func (w *World) look(pid int) (p process, ok bool) {
	read := func(name string) string {
		data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, name))
		return string(bytes.ReplaceAll(data, []byte{0}, []byte{'\n'}))
	}
	p = process{pid: pid, environ: read("environ"), argv: strings.ReplaceAll(read("cmdline"), "\n", " ")}
	if !strings.Contains(p.environ, w.dir+"/") && !strings.Contains(p.argv, w.dir+"/") {
		return p, false
	}
	p.ticks, ok = ticksOf(pid)
	return p, ok
}

// ticksOf a process that runs.
func ticksOf(pid int) (uint64, bool) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, false
	}
	_, rest, _ := strings.Cut(string(data), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 20 || fields[0] == "Z" || fields[0] == "X" {
		return 0, false
	}
	ticks, err := strconv.ParseUint(fields[19], 10, 64)
	return ticks, err == nil
}

func (p process) runs() bool {
	ticks, ok := ticksOf(p.pid)
	return ok && ticks == p.ticks
}

// variable of the process's environment.
func (p process) variable(name string) string {
	for line := range strings.Lines(p.environ) {
		if value, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), name+"="); ok {
			return value
		}
	}
	return ""
}

// isClient says whether the process is a client itself and no child of one.
func (p process) isClient() bool {
	_, pid := partsOf(p.variable("MUXLET_CLIENT"))
	return pid == p.pid
}

// clients of a session that run.
func (w *World) clients(session string) []process {
	var out []process
	for _, p := range w.processes() {
		if p.variable("MUXLET_SESSION") == session && p.isClient() {
			out = append(out, p)
		}
	}
	return out
}

// family is every process that a session's clients have left or are.
func (w *World) family(session string) []process {
	var out []process
	for _, p := range w.processes() {
		if p.variable("MUXLET_SESSION") == session {
			out = append(out, p)
		}
	}
	return out
}

// sampler looks for doubled clients again and again.
type sampler struct {
	w       *World
	foreign map[int]bool
	doubled []string
	samples int
	stop    chan struct{}
	done    chan struct{}
}

// sample starts to look for doubled clients, until the returned function is
// called, which fails the test if there ever were any.
func (w *World) sample() (finish func()) {
	s := &sampler{w: w, foreign: map[int]bool{}, stop: make(chan struct{}), done: make(chan struct{})}
	go s.run()
	return func() {
		w.Helper()
		close(s.stop)
		<-s.done
		w.Logf("Looked %d times for doubled clients", s.samples)
		require.Empty(w, s.doubled, "two live clients of one session")
		require.Positive(w, s.samples)
	}
}

func (s *sampler) run() {
	defer close(s.done)
	for {
		select {
		case <-s.stop:
			return
		default:
			s.once()
			s.samples++
		}
	}
}

// once is one look. Two clients count as doubled when both of them are seen to
// run after both were found.
func (s *sampler) once() {
	found := map[string]process{}
	for _, pid := range pids() {
		if s.foreign[pid] {
			continue
		}
		p, ok := s.w.look(pid)
		if !ok && !strings.Contains(p.environ, s.w.dir) && p.environ != "" {
			s.foreign[pid] = true
		}
		if !ok || !p.isClient() {
			continue
		}
		session := p.variable("MUXLET_SESSION")
		if other, twice := found[session]; twice && other.runs() && p.runs() {
			s.doubled = append(s.doubled, fmt.Sprintf("%s: %s (pid %d) and %s (pid %d)", session,
				other.variable("MUXLET_CLIENT"), other.pid, p.variable("MUXLET_CLIENT"), p.pid))
		}
		found[session] = p
	}
}

// tmux runs tmux on the world's socket and returns what it prints.
func (w *World) tmux(args ...string) (string, error) {
	cmd := exec.Command("tmux", append([]string{"-N", "-u", "-S", w.socket()}, args...)...)
	cmd.Env = w.env
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

func (w *World) socket() string { return w.runtime + "/tmux.sock" }

// servers are the tmux servers of the world, by the process table.
func (w *World) servers() []process {
	var out []process
	for _, p := range w.processes() {
		comm, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", p.pid))
		if err == nil && strings.TrimSpace(string(comm)) == "tmux: server" && strings.HasPrefix(p.argv, "tmux ") || strings.Contains(p.argv, "/tmux ") && strings.Contains(string(comm), "server") {
			out = append(out, p)
		}
	}
	return out
}

// server is the only tmux server of the world.
func (w *World) server() process {
	w.Helper()
	var servers []process
	w.waitFor("there is exactly one tmux server", func() bool {
		servers = w.servers()
		return len(servers) == 1
	})
	return servers[0]
}

// signal a process. 0 would be the tests' own group.
func signal(t require.TestingT, pid int, sig unix.Signal) {
	require.Greater(t, pid, 1, "there is no process to signal")
	require.NoError(t, unix.Kill(pid, sig), "pid %d", pid)
}

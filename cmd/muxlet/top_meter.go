// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/muxlet/muxlet/controller/server"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/observe/process"
	"github.com/muxlet/muxlet/spec"
)

// memoryPatience is how long memory is asked for in parts: it takes 0.05 ms for each MiB.
// What is left then counts in full.
const memoryPatience = 2 * time.Second

// The rows of top that are no sessions. No session can have such a name.
const (
	daemonRow = "(daemon)"
	serverRow = "(tmux server)"
)

// use is what one tree of processes uses.
type use struct {
	name      string
	cpu       time.Duration // each second
	memory    int64         // in bytes
	processes []processUse
}

// processUse is what one process uses.
type processUse struct {
	pid     int
	command string
	memory  int64
}

// uses are what everything uses that was asked for.
type uses struct {
	sessions []use
	// others are the daemon and the tmux server.
	others []use
	at     time.Time
}

// meter reads the process table, again and again.
type meter struct {
	*topOptions
	client *server.Client
	// last is the reading before.
	last reading
}

// reading is the process table at one time.
type reading struct {
	at    time.Time
	table []observe.ProcessUse
}

func read() (reading, error) {
	table, err := process.Uses()
	if err != nil {
		return reading{}, fmt.Errorf("see what processes use: %w", err)
	}
	return reading{time.Now(), table}, nil
}

func (m *meter) begin(ctx context.Context) (err error) {
	if _, err = m.client.Status(ctx); err != nil {
		return err
	}
	m.last, err = read()
	return err
}

// measure says what is used over the interval that begins at the last reading. The second
// error is about names that do not exist, and was shown.
func (m *meter) measure(ctx context.Context) (*uses, error, error) {
	if !pause(ctx, m.interval-time.Since(m.last.at)) {
		return nil, nil, ctx.Err()
	}
	status, err := m.client.Status(ctx)
	if err != nil {
		return nil, nil, err
	}
	sessions, failed, err := m.sessions(ctx, m.client)
	if err != nil || len(sessions) == 0 && failed != nil {
		return nil, failed, worse(err, failed)
	}
	now, err := read()
	if err != nil {
		return nil, nil, err
	}
	before := m.last
	m.last = now
	return m.compare(before, now, sessions, status), failed, nil
}

// compare makes trees of the present table, finds them in the one before, and says what
// was used in between.
func (m *meter) compare(before, now reading, sessions []spec.Session, status server.DaemonStatus) *uses {
	roots := rootsOf(now.table, sessions, status)
	names := map[string]bool{}
	for i := range sessions {
		names[string(sessions[i].UID)] = true
	}
	carries := func(pid int) string {
		if uid := process.UIDCarried(pid); names[uid] {
			return uid
		}
		return ""
	}
	trees, earlier := observe.Trees(now.table, roots, carries), observe.Trees(before.table, roots, carries)
	var newest uint64
	for _, p := range before.table {
		newest = max(newest, p.Ticks)
	}
	share := m.shares()
	useOf := func(key, name string) use {
		used := observe.CPUBetween(earlier[key], trees[key], newest)
		u := use{name: name, cpu: time.Duration(float64(used) / max(now.at.Sub(before.at), 1).Seconds())}
		for _, p := range trees[key] {
			if p.Ended {
				continue
			}
			memory := share(p.PID)
			u.processes = append(u.processes, processUse{p.PID, p.Command, memory})
			u.memory += memory
		}
		return u
	}
	all := &uses{at: m.now()}
	for i := range sessions {
		u := useOf(string(sessions[i].UID), sessions[i].Name)
		if len(u.processes) > 0 || len(m.names) > 0 {
			all.sessions = append(all.sessions, u)
		}
	}
	m.sorted(all.sessions)
	if len(m.names) == 0 && m.selector == "" {
		for _, row := range []string{daemonRow, serverRow} {
			if u := useOf(row, row); len(u.processes) > 0 {
				all.others = append(all.others, u)
			}
		}
	}
	return all
}

// rootsOf are the processes that everything else comes from: each session's client by the
// session's uid, the daemon, and the tmux server, whose panes are not its own.
func rootsOf(table []observe.ProcessUse, sessions []spec.Session, status server.DaemonStatus) map[string]observe.Process {
	wanted := map[int]string{status.PID: daemonRow, status.Tmux.ServerPID: serverRow}
	for i := range sessions {
		if pid := sessions[i].Status.Client.Pid; pid != 0 {
			wanted[pid] = string(sessions[i].UID)
		}
	}
	roots := map[string]observe.Process{}
	for _, p := range table {
		if key := wanted[p.PID]; key != "" && p.PID != 0 {
			roots[key] = p.Process
		}
	}
	return roots
}

// shares asks for the memory of processes, in parts as long as there is time for it.
func (m *meter) shares() func(pid int) int64 {
	began := time.Now()
	return func(pid int) int64 {
		if time.Since(began) < memoryPatience {
			if bytes, err := process.ShareOfMemory(pid); err == nil {
				return bytes
			}
		}
		bytes, err := process.ResidentMemory(pid)
		if err != nil {
			return 0 // it has ended
		}
		return bytes
	}
}

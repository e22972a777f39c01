// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// ticksPerSecond of the times in /proc/PID/stat; it is 100 wherever Go runs on Linux.
const ticksPerSecond = 100

// use is what a process uses.
type use struct {
	// cpu of the process and its children that ended.
	cpu time.Duration
	// resident memory in MiB.
	resident float64
}

// usage reads /proc (Linux only; proc(5)).
func usage(pid int) (use, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return use{}, err
	}
	_, rest, _ := strings.Cut(string(data), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 22 {
		return use{}, fmt.Errorf("read /proc/%d/stat: %q", pid, data)
	}
	ticks := 0
	for _, field := range fields[11:15] {
		n, err := strconv.Atoi(field)
		if err != nil {
			return use{}, err
		}
		ticks += n
	}
	pages, err := strconv.Atoi(fields[21])
	return use{
		cpu:      time.Duration(ticks) * time.Second / ticksPerSecond,
		resident: float64(pages*os.Getpagesize()) / (1 << 20),
	}, err
}

// rest measures what n sessions cost while nothing happens.
func (b *bench) rest(ctx context.Context, n int, w *world, f *floor) error {
	period := pick(b, 2*time.Second, time.Minute)
	server, err := serverPid(ctx, b.tmux, w.socket())
	if err != nil {
		return err
	}
	alone, err := serverPid(ctx, b.tmux, f.socket())
	if err != nil {
		return err
	}
	// What the kills have left to do is over by then.
	if err := sleep(ctx, pick(b, time.Second, 5*time.Second)); err != nil {
		return err
	}
	pids := []int{w.daemon.Process.Pid, server, alone}
	var before, after [3]use
	for _, moment := range []*[3]use{&before, &after} {
		if moment == &after {
			if err := sleep(ctx, period); err != nil {
				return err
			}
		}
		for i, pid := range pids {
			if moment[i], err = usage(pid); err != nil {
				return err
			}
		}
	}
	spent := func(i int) float64 {
		return (after[i].cpu - before[i].cpu).Seconds() * float64(time.Minute) / float64(period)
	}
	b.table.add(row{
		what: fmt.Sprintf("CPU of the daemon at rest, %d sessions", n), value: fmt.Sprintf("%.2f s a minute", spent(0)),
		goal: "0.20 s a minute", miss: over(spent(0), 0.2),
		beside: []string{fmt.Sprintf("its tmux server %.2f", spent(1)), fmt.Sprintf("a tmux server that nobody asks %.2f", spent(2))},
	})
	b.table.add(row{
		what: fmt.Sprintf("memory of the daemon, %d sessions", n), value: fmt.Sprintf("%.0f MiB", after[0].resident),
		goal: "60 MiB", miss: over(after[0].resident, 60),
		beside: []string{fmt.Sprintf("its tmux server %.0f", after[1].resident), fmt.Sprintf("a tmux server without muxlet %.0f", after[2].resident)},
	})
	return nil
}

// measureAPI starts daemons without sessions: to the first answer of the API.
func measureAPI(ctx context.Context, b *bench) (err error) {
	w, err := b.newWorld()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	var took, version []time.Duration
	for range pick(b, 3, 20) {
		began := time.Now()
		if err := errors.Join(w.start(), w.answers(ctx)); err != nil {
			return err
		}
		took = append(took, time.Since(began))
		if err := w.end(syscall.SIGTERM); err != nil {
			return err
		}
		once, err := timed(ctx, w.env, 0, b.muxlet, "version")
		if err != nil {
			return err
		}
		version = append(version, once)
	}
	median := quantile(took, 0.5)
	b.table.add(row{
		what: "start of the daemon to its API's first answer", value: millis(median),
		goal: "50 ms", miss: over(float64(median)/1e6, 50),
		beside: []string{fmt.Sprintf("`muxlet version` %s (×%.1f)", millis(quantile(version, 0.5)), ratio(median, quantile(version, 0.5)))},
	})
	return nil
}

// timed is how long a program runs that exits with the given code.
func timed(ctx context.Context, env []string, code int, words ...string) (time.Duration, error) {
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.Env = env
	began := time.Now()
	err := cmd.Run()
	took := time.Since(began)
	if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != code {
		return 0, fmt.Errorf("run %s: %w", strings.Join(words, " "), err)
	}
	return took, nil
}

// measurePrograms runs programs of muxlet's that stand in somebody's way. The launcher
// finds its attempt fenced: it goes as far as it must before it executes nothing.
func measurePrograms(ctx context.Context, b *bench) error {
	dir, err := b.newDir()
	if err != nil {
		return err
	}
	nothing, err := exec.LookPath("true")
	if err != nil {
		return err
	}
	programs := []struct {
		code  int
		words []string
		took  []time.Duration
	}{
		{1, []string{b.muxlet, "launch", "-state", dir, "-runtime", dir, "-uid", "u", "-attempt", "a"}, nil},
		{0, []string{nothing}, nil},
	}
	for range pick(b, 5, 100) {
		for i := range programs {
			once, err := timed(ctx, []string{}, programs[i].code, programs[i].words...)
			if err != nil {
				return err
			}
			programs[i].took = append(programs[i].took, once)
		}
	}
	launcher, floor := quantile(programs[0].took, 0.5), quantile(programs[1].took, 0.5)
	b.table.add(row{
		what: "the program that becomes the client, by itself", value: millis(launcher),
		beside: []string{fmt.Sprintf("`true` %s (×%.1f)", millis(floor), ratio(launcher, floor))},
	})
	return nil
}

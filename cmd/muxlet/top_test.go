// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// measured is what top has to show, in no order.
func measured() *uses {
	of := func(name string, cpu time.Duration, memory int64, n int) use {
		u := use{name: name, cpu: cpu, memory: memory << 20}
		for i := range n {
			u.processes = append(u.processes, processUse{100 + i, "node", memory << 20 / int64(n)})
		}
		return u
	}
	return &uses{
		at:       noon,
		sessions: []use{of("web", 3*time.Millisecond, 380, 7), of("api", 1234*time.Millisecond, 412, 9), of("rests", 0, 0, 0)},
		others:   []use{of(daemonRow, 2400*time.Microsecond, 48, 1), of(serverRow, 0, 22, 1)},
	}
}

func TestTopShowsSessionsThenTheRestThenTheSum(t *testing.T) {
	var out strings.Builder
	o := &topOptions{globals: &globals{out: &out}}
	for _, test := range []struct{ by, want string }{{sortName, "api rests web"}, {sortCPU, "api web rests"}, {sortMemory, "api web rests"}, {sortProcesses, "api web rests"}} {
		all := measured()
		o.sortBy = test.by
		o.sorted(all.sessions)
		var names []string
		for _, u := range all.sessions {
			names = append(names, u.name)
		}
		assert.Equal(t, test.want, strings.Join(names, " "), test.by)
	}
	require.NoError(t, o.show(measured()))
	assert.Equal(t, `NAME            CPU(cores)   MEMORY(bytes)   PROCESSES
web             3m           380Mi           7
api             1234m        412Mi           9
rests           0m           0Mi             0
(daemon)        2m           48Mi            1
(tmux server)   0m           22Mi            1
TOTAL           1239m        862Mi           18
`, out.String())
}

func TestTopMeasuresRealProcesses(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("this system does not tell what processes use")
	}
	f := newFakeDaemon(runningSession("web", 1, os.Getpid()), suspendedSession("off"))
	f.status.PID, f.status.Tmux.ServerPID = os.Getppid(), 1
	c := newCLI(t, f)
	var stop atomic.Bool
	defer stop.Store(true)
	go func() {
		for !stop.Load() {
			runtime.Gosched()
		}
	}()
	assert.Equal(t, 0, c.run("top", "--interval=300ms", "-o", "json"))
	var list metricsList
	require.NoError(t, json.Unmarshal([]byte(c.out), &list))
	require.Len(t, list.Items, 1, "off has no process")
	assert.Equal(t, "web", list.Items[0].Metadata.Name)
	assert.Regexp(t, `^[1-9]\d*m$`, list.Items[0].Usage.CPU, "it works")
	assert.Regexp(t, `^[1-9]\d{3,}Ki$`, list.Items[0].Usage.Memory)
	assert.Equal(t, os.Getpid(), list.Items[0].Processes[0].PID)
	assert.Equal(t, os.Getppid(), list.Daemon.Processes[0].PID)
	assert.Equal(t, "300ms", list.TmuxServer.Window.Duration.String())

	assert.Equal(t, 0, c.run("top", "off", "--interval=100ms", "--no-headers"))
	assert.Equal(t, "off   0m    0Mi   0\n", c.out)
	assert.Equal(t, exitNotFound, c.run("top", "nobody", "off", "--interval=100ms", "--no-headers"))
	assert.Contains(t, c.errOut, "session \"nobody\" not found")
	assert.Contains(t, c.out, "off ")
	assert.Equal(t, exitNotFound, c.run("top", "nobody", "--interval=100ms"))
	assert.Empty(t, c.out)
	f.status.PID, f.status.Tmux.ServerPID = 0, 0
	assert.Equal(t, 0, c.run("top", "-l", "a=b", "--interval=100ms"))
	assert.Equal(t, "No session has a process.\n", c.errOut)
}

func TestTopRefusesWhatMakesNoSense(t *testing.T) {
	c := newCLI(t, newFakeDaemon())
	for line, want := range map[string]string{
		"--sort-by cpus":  "cannot sort by \"cpus\": give name, cpu, memory, processes (did you mean \"cpu\"?)",
		"-o yaml":         "unknown format \"yaml\" for -o: it must be json",
		"--interval 10ms": "--interval is 10ms: it must be from 100ms to 1m0s",
		"a -l a=b":        "a name and a selector cannot be given together",
		"turn/a":          "\"turn/a\" names no session",
	} {
		assert.Equal(t, exitUsage, c.run(append([]string{"top"}, strings.Fields(line)...)...), line)
		assert.Contains(t, c.errOut, want, line)
	}
}

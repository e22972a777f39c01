// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/observe"
)

// wraps makes the test binary a wrapper: it starts the program of the variable WRAPPED,
// says its pid, and lives on.
func wraps() {
	cmd := exec.Command(os.Getenv("WRAPPED"), "-c", "echo ready; read line; exit 0")
	cmd.Env = append(os.Environ(), helperVariable+"=waits")
	if _, err := cmd.StdinPipe(); err != nil {
		panic(err)
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		panic(err)
	}
	_, _ = io.ReadFull(out, make([]byte, len("ready")))
	_, _ = os.Stdout.WriteString(strconv.Itoa(cmd.Process.Pid) + "\n")
	go func() { _ = cmd.Wait() }()
}

func init() { helpers["wraps"] = wraps }

// program is the test binary as a file of that name.
func program(t *testing.T, name string) string {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), name)
	data, err := os.ReadFile(self)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, data, 0o700))
	return path
}

// wrapped starts a wrapper and returns it and what it wraps.
func wrapped(t *testing.T, wrapper, inside string) (client, child observe.Process) {
	t.Helper()
	cmd := exec.Command(wrapper)
	cmd.Env = append(os.Environ(), helperVariable+"=wraps", "WRAPPED="+inside)
	pid, err := strconv.Atoi(start(t, cmd))
	require.NoError(t, err)
	return identified(t, cmd.Process.Pid), identified(t, pid)
}

func engineIs(t *testing.T, want, client observe.Process, name string) {
	t.Helper()
	found, err := Engine(client, name)
	require.NoError(t, err)
	assert.Equal(t, want, found)
}

// C6.
func TestAnEngineIsTheChildOfThatName(t *testing.T) {
	client, child := wrapped(t, program(t, "node"), program(t, "codex"))
	engineIs(t, child, client, "codex")
	engineIs(t, observe.Process{}, client, "other")
	engineIs(t, client, client, "node")
	engineIs(t, child, child, "codex")
}

// An agent that its own tools start is no engine of anything.
func TestAClientOfThatNameIsItsOwnEngine(t *testing.T) {
	client, _ := wrapped(t, program(t, "codex"), program(t, "codex"))
	engineIs(t, client, client, "codex")
}

func TestAnEngineIsFoundBelowShellsAlone(t *testing.T) {
	codex := program(t, "codex")
	cmd, line := shell(t, `sh -c 'exec 3<&0; "$CODEX" <&3 >/dev/null & echo $!; wait'; true`, "CODEX="+codex, helperVariable+"=waits")
	pid, err := strconv.Atoi(line)
	require.NoError(t, err)
	client := identified(t, cmd.Process.Pid)
	require.Eventually(t, func() bool { return filepath.Base(programOf(pid)) == "codex" }, patience, time.Millisecond)
	engineIs(t, identified(t, pid), client, "codex")

	cmd, _ = shell(t, `exec 3<&0; "$TOOL" <&3; true`, "TOOL="+program(t, "tool"), "WRAPPED="+codex, helperVariable+"=wraps")
	engineIs(t, observe.Process{}, identified(t, cmd.Process.Pid), "codex")
}

func TestAnEngineWhoseFileWasReplacedIsKnown(t *testing.T) {
	codex := program(t, "codex")
	client, child := wrapped(t, program(t, "node"), codex)
	require.NoError(t, os.Remove(codex))
	engineIs(t, child, client, "codex")
}

func TestWhetherAnEngineIsThereIsNotKnownOfAClientThatHasEnded(t *testing.T) {
	client, child := wrapped(t, program(t, "node"), program(t, "codex"))
	p, err := os.FindProcess(child.PID)
	require.NoError(t, err)
	require.NoError(t, p.Kill())
	becomesGone(t, child)
	engineIs(t, observe.Process{}, client, "codex")

	p, err = os.FindProcess(client.PID)
	require.NoError(t, err)
	require.NoError(t, p.Kill())
	becomesGone(t, client)
	_, err = Engine(client, "codex")
	require.Error(t, err)
	_, err = Engine(observe.Process{PID: os.Getpid(), Ticks: 1}, filepath.Base(os.Args[0]))
	require.Error(t, err, "another process has its pid")
}

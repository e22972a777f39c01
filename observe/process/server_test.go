// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/observe"
)

func TestSocketOfATmuxCommandLineIsThatOfItsOwnOptions(t *testing.T) {
	for line, want := range map[string]string{
		"tmux":                                     "",
		"tmux -u -S /a -f /c new-session -d":       "/a",
		"tmux -uS /a new":                          "/a",
		"tmux -S/a new":                            "/a",
		"tmux -uS/a":                               "/a",
		"tmux -S /a -S /b new":                     "/b",
		"tmux -f -S -S /a new":                     "/a",
		"tmux -L name -2 -S /a":                    "/a",
		"tmux -c -S /a":                            "",
		"tmux -L /a new -s x -- tmux -S /b":        "",
		"tmux -S /a new -- tmux -S /b":             "/a",
		"tmux -S /a -- new -S /b":                  "/a",
		"tmux -S":                                  "",
		"tmux new -S /b":                           "",
		"tmux - -S /b":                             "",
		"tmux -T RGB -N -D -V -v -C -l -q -S /a x": "/a",
	} {
		var arguments [][]byte
		for word := range strings.FieldsSeq(line) {
			arguments = append(arguments, []byte(word))
		}
		require.Equal(t, want, optionsOf(arguments)[0], line)
	}
	require.Empty(t, optionsOf(nil))
	require.Equal(t, [2]string{"/a", "/c"}, optionsOf([][]byte{[]byte("tmux"), []byte("-uf"), []byte("/c"), []byte("-S/a"), []byte("start-server")}))
}

// tmuxServer starts a tmux server on the socket and returns its pid.
func tmuxServer(t *testing.T, socket string, argv ...string) int {
	t.Helper()
	args := append([]string{"-u", "-S", socket, "-f", "/dev/null", "new-session", "-d", "-P", "-F", "#{pid}", "--"}, argv...)
	cmd := exec.Command("tmux", args...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=/", "LANG=C.UTF-8"}
	out, err := cmd.Output()
	require.NoError(t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(string(out)))
	require.NoError(t, err)
	t.Cleanup(func() {
		p := observe.Process{PID: pid}
		_ = syscall.Kill(pid, syscall.SIGKILL)
		becomesGone(t, p)
	})
	return pid
}

// A server is found by the process table alone; no client of tmux is ever taken for one,
// for the signal that is meant for the server might end it.
func TestServersAreFoundAndClientsNever(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("nothing is found where a process cannot name itself")
	}
	dir, err := os.MkdirTemp("", "mxp")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	ours, other := filepath.Join(dir, "s"), filepath.Join(dir, "s2")
	found, err := FindServers(ours)
	require.NoError(t, err)
	require.Empty(t, found)

	pid := tmuxServer(t, ours, "sleep", "1000")
	// Another server, whose client's command line names our socket too.
	tmuxServer(t, other, "sh", "-c", "exec sleep 1000", "tmux", "-S", ours)
	// Clients of ours that stay: one attached in control mode, one that waits.
	for _, args := range [][]string{{"-C", "attach"}, {"wait-for", "never"}} {
		client := exec.Command("tmux", append([]string{"-u", "-S", ours}, args...)...)
		_, err := client.StdinPipe()
		require.NoError(t, err)
		require.NoError(t, client.Start())
		t.Cleanup(func() { end(client) })
		require.Eventually(t, func() bool {
			e, err := readEntry(client.Process.Pid)
			return err == nil && e.command == "tmux: client"
		}, patience, time.Millisecond)
	}
	want := []observe.Process{identified(t, pid)}
	found, err = FindServers(ours)
	require.NoError(t, err)
	require.Equal(t, want, found)

	require.NoError(t, os.Remove(ours))
	found, err = FindServers(ours)
	require.NoError(t, err)
	require.Equal(t, want, found, "the socket is not needed")

	require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
	becomesGone(t, want[0])
	found, err = FindServers(ours)
	require.NoError(t, err)
	require.Empty(t, found)
}

// Children that the server has forked, and that have not executed their program yet, look
// like it in all but their parent.
func TestForkedChildrenOfAServerAreNotServers(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("nothing is found where a process cannot name itself")
	}
	dir, err := os.MkdirTemp("", "mxp")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	socket := filepath.Join(dir, "s")
	pid := tmuxServer(t, socket, "sleep", "1000")
	creating := exec.Command("sh", "-c", `for i in $(seq 40); do tmux -N -u -S "$0" new-window -d -- true; done`, socket)
	require.NoError(t, creating.Start())
	done := make(chan error, 1)
	go func() { done <- creating.Wait() }()
	for {
		select {
		case err := <-done:
			require.NoError(t, err)
			return
		default:
		}
		found, err := FindServers(socket)
		require.NoError(t, err)
		require.Len(t, found, 1)
		require.Equal(t, pid, found[0].PID)
	}
}

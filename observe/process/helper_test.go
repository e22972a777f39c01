// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/muxlet/muxlet/observe"
)

// patience is how long a test waits for something that happens at once on an idle
// machine.
const patience = 60 * time.Second

// helperVariable makes the test binary another program.
const helperVariable = "MUXLET_TEST_HELPER"

func TestMain(m *testing.M) {
	if role := os.Getenv(helperVariable); role != "" {
		helpers[role]()
		_, _ = fmt.Fprintln(os.Stdout, "ready")
		// The test's end of the pipe closes at the latest with the test.
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// helpers are the programs that the test binary can be.
var helpers = map[string]func(){
	"waits": func() {},
	"judges": func() {
		pid, _ := strconv.Atoi(os.Getenv("JUDGED"))
		_, state := Identify(pid)
		_, _ = fmt.Fprintln(os.Stdout, state)
	},
	// locks the file of its variable as a launcher does.
	"locks": func() {
		fd, err := syscall.Open(os.Getenv("LOCKED"), os.O_RDWR|os.O_CREATE, 0o600)
		if err == nil {
			err = unix.FcntlFlock(uintptr(fd), unix.F_SETLK, &unix.Flock_t{Type: unix.F_WRLCK})
		}
		if err != nil {
			panic(err)
		}
	},
}

// helper starts the test binary in a role, and returns when it is ready.
func helper(t *testing.T, role string, env ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(self)
	cmd.Env = append(append(os.Environ(), helperVariable+"="+role), env...)
	start(t, cmd)
	return cmd
}

// shell starts a script that prints a line when it is ready.
func shell(t *testing.T, script string, env ...string) (cmd *exec.Cmd, line string) {
	t.Helper()
	cmd = exec.Command("sh", "-c", script)
	cmd.Env = append(os.Environ(), env...)
	return cmd, start(t, cmd)
}

// start returns the first line that cmd prints, and kills it with the test.
func start(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	_, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	cmd.Stderr = os.Stderr
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { end(cmd) })
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	return strings.TrimSpace(line)
}

// end kills and collects cmd; to end it twice is harmless.
func end(cmd *exec.Cmd) {
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
}

func identified(t *testing.T, pid int) observe.Process {
	t.Helper()
	p, state := Identify(pid)
	require.Equal(t, observe.Running, state)
	require.NotZero(t, p.Ticks)
	return p
}

// becomesGone waits for the end of a process that somebody else collects.
func becomesGone(t *testing.T, p observe.Process) {
	t.Helper()
	require.Eventually(t, func() bool { return State(p) == observe.Gone }, patience, 2*time.Millisecond)
}

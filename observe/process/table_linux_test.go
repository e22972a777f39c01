// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/observe"
)

func TestStatIsReadWhateverTheCommandIsCalled(t *testing.T) {
	const rest = " S 7 1 1 0 -1 4194368 4697 78 0 0 48 3 0 0 20 0 3 0 69597 23674880 5257"
	for _, command := range []string{"sh", "tmux: server", "a) S 1 (b", ")", "", "((", "x y\tz\n"} {
		e, err := parseStat([]byte("42 (" + command + ")" + rest))
		require.NoError(t, err)
		require.Equal(t, entry{pid: 42, parent: 7, ticks: 69597, command: command}, e)
	}
}

func TestDetachedLeadsASessionWithoutATerminal(t *testing.T) {
	for session, want := range map[string]bool{"42 42 0": true, "42 42 34816": false, "7 7 0": false, "7 7 34816": false} {
		e, err := parseStat([]byte("42 (tmux: server) S 1 " + session + " -1 0 0 0 0 0 0 0 0 0 20 0 1 0 69597"))
		require.NoError(t, err)
		require.Equal(t, want, e.detached, session)
	}
}

func TestBrokenStatIsAnError(t *testing.T) {
	const whole = "42 (sh) S 7 1 1 0 -1 4194368 4697 78 0 0 48 3 0 0 20 0 3 0 69597"
	for name, text := range map[string]string{
		"empty":       "",
		"no command":  "42 S 7",
		"cut":         whole[:len(whole)-6],
		"no pid":      strings.Replace(whole, "42 ", "", 1),
		"long state":  strings.Replace(whole, " S ", " SS ", 1),
		"no parent":   strings.Replace(whole, " 7 ", " x ", 1),
		"no ticks":    strings.Replace(whole, "69597", "x", 1),
		"out of line": ")(" + whole[7:],
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parseStat([]byte(text))
			require.Error(t, err)
		})
	}
}

func TestEndedIsToldFromTheState(t *testing.T) {
	for _, state := range []byte("RSDTtIWKP") {
		require.False(t, hasEnded(state, 1), string(state))
	}
	for _, state := range []byte("ZXx") {
		require.True(t, hasEnded(state, 1), string(state))
	}
}

// A program whose first thread has ended looks like a zombie and runs on.
func TestProcessThatLostItsFirstThreadRuns(t *testing.T) {
	cmd := helper(t, losesFirstThread)
	p := observe.Process{PID: cmd.Process.Pid}
	require.Eventually(t, func() bool {
		stat, err := os.ReadFile(procPath(p.PID, "stat"))
		return err == nil && strings.Contains(string(stat), ") Z ")
	}, patience, time.Millisecond)
	p = identified(t, p.PID)
	require.Equal(t, observe.Running, State(p))
	w, err := newPidfdWatcher()
	require.NoError(t, err)
	defer w.Close()
	require.NoError(t, w.Watch(p, "threads"))
	require.NoError(t, cmd.Process.Kill())
	require.Equal(t, Notice{Process: p, Key: "threads"}, noticed(t, w))
	require.Equal(t, observe.Gone, State(p))
}

// A program may use the memory of its environment for its title: no evidence is left,
// and the process is no less alive.
func TestProcessThatOverwritesItsEnvironmentIsNoProvenClient(t *testing.T) {
	cmd := helper(t, "overwrites its environment", "MUXLET_SESSION=here")
	environment, err := os.ReadFile(procPath(cmd.Process.Pid, "environ"))
	require.NoError(t, err)
	require.NotContains(t, string(environment), "MUXLET_SESSION=here")
	_, err = MarkOf(cmd.Process.Pid)
	require.ErrorIs(t, err, ErrNoMark)
	identified(t, cmd.Process.Pid)
}

func TestProcessBetweenTwoProgramsIsNoEvidence(t *testing.T) {
	const again = `N=$((N+1)); export N; [ $N -ge 60 ] || exec sh -c "$AGAIN"; read x`
	cmd, _ := shell(t, `echo ready; exec sh -c "$AGAIN"`, "N=0", "AGAIN="+again)
	p := identified(t, cmd.Process.Pid)
	deadline := time.Now().Add(patience)
	// The last program was given what the one before it counted.
	for count := ""; count != "59"; {
		require.True(t, time.Now().Before(deadline), "it counts no further than %s", count)
		environment, err := environmentOf(p.PID)
		require.Equal(t, observe.Running, State(p))
		if err == nil {
			count, _ = variable(environment, "N")
			require.NotEmpty(t, count, "what is read is read whole")
		}
	}
}

// Without a process table nobody is seen; that proves no death of anybody who lives.
func TestProcessIsUnknownWithoutAProcessTable(t *testing.T) {
	living, dead := helper(t, "waits"), helper(t, "waits")
	end(dead)
	self, err := os.Executable()
	require.NoError(t, err)
	const hidden = `mount -t tmpfs none /proc || { echo refused; exit; }; exec "$0"`
	for pid, want := range map[int]string{living.Process.Pid: "Unknown", dead.Process.Pid: "Gone"} {
		cmd := exec.Command("unshare", "-m", "sh", "-c", hidden, self)
		cmd.Env = append(os.Environ(), helperVariable+"=judges", fmt.Sprintf("JUDGED=%d", pid))
		out, err := cmd.Output()
		if err != nil || strings.HasPrefix(string(out), "refused") {
			t.Skip("may not hide /proc from a process here")
		}
		require.Equal(t, want, strings.Fields(string(out))[0])
	}
}

// The mark of a client with a large environment is at its end.
func TestLargeEnvironmentIsReadWhole(t *testing.T) {
	env := make([]string, 0, 40)
	for i := range 40 {
		env = append(env, fmt.Sprintf("LARGE%d=%s", i, strings.Repeat("x", 10_000)))
	}
	cmd := helper(t, "waits", append(env, "LAST=here")...)
	environment, err := environmentOf(cmd.Process.Pid)
	require.NoError(t, err)
	last, _ := variable(environment, "LAST")
	require.Equal(t, "here", last)
}

func TestExecutableOfARunningProcessCanBeExecuted(t *testing.T) {
	cmd := helper(t, "waits")
	p := identified(t, cmd.Process.Pid)
	path := Executable(p)
	self, err := os.Executable()
	require.NoError(t, err)
	target, err := os.Readlink(path)
	require.NoError(t, err)
	require.Equal(t, self, target)
	end(cmd)
	require.Empty(t, Executable(p))
}

func TestKernelThreadsAreNotAmongOurPrograms(t *testing.T) {
	own, err := readOf(os.Geteuid())
	require.NoError(t, err)
	pids := map[int]bool{}
	for _, e := range own {
		require.False(t, e.kernel)
		pids[e.pid] = true
	}
	require.True(t, pids[os.Getpid()])
}

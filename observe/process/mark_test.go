// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"errors"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/observe"
)

// marked is a script that puts a mark of its own process into its environment, as
// launch does, and then executes what follows.
const marked = `t=$(cut -d' ' -f22 /proc/$$/stat)
export MUXLET_SESSION=shop MUXLET_CLIENT=$INSTANCE/uid-1/4/attempt-1/$$/$t
exec sh -c 'echo ready; `

// client starts a client of the instance, which goes on with a script.
func client(t *testing.T, instance, then string) *exec.Cmd {
	t.Helper()
	cmd, _ := shell(t, marked+then+"'", "INSTANCE="+instance)
	shown(t, cmd)
	return cmd
}

// shown waits until a process is not between two programs.
func shown(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	require.Eventually(t, func() bool {
		_, err := MarkOf(cmd.Process.Pid)
		return err == nil || errors.Is(err, ErrNoMark)
	}, patience, time.Millisecond)
}

func TestClientIsProvenByItsOwnMark(t *testing.T) {
	instance := uuid.NewString()
	cmd := client(t, instance, "exec sleep 1000")
	p := identified(t, cmd.Process.Pid)
	m, err := MarkOf(p.PID)
	require.NoError(t, err)
	require.Equal(t, observe.MarkedProcess{
		Mark:    observe.Mark{Instance: instance, UID: "uid-1", Attempt: "attempt-1", Incarnation: 4, Process: p},
		Session: "shop", Parent: os.Getpid(),
	}, m)
	found, err := Scan(instance)
	require.NoError(t, err)
	require.Equal(t, []observe.MarkedProcess{m}, found)
	found, err = Scan("")
	require.NoError(t, err)
	require.Contains(t, found, m)
	// I3, K3: another instance's clients are not seen.
	found, err = Scan(uuid.NewString())
	require.NoError(t, err)
	require.Empty(t, found)
	end(cmd)
	found, err = Scan(instance)
	require.NoError(t, err)
	require.Empty(t, found)
}

// Children inherit the text of a mark but not the match.
func TestChildOfAClientIsNoClient(t *testing.T) {
	instance := uuid.NewString()
	cmd := client(t, instance, "sleep 1000 & wait")
	p := identified(t, cmd.Process.Pid)
	require.Eventually(t, func() bool {
		below, err := Descendants(p)
		return err == nil && len(below) == 1
	}, patience, time.Millisecond)
	below, err := Descendants(p)
	require.NoError(t, err)
	_, err = MarkOf(below[0].PID)
	require.ErrorIs(t, err, ErrNoMark)
	found, err := Scan(instance)
	require.NoError(t, err)
	require.Len(t, found, 1)
	require.Equal(t, p, found[0].Process)
	require.NoError(t, syscall.Kill(below[0].PID, syscall.SIGKILL))
}

func TestProcessWithoutAMarkOfItsOwnIsNoClient(t *testing.T) {
	for name, text := range map[string]string{
		"no variable":   "",
		"malformed":     "MUXLET_CLIENT=rubbish",
		"other process": "MUXLET_CLIENT=i/u/1/a/1/1",
	} {
		t.Run(name, func(t *testing.T) {
			cmd := helper(t, "waits", text)
			_, err := MarkOf(cmd.Process.Pid)
			require.ErrorIs(t, err, ErrNoMark)
		})
	}
}

func TestZombieOfAClientIsNoClient(t *testing.T) {
	instance := uuid.NewString()
	cmd := client(t, instance, "exec sleep 1000")
	p := identified(t, cmd.Process.Pid)
	require.NoError(t, cmd.Process.Kill())
	becomesGone(t, p)
	_, err := MarkOf(p.PID)
	require.ErrorIs(t, err, ErrNoMark)
	found, err := Scan(instance)
	require.NoError(t, err)
	require.Empty(t, found)
}

func TestMarkOfAMissingProcessIsAnErrorOfItsOwn(t *testing.T) {
	cmd := helper(t, "waits")
	end(cmd)
	_, err := MarkOf(cmd.Process.Pid)
	require.Error(t, err)
	require.NotErrorIs(t, err, ErrNoMark)
}

// A client that executes itself again without the variable is no longer proven; one that
// only unsets it for its children still is.
func TestMarkIsThatOfTheLastExec(t *testing.T) {
	instance := uuid.NewString()
	cmd := client(t, instance, "unset MUXLET_CLIENT; read x; exec sleep 1000")
	_, err := MarkOf(cmd.Process.Pid)
	require.NoError(t, err)

	forgetful, _ := shell(t, `t=$(cut -d' ' -f22 /proc/$$/stat)
exec env MUXLET_CLIENT=i/u/1/a/$$/$t sh -c 'unset MUXLET_CLIENT; exec sh -c "echo ready; exec sleep 1000"'`)
	shown(t, forgetful)
	_, err = MarkOf(forgetful.Process.Pid)
	require.ErrorIs(t, err, ErrNoMark)
}

func TestOtherUsersProcessesAreNotScanned(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root to start a process of another uid")
	}
	instance := uuid.NewString()
	cmd := exec.Command("sh", "-c", marked+"exec sleep 1000'")
	cmd.Env = append(os.Environ(), "INSTANCE="+instance)
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	start(t, cmd)
	shown(t, cmd)
	_, err := MarkOf(cmd.Process.Pid)
	require.NoError(t, err, "root can read it")
	found, err := Scan(instance)
	require.NoError(t, err)
	require.Empty(t, found)
}

func TestTheEnvironmentIsThatOfTheProcessThatIsMeant(t *testing.T) {
	cmd := exec.Command("env", "-i", "A=1", "B=x=y\nz", "sh", "-c", "echo ready; read x")
	start(t, cmd)
	p := identified(t, cmd.Process.Pid)
	require.Eventually(t, func() bool {
		got, err := Environment(p)
		return err == nil && slices.Contains(got, "A=1") && slices.Contains(got, "B=x=y\nz")
	}, patience, time.Millisecond)
	_, err := Environment(observe.Process{PID: p.PID, Ticks: p.Ticks + 1})
	require.ErrorContains(t, err, "ended")
	end(cmd)
	_, err = Environment(p)
	require.Error(t, err)
}

func TestLastValueOfAVariableCounts(t *testing.T) {
	environment := [][]byte{[]byte("A=1"), []byte("AB=2"), []byte("A=3=4"), []byte("B")}
	value, found := variable(environment, "A")
	require.True(t, found)
	require.Equal(t, "3=4", value)
	_, found = variable(environment, "B")
	require.False(t, found)
}

func BenchmarkScan(b *testing.B) {
	for b.Loop() {
		if _, err := Scan("none"); err != nil {
			b.Fatal(err)
		}
	}
}

// Nothing tells it from a process between two programs: no evidence either way.
func TestProcessWithoutAnEnvironmentIsNoEvidence(t *testing.T) {
	cmd := exec.Command("env", "-i", "sh", "-c", "echo ready; exec env -i sleep 1000")
	start(t, cmd)
	require.Eventually(t, func() bool {
		e, err := readEntry(cmd.Process.Pid)
		return err == nil && e.command == "sleep"
	}, patience, time.Millisecond)
	_, err := MarkOf(cmd.Process.Pid)
	require.Error(t, err)
	require.NotErrorIs(t, err, ErrNoMark)
}

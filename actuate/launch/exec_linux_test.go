// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// signals are the masks that a process shows in /proc/PID/status.
func signals(status string) map[string]string {
	masks := map[string]string{}
	for line := range strings.Lines(status) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		if strings.HasPrefix(name, "Sig") || strings.HasPrefix(name, "Shd") {
			masks[name] = strings.TrimSpace(value)
		}
	}
	return masks
}

func TestSignalsThatTheShellIgnoresAreDefaultForTheClient(t *testing.T) {
	p := newPane(t, "/bin/cat", "/proc/self/status")
	p.before = []string{"/bin/sh", "-c", `trap "" HUP INT QUIT PIPE TERM TSTP TTIN TTOU USR1 CHLD; exec "$@"`, "sh"}
	require.Equal(t, 0, p.run(), p.stderr.String())
	masks := signals(p.stdout.String())
	assert.Equal(t, "0000000000000000", masks["SigIgn"])
	assert.Equal(t, "0000000000000000", masks["SigCgt"])
	assert.Equal(t, "0000000000000000", masks["SigBlk"])
}

func TestSignalsThatAreBlockedAtTheStartAreNotForTheClient(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	control := newPane(t)
	control.before = []string{self, "block", "/bin/cat", "/proc/self/status"}
	control.run()
	require.NotEqual(t, "0000000000000000", signals(control.stdout.String())["SigBlk"])

	p := newPane(t, "/bin/cat", "/proc/self/status")
	p.before = []string{self, "block"}
	require.Equal(t, 0, p.run(), p.stderr.String())
	assert.Equal(t, "0000000000000000", signals(p.stdout.String())["SigBlk"])
}

func init() { programs["block"] = blockMain }

// blockMain executes argv with some signals blocked.
func blockMain(argv []string) error {
	runtime.LockOSThread()
	blocked := unix.Sigset_t{}
	for _, sig := range []syscall.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM, syscall.SIGTSTP, syscall.SIGUSR1} {
		blocked.Val[0] |= 1 << (uint(sig) - 1)
	}
	if err := unix.PthreadSigmask(unix.SIG_BLOCK, &blocked, nil); err != nil {
		return err
	}
	return syscall.Exec(argv[0], argv, os.Environ())
}

func TestOnlyTheTerminalAndTheLeaseStayOpen(t *testing.T) {
	p := newPane(t, "/bin/sh", "-c", "ls -1 /proc/$$/fd; ulimit -Sn")
	p.before = []string{"/bin/sh", "-c", `exec 3</dev/null 5>/dev/null 9</dev/null; ulimit -Sn 256; exec "$@"`, "sh"}
	require.Equal(t, 0, p.run(), p.stderr.String())
	assert.Equal(t, []string{"0", "1", "2", "50", "256"}, strings.Fields(p.stdout.String()))
}

func init() { programs["powerless"] = powerlessMain }

// powerlessMain executes argv as a superuser whom permission bits bind.
func powerlessMain(argv []string) error {
	runtime.LockOSThread()
	for _, capability := range []uintptr{unix.CAP_DAC_OVERRIDE, unix.CAP_DAC_READ_SEARCH} {
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, capability, 0, 0, 0); err != nil {
			return err
		}
	}
	return syscall.Exec(argv[0], argv, os.Environ())
}

// A profile may have set limits that the lease's usual descriptor does not fit in.
func TestALowLimitOfOpenFilesIsNoObstacle(t *testing.T) {
	p := newPane(t, "/bin/sh", "-c", "ls -1 /proc/$$/fd; ulimit -Hn")
	p.before = []string{"/bin/sh", "-c", `ulimit -n 32; exec "$@"`, "sh"}
	require.Equal(t, 0, p.run(), p.stderr.String())
	words := strings.Fields(p.stdout.String())
	require.Len(t, words, 5)
	lease, err := strconv.Atoi(words[2])
	require.NoError(t, err)
	assert.Equal(t, []string{"0", "1", words[2], "2", "32"}, words)
	assert.GreaterOrEqual(t, lease, lowDescriptor)
}

// A profile may have closed what it was started with.
func TestClosedDescriptorsAreNotTakenForTheLease(t *testing.T) {
	p := newPane(t, "/bin/sh", "-c", `ls -1 /proc/$$/fd`)
	p.before = []string{"/bin/sh", "-c", `exec <&- 2>&-; exec "$@"`, "sh"}
	require.Equal(t, 0, p.run())
	assert.Equal(t, []string{"0", "1", "2", "50"}, strings.Fields(p.stdout.String()))
}

// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build systemd && linux

package sysdbox

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// holder makes this program boot a box and hold it.
const holder = "SYSDBOX_TEST_HOLDS"

func TestMain(m *testing.M) {
	Main()
	if os.Getenv(holder) != "" {
		fmt.Fprintln(os.Stderr, hold())
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// hold says the box's cgroup and the pid of its PID 1, and waits for its own end.
func hold() error {
	box, err := New(User{Name: "alice", UID: 2001, Linger: true})
	if err != nil {
		return err
	}
	if err := box.Boot(); err != nil {
		return err
	}
	_, _ = fmt.Fprintln(os.Stdout, box.cgroup.path, box.PID())
	select {}
}

func newBox(t *testing.T, users ...User) *Box {
	t.Helper()
	if err := Missing(); err != nil {
		if os.Getenv("CI") != "" {
			require.NoError(t, err)
		}
		t.Skip("no box can be booted here: " + err.Error())
	}
	box, err := New(users...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, box.Close()) })
	return box
}

func does(t *testing.T, box *Box, user string, argv ...string) string {
	t.Helper()
	out, err := box.Command(t.Context(), user, argv...).CombinedOutput()
	require.NoError(t, err, string(out))
	return strings.TrimSpace(string(out))
}

func TestABoxKeepsItsDiskOverBootsAndNothingElse(t *testing.T) {
	machine := map[string]string{}
	for _, path := range []string{"/proc/sys/kernel/random/boot_id", "/proc/sys/kernel/hostname", "/etc/passwd"} {
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		machine[path] = string(data)
	}
	box := newBox(t, User{Name: "alice", UID: 2001, Linger: true}, User{Name: "bob", UID: 2002})
	seen := map[string]bool{strings.TrimSpace(machine["/proc/sys/kernel/random/boot_id"]): true}
	for n, off := range []func() error{box.PowerCut, box.Poweroff, box.PowerCut} {
		require.NoError(t, box.Boot())
		id := does(t, box, "alice", "cat", "/proc/sys/kernel/random/boot_id")
		assert.Equal(t, box.BootID(), id)
		assert.False(t, seen[id], "a boot id of its own")
		seen[id] = true
		assert.Equal(t, strconv.Itoa(n), does(t, box, "alice", "sh", "-c", "test ! -e ~/kept || wc -l <~/kept; test -e ~/kept || echo 0; echo >>~/kept; test ! -e /tmp/x && touch /tmp/x"))
		assert.Equal(t, "running", does(t, box, "root", "systemctl", "is-system-running"))
		assert.Equal(t, "running", does(t, box, "alice", "systemctl", "--user", "is-system-running"))
		require.Error(t, box.Command(t.Context(), "bob", "systemctl", "--user", "is-system-running").Run(), "bob does not linger")
		assert.Equal(t, "session", does(t, box, "root", "runuser", "-l", "bob", "-c", "sed -n 's/.*\\(session\\)-.*/\\1/p' /proc/self/cgroup"))
		require.Error(t, box.Command(t.Context(), "root", "sh", "-c", "echo x >/proc/sys/kernel/hostname").Run(), "the machine's own settings")
		inside := processes(t, box)
		require.NotEmpty(t, inside)
		require.NoError(t, off())
		for _, pid := range inside {
			assert.False(t, alive(pid), "process %d outlives the box", pid)
		}
	}
	for path, before := range machine {
		after, err := os.ReadFile(path)
		require.NoError(t, err)
		assert.Equal(t, before, string(after), path)
	}
	require.NoError(t, box.Close())
	_, err := os.Stat(box.cgroup.path)
	assert.ErrorIs(t, err, os.ErrNotExist)
}

func TestABoxDiesWithTheProcessThatMadeIt(t *testing.T) {
	newBox(t)
	holding := exec.Command("/proc/self/exe")
	holding.Env = append(os.Environ(), holder+"=1")
	holding.Stderr = os.Stderr
	out, err := holding.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, holding.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	fields := strings.Fields(line)
	pid, err := strconv.Atoi(fields[1])
	require.NoError(t, err)
	require.True(t, alive(pid))
	// The next box takes away nothing of one that lives.
	newBox(t)
	require.DirExists(t, fields[0])
	require.NoError(t, holding.Process.Kill())
	_ = holding.Wait()
	require.Eventually(t, func() bool { return !alive(pid) }, 30*time.Second, 10*time.Millisecond)
	require.Eventually(t, func() bool {
		newBox(t)
		_, err := os.Stat(fields[0])
		return os.IsNotExist(err)
	}, 30*time.Second, 100*time.Millisecond, "the next box removes what is left")
}

// processes of the box, as this machine sees them.
func processes(t *testing.T, box *Box) []int {
	t.Helper()
	var all []int
	require.NoError(t, filepath.WalkDir(box.cgroup.path, func(path string, _ os.DirEntry, err error) error {
		if err != nil || filepath.Base(path) != "cgroup.procs" {
			return nil // a cgroup that vanished meanwhile
		}
		data, _ := os.ReadFile(path)
		for field := range strings.FieldsSeq(string(data)) {
			pid, err := strconv.Atoi(field)
			require.NoError(t, err)
			all = append(all, pid)
		}
		return nil
	}))
	return all
}

// alive says whether a process runs: a zombie does not.
func alive(pid int) bool {
	if unix.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(stat), ") Z ") && !strings.Contains(string(stat), ") X ")
}

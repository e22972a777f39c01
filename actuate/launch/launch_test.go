// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/actuate"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/observe/process"
	"github.com/muxlet/muxlet/spec"
)

func TestTheClientIsTheLaunchersProcessAndCarriesItsMark(t *testing.T) {
	p := newPane(t, "/bin/sh", "-c", "echo up; exec sleep 1000")
	client := p.start()
	p.eventually("the client runs", func() bool { return strings.Contains(p.cmdline(client.Process.Pid), "1000") })

	self, alive := process.Identify(client.Process.Pid)
	assert.Equal(t, observe.Running, alive)
	mark, err := process.MarkOf(client.Process.Pid)
	require.NoError(t, err)
	assert.Equal(t, observe.Mark{
		Instance: "1257", UID: testUID, Incarnation: 3, Attempt: testAttempt, Process: self,
	}, mark.Mark)
	assert.Equal(t, "shop", mark.Session)
	r := p.receipt()
	assert.Equal(t, observe.StageExec, r.Stage)
	assert.Equal(t, self, r.Process)
	assert.Equal(t, testAttempt, r.Attempt)
	assert.Empty(t, r.Reason)
	assert.WithinDuration(t, time.Now(), r.At, time.Minute)
}

func TestTheClientHoldsTheLeaseAndItsChildrenDoNot(t *testing.T) {
	p := newPane(t, "/bin/sh", "-c", "sleep 1000 & echo $!; wait")
	client := p.start()
	lease := LeasePath(p.runtime, testUID)
	p.eventually("the client has a child", func() bool { return len(p.children(client.Process.Pid)) == 1 })
	child := p.children(client.Process.Pid)[0]
	t.Cleanup(func() { _ = syscall.Kill(child.PID, syscall.SIGKILL) })
	assert.Equal(t, observe.Lease{State: observe.Running, Holder: client.Process.Pid}, process.LeaseOf(lease))

	require.NoError(t, client.Process.Kill())
	p.eventually("the lease is free", func() bool { return process.LeaseOf(lease).State == observe.Gone })
	assert.Equal(t, observe.Running, process.State(child), "the child inherits the file but not the lock")
}

func TestALauncherThatWaitedForTheLeaseExecutesNothingOnceItsFenceIsClosed(t *testing.T) {
	p := newPane(t, "/bin/echo", "ran")
	unlock := p.holdLease()
	launcher := p.start()
	p.eventually("the launcher has begun", func() bool { return exists(filepath.Join(p.runtime, "begun")) })
	p.stored.Fence = actuate.FenceClosed
	p.store()
	unlock()

	err := launcher.Wait()
	require.Error(t, err)
	assert.Empty(t, p.stdout.String())
	assert.Contains(t, p.stderr.String(), "it was given up")
	p.noReceipt()
}

func TestALeaseThatStaysHeldIsAReceiptThatNamesTheHolder(t *testing.T) {
	p := newPane(t, "/bin/echo", "ran")
	p.holdLease()
	begun := time.Now()
	r := p.refused(spec.ReasonLeaseHeld)
	assert.GreaterOrEqual(t, time.Since(begun), leaseWait)
	assert.Contains(t, r.Message, "pid ")
}

func TestALeaseHeldByAClientOfTheSameAttemptLeavesItsReceiptAlone(t *testing.T) {
	p := newPane(t, "/bin/sleep", "1000")
	p.start()
	p.eventually("the client runs", func() bool { return exists(ReceiptPath(p.state, testAttempt)) })
	first := p.receipt()

	again := newPane(t, "/bin/echo", "ran")
	again.state, again.runtime = p.state, p.runtime
	assert.Equal(t, 1, again.run())
	assert.Contains(t, again.stderr.String(), "another client of the session still runs")
	assert.Equal(t, first, p.receipt())
}

func TestAnAttemptIsExecutedOnce(t *testing.T) {
	p := newPane(t, "/bin/echo", "ran")
	require.Equal(t, 0, p.run())
	require.Equal(t, "ran\n", p.stdout.String())
	first := p.receipt()

	assert.Equal(t, 1, p.run())
	assert.Empty(t, p.stdout.String())
	assert.Contains(t, p.stderr.String(), "it was executed before")
	assert.Equal(t, first, p.receipt())
}

func TestNothingIsExecutedUnlessTheAttemptIsProvenToBePending(t *testing.T) {
	for name, change := range map[string]func(*stored){
		"another attempt":     func(s *stored) { s.Order.Attempt = "b" },
		"another session":     func(s *stored) { s.Order.UID = "b" },
		"no order":            func(s *stored) { s.Order = actuate.Order{} },
		"no program":          func(s *stored) { s.Order.Command = nil },
		"fence closed":        func(s *stored) { s.Fence = actuate.FenceClosed },
		"fence unknown":       func(s *stored) { s.Fence = actuate.FenceUnknown },
		"a record unreadable": func(s *stored) { s.Error = "checksum differs" },
	} {
		t.Run(name, func(t *testing.T) {
			p := newPane(t, "/bin/echo", "ran")
			change(&p.stored)
			assert.Equal(t, 1, p.run())
			assert.Empty(t, p.stdout.String())
			assert.Contains(t, p.stderr.String(), "Attempt "+testAttempt+" was not executed")
			p.noReceipt()
		})
	}
}

func TestTheArgumentsFollowTheCommandAndOneOfThemMayBeTheProgram(t *testing.T) {
	p := newPane(t, "/bin/echo", "$(HOME)")
	p.stored.Order.Args = []string{"$$", "$(HOME)"}
	require.Equal(t, 0, p.run())
	assert.Equal(t, "$(HOME) $$ $(HOME)\n", p.stdout.String(), "without a class nothing is expanded")

	p = newPane(t)
	p.stored.Order.Args = []string{"/bin/echo", "ran"}
	require.Equal(t, 0, p.run())
	assert.Equal(t, "ran\n", p.stdout.String())
}

func TestNamesThatAreNoFileNamesAreRefusedBeforeAnythingIsTouched(t *testing.T) {
	for _, bad := range []string{"", "..", "a/b", "../../etc/passwd", "-x", "a b"} {
		dir := t.TempDir()
		require.Error(t, Run(Options{StateDir: dir, RuntimeDir: dir, UID: bad, Attempt: testAttempt}))
		require.Error(t, Run(Options{StateDir: dir, RuntimeDir: dir, UID: testUID, Attempt: bad}))
		_, err := ReadReceipt(dir, bad)
		require.Error(t, err)
		require.NotErrorIs(t, err, fs.ErrNotExist)
		entries, err := os.ReadDir(dir)
		require.NoError(t, err)
		assert.Empty(t, entries)
	}
}

// B10, E7: the receipt names the fix.
func TestAWorkspaceThatCannotBeEnteredIsAReceipt(t *testing.T) {
	p := newPane(t, "/bin/echo", "ran")
	missing := filepath.Join(p.work, "gone")
	p.stored.Order.Directory = missing
	r := p.refused(spec.ReasonWorkspaceMissing)
	assert.Contains(t, r.Message, missing)
	assert.Contains(t, r.Message, "DirectoryOrCreate")

	p = newPane(t, "/bin/echo", "ran")
	p.stored.Order.Directory = filepath.Join(p.state, "order")
	p.refused(spec.ReasonWorkspaceNotDirectory)

	p = newPane(t, "/bin/echo", "ran")
	loop := filepath.Join(p.work, "loop")
	require.NoError(t, os.Symlink(loop, loop))
	p.stored.Order.Directory = loop
	p.refused(spec.ReasonWorkspaceInaccessible)
}

func TestAReceiptThatCannotBeWrittenMeansThatNothingIsExecuted(t *testing.T) {
	p := newPane(t, "/bin/echo", "ran")
	require.NoError(t, os.WriteFile(filepath.Join(p.state, "receipts"), nil, 0o600))
	assert.Equal(t, 1, p.run())
	assert.Empty(t, p.stdout.String())
	assert.NotEmpty(t, p.stderr.String())
}

func TestTheDirectoryOfReceiptsIsMadeForItsOwnerAlone(t *testing.T) {
	p := newPane(t, "/bin/echo", "ran")
	require.Equal(t, 0, p.run())
	info, err := os.Stat(filepath.Join(p.state, "receipts"))
	require.NoError(t, err)
	assert.Equal(t, fs.FileMode(0o700), info.Mode().Perm())
	info, err = os.Stat(ReceiptPath(p.state, testAttempt))
	require.NoError(t, err)
	assert.Equal(t, fs.FileMode(0o600), info.Mode().Perm())
}

func TestAReceiptThatWasAccountedForIsForgotten(t *testing.T) {
	p := newPane(t, "/bin/echo", "ran")
	require.Equal(t, 0, p.run())
	receipts := Receipts{StateDir: p.state}
	r, err := receipts.Read(testAttempt)
	require.NoError(t, err)
	assert.Equal(t, p.receipt(), r)
	receipts.Forget(testAttempt)
	receipts.Forget(testAttempt)
	receipts.Forget("../order")
	p.noReceipt()
	assert.FileExists(t, filepath.Join(p.state, "order"))
}

func TestADamagedReceiptIsNotAMissingOne(t *testing.T) {
	p := newPane(t, "/bin/echo", "ran")
	require.NoError(t, os.Mkdir(filepath.Join(p.state, "receipts"), 0o700))
	require.NoError(t, os.WriteFile(ReceiptPath(p.state, testAttempt), []byte("{"), 0o600))
	_, err := ReadReceipt(p.state, testAttempt)
	require.Error(t, err)
	require.NotErrorIs(t, err, fs.ErrNotExist)

	assert.Equal(t, 1, p.run(), "whether the attempt ran before is not known")
	assert.Empty(t, p.stdout.String())
}

func TestAnExecThatReturnsOverwritesTheReceipt(t *testing.T) {
	p := newPane(t)
	p.stored.Order.Command = []string{"/bin/true"}
	o := Options{
		StateDir: p.state, RuntimeDir: p.runtime, UID: testUID, Attempt: testAttempt, Now: time.Now,
		ReadOrder: func(uid string) (actuate.Order, actuate.Fence, error) {
			assert.Equal(t, testUID, uid)
			assert.True(t, exists(LeasePath(p.runtime, testUID)), "the lease comes first")
			return p.stored.Order, actuate.FenceOpen, nil
		},
		Exec: func(path string, argv, _ []string) error {
			assert.Equal(t, "/bin/true", path)
			assert.Equal(t, p.stored.Order.Command, argv)
			assert.Equal(t, observe.StageExec, p.receipt().Stage, "the receipt is there before the client is")
			return syscall.E2BIG
		},
	}
	t.Chdir(p.work)
	err := Run(o)
	require.ErrorContains(t, err, "arguments and environment are larger")
	r := p.receipt()
	assert.Equal(t, observe.StageFailed, r.Stage)
	assert.Equal(t, spec.ReasonExecFailed, r.Reason)
}

// holdLease locks the lease in this process, which is not the launcher's.
func (p *pane) holdLease() (unlock func()) {
	p.t.Helper()
	path := LeasePath(p.runtime, testUID)
	require.NoError(p.t, os.MkdirAll(filepath.Dir(path), 0o700))
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	require.NoError(p.t, err)
	require.NoError(p.t, syscall.FcntlFlock(file.Fd(), syscall.F_SETLK,
		&syscall.Flock_t{Type: syscall.F_WRLCK, Whence: io.SeekStart}))
	p.t.Cleanup(func() { _ = file.Close() })
	return func() { assert.NoError(p.t, file.Close()) }
}

func (p *pane) noReceipt() {
	p.t.Helper()
	_, err := ReadReceipt(p.state, testAttempt)
	assert.ErrorIs(p.t, err, fs.ErrNotExist)
}

func (p *pane) cmdline(pid int) string {
	p.t.Helper()
	data, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
	if errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	require.NoError(p.t, err)
	return string(data)
}

func (p *pane) children(pid int) []observe.Process {
	p.t.Helper()
	self, _ := process.Identify(pid)
	children, err := process.Descendants(self)
	require.NoError(p.t, err)
	return children
}

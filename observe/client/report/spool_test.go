// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec/durable"
)

// at is a report of the nth second.
func at(n int, kind observe.ReportKind) observe.Report {
	return observe.Report{
		ID: fmt.Sprintf("r%d", n), Class: "claude", Kind: kind, Event: "Stop", Conversation: fmt.Sprintf("id-%d", n),
		At: time.Unix(1_800_000_000+int64(n), 0).UTC(), Mark: observe.Mark{Instance: "i", UID: "u", Incarnation: 1, Attempt: theAttempt},
		Chain: []observe.Ancestor{{Process: observe.Process{PID: 4, Ticks: 5}, Executable: "/bin/sh"}},
	}
}

func keep(t *testing.T, dir string, reports ...observe.Report) {
	t.Helper()
	for _, r := range reports {
		require.NoError(t, Spool(dir, r, time.Now().Add(patience)))
	}
}

func conversations(t *testing.T, dir string) []string {
	t.Helper()
	spooled, err := ReadSpool(dir)
	require.NoError(t, err)
	ids := make([]string, len(spooled))
	for i, s := range spooled {
		ids[i] = s.Conversation
	}
	return ids
}

func TestASpooledReportIsReadAsItWas(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	keep(t, dir, at(1, observe.ReportDone))
	spooled, err := ReadSpool(dir)
	require.NoError(t, err)
	require.Len(t, spooled, 1)
	assert.Equal(t, at(1, observe.ReportDone), spooled[0].Report)
	info, err := os.Stat(spooled[0].Path)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode())
	require.NoError(t, spooled[0].Remove())
	require.NoError(t, spooled[0].Remove(), "once more is no fault")
	assert.Empty(t, conversations(t, dir))
}

func TestTheSpoolIsReadInTheOrderOfTheReports(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	keep(t, dir, at(30, observe.ReportDone), at(2, observe.ReportWorking), at(10, observe.ReportStarted), at(-1_700_000_000, observe.ReportEnded))
	assert.Equal(t, []string{"id--1700000000", "id-2", "id-10", "id-30"}, conversations(t, dir))
}

func TestReportsThatAreSpooledAtTheSameTimeAreAllThere(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var wg sync.WaitGroup
	for n := range 200 {
		wg.Go(func() { assert.NoError(t, Spool(dir, at(n, observe.ReportWorking), time.Now().Add(patience))) })
	}
	wg.Wait()
	ids := conversations(t, dir)
	require.Len(t, ids, 200)
	assert.Equal(t, "id-0", ids[0])
	assert.Equal(t, "id-199", ids[199])
}

func TestAMissingSpoolIsEmpty(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "none")
	assert.Empty(t, conversations(t, dir))
	require.Error(t, Spool(dir, at(1, observe.ReportDone), time.Now().Add(patience)), "a hook makes no state directory")
	assert.NoDirExists(t, dir)
}

// The newest report of a client names its conversation.
func TestAFullSpoolLosesTheOldestActivityFirst(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, SetSpoolLimit(dir, 4*spoolCharge))
	keep(t, dir, at(1, observe.ReportStarted), at(2, observe.ReportWorking), at(3, observe.ReportWorking), at(4, observe.ReportDone))
	keep(t, dir, at(5, observe.ReportPrompted))
	assert.Equal(t, []string{"id-1", "id-3", "id-4", "id-5"}, conversations(t, dir))
	keep(t, dir, at(6, observe.ReportWorking))
	assert.Equal(t, []string{"id-1", "id-4", "id-5", "id-6"}, conversations(t, dir))
	keep(t, dir, at(7, observe.ReportDone), at(8, observe.ReportDone))
	assert.Equal(t, []string{"id-4", "id-5", "id-7", "id-8"}, conversations(t, dir), "and then the oldest of all")
	require.NoError(t, SetSpoolLimit(dir, 2*spoolCharge))
	keep(t, dir, at(9, observe.ReportDone))
	assert.Equal(t, []string{"id-8", "id-9"}, conversations(t, dir), "a lower limit holds from the next report on")
	require.NoError(t, SetSpoolLimit(dir, 1))
	keep(t, dir, at(10, observe.ReportDone))
	assert.Equal(t, []string{"id-10"}, conversations(t, dir), "one is always kept")
}

// What a file takes counts, not how many there are: paths may be long.
func TestLongReportsTakeMoreOfTheSpool(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, SetSpoolLimit(dir, 10*spoolCharge))
	for n := range 20 {
		long := at(n+1, observe.ReportDone)
		long.Transcript = "/" + strings.Repeat("\x01", maxPath-1)
		keep(t, dir, long)
		size := int64(0)
		files, err := filepath.Glob(filepath.Join(dir, "*.json"))
		require.NoError(t, err)
		for _, file := range files {
			info, err := os.Stat(file)
			require.NoError(t, err)
			assert.LessOrEqual(t, info.Size(), int64(longestReport))
			size += info.Size()
		}
		require.LessOrEqual(t, size, int64(10*spoolCharge))
		require.NotEmpty(t, files)
	}
	keep(t, dir, at(21, observe.ReportDone), at(22, observe.ReportDone), at(23, observe.ReportDone))
	left, err := filepath.Glob(filepath.Join(dir, "*.json"))
	require.NoError(t, err)
	assert.Len(t, left, 4, "three short ones beside a long one")
}

func TestALimitThatCannotBeReadIsTheDefault(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	assert.Equal(t, DefaultSpoolLimit, limitOf(dir))
	require.NoError(t, SetSpoolLimit(dir, 8192))
	assert.Equal(t, 8192, limitOf(dir))
	before, err := os.Stat(filepath.Join(dir, limitFile))
	require.NoError(t, err)
	require.NoError(t, SetSpoolLimit(dir, 8192))
	after, err := os.Stat(filepath.Join(dir, limitFile))
	require.NoError(t, err)
	assert.True(t, os.SameFile(before, after), "the same limit writes nothing")
	for _, text := range []string{"", "much", "-1"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, limitFile), []byte(text), 0o600))
		assert.Equal(t, DefaultSpoolLimit, limitOf(dir), text)
	}
	require.Error(t, SetSpoolLimit(filepath.Join(dir, "none"), 1))
}

func TestADamagedReportIsSetAsideAndTheOthersAreRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	keep(t, dir, at(1, observe.ReportDone), at(2, observe.ReportDone), at(3, observe.ReportDone))
	damaged := filepath.Join(dir, spoolName(at(2, observe.ReportDone)))
	text, err := os.ReadFile(damaged)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(damaged, text[:len(text)/2], 0o600))
	odd := at(4, observe.ReportDone)
	odd.Conversation = "../secret"
	data, err := durable.Encode(version, odd)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, spoolName(odd)), data, 0o600))

	spooled, err := ReadSpool(dir)
	require.ErrorIs(t, err, durable.ErrCorrupt)
	require.ErrorContains(t, err, filepath.Base(damaged))
	require.ErrorContains(t, err, filepath.Base(spoolName(odd)))
	assert.NotContains(t, err.Error(), "secret", "an error does not say what is in it")
	require.Len(t, spooled, 2)
	assert.NoFileExists(t, damaged)
	assert.FileExists(t, damaged+damagedSuffix)
	assert.Equal(t, []string{"id-1", "id-3"}, conversations(t, dir), "it is told once")

	require.NoError(t, SetSpoolLimit(dir, 3*spoolCharge))
	keep(t, dir, at(5, observe.ReportWorking))
	assert.NoFileExists(t, damaged+damagedSuffix, "it is the first to make room")
	assert.Equal(t, []string{"id-1", "id-3", "id-5"}, conversations(t, dir))
}

func TestAReportOfANewerVersionIsLeftAlone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	newer, err := durable.Encode(version+1, map[string]string{"id": "1"})
	require.NoError(t, err)
	path := filepath.Join(dir, spoolName(at(1, observe.ReportDone)))
	require.NoError(t, os.WriteFile(path, newer, 0o600))
	for range 2 {
		_, err = ReadSpool(dir)
		require.ErrorIs(t, err, durable.ErrNewer)
		assert.FileExists(t, path)
	}
}

func TestWhatAKilledHookLeftIsSweptLater(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	temporary := filepath.Join(dir, durable.TempPrefix+"x")
	require.NoError(t, os.WriteFile(temporary, nil, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "notes.txt"), []byte("mine"), 0o600))
	assert.Empty(t, conversations(t, dir))
	assert.FileExists(t, temporary, "its hook may still run")
	old := time.Now().Add(-2 * sweepAfter)
	require.NoError(t, os.Chtimes(temporary, old, old))
	assert.Empty(t, conversations(t, dir))
	assert.NoFileExists(t, temporary)
	assert.FileExists(t, filepath.Join(dir, "notes.txt"))
}

// A disk that takes its time: the file is there before the hook has to end.
func TestASyncIsNotWaitedForBeyondTheDeadline(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, Spool(dir, at(1, observe.ReportDone), time.Now().Add(-time.Second)))
	assert.Equal(t, []string{"id-1"}, conversations(t, dir))
	hang := make(chan struct{})
	defer close(hang)
	require.NoError(t, until(time.Now().Add(time.Millisecond), func() error { <-hang; return os.ErrInvalid }))
	require.ErrorIs(t, until(time.Now().Add(patience), func() error { return os.ErrInvalid }), os.ErrInvalid)
}

func TestWhatCannotBeSpooledLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := at(1, observe.ReportDone)
	require.NoError(t, os.MkdirAll(filepath.Join(dir, spoolName(r), "in the way"), 0o700))
	require.Error(t, Spool(dir, r, time.Now().Add(patience)))
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 1)
	assert.False(t, strings.HasPrefix(entries[0].Name(), durable.TempPrefix))
}

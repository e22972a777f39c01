// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clocktesting "k8s.io/utils/clock/testing"
)

// writing is a directory that is read by one Reader while somebody writes, with a
// clock that the test moves.
type writing struct {
	t      *testing.T
	dir    string
	path   string
	reader Reader
	clock  *clocktesting.FakePassiveClock
	state  State
	set    DesiredSet
}

func newWriting(t *testing.T) *writing {
	w := &writing{t: t, dir: t.TempDir(), clock: clocktesting.NewFakePassiveClock(time.Now())}
	w.path, w.reader.Clock = filepath.Join(w.dir, "a.yaml"), w.clock
	return w
}

// after a time, reads and resolves.
func (w *writing) after(d time.Duration) Reading {
	w.t.Helper()
	w.clock.SetTime(w.clock.Now().Add(d))
	r := w.reader.Read([]string{w.dir})
	w.set, w.state = Resolve(w.state, r, nil, w.clock.Now(), Policy{Settle: 3 * time.Second, GuardMin: 3, GuardPercent: 50})
	return r
}

// is what the session wants now.
func (w *writing) is(want string, presence Presence) {
	w.t.Helper()
	d := w.set.Sessions["a"]
	require.Equal(w.t, presence, d.Presence, d.Message)
	assert.Equal(w.t, want, marker(d))
}

func (w *writing) open(flag int) *os.File {
	w.t.Helper()
	f, err := os.OpenFile(w.path, flag, 0o644)
	require.NoError(w.t, err)
	w.t.Cleanup(func() { _ = f.Close() })
	return f
}

func put(t *testing.T, f *os.File, text string) {
	t.Helper()
	_, err := f.WriteString(text)
	require.NoError(t, err)
}

func needsWriterDetection(t *testing.T) {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "probe"))
	require.NoError(t, err)
	defer func() { _ = f.Close() }()
	if !hasWriter(f) {
		t.Skip("this system does not tell who writes")
	}
}

// P1, second half: an editor that writes in place, however slowly.
func TestAFileThatIsBeingWrittenKeepsItsLastVersion(t *testing.T) {
	needsWriterDetection(t)
	w := newWriting(t)
	write(t, w.path, yamlOf("a", "1"))
	w.after(0)
	w.is("1", Present)
	f := w.open(os.O_WRONLY | os.O_TRUNC)
	for piece := range strings.SplitAfterSeq(yamlOf("a", "2")+"  restartPolicy: Never\n", "\n") {
		r := w.after(writerPatience - time.Second)
		assert.True(t, r.Unfinished)
		assert.Empty(t, w.set.Problems)
		w.is("1", Present)
		put(t, f, piece)
	}
	require.NoError(t, f.Close())
	assert.False(t, w.after(0).Unfinished)
	w.is("2", Present)
}

// vim moves the old file away and writes another one in its place.
func TestAFileThatIsWrittenAnewInItsPlaceKeepsItsSession(t *testing.T) {
	needsWriterDetection(t)
	w := newWriting(t)
	write(t, w.path, yamlOf("a", "1"))
	write(t, filepath.Join(w.dir, "other.yaml"), yamlOf("other", "1"))
	w.after(0)
	require.NoError(t, os.Rename(w.path, w.path+"~"))
	w.after(time.Second)
	w.is("1", Settling)
	f := w.open(os.O_WRONLY | os.O_CREATE | os.O_EXCL)
	for range 5 {
		w.after(time.Second)
		w.is("1", Settling)
		assert.Empty(t, w.set.Problems)
	}
	put(t, f, yamlOf("a", "2"))
	require.NoError(t, f.Close())
	w.after(0)
	w.is("2", Present)
}

// What was deleted does not come back by another file that takes its name.
func TestADeletedFileIsNotTakenForTheOneThatIsWritten(t *testing.T) {
	needsWriterDetection(t)
	w := newWriting(t)
	write(t, w.path, yamlOf("a", "1"))
	write(t, filepath.Join(w.dir, "other.yaml"), yamlOf("other", "1"))
	w.after(0)
	require.NoError(t, os.Remove(w.path))
	w.after(0)
	w.after(4 * time.Second)
	w.is("1", Removed)
	f := w.open(os.O_WRONLY | os.O_CREATE)
	w.after(time.Second)
	assert.NotContains(t, w.set.Sessions, "a")
	put(t, f, yamlOf("b", "1"))
	require.NoError(t, f.Close())
	w.after(0)
	assert.Equal(t, Present, w.set.Sessions["b"].Presence)
}

func TestANewFileIsReadOnceItIsWritten(t *testing.T) {
	needsWriterDetection(t)
	w := newWriting(t)
	f := w.open(os.O_WRONLY | os.O_CREATE)
	put(t, f, yamlOf("a", "1"))
	r := w.after(0)
	assert.True(t, r.Unfinished)
	assert.Equal(t, 1, r.Roots[0].Documents, "it is no empty directory")
	assert.Empty(t, w.set.Sessions)
	assert.Empty(t, w.set.Problems, "it is nobody's mistake")
	require.NoError(t, f.Close())
	w.after(0)
	w.is("1", Present)
}

// A daemon that starts while a file is being written knows its session from the
// record alone.
func TestTheSettleTimeBeginsWhenTheWritingIsOver(t *testing.T) {
	needsWriterDetection(t)
	w := newWriting(t)
	f := w.open(os.O_WRONLY | os.O_CREATE)
	known := []Known{{Name: "a", LastGood: goodOf(t, "a", "1"), File: w.path}}
	policy := Policy{Settle: 3 * time.Second, GuardMin: 1, GuardPercent: 1}
	var state State
	var set DesiredSet
	look := func(d time.Duration) Desired {
		w.clock.SetTime(w.clock.Now().Add(d))
		set, state = Resolve(state, w.reader.Read([]string{w.dir}), known, w.clock.Now(), policy)
		return set.Sessions["a"]
	}
	for range 3 {
		d := look(writerPatience / 2)
		assert.Equal(t, Settling, d.Presence, d.Message)
		put(t, f, "#\n")
	}
	require.NoError(t, f.Close())
	policy.GuardMin = 9
	write(t, filepath.Join(w.dir, "other.yaml"), yamlOf("other", "1"))
	assert.Equal(t, Settling, look(0).Presence)
	assert.Equal(t, Settling, look(2*time.Second).Presence)
	assert.Equal(t, Removed, look(2*time.Second).Presence)
}

// A program may keep a file open for ever.
func TestAWriterThatRestsIsNotWaitedForForEver(t *testing.T) {
	needsWriterDetection(t)
	w := newWriting(t)
	f := w.open(os.O_WRONLY | os.O_CREATE)
	put(t, f, yamlOf("a", "1"))
	w.after(0)
	assert.Empty(t, w.set.Sessions)
	assert.False(t, w.after(writerPatience).Unfinished)
	w.is("1", Present)
}

// A script that opens the file for each piece.
func TestAFileThatIsCutShortInPlaceKeepsItsLastVersionForAMoment(t *testing.T) {
	w := newWriting(t)
	whole := yamlOf("a", "1") + "  restartPolicy: Never\n"
	write(t, w.path, whole)
	w.after(0)
	require.NoError(t, os.Truncate(w.path, 0))
	for line := range strings.Lines(whole) {
		r := w.after(cutPatience - time.Millisecond)
		assert.True(t, r.Unfinished)
		w.is("1", Present)
		assert.Equal(t, "Never", string(w.set.Sessions["a"].Session.Spec.RestartPolicy))
		f := w.open(os.O_WRONLY | os.O_APPEND)
		put(t, f, line)
		require.NoError(t, f.Close())
	}
	assert.False(t, w.after(0).Unfinished)
	assert.Equal(t, "Never", string(w.set.Sessions["a"].Session.Spec.RestartPolicy))

	require.NoError(t, os.Truncate(w.path, int64(len(yamlOf("a", "1")))))
	w.after(0)
	assert.Equal(t, "Never", string(w.set.Sessions["a"].Session.Spec.RestartPolicy))
	w.after(cutPatience)
	assert.Equal(t, "Always", string(w.set.Sessions["a"].Session.Spec.RestartPolicy), "a person may delete the last line")

	require.NoError(t, os.Truncate(w.path, 0))
	w.after(0)
	w.is("1", Present)
	w.after(cutPatience)
	w.is("1", Held)
}

// An edit of the middle is no cut, and one that replaces the file is whole.
func TestAnEditIsNotWaitedFor(t *testing.T) {
	w := newWriting(t)
	write(t, w.path, yamlOf("a", "1")+"  restartPolicy: Never\n")
	w.after(0)
	write(t, w.path, yamlOf("a", "2"))
	assert.False(t, w.after(0).Unfinished)
	w.is("2", Present)
	write(t, w.path, yamlOf("a", "2")+"  restartPolicy: Never\n")
	w.after(0)
	replaceFile(t, w.path, yamlOf("a", "2"))
	assert.False(t, w.after(0).Unfinished)
	assert.Equal(t, "Always", string(w.set.Sessions["a"].Session.Spec.RestartPolicy))
	write(t, w.path, strings.TrimSuffix(yamlOf("a", "2"), "\n"))
	assert.False(t, w.after(0).Unfinished, "white space is nothing to wait for")
}

// Same-second edits: the stamp of a file that was just written proves nothing, so
// that it is read again; what is the same is not parsed again.
func TestAFileThatIsWrittenWithoutAChangeGivesTheSameSession(t *testing.T) {
	w := newWriting(t)
	write(t, w.path, yamlOf("a", "1"))
	first := w.after(0)
	session := w.set.Sessions["a"].Session
	for _, again := range []func(){
		func() {},
		func() { write(t, w.path, yamlOf("a", "1")) },
		func() { replaceFile(t, w.path, yamlOf("a", "1")) },
	} {
		again()
		r := w.after(0)
		assert.Same(t, first.Files[0].Items[0].Session, r.Files[0].Items[0].Session)
		assert.Same(t, session, w.set.Sessions["a"].Session)
	}
	write(t, w.path, "# a comment\n"+yamlOf("a", "1"))
	w.after(0)
	assert.Same(t, session, w.set.Sessions["a"].Session, "a comment changes nothing")
	assert.Equal(t, 2, w.set.Sessions["a"].Line)
	write(t, w.path, "# a comment\n"+yamlOf("a", "2"))
	w.after(0)
	w.is("2", Present)
}

func TestOfManyFilesOnlyTheChangedOneIsReadAgain(t *testing.T) {
	w := newWriting(t)
	const many = 1000
	for i := range many {
		write(t, filepath.Join(w.dir, strings.Repeat("x", i%7)+string(rune('a'+i%26)), "f"+strings.Repeat("y", i/182)+".yaml"), yamlOf("a", "1"))
	}
	opened := map[string]int{}
	w.reader.open = func(path string) (*os.File, error) {
		opened[path]++
		return openManifest(path)
	}
	w.clock.SetTime(time.Now().Add(time.Hour))
	first := w.reader.Read([]string{w.dir})
	assert.Len(t, opened, len(first.Files))
	clear(opened)
	changed := first.Files[len(first.Files)/2].Path
	write(t, changed, yamlOf("b", "1"))
	second := w.reader.Read([]string{w.dir})
	assert.Equal(t, map[string]int{changed: 1}, opened)
	for i := range first.Files {
		if first.Files[i].Path != changed {
			assert.Same(t, first.Files[i].Items[0].Session, second.Files[i].Items[0].Session)
		}
	}
	clear(opened)
	w.reader.Read([]string{w.dir})
	assert.Empty(t, opened, "at rest nothing is opened")
}

// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// follower reads at each hint, as a daemon does, and has the last reading.
type follower struct {
	t       *testing.T
	watcher *Watcher
	roots   []string
	mu      sync.Mutex
	last    Reading
}

func follow(t *testing.T, roots ...string) *follower {
	f := &follower{t: t, watcher: NewWatcher(logr.Discard()), roots: roots}
	f.read()
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-f.watcher.Hints():
				f.read()
			case <-stop:
				return
			}
		}
	}()
	t.Cleanup(func() {
		close(stop)
		<-done
		assert.NoError(t, f.watcher.Close())
	})
	return f
}

func (f *follower) read() {
	r := Read(f.roots)
	f.watcher.Sync(r)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.last = r
}

// sees waits until a reading that was hinted at has the marker for the session.
func (f *follower) sees(name, want string) {
	f.t.Helper()
	require.Eventually(f.t, func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		places := indexOf(f.last).places[name]
		if len(places) == 0 {
			return want == ""
		}
		s := places[0].doc.Session
		return s != nil && s.Labels["marker"] == want
	}, 20*time.Second, 5*time.Millisecond, "%s never became %q", name, want)
}

func replaceFile(t *testing.T, path, content string) {
	t.Helper()
	next := filepath.Join(filepath.Dir(path), ".next")
	require.NoError(t, os.WriteFile(next, []byte(content), 0o644))
	require.NoError(t, os.Rename(next, path))
}

func TestEveryWayToWriteAFileIsNoticed(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.yaml")
	f := follow(t, dir)
	write(t, path, yamlOf("a", "created"))
	f.sees("a", "created")
	write(t, path, yamlOf("a", "in-place"))
	f.sees("a", "in-place")
	replaceFile(t, path, yamlOf("a", "renamed-over"))
	f.sees("a", "renamed-over")
	require.NoError(t, os.Rename(path, path+"~"))
	write(t, path, yamlOf("a", "backed-up"))
	f.sees("a", "backed-up")
	require.NoError(t, os.Remove(path))
	f.sees("a", "")
}

func TestNewAndMovedDirectoriesAreWatched(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	f := follow(t, dir)
	write(t, filepath.Join(dir, "x/y/z/a.yaml"), yamlOf("a", "1"))
	f.sees("a", "1")
	write(t, filepath.Join(dir, "x/y/z/a.yaml"), yamlOf("a", "2"))
	f.sees("a", "2")
	require.NoError(t, os.Rename(filepath.Join(dir, "x/y"), filepath.Join(dir, "w")))
	f.sees("a", "2")
	write(t, filepath.Join(dir, "w/z/a.yaml"), yamlOf("a", "3"))
	f.sees("a", "3")
	require.NoError(t, os.Rename(filepath.Join(dir, "w"), filepath.Join(outside, "w")))
	f.sees("a", "")
	require.NoError(t, os.Rename(filepath.Join(outside, "w"), filepath.Join(dir, "w")))
	f.sees("a", "3")
	write(t, filepath.Join(dir, "w/z/a.yaml"), yamlOf("a", "4"))
	f.sees("a", "4")
}

func TestADirectoryThatIsMadeAgainIsWatchedAgain(t *testing.T) {
	dir := t.TempDir()
	f := follow(t, dir)
	for _, marker := range []string{"1", "2", "3"} {
		path := write(t, filepath.Join(dir, "sub/a.yaml"), yamlOf("a", marker))
		f.sees("a", marker)
		write(t, path, yamlOf("a", marker+"b"))
		f.sees("a", marker+"b")
		require.NoError(t, os.RemoveAll(filepath.Join(dir, "sub")))
		f.sees("a", "")
	}
}

func TestARootThatDoesNotExistYetIsNoticed(t *testing.T) {
	dir := t.TempDir()
	root := filepath.Join(dir, "config/muxlet/sessions")
	f := follow(t, root)
	path := write(t, filepath.Join(root, "a.yaml"), yamlOf("a", "1"))
	f.sees("a", "1")
	write(t, path, yamlOf("a", "2"))
	f.sees("a", "2")
	require.NoError(t, os.Rename(root, root+"-old"))
	f.sees("a", "")
	write(t, path, yamlOf("a", "3"))
	f.sees("a", "3")
}

func TestARootThatIsAFileIsNoticed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "single.conf")
	f := follow(t, path)
	write(t, path, yamlOf("a", "1"))
	f.sees("a", "1")
	replaceFile(t, path, yamlOf("a", "2"))
	f.sees("a", "2")
	write(t, path, yamlOf("a", "3"))
	f.sees("a", "3")
}

func TestChangesBehindLinksAreNoticed(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	target := write(t, filepath.Join(outside, "a.yaml"), yamlOf("a", "1"))
	link(t, target, filepath.Join(dir, "a.yaml"))
	write(t, filepath.Join(outside, "one/b.yaml"), yamlOf("b", "1"))
	write(t, filepath.Join(outside, "two/b.yaml"), yamlOf("b", "swapped"))
	link(t, "one", filepath.Join(outside, "current"))
	link(t, filepath.Join(outside, "current/b.yaml"), filepath.Join(dir, "b.yaml"))
	f := follow(t, dir)
	f.sees("a", "1")
	f.sees("b", "1")
	write(t, target, yamlOf("a", "2"))
	f.sees("a", "2")
	replaceFile(t, target, yamlOf("a", "3"))
	f.sees("a", "3")
	link(t, "two", filepath.Join(outside, "next"))
	require.NoError(t, os.Rename(filepath.Join(outside, "next"), filepath.Join(outside, "current")))
	f.sees("b", "swapped")
}

// settledWatcher has taken the hint that follows its first watches.
func settledWatcher(t *testing.T, log logr.Logger, roots ...string) *Watcher {
	w := NewWatcher(log)
	t.Cleanup(func() { assert.NoError(t, w.Close()) })
	w.Sync(Read(roots))
	requireHint(t, w)
	w.Sync(Read(roots))
	return w
}

func TestSyncWithoutChangeGivesNoHint(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "sub/a.yaml"), yamlOf("a", "1"))
	link(t, "sub", filepath.Join(dir, "alias"))
	w := settledWatcher(t, logr.Discard(), dir, filepath.Join(dir, "sub"), filepath.Join(dir, "later"))
	for range 5 {
		w.Sync(Read([]string{dir, filepath.Join(dir, "sub"), filepath.Join(dir, "later")}))
	}
	requireNoHint(t, w)
}

func requireHint(t *testing.T, w *Watcher) {
	t.Helper()
	select {
	case <-w.Hints():
	case <-time.After(20 * time.Second):
		t.Fatal("no hint")
	}
}

func requireNoHint(t *testing.T, w *Watcher) {
	t.Helper()
	select {
	case <-w.Hints():
		t.Fatal("a hint without a reason")
	case <-time.After(2 * atMost):
	}
}

func TestARootThatIsALinkIsWatchedWhereTheLinkIs(t *testing.T) {
	dir, links := t.TempDir(), t.TempDir()
	root := filepath.Join(links, "root")
	link(t, dir, root)
	w := settledWatcher(t, logr.Discard(), root)
	requireNoHint(t, w)
	link(t, t.TempDir(), filepath.Join(links, "next"))
	require.NoError(t, os.Rename(filepath.Join(links, "next"), root))
	requireHint(t, w)
}

func TestSyncFollowsTheReadingAlone(t *testing.T) {
	dir := t.TempDir()
	alias := filepath.Join(t.TempDir(), "alias")
	link(t, dir, alias)
	w := settledWatcher(t, logr.Discard(), dir)

	// A file system that gives one directory two identities.
	two := Reading{Watches: []Watch{{Dir: dir, id: fileID{1, 1}}, {Dir: alias, id: fileID{1, 2}}}}
	w.Sync(two)
	requireHint(t, w)
	for range 3 {
		w.Sync(two)
	}
	requireNoHint(t, w)

	// Another directory took the place of one that is still watched.
	w.Sync(Reading{Watches: []Watch{{Dir: dir, id: fileID{1, 3}}}})
	requireHint(t, w)
	w.Sync(Reading{})
	assert.Empty(t, w.listed())
}

func TestTheParentOfAMissingRootGivesHintsForTheRootAlone(t *testing.T) {
	dir := t.TempDir()
	w := settledWatcher(t, logr.Discard(), filepath.Join(dir, "later"))
	write(t, filepath.Join(dir, "noise.yaml"), "x")
	requireNoHint(t, w)
	write(t, filepath.Join(dir, "later/a.yaml"), "x")
	requireHint(t, w)
}

func TestOnlyWhatCanChangeAReadingMatters(t *testing.T) {
	w := NewWatcher(logr.Discard())
	defer func() { assert.NoError(t, w.Close()) }()
	w.filter.Store(&map[string]watched{
		"/m":    {Watch: Watch{Dir: "/m", all: true, Names: []string{"..data"}}},
		"/home": {Watch: Watch{Dir: "/home", Names: []string{"later"}}},
	})
	for _, c := range []struct {
		name string
		op   fsnotify.Op
		want bool
	}{
		{"/m/a.yaml", fsnotify.Write, true},
		{"/m/a.yaml", fsnotify.Chmod, true},
		{"/m/..data", fsnotify.Create, true},
		{"/m/.a.yaml.swp", fsnotify.Create, false},
		{"/m/a.yaml~", fsnotify.Remove, false},
		{"/m/agent.log", fsnotify.Write, false},
		{"/m/folder", fsnotify.Create, true},
		{"/m", fsnotify.Remove, true},
		{"/home/later", fsnotify.Create, true},
		{"/home/a.yaml", fsnotify.Create, false},
		{"/gone/a.yaml", fsnotify.Create, true},
	} {
		assert.Equal(t, c.want, w.matters(fsnotify.Event{Name: c.name, Op: c.op}), "%s %s", c.op, c.name)
	}
}

func TestABurstGivesOneHint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		events, hints, done := make(chan struct{}), make(chan struct{}, 1), make(chan struct{})
		go debounce(events, hints, done)
		start := time.Now()
		for range 3 {
			<-time.After(quiet - 1)
			events <- struct{}{}
		}
		<-hints
		assert.Equal(t, 3*(quiet-1)+quiet, time.Since(start))
		<-time.After(time.Hour)
		synctest.Wait()
		assert.Empty(t, hints)
		close(done)
	})
}

func TestAStreamOfEventsDelaysAHintForAQuarterOfASecondAtMost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		events, hints, done := make(chan struct{}), make(chan struct{}, 1), make(chan struct{})
		go debounce(events, hints, done)
		var stream sync.WaitGroup
		stream.Go(func() {
			for range 100 {
				events <- struct{}{}
				<-time.After(quiet / 2)
			}
		})
		for range 4 {
			start := time.Now()
			<-hints
			assert.LessOrEqual(t, time.Since(start), atMost+quiet)
			assert.GreaterOrEqual(t, time.Since(start), atMost-quiet)
		}
		stream.Wait()
		close(done)
	})
}

func TestCloseLeavesNoGoroutine(t *testing.T) {
	dir := t.TempDir()
	for _, synced := range []string{"", dir} {
		w := NewWatcher(logr.Discard())
		if synced != "" {
			w.Sync(Read([]string{synced}))
		}
		write(t, filepath.Join(dir, "a.yaml"), "x")
		require.NoError(t, w.Close())
		require.NoError(t, w.Close())
		w.Sync(Read([]string{dir}))
	}
	buf := make([]byte, 1<<20)
	stacks := string(buf[:runtime.Stack(buf, true)])
	assert.NotContains(t, stacks, "manifest.(*Watcher)")
	assert.NotContains(t, stacks, "manifest.debounce")
	assert.NotContains(t, stacks, "inotify")
}

// lines collects what is logged.
type lines struct {
	mu   sync.Mutex
	text []string
}

func (l *lines) logger() logr.Logger {
	return funcr.New(func(_, args string) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.text = append(l.text, args)
	}, funcr.Options{})
}

func TestRunningOutOfWatchesIsOneLogLine(t *testing.T) {
	var log lines
	w := NewWatcher(log.logger())
	defer func() { assert.NoError(t, w.Close()) }()
	for range 5 {
		w.report(&os.SyscallError{Syscall: "inotify_add_watch", Err: syscall.ENOSPC}, 9000)
	}
	require.Len(t, log.text, 1)
	assert.Contains(t, log.text[0], "resync")
	assert.Contains(t, log.text[0], "max_user_watches")
	w.report(nil, 9000)
	w.report(nil, 9000)
	assert.Len(t, log.text, 2)
	assert.True(t, exhausted(syscall.EMFILE))
	assert.False(t, exhausted(errors.Join(syscall.EACCES)))
}

func TestADirectoryThatVanishedBeforeItsWatchIsNoFault(t *testing.T) {
	var log lines
	w := NewWatcher(log.logger())
	defer func() { assert.NoError(t, w.Close()) }()
	w.Sync(Reading{Watches: []Watch{{Dir: filepath.Join(t.TempDir(), "gone")}}})
	assert.Empty(t, strings.Join(log.text, "\n"))
}

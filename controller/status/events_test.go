// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muxlet/muxlet/spec"
)

func open(t *testing.T, dir string, limit int) *Recorder {
	t.Helper()
	r, err := OpenRecorder(dir, limit)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.Close()) })
	return r
}

func event(session, reason, message string, at time.Time) Event {
	return Event{Session: session, UID: "uid-" + session, Type: "Warning", Reason: reason, Message: message, Last: at}
}

func at(seconds int) time.Time { return now.Add(time.Duration(seconds) * time.Second) }

func put(t *testing.T, r *Recorder, events ...Event) {
	t.Helper()
	for _, e := range events {
		require.NoError(t, r.Record(e))
	}
}

// told are the events in short: message, or message xCount.
func told(events []Event) []string {
	out := []string{}
	for _, e := range events {
		words := e.Message
		if e.Count > 1 {
			words = fmt.Sprintf("%s x%d", words, e.Count)
		}
		out = append(out, words)
	}
	return out
}

func linesOf(t *testing.T, dir string) []string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "events", "events.jsonl"))
	require.NoError(t, err)
	return strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
}

func TestEventsAreListedInTheOrderOfTheirLastOccurrence(t *testing.T) {
	r := open(t, t.TempDir(), 100)
	require.Empty(t, r.List(""))
	put(t, r, event("a", "Died", "1", at(1)), event("b", "Died", "2", at(2)), event("a", "Started", "3", at(3)), event("a", "Died", "1", at(4)))
	require.Equal(t, []string{"2", "3", "1 x2"}, told(r.List("")))
	require.Equal(t, []string{"3", "1 x2"}, told(r.List("a")))
	require.Empty(t, r.List("c"))
	last := r.List("a")[1]
	require.Equal(t, Event{ID: 1, Session: "a", UID: "uid-a", Type: "Warning", Reason: "Died", Message: "1", Count: 2, First: at(1), Last: at(4)}, last)
	last.Message = "changed"
	r.List("a")[0].Message = "changed"
	require.Equal(t, []string{"3", "1 x2"}, told(r.List("a")), "a list is a copy")
}

func TestEventsOutliveTheDaemon(t *testing.T) {
	dir := t.TempDir()
	r := open(t, dir, 100)
	put(t, r, event("a", "Died", "1", at(1)), event("a", "Started", "2", at(2)), event("a", "Died", "1", at(3)))
	want := r.List("")
	require.Len(t, linesOf(t, dir), 3, "each is appended")
	again := open(t, dir, 100) // the first one was never closed: the daemon was killed
	require.Equal(t, want, again.List(""))
	require.Len(t, linesOf(t, dir), 2, "and written together at the next start")
	put(t, again, event("a", "Stopped", "3", at(4)))
	require.Equal(t, int64(3), again.List("")[2].ID, "numbers go on")
	info, err := os.Stat(filepath.Join(dir, "events", "events.jsonl"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
}

func TestDamagedLinesArePassedOver(t *testing.T) {
	dir := t.TempDir()
	put(t, open(t, dir, 100), event("a", "Died", "1", at(1)), event("a", "Started", "2", at(2)))
	lines := linesOf(t, dir)
	damaged := strings.Join([]string{
		"not json", lines[0], "", "{}", `{"id":-4,"message":"x"}`, `{"id":0}`, `{"id":"7"}`, string(make([]byte, 4096)),
		`{"id":9,"message":"` + strings.Repeat("x", 2<<20), lines[1], lines[1][:len(lines[1])/2],
	}, "\n")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "events", "events.jsonl"), []byte(damaged), 0o600))
	r := open(t, dir, 100)
	require.Equal(t, []string{"1", "2"}, told(r.List("")))
	put(t, r, event("a", "Stopped", "3", at(3)))
	require.Equal(t, []string{"1", "2", "3"}, told(open(t, dir, 100).List("")))
}

func TestOnlySoManyEventsAreKept(t *testing.T) {
	dir := t.TempDir()
	r := open(t, dir, 10)
	for n := range 1000 {
		put(t, r, event("a", fmt.Sprintf("Reason%d", n), "x", at(n)))
		require.LessOrEqual(t, len(r.List("")), 10)
		require.LessOrEqual(t, len(linesOf(t, dir)), 21, "the file is bounded as well")
	}
	require.Equal(t, "Reason990", r.List("")[0].Reason, "the oldest go first")
	require.Equal(t, r.List(""), open(t, dir, 10).List(""))
	require.Len(t, open(t, dir, 3).List(""), 3, "also when the limit has become smaller")
	require.Len(t, open(t, dir, 0).List(""), 1, "at least one is kept")
}

// The file has at most twice as many lines as there are events, each within its bound.
func TestTheEventsTakeSoMuchDiskAndNoMore(t *testing.T) {
	dir := t.TempDir()
	r := open(t, dir, 10)
	for n := range 100 {
		put(t, r, event(fmt.Sprint(n), "Long", strings.Repeat("ü", 20<<10), at(n)))
	}
	lines := linesOf(t, dir)
	require.LessOrEqual(t, len(lines), 21)
	for _, line := range lines {
		require.Less(t, len(line), maxMessage+1024)
	}
	message := r.List("99")[0].Message
	require.LessOrEqual(t, len(message), maxMessage)
	require.True(t, strings.HasSuffix(message, "ü…"), "it is cut between characters")
}

func TestTheSessionsWithTheMostEventsLoseTheirOldest(t *testing.T) {
	dir := t.TempDir()
	r := open(t, dir, 100)
	for n := range 5 {
		for _, session := range []string{"a", "b"} {
			put(t, r, event(session, fmt.Sprintf("R%d", n), fmt.Sprint(session, n), at(n)))
		}
	}
	put(t, r, event("c", "R", "c0", at(0)))
	require.Equal(t, []string{"c0", "a3", "b3", "a4", "b4"}, told(open(t, dir, 5).List("")))
	require.Equal(t, []string{"c0", "b4"}, told(open(t, dir, 2).List("")), "of as many each, the one that began first")
}

func TestEventsThatSayTheSameAreOne(t *testing.T) {
	r := open(t, t.TempDir(), 100)
	put(t, r, event("a", "Died", "1", at(1)), event("a", "Died", "2", at(2)), event("a", "Died", "1", at(3)))
	require.Equal(t, []string{"2", "1 x2"}, told(r.List("")), "the one in between stays as it was")
	put(t, r, event("b", "Died", "1", at(4)), event("a", "Started", "1", at(5)))
	normal := event("a", "Died", "1", at(6))
	normal.Type = "Normal"
	put(t, r, normal)
	require.Equal(t, []string{"2", "1 x2", "1", "1", "1"}, told(r.List("")), "another session, reason or type is another event")
	put(t, r, event("a", "Died", "1", at(3).Add(similarWindow+1)))
	require.Len(t, r.List(""), 6, "after a while it is another event as well")
}

func TestManySimilarEventsAreJoined(t *testing.T) {
	r := open(t, t.TempDir(), 100)
	for n := 1; n <= 9; n++ {
		put(t, r, event("a", "Died", fmt.Sprint(n), at(n)))
	}
	require.Equal(t, []string{"1", "2", "3", "4", "9 x5"}, told(r.List("")))
	require.Equal(t, at(5), r.List("")[4].First)
}

// A crash loop of one session pushes out its own events, and no others.
func TestACrashLoopDoesNotPushOutOtherSessions(t *testing.T) {
	dir := t.TempDir()
	r := open(t, dir, 50)
	put(t, r, event("quiet", "Adopted", "once", at(0)), event("", "ServerStarted", "once", at(0)))
	for n := range 5000 { // two weeks
		put(t, r, event("loop", "Started", fmt.Sprint(n), at(n*240)), event("loop", "Died", fmt.Sprint(n), at(n*240+1)))
	}
	require.Equal(t, []string{"once"}, told(r.List("quiet")))
	require.Len(t, r.List("loop"), 48)
	require.Equal(t, []string{"once"}, told(open(t, dir, 50).List("quiet")), "nor in the file")
	require.Equal(t, "4999", r.List("loop")[47].Message)
}

func TestEventsAreRecordedConcurrently(t *testing.T) {
	dir := t.TempDir()
	r := open(t, dir, 20)
	var wg sync.WaitGroup
	faults := make(chan error, 800)
	for w := range 8 {
		wg.Go(func() {
			for n := range 100 {
				faults <- r.Record(event(fmt.Sprintf("s%d", w), fmt.Sprintf("R%d", n), "x", at(n)))
				r.List("")
			}
		})
	}
	wg.Wait()
	close(faults)
	for err := range faults {
		require.NoError(t, err)
	}
	require.Len(t, r.List(""), 20)
	seen := map[int64]bool{}
	for _, e := range r.List("") {
		require.False(t, seen[e.ID])
		seen[e.ID] = true
	}
	require.Equal(t, r.List(""), open(t, dir, 20).List(""))
}

func TestAnEventIsKeptAlthoughItsFileFails(t *testing.T) {
	dir := t.TempDir()
	r := open(t, dir, 2)
	require.NoError(t, r.Close())
	require.NoError(t, r.Close(), "once more is no error")
	for n := range 9 {
		require.Error(t, r.Record(event("a", fmt.Sprintf("R%d", n), "kept", at(n))))
	}
	require.Equal(t, []string{"kept", "kept"}, told(r.List("")))

	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	_, err := OpenRecorder(file, 10)
	require.Error(t, err)

	dir = t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "events", "events.jsonl"), 0o700))
	_, err = OpenRecorder(dir, 10)
	require.Error(t, err)
}

func TestAnEventIsServedAsKubernetesServesIt(t *testing.T) {
	e := event("shop", "Died", "Incarnation 3, pid 100: ended by SIGKILL", at(1))
	e.ID, e.Count, e.First = 7, 2, at(0)
	require.Equal(t, corev1.Event{
		TypeMeta:       metav1.TypeMeta{APIVersion: "v1", Kind: "Event"},
		ObjectMeta:     metav1.ObjectMeta{Name: "event-7", Namespace: spec.Namespace, CreationTimestamp: metav1.NewTime(at(0))},
		InvolvedObject: corev1.ObjectReference{APIVersion: "muxlet.dev/v1alpha1", Kind: "Session", Namespace: spec.Namespace, Name: "shop", UID: "uid-shop"},
		Type:           "Warning", Reason: "Died", Message: e.Message, Count: 2,
		FirstTimestamp: metav1.NewTime(at(0)), LastTimestamp: metav1.NewTime(at(1)), Source: corev1.EventSource{Component: "muxlet"},
	}, e.Object())
	require.Equal(t, "Daemon", Event{}.Object().InvolvedObject.Kind)
}

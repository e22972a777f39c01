// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/muxlet/muxlet/spec"
)

// watcher reads a watch line by line from a real socket.
type watcher struct {
	t        *testing.T
	response *http.Response
	lines    *bufio.Reader
}

func httpOn(socket string) *http.Client {
	return &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}}}
}

// openWatch asks for a path with its query; nothing but the answer's head was read.
func openWatch(t *testing.T, socket, target string) *watcher {
	t.Helper()
	client := httpOn(socket)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://muxlet"+target, nil)
	require.NoError(t, err)
	response, err := client.Do(request)
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = response.Body.Close()
		client.CloseIdleConnections()
	})
	return &watcher{t: t, response: response, lines: bufio.NewReader(response.Body)}
}

// next is the next event, ok false at the end of the watch.
func (w *watcher) next() (event metav1.WatchEvent, ok bool) {
	w.t.Helper()
	line, err := w.lines.ReadString('\n')
	if err != nil {
		return event, false
	}
	require.NoError(w.t, json.Unmarshal([]byte(line), &event), line)
	return event, true
}

// words are the next n events, as TYPE name.
func (w *watcher) words(n int) []string {
	w.t.Helper()
	var all []string
	for range n {
		event, ok := w.next()
		require.True(w.t, ok, "the watch ended after %v", all)
		all = append(all, word(w.t, event))
	}
	return all
}

// rest are all events until the end of the watch.
func (w *watcher) rest() []string {
	w.t.Helper()
	all := []string{}
	for event, ok := w.next(); ok; event, ok = w.next() {
		all = append(all, word(w.t, event))
	}
	return all
}

func word(t *testing.T, event metav1.WatchEvent) string {
	t.Helper()
	if event.Type == string(watch.Error) {
		var status metav1.Status
		require.NoError(t, json.Unmarshal(event.Object.Raw, &status))
		return fmt.Sprintf("ERROR %d %s", status.Code, status.Reason)
	}
	object := read(t, event)
	if event.Type == string(watch.Bookmark) {
		if object.Annotations[metav1.InitialEventsAnnotationKey] == "true" {
			return "BOOKMARK end of the initial events"
		}
		return "BOOKMARK"
	}
	return event.Type + " " + object.Name
}

func read(t *testing.T, event metav1.WatchEvent) *metav1.PartialObjectMetadata {
	t.Helper()
	object := &metav1.PartialObjectMetadata{}
	require.NoError(t, json.Unmarshal(event.Object.Raw, object))
	assert.NotEmpty(t, object.Kind)
	assert.NotEmpty(t, object.APIVersion)
	assert.NotEmpty(t, object.ResourceVersion)
	return object
}

func label(value string) func(*spec.Session) {
	return func(s *spec.Session) { s.Labels = map[string]string{"number": value} }
}

func work(*spec.Session) {}

// revision is the resourceVersion of a list now.
func revision(f *fakeBackend) string { return f.journals.Sessions.Revision() }

func plus(t *testing.T, version string, n int) string {
	t.Helper()
	v, err := strconv.ParseUint(version, 10, 64)
	require.NoError(t, err)
	return strconv.FormatUint(v+uint64(n), 10)
}

func TestAWatchTellsWhatChangesAfterItsResourceVersion(t *testing.T) {
	for _, r := range []struct {
		name, query string
		// change happens before the watch is opened, after the version was noted.
		change func(f *fakeBackend)
		want   []string
	}{
		{"nothing", "resourceVersion=NOW", work2, []string{}},
		{"each kind of change, in order", "resourceVersion=NOW", func(f *fakeBackend) {
			f.change("a", work)
			f.put(&spec.Session{ObjectMeta: metav1.ObjectMeta{Name: "d"}})
			f.drop("b")
			f.change("d", work)
		}, []string{"MODIFIED a", "ADDED d", "DELETED b", "MODIFIED d"}},
		{"an earlier version gets more", "resourceVersion=EARLIER", func(f *fakeBackend) { f.change("a", work) }, []string{"ADDED c", "MODIFIED a"}},
		{"without a version: what is there, as added", "", func(f *fakeBackend) { f.change("a", work) }, []string{"ADDED a", "ADDED b", "ADDED c"}},
		{"version 0 is any: the same", "resourceVersion=0", work2, []string{"ADDED a", "ADDED b", "ADDED c"}},
		{"one session", "resourceVersion=NOW&fieldSelector=metadata.name%3Db", func(f *fakeBackend) {
			f.change("a", work)
			f.change("b", work)
		}, []string{"MODIFIED b"}},
		{"one that begins to match is added, one that no longer does is deleted", "resourceVersion=NOW&labelSelector=number%3D1", func(f *fakeBackend) {
			f.change("a", label("1"))
			f.change("b", label("2"))
			f.change("b", label("3"))
			f.change("a", work)
			f.drop("a")
			f.drop("b")
		}, []string{"ADDED a", "DELETED b", "MODIFIED a", "DELETED a"}},
		{"a bookmark before the end", "resourceVersion=NOW&allowWatchBookmarks=true", func(f *fakeBackend) { f.change("a", work) }, []string{"MODIFIED a", "BOOKMARK"}},
		{"initial events and their end", "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true", work2,
			[]string{"ADDED a", "ADDED b", "ADDED c", "BOOKMARK end of the initial events", "BOOKMARK"}},
		{"no initial events", "sendInitialEvents=false&resourceVersionMatch=NotOlderThan", work2, []string{}},
	} {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			f := newFake("a", "b", "c")
			now := revision(f)
			r.change(f)
			query := strings.NewReplacer("NOW", now, "EARLIER", plus(t, now, -1)).Replace(r.query)
			w := openWatch(t, serve(t, Handler(f)), sessionsPath+"?watch=true&timeoutSeconds=1&"+query)
			require.Equal(t, http.StatusOK, w.response.StatusCode)
			assert.Equal(t, "application/json", w.response.Header.Get("Content-Type"))
			assert.Equal(t, r.want, w.rest())
		})
	}
}

func work2(*fakeBackend) {}

func TestAWatchThatCannotBeginIsAnswered(t *testing.T) {
	f := newFake("a")
	for range 20 {
		f.change("a", work)
	}
	now := revision(f)
	another := newJournals(epoch.Add(time.Hour), 7, 8, 8).Sessions.Revision()
	earlier := newJournals(epoch.Add(-time.Hour), 7, 8, 8).Sessions.Revision()
	twin := newJournals(epoch, 1<<20, 8, 8).Sessions.Revision()
	for query, code := range map[string]int{
		"resourceVersion=" + plus(t, now, -9): http.StatusGone,
		"resourceVersion=" + plus(t, now, -8): 0,
		"resourceVersion=" + plus(t, now, 1):  http.StatusGone,
		"resourceVersion=" + another:          http.StatusGone,
		"resourceVersion=" + earlier:          http.StatusGone,
		"resourceVersion=" + twin:             http.StatusGone,
		"resourceVersion=1":                   http.StatusGone,
		"resourceVersion=x":                   http.StatusBadRequest,
		"timeoutSeconds=-1":                   http.StatusBadRequest,
		"timeoutSeconds=x":                    http.StatusBadRequest,
		"allowWatchBookmarks=perhaps":         http.StatusBadRequest,
		"sendInitialEvents=true":              http.StatusBadRequest,
		"labelSelector=a%3D%3D%3Db":           http.StatusBadRequest,
		"fieldSelector=spec.suspend%3Dtrue":   http.StatusBadRequest,
	} {
		for _, path := range []string{sessionsPath, allSessionsPath} {
			if code == 0 {
				continue
			}
			answer := ask(t, f, http.MethodGet, path+"?watch=1&"+query)
			status := readStatus(t, answer)
			assert.Equal(t, code, answer.Code, query)
			if code == http.StatusGone {
				assert.Equal(t, metav1.StatusReasonExpired, status.Reason, query)
			}
		}
	}
	assert.Equal(t, http.StatusBadRequest, ask(t, newFake(), http.MethodGet, sessionsPath+"?watch=perhaps").Code)
	w := openWatch(t, serve(t, Handler(f)), sessionsPath+"?watch=true&timeoutSeconds=1&resourceVersion="+plus(t, now, -8))
	assert.Len(t, w.rest(), 8, "the oldest version that is remembered")
}

func TestAListIsOfThePresentOrRefused(t *testing.T) {
	f := newFake("a")
	f.change("a", work)
	now := revision(f)
	for query, code := range map[string]int{
		"resourceVersion=0": http.StatusOK,
		"resourceVersion=0&resourceVersionMatch=NotOlderThan":                        http.StatusOK,
		"resourceVersion=" + now + "&resourceVersionMatch=Exact":                     http.StatusOK,
		"resourceVersion=" + plus(t, now, -1) + "&resourceVersionMatch=NotOlderThan": http.StatusOK,
		"limit=500":                               http.StatusOK,
		"resourceVersion=" + plus(t, now, -1):     http.StatusOK,
		"resourceVersion=" + plus(t, now, 1):      http.StatusGone,
		"resourceVersion=1":                       http.StatusGone,
		"continue=abc":                            http.StatusGone,
		"resourceVersion=x":                       http.StatusBadRequest,
		"resourceVersionMatch=Exact":              http.StatusBadRequest,
		"resourceVersion=1&resourceVersionMatch=": http.StatusGone,
		"resourceVersion=" + plus(t, now, -1) + "&resourceVersionMatch=Exact": http.StatusGone,
		"resourceVersion=" + now + "&resourceVersionMatch=Latest":             http.StatusBadRequest,
	} {
		assert.Equal(t, code, ask(t, f, http.MethodGet, sessionsPath+"?"+query).Code, query)
	}
}

// The fields that kubectl and client-go read.
func TestWatchEventsAreThoseOfKubernetes(t *testing.T) {
	f := newFake("a")
	w := openWatch(t, serve(t, Handler(f)), sessionsPath+"?watch=true")
	first, ok := w.next()
	require.True(t, ok)
	var session spec.Session
	require.NoError(t, json.Unmarshal(first.Object.Raw, &session))
	assert.Equal(t, metav1.TypeMeta{APIVersion: "muxlet.dev/v1alpha1", Kind: "Session"}, session.TypeMeta)
	listed, err := f.Session("a")
	require.NoError(t, err)
	assert.Equal(t, listed.ResourceVersion, session.ResourceVersion, "an object has one version, however it is read")
	f.drop("a")
	last, ok := w.next()
	require.True(t, ok)
	var gone spec.Session
	require.NoError(t, json.Unmarshal(last.Object.Raw, &gone))
	assert.Equal(t, "DELETED", last.Type)
	assert.Equal(t, session.UID, gone.UID, "what was deleted is told as it was")
	assert.Equal(t, revision(f), gone.ResourceVersion, "with the version of its end")
	assert.Equal(t, session.ResourceVersion, listed.ResourceVersion, "and the one that others hold is left alone")
}

func TestEventsAreWatchedByTheSessionTheyAreAbout(t *testing.T) {
	f := newFake()
	w := openWatch(t, serve(t, Handler(f)), eventsPath+"?watch=true&fieldSelector="+url.QueryEscape("involvedObject.name=a"))
	for i, name := range []string{"b", "a"} {
		f.journals.Events.Put(name, &corev1.Event{
			TypeMeta: eventTypeMeta, ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("e%d", i)}, InvolvedObject: corev1.ObjectReference{Name: name},
		})
	}
	assert.Equal(t, []string{"ADDED e1"}, w.words(1))
}

// A watch that nobody reads is a place in the log: it costs nothing and blocks
// nobody, and it is told to list again once it has fallen behind.
func TestAWatchThatFallsBehindIsEnded(t *testing.T) {
	f := newFake("a")
	w := openWatch(t, serve(t, Handler(f)), sessionsPath+"?watch=true&resourceVersion="+revision(f))
	big := strings.Repeat("x", 64<<10)
	for range 1000 { // far more than the sockets and the journal hold
		f.change("a", func(s *spec.Session) { s.Annotations = map[string]string{"big": big} })
	}
	all := w.rest()
	assert.Equal(t, "ERROR 410 Expired", all[len(all)-1])
	assert.Less(t, len(all), 900)
}

func TestAWatchEndsWhenTheDaemonStops(t *testing.T) {
	path := socketPath(t)
	l, err := Listen(path)
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	f := newFake("a")
	go func() { ended <- Serve(ctx, l, Handler(f)) }()
	w := openWatch(t, path, sessionsPath+"?watch=true&allowWatchBookmarks=true")
	assert.Equal(t, []string{"ADDED a"}, w.words(1))
	stop()
	assert.Equal(t, []string{"BOOKMARK"}, w.rest(), "at once, and as it should")
	require.NoError(t, <-ended)
}

func TestAJournalRemembersABoundedNumberOfChanges(t *testing.T) {
	j := newJournals(epoch, 7, 4, 4).Sessions
	for i := range 10 {
		j.Put("a", &spec.Session{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint(i)}})
	}
	room := make([]change, 0, 3)
	from := j.sequence.last.Load() - 4
	changes, upTo, _, err := j.since(from, room)
	require.NoError(t, err)
	require.Len(t, changes, 3, "as many as there is room for")
	assert.Equal(t, "6", changes[0].after.GetName())
	changes, upTo, _, err = j.since(upTo, room)
	require.NoError(t, err)
	require.Len(t, changes, 1)
	changes, _, wait, err := j.since(upTo, room)
	require.NoError(t, err)
	assert.Empty(t, changes)
	j.Delete("nobody")
	select {
	case <-wait:
		require.Fail(t, "nothing has changed")
	default:
	}
	j.Delete("a")
	<-wait
	_, _, _, err = j.since(from, room)
	assert.Equal(t, metav1.StatusReasonExpired, ReasonOf(err))
	assert.Len(t, j.log, 4)
}

func TestTheVersionsOfTwoRunsDoNotMeet(t *testing.T) {
	one := newJournals(epoch, 5, 4, 4)
	next := newJournals(epoch.Add(time.Second), 0, 4, 4)
	one.Sessions.Put("a", &spec.Session{})
	before, err := parseRevision(one.Sessions.Revision())
	require.NoError(t, err)
	require.Error(t, next.Sessions.reaches(before))
	require.Error(t, next.Sessions.knows(before))
	after, err := parseRevision(next.Sessions.Revision())
	require.NoError(t, err)
	assert.Greater(t, after, before, "they rise with the clock")
	require.Error(t, one.Sessions.reaches(after))
	assert.Less(t, after, uint64(1)<<63, "clients may read them into an int64")
	assert.NotEqual(t, one.Sessions.Revision(), newJournals(epoch, 1<<31, 4, 4).Sessions.Revision(), "a clock that starts at the same time at each boot is no clock")
}

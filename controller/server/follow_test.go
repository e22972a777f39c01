// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/muxlet/muxlet/spec"
)

// follower collects what it is told.
type follower struct {
	told  chan string
	ended chan error
}

func followSessions(t *testing.T, ctx context.Context, c *Client, labelSelector, fieldSelector string) *follower {
	t.Helper()
	ctx, stop := context.WithCancel(ctx)
	f := &follower{told: make(chan string, 1000), ended: make(chan error, 1)}
	go func() {
		f.ended <- c.FollowSessions(ctx, labelSelector, fieldSelector, Follower[spec.Session]{
			Listed: func(all []spec.Session) error {
				words := "listed"
				for _, s := range all {
					words += " " + s.Name
				}
				f.told <- words
				return nil
			},
			Changed: func(kind watch.EventType, s *spec.Session) error {
				f.told <- string(kind) + " " + s.Name
				return nil
			},
			Lost: func(error) { f.told <- "lost" },
			Back: func() { f.told <- "back" },
		})
	}()
	t.Cleanup(stop)
	return f
}

func (f *follower) hears(t *testing.T, want ...string) {
	t.Helper()
	for _, w := range want {
		select {
		case got := <-f.told:
			require.Equal(t, w, got)
		case <-time.After(20 * time.Second):
			require.Fail(t, "this was not told: "+w)
		}
	}
}

func TestAFollowerIsToldWhatIsThereAndThenEachChange(t *testing.T) {
	f := newFake("a", "b")
	c := NewClient(serve(t, Handler(f)))
	all := followSessions(t, t.Context(), c, "", "")
	one := followSessions(t, t.Context(), c, "", "metadata.name=b")
	labelled := followSessions(t, t.Context(), c, "number=1", "")
	all.hears(t, "listed a b")
	one.hears(t, "listed b")
	labelled.hears(t, "listed b")
	f.change("a", label("1"))
	f.change("b", work)
	f.drop("b")
	all.hears(t, "MODIFIED a", "MODIFIED b", "DELETED b")
	one.hears(t, "MODIFIED b", "DELETED b")
	labelled.hears(t, "ADDED a", "MODIFIED b", "DELETED b")
}

func TestAFollowerGoesOnWithAnotherRunOfTheDaemon(t *testing.T) {
	path := socketPath(t)
	run := func(f *fakeBackend) (stop func()) {
		l, err := Listen(path)
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- Serve(ctx, l, Handler(f)) }()
		return func() {
			cancel()
			require.NoError(t, <-ended)
		}
	}
	stop := run(newFake("a", "b", "c"))
	told := followSessions(t, t.Context(), NewClient(path), "", "")
	told.hears(t, "listed a b c")
	stop()
	told.hears(t, "lost")
	// c is as it was, a has changed, b is gone, d is new, and all versions are others.
	next := newFake("a", "", "c", "d")
	next.drop("")
	next.journals = newJournals(epoch.Add(time.Hour), 9, 8, 8)
	for _, s := range next.sessions {
		next.put(s)
	}
	next.change("a", func(s *spec.Session) { s.Generation = 9 })
	defer run(next)()
	told.hears(t, "back", "DELETED b", "MODIFIED a", "ADDED d")
	next.change("c", work)
	told.hears(t, "MODIFIED c")
}

func TestAFollowerThatFellBehindIsToldTheDifference(t *testing.T) {
	f := newFake("a", "b")
	c := NewClient(serve(t, Handler(f)))
	inside, goOn := make(chan struct{}), make(chan struct{})
	told := make(chan string, 1000)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	first := true
	go func() {
		ended <- c.FollowSessions(ctx, "", "", Follower[spec.Session]{
			Listed: func([]spec.Session) error { return nil },
			Changed: func(kind watch.EventType, s *spec.Session) error {
				if first {
					first = false
					close(inside)
					<-goOn
				}
				told <- string(kind) + " " + s.Name
				return nil
			},
		})
	}()
	require.Eventually(t, func() bool {
		f.change("b", work)
		select {
		case <-inside:
			return true
		default:
			return false
		}
	}, 20*time.Second, time.Millisecond)
	big := make([]byte, 64<<10)
	for range 500 {
		f.change("a", func(s *spec.Session) { s.Annotations = map[string]string{"big": string(big)} })
	}
	f.drop("b")
	close(goOn)
	last := ""
	for last != "DELETED b" {
		select {
		case last = <-told:
		case <-time.After(20 * time.Second):
			require.Fail(t, "the end of b was never told")
		}
	}
	stop()
	require.ErrorIs(t, <-ended, context.Canceled)
}

func TestAFollowerEndsWithItsReason(t *testing.T) {
	f := newFake("a")
	path := serve(t, Handler(f))
	boom := errors.New("boom")
	err := NewClient(path).FollowSessions(t.Context(), "", "", Follower[spec.Session]{Listed: func([]spec.Session) error { return boom }})
	require.ErrorIs(t, err, boom, "its own")
	err = NewClient(path).FollowSessions(t.Context(), "a===b", "", Follower[spec.Session]{})
	assert.Equal(t, metav1.StatusReasonBadRequest, ReasonOf(err), "what the daemon refuses")
	err = NewClient(socketPath(t)).FollowSessions(t.Context(), "", "", Follower[spec.Session]{})
	require.ErrorIs(t, err, ErrNoDaemon, "nobody there at the beginning")
	ctx, stop := context.WithCancel(t.Context())
	err = NewClient(path).FollowSessions(ctx, "", "", Follower[spec.Session]{Listed: func([]spec.Session) error {
		stop()
		return nil
	}})
	require.ErrorIs(t, err, context.Canceled)
}

func TestEventsAreFollowed(t *testing.T) {
	f := newFake()
	c := NewClient(serve(t, Handler(f)))
	told := make(chan string, 10)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- c.FollowEvents(ctx, "involvedObject.name=a", Follower[corev1.Event]{
			Listed: func(all []corev1.Event) error { told <- "listed"; return nil },
			Changed: func(kind watch.EventType, e *corev1.Event) error {
				told <- string(kind) + " " + e.Name
				return nil
			},
		})
	}()
	require.Equal(t, "listed", <-told)
	f.journals.Events.Put("1", &corev1.Event{ObjectMeta: metav1.ObjectMeta{Name: "e1"}, InvolvedObject: corev1.ObjectReference{Name: "a"}})
	require.Equal(t, "ADDED e1", <-told)
	stop()
	require.ErrorIs(t, <-ended, context.Canceled)
}

// A daemon that is stopped with a signal keeps its connections open and says
// nothing.
func TestASilentDaemonIsAskedAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		asked := 0
		transport := roundTrip(func(r *http.Request) (*http.Response, error) {
			if r.URL.Query().Get("watch") == "" {
				recorder := ask(t, newFake("a"), http.MethodGet, sessionsPath)
				return recorder.Result(), nil
			}
			asked++
			<-r.Context().Done()
			return nil, r.Context().Err()
		})
		c := &Client{socket: "/s", timeout: ClientTimeout, http: &http.Client{Transport: transport}}
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		lost := 0
		err := c.FollowSessions(ctx, "", "", Follower[spec.Session]{
			Listed: func([]spec.Session) error { return nil },
			Lost:   func(error) { lost++ },
		})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Equal(t, time.Minute, time.Since(began))
		assert.Greater(t, asked, 5)
		assert.Equal(t, 1, lost, "it is said once")
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

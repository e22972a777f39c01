// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/muxlet/muxlet/controller/envtest"
	"github.com/muxlet/muxlet/controller/server"
	"github.com/muxlet/muxlet/spec"
)

// An informer that holds a thousand sessions must not be told of each at each
// resync.
func TestSessionsAtRestDoNotChangeForThoseWhoWatch(t *testing.T) {
	t.Parallel()
	e := envtest.Start(t, envtest.Config{TmuxTimeout: time.Second})
	e.Run("a", "b")
	lost := e.Fake("lost", envtest.Script{})
	lost.Spec.Workspace.Directory = filepath.Join(e.Dir, "gone")
	e.Apply(lost)
	e.WaitFor("lost", envtest.Shows(spec.StatusBlocked))
	sleeping := e.Fake("off", envtest.Script{})
	sleeping.Spec.Suspend = true
	e.Apply(sleeping)
	e.WaitFor("off", envtest.Shows(spec.StatusSuspended))

	rests := func() {
		var since string
		settled := time.Now()
		e.Eventually("it comes to rest", func() bool {
			if now := e.Controller().Sessions().ResourceVersion; now != since {
				since, settled = now, time.Now()
			}
			return time.Since(settled) > time.Second
		})
		e.Always(stays, "nothing changes", func() bool { return e.Controller().Sessions().ResourceVersion == since })
	}
	rests()
	looked := observedAt(e, "a")
	e.Eventually("it is looked at again and again all the same", func() bool { return observedAt(e, "a") > looked })
	server := e.Server()
	e.Signal(server, "SIGSTOP")
	e.WaitFor("a", unknown(spec.ReasonTmuxTimeout)...)
	e.WaitFor("b", unknown(spec.ReasonTmuxTimeout)...)
	e.WaitFor("lost", envtest.Shows(spec.StatusUnknown))
	e.WaitFor("off", envtest.Shows(spec.StatusUnknown))
	rests()
	e.Signal(server, "SIGCONT")
}

func observedAt(e *envtest.Env, name string) int64 {
	s, ok := e.Session(name)
	if !ok || s.Status.Evidence == nil {
		return 0
	}
	return s.Status.Evidence.ObservedAt.UnixNano()
}

// follow watches the sessions over the API until the test ends.
func follow(t *testing.T, e *envtest.Env) <-chan string {
	t.Helper()
	dir, err := os.MkdirTemp("", "mx")
	require.NoError(t, err)
	path := filepath.Join(dir, "run", "s")
	l, err := server.Listen(path)
	require.NoError(t, err)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 2)
	go func() { ended <- server.Serve(ctx, l, server.Handler(e.Controller())) }()
	told := make(chan string, 10_000)
	listed := make(chan struct{})
	go func() {
		_ = server.NewClient(path).FollowSessions(ctx, "", "", server.Follower[spec.Session]{
			Listed: func([]spec.Session) error { close(listed); return nil },
			Changed: func(kind watch.EventType, s *spec.Session) error {
				told <- string(kind) + " " + s.Name + " " + string(spec.DisplayStatus(s))
				return nil
			},
		})
		ended <- nil
	}()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-ended)
		require.NoError(t, <-ended)
		_ = os.RemoveAll(dir)
	})
	<-listed
	return told
}

// hears waits until it was told, and returns all that was told before.
func hears(t *testing.T, told <-chan string, want string) (before []string) {
	t.Helper()
	limit := time.After(30 * time.Second)
	for {
		select {
		case got := <-told:
			if got == want {
				return before
			}
			before = append(before, got)
		case <-limit:
			require.Fail(t, "this was not told: "+want, "but: %v", before)
		}
	}
}

func TestALifeIsWatchedFromTheFileToItsRemoval(t *testing.T) {
	t.Parallel()
	e := envtest.Start(t, envtest.Config{})
	e.Run("other")
	told := follow(t, e)
	e.Apply(e.Fake("a", envtest.Script{}))
	before := hears(t, told, "MODIFIED a Running")
	require.NotEmpty(t, before)
	assert.Equal(t, "ADDED a Unknown", before[0], "it is there before it was looked at")
	e.Kill(e.Client("a").Process)
	hears(t, told, "MODIFIED a Running")
	e.WaitFor("a", envtest.Incarnation(2))
	require.NoError(t, e.Controller().Delete(t.Context(), "a"))
	before = hears(t, told, "DELETED a Stopping")
	for _, word := range before {
		assert.NotContains(t, word, "other", "what did not change")
	}
	e.WaitNoSession("a")
}

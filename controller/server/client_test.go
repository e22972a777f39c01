// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestTheClientReachesEveryMethod(t *testing.T) {
	f := newFake("a", "b")
	c := NewClient(serve(t, Handler(f)))
	defer c.Close()
	ctx := t.Context()

	list, err := c.Sessions(ctx, "number=1")
	require.NoError(t, err)
	require.Len(t, list.Items, 1)
	assert.Equal(t, "b", list.Items[0].Name)
	list, err = c.Sessions(ctx, "")
	require.NoError(t, err)
	assert.Len(t, list.Items, 2)
	session, err := c.Session(ctx, "a")
	require.NoError(t, err)
	assert.Equal(t, f.sessions["a"].UID, session.UID)
	assert.True(t, session.CreationTimestamp.Time.Equal(epoch))
	events, err := c.Events(ctx, "a")
	require.NoError(t, err)
	assert.Len(t, events.Items, 2)
	events, err = c.Events(ctx, "")
	require.NoError(t, err)
	assert.Len(t, events.Items, 3)
	text, err := c.Screen(ctx, "a", 0)
	require.NoError(t, err)
	assert.Equal(t, "<one> & two\n", text)
	status, err := c.Status(ctx)
	require.NoError(t, err)
	assert.Equal(t, []string{"/m"}, status.Manifests)
	version, err := c.Version(ctx)
	require.NoError(t, err)
	assert.Equal(t, "v1", version.GitVersion)
	require.NoError(t, c.Healthy(ctx))
	require.NoError(t, c.Ready(ctx))
}

func TestTheClientSendsEachIntentOnce(t *testing.T) {
	f := newFake("a")
	c := NewClient(serve(t, Handler(f)))
	defer c.Close()
	ctx := t.Context()
	require.NoError(t, c.Suspend(ctx, "a"))
	require.NoError(t, c.Resume(ctx, "a", false))
	require.NoError(t, c.Resume(ctx, "a", true))
	require.NoError(t, c.Restart(ctx, "a"))
	require.NoError(t, c.Terminate(ctx, "a"))
	require.NoError(t, c.Delete(ctx, "a"))
	_, err := c.Screen(ctx, "a", 7)
	require.NoError(t, err)
	result, err := c.Prune(ctx, false)
	require.NoError(t, err)
	assert.Len(t, result.WouldRemove, 1)
	result, err = c.Prune(ctx, true)
	require.NoError(t, err)
	assert.Len(t, result.Removed, 1)
	assert.Equal(t, []string{
		"SetSuspend:a:true", "SetSuspend:a:false", "Resume:a:false", "Resume:a:true", "Restart:a", "Terminate:a",
		"Delete:a", "Screen:a:7", "Prune:false", "Prune:true",
	}, f.calls())
}

func TestTheClientGivesTheDaemonsErrorsAsTheyAre(t *testing.T) {
	f := newFake("a")
	f.fail = NewError(ReasonProvisioningFailed, "a", "session \"a\" did not come up")
	c := NewClient(serve(t, Handler(f)))
	defer c.Close()
	err := c.Restart(t.Context(), "a")
	assert.Equal(t, ReasonProvisioningFailed, ReasonOf(err))
	require.EqualError(t, err, "session \"a\" did not come up")
	_, err = c.Session(t.Context(), "nobody")
	assert.Equal(t, ReasonNotFound, ReasonOf(err))
	_, err = c.Sessions(t.Context(), "===")
	assert.Equal(t, metav1.StatusReasonBadRequest, ReasonOf(err))
}

func TestANameThatNoSessionCanHaveIsNotSent(t *testing.T) {
	f := newFake("a")
	c := NewClient(serve(t, Handler(f)))
	defer c.Close()
	for _, name := range []string{"", ".", "..", "a/log", "../..", "My.App", "a?x=y", "a%2e"} {
		assert.Equal(t, ReasonNotFound, ReasonOf(c.Delete(t.Context(), name)), name)
	}
	assert.Empty(t, f.calls())
}

func TestNoDaemonIsOneSentenceThatNamesTheSocketAndTheNextStep(t *testing.T) {
	missing := filepath.Join(filepath.Dir(socketPath(t)), "none.sock")
	_, err := NewClient(missing).Sessions(t.Context(), "")
	require.ErrorIs(t, err, ErrNoDaemon)
	require.EqualError(t, err, fmt.Sprintf(
		"No muxlet daemon answers on %s: start one with \"muxlet daemon\" (or point --runtime-dir at the running one).", missing))

	stale := socketPath(t)
	l, err := Listen(stale)
	require.NoError(t, err)
	leaveStale(t, l)
	require.ErrorIs(t, NewClient(stale).Delete(t.Context(), "a"), ErrNoDaemon)
}

func TestASocketOfSomebodyElseIsSaidToBe(t *testing.T) {
	err := &noDaemonError{"/run/muxlet.sock", "muxlet daemon", &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", os.ErrPermission)}}
	require.ErrorIs(t, err, ErrNoDaemon)
	assert.EqualError(t, err, "The socket /run/muxlet.sock may not be opened by this user: it is its daemon's owner's alone (point --runtime-dir at a daemon of your own).")
}

func TestADaemonThatDoesNotAnswerIsADeadline(t *testing.T) {
	path := socketPath(t)
	l, err := Listen(path)
	require.NoError(t, err)
	defer l.Close()
	c := NewClient(path)
	c.timeout = 50 * time.Millisecond
	_, err = c.Sessions(t.Context(), "")
	assert.Equal(t, ReasonDeadlineExceeded, ReasonOf(err))
	assert.ErrorContains(t, err, "did not answer within 50ms")
}

func TestACallEndsWithItsContext(t *testing.T) {
	path := socketPath(t)
	l, err := Listen(path)
	require.NoError(t, err)
	defer l.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = NewClient(path).Sessions(ctx, "")
	require.ErrorIs(t, err, context.Canceled)
	assert.NotErrorIs(t, err, ErrNoDaemon)
}

func TestAnAnswerThatIsNoneOfOursIsAnError(t *testing.T) {
	path := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == healthPath {
			w.WriteHeader(http.StatusBadGateway)
		}
		_, _ = w.Write([]byte("<html>"))
	}))
	c := NewClient(path)
	defer c.Close()
	require.ErrorContains(t, c.Healthy(t.Context()), "HTTP 502")
	_, err := c.Sessions(t.Context(), "")
	assert.ErrorContains(t, err, "read the daemon's answer")
}

func TestADaemonThatEndsWhileItIsAskedIsOneSentence(t *testing.T) {
	path := serve(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	c := NewClient(path)
	defer c.Close()
	_, err := c.Sessions(t.Context(), "")
	require.EqualError(t, err, fmt.Sprintf("the muxlet daemon on %s has ended while it was asked: see whether it runs, and try again", path))
}

// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/controller/envtest"
	"github.com/muxlet/muxlet/controller/plan"
	"github.com/muxlet/muxlet/controller/server"
	"github.com/muxlet/muxlet/spec"
)

// talker is a fake session whose client shows a text.
func talker(e *envtest.Env, name, text string) *spec.Session {
	return e.Fake(name, envtest.Script{Prints: text})
}

// shows waits until the session's pane shows a text.
func shows(e *envtest.Env, name, text string) {
	e.Helper()
	e.Eventually(name+" shows "+text, func() bool {
		screen, err := e.Controller().Screen(e.Context(), name, 1000)
		return err == nil && strings.Contains(screen, text)
	})
}

// hadShown waits until the last incarnation's screen has a text.
func hadShown(e *envtest.Env, name, text string) string {
	e.Helper()
	var screen string
	e.Eventually("the last client of "+name+" had shown "+text, func() bool {
		var err error
		screen, err = e.Controller().PreviousScreen(e.Context(), name, 1000)
		return err == nil && strings.Contains(screen, text)
	})
	return screen
}

// screenFiles are those in the state directory.
func screenFiles(e *envtest.Env) []string {
	e.Helper()
	files, err := filepath.Glob(filepath.Join(e.State, "screens", "*"))
	require.NoError(e, err)
	return files
}

func TestTheScreenOfAClientThatDiesIsKeptThoughTheNextOneOverwritesIt(t *testing.T) {
	t.Parallel()
	e := envtest.Start(t, envtest.Config{})
	e.Apply(talker(e, "a", "secret words\nboom"))
	e.WaitFor("a", envtest.Running)
	shows(e, "a", "boom")
	_, err := e.Controller().PreviousScreen(t.Context(), "a", 10)
	assert.Equal(t, server.ReasonNotFound, server.ReasonOf(err))
	require.ErrorContains(t, err, "no incarnation of it has ended yet")
	pane := e.Panes("a")[0]
	e.Tmux("split-window", "-d", "-h", "-t", pane.PaneID, "--", "sleep", "1000")
	layout := e.Tmux("display-message", "-p", "-t", pane.PaneID, "#{window_layout}")

	quiet := e.Fake("a", envtest.Script{})
	quiet.Spec.UpdateStrategy.Type = spec.UpdateOnRestart
	e.Apply(quiet)
	e.WaitFor("a", envtest.Check{Words: "has the new generation", Holds: func(s spec.Session) bool { return s.Generation == 2 }})
	e.Kill(e.Client("a").Process)
	e.WaitFor("a", envtest.Incarnation(2))
	assert.Equal(t, "secret words\nboom", hadShown(e, "a", "boom"))
	last, err := e.Controller().PreviousScreen(t.Context(), "a", 1)
	require.NoError(t, err)
	assert.Equal(t, "boom", last)
	assert.Equal(t, layout, e.Tmux("display-message", "-p", "-t", pane.PaneID, "#{window_layout}"))
	s, _ := e.Session("a")
	assert.Empty(t, s.Status.Evidence.LastScreen, "that is for a client that is down")

	files := screenFiles(e)
	require.Len(t, files, 1)
	info, err := os.Stat(files[0])
	require.NoError(t, err)
	assert.Equal(t, fs.FileMode(0o600), info.Mode())
	info, err = os.Stat(filepath.Dir(files[0]))
	require.NoError(t, err)
	assert.Equal(t, fs.FileMode(0o700), info.Mode().Perm())
	assert.NotContains(t, e.Log(), "secret words")
	for _, event := range e.Controller().Events("a").Items {
		assert.NotContains(t, event.Message, "secret words")
	}
	assert.Empty(t, e.Tmux("list-buffers"))

	// One file per session: the incarnation that ended last. This one showed nothing.
	e.Restart()
	e.WaitFor("a", envtest.Incarnation(2))
	hadShown(e, "a", "boom")
	e.Kill(e.Client("a").Process)
	e.WaitFor("a", envtest.Incarnation(3))
	e.Eventually("its screen is that of incarnation 2", func() bool {
		screen, err := e.Controller().PreviousScreen(t.Context(), "a", 1000)
		return err == nil && !strings.Contains(screen, "boom")
	})
	assert.Equal(t, files, screenFiles(e))
}

func TestTheScreenOfAClientThatIsStoppedIsKept(t *testing.T) {
	for name, stop := range map[string]func(e *envtest.Env){
		"suspended": func(e *envtest.Env) {
			require.NoError(e, e.Controller().SetSuspend(e.Context(), "a", true))
			e.WaitFor("a", envtest.Shows(spec.StatusSuspended))
		},
		"terminated": func(e *envtest.Env) {
			require.NoError(e, e.Controller().Terminate(e.Context(), "a"))
			e.WaitFor("a", envtest.Shows(spec.StatusTerminated))
		},
		"restarted": func(e *envtest.Env) {
			require.NoError(e, e.Controller().Restart(e.Context(), "a"))
			e.WaitFor("a", envtest.Incarnation(2))
		},
		"completed": func(e *envtest.Env) {
			s := e.Fake("b", envtest.Script{Ends: true, Prints: "last words"})
			s.Spec.RestartPolicy = spec.RestartNever
			e.Apply(s)
			e.WaitFor("b", envtest.Shows(spec.StatusCompleted))
			hadShown(e, "b", "last words")
			e.Kill(e.Client("a").Process)
			e.WaitFor("a", envtest.Incarnation(2))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := envtest.Start(t, envtest.Config{})
			e.Apply(talker(e, "a", "last words"))
			e.WaitFor("a", envtest.Running)
			shows(e, "a", "last words")
			stop(e)
			hadShown(e, "a", "last words")
			// What is on disk is all that a new daemon has once the pane is gone.
			e.Eventually("it is saved", func() bool { return len(screenFiles(e)) >= 1 })
			e.Drop()
			e.KillServer()
			e.Boot()
			hadShown(e, "a", "last words")
		})
	}
}

// describe shows why a client is down, though its pane went with the tmux server
// and another daemon has seen it.
func TestTheLastWordsOfAClientAreShownByALaterDaemon(t *testing.T) {
	t.Parallel()
	e := envtest.Start(t, envtest.Config{})
	e.Apply(talker(e, "a", "last words"))
	e.WaitFor("a", envtest.Running)
	shows(e, "a", "last words")
	require.NoError(t, e.Controller().Terminate(t.Context(), "a"))
	lastScreen := envtest.Check{Words: "shows its last words", Holds: func(s spec.Session) bool {
		return s.Status.Evidence != nil && slices.Contains(s.Status.Evidence.LastScreen, "last words")
	}}
	e.WaitFor("a", envtest.Shows(spec.StatusTerminated), lastScreen)
	e.Restart()
	e.WaitFor("a", envtest.Shows(spec.StatusTerminated), lastScreen)
	e.Drop()
	e.KillServer()
	e.Boot()
	e.WaitFor("a", envtest.Shows(spec.StatusTerminated), lastScreen)

	require.NoError(t, e.Controller().Resume(t.Context(), "a", false))
	s := e.WaitFor("a", envtest.Incarnation(2))
	assert.Empty(t, s.Status.Evidence.LastScreen)
}

func TestAScreenLivesAsLongAsTheSessionsRecord(t *testing.T) {
	t.Parallel()
	e := envtest.Start(t, envtest.Config{})
	e.Apply(talker(e, "a", "last words"))
	e.WaitFor("a", envtest.Running)
	shows(e, "a", "last words")
	require.NoError(t, e.Controller().Delete(t.Context(), "a"))
	e.WaitNoSession("a")
	require.Len(t, screenFiles(e), 1, "it was saved when its pane was removed")

	// Declared again it has its record, and so its screen.
	e.Restart()
	e.Apply(e.Fake("a", envtest.Script{}))
	e.WaitFor("a", envtest.Incarnation(2))
	hadShown(e, "a", "last words")
	require.NoError(t, e.Controller().Delete(t.Context(), "a"))
	e.WaitNoSession("a")

	e.Drop()
	archived, err := filepath.Glob(filepath.Join(e.State, "archive", "*.json"))
	require.NoError(t, err)
	require.Len(t, archived, 1)
	require.NoError(t, os.Remove(archived[0]))
	e.Boot()
	e.Eventually("the screen is removed with the archived record", func() bool { return len(screenFiles(e)) == 0 })
}

// M3: a screen that cannot be saved stops nothing.
func TestAClientIsReplacedThoughItsScreenCannotBeSaved(t *testing.T) {
	t.Parallel()
	e := envtest.Make(t, envtest.Config{})
	require.NoError(t, os.WriteFile(filepath.Join(e.State, "screens"), nil, 0o600))
	e.Boot()
	e.Apply(talker(e, "a", "secret words"))
	e.WaitFor("a", envtest.Running)
	shows(e, "a", "secret words")
	e.Kill(e.Client("a").Process)
	e.WaitFor("a", envtest.Incarnation(2))
	_, err := e.Controller().PreviousScreen(t.Context(), "a", 10)
	assert.Equal(t, server.ReasonNotFound, server.ReasonOf(err))
	require.ErrorContains(t, err, "the screen of incarnation 1 was not saved")
	require.NoError(t, e.Controller().Terminate(t.Context(), "a"))
	e.WaitFor("a", envtest.Shows(spec.StatusTerminated))
	assert.NotContains(t, e.Log(), "secret words")
	assert.Contains(t, e.Log(), "Screen was not saved")
}

// The screen of an attempt without a client does not take the place of a client's.
func TestAFailedStartKeepsTheScreenOfTheLastClient(t *testing.T) {
	t.Parallel()
	e := envtest.Start(t, envtest.Config{Policy: plan.Policy{BackOffInitial: time.Hour, BackOffMax: time.Hour}})
	e.Apply(talker(e, "a", "last words"))
	e.WaitFor("a", envtest.Running)
	shows(e, "a", "last words")
	broken := e.Fake("a", envtest.Script{})
	broken.Spec.Client.Command = []string{"/no/such/program"}
	e.Apply(broken)
	e.WaitFor("a", envtest.Shows(spec.StatusBlocked))
	e.Restart()
	e.WaitFor("a", envtest.Shows(spec.StatusBlocked))
	hadShown(e, "a", "last words")
	e.Apply(e.Fake("a", envtest.Script{}))
	e.WaitFor("a", envtest.Incarnation(2))
	hadShown(e, "a", "last words")
}

func TestASessionWithoutAScreenSaysWhy(t *testing.T) {
	t.Parallel()
	e := envtest.Start(t, envtest.Config{})
	never := e.Fake("never", envtest.Script{})
	never.Spec.Suspend = true
	e.Apply(never)
	down := talker(e, "down", "last words")
	e.Apply(down)
	e.WaitFor("never", envtest.Shows(spec.StatusSuspended))
	e.WaitFor("down", envtest.Running)
	shows(e, "down", "last words")
	require.NoError(t, e.Controller().Terminate(t.Context(), "down"))
	e.WaitFor("down", envtest.Shows(spec.StatusTerminated))
	shows(e, "down", "last words") // its dead pane stays

	_, err := e.Controller().Screen(t.Context(), "never", 10)
	assert.Equal(t, server.ReasonConflict, server.ReasonOf(err))
	require.ErrorContains(t, err, "suspend")
	require.ErrorContains(t, err, "it has not had a client yet")
	hadShown(e, "down", "last words")
	e.KillServer()
	e.Restart()
	e.WaitFor("down", envtest.Shows(spec.StatusTerminated))
	e.Eventually("its pane is seen to be gone", func() bool {
		_, err = e.Controller().Screen(t.Context(), "down", 10)
		return server.ReasonOf(err) == server.ReasonConflict
	})
	require.ErrorContains(t, err, "it has no pane now")
	require.ErrorContains(t, err, "`muxlet logs down --previous` prints what incarnation 1 showed last")
	_, err = e.Controller().Screen(t.Context(), "nobody", 10)
	assert.Equal(t, server.ReasonNotFound, server.ReasonOf(err))
	_, err = e.Controller().PreviousScreen(t.Context(), "nobody", 10)
	assert.Equal(t, server.ReasonNotFound, server.ReasonOf(err))
}

// heard is what a follower was told.
type heard struct {
	mu     sync.Mutex
	frames []server.LogFrame
}

func (h *heard) take(f server.LogFrame) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.frames = append(h.frames, f)
	return nil
}

// text is all lines, with a mark where an incarnation begins.
func (h *heard) text() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var b strings.Builder
	for _, f := range h.frames {
		if f.Incarnation > 0 {
			b.WriteString("#" + string(rune('0'+f.Incarnation)) + "\n")
		}
		for _, line := range f.Lines {
			b.WriteString(line + "\n")
		}
		if f.Removed {
			b.WriteString("removed\n")
		}
	}
	return b.String()
}

func TestAFollowerHearsEachLineOnceOverDeathsServersAndTheRemoval(t *testing.T) {
	t.Parallel()
	e := envtest.Start(t, envtest.Config{})
	e.Apply(talker(e, "a", "one\ntwo"))
	e.WaitFor("a", envtest.Running)
	shows(e, "a", "two")
	var h heard
	over := make(chan error, 1)
	go func() { over <- e.Controller().Follow(e.Context(), "a", 1, h.take) }()
	becomes := func(want string) {
		t.Helper()
		defer func() {
			if t.Failed() {
				t.Logf("It heard:\n%s", h.text())
			}
		}()
		e.Eventually("the follower heard "+want, func() bool { return h.text() == want })
	}
	becomes("#1\ntwo\n")

	tty := e.Tmux("display-message", "-p", "-t", e.Panes("a")[0].PaneID, "#{pane_tty}")
	require.NoError(t, os.WriteFile(tty, []byte("three\r\n\x1b[31mfour\x1b[0m\r\n"), 0))
	becomes("#1\ntwo\nthree\nfour\n")

	// What a client writes in its last moment is not lost with it.
	require.NoError(t, os.WriteFile(tty, []byte("boom\r\n"), 0))
	e.Kill(e.Client("a").Process)
	e.WaitFor("a", envtest.Incarnation(2))
	becomes("#1\ntwo\nthree\nfour\nboom\n#2\none\ntwo\n")

	e.KillServer()
	e.WaitFor("a", envtest.Incarnation(3))
	becomes("#1\ntwo\nthree\nfour\nboom\n#2\none\ntwo\n#3\none\ntwo\n")
	require.NoError(t, e.Controller().Delete(t.Context(), "a"))
	require.NoError(t, <-over)
	assert.Equal(t, "#1\ntwo\nthree\nfour\nboom\n#2\none\ntwo\n#3\none\ntwo\nremoved\n", h.text())
}

func TestAFollowerThatLeavesOrCannotBeToldEndsTheLooks(t *testing.T) {
	t.Parallel()
	e := envtest.Start(t, envtest.Config{})
	e.Apply(talker(e, "a", "one"))
	e.WaitFor("a", envtest.Running)
	shows(e, "a", "one")
	ctx, leave := context.WithCancel(t.Context())
	require.ErrorIs(t, e.Controller().Follow(ctx, "a", 10, func(server.LogFrame) error { leave(); return nil }), context.Canceled)
	require.ErrorIs(t, e.Controller().Follow(t.Context(), "a", 10, func(server.LogFrame) error { return fs.ErrClosed }), fs.ErrClosed)
	err := e.Controller().Follow(t.Context(), "nobody", 10, nil)
	assert.Equal(t, server.ReasonNotFound, server.ReasonOf(err))
}

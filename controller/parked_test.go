// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/actuate"
	"github.com/muxlet/muxlet/controller/envtest"
	"github.com/muxlet/muxlet/controller/record"
	"github.com/muxlet/muxlet/controller/server"
	"github.com/muxlet/muxlet/spec"
)

// The spawn of session a is parked inside its call of tmux while something else is
// asked for; that is answered, and on disk, before the call returns.

// eachMoment runs a test for both moments at which a call is parked, each once going on
// and, if that is asked for, once with a daemon that crashes while it is parked: what was
// answered holds then too.
func eachMoment(t *testing.T, prefix string, crashes bool, test func(t *testing.T, m envtest.Moment, goOn func(e *envtest.Env, p *envtest.Parking))) {
	t.Helper()
	for _, m := range envtest.Moments {
		t.Run(prefix+string(m), func(t *testing.T) {
			t.Parallel()
			test(t, m, func(_ *envtest.Env, p *envtest.Parking) { p.Release() })
		})
		if !crashes {
			continue
		}
		t.Run(prefix+string(m)+", and the daemon crashes", func(t *testing.T) {
			t.Parallel()
			test(t, m, func(e *envtest.Env, p *envtest.Parking) { e.Restart() })
		})
	}
}

// handingOver are the actions by which a turn is handed over.
var handingOver = []actuate.Kind{actuate.ActionPaste, actuate.ActionSubmit}

// turnFiles are the turns and prompts on disk. What keeps a number from being used twice
// is neither.
func turnFiles(e *envtest.Env) []string {
	e.Helper()
	turns, err := filepath.Glob(filepath.Join(e.State, "turns", "*", "*.json"))
	require.NoError(e, err)
	prompts, err := filepath.Glob(filepath.Join(e.State, "turns", "*", "*.prompt"))
	require.NoError(e, err)
	return append(turns, prompts...)
}

// promptly is what a request came to that must not have waited for tmux.
func promptly(e *envtest.Env, ask func() error) error {
	e.Helper()
	began := time.Now()
	err := ask()
	assert.Less(e, time.Since(began), 3*time.Second, "the request waited for the call")
	return err
}

// nothingIsLeft of session a: in tmux, in the process table, on disk, for a daemon that
// starts next.
func nothingIsLeft(e *envtest.Env) {
	e.Helper()
	e.WaitNoSession("a")
	clean := func() bool {
		return len(e.Clients("a")) == 0 && len(e.Marked()) == 0 && e.Records() == 0 && len(e.Controller().Sessions().Items) == 0
	}
	e.Eventually("nothing is left", clean)
	e.Always(stays, "nothing comes of it", clean)
	assert.Empty(e, e.Panes(""))
	e.Restart()
	e.Always(stays, "the next daemon knows nothing of it", clean)
}

// oneIsLeft: session a has one client, in one pane, and the record names it.
func oneIsLeft(e *envtest.Env) {
	e.Helper()
	one := func() bool {
		return len(e.Clients("a")) == 1 && len(e.Marked()) == 1 && envtest.Holds(e, "a", envtest.Running)()
	}
	e.Eventually("one client runs", one)
	e.Always(stays, "it stays the only one", one)
	assert.Len(e, e.Panes(""), 1)
	assert.Equal(e, e.Client("a").Process, e.Record("a").Client.Process)
}

// N2
func TestADeleteWhileTheSpawnIsParkedLeavesNothing(t *testing.T) {
	eachMoment(t, "", true, func(t *testing.T, m envtest.Moment, goOn func(*envtest.Env, *envtest.Parking)) {
		e := blank(t)
		p := e.Park(m, envtest.Starting...)
		e.Apply(e.Fake("a", envtest.Script{}))
		p.Wait()
		require.NoError(t, promptly(e, func() error { return e.Controller().Delete(t.Context(), "a") }))
		goOn(e, p)
		nothingIsLeft(e)
	})
}

// N2
func TestADeleteWhileAResumeIsParkedLeavesNothing(t *testing.T) {
	eachMoment(t, "", true, func(t *testing.T, m envtest.Moment, goOn func(*envtest.Env, *envtest.Parking)) {
		a := startAgents(t, envtest.Config{})
		a.ready(a.claude("a"))
		a.turn("a", "one")
		id := a.begun("a")
		require.NoError(t, a.Controller().Terminate(t.Context(), "a"))
		a.WaitFor("a", envtest.Shows(spec.StatusTerminated))
		p := a.Park(m, envtest.Starting...)
		require.NoError(t, a.Controller().Resume(t.Context(), "a", false))
		p.Wait()
		require.NoError(t, promptly(a.Env, func() error { return a.Controller().Delete(t.Context(), "a") }))
		goOn(a.Env, p)
		nothingIsLeft(a.Env)
		assert.LessOrEqual(t, len(a.spoken("a", "start")), 2)

		// What was deleted is not lost: declared again it has its conversation.
		a.ready(a.claude("a"))
		assert.Equal(t, id, a.Record("a").Conversation.ID)
	})
}

// N2
func TestTwoResumesWhileTheSpawnIsParkedAreOneClient(t *testing.T) {
	eachMoment(t, "", true, func(t *testing.T, m envtest.Moment, goOn func(*envtest.Env, *envtest.Parking)) {
		e := oneRests(t)
		p := e.Park(m, envtest.Starting...)
		require.NoError(t, e.Controller().Resume(t.Context(), "a", false))
		p.Wait()
		for range 2 {
			err := promptly(e, func() error { return e.Controller().Resume(t.Context(), "a", false) })
			assert.Equal(t, server.ReasonAlreadyRunning, server.ReasonOf(err))
		}
		goOn(e, p)
		oneIsLeft(e)
		assert.Len(t, e.Starts("a"), 2)
	})
}

// N2, A13
func TestASuspendWhileTheSpawnIsParkedKeepsTheSessionDown(t *testing.T) {
	eachMoment(t, "", true, func(t *testing.T, m envtest.Moment, goOn func(*envtest.Env, *envtest.Parking)) {
		e := blank(t)
		p := e.Park(m, envtest.Starting...)
		e.Apply(e.Fake("a", envtest.Script{}))
		p.Wait()
		require.NoError(t, promptly(e, func() error { return e.Controller().SetSuspend(t.Context(), "a", true) }))
		goOn(e, p)
		staysDown(e, spec.StatusSuspended)
	})
}

// N1
func TestATerminateWhileTheSpawnIsParkedKeepsTheSessionDown(t *testing.T) {
	eachMoment(t, "", true, func(t *testing.T, m envtest.Moment, goOn func(*envtest.Env, *envtest.Parking)) {
		e := blank(t)
		p := e.Park(m, envtest.Starting...)
		e.Apply(e.Fake("a", envtest.Script{}))
		p.Wait()
		require.NoError(t, promptly(e, func() error { return e.Controller().Terminate(t.Context(), "a") }))
		goOn(e, p)
		staysDown(e, spec.StatusTerminated)
	})
}

// staysDown: session a has no client and gets none, now or by the next daemon.
func staysDown(e *envtest.Env, shows spec.Status) {
	e.Helper()
	down := func() bool {
		return len(e.Clients("a")) == 0 && len(e.Marked()) == 0 && envtest.Holds(e, "a", envtest.Shows(shows))()
	}
	// A busy tmux may not answer once, and what it shows then is not known.
	stillDown := func() bool {
		return down() || len(e.Clients("a")) == 0 && len(e.Marked()) == 0 && envtest.Holds(e, "a", envtest.Shows(spec.StatusUnknown))()
	}
	e.Eventually("it is down", down)
	e.Always(stays, "it stays down", stillDown)
	e.Restart()
	e.Eventually("it is down", down)
	e.Always(stays, "it stays down", stillDown)
	assert.LessOrEqual(e, len(e.Starts("a")), 1)
	assert.Nil(e, e.Record("a").Attempt)
}

// P1
func TestASpecEditWhileTheSpawnIsParkedEndsInOneClientOfTheNewSpec(t *testing.T) {
	eachMoment(t, "", true, func(t *testing.T, m envtest.Moment, goOn func(*envtest.Env, *envtest.Parking)) {
		e := blank(t)
		p := e.Park(m, envtest.Starting...)
		s := e.Fake("a", envtest.Script{})
		s.Spec.UpdateStrategy.Type = spec.UpdateRecreate
		e.Apply(s)
		p.Wait()
		s.Spec.Client.Args = []string{"edited"}
		e.Apply(s)
		e.Eventually("the edit is read", func() bool {
			s, ok := e.Session("a")
			return ok && len(s.Spec.Client.Args) == 1
		})
		goOn(e, p)
		e.Eventually("the new spec runs", func() bool {
			clients := e.Clients("a")
			require.LessOrEqual(t, len(clients), 1)
			return len(clients) == 1 && clients[0].Argv[len(clients[0].Argv)-1] == "edited"
		})
		oneIsLeft(e)
	})
}

// N6
func TestRestartsWhileTheSpawnIsParkedAreTheStartThatHappens(t *testing.T) {
	eachMoment(t, "", true, func(t *testing.T, m envtest.Moment, goOn func(*envtest.Env, *envtest.Parking)) {
		e := oneRuns(t)
		p := e.Park(m, envtest.Starting...)
		require.NoError(t, e.Controller().Restart(t.Context(), "a"))
		p.Wait()
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				assert.NoError(t, promptly(e, func() error { return e.Controller().Restart(t.Context(), "a") }))
			})
		}
		all.Wait()
		goOn(e, p)
		oneIsLeft(e)
		assert.Len(t, e.Starts("a"), 2)
	})
}

// The client of the incarnation that is being resumed is killed before its spawn has
// returned: it is brought back, once.
func TestAClientThatIsKilledWhileItsSpawnIsParkedIsReplacedOnce(t *testing.T) {
	t.Parallel()
	e := oneRests(t)
	p := e.Park(envtest.AfterEffect, envtest.Starting...)
	require.NoError(t, e.Controller().Resume(t.Context(), "a", false))
	p.Wait()
	e.Eventually("the client was executed", func() bool { return len(e.Starts("a")) == 2 })
	e.Kill(e.Client("a").Process)
	p.Release()
	e.Eventually("another client runs", func() bool { return len(e.Starts("a")) == 3 })
	oneIsLeft(e)
	assert.EqualValues(t, 3, e.Client("a").Incarnation)
}

// An intent is about the incarnation that ran when it was given, also when the daemon
// finds it on disk after that one has ended.
func TestAnIntentAboutOneIncarnationNeverEndsTheNext(t *testing.T) {
	t.Parallel()
	e := oneRuns(t)
	first := e.Client("a")
	// Nobody is ended: the daemon crashes right after the answer.
	crash := e.CrashAfter(1)
	require.NoError(t, e.Controller().Restart(t.Context(), "a"))
	e.Eventually("the controller crashes", func() bool {
		select {
		case <-crash:
			return true
		default:
			return false
		}
	})
	e.Drop()
	e.Kill(first.Process)
	e.WaitGone(first.Process)
	e.Boot()
	oneIsLeft(e)
	assert.EqualValues(t, 2, e.Client("a").Incarnation)
	assert.Len(t, e.Starts("a"), 2)
	assert.Nil(t, e.Record("a").Intent)
}

var errDisk = errors.New("no space left on device")

// M3: the record that says that a client runs cannot be written. The client goes on and
// is the session's, whether the daemon goes on or the next one finds it.
func TestAFailingRecordWriteAfterTheSpawnLosesAndDoublesNothing(t *testing.T) {
	for _, crash := range []bool{false, true} {
		t.Run(label("the same daemon", !crash)+label("the next daemon", crash), func(t *testing.T) {
			t.Parallel()
			e := blank(t)
			e.OnAct(func(_ context.Context, a actuate.Action, do func() actuate.Outcome) actuate.Outcome {
				out := do()
				if a.Kind == actuate.ActionCreate {
					e.OnSave(func(record.Record, func() error) error { return errDisk })
				}
				return out
			})
			e.Apply(e.Fake("a", envtest.Script{}))
			e.WaitFor("a", envtest.Because(spec.ReasonStateUnwritable))
			client := e.Client("a")
			e.OnAct(nil)
			if crash {
				e.Drop()
			}
			e.OnSave(nil)
			if crash {
				e.Boot()
			}
			oneIsLeft(e)
			assert.Equal(t, client.Process, e.Client("a").Process)
			assert.Len(t, e.Launches("a"), 1)
		})
	}
}

// Invariant 5, M3: a start whose attempt is not on disk does not take place, whatever
// the disk has made of the write.
func TestAFailingRecordWriteBeforeTheSpawnStartsNothing(t *testing.T) {
	for name, fail := range map[string]envtest.Save{
		"nothing was written":                func(record.Record, func() error) error { return errDisk },
		"it was written, and the sync fails": func(_ record.Record, do func() error) error { return errors.Join(do(), errDisk) },
	} {
		for _, crash := range []bool{false, true} {
			t.Run(name+label(", the same daemon", !crash)+label(", the next daemon", crash), func(t *testing.T) {
				t.Parallel()
				e := oneRests(t)
				e.OnSave(func(r record.Record, do func() error) error {
					if r.Attempt == nil {
						return do()
					}
					return fail(r, do)
				})
				require.NoError(t, e.Controller().Resume(t.Context(), "a", false))
				e.WaitFor("a", envtest.Because(spec.ReasonStateUnwritable))
				assert.Len(t, e.Launches("a"), 1)
				if crash {
					e.Drop()
				}
				e.OnSave(nil)
				if crash {
					e.Boot()
				}
				oneIsLeft(e)
				assert.Len(t, e.Launches("a"), 2)
			})
		}
	}
}

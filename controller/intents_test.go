// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/muxlet/muxlet/controller"
	"github.com/muxlet/muxlet/controller/envtest"
	"github.com/muxlet/muxlet/controller/plan"
	"github.com/muxlet/muxlet/controller/server"
	"github.com/muxlet/muxlet/spec"
)

// verbs are what people ask of one session.
var verbs = map[string]func(c *controller.Controller, ctx context.Context, name string) error{
	"resume": func(c *controller.Controller, ctx context.Context, name string) error {
		return c.Resume(ctx, name, false)
	},
	"fresh": func(c *controller.Controller, ctx context.Context, name string) error {
		return c.Resume(ctx, name, true)
	},
	"attach": (*controller.Controller).Attach,
	"suspend": func(c *controller.Controller, ctx context.Context, name string) error {
		return c.SetSuspend(ctx, name, true)
	},
	"restart":   (*controller.Controller).Restart,
	"terminate": (*controller.Controller).Terminate,
	"delete":    (*controller.Controller).Delete,
}

// want is what a verb comes to.
type want struct {
	// code of the refusal; empty when it is accepted.
	code metav1.StatusReason
	// then is how the session is in the end; nil for gone.
	then *envtest.Check
}

// situation of a session when it is asked.
type situation struct {
	// prepare brings the sessions into it.
	prepare func(e *envtest.Env, names []string)
	// after is what happens once all were asked; nil for nothing.
	after func(e *envtest.Env, names []string)
	wants map[string]want
}

func situations() map[string]situation {
	is := func(c envtest.Check) *envtest.Check { return &c }
	first, second := is(envtest.Incarnation(1)), is(envtest.Incarnation(2))
	suspended, terminated := is(envtest.Shows(spec.StatusSuspended)), is(envtest.Shows(spec.StatusTerminated))
	blocked := is(envtest.Shows(spec.StatusBlocked))
	spent := func(shows spec.Status, n int64) *envtest.Check {
		return is(envtest.Check{Words: fmt.Sprintf("is %s after incarnation %d", shows, n), Holds: func(s spec.Session) bool {
			return spec.DisplayStatus(&s) == shows && s.Status.Client.Incarnation == n
		}})
	}
	// ends are the same wherever they are not refused.
	ends := func(with map[string]want) map[string]want {
		out := map[string]want{"suspend": {then: suspended}, "terminate": {then: terminated}, "delete": {}}
		maps.Copy(out, with)
		return out
	}
	all := func(then *envtest.Check, code metav1.StatusReason) map[string]want {
		return ends(map[string]want{"resume": {code, then}, "fresh": {code, then}, "attach": {code, then}, "restart": {code, then}})
	}
	apply := func(script envtest.Script, edit func(*spec.Session)) func(e *envtest.Env, names []string) {
		return func(e *envtest.Env, names []string) {
			for _, name := range names {
				s := e.Fake(name, script)
				edit(s)
				e.Apply(s)
			}
		}
	}
	waits := func(prepare func(*envtest.Env, []string), checks ...envtest.Check) func(*envtest.Env, []string) {
		return func(e *envtest.Env, names []string) {
			prepare(e, names)
			for _, name := range names {
				e.WaitFor(name, checks...)
			}
		}
	}
	var gate *envtest.Gate
	plain := waits(apply(envtest.Script{}, func(*spec.Session) {}), envtest.Running)
	return map[string]situation{
		"running": {prepare: plain, wants: ends(map[string]want{
			"resume": {server.ReasonAlreadyRunning, first}, "fresh": {server.ReasonAlreadyRunning, first}, "attach": {"", first}, "restart": {"", second},
		})},
		"starting": {
			prepare: func(e *envtest.Env, names []string) {
				gate = e.Hold(envtest.AtEntry, "")
				apply(envtest.Script{}, func(*spec.Session) {})(e, names)
				e.Eventually("all are starting", func() bool { return len(gate.Parked()) == len(names) })
			},
			after: func(e *envtest.Env, _ []string) { gate.Open() },
			wants: ends(map[string]want{
				"resume": {server.ReasonAlreadyRunning, first}, "fresh": {server.ReasonAlreadyRunning, first}, "attach": {"", first}, "restart": {"", first},
			}),
		},
		"being replaced": {
			prepare: func(e *envtest.Env, names []string) {
				waits(apply(envtest.Script{Ignore: []string{"SIGTERM"}}, func(s *spec.Session) { s.Spec.TerminationGracePeriodSeconds = ptr.To[int32](3600) }), envtest.Running)(e, names)
				for _, name := range names {
					e.Client(name)
					require.NoError(e, e.Controller().Restart(e.Context(), name))
					e.WaitFor(name, envtest.Because(spec.ReasonStopping))
				}
			},
			after: func(e *envtest.Env, names []string) {
				for _, name := range names {
					e.Kill(e.Starts(name)[0].Process)
				}
			},
			wants: all(second, ""),
		},
		"terminated": {prepare: func(e *envtest.Env, names []string) {
			plain(e, names)
			for _, name := range names {
				require.NoError(e, e.Controller().Terminate(e.Context(), name))
				e.WaitFor(name, *terminated)
			}
		}, wants: all(second, "")},
		"completed": {
			prepare: waits(apply(envtest.Script{Ends: true}, func(s *spec.Session) { s.Spec.RestartPolicy = spec.RestartNever }), envtest.Shows(spec.StatusCompleted)),
			wants:   all(spent(spec.StatusCompleted, 2), ""),
		},
		"in back-off": {
			prepare: waits(apply(envtest.Script{Ends: true, Exit: 1}, func(*spec.Session) {}), *spent(spec.StatusCrashLoopBackOff, 2)),
			wants:   all(spent(spec.StatusCrashLoopBackOff, 3), ""),
		},
		"suspended": {
			prepare: waits(apply(envtest.Script{}, func(s *spec.Session) { s.Spec.Suspend = true }), *suspended),
			wants: map[string]want{
				"resume": {server.ReasonSuspended, suspended}, "fresh": {server.ReasonSuspended, suspended}, "attach": {server.ReasonSuspended, suspended},
				"restart": {server.ReasonSuspended, suspended}, "suspend": {"", suspended}, "terminate": {"", suspended}, "delete": {},
			},
		},
		"without its directory": {
			prepare: waits(func(e *envtest.Env, names []string) {
				apply(envtest.Script{}, func(s *spec.Session) { s.Spec.Workspace.Directory = filepath.Join(e.Dir, "gone") })(e, names)
			}, *blocked),
			wants: all(blocked, server.ReasonWorkspaceMissing),
		},
		"without its program": {
			prepare: waits(apply(envtest.Script{}, func(s *spec.Session) { s.Spec.Client.Command = []string{"no-such-program"} }), *blocked),
			wants:   all(blocked, ""),
		},
		"being deleted": {
			prepare: func(e *envtest.Env, names []string) {
				waits(apply(envtest.Script{Ignore: []string{"SIGTERM"}}, func(s *spec.Session) { s.Spec.TerminationGracePeriodSeconds = ptr.To[int32](3600) }), envtest.Running)(e, names)
				for _, name := range names {
					e.Client(name)
					require.NoError(e, e.Controller().Delete(e.Context(), name))
				}
			},
			after: func(e *envtest.Env, names []string) {
				for _, name := range names {
					e.Kill(e.Starts(name)[0].Process)
				}
			},
			wants: map[string]want{
				"resume": {server.ReasonNotFound, nil}, "fresh": {server.ReasonNotFound, nil}, "attach": {server.ReasonNotFound, nil},
				"restart": {server.ReasonNotFound, nil}, "suspend": {server.ReasonConflict, nil}, "terminate": {"", nil}, "delete": {},
			},
		},
		"never declared": {prepare: func(*envtest.Env, []string) {}, wants: map[string]want{
			"resume": {server.ReasonNotFound, nil}, "fresh": {server.ReasonNotFound, nil}, "attach": {server.ReasonNotFound, nil},
			"restart": {server.ReasonNotFound, nil}, "suspend": {server.ReasonNotFound, nil}, "terminate": {server.ReasonNotFound, nil}, "delete": {server.ReasonNotFound, nil},
		}},
	}
}

// N1, N2: what is asked of a session is done, or refused with its code, whatever the
// session is doing; what was refused has left nothing behind.
func TestEachVerbIsAnsweredAndObeyedInEachSituation(t *testing.T) {
	hours := plan.Policy{BackOffInitial: time.Hour, BackOffMax: time.Hour, BackOffReset: 10 * time.Hour, UnknownGrace: envtest.Settle}
	for title, s := range situations() {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			e := envtest.Start(t, envtest.Config{Policy: hours})
			names := slices.Sorted(maps.Keys(verbs))
			s.prepare(e, names)
			before := map[string]string{}
			for _, name := range names {
				before[name] = intentsOf(e, name)
			}
			for _, verb := range names {
				err := verbs[verb](e.Controller(), t.Context(), verb)
				require.Contains(t, s.wants, verb)
				if code := s.wants[verb].code; code != "" {
					assert.Equal(t, code, server.ReasonOf(err), "%s: %v", verb, err)
					assert.Equal(t, before[verb], intentsOf(e, verb), "%s has left something behind", verb)
				} else {
					require.NoError(t, err, verb)
				}
			}
			if s.after != nil {
				s.after(e, names)
			}
			for _, verb := range names {
				if then := s.wants[verb].then; then != nil {
					e.WaitFor(verb, *then)
				} else {
					e.WaitNoSession(verb)
					assert.Empty(t, e.Clients(verb))
				}
			}
		})
	}
}

// intentsOf is what the record on disk has of what people asked for.
func intentsOf(e *envtest.Env, name string) string {
	e.Helper()
	if s, ok := e.Session(name); !ok || s.UID == "" {
		return ""
	}
	r := e.Record(name)
	return fmt.Sprintf("demand %v, intent %v, latch %v, suspended %t", r.Demand, r.Intent, r.Latch, r.Spec.Suspend)
}

// B10, N1: a resume that is refused does not come true later; asked again when its
// reason is gone, it does.
func TestARefusedResumeIsNotDoneLaterAndCanBeAskedForAgain(t *testing.T) {
	for name, down := range map[string]func(e *envtest.Env){
		"terminated": func(e *envtest.Env) {
			require.NoError(e, e.Controller().Terminate(e.Context(), "a"))
			e.WaitFor("a", envtest.Shows(spec.StatusTerminated))
		},
		"suspended": func(e *envtest.Env) {
			require.NoError(e, e.Controller().SetSuspend(e.Context(), "a", true))
			e.WaitFor("a", envtest.Shows(spec.StatusSuspended))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := blank(t)
			own := filepath.Join(e.Dir, "own")
			require.NoError(t, os.Mkdir(own, 0o700))
			s := e.Fake("a", envtest.Script{})
			s.Spec.Workspace.Directory = own
			e.Apply(s)
			e.WaitFor("a", envtest.Running)
			down(e)
			require.NoError(t, os.Remove(own))
			assert.Equal(t, server.ReasonWorkspaceMissing, server.ReasonOf(resume(e)))
			require.NoError(t, os.Mkdir(own, 0o700))
			e.Always(stays, "it stays down", func() bool { return len(e.Launches("a")) == 1 })
			require.NoError(t, resume(e))
			e.WaitFor("a", envtest.Incarnation(2))
		})
	}
}

// resume of session a as the API does it.
func resume(e *envtest.Env) error {
	s, err := e.Controller().Session("a")
	if err == nil && s.Spec.Suspend {
		err = e.Controller().SetSuspend(e.Context(), "a", false)
	}
	if err != nil {
		return err
	}
	if err := e.Controller().Resume(e.Context(), "a", false); server.ReasonOf(err) != server.ReasonAlreadyRunning {
		return err
	}
	return nil
}

// A client whose directory has vanished works on. To restart it would be its end.
func TestARestartThatCouldNotSucceedEndsNothing(t *testing.T) {
	t.Parallel()
	e := blank(t)
	own := filepath.Join(e.Dir, "own")
	require.NoError(t, os.Mkdir(own, 0o700))
	s := e.Fake("a", envtest.Script{})
	s.Spec.Workspace.Directory = own
	e.Apply(s)
	e.WaitFor("a", envtest.Running)
	client := e.Client("a")
	require.NoError(t, os.Remove(own))
	assert.Equal(t, server.ReasonWorkspaceMissing, server.ReasonOf(e.Controller().Restart(t.Context(), "a")))
	e.Always(stays, "the client goes on", func() bool { return len(e.Clients("a")) == 1 && e.Client("a").Process == client.Process })
}

// F4: while tmux is mute, nobody waits longer than five seconds. What starts something is
// refused and leaves nothing behind; what ends something is on disk, and done when tmux
// answers, by this daemon or the next.
func TestWhileTmuxIsMuteStartsAreRefusedAndEndsAreWrittenDown(t *testing.T) {
	for _, crash := range []bool{false, true} {
		t.Run(label("the same daemon", !crash)+label("the next daemon", crash), func(t *testing.T) {
			t.Parallel()
			e := envtest.Start(t, envtest.Config{TmuxTimeout: 30 * time.Second})
			starts, ends := []string{"resume", "fresh", "attach", "restart"}, []string{"terminate", "suspend", "delete"}
			e.Run(append(slices.Clone(starts), ends...)...)
			for _, name := range starts {
				require.NoError(t, e.Controller().Terminate(t.Context(), name))
				e.WaitFor(name, envtest.Shows(spec.StatusTerminated))
			}
			mute := e.Server()
			e.Signal(mute, "SIGSTOP")
			began, errs := time.Now(), make([]chan error, 0, len(starts))
			for _, verb := range starts {
				answer := make(chan error, 1)
				errs = append(errs, answer)
				go func() { answer <- verbs[verb](e.Controller(), t.Context(), verb) }()
			}
			for _, verb := range ends {
				require.NoError(t, verbs[verb](e.Controller(), t.Context(), verb), verb)
			}
			for i, answer := range errs {
				assert.Equal(t, server.ReasonTmuxUnavailable, server.ReasonOf(<-answer), starts[i])
			}
			assert.Less(t, time.Since(began), 5*time.Second)
			if crash {
				e.Drop()
			}
			e.Signal(mute, "SIGCONT")
			if crash {
				e.Boot()
			}
			e.WaitFor("terminate", envtest.Shows(spec.StatusTerminated))
			e.WaitFor("suspend", envtest.Shows(spec.StatusSuspended))
			e.WaitNoSession("delete")
			e.Always(stays, "nothing was left behind", func() bool {
				return !slices.ContainsFunc(starts, func(name string) bool { return len(e.Launches(name)) != 1 })
			})
			assert.Empty(t, e.Marked())
			require.NoError(t, e.Controller().Resume(t.Context(), "resume", false))
			e.WaitFor("resume", envtest.Incarnation(2))
		})
	}
}

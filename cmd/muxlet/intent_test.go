// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muxlet/muxlet/controller/server"
	"github.com/muxlet/muxlet/spec"
)

// afterLooks calls act at the nth look at a session that follows an intent, as a
// daemon that takes its time.
func afterLooks(f *fakeDaemon, n int32, act func(f *fakeDaemon, intent, name string)) {
	var armed atomic.Pointer[func()]
	var left atomic.Int32
	f.on = func(f *fakeDaemon, intent, name string) error {
		run := func() { act(f, intent, name) }
		left.Store(n)
		armed.Store(&run)
		return nil
	}
	f.seen = func(*fakeDaemon, string) {
		if armed.Load() == nil || left.Add(-1) > 0 {
			return
		}
		if run := armed.Swap(nil); run != nil {
			(*run)()
		}
	}
}

func stopping(name string) spec.Session {
	s := runningSession(name, 1, 5)
	condition(&s, spec.ConditionReady, metav1.ConditionFalse, spec.ReasonStopping, "")
	return s
}

func TestSuspendReturnsWhenTheClientIsGone(t *testing.T) {
	f := newFakeDaemon(runningSession("a", 1, 5))
	afterLooks(f, 5, func(f *fakeDaemon, _, name string) { f.set(suspendedSession(name)) })
	c := newCLI(t, f)
	assert.Equal(t, 0, c.run("suspend", "a"))
	assert.Equal(t, "session/a suspended\n", c.out)
	assert.Equal(t, []string{"suspend=true a"}, f.intents())
	assert.Equal(t, 0, c.run("suspend", "a"), "one that is down already")
	assert.Equal(t, "session/a is suspended already\n", c.out)
}

func TestSuspendDoesNotTakeACrashLoopsPauseForTheEnd(t *testing.T) {
	f := newFakeDaemon(crashLooping("a"))
	afterLooks(f, 5, func(f *fakeDaemon, _, name string) { f.set(suspendedSession(name)) })
	c := newCLI(t, f)
	assert.Equal(t, 0, c.run("suspend", "a"))
	final, err := f.Session("a")
	require.NoError(t, err)
	assert.Equal(t, spec.StatusSuspended, spec.DisplayStatus(&final), "it was not reported before it held")
}

func TestTerminateReturnsWhenTheClientIsGone(t *testing.T) {
	f := newFakeDaemon(runningSession("a", 1, 5), stalledSession("b", spec.ReasonCompleted, ""), stalledSession("c", spec.ReasonCommandNotFound, ""))
	afterLooks(f, 3, func(f *fakeDaemon, _, name string) { f.set(stalledSession(name, spec.ReasonTerminated, "")) })
	c := newCLI(t, f)
	assert.Equal(t, 0, c.run("terminate", "a"))
	assert.Equal(t, "session/a terminated\n", c.out)
	f.on, f.seen = nil, nil
	assert.Equal(t, 0, c.run("terminate", "b"), "one that is down already")
	assert.Equal(t, "session/b is down already (Completed)\n", c.out)
	assert.Equal(t, 0, c.run("terminate", "c"), "one that the world could bring back")
	assert.Equal(t, "session/c terminated\n", c.out)
}

func TestTerminateOfACrashLoopWaitsUntilItStaysDown(t *testing.T) {
	f := newFakeDaemon(crashLooping("a"))
	afterLooks(f, 4, func(f *fakeDaemon, _, name string) { f.set(stalledSession(name, spec.ReasonTerminated, "")) })
	c := newCLI(t, f)
	assert.Equal(t, 0, c.run("terminate", "a"))
	assert.Equal(t, "session/a terminated\n", c.out)
}

func TestDeleteReturnsWhenTheSessionIsGone(t *testing.T) {
	f := newFakeDaemon(runningSession("a", 1, 5))
	afterLooks(f, 4, func(f *fakeDaemon, _, name string) { f.remove(name) })
	c := newCLI(t, f)
	assert.Equal(t, 0, c.run("delete", "sessions/a"))
	assert.Equal(t, "session/a deleted\n", c.out)
	assert.Equal(t, exitNotFound, c.run("delete", "a"))
	assert.Contains(t, c.errOut, `Error: session "a" not found`)
}

func TestDeleteIsDoneWhenAnotherSessionHasTheName(t *testing.T) {
	f := newFakeDaemon(runningSession("a", 1, 5))
	afterLooks(f, 2, func(f *fakeDaemon, _, name string) {
		s := runningSession(name, 1, 6)
		s.UID = "another"
		f.set(s)
	})
	c := newCLI(t, f)
	assert.Equal(t, 0, c.run("delete", "a"))
}

func TestResumeReturnsWhenTheClientRuns(t *testing.T) {
	f := newFakeDaemon(suspendedSession("a"))
	afterLooks(f, 6, func(f *fakeDaemon, _, name string) { f.set(runningSession(name, 1, 4711)) })
	c := newCLI(t, f)
	assert.Equal(t, 0, c.run("resume", "a"))
	assert.Equal(t, "session/a resumed (incarnation 1, pid 4711)\n", c.out)
	assert.Equal(t, []string{"suspend=false a", "resume a"}, f.intents())
}

func TestResumeOfAJobThatEndsAtOnceIsASuccess(t *testing.T) {
	f := newFakeDaemon(stalledSession("a", spec.ReasonCompleted, ""))
	afterLooks(f, 2, func(f *fakeDaemon, _, name string) {
		s := stalledSession(name, spec.ReasonCompleted, "")
		s.Status.Client.Incarnation = 1
		f.set(s)
	})
	c := newCLI(t, f)
	assert.Equal(t, 0, c.run("resume", "a"))
	assert.Equal(t, "session/a resumed and completed (incarnation 1)\n", c.out)
}

// The client of a session that has one at a demand alone is not brought back: whether
// what was asked for went well, its end tells.
func TestResumeOfASessionOnDemandEndsWithItsClient(t *testing.T) {
	for code, want := range map[int32]struct {
		exit      int
		out, fail string
	}{
		0: {0, "session/a resumed and completed (incarnation 1)\n", ""},
		3: {exitRetryable, "", "Error: session \"a\" does not come up (Dormant): There is no client until a turn, resume or attach asks for one. It came up and has ended: muxlet logs a\n"},
	} {
		f := newFakeDaemon(dormantSession("a"))
		afterLooks(f, 2, func(f *fakeDaemon, _, name string) {
			s := dormantSession(name)
			ended(&s, 1, spec.Termination{ExitCode: &code, FinishedAt: before(0)})
			f.set(s)
		})
		c := newCLI(t, f)
		assert.Equal(t, want.exit, c.run("resume", "a"))
		assert.Equal(t, want.out, c.out)
		assert.Equal(t, want.fail, c.errOut)
	}
}

func TestResumeOfASessionOnDemandWaitsForItsClient(t *testing.T) {
	f := newFakeDaemon(dormantSession("a"))
	afterLooks(f, 6, func(f *fakeDaemon, _, name string) { f.set(runningSession(name, 1, 4711)) })
	c := newCLI(t, f)
	assert.Equal(t, 0, c.run("resume", "a"))
	assert.Equal(t, "session/a resumed (incarnation 1, pid 4711)\n", c.out)
}

func TestRestartReturnsWhenAnotherClientRuns(t *testing.T) {
	f := newFakeDaemon(runningSession("a", 1, 5))
	afterLooks(f, 8, func(f *fakeDaemon, _, name string) { f.set(runningSession(name, 2, 6)) })
	c := newCLI(t, f)
	assert.Equal(t, 0, c.run("restart", "a"))
	assert.Equal(t, "session/a restarted (incarnation 2, pid 6)\n", c.out, "the old client was not taken for the new one")
}

func TestResumeSaysWhyASessionCannotComeUp(t *testing.T) {
	for name, test := range map[string]struct {
		session spec.Session
		code    int
		message string
	}{
		"workspace": {
			stalledSession("a", spec.ReasonWorkspaceMissing, "The directory /home/me/src/a does not exist."), exitConflict,
			"Error: session \"a\" does not come up (WorkspaceMissing): The directory /home/me/src/a does not exist. See \"muxlet describe a\".\n",
		},
		"program": {
			stalledSession("a", spec.ReasonCommandNotFound, "npm is in none of /usr/bin, /bin"), exitRetryable,
			"Error: session \"a\" does not come up (CommandNotFound): npm is in none of /usr/bin, /bin. See \"muxlet describe a\".\n",
		},
		"document":  {invalidSession("a"), exitError, ""},
		"name":      {stalledSession("a", spec.ReasonNameConflict, "A tmux session called a is not muxlet's."), exitConflict, ""},
		"suspended": {suspendedSession("a"), exitConflict, ""},
		"tmux":      {unknownSession("a"), exitRetryable, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCLI(t, newFakeDaemon(test.session))
			c.prepare = func(g *globals) { g.pollPeriod = 5 * time.Millisecond }
			if name == "tmux" {
				c.prepare = func(g *globals) { g.pollPeriod = 100 * time.Millisecond; g.blindness = 200 * time.Millisecond }
			}
			assert.Equal(t, test.code, c.run("resume", "a"))
			if test.message != "" {
				assert.Equal(t, test.message, c.errOut)
			}
			assert.Contains(t, c.errOut, `session "a" does not come up`)
			assert.Empty(t, c.out)
		})
	}
}

func TestAStartThatDiesAgainIsAnAnswerAtOnce(t *testing.T) {
	s := crashLooping("a")
	f := newFakeDaemon(s)
	afterLooks(f, 3, func(f *fakeDaemon, _, name string) {
		again := crashLooping(name)
		ended(&again, 5, failed())
		again.Status.ConsecutiveDeaths = 5
		f.set(again)
	})
	c := newCLI(t, f)
	c.prepare = func(g *globals) { g.patience = time.Hour }
	assert.Equal(t, exitRetryable, c.run("resume", "a"))
	assert.Contains(t, c.errOut, `session "a" does not come up (CrashLoopBackOff): The client exited with status 1`)
	assert.Contains(t, c.errOut, "muxlet logs a")
}

func TestResumeWaitsForAnAttemptThatIsNear(t *testing.T) {
	f := newFakeDaemon(crashLooping("a"))
	afterLooks(f, 50, func(f *fakeDaemon, _, name string) { f.set(runningSession(name, 5, 9)) })
	c := newCLI(t, f)
	assert.Equal(t, 0, c.run("resume", "a"))

	far := crashLooping("b")
	far.Status.NextAttemptTime = pointer(metav1.NewTime(noon.Add(time.Minute)))
	f = newFakeDaemon(far)
	assert.Equal(t, exitRetryable, newCLI(t, f).run("resume", "b"))
}

func TestTheDaemonsRefusalHasItsExitCode(t *testing.T) {
	for reason, code := range map[metav1.StatusReason]int{
		server.ReasonAlreadyRunning: exitConflict, server.ReasonSuspended: exitConflict, server.ReasonConflict: exitConflict,
		server.ReasonWorkspaceMissing: exitConflict, server.ReasonForbidden: exitError, server.ReasonInvalid: exitError,
		server.ReasonTmuxUnavailable: exitRetryable, server.ReasonProvisioningFailed: exitRetryable,
		server.ReasonDeadlineExceeded: exitDeadline, server.ReasonNotFound: exitNotFound,
	} {
		for _, verb := range []string{"suspend", "resume", "restart", "terminate", "delete"} {
			f := newFakeDaemon(runningSession("a", 1, 5))
			f.on = func(*fakeDaemon, string, string) error { return server.NewError(reason, "a", "it does not want to") }
			c := newCLI(t, f)
			assert.Equal(t, code, c.run(verb, "a"), "%s %s", verb, reason)
			assert.Equal(t, "Error: session \"a\": it does not want to\n", c.errOut)
			assert.Empty(t, c.out)
		}
	}
}

func TestSeveralNamesAreEachDoneAndTheWorstCodeWins(t *testing.T) {
	f := newFakeDaemon(runningSession("a", 1, 5), runningSession("b", 1, 6), runningSession("c", 1, 7))
	f.on = func(f *fakeDaemon, _, name string) error {
		if name == "b" {
			return server.NewError(server.ReasonForbidden, name, "/m/b.yaml cannot be written")
		}
		f.set(suspendedSession(name))
		return nil
	}
	c := newCLI(t, f)
	assert.Equal(t, exitNotFound, c.run("suspend", "a", "b", "nobody", "c", "a"))
	assert.Equal(t, "session/a suspended\nsession/c suspended\n", c.out)
	assert.Equal(t, "Error: session \"b\": /m/b.yaml cannot be written\n"+
		"Error: session \"nobody\" not found: \"muxlet get\" lists those that exist\n", c.errOut)
	assert.ElementsMatch(t, []string{"suspend=true a", "suspend=true b", "suspend=true c"}, f.intents(), "each is asked once")
}

func TestAWaitEndsAndSaysWhatItWaitedFor(t *testing.T) {
	for verb, goal := range map[string]string{
		"suspend": "the end of the client", "terminate": "the end of the client", "delete": "the removal", "restart": "the start of a new client",
	} {
		c := newCLI(t, newFakeDaemon(stopping("a")))
		c.prepare = func(g *globals) { g.waitLimit = 50 * time.Millisecond }
		assert.Equal(t, exitDeadline, c.run(verb, "a"), verb)
		assert.Equal(t, "Error: "+goal+" of session \"a\" was not seen within 50ms (it is Stopping (Running): The client runs in its pane); "+
			"what was asked for goes on: see \"muxlet describe a\".\n", c.errOut)
	}
}

func TestALongWaitTellsWhatItWaitsFor(t *testing.T) {
	f := newFakeDaemon(runningSession("a", 1, 5))
	afterLooks(f, 6, func(f *fakeDaemon, _, name string) { f.set(suspendedSession(name)) })
	c := newCLI(t, f)
	c.prepare = func(g *globals) { g.notice = 2 * g.pollPeriod }
	assert.Equal(t, 0, c.run("suspend", "a"))
	assert.Equal(t, "Waiting for the end of the client of session \"a\": it is Running: The client runs in its pane.\n", c.errOut)
	assert.Equal(t, "session/a suspended\n", c.out)
}

func TestAnInterruptEndsTheWaitAndNotTheStop(t *testing.T) {
	f := newFakeDaemon(runningSession("a", 1, 5))
	ctx, interrupt := context.WithCancel(t.Context())
	afterLooks(f, 3, func(*fakeDaemon, string, string) { interrupt() })
	c := newCLI(t, f)
	assert.Equal(t, exitDeadline, c.runIn(ctx, "terminate", "a"))
	assert.Equal(t, "Error: the end of the client of session \"a\" was not waited for any longer (it is Running: The client runs in its pane); "+
		"what was asked for goes on: see \"muxlet describe a\".\n", c.errOut)
	assert.Equal(t, []string{"terminate a"}, f.intents())
}

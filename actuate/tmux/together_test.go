// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package tmux

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/actuate"
	"github.com/muxlet/muxlet/observe/tmux"
	"github.com/muxlet/muxlet/spec"
)

// crowd makes all of actions while a call that has to end first is under way, so
// that they share the next ones. It returns their outcomes and the number of
// those calls.
func (h *host) crowd(actions ...actuate.Action) (outcomes []actuate.Outcome, calls int) {
	run, began, go_ := h.starts.run, make(chan struct{}), make(chan struct{})
	h.starts.patience = time.Minute
	h.starts.run = func(ctx context.Context, line []string) tmux.Result {
		if line[0] == "first" {
			close(began)
			<-go_
			return tmux.Result{}
		}
		calls++
		return run(ctx, line)
	}
	var all sync.WaitGroup
	all.Go(func() { h.starts.do(h.Context(), []string{"first"}) })
	<-began
	outcomes = make([]actuate.Outcome, len(actions))
	for i, a := range actions {
		all.Go(func() { outcomes[i] = h.Do(h.Context(), a) })
		require.Eventually(h, func() bool {
			h.starts.mu.Lock()
			defer h.starts.mu.Unlock()
			return len(h.starts.waiting) == i+1
		}, time.Minute, time.Microsecond)
	}
	close(go_)
	all.Wait()
	return outcomes, calls
}

func TestStartsThatComeAtTheSameTimeShareFewCalls(t *testing.T) {
	h := newServer(t)
	server := h.listing().Server
	var actions []actuate.Action
	for i := range 30 {
		actions = append(actions, actuate.Action{Kind: actuate.ActionCreate, Server: server, Launch: h.launch(fmt.Sprint("s", i))})
	}
	outcomes, calls := h.crowd(actions...)
	for i, o := range outcomes {
		assert.Equal(t, actuate.Outcome{Result: actuate.ResultDone}, o)
		p := h.pane(actions[i].Launch.Labels.Attempt)
		assert.Equal(t, actions[i].Launch.Labels, p.Labels)
		assert.Equal(t, h.ran(actions[i].Launch).PID, p.PID)
	}
	assert.Greater(t, calls, 1, "a command line of tmux has a limit")
	assert.LessOrEqual(t, calls, 10)
}

// What is wrong with one start is its own: a name that is taken, a server that
// is not the one it was decided for.
func TestAStartThatFailsTakesNoOtherAlong(t *testing.T) {
	h := newServer(t)
	server := h.listing().Server
	h.tmux("new-session", "-d", "-s", "taken", "--", "sleep", "1000")
	create := func(name string) actuate.Action {
		return actuate.Action{Kind: actuate.ActionCreate, Server: server, Launch: h.launch(name)}
	}
	other := create("other")
	other.Server.StartTime++
	outcomes, calls := h.crowd(create("a"), create("taken"), create("b"), other, create("c"))
	assert.Equal(t, actuate.ResultDone, outcomes[0].Result)
	assert.Equal(t, spec.ReasonNameConflict, outcomes[1].Reason)
	assert.Contains(t, outcomes[1].Message, `"taken"`)
	assert.Equal(t, actuate.ResultDone, outcomes[2].Result)
	assert.Equal(t, actuate.ResultRefused, outcomes[3].Result)
	assert.Equal(t, actuate.ResultDone, outcomes[4].Result)
	assert.LessOrEqual(t, calls, 2)
}

// Whoever reads why a start failed is not told why another one did.
func TestEachOfSeveralStartsThatFailTogetherNamesItsOwnCause(t *testing.T) {
	h := newServer(t)
	server := h.listing().Server
	h.tmux("new-session", "-d", "-s", "taken", "--", "sleep", "1000")
	h.tmux("new-session", "-d", "-s", "kept", "--", "sleep", "1000")
	create := func(name, into string) actuate.Action {
		a := actuate.Action{Kind: actuate.ActionCreate, Server: server, Launch: h.launch(name)}
		a.Launch.Into = into
		return a
	}
	outcomes, calls := h.crowd(create("taken", ""), create("a", ""), create("lost", "$999"), create("kept", ""))
	assert.LessOrEqual(t, calls, 2)
	assert.Contains(t, outcomes[0].Message, `There is a tmux session "taken" already`)
	assert.Equal(t, actuate.ResultDone, outcomes[1].Result)
	assert.Equal(t, spec.ReasonTmuxFailed, outcomes[2].Reason, outcomes[2].Message)
	assert.NotContains(t, outcomes[2].Message, "duplicate")
	assert.Contains(t, outcomes[3].Message, `There is a tmux session "kept" already`)
}

// A line that tmux cannot even parse ends the whole call. Those behind it were
// not begun, and are carried out by themselves.
func TestALineThatWasNotReachedIsCarriedOutByItself(t *testing.T) {
	h := newServer(t)
	var lines [][]string
	both := &together{run: func(ctx context.Context, line []string) tmux.Result {
		lines = append(lines, line)
		return h.Conn.Run(ctx, nil, line...)
	}}
	bad := &member{line: branch("", "1", "no-such-command"), done: make(chan tmux.Result, 1)}
	good := &member{line: []string{"display-message", "-p", tokenDone}, done: make(chan tmux.Result, 1)}
	both.call(t.Context(), []*member{bad, good})
	r := <-bad.done
	assert.Empty(t, r.Stdout)
	assert.Contains(t, r.Stderr, "unknown command")
	assert.Equal(t, tokenDone, strings.TrimSpace((<-good.done).Stdout))
	assert.Len(t, lines, 2)
}

// After a call that did not end, nothing is known of anybody, and nothing is
// repeated.
func TestNothingIsRepeatedAfterACallThatDidNotEnd(t *testing.T) {
	calls := 0
	both := &together{run: func(context.Context, []string) tmux.Result {
		calls++
		return tmux.Result{Stdout: tokenBegin + " 0\n" + tokenDone + "\n", ExitCode: -1, Err: tmux.ErrTimeout, TimedOut: true}
	}}
	a, b := &member{done: make(chan tmux.Result, 1)}, &member{done: make(chan tmux.Result, 1)}
	both.call(t.Context(), []*member{a, b})
	assert.Equal(t, actuate.ResultDone, outcome(<-a.done).Result, "it had said so")
	assert.Equal(t, actuate.ResultUnclear, outcome(<-b.done).Result)
	assert.Equal(t, 1, calls)
}

// F4: a call that is stuck keeps nobody but those who share it.
func TestALineDoesNotWaitForACallThatIsStuck(t *testing.T) {
	hold, stuck := make(chan struct{}), make(chan struct{})
	both := &together{patience: time.Millisecond, run: func(_ context.Context, line []string) tmux.Result {
		if line[0] == "stuck" {
			close(stuck)
			<-hold
		}
		return tmux.Result{Stdout: line[0]}
	}}
	var first sync.WaitGroup
	first.Go(func() { assert.Equal(t, "stuck", both.do(t.Context(), []string{"stuck"}).Stdout) })
	<-stuck
	assert.Equal(t, "other", both.do(t.Context(), []string{"other"}).Stdout)
	close(hold)
	first.Wait()
}

func TestWhoeverIsNotToWaitAnyMoreKnowsNothing(t *testing.T) {
	hold := make(chan struct{})
	defer close(hold)
	both := &together{patience: time.Minute, run: func(context.Context, []string) tmux.Result { <-hold; return tmux.Result{} }}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r := both.do(ctx, []string{"x"})
	require.ErrorIs(t, r.Err, context.Canceled)
	assert.Equal(t, actuate.ResultUnclear, outcome(r).Result)
}

// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package tmux

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/actuate"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/observe/tmux"
	"github.com/muxlet/muxlet/spec"
)

func TestAnAnswerIsReadByItsTokensAndByWhatProvesThatNothingHappened(t *testing.T) {
	timeout := tmux.Result{ExitCode: -1, Err: fmt.Errorf("asking: %w", tmux.ErrTimeout), TimedOut: true}
	late := timeout
	late.Stdout = "muxlet-ran %1 2\n"
	for name, c := range map[string]struct {
		result tmux.Result
		want   actuate.Result
		reason string
	}{
		"done":                     {tmux.Result{Stdout: "muxlet-done %1 2\n"}, actuate.ResultDone, ""},
		"done, an error after it":  {tmux.Result{Stdout: "muxlet-done\n", Stderr: "odd", ExitCode: 1}, actuate.ResultDone, ""},
		"refused":                  {tmux.Result{Stdout: "muxlet-refused\n"}, actuate.ResultRefused, spec.ReasonUnknown},
		"started, not labelled":    {tmux.Result{Stdout: "muxlet-ran %1 2\n", Stderr: "no such pane", ExitCode: 1}, actuate.ResultUnclear, spec.ReasonTmuxFailed},
		"exit 0 without a token":   {tmux.Result{}, actuate.ResultUnclear, spec.ReasonTmuxFailed},
		"exit 1 without a word":    {tmux.Result{ExitCode: 1}, actuate.ResultUnclear, spec.ReasonTmuxFailed},
		"no answer":                {timeout, actuate.ResultUnclear, spec.ReasonTmuxTimeout},
		"no answer after a start":  {late, actuate.ResultUnclear, spec.ReasonTmuxTimeout},
		"interrupted":              {tmux.Result{ExitCode: -1, Err: context.Canceled}, actuate.ResultUnclear, spec.ReasonTmuxFailed},
		"the connection broke off": {tmux.Result{Stderr: "server exited unexpectedly\n", ExitCode: 1}, actuate.ResultUnclear, spec.ReasonTmuxFailed},
		"the server was lost":      {tmux.Result{Stderr: "lost server\n", ExitCode: 1}, actuate.ResultUnclear, spec.ReasonTmuxFailed},
		"a name in use":            {tmux.Result{Stderr: "duplicate session: shop\n", ExitCode: 1}, actuate.ResultFailed, spec.ReasonNameConflict},
		"a command refused":        {tmux.Result{Stderr: "respawn pane failed: fork failed\n", ExitCode: 1}, actuate.ResultFailed, spec.ReasonTmuxFailed},
		"no socket":                {tmux.Result{Stderr: "error connecting to /s (No such file or directory)\n", ExitCode: 1}, actuate.ResultFailed, spec.ReasonTmuxUnreachable},
		"nobody listens":           {tmux.Result{Stderr: "no server running on /s\n", ExitCode: 1}, actuate.ResultFailed, spec.ReasonTmuxUnreachable},
		"no access":                {tmux.Result{Stderr: "access not allowed\n"}, actuate.ResultFailed, spec.ReasonTmuxDenied},
		"another protocol":         {tmux.Result{Stderr: "protocol version mismatch (client 8, server 7)\n", ExitCode: 1}, actuate.ResultFailed, spec.ReasonTmuxMismatch},
		"no tmux program":          {tmux.Result{ExitCode: -1, Err: fmt.Errorf("%w: gone", tmux.ErrNoProgram)}, actuate.ResultFailed, spec.ReasonTmuxNotFound},
		"no socket could be made":  {tmux.Result{Stderr: "error creating /s (No such file or directory)\n"}, actuate.ResultFailed, spec.ReasonTmuxFailed},
	} {
		t.Run(name, func(t *testing.T) {
			got := outcome(c.result)
			assert.Equal(t, c.want, got.Result)
			assert.Equal(t, c.reason, got.Reason)
			assert.Equal(t, c.want == actuate.ResultDone, got.Message == "")
		})
	}
}

// script answers each call of tmux with the next result and keeps the call.
type script struct {
	results []tmux.Result
	calls   []string
}

func (s *script) Run(_ context.Context, _ io.Reader, args ...string) tmux.Result {
	s.calls = append(s.calls, strings.Join(args, " "))
	r := s.results[0]
	s.results = s.results[1:]
	return r
}

func (s *script) Start(context.Context, string, ...string) tmux.Result {
	return tmux.Result{Err: errors.New("no server is to be started")}
}

func createWith(t *testing.T, results ...tmux.Result) (actuate.Outcome, []string) {
	t.Helper()
	conn := &script{results: results}
	a := New(Config{Conn: conn, Instance: "i", Binary: "/muxlet", StateDir: "/s", RuntimeDir: "/r", Shell: Shell{Path: "/bin/sh", Supported: true}})
	o := a.Do(t.Context(), actuate.Action{
		Kind:   actuate.ActionCreate,
		Server: observe.Server{Process: observe.Process{PID: 7, Ticks: 8}, StartTime: 9},
		Launch: actuate.Launch{Labels: observe.Labels{
			Instance: "i", UID: "u", Name: "shop", Attempt: "a", Role: observe.RoleClient, Incarnation: 1,
		}},
	})
	require.Empty(t, conn.results, "every call was made")
	return o, conn.calls[1:]
}

func TestAPaneThatWasNotLabelledIsRemovedByItsIdentity(t *testing.T) {
	half := tmux.Result{Stdout: "muxlet-ran %3 44\n", Stderr: "no such pane: =shop:\n", ExitCode: 1}
	outcome, calls := createWith(t, half, tmux.Result{Stdout: "muxlet-done\n"})
	assert.Equal(t, actuate.ResultFailed, outcome.Result)
	assert.Contains(t, outcome.Message, "hook")
	require.Len(t, calls, 1)
	assert.Contains(t, calls[0], "-t %3 #{==:#{pid} #{start_time} #{pane_id} #{pane_pid},7 9 %3 44}")
	assert.Contains(t, calls[0], "'kill-pane' '-t' '%3'")

	outcome, _ = createWith(t, half, tmux.Result{Err: tmux.ErrTimeout, TimedOut: true})
	assert.Equal(t, actuate.ResultUnclear, outcome.Result, "whether it was removed is not known")
}

func TestAPaneThatWasLabelledInPlaceOfTheLaunchersLosesTheLabels(t *testing.T) {
	done := tmux.Result{Stdout: "muxlet-done\n"}
	outcome, calls := createWith(t, tmux.Result{Stdout: "muxlet-ran %3 44\nmuxlet-done %4 55\n"}, done, done)
	assert.Equal(t, actuate.ResultFailed, outcome.Result)
	require.Len(t, calls, 2)
	assert.Contains(t, calls[1], "#{pane_id} #{@muxlet-attempt},7 9 %4 a}")
	assert.Contains(t, calls[1], "'set-option' '-p' '-u' '-t' '%4' '@muxlet-attempt'")
}

func TestAnAnswerThatNamesNoPaneRemovesNone(t *testing.T) {
	outcome, calls := createWith(t, tmux.Result{Stdout: "muxlet-ran =shop: 44\n", ExitCode: 1})
	assert.Equal(t, actuate.ResultUnclear, outcome.Result)
	assert.Empty(t, calls)
}

func TestKindsThatTmuxDoesNotPerformFail(t *testing.T) {
	for _, kind := range []actuate.Kind{actuate.ActionNone, actuate.ActionSignal, "Paint"} {
		assert.Equal(t, actuate.ResultFailed, New(Config{}).Do(t.Context(), actuate.Action{Kind: kind}).Result)
	}
}

// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec"
)

const threadID = "01a2293e-5d35-7c62-bb76-7168de245aab"

func testdata(t *testing.T, name string) string {
	content, err := os.ReadFile(filepath.Join("testdata", name))
	require.NoError(t, err)
	return string(content)
}

// lines of a rollout, the first of which says what it is.
func lines(t *testing.T) []string {
	all := strings.SplitAfter(testdata(t, "codex-rollout.jsonl"), "\n")
	return all[:len(all)-1]
}

func started(at time.Time) string {
	return fmt.Sprintf(`{"timestamp":%q,"ordinal":1,"type":"event_msg","payload":{"type":"task_started","turn_id":"x"}}`+"\n", stamp(at))
}

func ended(at time.Time) string {
	return fmt.Sprintf(`{"timestamp":%q,"ordinal":2,"type":"event_msg","payload":{"type":"task_complete","last_agent_message":"x","duration_ms":500}}`+"\n", stamp(at))
}

func stamp(at time.Time) string { return at.UTC().Format("2006-01-02T15:04:05.000Z") }

func lastTurnOf(t *testing.T, content string) observe.Files {
	name := filepath.Join(t.TempDir(), "rollout.jsonl")
	write(t, name, content)
	return new(Eyes).lastTurn(name).files()
}

func TestTheEndOfARolloutTellsOfTheLastTurn(t *testing.T) {
	given := lines(t)
	whole := strings.Join(given, "")
	done := time.Date(2026, 11, 29, 21, 38, 6, 377e6, time.UTC).Local()
	begun := time.Date(2026, 11, 29, 21, 38, 6, 56e6, time.UTC).Local()
	idle := observe.Files{Activity: spec.ActivityIdle, ActivityAt: done, TurnAt: done}
	working := observe.Files{Activity: spec.ActivityWorking, ActivityAt: begun}
	unknown := observe.Files{Activity: spec.ActivityUnknown}
	filler := strings.Repeat(given[6], 1+(300<<10)/len(given[6]))
	for name, c := range map[string]struct {
		content string
		want    observe.Files
	}{
		"empty":                        {"", unknown},
		"no turn":                      {given[0], unknown},
		"a turn begins":                {strings.Join(given[:4], ""), working},
		"a turn goes on":               {strings.Join(given[:13], ""), working},
		"a turn went well":             {whole, idle},
		"its newline is not written":   {strings.TrimSuffix(whole, "\n"), idle},
		"the last line is cut":         {strings.Join(given[:13], "") + given[13][:len(given[13])/2], working},
		"NULs at the end":              {whole + strings.Repeat("\x00", 4096), idle},
		"garbage at the end":           {whole + "\xff\xfe\"event_msg\"\n{}\n", idle},
		"much was said since":          {given[0] + given[1] + filler, working},
		"a turn was interrupted":       {whole + strings.Replace(started(done), "task_started", "turn_aborted", 1), observe.Files{Activity: spec.ActivityIdle, ActivityAt: done}},
		"another began":                {whole + started(done.Add(time.Second)), observe.Files{Activity: spec.ActivityWorking, ActivityAt: done.Add(time.Second)}},
		"a message quotes an event":    {whole + `{"timestamp":"2026-11-29T22:00:00.000Z","type":"response_item","payload":{"type":"task_started","text":"\"event_msg\""}}` + "\n", idle},
		"a line is longer than a look": {whole + `{"x":"` + strings.Repeat("y", firstTail*5) + "\"}\n", idle},
	} {
		t.Run(name, func(t *testing.T) {
			got := lastTurnOf(t, c.content)
			assert.Equal(t, c.want, got)
		})
	}
}

func TestOfALargeRolloutOnlyTheEndIsRead(t *testing.T) {
	name := filepath.Join(t.TempDir(), "rollout.jsonl")
	f, err := os.Create(name)
	require.NoError(t, err)
	_, err = f.WriteAt([]byte("\n"+ended(time.Now())), 100<<20)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	counted := &countingDisk{}
	eyes := Eyes{disk: counted}
	assert.Equal(t, spec.ActivityIdle, eyes.lastTurn(name).files().Activity)
	assert.Less(t, counted.bytes(), 4<<20)
	unchanged := counted.bytes()
	assert.Equal(t, spec.ActivityIdle, eyes.lastTurn(name).files().Activity)
	assert.Equal(t, unchanged, counted.bytes(), "nor again while it is as it was")

	require.NoError(t, os.Truncate(name, 200<<20))
	before := counted.bytes()
	assert.Equal(t, spec.ActivityUnknown, eyes.lastTurn(name).files().Activity)
	assert.Less(t, counted.bytes()-before, 4*maxTail, "nor is all of it read for an event that is far away")
}

func TestAFailedTurnIsClassifiedAndItsTextForgotten(t *testing.T) {
	failures := strings.SplitAfter(strings.TrimSpace(testdata(t, "codex-failures.jsonl")), "\n")
	want := []struct {
		reason string
		retry  spec.RetryClass
	}{
		{spec.ReasonAuthenticationFailed, spec.RetryHold}, // 401
		{spec.ReasonAuthenticationFailed, spec.RetryHold}, // 403
		{spec.ReasonRateLimited, spec.RetryAgain},         // 429
		{spec.ReasonModelUnavailable, spec.RetryAgain},    // 500
		{spec.ReasonModelUnavailable, spec.RetryAgain},    // 529
		{spec.ReasonModelUnavailable, spec.RetryAgain},    // dropped before an answer
		{spec.ReasonUsageLimited, spec.RetryHold},
		{spec.ReasonRateLimited, spec.RetryAgain},      // 429 with retry-after
		{spec.ReasonModelUnavailable, spec.RetryAgain}, // dropped within an answer
	}
	require.Len(t, failures, len(want))
	for i, w := range want {
		got := lastTurnOf(t, strings.Join(lines(t), "")+failures[i])
		require.NotNil(t, got.Failure, failures[i])
		assert.Equal(t, w.reason, got.Failure.Reason, failures[i])
		assert.Equal(t, w.retry, got.Failure.Retry, failures[i])
		assert.Equal(t, got.TurnAt, got.Failure.At)
		assert.Equal(t, spec.ActivityIdle, got.Activity)
		if w.reason == spec.ReasonUsageLimited {
			// The message says 11:38 PM, in the client's own zone: the next one.
			until := got.Failure.Until.Local()
			assert.Equal(t, "23:38", until.Format("15:04"))
			assert.True(t, until.After(got.TurnAt) && until.Before(got.TurnAt.Add(25*time.Hour)), until)
		}
	}
	well := lastTurnOf(t, failures[0]+ended(time.Now()))
	assert.Nil(t, well.Failure)
}

func TestTheConversationIsTheThreadThatHadATurnLast(t *testing.T) {
	now := time.Now()
	turnOf := func(id string, at time.Time) thread {
		return thread{id: id, rollout: "/r/" + id, last: turn{startedAt: at}}
	}
	fresh := func(id string) thread { return thread{id: id} }
	agent := turnOf("agent", now.Add(time.Minute))
	agent.last.subordinate = true
	for name, c := range map[string]struct {
		threads []thread
		known   string
		want    string
	}{
		"none":                             {nil, "", ""},
		"one without a turn":               {[]thread{fresh("a")}, "", "a"},
		"one with another known":           {[]thread{fresh("a")}, "b", "a"},
		"after /new, no turn yet":          {[]thread{turnOf("old", now), fresh("new")}, "old", "old"},
		"after /new, and nothing is known": {[]thread{fresh("new"), turnOf("old", now)}, "", "old"},
		"after /new, it is reported":       {[]thread{turnOf("old", now), fresh("new")}, "new", "new"},
		"after /new and a turn":            {[]thread{turnOf("old", now), turnOf("new", now.Add(time.Second))}, "old", "new"},
		"back in the old one":              {[]thread{turnOf("old", now.Add(time.Second)), turnOf("new", now)}, "new", "old"},
		"/new before any turn":             {[]thread{fresh("old"), fresh("new")}, "", ""},
		"an agent of its own":              {[]thread{turnOf("a", now), agent}, "a", "a"},
		"nothing but an agent":             {[]thread{agent}, "a", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := chooseThread(c.threads, c.known)
			assert.Equal(t, c.want, got.id)
			assert.Equal(t, c.want != "", ok)
		})
	}
}

func TestAThreadThatAnotherHasStartedIsToldByItsFirstLine(t *testing.T) {
	first := lines(t)[0]
	assert.False(t, isSubordinate(strings.NewReader(first)))
	assert.True(t, isSubordinate(strings.NewReader(strings.Replace(first, `"thread_source":"user"`, `"thread_source":"subagent"`, 1))))
	assert.False(t, isSubordinate(strings.NewReader(strings.Replace(first, `"thread_source":"user",`, "", 1))), "older versions do not tell")
	assert.False(t, isSubordinate(strings.NewReader("garbage")))
}

// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/spec"
)

// What was said is read where the client has written it, also while no client runs; none of
// it reaches the log or an event.
func TestTheConversationOfAnAgentIsPrinted(t *testing.T) {
	t.Parallel()
	eachAgent(t, func(t *testing.T, a agent) {
		w := newAgentWorld(t, a)
		w.start()
		w.employ("s")
		w.ready("s")
		if a.class == "gem" {
			w.does("send", "s", "alpha", "--wait", "completed")
			assert.Contains(t, w.muxlet("logs", "s", "--conversation").errOut, "is not known; -o json prints the lines")
			return
		}
		none := w.muxlet("logs", "s", "--conversation")
		assert.Equal(t, 3, none.code)
		assert.Contains(t, none.errOut, "transcript yet")
		follower := w.open("logs", "s", "--conversation", "--follow")
		follower.shows("waiting")

		w.does("send", "s", "first\nof two lines", "--wait", "completed")
		w.does("send", "s", "second", "--wait", "completed")
		var said string
		w.waitFor("both turns are in the transcript", func() bool {
			said = w.muxlet("logs", "s", "--conversation").out
			return strings.Count(said, "assistant  20") == 2
		})
		assert.Regexp(t, `(?s)^user  \d{4}-\d\d-\d\d \d\d:\d\d:\d\d\nfirst\nof two lines\n\nassistant  .*\n\nuser  .*\nsecond\n\nassistant  `, said)
		last := w.does("logs", "s", "--conversation", "--tail", "2")
		assert.True(t, strings.HasPrefix(last, "user  ") && strings.HasSuffix(said, last), last)
		for line := range strings.Lines(w.does("logs", "s", "--conversation", "-o", "json")) {
			assert.True(t, json.Valid([]byte(line)), line)
		}
		follower.shows("second")

		w.does("suspend", "s")
		w.reaches("s", spec.StatusSuspended)
		assert.Equal(t, said, w.does("logs", "s", "--conversation"))
		assert.NotContains(t, w.log(), "of two lines")
		assert.NotContains(t, w.does("events"), "of two lines")
		w.does("delete", "s")
		follower.shows("session deleted")
	})
}

func TestASessionWithoutAConversationSaysSo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	w.declare("s", "stay")
	w.runs("s")
	assert.Contains(t, w.refuses(3, "logs", "s", "--conversation"), `session "s": a client of class exec has no conversation; "muxlet logs s" prints its screen`)
	require.Contains(t, w.refuses(3, "logs", "nobody", "--conversation"), "not found")
}

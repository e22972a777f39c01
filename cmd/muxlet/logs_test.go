// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/controller/server"
)

func TestLogsPrintWhatTheLastIncarnationHasShown(t *testing.T) {
	f := newFakeDaemon(runningSession("a", 2, 5), declared("b"))
	f.screens["a"] = "now"
	f.previous = map[string]string{"a": "one\ntwo\nboom"}
	c := newCLI(t, f)
	assert.Equal(t, 0, c.run("logs", "a", "--previous"))
	assert.Equal(t, "one\ntwo\nboom\n", c.out)
	assert.Equal(t, 0, c.run("logs", "-p", "a", "--tail", "1"))
	assert.Equal(t, "boom\n", c.out)
	assert.Equal(t, exitNotFound, c.run("logs", "b", "-p"))
	assert.Equal(t, "Error: session \"b\": no incarnation of it has ended yet\n", c.errOut)
}

func TestTailIsAllUnlessItIsGiven(t *testing.T) {
	f := newFakeDaemon(runningSession("a", 1, 5))
	f.screens["a"] = "one\ntwo"
	c := newCLI(t, f)
	for _, args := range [][]string{{}, {"--tail", "-1"}, {"--tail=20000"}} {
		assert.Equal(t, 0, c.run(append([]string{"logs", "a"}, args...)...))
		assert.Equal(t, "one\ntwo\n", c.out)
	}
}

// What a client writes is text on a person's terminal, and nothing else.
func TestControlCharactersOfAClientReachNoTerminal(t *testing.T) {
	for line, want := range map[string]string{
		"plain ✓ 日本 é\ttab":    "plain ✓ 日本 é\ttab",
		"\x1b[31mred\x1b[0m":   "^[[31mred^[[0m",
		"eight \u009b31m bits": "eight M-^[31m bits",
		"\x00\a\r\x7f":         "^@^G^M^?",
		"broken \xff\x9b31m":   "broken \ufffd31m",
		"\x1b broken \xff":     "^[ broken \ufffd",
	} {
		assert.Equal(t, want, harmless(line))
	}
	f := newFakeDaemon(runningSession("a", 1, 5))
	f.screens["a"] = "\x1b]0;title\a\u009b2J"
	c := newCLI(t, f)
	assert.Equal(t, 0, c.run("logs", "a"))
	assert.Equal(t, "^[]0;title^GM-^[2J\n", c.out)
}

func TestAFollowedLogTellsWhereAnIncarnationBeginsAndEndsWithTheSession(t *testing.T) {
	f := newFakeDaemon(runningSession("a", 1, 5))
	f.frames = []server.LogFrame{
		{Incarnation: 4, Lines: []string{"one", "two"}},
		{Lines: []string{"\x1b[2Jthree"}},
		{Incarnation: 5, Lines: []string{"four"}},
		{Gap: true, Lines: []string{"nine"}},
		{Removed: true},
	}
	c := newCLI(t, f)
	assert.Equal(t, 0, c.run("logs", "a", "-f", "--tail", "2"))
	assert.Equal(t, []string{"follow=2 a"}, f.intents())
	assert.Equal(t, "one\ntwo\n^[[2Jthree\nfour\nnine\n", c.out)
	assert.Equal(t, "--- incarnation 5 ---\n--- lines were missed ---\n--- session deleted ---\n", c.errOut)
	assert.Equal(t, exitNotFound, c.run("logs", "nobody", "-f"))
}

func TestCtrlCEndsAFollowedLogWithCodeZero(t *testing.T) {
	f := newFakeDaemon(runningSession("a", 1, 5))
	f.frames = []server.LogFrame{{Incarnation: 1, Lines: []string{"one"}}}
	ctx, interrupt := context.WithCancel(t.Context())
	f.on = func(*fakeDaemon, string, string) error {
		time.AfterFunc(50*time.Millisecond, interrupt)
		return nil
	}
	c := newCLI(t, f)
	assert.Equal(t, 0, c.runIn(ctx, "logs", "a", "--follow"))
	assert.Equal(t, "one\n", c.out)
	assert.Empty(t, c.errOut)
}

// The daemon may be restarted at any time: what it shows meanwhile is printed once.
func TestAFollowedLogGoesOnWithTheNextDaemon(t *testing.T) {
	f := newFakeDaemon(runningSession("a", 1, 5))
	f.frames = []server.LogFrame{{Incarnation: 1, Lines: []string{"one", "two"}}}
	c := newCLI(t, nil)
	path := filepath.Join(c.dir, "run", "muxlet.sock")
	l, err := server.Listen(path)
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx, l, server.Handler(f)) }()
	followed := make(chan int, 1)
	go func() { followed <- c.run("logs", "a", "-f", "--tail", "5") }()
	require.Eventually(t, func() bool { return f.framesTold() == 1 }, 20*time.Second, time.Millisecond)
	stop()
	require.NoError(t, <-ended)

	next := newFakeDaemon(runningSession("a", 1, 5))
	next.frames = []server.LogFrame{{Incarnation: 1, Lines: []string{"zero", "one", "two", "three"}}, {Lines: []string{"four"}}, {Removed: true}}
	c.serve(next)
	require.Equal(t, 0, <-followed)
	assert.Equal(t, []string{"follow=1000 a"}, next.intents())
	assert.Equal(t, "one\ntwo\nthree\nfour\n", c.out)
	assert.Equal(t, "--- the muxlet daemon has gone; waiting for the next ---\n--- session deleted ---\n", c.errOut)
}

func TestLinesThatWerePrintedBeforeAreFoundAgain(t *testing.T) {
	for name, c := range map[string]struct {
		printed, lines, want []string
		other                bool
	}{
		"nothing new":           {[]string{"a", "b"}, []string{"a", "b"}, []string{}, false},
		"more before and after": {[]string{"b", "c"}, []string{"a", "b", "c", "d"}, []string{"d"}, false},
		"the last place counts": {[]string{"a"}, []string{"a", "b", "a", "c"}, []string{"c"}, false},
		"less than was printed": {[]string{"a", "b", "c"}, []string{"b", "c", "d"}, []string{"b", "c", "d"}[2:], false},
		"nothing was printed":   {nil, []string{"a"}, []string{"a"}, false},
		"another screen":        {[]string{"x"}, []string{"a", "b"}, nil, false},
		"another incarnation":   {[]string{"x"}, []string{"a", "b"}, []string{"a", "b"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.want, unseen(c.printed, c.lines, c.other))
		})
	}
}

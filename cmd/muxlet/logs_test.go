// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/controller/server"
	"github.com/muxlet/muxlet/spec"
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

const (
	promptLine = `{"type":"user","timestamp":"2026-11-29T21:33:14.476Z","message":{"role":"user","content":"one\n\u001b[31mtwo"}}` + "\n"
	answerLine = `{"type":"assistant","timestamp":"2026-11-29T21:33:20Z","message":{"content":[{"type":"text","text":"yes"},{"type":"tool_use","name":"Bash","input":{"command":"ls"}}]}}` + "\n"
)

func when(text string) string {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		panic(err)
	}
	return at.Local().Format(entryTime)
}

func TestLogsPrintTheConversation(t *testing.T) {
	f := newFakeDaemon(runningSession("a", 1, 5))
	path := filepath.Join(t.TempDir(), "c1.jsonl")
	require.NoError(t, os.WriteFile(path, []byte(promptLine+answerLine+`{"type":"assist`), 0o600))
	f.transcript = server.Transcript{Conversation: "c1", Path: path, Reports: spec.ReportsClaude}
	c := newCLI(t, f)
	asked, told := when("2026-11-29T21:33:14Z"), when("2026-11-29T21:33:20Z")
	require.Equal(t, 0, c.run("logs", "a", "--conversation"))
	assert.Equal(t, "user  "+asked+"\none\n^[[31mtwo\n\nassistant  "+told+"\nyes\n\ntool  "+told+"  Bash: ls\n\n", c.out)
	require.Equal(t, 0, c.run("logs", "a", "--conversation", "--tail", "1"))
	assert.Equal(t, "tool  "+told+"  Bash: ls\n\n", c.out)
	require.Equal(t, 0, c.run("logs", "a", "--conversation", "--tail", "0"))
	assert.Empty(t, c.out)
	require.Equal(t, 0, c.run("logs", "a", "--conversation", "-o", "json", "--tail", "2"))
	lines := []string{promptLine, answerLine, ""}
	assert.Equal(t, lines, strings.SplitAfter(c.out, "\n"), "the line that is being written does not count")

	f.transcript.Reports = spec.ReportsNone
	assert.Equal(t, exitNotFound, c.run("logs", "a", "--conversation"))
	assert.Contains(t, c.errOut, "-o json prints the lines of "+path)
	assert.Equal(t, 0, c.run("logs", "a", "--conversation", "-o", "json"))
	assert.Equal(t, lines, strings.SplitAfter(c.out, "\n"))
	f.transcript = server.Transcript{Message: "it has no conversation yet"}
	assert.Equal(t, exitNotFound, c.run("logs", "a", "--conversation"))
	assert.Equal(t, "Error: session \"a\": it has no conversation yet; \"muxlet logs a\" prints its screen\n", c.errOut)
	assert.Equal(t, exitNotFound, c.run("logs", "nobody", "--conversation"))
}

func TestAConversationIsFollowedFromOneToTheNext(t *testing.T) {
	f := newFakeDaemon(runningSession("a", 1, 5))
	set := func(place server.Transcript) {
		f.mu.Lock()
		f.transcript = place
		f.mu.Unlock()
	}
	set(server.Transcript{Conversation: "c1", Message: "conversation c1 has no transcript yet"})
	w := newCLI(t, f).begin("logs", "a", "--conversation", "-f")
	w.shows("has no transcript yet; waiting")
	dir := t.TempDir()
	one, two := filepath.Join(dir, "c1.jsonl"), filepath.Join(dir, "c2.jsonl")
	require.NoError(t, os.WriteFile(one, []byte(promptLine), 0o600))
	set(server.Transcript{Conversation: "c1", Path: one, Reports: spec.ReportsClaude})
	w.shows("^[[31mtwo")
	out, err := os.OpenFile(one, os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = out.WriteString(answerLine)
	require.NoError(t, err)
	require.NoError(t, out.Close())
	w.shows("Bash: ls")
	require.NoError(t, os.WriteFile(two, []byte(strings.Replace(promptLine, "one", "anew", 1)), 0o600))
	set(server.Transcript{Conversation: "c2", Path: two, Reports: spec.ReportsClaude})
	w.shows("--- conversation c2 ---")
	w.shows("anew")
	f.remove("a")
	w.shows("--- session deleted ---")
	assert.Equal(t, 1, strings.Count(w.out.String(), "Bash: ls"))
}

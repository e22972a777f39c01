// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"strings"
	"testing"

	"github.com/creack/pty"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muxlet/muxlet/spec"
)

func TestWideCharactersAreAligned(t *testing.T) {
	for text, columns := range map[string]int{
		"abc": 3, "日本語": 6, "e\u0301": 1, "🚀": 2, "👩‍💻": 2, "한글": 4, "ｗ": 2, "": 0, "…": 1,
	} {
		assert.Equal(t, columns, width(text), "%q", text)
	}
	var all []spec.Session
	for _, directory := range []string{"/日本語", "/cafe\u0301", "/🚀", "/plain"} {
		s := runningSession("s"+string(rune('a'+len(all))), 1, 5)
		s.UID = types.UID(s.Name)
		s.Status.Workspace.Path = directory
		all = append(all, s)
	}
	c := newCLI(t, newFakeDaemon(all...))
	assert.Equal(t, 0, c.run("get", "-o", "wide", "--no-headers"))
	for _, line := range strings.Split(strings.TrimSpace(c.out), "\n") {
		before, _, found := strings.Cut(line, "%7")
		require.True(t, found)
		assert.Equal(t, 70, width(before), "%s", line)
	}
}

func TestNothingInATableIsObeyedByTheTerminal(t *testing.T) {
	for text, shown := range map[string]string{
		"plain ünïcode 日本": "plain ünïcode 日本",
		"\x1b[31mred":      "^[[31mred",
		"a\rb\x07\x00\x7f": "a^Mb^G^@^?",
		"\u009b31m":        "<U+009B>31m",
		"ab\u202ecd":       "ab<U+202E>cd",
		"👩‍💻":              "👩‍💻",
		"bad \xff":         "bad \ufffd",
	} {
		assert.Equal(t, shown, visible(text), "%q", text)
	}
	f := newFakeDaemon(runningSession("a", 1, 5))
	f.tell(event("a", corev1.EventTypeWarning, spec.ReasonDied, "it said \x1b]0;title\x07 and\nmore", 1, 0, 0))
	f.status.Problems = []string{"/m/\x1b[2J.yaml:1:1: kind: missing"}
	s := runningSession("b", 1, 6)
	s.Status.Workspace.Path = "/w/\x1b[2J"
	f.set(s)
	c := newCLI(t, f)
	for _, args := range [][]string{{"get", "-o", "wide"}, {"events"}, {"describe", "b"}} {
		assert.Equal(t, 0, c.run(args...), args)
		for _, raw := range []string{"\x1b", "\x07", "\r"} {
			assert.NotContains(t, c.out+c.errOut, raw, args)
		}
	}
	assert.Equal(t, 0, c.run("events", "--no-headers"))
	assert.Contains(t, c.out, "it said ^[]0;title^G and...\n")
}

func TestColoursAreForTerminalsThatShowThem(t *testing.T) {
	screen, side, err := pty.Open()
	require.NoError(t, err)
	defer func() { _, _ = screen.Close(), side.Close() }()
	file, err := os.Create(t.TempDir() + "/f")
	require.NoError(t, err)
	defer func() { _ = file.Close() }()
	for _, r := range []struct {
		name string
		file *os.File
		env  map[string]string
		want bool
	}{
		{"a terminal", side, map[string]string{"TERM": "xterm"}, true},
		{"a file", file, map[string]string{"TERM": "xterm"}, false},
		{"NO_COLOR", side, map[string]string{"TERM": "xterm", "NO_COLOR": "1"}, false},
		{"NO_COLOR that is empty", side, map[string]string{"TERM": "xterm", "NO_COLOR": ""}, true},
		{"a dumb terminal", side, map[string]string{"TERM": "dumb"}, false},
	} {
		lookup := func(name string) (string, bool) { value, ok := r.env[name]; return value, ok }
		assert.Equal(t, r.want, colourful(r.file, lookup), r.name)
	}
}

func TestTheStatusHasAColourAndColumnsStayAligned(t *testing.T) {
	c := newCLI(t, eventful(zoo()))
	assert.Equal(t, 0, c.run("get"))
	want := c.out
	c.prepare = func(g *globals) { g.colour = func() bool { return true } }
	assert.Equal(t, 0, c.run("get"))
	for _, painted := range []string{"\x1b[32mRunning\x1b[0m", "\x1b[31mBlocked\x1b[0m", "\x1b[31mCrashLoopBackOff\x1b[0m", "\x1b[90mSuspended\x1b[0m"} {
		assert.Contains(t, c.out, painted)
	}
	for _, code := range []string{"\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[90m", "\x1b[0m"} {
		c.out = strings.ReplaceAll(c.out, code, "")
	}
	assert.Equal(t, want, c.out)
	assert.Equal(t, 0, c.run("get", "-o", "json"))
	assert.NotContains(t, c.out, "\x1b")
	assert.Equal(t, 0, c.run("events"))
	assert.Contains(t, c.out, "\x1b[33mWarning\x1b[0m")
}

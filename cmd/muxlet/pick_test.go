// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/spec"
)

// desk is a list of one session of each kind.
func desk() *picker {
	idle := runningSession("api-refactor", 1, 5)
	idle.Status.Activity = &spec.ActivityStatus{State: spec.ActivityIdle, AsksSince: pointer(before(12 * time.Minute))}
	works := runningSession("docs", 1, 5)
	works.Status.Activity = &spec.ActivityStatus{State: spec.ActivityWorking}
	p := &picker{front: "docs"}
	p.show([]spec.Session{
		works, runningSession("web", 1, 5), suspendedSession("review"), stalledSession("dormant-one", spec.ReasonDormant, ""),
		askingAt("checkout-bug", "%1", 3*time.Minute), idle,
		stalledSession("gone", spec.ReasonWorkspaceMissing, "The directory does not exist."),
	}, noon)
	return p
}

// plainLines are what a terminal shows, each line with a sign where it is marked.
func plainLines(p *picker, columns, rows int) string {
	lines := p.lines(columns, rows)
	for i, line := range lines {
		if inner, marked := strings.CutPrefix(line, "\x1b[7m"); marked {
			lines[i] = strings.TrimRight(strings.TrimSuffix(inner, "\x1b[0m"), " ") + " <"
		}
	}
	return strings.Join(lines, "\n") + "\n"
}

func TestTheListShowsWhoWaitsAndForWhat(t *testing.T) {
	p := desk()
	path := filepath.Join("testdata", "pick.golden")
	screen := plainLines(p, 70, 14)
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(screen), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, string(want), screen)
}

func TestEveryLineOfTheListFitsTheTerminal(t *testing.T) {
	p := desk()
	long := runningSession(strings.Repeat("long-", 12)+"x", 1, 5)
	p.show(append(p.sessions, long), noon)
	p.colour = true
	for _, columns := range []int{1, 10, 20, 40, 80, 200} {
		for _, rows := range []int{1, 4, 5, 8, 30} {
			lines := p.lines(columns, rows)
			assert.Len(t, lines, max(rows, 5))
			for _, line := range lines {
				for _, sequence := range []string{"\x1b[7m", "\x1b[0m", "\x1b[31m", "\x1b[33m", "\x1b[90m"} {
					line = strings.ReplaceAll(line, sequence, "")
				}
				assert.NotContains(t, line, "\x1b")
				assert.LessOrEqual(t, width(line), columns, "%d columns: %q", columns, line)
			}
		}
	}
}

// type keys as a terminal sends them, in pieces of the given size.
func (p *picker) types(sent string, size int) (last pickResult) {
	var waiting string
	for chunk := range slices.Chunk([]byte(sent), size) {
		waiting += string(chunk)
		for key := "-"; key != ""; {
			if key, waiting = nextKey(waiting, false); key != "" {
				last = p.press(key)
			}
		}
	}
	if key, _ := nextKey(waiting, true); key != "" {
		last = p.press(key)
	}
	return last
}

func TestKeysLeadToASession(t *testing.T) {
	for name, c := range map[string]struct {
		keys, want string
		end        pickResult
	}{
		"Enter takes who waits longest":   {"\r", "api-refactor", pickDone},
		"down":                            {"\x1b[B\r", "checkout-bug", pickDone},
		"as applications send it":         {"\x1bOB\x1bOB\x1bOA\r", "checkout-bug", pickDone},
		"Ctrl-N and Tab":                  {"\x0e\x09\r", "gone", pickDone},
		"beyond the end":                  {"\x1b[6~\x1b[6~\r", "web", pickDone},
		"end and home":                    {"\x1b[F\x1b[H\r", "api-refactor", pickDone},
		"a name":                          {"web\r", "web", pickDone},
		"words in any order, upper case":  {"PERM check\r", "checkout-bug", pickDone},
		"a directory":                     {"src/rev\r", "review", pickDone},
		"a mistake is taken back":         {"wex\x7fb\r", "web", pickDone},
		"all of it":                       {"nonsense\x15web\r", "web", pickDone},
		"nothing is found":                {"nonsense\r", "", pickGoesOn},
		"Escape":                          {"\x1b", "", pickLeft},
		"Ctrl-C":                          {"we\x03", "", pickLeft},
		"a key of which nothing is known": {"\x1b[15~\x1b[200;3u\r", "api-refactor", pickDone},
		"wide characters":                 {"日本\x7f\x7fweb\r", "web", pickDone},
	} {
		t.Run(name, func(t *testing.T) {
			for _, size := range []int{1, 2, 3, 100} {
				p := desk()
				assert.Equal(t, c.end, p.types(c.keys, size))
				if c.end == pickDone || c.want != "" {
					assert.Equal(t, c.want, p.selection())
				}
			}
		})
	}
}

// A session that begins to wait while the list is open moves up; what is marked stays so.
func TestWhatIsMarkedStaysMarkedWhileTheListChanges(t *testing.T) {
	p := desk()
	p.types("\x1b[F", 3)
	assert.Equal(t, "web", p.selection())
	p.show(append(p.sessions, askingAt("new", "%4", time.Hour)), noon)
	assert.Equal(t, "web", p.selection())
	p.show(slices.DeleteFunc(p.sessions, func(s spec.Session) bool { return s.Name == "web" }), noon)
	assert.Equal(t, "new", p.selection())
	p.show(nil, noon)
	assert.Empty(t, p.selection())
}

// The session in front is not the first choice.
func TestTheSessionInFrontIsNotTheFirstChoice(t *testing.T) {
	p := &picker{front: "a"}
	p.show([]spec.Session{askingAt("a", "%1", time.Hour), askingAt("b", "%2", time.Minute)}, noon)
	assert.Equal(t, "b", p.selection())
}

func TestPickNeedsATerminal(t *testing.T) {
	c := newCLI(t, newFakeDaemon(runningSession("a", 1, 5)))
	assert.Equal(t, exitError, c.run("pick"))
	assert.Contains(t, c.errOut, "standard input is not a terminal; \"muxlet get\" prints the list")
}

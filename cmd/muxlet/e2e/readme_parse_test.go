// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e && !e2eagents

package e2e

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const readmeFile = "../../../README.md"

// typed is one command of a console block, and what the README shows of its output.
type typed struct {
	// line of the README, from 0.
	line    int
	command string
	shown   []string
}

// story is what a person types from the first block of its name to the last one, in one
// shell.
type story []typed

// readmeStories reads the console blocks. The comment before each says which story it
// belongs to: <!-- replay: NAME -->, or that it is none and why: <!-- no replay: WHY -->.
// YAML and other files that a story needs are written by the test.
func readmeStories(text string) (map[string]story, []string) {
	var problems []string
	stories := map[string]story{}
	name, skipped, within := "", false, false
	for i, line := range strings.Split(text, "\n") {
		switch {
		case within && line == "```":
			name, skipped, within = "", false, false
		case within && skipped:
		case within && strings.HasPrefix(line, "$ "):
			stories[name] = append(stories[name], typed{line: i, command: line[2:]})
		case within && len(stories[name]) > 0:
			last := &stories[name][len(stories[name])-1]
			last.shown = append(last.shown, line)
		case line == "```console":
			within = true
			if name == "" && !skipped {
				problems = append(problems, fmt.Sprintf("README.md:%d: the block says neither which story replays it nor why none does", i+1))
				skipped = true
			}
		case strings.HasPrefix(line, "<!-- replay: "):
			name = strings.TrimSuffix(strings.TrimPrefix(line, "<!-- replay: "), " -->")
		case strings.HasPrefix(line, "<!-- no replay: "):
			skipped = true
		}
	}
	return stories, problems
}

// variable are the parts of a screen that are others each time.
var variable = []struct {
	pattern *regexp.Regexp
	word    string
}{
	{regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`), "UUID"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z| UTC| [+-]\d{4})*`), "TIME"},
	{regexp.MustCompile(`\b\d+(\.\d+)?(Ki|Mi|Gi)\b`), "BYTES"},
	{regexp.MustCompile(`\b(\d+d)?(\d+h)?(\d+m)?\d+(\.\d+)?(ms|s|m|h|d)\b`), "TIME"},
	{regexp.MustCompile(`\b(pid:?) +\d+`), "$1 PID"},
	{regexp.MustCompile(`%\d+\b`), "%PANE"},
	{regexp.MustCompile(`\$\d+\b`), "$$SESSION"},
	{regexp.MustCompile(`\b\d+%`), "PERCENT"},
	{regexp.MustCompile(`\b\d+(st|nd|rd|th)? deaths? in a row`), "DEATHS"},
	{regexp.MustCompile(`\s+`), " "},
}

// plain is a line without what is another each time.
func plain(line string) string {
	for _, v := range variable {
		line = v.pattern.ReplaceAllString(line, v.word)
	}
	return strings.TrimSpace(line)
}

// showsAll says whether the output is what is shown: a line … stands for any number of
// lines, and … within one for anything there.
func showsAll(shown, output []string) bool {
	if len(shown) == 0 {
		return len(output) == 0
	}
	if strings.TrimSpace(shown[0]) == "…" {
		for i := range len(output) + 1 {
			if showsAll(shown[1:], output[i:]) {
				return true
			}
		}
		return false
	}
	return len(output) > 0 && sameLine(shown[0], output[0]) && showsAll(shown[1:], output[1:])
}

func sameLine(shown, line string) bool {
	parts := strings.Split(plain(shown), "…")
	for i := range parts {
		parts[i] = regexp.QuoteMeta(strings.TrimSpace(parts[i]))
	}
	return regexp.MustCompile("^" + strings.Join(parts, ".*") + "$").MatchString(plain(line))
}

// screenLines an output, without those at its end that are empty.
func screenLines(output string) []string {
	output = strings.TrimRight(output, "\n ")
	if output == "" {
		return nil
	}
	return strings.Split(output, "\n")
}

func TestAScreenOfTheReadmeIsComparedByWhatMatters(t *testing.T) {
	t.Parallel()
	output := []string{"NAME    STATUS    RESTARTS", "clock   Running   1 (12s ago)", "pid 4711, pane %3"}
	for _, shown := range [][]string{
		{"NAME  STATUS  RESTARTS", "clock Running 1 (3m ago)", "pid 1, pane %0"},
		{"…"}, {"NAME STATUS …", "…"}, {"…", "pid 9, pane %1"},
	} {
		assert.True(t, showsAll(shown, output), shown)
	}
	for _, shown := range [][]string{
		{"NAME STATUS RESTARTS"}, {"NAME STATUS RESTARTS", "clock Running 2 (3m ago)", "…"}, {"…", "clock"}, nil,
	} {
		assert.False(t, showsAll(shown, output), shown)
	}
}

func TestEveryConsoleBlockOfTheReadmeIsReplayedOrSaysWhyNot(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(readmeFile)
	require.NoError(t, err)
	stories, problems := readmeStories(string(text))
	assert.Empty(t, problems)
	for name, told := range stories {
		assert.Contains(t, storyTellers, name, "README.md:%d", told[0].line+1)
	}
	for name := range storyTellers {
		assert.Contains(t, stories, name)
	}
}
